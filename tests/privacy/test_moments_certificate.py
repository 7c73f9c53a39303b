"""Five moments after a regression: one certificate for both, against quadrature and real neighbours."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad

import expost
from expost.audit import hockey_stick
from expost.losses.records import Lengths
from expost.privacy import gaussian
from expost.privacy.recalibration import MOMENT_WEIGHTS, recalibration_of
from expost.privacy.scales import NoiseScales
from expost.privacy.shapes import default_threshold, regression_loss

DELTA, SHARE = 1e-6, 0.03
RADIUS = math.sqrt(2.0)


def planned(epsilon, **options):
    loss = regression_loss(epsilon, DELTA, radius=RADIUS)
    return expost.calibrate(
        loss=loss, epsilon=epsilon, delta=DELTA, recalibrate=True, fit_intercept=True, **options
    )


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 1.0, 8.0, 20.0])
def test_the_rule(epsilon):
    """Two Gaussian mechanisms of half the delta that share the budget: the determinant costs nothing."""
    plan, noise = planned(epsilon), gaussian.sigma(epsilon, DELTA / 2.0)
    most = default_threshold(epsilon, DELTA) * RADIUS
    assert plan.loss.gradient_cap == pytest.approx(most, rel=1e-15)
    assert 1.0 - 1e-6 <= plan.sigma / (most * noise / math.sqrt(1.0 - SHARE)) <= 1.0 + 1e-4
    assert 1.0 - 1e-6 <= plan.sigma_recalibration / (noise / math.sqrt(SHARE)) <= 1.0 + 1e-4
    assert plan.l2 == pytest.approx(RADIUS**2 * noise / 2.0 / math.sqrt(1.0 - SHARE), rel=1e-4)
    assert 0.999 * DELTA < plan.delta_at(epsilon) <= DELTA


def lengths_of(plan):
    """Rows of several lengths, with the gradients and the curvatures that each can have."""
    for share in (1.0, 0.7, 0.4, 0.2):
        length = share * RADIUS
        level = plan.loss.levels.of(Lengths(np.array([length**2]), 1))[0]
        own = plan.loss.at_level(plan.loss.levels.factors[level])
        slopes = own.threshold * np.linspace(0.0, 1.0, 101)
        yield slopes * length, own.curve.curvature(slopes) * length**2


@pytest.mark.parametrize(
    "epsilon", [0.5, *(pytest.param(one, marks=pytest.mark.long) for one in (0.05, 2.0, 8.0))]
)
def test_rows_of_every_length_stay_below_the_budget(epsilon):
    """By quadrature over the noise of the model, at the worst constant slope: half when a row is added."""
    plan = planned(epsilon)
    moved = 1.0 / plan.sigma_recalibration
    adding, removing = [], []
    for gradient, curvature in lengths_of(plan):
        left = epsilon - np.log1p(curvature / plan.l2)
        shift = np.hypot(gradient / plan.sigma, moved)
        adding.append(np.max(gaussian.delta(left, sensitivity=shift, sigma=1.0)))
        steepest = gradient[-1] / plan.sigma

        def excess(noise, steepest=steepest):
            rest = epsilon - 0.5 * steepest**2 - steepest * abs(noise)
            density = math.exp(-0.5 * noise**2) / math.sqrt(2.0 * math.pi)
            return 2.0 * density * float(gaussian.delta(rest, sensitivity=moved, sigma=1.0))

        # Most of it lies about the likeliest mixture of both noises.
        middle = epsilon * steepest / (steepest**2 + moved**2)
        ends = max(middle - 12.0, 0.0), middle + 12.0
        removing.append(quad(excess, *ends, epsabs=0.0, epsrel=1e-10, limit=400)[0])
    assert max(adding) <= 0.5 * DELTA * (1.0 + 1e-4)
    assert 0.999 * DELTA < max(removing) <= DELTA
    assert np.argmax(removing) == 0


@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_half_the_default_penalty_is_not_certified(epsilon):
    plan = planned(epsilon)
    assert replace(plan, l2=plan.l2 / 2.0).delta_at(epsilon) > DELTA


@pytest.mark.parametrize("epsilon", [1.0, pytest.param(0.1, marks=pytest.mark.long)])
def test_real_neighbours_stay_below_the_budget(epsilon):
    """Brute force in one dimension, as if every row moved the moments as far as a row can."""
    plan = planned(epsilon)
    scales = {name: getattr(plan, name) for name in ("sigma", "l2", "sigma_recalibration")}
    rng = np.random.default_rng(int(10 * epsilon))
    for length in (1.0, 0.4):
        rows = rng.uniform(-RADIUS, RADIUS, (6, 1))
        counts = np.floor(10.0 ** rng.uniform(0.0, 4.0, 6))
        labels = rng.uniform(-1.0, 1.0, 6)
        pair = hockey_stick(
            plan.loss, rows, labels, [length * RADIUS], 1.0, counts=counts, epsilon=epsilon, **scales
        )
        assert pair.delta <= plan.delta_at(epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("report", ["independent", "leverage", "dependent", "adaptive"])
def test_many_neighbours(epsilon, report):
    plan = planned(epsilon, report=report)
    assert expost.audit.audit_plan(plan, trials=60, random_state=1).ratio <= 1.0


def test_a_row_adds_a_vector_of_length_one_at_most():
    """Its prediction and its residual are at most 1; the certificate counts 1, and little is given away."""
    prediction, residual = np.meshgrid(np.linspace(-1.0, 1.0, 21), np.linspace(-1.0, 1.0, 21))
    one = np.ones_like(prediction)
    added = [one, prediction, prediction**2, residual, prediction * residual]
    lengths = np.sqrt(
        sum((weight * moment) ** 2 for weight, moment in zip(MOMENT_WEIGHTS, added, strict=True))
    )
    assert 0.9999 < np.max(lengths) < 1.0
    assert MOMENT_WEIGHTS[3] == MOMENT_WEIGHTS[4] == 2.0 * MOMENT_WEIGHTS[0]  # residuals are told best


def test_moments_are_no_counts():
    """They may be below zero; how many rows a histogram has in a cell may not. It takes a tenth, they 3%."""
    moments, histogram = map(recalibration_of, (expost.PseudoHuber(), expost.LogisticLoss()))
    assert (moments.counts, moments.share, moments.entries(7.0)) == (False, SHARE, 5)
    assert (histogram.counts, histogram.share, histogram.entries(7.0)) == (True, 0.1, 32)
    assert recalibration_of(expost.LogisticLoss(soft=True)) is None


@pytest.mark.parametrize("report", ["leverage", "adaptive"])
def test_reports_are_certified_with_it(report):
    plan, without = planned(1.0, report=report), planned(1.0)
    assert 0.998 * DELTA < plan.delta_at(1.0) <= DELTA
    assert plan.sigma > without.sigma


def test_weights_do_not_change_what_a_row_adds():
    plan, alone = planned(1.0, max_weight=4.0), planned(1.0)
    assert plan.sigma == pytest.approx(4.0 * alone.sigma, rel=1e-4)
    assert plan.sigma_recalibration == pytest.approx(alone.sigma_recalibration, rel=1e-4)
    assert plan.recalibration_entries == 5


@pytest.mark.long
@pytest.mark.parametrize(("epsilon", "excess"), [(0.1, 1.20), (1.0, 1.47), (8.0, 1.09)])
def test_several_classes_would_take_two_percent_more_noise(epsilon, excess):
    """Six moments of three classes for a tenth of the precision: refused today, and this is what it costs."""
    noise = gaussian.sigma(epsilon, DELTA)
    cap = 0.4 + 0.6 / (1.0 + noise) ** 2
    loss = expost.SoftmaxLoss(3, cap, 0.8, cap * RADIUS)
    plan = expost.calibrate(loss=loss, epsilon=epsilon, delta=DELTA, fit_intercept=True)

    def joint(factor):
        model, others = factor / math.sqrt(0.9), factor * noise / math.sqrt(0.1)
        scales = NoiseScales(model * plan.sigma, sigma_recalibration=others)
        return replace(plan, l2=model * plan.l2, scales=scales).delta_at(epsilon)

    assert joint(1.0) == pytest.approx(excess * DELTA, rel=0.01)
    assert joint(1.02) < DELTA
