"""Weights up to the largest one are covered by the plan: by the curve, and by brute force."""

import numpy as np
import pytest
from grids import grid
from problems import CASES

from expost import LogisticLoss, PseudoHuber, SmoothedHinge, calibrate
from expost.audit import audit_plan
from expost.exceptions import ParameterError
from expost.losses import DerivativeCurve


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("largest", [0.5, 1.0, 7.0])
def test_a_weighted_record_is_dominated_by_the_heaviest_one_of_the_same_slope(case, largest):
    curve = case.loss.curve
    covering = curve.scaled(largest)
    assert covering.max_slope == largest * curve.max_slope
    top = min(covering.max_slope, 1e3)
    for share in (1e-3, 0.1, 0.5, 0.9, 1.0):
        weight = share * largest
        slopes = np.linspace(0.0, min(weight * curve.max_slope, top), 2001)[1:]
        curvature = weight * curve.curvature(np.minimum(slopes / weight, curve.max_slope))
        # At the largest slope both are zero but for the rounding of the slope.
        assert np.all(curvature <= covering.curvature(slopes) * (1 + 1e-12) + 1e-13 * largest)


@pytest.mark.long
@pytest.mark.parametrize(
    ("loss", "report"),
    grid([LogisticLoss(cap=0.6), SmoothedHinge(), PseudoHuber(0.5)], ["independent", "adaptive"], together=1),
    ids=str,
)
def test_noise_and_penalty_grow_with_the_largest_weight_and_the_guarantee_stays(loss, report):
    """So many times the loss with so much more of everything is the same model."""
    one, many = (calibrate(loss=loss, report=report, max_weight=weight) for weight in (1.0, 40.0))
    assert many.max_weight == 40.0
    assert many.delta_at(many.epsilon) <= many.delta
    assert many.l2 == pytest.approx(40.0 * one.l2, rel=1e-12)
    for (_, scale), (_, larger) in zip(one.scales.released, many.scales.released, strict=True):
        assert larger == pytest.approx(40.0 * scale, rel=1e-12)
    assert many.sigma == pytest.approx(40.0 * one.sigma, rel=1e-12)
    assert "weights ≤ 40" in str(many._repr_html_())
    assert "weights" not in str(one._repr_html_())


def densities(theta, tables, loss, plan):
    """The log densities of one-dimensional releases from tables of (x, y, weight), on a grid."""
    found = []
    for table in tables:
        gradient, hessian = plan.l2 * theta, np.full_like(theta, plan.l2)
        for x, y, weight in table:
            slope, curvature = loss.derivatives(x * theta, np.full_like(theta, y))
            gradient, hessian = gradient + weight * slope * x, hessian + weight * curvature * x**2
        found.append(
            np.log(hessian) - 0.5 * (gradient / plan.sigma) ** 2 - np.log(plan.sigma * np.sqrt(2 * np.pi))
        )
    return np.array(found)


def divergence(first, second, epsilon, step):
    return float(np.sum(np.maximum(np.exp(first) - np.exp(epsilon + second), 0.0)) * step)


@pytest.mark.long
@pytest.mark.parametrize(("case", "largest"), grid(CASES[:5], [1.0, 6.0], together=1), ids=str)
@pytest.mark.parametrize("trials", [20, pytest.param(60, marks=pytest.mark.slow)])
def test_no_weighted_neighbours_are_told_apart_better_than_certified(case, largest, trials):
    """By quadrature in one dimension, both ways; the heaviest record comes close, light ones do not."""
    plan = calibrate(loss=case.loss, epsilon=1.0, delta=1e-2, max_weight=largest)
    rng = np.random.default_rng(3)
    certified = plan.delta_at(plan.epsilon)
    worst = {}
    for trial in range(trials):
        size = int(rng.integers(0, 6))
        labels = case.labels(rng, size + 1)
        rows = rng.choice([-1.0, 1.0], size + 1) * rng.uniform(0.2, 1.0, size + 1) ** 0.2
        share = [1e-3, 0.1, 0.7, 1.0][trial % 4]
        weights = largest * np.append(rng.uniform(size=size), share)
        if trial < 8:  # a far label, or the record that the model contradicts most
            rows[-1] = 1.0
            labels[-1] = round(labels[-1]) if case.loss.labels.high <= 1.0 else 1e3
        table = list(zip(rows, labels, weights, strict=True))
        reach = 12.0 * (plan.sigma + largest * (size + 1) * case.loss.curve.max_slope) / plan.l2
        theta = np.linspace(-reach, reach, 40_001)
        without, whole = densities(theta, [table[:-1], table], case.loss, plan)
        step = theta[1] - theta[0]
        assert np.sum(np.exp(whole)) * step == pytest.approx(1.0, abs=1e-6)
        for pair in ((whole, without), (without, whole)):
            found = divergence(*pair, plan.epsilon, step)
            assert found <= certified * (1 + 1e-6)
            worst[share] = max(worst.get(share, 0.0), found)
    assert worst[1e-3] < 1e-3 * certified < 0.2 * certified < worst[1.0]


@pytest.mark.slow
def test_the_audit_of_a_plan_with_weights_is_tight():
    plan = calibrate(loss="logistic", epsilon=1.0, l2=15.0, max_weight=3.0)
    assert 0.999 < audit_plan(plan, trials=1, random_state=0).ratio <= 1.0


class Rising(PseudoHuber):
    """A valid loss with a loose curve whose curvature(m)/m rises before its peak."""

    @property
    def curve(self):
        return DerivativeCurve(
            1.0, lambda m: np.maximum(np.minimum(m, 0.8) / 0.5, 1.0) ** 1.5, peak=0.8, sign_fixed=False
        )


def test_the_largest_weight_must_be_a_number_that_the_curve_covers():
    for weight in (0.0, -1.0, np.nan, np.inf, "2", None, 1e10, 1e9 + 0.5, 1e-10):
        with pytest.raises(ParameterError, match="`max_weight` must be"):
            calibrate(max_weight=weight)
    assert calibrate(loss=Rising(), max_weight=1.0).max_weight == 1.0
    with pytest.raises(ParameterError, match="does not cover smaller weights"):
        calibrate(loss=Rising(), max_weight=2.0)
