"""A plan of one's own, given to an estimator."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from own_losses import LogCosh
from sklearn.base import clone

import expost
from expost.exceptions import DomainError, ParameterError
from expost.privacy.shapes import capped_logistic, capped_softmax, regression_loss

rng = np.random.default_rng(4)
X = rng.normal(size=(200, 3)) / 4
Y = (X[:, 0] + 0.2 * rng.normal(size=200) > 0).astype(int)
SEVERAL = rng.integers(0, 3, 200)
DOMAIN = expost.Domain(
    features=(expost.Number(name="a", low=-1.0, high=1.0), expost.Number(name="b", low=-1.0, high=1.0)),
    label=expost.ClassLabel(name="y", classes=("no", "yes")),
)
BUDGET = {"epsilon": 2.0, "delta": 1e-7, "norm": 0.9, "fit_intercept": True}
RADIUS = math.hypot(0.9, 1.0)
HUBER = regression_loss(2.0, 1e-7, radius=RADIUS)
CAPPED, CAPPED_3 = capped_logistic(2.0, 1e-7, radius=RADIUS), capped_softmax(3, 2.0, 1e-7, radius=RADIUS)
SHORTER = capped_logistic(2.0, 1e-7, radius=0.9)
TWO, THREE = {"classes": [0, 1]}, {"classes": [0, 1, 2]}
# An estimator, its labels, the loss that its arguments choose, and what they add to the budget.
SAME = {
    "logistic": (expost.LogisticRegression(**TWO), Y, CAPPED, {"report": "leverage"}),
    "no intercept": (expost.LogisticRegression(**TWO), Y, SHORTER, {"fit_intercept": False}),
    "classical": (expost.LogisticRegression(**TWO), Y, CAPPED, {"calibration": "kifer2012"}),
    "several": (expost.LogisticRegression(**THREE), SEVERAL, CAPPED_3, {"report": "adaptive"}),
    "weights": (expost.LogisticRegression(**TWO), Y, CAPPED, {"max_weight": 3.0}),
    "hinge": (expost.SmoothedHingeClassifier(scale=0.3, **TWO), Y, expost.SmoothedHinge(0.3), {"l2": 9.0}),
    "huber": (expost.LinearRegression(outcome=(-1, 1)), Y, HUBER, {"report": "dependent"}),
    "own": (expost.GeneralizedLinearModel(loss=LogCosh(0.5)), X[:, 0], LogCosh(0.5), {}),
}


@pytest.mark.parametrize("name", SAME)
def test_a_plan_gives_what_its_arguments_give(name):
    model, y, loss, changes = SAME[name]
    arguments = BUDGET | changes
    plan = expost.calibrate(loss=loss, **arguments)
    weights = rng.uniform(0, 3, 200) if "max_weight" in changes else None
    made = clone(model).set_params(random_state=1, **arguments).fit(X, y, weights)
    given = (
        clone(model)
        .set_params(random_state=1, plan=plan, fit_intercept=plan.fit_intercept)
        .fit(X, y, weights)
    )
    assert given.plan_ == made.plan_ == plan
    assert given.publication_ == made.publication_
    both = clone(made).set_params(plan=plan).fit(X, y, weights)  # arguments that agree are no disagreement
    assert both.publication_ == made.publication_
    assert pickle.loads(pickle.dumps(given)).get_params()["plan"] == plan


def test_class_weights_are_counted_in_the_plans_largest_weight():
    by_class = {"classes": [0, 1], "class_weight": {0: 0.5, 1: 2.0}, "random_state": 1}
    loss = capped_logistic(1.0, 1e-6, radius=math.sqrt(2.0))
    plan = expost.calibrate(loss=loss, max_weight=6.0, fit_intercept=True)
    made = expost.LogisticRegression(norm=1.0, max_weight=3.0, **by_class).fit(X, Y)
    given = expost.LogisticRegression(plan=plan, **by_class).fit(X, Y)
    assert given.publication_ == made.publication_
    with pytest.raises(DomainError, match="from 0 to max_weight=3"):
        given.fit(X, Y, sample_weight=np.full(200, 4.0))


def test_a_domain_declares_the_norm_of_a_plan():
    plan = expost.calibrate(norm=DOMAIN.row_norm, fit_intercept=True)
    frame = {"a": X[:, 0], "b": X[:, 1]}
    model = expost.LogisticRegression(domain=DOMAIN, plan=plan).fit(frame, np.array(["no", "yes"])[Y])
    assert model.plan_ == plan
    other = expost.calibrate(norm=3.0, fit_intercept=True)
    with pytest.raises(
        ParameterError,
        match=r"`plan` must be made with norm=domain\.row_norm, 1\.0; this one is for norm=3\.0",
    ):
        model.set_params(plan=other).fit(frame, np.array(["no", "yes"])[Y])
    assert model.plan_ == plan


PLAIN = expost.calibrate(epsilon=2.0, l2=7.0, report="leverage", fit_intercept=True, max_weight=2.0)
SQUARED = expost.calibrate(loss="squared", sigma=1.0, l2=1.0, fit_intercept=True)
SOFT = expost.calibrate(loss=expost.LogisticLoss(soft=True), fit_intercept=True)
LOGISTIC = expost.LogisticRegression(classes=[0, 1], plan=PLAIN)
DISAGREE = {
    "epsilon": (LOGISTIC, {"epsilon": 3.0}, "`epsilon` must be left out with a plan, which has epsilon=2.0"),
    "delta": (LOGISTIC, {"delta": 1e-7}, "`delta` must be left out"),
    "norm": (LOGISTIC, {"norm": 2.0}, "`norm` must be left out"),
    "l2": (LOGISTIC, {"l2": 1.0}, "`l2` must be left out"),
    "report": (LOGISTIC, {"report": "adaptive"}, "`report` must be left out"),
    "calibration": (LOGISTIC, {"calibration": "kifer2012"}, "`calibration` must be left out"),
    "intercept": (LOGISTIC, {"fit_intercept": False}, "`fit_intercept` must be left out"),
    "no intercept": (
        LOGISTIC,
        {"plan": expost.calibrate()},
        "`plan` must be made with fit_intercept=True, as LogisticRegression is; this one has",
    ),
    "cap": (LOGISTIC, {"cap": 0.7}, "`cap` must be left out with a plan, which has cap=1.0"),
    "weights": (LOGISTIC, {"max_weight": 3.0}, "`plan` must be made for max_weight=3"),
    "class weights": (LOGISTIC, {"class_weight": {0: 1.0, 1: 2.5}}, "`plan` must be made for max_weight=2.5"),
    "small weights": (
        LOGISTIC,
        {"plan": expost.calibrate(max_weight=0.5, fit_intercept=True)},
        "`plan` must be made for max_weight=1",
    ),
    "classes": (LOGISTIC, {"classes": [0, 1, 2]}, "`plan` must be made for 3 classes, SoftmaxLoss(3)"),
    "two of softmax": (
        LOGISTIC,
        {"plan": expost.calibrate(loss=expost.SoftmaxLoss(2), fit_intercept=True)},
        "`plan` must be made for 2 classes, LogisticLoss()",
    ),
    "soft labels": (LOGISTIC, {"plan": SOFT}, "`plan` must be made for 2 classes, LogisticLoss()"),
    "family": (LOGISTIC, {"plan": SQUARED}, "`plan` must be made for LogisticLoss or SoftmaxLoss, which"),
    "no plan": (LOGISTIC, {"plan": "tight"}, "`plan` must be None or a Plan of `expost.calibrate`"),
    "hinge": (expost.SmoothedHingeClassifier(classes=[0, 1], plan=PLAIN), {}, "`plan` must be made for"),
    "linear": (
        expost.LinearRegression(outcome=(-1, 1), plan=PLAIN),
        {},
        "`plan` must be made for PseudoHuber",
    ),
    "threshold": (
        expost.LinearRegression(outcome=(-1, 1), plan=SQUARED, threshold=1.0),
        {},
        "`threshold` must be left out with a plan, which has threshold=None",
    ),
    "squared": (
        expost.LinearRegression(outcome=(-1, 1), plan=expost.calibrate(loss="pseudo_huber"), loss="squared"),
        {},
        "`loss` must be left out with a plan, which has loss='pseudo_huber'",
    ),
    "loss": (
        expost.GeneralizedLinearModel(plan=PLAIN, loss=expost.LogisticLoss(cap=0.7)),
        {},
        "`loss` must be left out with a plan, which has loss=LogisticLoss",
    ),
    "convex": (
        expost.GeneralizedLinearModel(
            plan=expost.calibrate_convex(expost.SmoothedNorm(3), sigma=9.0, l2=40.0)
        ),
        {},
        "`plan` must be made for Loss or VectorLoss",
    ),
    "nothing": (expost.GeneralizedLinearModel(norm=1.0), {}, "`loss` must be a Loss or one of"),
}


@pytest.mark.parametrize(
    ("model", "plan"),
    [
        (expost.LogisticRegression(classes=[0, 1]), PLAIN),
        (expost.GeneralizedLinearModel(), expost.calibrate(loss=LogCosh(0.5), fit_intercept=True)),
        (expost.ConvexModel(), expost.calibrate_convex(expost.SmoothedNorm(3), l2=1e3, epsilon=8.0)),
    ],
)
def test_a_plan_that_its_noise_does_not_certify_is_refused(model, plan):
    forged = replace(plan, epsilon=plan.epsilon / 100)
    with pytest.raises(ParameterError, match="`plan` must certify what it states"):
        clone(model).set_params(plan=forged).fit(X, Y)


class Unread:
    """A table that must not be opened."""

    def __getattribute__(self, name):
        raise AssertionError("a refused plan reads nothing")


@pytest.mark.parametrize("name", DISAGREE)
def test_a_plan_that_does_not_fit_is_refused_in_one_sentence(name):
    model, changes, words = DISAGREE[name]
    with pytest.raises(ParameterError) as caught:
        clone(model).set_params(**changes).fit(X, Y)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("changes", [{"epsilon": 3.0}, {"plan": SQUARED}, {"max_weight": 3.0}], ids=str)
def test_a_plan_that_does_not_fit_is_refused_before_anything_is_read(changes):
    with pytest.raises(ParameterError):
        clone(LOGISTIC).set_params(**changes).fit(Unread(), Unread())
