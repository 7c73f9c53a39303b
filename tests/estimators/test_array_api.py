"""A table of another library's gives the model, the losses and the bounds of the same table in NumPy."""

import numpy as np
import pytest
from own_losses import Direction, LogCosh
from spaces import SPACES, host

import expost
from expost.exceptions import DomainError

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(4000, 3)) / 2.0
SCORE = X @ [1.0, -2.0, 0.5] + RANDOM.logistic(size=len(X))
LABELS = (SCORE > 0.0).astype(np.int64)
OUTCOME = np.clip(SCORE / 4.0, -1.0, 1.0)
CLASSES = np.digitize(SCORE, [-1.0, 1.0])
WEIGHTS = RANDOM.random(len(X))

# Estimators, with labels, over every loss and every kind of report.
MODELS = {
    "logistic": (expost.LogisticRegression(norm=1.0, classes=[0, 1], cap=1.0), LABELS),
    "capped": (expost.LogisticRegression(norm=1.0, classes=[0, 1], cap=0.6), LABELS),
    "no intercept": (expost.LogisticRegression(norm=1.0, classes=[0, 1], fit_intercept=False), LABELS),
    "texts": (expost.LogisticRegression(norm=1.0, classes=["no", "yes"]), np.array(["no", "yes"])[LABELS]),
    "class weights": (
        expost.LogisticRegression(norm=1.0, classes=[0, 1], class_weight={0: 0.5, 1: 1.0}),
        LABELS,
    ),
    "gradient": (expost.LogisticRegression(norm=1.0, classes=[0, 1], report="dependent"), LABELS),
    "corners": (
        expost.LogisticRegression(norm=1.0, classes=[0, 1], l1="auto", coef_bounds=(-0.5, 0.5)),
        LABELS,
    ),
    "hessian": (expost.LogisticRegression(norm=1.0, classes=[0, 1], report="adaptive"), LABELS),
    "hinge": (expost.SmoothedHingeClassifier(norm=1.0, classes=[0, 1]), LABELS),
    "huber": (expost.LinearRegression(norm=1.0, outcome=(-1, 1)), OUTCOME),
    "squared": (
        expost.LinearRegression(
            outcome=(-1, 1), plan=expost.calibrate(loss="squared", sigma=3.0, l2=1.0, fit_intercept=True)
        ),
        OUTCOME,
    ),
    "own": (expost.GeneralizedLinearModel(loss=LogCosh(0.5), norm=1.0), OUTCOME),
    "softmax": (expost.LogisticRegression(norm=1.0, classes=[0, 1, 2]), CLASSES),
    "own of two predictors": (expost.GeneralizedLinearModel(loss=Direction(), norm=1.0), 3.0 * OUTCOME),
}


def close(got, wanted):
    np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-11)


def in_place(place, labels):
    """Labels in the library of the table; texts have no other place than NumPy."""
    return labels if labels.dtype.kind == "U" else place(labels)


@pytest.mark.parametrize("place", SPACES)
@pytest.mark.parametrize("name", MODELS)
def test_what_is_published_and_what_it_cost_are_the_same(place, name):
    model, y = MODELS[name]
    model.set_params(random_state=3)
    here = _cloned(model).fit(X, y)
    there = _cloned(model).fit(place(X), in_place(place, y))
    assert isinstance(there.coef_, np.ndarray)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(there.intercept_, here.intercept_, rtol=0.0, atol=1e-9)
    for member in (True, False):
        wanted = here.ex_post_losses(X, y, member=member)
        close(host(there.ex_post_losses(place(X), in_place(place, y), member=member)), wanted)
        terms = there.ex_post_losses(place(X), in_place(place, y), member=member, return_terms=True)
        close(np.abs(host(terms.signed)), wanted)
    if name.startswith("own"):
        return
    publication = there.publication_
    np.testing.assert_allclose(
        publication.release.coefficients, here.publication_.release.coefficients, rtol=0.0, atol=1e-9
    )
    questions = [{}, {"member": True, "simultaneous": "all"}, {"member": False, "simultaneous": len(X)}]
    for question in questions:
        wanted = here.publication_.bounds(X, y, **question)
        got = publication.bounds(place(X), in_place(place, y), **question)
        for mine, yours in zip(got.figures, wanted.figures, strict=True):
            close(host(mine), yours)
    close(got.to_frame("polars").to_numpy(), wanted.to_frame("polars").to_numpy())


def _cloned(model):
    from sklearn.base import clone

    return clone(model)


@pytest.mark.parametrize("place", SPACES)
@pytest.mark.parametrize("name", ["logistic", "texts", "softmax", "huber"])
def test_predictions_are_the_same(place, name):
    model, y = MODELS[name]
    here = _cloned(model).set_params(random_state=4).fit(X, y)
    readers = [here, here.publication_]
    for reader in readers:
        wanted = reader.predict(X)
        got = reader.predict(place(X))
        if wanted.dtype.kind == "f":
            close(host(got), wanted)
        else:
            np.testing.assert_array_equal(got if name == "texts" else host(got), wanted)
    if name != "huber":
        close(host(here.decision_function(place(X))), here.decision_function(X))
        close(host(here.predict_proba(place(X))), here.predict_proba(X))
        close(host(here.predict_log_proba(place(X))), here.predict_log_proba(X))


@pytest.mark.parametrize("place", SPACES)
def test_weights_and_single_precision(place):
    single = X.astype(np.float32)
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=6, class_weight={0: 0.5, 1: 1.0})
    here = _cloned(model).fit(single, LABELS, WEIGHTS)
    for labels, weights in (
        (place(LABELS), place(WEIGHTS)),
        (LABELS, WEIGHTS),
        (list(LABELS), place(WEIGHTS)),
    ):
        there = _cloned(model).fit(place(single), labels, weights)
        np.testing.assert_allclose(there.coef_, here.coef_, rtol=0.0, atol=1e-9)
        losses = there.ex_post_losses(place(single), labels, sample_weight=weights)
        close(host(losses), here.ex_post_losses(single, LABELS, sample_weight=WEIGHTS))


@pytest.mark.parametrize("place", SPACES)
def test_labels_that_were_not_declared_are_refused(place):
    for labels in (place(LABELS + 1), place(LABELS + 0.5), place(np.full(len(X), np.nan))):
        with pytest.raises(DomainError, match="labels outside the declared classes"):
            expost.LogisticRegression(norm=1.0, classes=[0, 1]).fit(place(X), labels)
    with pytest.raises(DomainError, match="must be a finite number"):
        expost.LinearRegression(norm=1.0, outcome=(-1, 1)).fit(place(X), place(np.full(len(X), np.inf)))
    with pytest.raises(DomainError, match="inconsistent numbers of samples"):
        expost.LinearRegression(norm=1.0, outcome=(-1, 1)).fit(place(X), place(OUTCOME[1:]))
    with pytest.raises(DomainError, match="one weight per row"):
        expost.LinearRegression(norm=1.0, outcome=(-1, 1)).fit(place(X), place(OUTCOME), place(WEIGHTS[1:]))


@pytest.mark.parametrize("place", SPACES)
def test_a_table_of_another_width_is_refused(place):
    model = expost.LinearRegression(norm=1.0, outcome=(-1, 1)).fit(X, OUTCOME)
    with pytest.raises(DomainError, match="features"):
        model.publication_.bounds(place(X[:, 1:]), place(OUTCOME))
    with pytest.raises(ValueError, match="features"):
        model.predict(place(X[:, 1:]))


@pytest.mark.arrays
def test_a_tensor_that_is_being_trained_is_read():
    torch = pytest.importorskip("torch")
    rows = torch.from_numpy(X).requires_grad_()
    model = expost.LinearRegression(norm=1.0, outcome=(-1, 1), random_state=1).fit(rows, OUTCOME)
    np.testing.assert_allclose(
        model.coef_,
        expost.LinearRegression(norm=1.0, outcome=(-1, 1), random_state=1).fit(X, OUTCOME).coef_,
        atol=1e-9,
    )
