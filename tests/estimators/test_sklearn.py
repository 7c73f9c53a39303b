"""The estimators follow scikit-learn's rules."""

from functools import partial
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest
from packaging.version import Version
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as Peer, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import expost
from expost.exceptions import ParameterError, PrivacyLeakWarning, UndeclaredWarning

# Their weights are above 1, or they compare fits without noise: the next test has estimators for them.
WEIGHTS = dict.fromkeys(
    (
        "check_sample_weights_list",
        "check_sample_weights_not_overwritten",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "weights are declared to be at most 1",
)
# A weight of 1000 for one class of three comes with a thousand times the noise.
CLASS_WEIGHTS = {"check_class_weight_classifiers": "noise decides between three classes"}
NO_RECORDS = {"check_all_zero_sample_weights_error": "whether all weights are zero is private"}


def expected(estimator):
    """The checks that must fail, and why."""
    return WEIGHTS | NO_RECORDS | (CLASS_WEIGHTS if isinstance(estimator, expost.LogisticRegression) else {})


@pytest.mark.filterwarnings("ignore::expost.exceptions.PrivacyLeakWarning")
@parametrize_with_checks(
    [expost.LogisticRegression(norm=1.0), expost.LinearRegression(norm=1.0, outcome=(-1, 1))],
    expected_failed_checks=expected,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::expost.exceptions.PrivacyLeakWarning")
@parametrize_with_checks(
    [
        expost.SmoothedHingeClassifier(norm=1.0),
        expost.LinearRegression(
            outcome=(-1, 1), plan=expost.calibrate(loss="squared", sigma=1.0, l2=1.0, fit_intercept=True)
        ),
    ],
    expected_failed_checks=expected,
)
def test_scikit_learns_checks_of_the_other_losses(estimator, check):
    """The same code but for the loss."""
    check(estimator)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::expost.exceptions.PrivacyLeakWarning")
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(
            (kind, name)
            for kind in (expost.SmoothedHingeClassifier, expost.LinearRegression)
            for name in WEIGHTS
        ),
        *((expost.LogisticRegression, name) for name in WEIGHTS | CLASS_WEIGHTS),
    ],
)
def test_scikit_learns_checks_of_weights(kind, name, monkeypatch, remembered):
    """Without noise, where a weight of two is the row twice."""
    if (
        kind is expost.SmoothedHingeClassifier
        and "equivalence" in name
        and Version(version("scikit-learn")) < Version("1.7")
    ):
        pytest.skip("before 1.7 scikit-learn names the classes of two by the first row, which weights move")
    monkeypatch.setattr("expost.estimators.base.calibrate", partial(expost.calibrate, sigma=1e-12))
    estimator = kind(norm=10.0, l2=1.0, max_weight=10.0)
    if kind is expost.LinearRegression:
        estimator.set_params(outcome=(-10.0, 10.0))
    checks = [check for _, check in estimator_checks_generator(estimator) if check.func.__name__ == name]
    for check in checks:
        check(estimator)
    assert checks


rng = np.random.default_rng(3)
X = rng.normal(size=(400, 5))
X /= 1.001 * np.linalg.norm(X, axis=1).max()
Y = (rng.random(400) < 1 / (1 + np.exp(-8 * X[:, 0]))).astype(int)
DOMAIN = expost.Domain(
    features=(expost.Number(name="x", low=0.0, high=1.0),),
    label=expost.ClassLabel(name="y", classes=("no", "yes")),
)
ESTIMATORS = {
    "logistic": expost.LogisticRegression(norm=1.0, classes=[0, 1]),
    "hinge": expost.SmoothedHingeClassifier(norm=1.0, classes=[0, 1]),
    "pseudo_huber": expost.LinearRegression(norm=1.0, outcome=(-1, 1)),
    "squared": expost.LinearRegression(
        outcome=(-1, 1), plan=expost.calibrate(loss="squared", sigma=3.0, l2=1.0, fit_intercept=True)
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("logistic", "squared") else pytest.param(name, marks=pytest.mark.slow)
        for name in ESTIMATORS
    ],
)
def test_pipelines_clones_and_searches(name):
    """They work; docs/limitations.md says that each of these fits spends its budget again."""
    model = clone(ESTIMATORS[name])
    halve = FunctionTransformer(lambda table: table / 2)
    assert make_pipeline(halve, model).fit(X, Y).predict(X).shape == (400,)
    assert len(cross_val_score(model, X, Y, cv=3)) == 3
    loss = model.fit(X, Y).plan_.loss
    plans = [expost.calibrate(loss=loss, sigma=sigma, l2=0.5, fit_intercept=True) for sigma in (1.0, 2.0)]
    search = GridSearchCV(model, {"plan": plans}, cv=2).fit(X, Y)
    assert search.best_estimator_.plan_.l2 == 0.5


def test_feature_names_are_kept_and_checked():
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = clone(ESTIMATORS["logistic"]).fit(frame, Y)
    assert model.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("badce")])
    with pytest.raises(ValueError, match="feature names"):
        model.ex_post_losses(frame.rename(columns={"a": "z"}), Y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("abcd")])
    with pytest.raises(ValueError, match="expecting 5 features"):
        clone(model).fit(X, Y).ex_post_losses(X[:, :4], Y)


@pytest.mark.filterwarnings("ignore::expost.exceptions.UndeclaredWarning")  # the outcome is taken as it is
@pytest.mark.parametrize("l2", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_without_noise_the_coefficients_are_scikit_learns(l2, fit_intercept):
    """As sigma goes to 0; scikit-learn gets the intercept as a feature, because ours is regularised."""
    A = np.column_stack([X, np.ones(400)]) if fit_intercept else X
    plain, squared = (
        expost.calibrate(loss=loss, sigma=1e-12, l2=l2, fit_intercept=fit_intercept)
        for loss in ("logistic", "squared")
    )
    ours = expost.LogisticRegression(classes=[0, 1], plan=plain, fit_intercept=plain.fit_intercept).fit(X, Y)
    peer = Peer(C=1 / l2, fit_intercept=False, tol=1e-12, solver="newton-cholesky").fit(A, Y)
    got = np.append(ours.coef_[0], ours.intercept_) if fit_intercept else ours.coef_[0]
    np.testing.assert_allclose(got, peer.coef_[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(A), atol=1e-6)

    target = 3.0 * X[:, 0] + 0.1 * rng.normal(size=400)
    ours = expost.LinearRegression(plan=squared, fit_intercept=squared.fit_intercept).fit(X, target)
    peer = Ridge(alpha=l2, fit_intercept=False, solver="cholesky").fit(A, target)
    got = np.append(ours.coef_, ours.intercept_) if fit_intercept else ours.coef_
    np.testing.assert_allclose(got, peer.coef_, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["logistic", "hinge", "pseudo_huber"])
def test_a_norm_that_nobody_declared_is_warned_about_once(name):
    model = clone(ESTIMATORS[name]).set_params(norm=None, random_state=0)
    with pytest.warns(UndeclaredWarning, match="Declare `norm`") as caught:
        model.fit(X, Y).predict(X)  # nothing more at prediction
    assert [warning.filename for warning in caught] == [__file__]
    declared = clone(ESTIMATORS[name]).set_params(norm=1.0, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, declared.coef_)


def test_the_norm_of_a_domain_is_the_domains():
    with pytest.raises(ParameterError, match="`norm` must be None with a domain"):
        expost.LogisticRegression(norm=1.0, domain=DOMAIN).fit({"x": [0.5]}, ["no"])
    expost.LogisticRegression(domain=DOMAIN).fit({"x": [0.5]}, ["no"])  # and declares everything


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("fitted", [False, True])
def test_a_notebook_shows_an_estimator_without_warnings(name, fitted):
    """Warnings are errors in these tests; scikit-learn reads the class's docstring for its tooltips."""
    model = clone(ESTIMATORS[name])
    shown = (model.fit(X, Y) if fitted else model)._repr_html_()
    assert type(model).__name__ in shown


def test_classes_learnt_from_the_table_are_warned_about():
    with pytest.warns(PrivacyLeakWarning, match="declare them"):
        model = expost.LogisticRegression(norm=1.0).fit(X, Y)
    assert model.classes_.tolist() == [0, 1]


def test_declared_classes_may_be_any_two_labels_in_any_order():
    words = np.array(["no", "yes"])[Y]
    model = expost.LogisticRegression(norm=1.0, classes=["yes", "no"], random_state=0).fit(X, words)
    numbers = expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=0).fit(X, Y)
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(model.coef_, numbers.coef_)
    np.testing.assert_array_equal(model.ex_post_losses(X, words), numbers.ex_post_losses(X, Y))
    model.fit(X[Y == 1], words[Y == 1])  # one class alone is a table like any other


def test_log_probabilities_stay_finite():
    plan = expost.calibrate(norm=1e4, sigma=1.0, l2=1e-3, fit_intercept=True)
    model = expost.LogisticRegression(classes=[0, 1], plan=plan).fit(1e4 * X, Y)
    assert np.all(np.isfinite(model.predict_log_proba(1e4 * X)))


def test_terms_add_up_to_the_loss():
    model = clone(ESTIMATORS["logistic"]).fit(X, Y)
    terms = model.ex_post_losses(X, Y, return_terms=True)
    np.testing.assert_array_equal(terms.loss, model.ex_post_losses(X, Y))
    np.testing.assert_allclose(terms.determinant + terms.quadratic + terms.inner_product, terms.signed)
    assert repr(terms) == "LossTerms(withheld)"
