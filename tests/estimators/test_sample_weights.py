"""Weights of records and of classes, from the fit to the publication."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from problems import hides_its_cause, rows_in_ball
from sklearn.linear_model import LogisticRegression as Peer

import expost
from expost.exceptions import DomainError, ExpostError, ParameterError, PublicationError

rng = np.random.default_rng(2)
X = rows_in_ball(rng, 200, 3)
Y = (X[:, 0] + 0.2 * rng.normal(size=200) > 0).astype(int)
W = rng.integers(0, 4, 200).astype(float)
SECRET = 0.123456789


def model(**changes):
    return expost.LogisticRegression(**{"norm": 1.0, "classes": [0, 1], "random_state": 0, **changes})


@pytest.mark.parametrize(
    ("estimator", "loss"),
    [
        (expost.LogisticRegression(classes=[0, 1]), "logistic"),
        (expost.SmoothedHingeClassifier(classes=[0, 1]), "smoothed_hinge"),
        (expost.LinearRegression(outcome=(-1, 1)), expost.PseudoHuber(0.5)),
        (expost.LinearRegression(outcome=(-1, 1)), "squared"),
    ],
    ids=str,
)
def test_without_noise_a_weight_of_two_is_the_row_twice(estimator, loss):
    estimator.set_params(
        plan=expost.calibrate(loss=loss, sigma=1e-12, l2=1.0, max_weight=3.0, fit_intercept=True)
    )
    weighted = estimator.fit(X, Y, sample_weight=W)
    found = np.append(weighted.coef_, weighted.intercept_)
    often = np.repeat(np.arange(200), W.astype(int))
    repeated = estimator.fit(X[often], Y[often])
    np.testing.assert_allclose(found, np.append(repeated.coef_, repeated.intercept_), rtol=1e-7, atol=1e-9)


def test_without_noise_weights_are_scikit_learns():
    weights, by_class = rng.uniform(size=200), {0: 0.4, 1: 2.5}
    ours = model(
        plan=expost.calibrate(sigma=1e-12, l2=0.7, max_weight=2.5), class_weight=by_class, fit_intercept=False
    )
    ours.fit(X, Y, sample_weight=weights)
    peer = Peer(C=1 / 0.7, fit_intercept=False, tol=1e-12, solver="newton-cholesky", class_weight=by_class)
    peer.fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-6)


def test_weights_up_to_one_cost_nothing_and_larger_ones_are_stated():
    plain, light = model().fit(X, Y), model().fit(X, Y, sample_weight=W / 3)
    assert light.plan_ == plain.plan_
    heavy = model(max_weight=3.0).fit(X, Y, sample_weight=W)
    assert heavy.plan_.max_weight == 3.0
    assert heavy.plan_.sigma == pytest.approx(3.0 * plain.plan_.sigma, rel=1e-12)
    assert heavy.plan_.epsilon == plain.plan_.epsilon
    classed = model(class_weight={0: 0.25, 1: 0.5}).fit(X, Y)
    assert classed.plan_.max_weight == 0.5
    both = model(class_weight={0: 0.25, 1: 0.5}, max_weight=3.0).fit(X, Y, sample_weight=W)
    assert both.plan_.max_weight == 1.5


def test_ones_are_the_same_as_no_weights():
    plain, ones = model(report="adaptive").fit(X, Y), model(report="adaptive").fit(X, Y, np.ones(200))
    np.testing.assert_array_equal(plain.coef_, ones.coef_)
    np.testing.assert_array_equal(plain.publication_.release.hessian, ones.publication_.release.hessian)
    np.testing.assert_array_equal(
        plain.ex_post_losses(X, Y), ones.ex_post_losses(X, Y, sample_weight=np.ones(200))
    )


@pytest.mark.parametrize("report", ["independent", "adaptive"])
def test_a_record_of_weight_zero_changes_nothing_and_costs_nothing(report):
    weights = np.where(np.arange(200) < 20, 0.0, 1.0)
    whole = model(report=report).fit(X, Y, sample_weight=weights)
    less = model(report=report).fit(X[20:], Y[20:], sample_weight=weights[20:])
    np.testing.assert_allclose(whole.coef_, less.coef_, rtol=1e-12)
    losses = whole.ex_post_losses(X, Y, sample_weight=weights)
    assert np.all(losses[:20] == 0.0)
    assert np.all(losses[20:] > 0.0)
    bounds = whole.publication_.bounds(X[:20], Y[:20], sample_weight=weights[:20])
    assert np.all(bounds.lower == 0.0)
    assert np.all(bounds.upper == 0.0)


def test_bounds_of_weighted_records_hold_their_exact_losses():
    """At a failure rate of 1e-9 each, for 2 x 200 records: a false alarm has probability 4e-7."""
    fitted = model(report="dependent", max_weight=3.0, class_weight={0: 1.0, 1: 0.5}).fit(
        X, Y, sample_weight=W
    )
    publication = expost.Publication.from_json(fitted.publication_.to_json())
    for member in (True, False):
        exact = fitted.ex_post_losses(X, Y, sample_weight=W, member=member)
        bounds = publication.bounds(X, Y, sample_weight=W, member=member, confidence=1 - 1e-9)
        assert np.all((bounds.lower <= exact) & (exact <= bounds.upper))
        light = publication.bounds(X, Y, sample_weight=W / 3, member=member, confidence=1 - 1e-9)
        assert np.all(light.upper[W > 0] < bounds.upper[W > 0])


def test_a_publication_states_its_weights_and_nothing_where_there_are_none():
    def weights(fitted):
        return json.loads(fitted.publication_.to_json()).get("weights", "absent")

    assert weights(model().fit(X, Y)) == "absent"
    assert weights(model().fit(X, Y, sample_weight=W / 3)) == {"max_weight": 1.0, "class_weight": None}
    assert weights(model(max_weight=2.0).fit(X, Y)) == {"max_weight": 2.0, "class_weight": None}
    by_class = model(class_weight={1: 0.5, 0: 1.0}).fit(X, Y)
    assert weights(by_class) == {"max_weight": None, "class_weight": [1.0, 0.5]}
    read = pickle.loads(pickle.dumps(by_class.publication_))
    assert read == by_class.publication_
    assert read.release.plan == by_class.plan_
    assert "class weights 1, 0.5" in read._repr_html_()
    assert "sample weights ≤ 2" in model(max_weight=2.0).fit(X, Y).publication_._repr_html_()
    assert read.bounds(X, Y).upper.tolist() == by_class.publication_.bounds(X, Y).upper.tolist()


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"max_weight": None, "class_weight": None}, "must state a weight, or be absent"),
        ({"max_weight": 0.5, "class_weight": None}, "max_weight"),
        ({"max_weight": 2.0}, "class_weight"),
        ({"max_weight": 1.0, "class_weight": [1.0]}, "one weight for each"),
        ({"max_weight": 1.0, "class_weight": [1.0, -1.0]}, "between 0 and"),
        ({"max_weight": 1.0, "class_weight": [0.0, 0.0]}, "largest weight"),
        ({"max_weight": None, "class_weight": [1.0, 1.2]}, "do not certify"),
        ({"max_weight": 1.2, "class_weight": None}, "do not certify"),
        (None, "absent"),
    ],
)
def test_a_file_with_weights_that_it_did_not_pay_for_is_refused(weights, words):
    from expost._common.strict_json import digest

    document = json.loads(model().fit(X, Y, sample_weight=W / 3).publication_.to_json())
    document["weights"] = weights
    others = {name: value for name, value in document.items() if name != "sha256"}
    if weights is None:  # what says nothing is left out
        with pytest.raises(PublicationError, match="sha256"):
            expost.Publication.from_json(json.dumps(document | {"sha256": digest(others)}))
        return
    with pytest.raises(PublicationError, match=words):
        expost.Publication.from_json(json.dumps(document | {"sha256": digest(others)}))


@pytest.mark.parametrize(
    "weights",
    [
        np.append(np.ones(199), -SECRET),
        np.append(np.ones(199), 1.0 + SECRET),
        np.append(np.ones(199), np.nan),
        np.append(np.ones(199), np.inf),
        np.full(199, SECRET),
        np.full((200, 1), SECRET),
        np.array([f"{SECRET}"] * 200),
        np.array([object()] * 200),
        SECRET,
        np.full(200, SECRET + 1j),
    ],
    ids=["negative", "above", "nan", "inf", "length", "column", "texts", "objects", "number", "complex"],
)
def test_bad_weights_are_refused_without_telling_them(weights):
    fitted = model().fit(X, Y)
    for use in (
        lambda: model().fit(X, Y, sample_weight=weights),
        lambda: fitted.ex_post_losses(X, Y, sample_weight=weights),
        lambda: fitted.publication_.bounds(X, Y, sample_weight=weights),
    ):
        with pytest.raises(DomainError, match="`sample_weight` must be") as caught:
            use()
        assert "123" not in str(caught.value)
        assert hides_its_cause(caught.value)


@pytest.mark.parametrize("kind", [list, tuple, pd.Series, lambda w: w.astype(np.float32), lambda w: w > 0])
def test_any_vector_of_numbers_is_a_weight(kind):
    model().fit(X, Y, sample_weight=kind(np.round(W / 3)))


@pytest.mark.parametrize(
    ("class_weight", "words"),
    [
        ("balanced", "Balanced weights count the table's labels, which no budget pays for"),
        ("other", "a mapping from each class"),
        ([1.0, 2.0], "a mapping from each class"),
        ({}, "a mapping from each class"),
        ({0: 1.0}, "a weight for each class"),
        ({0: 1.0, 1: 1.0, 2: 1.0}, "a weight for each class"),
        ({0: 1.0, "1": 1.0}, "a weight for each class"),
        ({0: 1.0, 1: -1.0}, "weights between 0 and"),
        ({0: 1.0, 1: np.nan}, "weights between 0 and"),
        ({0: 1.0, 1: True}, "weights between 0 and"),
        ({0: 0.0, 1: 0.0}, "above 0 for one class"),
    ],
)
def test_class_weights_are_declared_for_every_class(class_weight, words):
    with pytest.raises(ParameterError, match=words):
        model(class_weight=class_weight).fit(X, Y)


@pytest.mark.parametrize("max_weight", [0.5, 0.0, np.nan, "1", None, 1e10])
def test_the_largest_sample_weight_is_at_least_one(max_weight):
    with pytest.raises(ParameterError, match="`max_weight` must be"):
        model(max_weight=max_weight).fit(X, Y)


def test_class_weights_follow_the_declared_classes_of_a_domain():
    domain = expost.Domain(
        features=(expost.Number(name="x", low=-1.0, high=1.0),),
        label=expost.ClassLabel(name="ill", classes=("yes", "no")),
    )
    frame, answers = pd.DataFrame({"x": X[:, 0]}), np.array(["no", "yes"])[Y]
    fitted = expost.LogisticRegression(domain=domain, class_weight={"no": 0.25, "yes": 1.0}).fit(
        frame, answers
    )
    assert fitted.publication_.weighting.class_weight == (1.0, 0.25)
    with pytest.raises(ExpostError, match="a weight for each class"):
        expost.LogisticRegression(domain=domain, class_weight={0: 1.0, 1: 1.0}).fit(frame, answers)
