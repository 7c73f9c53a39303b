"""The cap on the logistic slope: the rule, and the theorem by which it costs no more noise than its slope."""

import math

import numpy as np
import pytest

import expost
from expost.exceptions import CalibrationError, ParameterError
from expost.privacy import gaussian
from expost.privacy.shapes import capped_logistic

DELTA = 1e-6
BUDGETS = [(0.01, 1e-9), (0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-3), (3.0, 1e-12), (8.0, 1e-6), (50.0, 1e-6)]
# The search for the noise stops just below its target, and printed numbers cost a little.
CLOSE = 2e-6


def multiplier(epsilon, delta):
    return gaussian.sigma(epsilon, delta, sensitivity=1.0)


def steepest(loss):
    """``kappa_0 / (1 - theta)``."""
    return loss.corner_slope * (1.0 - loss.corner_slope) / (1.0 - loss.corner)


@pytest.mark.parametrize(
    ("epsilon", "sigma", "cap"), [(0.1, 36.30, 0.558), (1.0, 4.2247, 0.663), (8.0, 0.6529, 0.829)]
)
def test_the_rule_at_known_budgets(epsilon, sigma, cap):
    assert multiplier(epsilon, DELTA) == pytest.approx(sigma, rel=2e-4)
    loss = capped_logistic(epsilon, DELTA)
    assert loss.cap == pytest.approx(cap, abs=5e-4)
    assert loss.cap == pytest.approx(0.5 * (1 + 1 / math.sqrt(1 + 2 * multiplier(epsilon, DELTA))), rel=1e-14)


@pytest.mark.parametrize("cap", [None, 0.2, 0.9])
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_the_corner_is_the_sharpest_that_the_theorem_allows(epsilon, delta, cap):
    loss = capped_logistic(epsilon, delta, cap=cap)
    # The default regularisation is sigma R / 2; both sides are free of R.
    allowed = loss.cap * multiplier(epsilon, delta) / 2.0 * epsilon
    assert steepest(loss) == pytest.approx(allowed, rel=1e-9)
    assert loss.corner_rate == pytest.approx(epsilon * multiplier(epsilon, delta) / 2.0, rel=1e-9)
    assert loss.curve.ratio_falls


def test_the_cap_rises_to_one_as_the_noise_falls_to_zero():
    caps = [capped_logistic(epsilon, DELTA).cap for epsilon in np.geomspace(1e-3, 1e8, 40)]
    assert np.all(np.diff(caps) > 0.0)
    assert caps[0] > 0.5
    assert 1.0 - caps[-1] < 1e-4
    assert capped_logistic(1e40, DELTA) == expost.LogisticLoss()


@pytest.mark.parametrize("norm", [1.0, 7.0])
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_noise_is_the_cap_times_the_gaussian_mechanisms(epsilon, delta, norm):
    """The theorem in closed form, against the certified profile."""
    loss = capped_logistic(epsilon, delta)
    plan = expost.calibrate(loss=loss, norm=norm, epsilon=epsilon, delta=delta)
    closed = loss.cap * norm * multiplier(epsilon, delta)
    assert plan.l2 == pytest.approx(closed * norm / 2.0, rel=1e-9)
    assert plan.precision is not None
    assert plan.delta_at(epsilon) <= delta
    assert steepest(loss) <= plan.l2 * epsilon / norm**2 * (1.0 + 1e-9)
    assert 1.0 - 1e-9 <= plan.sigma / closed <= 1.0 + CLOSE


def test_a_sharper_corner_than_the_theorems_costs_noise():
    loss = capped_logistic(1.0, DELTA)
    sharp = expost.LogisticLoss(cap=loss.cap, corner=1.0 - 1e-4)
    plan = expost.calibrate(loss=loss, epsilon=1.0)
    assert expost.calibrate(loss=sharp, epsilon=1.0, l2=plan.l2).sigma > 1.01 * plan.sigma


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_the_steepest_record_is_the_worst_whatever_the_noise(epsilon, delta):
    """The step of the proof: no slope has a larger privacy loss above epsilon than the cap itself."""
    loss, sigma = capped_logistic(epsilon, delta), multiplier(epsilon, delta)
    noise = np.linspace(-10.0, 40.0, 301)[:, None]
    slope = np.linspace(0.0, loss.cap, 2001)
    log_det = np.log1p(loss.curve.curvature(slope) / (loss.cap * sigma / 2.0))
    share = slope / loss.cap / sigma
    excess = log_det + share**2 / 2.0 + share * noise - epsilon
    assert np.all(np.maximum(excess, 0.0) <= np.maximum(excess[:, -1:], 0.0) + 1e-12 * epsilon)


@pytest.mark.long
def test_the_rule_is_the_estimators_default():
    X, y = np.array([[0.6, 0.3], [-0.2, 0.5]] * 10), np.array([0, 1] * 10)

    def plan(**parameters):
        return (
            expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=0, **parameters).fit(X, y).plan_
        )

    radius = math.sqrt(2.0)
    for parameters in ({}, {"l2": 99.0}, {"report": "dependent"}, {"calibration": "kifer2012"}):
        assert plan(epsilon=2.0, **parameters).loss == capped_logistic(2.0, DELTA, radius=radius)
    small = capped_logistic(1.0, DELTA, l2=0.5, radius=radius)
    assert plan(l2=0.5).loss == small != capped_logistic(1.0, DELTA, radius=radius)
    assert plan(cap="likelihood").loss == expost.LogisticLoss()
    assert plan(cap="gradient").loss == plan().loss
    assert plan(cap=1.0).loss == expost.LogisticLoss()
    assert plan(cap=0.3).loss == capped_logistic(1.0, DELTA, cap=0.3)
    # Explicit scales fix no budget that the cap could follow: the loss is the plan's.
    for loss in (expost.LogisticLoss(), expost.LogisticLoss(cap=0.4)):
        given = expost.calibrate(loss=loss, norm=1.0, sigma=3.0, l2=2.0, fit_intercept=True)
        model = expost.LogisticRegression(plan=given, classes=[0, 1], random_state=0).fit(X, y)
        assert model.plan_.loss == loss
    assert plan(epsilon=expost.budgets.from_zcdp(0.1, delta=DELTA)).loss.cap < 1.0


def test_the_default_without_an_estimator_is_plain():
    assert expost.calibrate().loss == expost.calibrate(loss="logistic").loss == expost.LogisticLoss()


def test_a_small_regularisation_rounds_the_corner_and_costs_no_noise():
    usual = expost.calibrate(loss=capped_logistic(1.0, DELTA, radius=3.0), norm=3.0)
    for share in (0.06, 0.3):
        l2 = share * usual.l2
        loss = capped_logistic(1.0, DELTA, l2=l2, radius=3.0)
        assert loss.corner < usual.loss.corner
        assert steepest(loss) == pytest.approx(l2 / 9.0, rel=1e-9)
        assert expost.calibrate(loss=loss, norm=3.0, l2=l2).sigma == pytest.approx(usual.sigma, rel=CLOSE)
    assert capped_logistic(1.0, DELTA, l2=1e-9, radius=3.0).corner == 0.1
    assert capped_logistic(1.0, DELTA, l2=7.0 * usual.l2, radius=3.0) == usual.loss
    sharp = expost.calibrate(loss=usual.loss, norm=3.0, l2=0.3 * usual.l2)
    assert sharp.sigma > 1.2 * usual.sigma
    # The cap follows epsilon, so that no epsilon is named.
    with pytest.raises(CalibrationError, match=r"its floor is l2 > \S+\. Raise `l2` above it\.$"):
        expost.calibrate(loss=usual.loss, norm=3.0, l2=0.02 * usual.l2)


@pytest.mark.parametrize("cap", [0.0, -1.0, 1.5, math.nan, "1", True])
def test_caps_out_of_range_are_refused(cap):
    with pytest.raises(ParameterError, match="`cap` must be a number between 1e-06 and 1"):
        capped_logistic(1.0, DELTA, cap=cap)
    with pytest.raises(ParameterError, match="`cap` must be a number between 1e-06 and 1"):
        expost.LogisticLoss(cap=cap)


def test_corners_and_soft_labels_are_refused():
    with pytest.raises(ParameterError, match="`corner` must be a number between"):
        expost.LogisticLoss(cap=0.5, corner=1.0)
    with pytest.raises(ParameterError, match="`corner` must be None with cap=1"):
        expost.LogisticLoss(corner=0.5)
    with pytest.raises(ParameterError, match="`cap` must be 1 with soft=True"):
        expost.LogisticLoss(soft=True, cap=0.5)
