"""One budget for several models: never overdrawn, nothing left over, and better than rows of a person."""

import math

import numpy as np
import pytest
from sklearn.multioutput import MultiOutputClassifier

import expost
from expost import research
from expost.exceptions import CalibrationError, ParameterError
from expost.privacy.shapes import classification_loss, quantile_loss
from expost.privacy.sharing import shared_plan

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
MAKERS = {
    "logistic": lambda epsilon, delta: expost.calibrate(
        loss=classification_loss(2, epsilon, delta, radius=math.sqrt(2.0)),
        epsilon=epsilon,
        delta=delta,
        fit_intercept=True,
    ),
    "pseudo-Huber": lambda epsilon, delta: expost.calibrate(
        loss="pseudo_huber", epsilon=epsilon, delta=delta
    ),
    "quantile": lambda epsilon, delta: expost.calibrate(
        loss=quantile_loss(epsilon, delta), epsilon=epsilon, delta=delta, fit_intercept=True
    ),
    "person": lambda epsilon, delta: expost.calibrate(epsilon=epsilon, delta=delta, unit="person"),
    "leverage": lambda epsilon, delta: expost.calibrate(epsilon=epsilon, delta=delta, report="leverage"),
    "convex": lambda epsilon, delta: expost.calibrate_convex(
        expost.SmoothedNorm(2), epsilon=epsilon, delta=delta
    ),
}
DEARER = [pytest.param(name, marks=pytest.mark.long) for name in MAKERS if name != "logistic"]


@pytest.mark.parametrize("name", ["logistic", *DEARER])
def test_models_that_share_a_budget_spend_it_and_no_more(name):
    plan = shared_plan(3, **BUDGET, plan=MAKERS[name])
    spent = expost.compose([plan] * 3).epsilon_at(BUDGET["delta"])
    assert 1.0 - 1e-4 <= spent <= 1.0
    assert 1.0 / 3.0 < plan.epsilon < 1.0  # adding up would leave a third
    assert plan.delta == BUDGET["delta"] / 3.0


@pytest.mark.parametrize("epsilon", [0.1, pytest.param(8.0, marks=pytest.mark.long)])
@pytest.mark.parametrize("models", [2, pytest.param(50, marks=pytest.mark.long)])
def test_noise_grows_as_that_of_gaussian_mechanisms(models, epsilon):
    """For K identical Gaussian mechanisms by the square root of K; a loss of one shape is as sharp to 1%."""

    def plain(epsilon, delta):
        return expost.calibrate(epsilon=epsilon, delta=delta)

    alone = plain(epsilon, 1e-6)
    plan = shared_plan(models, epsilon, 1e-6, plain)
    assert math.sqrt(models) <= plan.sigma / alone.sigma <= 1.01 * math.sqrt(models)
    rows = models * expost.calibrate(epsilon=epsilon, delta=1e-6, unit="person").sigma
    assert plan.sigma < rows * 1.01 / math.sqrt(models)


@pytest.mark.parametrize("models", [2, 100, pytest.param(1000, marks=pytest.mark.long)])
def test_however_many_share_a_budget_a_ten_thousandth_of_it_is_left_at_most(models):
    """Choices, whose curves take no time: each costs less than the whole budget, and more than its part."""
    plan = shared_plan(models, **BUDGET, plan=lambda epsilon, delta: expost.ChoicePlan(epsilon, 2))
    spent = expost.compose([plan] * models).epsilon_at(BUDGET["delta"])
    assert 1.0 - 1e-4 <= spent <= 1.0
    assert 1.0 / models < plan.epsilon < 1.0


@pytest.mark.parametrize(
    ("models", "epsilon", "delta"), [(2, 1e-3, 1e-3), (2, 1e-3, 0.2), pytest.param(2, 1.0, 0.5)]
)
def test_deltas_alone_may_pay_for_all_models(models, epsilon, delta):
    plan = shared_plan(models, epsilon, delta, MAKERS["leverage"])
    assert plan == MAKERS["leverage"](epsilon, delta / models)
    assert expost.compose([plan] * models).epsilon_at(delta) <= epsilon


def test_no_plan_has_more_than_the_whole_epsilon():
    """Even where twice as much would be within the budget, because the deltas pay for it."""
    deltas = set()

    def choice(epsilon, delta):
        deltas.add(delta)
        return expost.ChoicePlan(epsilon, 2)

    assert shared_plan(2, 1e-3, 1e-2, choice).epsilon == 1e-3
    assert deltas == {0.5e-2}
    assert expost.compose([expost.ChoicePlan(2e-3, 2)] * 2).epsilon_at(1e-2) == 0.0


@pytest.mark.long
def test_a_budget_is_for_equal_plans():
    """Two of each kind stay within it, and one of each does not."""
    one, other = (shared_plan(2, **BUDGET, plan=MAKERS[name]) for name in ("logistic", "quantile"))
    assert expost.compose([other, other]).epsilon_at(1e-6) <= 1.0
    assert expost.compose([one, other]).epsilon_at(1e-6) > 1.04


def test_one_model_has_the_whole_budget():
    assert shared_plan(1, 1.0, 1e-6, MAKERS["logistic"]) == MAKERS["logistic"](1.0, 1e-6)


@pytest.mark.long
def test_every_outcome_of_scikit_learns_wrapper_has_its_share(recwarn):
    random = np.random.default_rng(0)
    X = random.uniform(-0.5, 0.5, (2000, 3))
    Y = X @ random.normal(size=(3, 4)) + 0.1 * random.normal(size=(2000, 4)) > 0.0
    one = expost.LogisticRegression(**BUDGET, models=4, norm=1.0, classes=[False, True], random_state=0)
    plans = [model.plan_ for model in MultiOutputClassifier(one).fit(X, Y).estimators_]
    assert len(set(plans)) == 1
    assert 1.0 - 1e-4 <= expost.compose(plans).epsilon_at(BUDGET["delta"]) <= 1.0


def test_the_joint_loss_of_all_outcomes_is_the_sum_of_their_losses():
    """As rows of blocks, one for each outcome: a record's rows lose together what its outcomes do."""
    random = np.random.default_rng(3)
    outcomes, columns, records = 3, 2, 40
    X = random.uniform(-0.7, 0.7, (records, columns))
    Y = random.integers(0, 2, (records, outcomes))
    plan = expost.calibrate(sigma=3.0, l2=1.5, fit_intercept=False)
    theta = random.normal(size=(outcomes, columns))
    blocks = np.zeros((records, outcomes, outcomes, columns))
    blocks[:, np.arange(outcomes), np.arange(outcomes)] = X[:, None, :]
    blocks = blocks.reshape(records * outcomes, outcomes * columns)
    people = np.repeat(np.arange(records), outcomes)
    imagined = research.imagine(plan, blocks, Y.ravel(), theta.ravel())
    joint = research.losses(*imagined, blocks, Y.ravel(), member=True, groups=people)
    apart = [
        research.losses(*research.imagine(plan, X, Y[:, k], theta[k]), X, Y[:, k], member=True).signed
        for k in range(outcomes)
    ]
    np.testing.assert_allclose(joint.signed, np.sum(apart, axis=0), atol=1e-12)


@pytest.mark.parametrize("models", [0, 2.5, True, 1001])
def test_what_is_no_number_of_models_is_refused(models):
    with pytest.raises(ParameterError, match="`models` must be"):
        shared_plan(models, **BUDGET, plan=MAKERS["logistic"])


@pytest.mark.parametrize("models", [True, 1.0, 0])
def test_a_model_refuses_what_is_no_number_of_models(models):
    with pytest.raises(ParameterError, match="`models` must be"):
        expost.LogisticRegression(norm=1.0, classes=[0, 1], models=models).fit(np.zeros((4, 1)), [0, 1, 0, 1])


def test_a_budget_that_compositions_cannot_resolve_is_refused_at_once():
    with pytest.raises(CalibrationError, match="models=3 cannot share"):
        shared_plan(3, epsilon=1e-4, delta=1e-12, plan=MAKERS["logistic"])


def test_a_plan_is_that_of_each_model_already():
    plan = expost.calibrate(norm=1.0, fit_intercept=True)
    model = expost.LogisticRegression(plan=plan, norm=1.0, classes=[0, 1], models=3)
    with pytest.raises(ParameterError, match="`models` must be 1 with a plan"):
        model.fit(np.zeros((4, 1)), [0, 1, 0, 1])
