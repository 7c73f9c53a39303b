"""The cap on the gradient's length: its noise, and the divergence of rows of every length."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

import expost
from expost.audit import hockey_stick
from expost.exceptions import ParameterError
from expost.losses.records import Lengths
from expost.privacy import gaussian
from expost.privacy.plan import covers_rows
from expost.privacy.shapes import capped_logistic, capped_softmax, default_threshold, regression_loss

DELTA = 1e-6
RADIUS = math.sqrt(2.0)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 8.0, 20.0])
def test_noise_is_the_cap_times_the_gaussian_mechanisms(epsilon):
    """The determinant costs nothing, as under a cap on the slope."""
    loss = capped_logistic(epsilon, DELTA, radius=RADIUS)
    plan = expost.calibrate(loss=loss, epsilon=epsilon, fit_intercept=True)
    noise = gaussian.sigma(epsilon, DELTA)
    assert loss.cap == pytest.approx(0.45 * (1.0 + 1.0 / math.sqrt(1.0 + 2.0 * noise)), rel=1e-14)
    assert loss.gradient_cap == pytest.approx(loss.cap * RADIUS, rel=1e-15)
    assert 1.0 - 1e-9 <= plan.sigma / (loss.gradient_cap * noise) <= 1.0 + 2e-6
    assert plan.l2 == pytest.approx(plan.sigma * RADIUS / 2.0, rel=1e-5)
    assert loss.corner_rate == pytest.approx(epsilon * noise / 2.0, rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "shares"),
    [(0.1, (1.0, 1.0, 1.2e-2, 5e-17)), (1.0, (1.0, 1.0, 6e-6, 1e-32)), (8.0, (1.0, 0.13, 4e-16, 7e-79))],
)
def test_the_divergence_of_rows_of_every_length(epsilon, shares):
    """By quadrature, at the worst constant slope: of the budget what the derivation says, and never more."""
    loss = capped_logistic(epsilon, DELTA, radius=1.0)
    sigma, l2 = loss.cap * gaussian.sigma(epsilon, DELTA), loss.cap * gaussian.sigma(epsilon, DELTA) / 2.0
    for length, share in zip((1.0, 0.7, 0.4, 0.2), shares, strict=True):
        own = loss.at_level(loss.levels.factors[loss.levels.of(Lengths(np.array([length**2]), 1))[0]])

        def excess(slope, own=own, length=length):
            bend = float(own.curve.curvature(np.array([slope]))[0]) * length**2
            left, shift = epsilon - math.log1p(bend / l2), slope * length / sigma

            def above(noise):
                loss_there = 0.5 * shift**2 + shift * noise
                density = math.exp(-0.5 * noise**2) / math.sqrt(2.0 * math.pi)
                return -math.expm1(left - loss_there) * density

            start = (left - 0.5 * shift**2) / shift
            # The density falls fast beyond the start.
            return quad(above, start, start + 12.0, epsabs=0.0, epsrel=1e-9, limit=400)[0]

        worst = max(map(excess, own.cap * np.linspace(0.05, 1.0, 96)))
        assert worst <= DELTA * (1.0 + 1e-9)
        # Levels cost a row at most 1.2% of its cap, which rows far below the budget notice by a power.
        assert worst == pytest.approx(share * DELTA, rel=0.25) or (share < 1.0 and worst < share * DELTA)
        assert math.log(worst) > 1.1 * math.log(share * DELTA)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_real_neighbours_stay_below_the_budget_and_attain_it(epsilon):
    """Brute force in one dimension: rows of several lengths among each other, one of them added."""
    loss = capped_logistic(epsilon, DELTA, radius=1.0)
    plan = expost.calibrate(loss=loss, epsilon=epsilon)
    scales = {"epsilon": epsilon, "sigma": plan.sigma, "l2": plan.l2}
    found = hockey_stick(loss, [[-0.1]], [0.0], [1.0], 0.0, counts=[1e6], **scales)
    assert 0.999 * DELTA < found.delta <= plan.delta_at(epsilon)
    rng = np.random.default_rng(int(10 * epsilon))
    for length in (1.0, 0.7, 0.4, 0.2):
        rows = rng.uniform(-1.0, 1.0, (6, 1))
        counts = np.floor(10.0 ** rng.uniform(0.0, 4.0, 6))
        pair = hockey_stick(loss, rows, rng.integers(0, 2, 6) * 1.0, [length], 1.0, counts=counts, **scales)
        assert pair.delta <= plan.delta_at(epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_a_width_for_every_row_costs_a_regression_nothing(epsilon):
    loss = regression_loss(epsilon, DELTA, radius=RADIUS)
    plain = expost.PseudoHuber(default_threshold(epsilon, DELTA))
    plan, before = (expost.calibrate(loss=one, epsilon=epsilon, fit_intercept=True) for one in (loss, plain))
    assert (plan.sigma, plan.l2) == (before.sigma, before.l2)
    assert loss.threshold == plain.threshold
    assert regression_loss(epsilon, DELTA, threshold=0.3, radius=RADIUS) == expost.PseudoHuber(0.3)
    rng = np.random.default_rng(0)
    for length in (1.4, 1.0, 0.5):
        rows, labels = rng.uniform(-1.0, 1.0, (5, 1)), rng.uniform(-1.0, 1.0, 5)
        scales = {"epsilon": epsilon, "sigma": plan.sigma, "l2": plan.l2, "counts": [50.0] * 5}
        pair = hockey_stick(loss, rows, labels, [length], 1.0, **scales)
        assert pair.delta <= plan.delta_at(epsilon)


def test_several_classes_take_the_same_cap_and_the_usual_corner():
    loss, plain = capped_softmax(4, 1.0, DELTA, radius=RADIUS), capped_softmax(4, 1.0, DELTA)
    assert loss.cap == pytest.approx(0.9 * plain.cap, rel=1e-14)
    assert (loss.corner, plain.gradient_cap) == (0.8, None)
    assert loss.gradient_cap == pytest.approx(loss.cap * RADIUS, rel=1e-15)
    assert capped_softmax(4, 1.0, DELTA, cap=0.5, radius=RADIUS).gradient_cap is None
    two = capped_softmax(2, 1.0, DELTA, radius=RADIUS)
    assert two.link == capped_logistic(1.0, DELTA, radius=RADIUS)


@pytest.mark.parametrize("cap", [1.0, 0.6])
def test_a_cap_that_is_given_is_one_on_slopes(cap):
    given = capped_logistic(1.0, DELTA, cap=cap, radius=RADIUS)
    assert given.gradient_cap is None
    assert given == capped_logistic(1.0, DELTA, cap=cap)


def test_caps_by_name():
    assert capped_logistic(1.0, DELTA, cap="likelihood", radius=RADIUS) == expost.LogisticLoss()
    default = capped_logistic(1.0, DELTA, radius=RADIUS)
    assert capped_logistic(1.0, DELTA, cap="gradient", radius=RADIUS) == default


def test_a_cap_for_the_plans_rows_is_covered_whatever_its_last_digit():
    """The length is its quotient by the cap on slopes, which may round up."""
    rng = np.random.default_rng(0)
    for cap, radius in zip(rng.uniform(0.1, 0.9, 40), np.exp(rng.uniform(-3.0, 3.0, 40)), strict=True):
        loss = expost.LogisticLoss(cap=float(cap), gradient_cap=float(cap * radius))
        assert covers_rows(loss, float(radius))


def test_a_cap_for_longer_rows_than_the_plans_is_refused():
    """The longest rows would have longer gradients than the plan pays for."""
    for share in (0.5, 1.0):
        loss = expost.LogisticLoss(cap=0.5, gradient_cap=0.5 * share * RADIUS)
        assert expost.calibrate(loss=loss, norm=1.0, fit_intercept=True).delta_at(1.0) <= DELTA
    for share in (1.0 + 1e-9, 1.5, 3.0):
        loss = expost.LogisticLoss(cap=0.5, gradient_cap=0.5 * share * RADIUS)
        with pytest.raises(ParameterError, match=r"`gradient_cap` must be at most .* longest row, 1\.41421"):
            expost.calibrate(loss=loss, norm=1.0, fit_intercept=True)
