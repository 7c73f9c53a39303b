"""A histogram of scores with the model: one certificate for both, against quadrature and real neighbours."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad

import expost
from expost.audit import hockey_stick
from expost.exceptions import ParameterError
from expost.losses.records import Lengths
from expost.privacy import gaussian
from expost.privacy.recalibration import cell_count, cell_ends
from expost.privacy.shapes import capped_logistic

DELTA, SHARE = 1e-6, 0.1
RADIUS = math.sqrt(2.0)


def planned(epsilon, *, radius=1.0, **options):
    loss = capped_logistic(epsilon, DELTA, radius=radius, recalibrate=True)
    norm = math.sqrt(radius**2 - 1.0) if radius > 1.0 else 1.0
    options |= {"norm": norm, "fit_intercept": radius > 1.0}
    return expost.calibrate(loss=loss, epsilon=epsilon, delta=DELTA, recalibrate=True, **options)


def corner(cap, rate):
    return 2.0 * rate / (1.0 + rate + math.sqrt((1.0 - rate) ** 2 + 4.0 * (1.0 - cap) * rate))


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 8.0, 20.0])
def test_the_rule(epsilon):
    """The scales of two Gaussian mechanisms that share the budget: the determinant costs nothing."""
    plan, noise = planned(epsilon, radius=RADIUS), gaussian.sigma(epsilon, DELTA)
    cap = plan.loss.cap
    assert cap == pytest.approx(0.2 + 0.8 / (1.0 + noise) ** 2, rel=1e-14)
    assert plan.loss.gradient_cap == pytest.approx(cap * RADIUS, rel=1e-15)
    assert 1.0 - 1e-9 <= plan.sigma / (cap * RADIUS * noise / math.sqrt(1.0 - SHARE)) <= 1.0 + 1e-4
    assert 1.0 - 1e-9 <= plan.sigma_recalibration / (noise / math.sqrt(SHARE)) <= 1.0 + 1e-4
    assert plan.l2 == pytest.approx(plan.sigma * RADIUS / 2.0, rel=1e-4)
    rate = (1.0 - math.sqrt(SHARE)) * epsilon * noise / (2.0 * math.sqrt(1.0 - SHARE))
    assert plan.loss.corner == pytest.approx(corner(cap, rate), rel=1e-9)
    assert 0.999 * DELTA < plan.delta_at(epsilon) <= DELTA


@pytest.mark.parametrize(("epsilon", "excess"), [(0.1, 1.37), (1.0, 1.011)])
def test_the_corner_of_a_model_alone_breaks_the_budget(epsilon, excess):
    plan, noise = planned(epsilon), gaussian.sigma(epsilon, DELTA)
    rate = epsilon * noise / (2.0 * math.sqrt(1.0 - SHARE))
    sharper = replace(plan.loss, corner=corner(plan.loss.cap, rate))
    assert replace(plan, loss=sharper).delta_at(epsilon) == pytest.approx(excess * DELTA, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 2.0])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.2])
@pytest.mark.parametrize("cap", [0.1, 0.5, 1.0])
def test_a_corner_that_is_rounder_by_one_less_the_root_of_the_share_is_free(epsilon, share, cap):
    """The theorem for other shares and caps: no constant slope has more than the budget."""
    noise = gaussian.sigma(epsilon, DELTA)
    sigma, sigma_recalibration = cap * noise / math.sqrt(1.0 - share), noise / math.sqrt(share)
    l2 = sigma / 2.0
    rate = (1.0 - math.sqrt(share)) * l2 * epsilon / cap
    slopes = cap * np.linspace(0.0, 1.0, 2001)
    bent = min(corner(cap, rate), 1.0)
    beyond = bent * cap * (1.0 - bent * cap) * (cap - slopes) / max(cap - bent * cap, 1e-12)
    curvature = np.where(slopes <= bent * cap, slopes * (1.0 - slopes), beyond)
    shift = np.hypot(slopes / sigma, 1.0 / sigma_recalibration)
    found = gaussian.delta(epsilon - np.log1p(curvature / l2), sensitivity=shift, sigma=1.0)
    assert np.max(found) <= DELTA * (1.0 + 1e-9)
    assert np.max(found) >= DELTA * (1.0 - 1e-9)


@pytest.mark.parametrize(
    ("epsilon", "shares"),
    [(0.1, (1.0, 1.0, 1.0, 0.96)), (1.0, (1.0, 1.0, 1.0, 0.06)), (8.0, (1.0, 1.0, 1.5e-3, 2e-19))],
)
def test_the_divergence_of_rows_of_every_length(epsilon, shares):
    """By quadrature over the noise of the model and of the cell, at the worst constant slope."""
    plan = planned(epsilon)
    loss, sigma, l2, cell = plan.loss, plan.sigma, plan.l2, 1.0 / plan.sigma_recalibration
    for length, share in zip((1.0, 0.7, 0.4, 0.2), shares, strict=True):
        own = loss.at_level(loss.levels.factors[loss.levels.of(Lengths(np.array([length**2]), 1))[0]])

        def excess(slope, own=own, length=length):
            bend = float(own.curve.curvature(np.array([slope]))[0]) * length**2
            left, shift = epsilon - math.log1p(bend / l2), slope * length / sigma

            def above(noise):
                rest = left - 0.5 * shift**2 - shift * noise
                y = rest / cell
                inside = math.erfc((y - 0.5 * cell) / math.sqrt(2.0)) / 2.0
                outside = math.exp(min(rest, 700.0)) * math.erfc((y + 0.5 * cell) / math.sqrt(2.0)) / 2.0
                return (inside - outside) * math.exp(-0.5 * noise**2) / math.sqrt(2.0 * math.pi)

            # Where the loss is above epsilon with the likeliest mixture of both noises.
            middle = (left / math.hypot(shift, cell)) * shift / math.hypot(shift, cell)
            return quad(above, middle - 12.0, middle + 12.0, epsabs=0.0, epsrel=1e-10, limit=400)[0]

        worst = max(map(excess, own.cap * np.linspace(0.05, 1.0, 39)))
        assert worst <= DELTA
        assert worst == pytest.approx(share * DELTA, rel=0.3) or (share < 0.5 and worst < 2 * share * DELTA)


@pytest.mark.parametrize(
    "epsilon", [pytest.param(0.1, marks=pytest.mark.long), 1.0, pytest.param(8.0, marks=pytest.mark.long)]
)
def test_real_neighbours_stay_below_the_budget_and_attain_it(epsilon):
    """Brute force in one dimension with the histogram: rows of several lengths, one of them added."""
    plan = planned(epsilon)
    scales = {"epsilon": epsilon, "sigma": plan.sigma, "l2": plan.l2}
    scales["sigma_recalibration"] = plan.sigma_recalibration
    found = hockey_stick(plan.loss, [[-0.1]], [0.0], [1.0], 0.0, counts=[1e6], **scales)
    assert 0.999 * DELTA < found.delta <= plan.delta_at(epsilon)
    rng = np.random.default_rng(int(10 * epsilon))
    for length in (1.0, 0.7, 0.4, 0.2):
        rows = rng.uniform(-1.0, 1.0, (6, 1))
        counts = np.floor(10.0 ** rng.uniform(0.0, 4.0, 6))
        pair = hockey_stick(
            plan.loss, rows, rng.integers(0, 2, 6) * 1.0, [length], 1.0, counts=counts, **scales
        )
        assert pair.delta <= plan.delta_at(epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("report", ["independent", "leverage", "dependent", "adaptive"])
def test_many_neighbours(epsilon, report):
    plan = planned(epsilon, report=report)
    assert expost.audit.audit_plan(plan, trials=60, random_state=1).ratio <= 1.0


@pytest.mark.parametrize("report", ["leverage", "dependent", "adaptive"])
def test_reports_are_certified_with_it(report):
    plan, without = planned(1.0, report=report), planned(1.0)
    assert 0.998 * DELTA < plan.delta_at(1.0) <= DELTA
    assert plan.sigma > without.sigma
    assert replace(plan, scales=replace(plan.scales, sigma_recalibration=None)).delta_at(1.0) < 0.9 * DELTA


@pytest.mark.long
def test_several_rows_count_in_as_many_cells():
    """The promise to families counts each row in a cell: that of a histogram with so much less noise."""
    plan = planned(1.0)
    silent = replace(plan, scales=replace(plan.scales, sigma_recalibration=None))
    assert plan.epsilon_for(3) > silent.epsilon_for(3)
    assert plan.scales.for_rows(3).sigma_recalibration == plan.sigma_recalibration / 3.0


def test_weights_do_not_change_what_a_cell_counts():
    plan = planned(1.0, max_weight=4.0)
    alone = planned(1.0)
    assert plan.sigma == pytest.approx(4.0 * alone.sigma, rel=1e-4)
    assert plan.sigma_recalibration == pytest.approx(alone.sigma_recalibration, rel=1e-4)
    assert plan.scales.over(4.0).sigma_recalibration == plan.sigma_recalibration


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"loss": expost.SoftmaxLoss(3)}, "two classes"),
        ({"loss": "smoothed_pinball"}, "two classes"),
        ({"loss": "bounded_poisson"}, 'kind = "number"'),
        ({"loss": expost.LogisticLoss(soft=True)}, "two classes"),
        ({"unit": "person"}, "unit='person'"),
        ({"report": "leverage", "split": 0.9}, "share of its own"),
        ({"calibration": "kifer2012"}, "share of its own"),
    ],
)
def test_what_is_refused(options, why):
    with pytest.raises(ParameterError, match=r"^`recalibrate` must be False .*" + why):
        expost.calibrate(recalibrate=True, **options)


def test_explicit_scales():
    scales = {"sigma": 3.0, "l2": 2.0}
    plan = expost.calibrate(recalibrate=True, **scales, sigma_recalibration=9.0)
    assert plan.sigma_recalibration == 9.0
    assert plan.epsilon > expost.calibrate(**scales).epsilon
    with pytest.raises(ParameterError, match="`sigma_recalibration`"):
        expost.calibrate(recalibrate=True, **scales)
    with pytest.raises(ParameterError, match="recalibrate=False"):
        expost.calibrate(**scales, sigma_recalibration=9.0)
    with pytest.raises(ParameterError, match="`sigma_recalibration`"):
        expost.calibrate(recalibrate=True, **scales, sigma_recalibration=2.0**32)
    assert expost.calibrate(recalibrate=True, **scales, sigma_recalibration=0.99 * 2.0**32).recalibrate


def test_cells_are_public():
    assert len(cell_ends(19.9)) == 15
    assert len(cell_ends(20.0)) == 7
    assert (cell_count(19.9), cell_count(20.0)) == (32, 16)
    assert "sigma_recalibration" not in expost.calibrate().fields()
    assert planned(1.0).fields()["sigma_recalibration"] == planned(1.0).sigma_recalibration
