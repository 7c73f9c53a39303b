"""Files of recalibrated models: read, verified, and refused where the numbers do not belong to the model."""

import json

import numpy as np
import pytest
from problems import rows_in_ball

import expost
from expost._common.strict_json import digest
from expost.exceptions import PublicationError


@pytest.fixture(scope="module")
def published():
    rng = np.random.default_rng(3)
    X = rows_in_ball(rng, 400, 2)
    y = (X @ [3.0, -2.0] + rng.logistic(size=400) > 0).astype(int)
    return expost.LogisticRegression(norm=1.0, classes=[0, 1], recalibrate=True).fit(X, y).publication_


@pytest.fixture(scope="module")
def number():
    rng = np.random.default_rng(4)
    X = rows_in_ball(rng, 400, 2)
    y = rng.exponential(1.0 + X[:, 0])
    model = expost.LinearRegression(norm=1.0, outcome=(0.0, 5.0), recalibrate=True)
    return model.fit(X, y).publication_


def changed(publication, change):
    document = json.loads(publication.to_json())
    change(document)
    document.pop("sha256")
    return json.dumps(document | {"sha256": digest(document)})


def test_it_says_what_was_published(published):
    document = json.loads(published.to_json())
    assert len(document["statistics"]["recalibration"]) == 32
    assert document["plan"]["sigma_recalibration"] == published.release.plan.sigma_recalibration
    assert document["precision"]["recalibration_grid"] == 2.0**-29
    assert document["insecure"] is None
    again = expost.Publication.from_json(published.to_json())
    assert again == published
    assert again.to_json() == published.to_json()
    assert again.release.plan == published.release.plan


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda one: one["statistics"].pop("recalibration"), "`statistics.recalibration` must be given"),
        (lambda one: one["plan"].pop("sigma_recalibration"), "`statistics.recalibration` must be null"),
        (lambda one: one["precision"].pop("recalibration_grid"), "recalibration_grid` must follow"),
        (lambda one: one["statistics"]["recalibration"].pop(), "must have 32 entries"),
        (lambda one: one["statistics"]["recalibration"].__setitem__(0, 0.1), "whole multiples"),
        (lambda one: one["statistics"]["recalibration"].__setitem__(0, -1e6), "no table and its noise"),
        (lambda one: one["statistics"]["recalibration"].__setitem__(0, 2.0**70), "no table and its noise"),
        (lambda one: one["statistics"]["recalibration"].__setitem__(3, "7"), "must be a number"),
        (lambda one: one["plan"].__setitem__("sigma_recalibration", 13.0), "do not certify"),
        (lambda one: one["plan"].__setitem__("sigma_recalibration", 2.0**40), "must be less than"),
        (lambda one: one["plan"].__setitem__("unit", "person"), "but for rows"),
        (lambda one: one["loss"].__setitem__("corner", 0.8), "do not certify"),
    ],
)
def test_what_does_not_belong_together_is_refused(published, change, why):
    with pytest.raises(PublicationError, match=why):
        expost.Publication.from_json(changed(published, change))


def test_the_largest_counts_that_are_read_have_probabilities(published):
    """Without a warning, on either side: a forged file is refused, or its numbers can be read."""
    for most in ([2.0**63] * 32, [2.0**63] * 16 + [-100.0] * 16, [-100.0] * 16 + [2.0**63] * 16):

        def forged(document, most=most):
            document["statistics"]["recalibration"] = most

        read = expost.Publication.from_json(changed(published, forged))
        assert np.all(np.isfinite(read.calibration_curve.recalibrated))
        assert np.all(np.isfinite(read.calibration_curve.errors))
        assert 0.0 < read.predict_proba([[0.5, 0.5]])[0, 1] < 1.0


def test_another_loss_is_not_recalibrated(published):
    def hinge(document):
        document["loss"] = {"name": "smoothed_hinge", "scale": 0.5}

    with pytest.raises(PublicationError, match="but for rows, with a logistic loss"):
        expost.Publication.from_json(changed(published, hinge))


def test_moments_have_the_same_fields(number):
    document = json.loads(number.to_json())
    assert len(document["statistics"]["recalibration"]) == 5
    assert document["plan"]["sigma_recalibration"] == number.release.plan.sigma_recalibration
    assert document["precision"]["recalibration_grid"] == 2.0**-28
    again = expost.Publication.from_json(number.to_json())
    assert again == number
    assert again.to_json() == number.to_json()
    assert again.release.plan == number.release.plan
    assert again.calibration_curve.fields() == number.calibration_curve.fields()


def of_number(place, value):
    return lambda one: one["statistics"]["recalibration"].__setitem__(place, value)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda one: one["statistics"].pop("recalibration"), "`statistics.recalibration` must be given"),
        (lambda one: one["plan"].pop("sigma_recalibration"), "`statistics.recalibration` must be null"),
        (lambda one: one["precision"].pop("recalibration_grid"), "recalibration_grid` must follow"),
        (lambda one: one["statistics"]["recalibration"].append(0.0), "must have 5 entries"),
        (of_number(1, 0.1), "whole multiples"),
        (of_number(0, -(2.0**20)), "no table and its noise"),
        (of_number(2, -(2.0**20)), "no table and its noise"),
        (of_number(3, 2.0**20), "no table and its noise"),
        (of_number(4, -(2.0**20)), "no table and its noise"),
        (of_number(4, "7"), "must be a number"),
        (lambda one: one["plan"].__setitem__("sigma_recalibration", 17.0), "do not certify"),
        (lambda one: one["plan"].__setitem__("unit", "person"), "but for rows"),
    ],
)
def test_forged_moments_are_refused(number, change, why):
    with pytest.raises(PublicationError, match=why):
        expost.Publication.from_json(changed(number, change))


def test_seeded_noise_is_marked():
    X, y = np.array([[0.1, 0.9], [0.8, -0.2]] * 50), np.array([1, 0] * 50)
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], recalibrate=True, random_state=0).fit(X, y)
    assert model.insecure_
    assert model.publication_.insecure.startswith("INSECURE")


@pytest.mark.long
def test_several_publications_are_composed_and_totalled(published):
    plan = published.release.plan
    both = expost.compose([plan, plan])
    assert plan.epsilon < both.epsilon_at(2e-6) < 2.0 * plan.epsilon
    X, y = np.array([[0.1, 0.9]]), np.array([1])
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=1)
    other = model.fit(np.tile(X, (50, 1)), np.tile([0, 1], 25)).publication_
    joint = expost.total([published, other], X, y, confidence=0.9)
    apart = [float(one.bounds(X, y, confidence=0.95).total[0]) for one in (published, other)]
    assert max(apart) < joint[0] <= sum(apart) * (1.0 + 1e-9)
    assert expost.wallet([published], X, y)[0] > 0.0


def test_files_with_one_cap_for_all_rows_read_as_before():
    """A cap on slopes has no gradient cap and no histogram in its file, and its plan recomputes."""
    X, y = np.array([[0.1, 0.9], [0.8, -0.2]] * 50), np.array([1, 0] * 50)
    for cap in (1.0, 0.6):
        model = expost.LogisticRegression(norm=1.0, classes=[0, 1], cap=cap, random_state=0).fit(X, y)
        document = json.loads(model.publication_.to_json())
        assert "gradient_cap" not in document["loss"]
        assert not [name for name in document["plan"] if "recalibration" in name]
        again = expost.Publication.from_json(json.dumps(document))
        assert again.release.plan == model.plan_
        assert again.release.plan.delta_at(1.0) <= 1e-6
