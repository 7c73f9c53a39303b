"""The file of a model of several classes."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from publications import signed

import expost
from expost.exceptions import PublicationError
from expost.privacy.scales import NoiseScales
from expost.publication.trial import try_publication

rng = np.random.default_rng(3)
X = rng.normal(size=(90, 2)) / 3
Y = np.array(["birch", "maple", "oak"])[rng.integers(0, 3, 90)]


@cache
def model(**changes):
    parameters = {"norm": 1.0, "classes": ("oak", "maple", "birch"), "random_state": 5} | changes
    return expost.LogisticRegression(**parameters).fit(X, Y)


def test_the_file_reads_back_and_predicts_the_same():
    fitted = model()
    publication = expost.Publication.from_json(fitted.publication_.to_json())
    assert publication == fitted.publication_
    assert publication.classes == ("birch", "maple", "oak")
    assert publication.loss == fitted.plan_.loss
    assert publication.n_features == 2
    assert publication.release.plan == fitted.plan_
    np.testing.assert_array_equal(publication.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(publication.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(publication.decision_function(X), fitted.decision_function(X))
    table = publication.loss.by_predictor(publication.release.coefficients)
    np.testing.assert_array_equal(table, np.column_stack([fitted.coef_, fitted.intercept_]))
    document = json.loads(publication.to_json())
    loss = fitted.plan_.loss
    stated = {"name": "softmax", "classes": 3, "cap": loss.cap, "corner": 0.8}
    assert document["loss"] == stated | {"gradient_cap": loss.gradient_cap}
    assert len(document["coefficients"]) == 6
    assert "reduced" not in document["plan"]


@pytest.mark.long
def test_plain_softmax_has_no_cap_in_its_file():
    document = json.loads(model(cap=1.0).publication_.to_json())
    assert document["loss"] == {"name": "softmax", "classes": 3}


def test_bounds_cover_the_exact_losses_of_members_and_outsiders():
    """At a confidence of 1 - 1e-9 a failure among 180 records has probability below 2e-7."""
    fitted = model()
    others = np.roll(Y, 1)
    for labels, member in ((Y, True), (others, False)):
        bounds = fitted.publication_.bounds(X, labels, member=member, confidence=1 - 1e-9)
        exact = fitted.ex_post_losses(X, labels, member=member)
        assert np.all((bounds.lower <= exact) & (exact <= bounds.upper))
        assert np.all(bounds.total == bounds.upper)


def forged(**changes):
    document = json.loads(model().publication_.to_json())
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = document
        for parent in parents:
            place = place[parent]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return signed(document)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"classes": ["a", "b"]}, "`classes` must be 3 labels for the loss softmax"),
        ({"classes": ["a", "b", "c", "d"]}, "`classes` must be 3 labels for the loss softmax"),
        ({"classes": [str(k) for k in range(60_001)]}, "`classes` must be null or 2 to 1000 labels"),
        ({"classes": ["a", "b", "a"]}, "`classes` must be different labels but two are 'a'"),
        ({"loss__classes": 3.0}, "`loss.classes` must be a whole number above 0 but is 3.0"),
        ({"loss__classes": -3}, "`loss.classes` must be a whole number above 0 but is -3"),
        ({"loss__classes": 1}, "`classes` must be between 2 and 1000"),
        ({"loss__classes": 10**9}, "`classes` must be between 2 and 1000"),
        ({"loss__classes": 5}, "`coefficients` must be 4 lists of one length"),
        ({"loss__classes": None}, "`loss` of kind 'softmax' must have classes"),
        ({"loss__cap": 1.5}, "`cap` must be"),
        ({"loss__cap": 0.9}, "`plan` promises epsilon=1 at delta=1e-06, which its noise scales do not"),
        ({"plan__reduced": True}, "`plan.reduced` must be absent without a Hessian"),
        ({"plan__reduced": False}, "`plan.reduced` must be"),
        ({"plan__epsilon": 0.99}, "which its noise scales do not certify"),
        ({"plan__l2": 0.1}, "which its noise scales do not certify"),
    ],
)
def test_a_forged_file_is_refused_in_one_sentence(changes, sentence):
    with pytest.raises(PublicationError) as caught:
        expost.Publication.from_json(forged(**changes))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_would_be_too_long_names_the_ways_out():
    """Before anything is spent; of a whole Hessian of several classes the reduced one is another way out."""
    plan = replace(expost.calibrate(report="leverage"), loss=expost.SoftmaxLoss(10))
    names = {"classes": list(range(10)), "feature_names": None, "domain": None}
    reduced = r"or publish no Hessian \(report='independent'\), or the reduced one \(reduced=True of expost"
    with pytest.raises(PublicationError, match=f"Leave features out, {reduced}"):
        try_publication(plan, 10**5, **names)
    alone = replace(plan, report="independent", scales=NoiseScales(plan.sigma))
    with pytest.raises(PublicationError, match=r"than a file may have\. Leave features out\.$"):
        try_publication(alone, 10**8, **names)
