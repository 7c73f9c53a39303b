"""The shape of a loss follows from the budget."""

import math

import pytest
from hypothesis import given, strategies as st

import expost
from expost import LogisticLoss, PseudoHuber, SoftmaxLoss, calibrate
from expost.exceptions import ParameterError
from expost.losses import SoftmaxCurve, describe
from expost.privacy.shapes import (
    amount_loss,
    capped_logistic,
    classification_loss,
    count_loss,
    default_reduced,
    default_threshold,
    quantile_loss,
)
from expost.privacy.softmax_cells import largest_determinant


@pytest.mark.long
@given(st.floats(1e-4, 1e3), st.floats(1e-12, 0.5))
def test_the_threshold_is_the_rule_in_the_gaussian_multiplier(epsilon, delta):
    multiplier = expost.gaussian.sigma(epsilon, delta, sensitivity=1.0)
    chosen = default_threshold(epsilon, delta)
    assert chosen == pytest.approx(min(1.0, max(0.05, 0.28 / math.sqrt(math.sqrt(multiplier)))), rel=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_multiplier_is_the_noise_of_the_loss_without_a_determinant(epsilon):
    """Within 5%: the sign of a slope is free here, which the Gaussian mechanism does not pay for."""
    plan = calibrate(loss=PseudoHuber(0.2), norm=3.0, epsilon=epsilon, delta=1e-6, l2=1e6)
    ratio = plan.sigma / (0.2 * 3.0) / expost.gaussian.sigma(epsilon, 1e-6)
    assert 1.0 <= ratio <= 1.05


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-3)])
def test_thresholds_of_counts_and_amounts_fall_with_the_fourth_root_of_the_noise(epsilon, delta):
    root = expost.gaussian.sigma(epsilon, delta) ** 0.25
    count, amount = count_loss(epsilon, delta), amount_loss(epsilon, delta)
    assert count.largest == 8.0
    assert count.threshold == pytest.approx(2.2 / root, rel=1e-12)
    assert amount.threshold == pytest.approx(0.8 / root, rel=1e-12)
    assert count_loss(epsilon, delta, threshold=0.3).threshold == 0.3
    assert amount_loss(epsilon, delta, threshold=0.3).threshold == 0.3


def test_the_corner_of_a_quantile_is_a_tenth_of_its_deviation():
    """Of a coin with this chance; that of the median by default."""
    assert quantile_loss(1.0, 1e-6) == expost.SmoothedPinball(0.5, 0.05)
    low = quantile_loss(1.0, 1e-6, level=0.1)
    assert (low.level, low.scale) == (0.1, pytest.approx(0.03, rel=1e-12))
    assert quantile_loss(1.0, 1e-6, level=0.1, scale=0.2) == expost.SmoothedPinball(0.1, 0.2)


def test_limits_and_refusals():
    assert default_threshold(1e-5, 1e-9) == 0.05
    assert default_threshold(1e9, 0.9) == 1.0
    with pytest.raises(ParameterError, match="`epsilon` must be"):
        default_threshold(0.0, 1e-6)
    with pytest.raises(ParameterError, match="`delta` must be"):
        default_threshold(1.0, 1.0)


def test_the_cap_of_a_classification_follows_the_budget():
    assert str(capped_logistic(0.1, 1e-6)) == "LogisticLoss(cap=0.558278, corner=0.759043)"
    assert str(capped_logistic(8.0, 1e-6)) == "LogisticLoss(cap=0.82927, corner=0.915613)"
    assert str(capped_logistic(8.0, 1e-6, l2=0.1)) == "LogisticLoss(cap=0.82927, corner=0.694745)"
    assert capped_logistic(1.0, 1e-6, cap=1.0) == LogisticLoss()
    assert classification_loss(2, 8.0, 1e-6) == capped_logistic(8.0, 1e-6)
    assert str(classification_loss(3, 8.0, 1e-6)) == "SoftmaxLoss(classes=3, cap=0.82927, corner=0.8)"


def test_a_cap_lowers_the_largest_determinant():
    assert round(largest_determinant(SoftmaxCurve(3, cap=0.5), 1.0), 4) == 0.4904
    assert round(largest_determinant(SoftmaxCurve(3), 1.0), 4) == 0.5754


def test_a_file_names_a_loss_and_its_parameters():
    assert describe(PseudoHuber(2)) == {"name": "pseudo_huber", "threshold": 2.0}
    assert describe(LogisticLoss()) == {"name": "logistic", "soft": False}
    capped = {"name": "logistic", "soft": False, "cap": 0.75, "corner": 0.5}
    assert describe(LogisticLoss(cap=0.75, corner=0.5)) == capped
    assert describe(SoftmaxLoss(3)) == {"name": "softmax", "classes": 3}


def test_a_report_of_more_than_a_hundred_coefficients_of_several_classes_is_reduced():
    assert [default_reduced(SoftmaxLoss(3), "leverage", columns) for columns in (50, 51)] == [False, True]
    assert [default_reduced(SoftmaxLoss(classes), "adaptive", 1) for classes in (101, 102)] == [False, True]
    assert not default_reduced(SoftmaxLoss(3), "independent", 51)
    assert not default_reduced(LogisticLoss(), "leverage", 200)
