"""From a budget to the noise of a softmax model: the default rule, the floor, and every kind of report."""

import math
from dataclasses import dataclass

import pytest

from expost.exceptions import CalibrationError
from expost.losses.softmax_curve import SoftmaxCurve
from expost.privacy import gaussian
from expost.privacy.order_statistics import flat_sigma
from expost.privacy.precision import Rounding
from expost.privacy.recipes import Target, kifer, tight
from expost.privacy.shapes import capped_softmax
from expost.privacy.softmax_profile import SoftmaxAccounting

DELTA = 1e-6


@dataclass(frozen=True)
class Shape:
    """All that calibration sees of a loss."""

    curve: SoftmaxCurve


def target(curve, *, epsilon=1.0, delta=DELTA, radius=1.0, report="independent", **options):
    return Target(epsilon, delta, Shape(curve), radius, report, **options)


@pytest.mark.parametrize(("epsilon", "cap"), [(0.1, 0.558), (1.0, 0.663), (8.0, 0.829)])
def test_the_rule_for_cap_corner_and_regularisation(epsilon, cap):
    curve = capped_softmax(10, epsilon, DELTA).curve
    assert curve.cap == pytest.approx(cap, abs=5e-4)
    multiplier = gaussian.sigma(epsilon, DELTA, sensitivity=1.0)
    assert curve.cap == pytest.approx(0.5 * (1 + 1 / math.sqrt(1 + 2 * multiplier)), rel=1e-14)
    assert curve.corner == 0.8
    wanted = target(curve, epsilon=epsilon, radius=3.0)
    l2, scales = tight(wanted, None, None)
    flat = 3.0 * curve.cap * flat_sigma(10, epsilon, DELTA)
    assert l2 == pytest.approx(flat * 3.0 / math.sqrt(2.0), rel=1e-12)
    assert flat < scales.sigma < 1.25 * flat
    assert DELTA * 0.995 <= wanted.profile(l2, scales).delta(epsilon).upper <= DELTA


def test_a_named_cap_and_two_classes():
    assert capped_softmax(5, 1.0, DELTA, cap=1.0).curve == SoftmaxCurve(5)
    assert capped_softmax(5, 1.0, DELTA, cap=0.3).curve == SoftmaxCurve(5, 0.3, 0.8)
    curve = capped_softmax(2, 1.0, DELTA).curve
    l2, scales = tight(target(curve), None, None)
    # The capped logistic theorem, with the norm of two centred scores.
    multiplier = gaussian.sigma(1.0, DELTA, sensitivity=1.0)
    assert scales.sigma == pytest.approx(math.sqrt(2.0) * curve.cap * multiplier, rel=2e-6)
    assert l2 == pytest.approx(curve.cap * multiplier, rel=1e-12)


@pytest.mark.long
@pytest.mark.parametrize(("classes", "floor"), [(3, "0.513831"), (10, "0.850926")])
def test_below_the_floor_is_refused_with_its_number(classes, floor):
    curve = SoftmaxCurve(classes)
    with pytest.raises(
        CalibrationError, match=f"its floor is l2 > {floor}. Raise `l2` above it, or `epsilon`"
    ):
        tight(target(curve), 0.5, None)
    with pytest.raises(CalibrationError, match="its floor is l2 > "):
        tight(target(SoftmaxCurve(classes, 0.5)), 0.4, None)
    l2 = 1.02 * SoftmaxAccounting(curve, 1.0).floor(1.0)
    wanted = target(curve)
    _, scales = tight(wanted, l2, None)
    assert wanted.profile(l2, scales).certifies(1.0, DELTA)


@pytest.mark.long
def test_a_large_delta_keeps_away_from_the_floor():
    curve = SoftmaxCurve(10, 0.9)
    wanted = target(curve, epsilon=0.2, delta=0.4)
    l2, scales = tight(wanted, None, None)
    assert l2 >= 2.0 * SoftmaxAccounting(curve, 1.0).floor(0.2)
    assert wanted.profile(l2, scales).certifies(0.2, 0.4)


@pytest.mark.long
@pytest.mark.parametrize(
    ("report", "reduced"),
    [
        ("leverage", True),
        ("dependent", False),
        pytest.param("leverage", False, marks=pytest.mark.slow),
        pytest.param("adaptive", True, marks=pytest.mark.slow),
        pytest.param("adaptive", False, marks=pytest.mark.slow),
    ],
)
def test_reports(report, reduced):
    curve = capped_softmax(4, 1.0, DELTA).curve
    rounding = Rounding.planned(1.0, curvature=0.5)
    alone = tight(target(curve, rounding=rounding), None, None)[1].sigma
    wanted = target(curve, report=report, reduced=reduced, rounding=rounding)
    l2, scales = tight(wanted, None, None)
    assert tuple(statistic.name for statistic, _ in scales.released) == wanted.kind.releases
    assert scales.sigma > alone
    assert 0.99 * DELTA <= wanted.profile(l2, scales).delta(1.0).upper <= DELTA


def test_the_classical_recipe_is_refused():
    with pytest.raises(CalibrationError, match=r"kifer2012.*3 classes do not have\. Use calibration='tight'"):
        kifer(target(SoftmaxCurve(3)), None, None)
