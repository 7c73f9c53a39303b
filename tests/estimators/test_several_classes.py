"""Logistic regression of more than two classes."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as Peer

import expost
from expost.exceptions import DomainError, ParameterError, PrivacyLeakWarning
from expost.losses import SoftmaxLoss

rng = np.random.default_rng(5)
X = rng.normal(size=(600, 4))
X /= 1.001 * np.linalg.norm(X, axis=1).max()
SCORES = 9.0 * X @ rng.normal(size=(4, 3)) + rng.gumbel(size=(600, 3))
NAMES = np.array(["birch", "maple", "oak"])
Y = NAMES[np.argmax(SCORES, axis=1)]
MODEL = expost.LogisticRegression(norm=1.0, classes=["oak", "maple", "birch"])


@pytest.mark.long
@pytest.mark.parametrize("l2", [0.1, 5.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_without_noise_the_coefficients_are_scikit_learns(l2, fit_intercept):
    A = np.column_stack([X, np.ones(600)]) if fit_intercept else X
    plan = expost.calibrate(loss=SoftmaxLoss(3), sigma=1e-12, l2=l2, fit_intercept=fit_intercept)
    ours = clone(MODEL).set_params(plan=plan, fit_intercept=plan.fit_intercept).fit(X, Y)
    peer = Peer(C=1 / l2, fit_intercept=False, tol=1e-12, solver="newton-cholesky").fit(A, Y)
    got = np.column_stack([ours.coef_, ours.intercept_]) if fit_intercept else ours.coef_
    np.testing.assert_allclose(got, peer.coef_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(A), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), peer.predict(A))
    np.testing.assert_array_equal(ours.classes_, peer.classes_)


@pytest.mark.long
def test_shapes_scores_and_probabilities():
    model = clone(MODEL).set_params(random_state=0, epsilon=8.0).fit(X, Y)
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(model.intercept_.sum(), 0.0, atol=1e-12)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, X @ model.coef_.T + model.intercept_, rtol=1e-12, atol=1e-12)
    odds = np.exp(scores)
    np.testing.assert_allclose(model.predict_proba(X), odds / odds.sum(axis=1)[:, None], rtol=1e-12)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-12)
    assert model.score(X, Y) > 0.5
    cap = model.plan_.loss.cap
    assert model.plan_.loss == SoftmaxLoss(3, cap=cap, gradient_cap=cap * math.sqrt(2.0))
    assert model.plan_.loss.cap < 1.0
    assert model.plan_.delta_at(8.0) <= 1e-6
    assert model.plan_.precision is not None


def test_exact_losses_stay_below_epsilon_for_nearly_everyone():
    """The certificate allows a loss above epsilon with probability about delta, in either direction."""
    model = clone(MODEL).set_params(random_state=1).fit(X, Y)
    members = model.ex_post_losses(X, Y)
    outsiders = model.ex_post_losses(X, Y[::-1], member=False)
    assert members.shape == outsiders.shape == (600,)
    assert members.max() < 1.0
    assert outsiders.max() < 1.0
    terms = model.ex_post_losses(X, Y, return_terms=True)
    np.testing.assert_allclose(np.abs(terms.determinant + terms.quadratic + terms.inner_product), members)
    with pytest.raises(expost.exceptions.PrivateStateError):
        pickle.loads(pickle.dumps(model)).ex_post_losses(X, Y)


@pytest.mark.long
def test_classes_are_declared_or_learnt_with_a_warning():
    with pytest.warns(PrivacyLeakWarning, match="declare them"):
        learnt = clone(MODEL).set_params(classes=None, random_state=0).fit(X, Y)
    declared = clone(MODEL).set_params(random_state=0).fit(X, Y)
    np.testing.assert_array_equal(learnt.coef_, declared.coef_)
    unseen = clone(MODEL).set_params(classes=[*NAMES, "rowan"], random_state=0).fit(X, Y)
    assert unseen.coef_.shape == (4, 4)  # a class that nobody has is a class all the same
    with pytest.raises(DomainError, match="outside the declared classes"):
        clone(MODEL).set_params(classes=["oak", "maple", "rowan"]).fit(X, Y)
    with pytest.raises(ParameterError, match="two or more different labels"):
        clone(MODEL).set_params(classes=["oak"]).fit(X, Y)
    with pytest.raises(ParameterError, match=r"got classes=\{.*\}\. Give them as a list"):
        expost.LogisticRegression(norm=1.0, classes=set(NAMES)).fit(X, Y)


def test_two_classes_are_the_scalar_loss():
    model = expost.LogisticRegression(norm=1.0, classes=["no", "yes"]).fit(
        X, np.where(X[:, 0] > 0, "yes", "no")
    )
    assert isinstance(model.plan_.loss, expost.LogisticLoss)
    assert model.coef_.shape == (1, 4)


def test_what_is_not_offered_is_refused_before_the_budget_is_spent():
    with pytest.raises(ParameterError, match="`reduced` must be False without more than two classes"):
        expost.calibrate(loss="logistic", reduced=True)
    with pytest.raises(ParameterError, match="`l1` must be 0 for SoftmaxLoss"):
        clone(MODEL).set_params(l1=0.1).fit(X, Y)


@pytest.mark.long
def test_the_hessian_is_reduced_above_a_hundred_coefficients():
    model = clone(MODEL).set_params(random_state=0, report="leverage", epsilon=8.0)
    assert not model.fit(X, Y).plan_.reduced
    plan = expost.calibrate(loss=SoftmaxLoss(3), report="leverage", epsilon=8.0, reduced=True)
    assert (
        expost.LogisticRegression(classes=model.classes, plan=plan, fit_intercept=False)
        .fit(X, Y)
        .plan_.reduced
    )
    for columns, intercept, reduced in ((50, False, False), (50, True, True), (51, False, True)):
        table = np.hstack([X, np.zeros((600, columns - 4))])
        wide = clone(model).set_params(fit_intercept=intercept).fit(table, Y)
        assert wide.plan_.reduced is reduced
    assert not wide.set_params(report="independent").fit(table, Y).plan_.reduced


STATISTICS = {
    "leverage": ["Hessian"],
    "dependent": ["gradient", "Hessian"],
    "adaptive": ["gradient", "Hessian", "smallest eigenvalue"],
}


@pytest.mark.long
@pytest.mark.parametrize("report", STATISTICS)
def test_every_report_is_fitted(report):
    model = clone(MODEL).set_params(random_state=0, report=report, epsilon=8.0).fit(X, Y)
    assert model.plan_.delta_at(8.0) <= 1e-6
    assert [name for name, _, _ in model.plan_.parts()] == ["coefficients", *STATISTICS[report]]
    assert model.ex_post_losses(X, Y).max() < 8.0


def test_the_support_vector_machine_stays_binary():
    with pytest.raises(ParameterError, match="two different labels"):
        expost.SmoothedHingeClassifier(norm=1.0, classes=NAMES).fit(X, Y)


@pytest.mark.long
def test_classes_of_a_domain_are_sorted_as_scikit_learn_expects_and_published_as_declared():
    """Scores such as the log-loss take the columns of several classes to be in sorted order."""
    from sklearn.metrics import log_loss

    declared = ("oak", "birch", "maple")
    domain = expost.Domain(
        features=tuple(expost.Number(name=name, low=-1.0, high=1.0) for name in "abcd"),
        label=expost.ClassLabel(name="tree", classes=declared),
    )
    frame = pd.DataFrame(X, columns=list("abcd"))
    weight = {"oak": 0.5, "birch": 1.0, "maple": 0.25}
    model = expost.LogisticRegression(domain=domain, epsilon=8.0, random_state=2, class_weight=weight)
    model.fit(frame, Y)
    assert model.classes_.tolist() == sorted(declared)
    chances = model.predict_proba(frame)
    mine = chances[np.arange(600), np.searchsorted(model.classes_, Y)]
    assert log_loss(Y, chances) == pytest.approx(-np.mean(np.log(mine)))
    np.testing.assert_array_equal(model.predict(frame), model.classes_[np.argmax(chances, axis=1)])
    publication = model.publication_
    assert publication.classes == declared
    assert publication.weighting.class_weight == (0.5, 1.0, 0.25)
    np.testing.assert_array_equal(publication.predict(frame), model.predict(frame))
    sorted_too = publication.predict_proba(frame)[:, np.argsort(declared)]
    np.testing.assert_allclose(sorted_too, model.predict_proba(frame), rtol=1e-12)
    with pytest.raises(ParameterError, match="`classes` must be None with a domain"):
        expost.LogisticRegression(domain=domain, classes=list(declared)).fit(frame, Y)
    with pytest.raises(ParameterError, match="it lacks 'birch' and 'brich' is no class"):
        clone(model).set_params(class_weight={"oak": 1, "brich": 1, "maple": 1}).fit(frame, Y)


def test_a_class_that_is_declared_twice_is_refused():
    with pytest.raises(ParameterError, match="two or more different labels"):
        expost.LogisticRegression(norm=1.0, classes=["oak", "maple", "oak", "birch"]).fit(X, Y)


@pytest.mark.parametrize("classes", [[None, 1], [[1], [1, 2]], ["oak", None]])
def test_classes_that_have_no_order_are_refused(classes):
    with pytest.raises(ParameterError, match="`classes` must be two or more different labels"):
        expost.LogisticRegression(norm=1.0, classes=classes).fit(X, Y)


def test_a_domain_must_have_the_label_of_the_model():
    features = tuple(expost.Number(name=name, low=-1.0, high=1.0) for name in "abcd")
    classes = expost.Domain(features=features, label=expost.ClassLabel(name="tree", classes=NAMES))
    number = expost.Domain(features=features, label=expost.NumberLabel(name="height", low=0.0, high=30.0))
    frame = pd.DataFrame(X, columns=list("abcd"))
    for model, message in (
        (
            expost.LogisticRegression(domain=number),
            "one whose label has classes; got a label of kind='number': take Lin",
        ),
        (
            expost.SmoothedHingeClassifier(domain=classes),
            "one whose label has 2 classes; got domain='3 classes'",
        ),
        (
            expost.LinearRegression(domain=classes),
            "one whose label has kind='number'; got a label of kind='classes'",
        ),
    ):
        with pytest.raises(ParameterError, match=f"`domain` must be {message}"):
            model.fit(frame, Y)
