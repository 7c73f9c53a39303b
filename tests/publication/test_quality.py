"""Held-out quality is what scikit-learn computes from the publication's own predictions."""

import numpy as np
import pytest
from sklearn.metrics import log_loss, r2_score, roc_auc_score

import expost
from expost import Category, ClassLabel, Domain, Number, NumberLabel
from expost.publication.readings import encoded_records, held_out_quality

FEATURES = (Number(name="x", low=-2.0, high=2.0), Category(name="w", categories=("a", "b")))
rng = np.random.default_rng(3)
RECORDS = {"x": rng.uniform(-2.5, 2.5, 400), "w": rng.choice(["a", "b"], 400)}


def quality(publication, labels):
    return held_out_quality(publication, encoded_records(publication, RECORDS, labels))


@pytest.mark.parametrize("count", [2, 3])
def test_classes(count):
    classes = ("no", "yes", "later")[:count]
    domain = Domain(features=FEATURES, label=ClassLabel(name="y", classes=classes))
    noisy = np.digitize(RECORDS["x"] + rng.logistic(size=400), np.linspace(-1, 1, count + 1)[1:-1])
    labels = np.array(classes)[noisy]
    publication = expost.LogisticRegression(domain=domain, epsilon=8.0).fit(RECORDS, labels).publication_
    found = quality(publication, labels)
    shares = publication.predict_proba(RECORDS)
    ranks = shares if count > 2 else shares[:, 1]
    assert found.auc == pytest.approx(roc_auc_score(noisy, ranks, multi_class="ovr"), rel=1e-12)
    assert found.log_loss == pytest.approx(log_loss(noisy, shares), rel=1e-9)
    known = np.bincount(noisy) / 400
    assert found.guess_log_loss == pytest.approx(log_loss(noisy, np.tile(known, (400, 1))), rel=1e-9)
    assert found.r2 is None
    one = quality(publication, np.full(400, classes[0]))
    assert one.auc is None
    assert one.guess_log_loss == pytest.approx(0.0, abs=1e-12)


def test_a_hinge_has_no_log_loss():
    domain = Domain(features=FEATURES, label=ClassLabel(name="y", classes=("no", "yes")))
    labels = np.where(RECORDS["x"] > 0, "yes", "no")
    publication = expost.SmoothedHingeClassifier(domain=domain).fit(RECORDS, labels).publication_
    found = quality(publication, labels)
    score = publication.decision_function(RECORDS)
    assert found.auc == pytest.approx(roc_auc_score(labels == "yes", score), rel=1e-12)
    assert found.log_loss is None


def test_a_number_is_measured_within_its_bounds():
    domain = Domain(features=FEATURES, label=NumberLabel(name="y", low=0.0, high=10.0))
    labels = 5.0 + 3.0 * RECORDS["x"] + rng.normal(size=400)
    publication = expost.LinearRegression(domain=domain).fit(RECORDS, labels).publication_
    expected = r2_score(np.clip(labels, 0.0, 10.0), publication.predict(RECORDS))
    assert quality(publication, labels).r2 == pytest.approx(expected, rel=1e-9)
    assert quality(publication, np.full(400, 3.0)).r2 is None
