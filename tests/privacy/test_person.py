"""The certificate of a person with several rows, against second formulas; tests/audit has real tables."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from convex_losses import AsConvex
from grids import grid
from scipy.integrate import quad, simpson
from scipy.optimize import minimize_scalar
from scipy.special import ndtr
from scipy.stats import chi, norm
from test_profile import BENT, CASES, HUBER, LOGISTIC, SOFTMAX_LIKE

import expost
from expost import LogisticLoss, PseudoHuber, SmoothedNorm, SquaredLoss, calibrate, calibrate_convex, gaussian
from expost.exceptions import CalibrationError, ParameterError
from expost.losses.softmax_curve import SoftmaxCurve
from expost.privacy.excess import ROW, Tangent, best_tangent
from expost.privacy.order_statistics import LargestTwo, flat_delta
from expost.privacy.plan import accounting_of
from expost.privacy.precision import Rounding
from expost.privacy.profile import Noise, PrivacyProfile
from expost.privacy.scales import NoiseScales
from expost.privacy.shapes import capped_logistic, capped_softmax, default_threshold
from expost.privacy.softmax_cells import largest_determinant, softmax_cells
from expost.privacy.softmax_profile import SoftmaxProfile

PERSON = {"unit": "person"}


def above(tau, epsilon, loss):
    """ψ_τ as the tangent is defined: value and slope of 1 − exp(ε − s) at s = ε + τ, cut at zero."""
    return np.maximum(1.0 - math.exp(-tau) + math.exp(-tau) * (loss - epsilon - tau), 0.0)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 8.0])
@pytest.mark.parametrize("tau", [0.0, 1e-3, 0.05, 0.7])
def test_the_tangent_lies_above_the_excess_and_touches_it_once(epsilon, tau):
    loss = np.linspace(epsilon - 3.0, epsilon + 30.0, 5001)
    found = Tangent(tau).mean(epsilon - loss, np.zeros(1))
    assert np.all(found >= -np.expm1(np.minimum(epsilon - loss, 0.0)))
    assert found == pytest.approx(above(tau, epsilon, loss), rel=1e-12, abs=1e-14)
    assert float(Tangent(tau).mean(np.array(-tau), np.array(0.0))) == pytest.approx(-math.expm1(-tau))
    assert Tangent(tau).room == pytest.approx(math.exp(tau) - 1.0 - tau, abs=1e-15)


@pytest.mark.parametrize("left", [-2.0, 0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("shift", [0.1, 0.7, 3.0])
@pytest.mark.parametrize("tau", [0.0, 0.05, 0.6])
def test_means_are_those_of_a_normal_loss(left, shift, tau):
    tangent = Tangent(tau)

    def value(noise):
        return float(above(tau, 0.0, 0.5 * shift**2 + shift * noise - left)) * norm.pdf(noise)

    kink = (left - tangent.room - 0.5 * shift**2) / shift
    wanted = quad(value, kink, max(kink, 0.0) + 15.0, epsabs=0.0, epsrel=1e-11, limit=200)[0]
    found = tangent.mean(np.array([left]), np.array([shift]))
    assert found[0] == pytest.approx(wanted, rel=1e-9)
    assert tangent.mean_at_shift(np.array([left]), shift)[0] == found[0]
    folded = quad(value, max(kink, 0.0), max(kink, 0.0) + 15.0, epsabs=0.0, epsrel=1e-11, limit=200)[0]
    assert tangent.folded(left, shift) == pytest.approx(2.0 * folded, rel=1e-9)


def test_the_tail_of_a_mean_keeps_its_digits():
    """Against the continued fraction of the Mills ratio, of which the asymptotic series is enough here."""
    for y in (-20.0, -35.0):
        series = 1.0 - 3.0 / y**2 + 15.0 / y**4 - 105.0 / y**6 + 945.0 / y**8
        wanted = 0.1 * norm.pdf(y) / y**2 * series
        left = np.array(0.5 * 0.1**2 - 0.1 * y)
        assert float(Tangent(0.0).mean(left, np.array(0.1))) == pytest.approx(wanted, rel=1e-7)


@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1e-3, 1.0, 40.0, 1e6])
def test_every_tangent_of_the_search_is_zero_at_zero(epsilon):
    tried = []
    tried.append(best_tangent(epsilon, lambda one: tried.append(one) or 0.0))
    assert all(one.tau >= 0.0 and one.room <= epsilon for one in tried)
    top = Tangent(math.log1p(math.sqrt(2.0 * epsilon)))
    assert top.room <= epsilon


def test_what_lies_beyond_the_last_noise_is_bounded():
    for noise in (Noise(1, signed=True), Noise(1, signed=False), Noise(4, signed=False)):
        law = norm() if noise.signed else chi(noise.freedom)
        wanted = quad(lambda x, law=law: (x - 1.7) * law.pdf(x), 1.7, 40.0, epsabs=0.0)[0]
        assert noise.overshoot(1.7) == pytest.approx(wanted, rel=1e-9)
        # A value that rises by 2 for each unit from 0.3 on.
        assert Tangent(0.1).beyond(law.sf(1.7), 0.3, 2.0 * noise.overshoot(1.7)) == pytest.approx(
            quad(lambda x, law=law: (0.3 + 2.0 * (x - 1.7)) * law.pdf(x), 1.7, 40.0, epsabs=0.0)[0], rel=1e-9
        )
        assert ROW.beyond(0.01, 0.3, 5.0) == 0.01
    differences = LargestTwo(5)
    nodes = np.linspace(8.0, 28.0, 20001)
    mean = simpson((nodes - 8.0) * differences.largest(nodes), x=nodes)
    assert mean <= differences.overshoot(8.0) <= 1.01 * mean  # rarely two classes at once


# The noise of a row and of a person, to the digits that docs/mathematics.md gives.
TABLE = [
    (capped_logistic(0.1, 1e-6), 0.1, None, "20.2681", "20.2720"),
    (capped_logistic(0.5, 1e-6), 0.5, None, "5.00264", "5.00599"),
    (capped_logistic(1.0, 1e-6), 1.0, None, "2.79951", "2.80267"),
    (capped_logistic(2.0, 1e-6), 2.0, None, "1.59247", "1.59543"),
    (capped_logistic(8.0, 1e-6), 8.0, None, ".54146", ".54370"),
    (LogisticLoss(), 1.0, 1.0, "4.2247", "4.2295"),
    (LogisticLoss(), 1.0, 5.0, "4.2247", "4.2295"),
    (LogisticLoss(), 1.0, 0.5, "4.3715", "4.9217"),
    (LogisticLoss(), 1.0, 0.3, "5.3539", "11.84"),
]


def printed(text):
    """A number of which the digits are given: it may be rounded either way."""
    return pytest.approx(float(text), abs=0.7 * 10.0 ** -len(text.split(".")[1]))


@pytest.mark.parametrize(("loss", "epsilon", "l2", "row", "person"), TABLE, ids=str)
def test_what_a_person_costs_in_noise(loss, epsilon, l2, row, person):
    one, all_rows = (calibrate(loss=loss, epsilon=epsilon, l2=l2, unit=unit) for unit in ("row", "person"))
    assert one.sigma == printed(row)
    assert all_rows.sigma == printed(person)
    assert all_rows.l2 == one.l2
    assert all_rows.delta_at(epsilon) <= 1e-6 < replace(all_rows, scales=one.scales).delta_at(epsilon)


@pytest.mark.parametrize(("epsilon", "percent"), [(0.1, 0.767), (1.0, 0.686), (8.0, 0.907)])
def test_what_a_person_costs_with_the_pseudo_huber_loss(epsilon, percent):
    loss = PseudoHuber(default_threshold(epsilon, 1e-6))
    row, person = (calibrate(loss=loss, epsilon=epsilon, unit=unit) for unit in ("row", "person"))
    assert 100.0 * (person.sigma / row.sigma - 1.0) == pytest.approx(percent, abs=0.005)


@pytest.mark.long
def test_the_floor_is_the_trace():
    """λ > κ R²/ε, and close above it the noise is finite but large."""
    assert calibrate(loss="logistic", l2=0.26, **PERSON).sigma == pytest.approx(44.67, abs=0.01)
    with pytest.raises(CalibrationError, match=r"its floor is l2 > 0.25.*`epsilon` to 1.04169 or more"):
        calibrate(loss="logistic", l2=0.24, **PERSON)
    assert calibrate(loss="logistic", l2=0.24).sigma < 8.0
    for loss in (LogisticLoss(), SmoothedNorm(3), capped_softmax(4, 1.0, 1e-6)):
        accounting = accounting_of(loss.curve, 1.5, **PERSON)
        for epsilon in (0.1, 1.0, 30.0):
            assert accounting.log_determinant(accounting.floor(epsilon)) == pytest.approx(epsilon)


def numeric(profile, epsilon, *, removing):
    """Section 15 by brute force: slopes on a grid, Simpson's rule for the normal law, the best tangent."""
    curve, unit = profile.curve, profile.norm / profile.scales.sigma
    slopes = np.unique(np.append(np.linspace(0.0, curve.max_slope, 201), curve.peak))
    curvature = curve.curvature(slopes) * profile.norm**2
    trace = 0.0 * slopes if removing else curve.rank * curvature / profile.l2
    shift = np.full_like(slopes, profile.rounding.solver**2)
    for statistic, scale in profile.scales.released:
        shift += (statistic.sensitivity(slopes * profile.norm, curvature, curve.rank) / scale) ** 2
    shift = np.sqrt(shift)
    along = curve.outputs == curve.rank == 1
    inside = removing or not along or (profile.scales.releases_statistics and not curve.ratio_falls)
    signed = along and (curve.sign_fixed or not removing)
    noise = np.linspace(-13.0 if signed else 0.0, 13.0, 1601)
    density = (norm if signed else chi(curve.outputs)).pdf(noise)

    def worst(logarithm):
        tau = math.exp(logarithm)
        if not inside:
            # The noise along the row and that of the statistics together.
            width = np.hypot(unit * slopes, shift)[:, None]
            values = above(tau, epsilon, trace[:, None] + 0.5 * width**2 + width * noise)
            return simpson(values * density, x=noise, axis=1).max()
        loss = trace + 0.5 * (unit * slopes) ** 2 + unit * slopes * noise[:, None]
        mean = above(tau, epsilon, loss)
        if np.any(shift > 0.0):
            width = np.maximum(shift, 1e-9)
            y = (loss + 0.5 * width**2 - epsilon + math.exp(tau) - 1.0 - tau) / width
            mean = math.exp(-tau) * width * (np.exp(-0.5 * y**2) / math.sqrt(2.0 * math.pi) + y * ndtr(y))
        return simpson(mean.max(axis=1) * density, x=noise)

    top = math.log(math.log1p(math.sqrt(2.0 * epsilon)))
    return minimize_scalar(worst, bounds=(top - 9.0, top), method="bounded", options={"xatol": 0.02}).fun


PERSONS = [case for case in CASES if case[2] > 0.0 and case[1] > 0.1]


@pytest.mark.parametrize("place", range(len(PERSONS)))
def test_both_directions_are_the_formulas_of_the_theorem(place):
    curve, l2, epsilon, scales = PERSONS[place]
    profile = PrivacyProfile(curve, 1.0, l2, NoiseScales(**scales), unit="person")
    for removing in (False, True):
        bracket = (profile.removing if removing else profile.adding)(epsilon, 1e-3)
        wanted = min(numeric(profile, epsilon, removing=removing), 1.0)
        tail = 1e-3 if wanted > 1e-12 else 0.2  # Simpson's rule is coarse far out
        # Above the smallest of all tangents, and hardly: the search ends near the best one.
        assert wanted * (1.0 - tail) <= bracket.upper <= wanted * (1.0 + 5e-3 + tail)
        assert bracket.lower <= bracket.upper <= bracket.lower * (1.0 + 2e-3) + 1e-30
    assert profile.delta(epsilon).upper >= max(
        profile.adding(epsilon, 1e-3).lower, profile.removing(epsilon, 1e-3).lower
    )


@pytest.mark.parametrize("place", range(len(CASES)))
def test_a_person_is_never_promised_more_than_a_row(place):
    """One row is a person; and the certificate falls with everything that protects."""
    curve, l2, epsilon, scales = CASES[place]
    row, person = (PrivacyProfile(curve, 1.0, l2, NoiseScales(**scales), unit=u) for u in ("row", "person"))
    at = person.delta(epsilon, rtol=1e-2)
    assert row.delta(epsilon, rtol=1e-2).lower <= at.upper
    assert person.delta(epsilon + 0.3, rtol=1e-2).lower <= at.upper
    assert replace(person, l2=1.3 * l2).delta(epsilon, rtol=1e-2).lower <= at.upper
    more = NoiseScales(**{name: 1.1 * scale for name, scale in scales.items()})
    assert replace(person, scales=more).delta(epsilon, rtol=1e-2).lower <= at.upper
    assert replace(person, rounding=Rounding(solver=0.01)).delta(epsilon, rtol=1e-2).upper >= at.lower


@pytest.mark.parametrize("curve", [LOGISTIC, HUBER], ids=["fixed", "free"])
def test_printed_numbers_are_paid_for_in_both_directions(curve):
    """η² in Δ²: the removed person of a model alone by the closed form, against the general expectation."""
    profile = PrivacyProfile(curve, 1.0, 5.0, NoiseScales(4.6), Rounding(solver=0.3), unit="person")
    assert profile.adding(1.0, 1e-3).upper == pytest.approx(numeric(profile, 1.0, removing=False), rel=2e-3)
    exact = numeric(profile, 1.0, removing=True)
    # The closed form adds the point m = 0 on top, and counts both signs.
    assert exact * (1.0 - 1e-6) <= profile.removing(1.0, 1e-3).upper <= 1.3 * exact
    plain = replace(profile, rounding=Rounding())
    assert plain.removing(1.0, 1e-3).upper == pytest.approx(numeric(plain, 1.0, removing=True), rel=2e-3)


@pytest.mark.parametrize("unit", ["row", "person"])
def test_a_finer_question_gets_a_finer_answer(unit):
    """A round that needs no more edges of the noise is not the last one."""
    plan = calibrate(loss=capped_logistic(1.0, 1e-6), report="leverage", unit=unit)
    lower, upper = plan.profile.removing(1.0, 2e-5)
    assert lower <= upper <= lower * (1.0 + 2.1e-5)
    # With a Hessian too a person costs 0.11%, in both directions.
    assert upper == pytest.approx(plan.profile.adding(1.0, 2e-5).upper, rel=1e-4)
    assert plan.sigma == pytest.approx(2.7995 if unit == "row" else 2.8027, rel=5e-5)


def test_at_an_epsilon_of_zero_the_mean_loss_is_left():
    """The tangent at zero: E max(L, 0), which is the total variation but for the curvature of exp."""
    profile = PrivacyProfile(LOGISTIC, 1.0, 2.0, NoiseScales(4.6), unit="person")
    slopes = np.linspace(0.0, 1.0, 2001)
    loss, width = slopes * (1.0 - slopes) / 2.0 + 0.5 * (slopes / 4.6) ** 2, np.maximum(slopes / 4.6, 1e-12)
    wanted = np.max(width * norm.pdf(loss / width) + loss * ndtr(loss / width))
    assert profile.adding(0.0, 1e-3).upper == pytest.approx(wanted, rel=1e-3)
    steep = 1.0 / 4.6
    wanted = steep * norm.pdf(0.5 * steep) + 0.5 * steep**2 * ndtr(0.5 * steep)
    assert profile.removing(0.0, 1e-3).upper == pytest.approx(wanted, rel=1e-6)


def test_a_curve_whose_ratio_rises_keeps_the_supremum_inside():
    """With statistics C_τ is not proved for it; what is certified is at least as large."""
    scales = NoiseScales(4.6, sigma_hessian=0.8)
    bent = PrivacyProfile(BENT, 1.0, 1.0, scales, unit="person")
    assert bent._slope_moves
    slopes = bent._slopes(1.0, 1.0)
    assert bent.adding(1.0, 1e-3).upper >= slopes.some_fixed
    assert calibrate(loss=LogisticLoss(), l2=5.0, report="leverage", **PERSON).epsilon == 1.0


# k and the bound that no certificate can undercut: k equal records are one Gaussian mechanism.
@pytest.mark.parametrize(("k", "promise", "least"), [(2, 2.13, 2.12), (3, 3.33, 3.32), (5, 5.95, 5.93)])
def test_the_promise_for_families(k, promise, least):
    plan = calibrate(loss=capped_logistic(1.0, 1e-6))
    found = plan.epsilon_for(k)
    assert found == pytest.approx(promise, abs=0.005)
    steep = k * plan.loss.curve.max_slope
    truth = float(gaussian.epsilon(1e-6, sensitivity=steep, sigma=plan.sigma))
    assert round(truth, 2) == least
    assert truth < found
    # Records of weight k are the same people: the plan of that largest weight, at the same noise.
    heavy = calibrate(loss=plan.loss, max_weight=float(k), sigma=plan.sigma, l2=plan.l2, **PERSON)
    assert found == pytest.approx(heavy.epsilon, rel=1e-5)
    group = 1e-6 * math.expm1(k) / math.expm1(1.0)
    assert plan.epsilon_for(k, delta=group) < k


@pytest.mark.long
@pytest.mark.parametrize(("unit", "report"), grid(["row", "person"], ["independent", "adaptive"], together=1))
def test_families_with_statistics(unit, report):
    plan = calibrate(loss="logistic", l2=5.0, report=report, unit=unit)
    one, two, three = (plan.epsilon_for(k) for k in (1, 2, 3))
    assert one == pytest.approx(1.0, abs=1e-5)
    assert 2.0 < two < 2.15
    assert 3.0 < three < 3.4


@pytest.mark.long
def test_families_of_every_plan():
    plan = calibrate(loss=capped_logistic(1.0, 1e-6))
    assert plan.epsilon_for(1) == plan.epsilon_at(plan.delta) == 1.0
    assert plan.epsilon_for(1, delta=1e-4) == plan.epsilon_at(1e-4)
    # Above the floor, whatever the noise.
    quiet = calibrate(loss="logistic", sigma=1e4, l2=1.0, delta=1e-6)
    assert 3 * 0.25 < quiet.epsilon_for(3) < 3 * 0.25 + 0.01
    unbounded = calibrate(loss=SquaredLoss(), sigma=3.0, l2=1.0)
    assert unbounded.epsilon_for(2) == math.inf
    for wrong in (0, 1.5, True, "2"):
        with pytest.raises(ParameterError, match="`k` must be a whole number of at least 1"):
            plan.epsilon_for(wrong)


def test_largest_weights_multiply_a_person_too():
    one, many = (calibrate(loss="logistic", l2=w, max_weight=w, **PERSON) for w in (1.0, 40.0))
    assert many.sigma == pytest.approx(40.0 * one.sigma, rel=1e-6)


@pytest.mark.parametrize("classes", [3, 10])
@pytest.mark.parametrize("cap", [1.0, 0.6])
def test_cells_bound_the_trace_of_every_record(classes, cap):
    curve = SoftmaxCurve(classes, cap=cap)
    cells, tangent = softmax_cells(curve), Tangent()
    planes = cells.planes(0.7, tangent)
    rng = np.random.default_rng(3)
    slope = rng.uniform(0.0, curve.cap, 4000)
    law = rng.dirichlet(np.full(classes - 1, 0.5), 4000)
    square = np.sum(law**2, axis=1)
    trace = 0.7 * (slope * (1.0 - square) + curve.curvature(slope) * (1.0 + square))
    share = np.minimum(1.0 - law.max(axis=1), cells.shares[-1])
    row = np.clip(np.searchsorted(cells.slopes, slope) - 1, 0, planes.shape[0] - 1)
    column = np.clip(np.searchsorted(cells.shares, share) - 1, 0, planes.shape[1] - 1)
    assert np.all(trace <= planes[row, column].max(axis=(1, 2)) + 1e-12)
    assert trace.max() <= largest_determinant(curve, 0.7, tangent) <= 0.7 * (classes - 1) / classes + 1e-12
    if cap == 1.0:
        assert largest_determinant(curve, 0.7, tangent) == pytest.approx(0.7 * (classes - 1) / classes)
    # What stands in the record is the trace of its Hessian.
    record = cells.records(0.7, tangent)
    slopes, shares = cells.slopes[:, None], cells.shares
    second = (1.0 - shares) ** 2 + shares**2 / (classes - 2)
    wanted = 0.7 * (slopes * (1.0 - second) + curve.curvature(slopes) * (1.0 + second))
    assert record.determinant == pytest.approx(wanted, abs=1e-12)
    assert np.all(record.determinant >= cells.records(0.7).determinant - 1e-12)


def test_softmax_of_people_without_a_determinant_is_an_integral():
    nodes = np.linspace(-12.0, 14.0, 200001)
    density = LargestTwo(4).largest(nodes)
    for epsilon, shift, tau in ((1.0, 0.3, 0.05), (0.3, 0.6, 0.2), (0.1, 0.4, 0.3)):
        wanted = simpson(above(tau, epsilon, shift**2 + shift * nodes) * density, x=nodes)
        assert flat_delta(4, epsilon, shift, Tangent(tau)) == pytest.approx(wanted, rel=1e-6)


def supremum_by_sampling(profile, epsilon, tau, draws, seed):
    """E_W sup Ψ_τ over a grid of masses of three classes, and its standard error."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((draws, 3))
    scale = profile.norm / profile.scales.sigma
    slope, law = np.meshgrid(np.linspace(0.0, profile.curve.cap, 33), np.linspace(0.0, 1.0, 33))
    slope, law = slope.ravel(), np.stack([law.ravel(), 1.0 - law.ravel()], axis=1)
    square = np.sum(law**2, axis=1)
    trace = slope * (1.0 - square) + profile.curve.curvature(slope) * (1.0 + square)
    loss = trace * profile.norm**2 / profile.l2 + 0.5 * scale**2 * slope**2 * (1.0 + square)
    worst = np.zeros(draws)
    for one in np.array_split(np.arange(draws), 10):
        apart = noise[one, :2] - noise[one, 2:]
        worst[one] = above(tau, epsilon, loss + scale * slope * (apart @ law.T)).max(axis=1)
    return worst.mean(), worst.std() / math.sqrt(draws)


def test_three_classes_of_people_by_sampling():
    """The expectation of the supremum; false alarms at five standard errors, below 1e-6."""
    profile = SoftmaxProfile(SoftmaxCurve(3), 1.0, 3.0, NoiseScales(3.0), unit="person")
    found = profile.delta(1.0)
    sampled = [supremum_by_sampling(profile, 1.0, tau, 8_000, 5) for tau in np.geomspace(0.05, 0.6, 8)]
    mean, error = min(sampled)
    assert mean - 5.0 * error <= found.upper <= 1.03 * (mean + 5.0 * error)
    assert found.lower <= mean + 5.0 * error
    assert profile.removing(1.0, 2e-3).upper <= found.upper
    row = replace(profile, unit="row").delta(1.0)
    assert row.lower <= found.upper


@pytest.mark.long
def test_what_classes_cost_people():
    """The largest trace beside the largest log-determinant, at the default regularisation."""
    for epsilon, person, row in ((1.0, 0.2425, 0.2372), (8.0, 1.444, 1.313)):
        plan = calibrate(loss=capped_softmax(10, epsilon, 1e-6), epsilon=epsilon)
        both = (
            accounting_of(plan.curve, 1.0, unit=unit).log_determinant(plan.l2) for unit in ("person", "row")
        )
        assert tuple(both) == pytest.approx((person, row), rel=1e-3)
    two = calibrate(loss=expost.SoftmaxLoss(2), l2=2.0, **PERSON)
    logistic = calibrate(loss="logistic", l2=1.0, **PERSON)
    assert two.sigma / math.sqrt(2.0) == pytest.approx(logistic.sigma, rel=1e-5)


@pytest.mark.long
@pytest.mark.parametrize(
    ("report", "reduced"),
    [
        ("independent", False),
        *(pytest.param("leverage", reduced, marks=pytest.mark.slow) for reduced in (False, True)),
    ],
)
def test_what_reports_of_classes_cost_people(report, reduced):
    row, person = (
        calibrate(loss=capped_softmax(3, 1.0, 1e-6), report=report, reduced=reduced, unit=unit)
        for unit in ("row", "person")
    )
    assert 1.0 < person.sigma / row.sigma < 1.004
    assert 2.0 < person.epsilon_for(2) < 2.2


@pytest.mark.long
def test_convex_losses_and_several_predictors_have_the_chi_law():
    row, person = (calibrate_convex(SmoothedNorm(3), l2=60.0, unit=unit) for unit in ("row", "person"))
    assert 1.0 <= person.sigma / row.sigma < 1.02
    assert person.unit == "person"
    assert person.fields()["unit"] == "person"
    assert "unit" not in row.fields()
    assert "for all rows of a record or person together" in str(person._repr_html_())
    profile = PrivacyProfile(SOFTMAX_LIKE, 1.0, 20.0, NoiseScales(5.0), unit="person")
    assert profile.delta(2.0).upper == pytest.approx(numeric(profile, 2.0, removing=False), rel=5e-3)
    # One gradient's direction, and the theorem of one linear predictor.
    same = calibrate_convex(AsConvex(LogisticLoss(), 2), l2=5.0, **PERSON)
    assert same.sigma >= calibrate(loss="logistic", l2=5.0, **PERSON).sigma * (1.0 - 1e-6)


def test_the_plan_knows_its_unit():
    plan = calibrate(loss="logistic", report="leverage", **PERSON)
    assert plan.unit == "person"
    assert plan != replace(plan, unit="row")
    assert plan.fields()["unit"] == "person"
    assert "for all rows of a record or person together" in str(plan._repr_html_())
    row = calibrate(loss="logistic", report="leverage")
    assert row.unit == "row"
    assert "unit" not in row.fields()
    assert "person" not in str(row._repr_html_())
    for wrong in ("people", None, 1):
        with pytest.raises(ParameterError, match="`unit` must be one of 'row', 'person'"):
            calibrate(unit=wrong)
        with pytest.raises(ParameterError, match="`unit` must be one of 'row', 'person'"):
            calibrate_convex(SmoothedNorm(2), unit=wrong)
    json.dumps(plan.fields())


def test_explicit_scales_and_the_classical_recipe_state_what_holds_for_people():
    plan = calibrate(loss="logistic", sigma=4.2295, l2=5.0, **PERSON)
    assert plan.epsilon == pytest.approx(1.0, abs=1e-3)
    assert plan.epsilon > calibrate(loss="logistic", sigma=4.2295, l2=5.0).epsilon
    classical = calibrate(loss="logistic", calibration="kifer2012", **PERSON)
    assert classical.delta_at(1.0) <= 1e-6


def test_units_are_never_mixed():
    row, person = (calibrate(loss="logistic", epsilon=0.5, delta=1e-7, unit=u) for u in ("row", "person"))
    both = expost.compose([person] * 3)
    assert both.unit == "person"
    assert "for all rows of a record or person together" in both._repr_html_()
    assert expost.compose([row]).unit == expost.compose([]).unit == "row"
    assert expost.compose([row] * 3).epsilon_at(1e-6) < both.epsilon_at(1e-6) < 1.5
    assert expost.compose([person]).epsilon_at(1e-7) == pytest.approx(0.5, rel=1e-3)
    with pytest.raises(ParameterError, match="`plans` must be plans of one unit"):
        expost.compose([row, person])


@pytest.mark.long
def test_a_fit_does_not_pretend_to_know_people():
    X, y = np.eye(2), [0, 1]
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], unit="person")
    with pytest.raises(ParameterError, match="`groups` must be given with unit='person'"):
        model.fit(X, y)
    plan = calibrate(fit_intercept=True, **PERSON)
    with pytest.raises(ParameterError, match="`groups` must be given with unit='person'"):
        expost.LogisticRegression(classes=[0, 1], plan=plan).fit(X, y)
    with pytest.raises(ParameterError, match="`unit` must be left out with a plan, which has unit='row'"):
        expost.LogisticRegression(plan=calibrate(fit_intercept=True), classes=[0, 1], unit="person").fit(X, y)
    with pytest.raises(ParameterError, match="`groups` must be given with unit='person'"):
        expost.ConvexModel(loss=SmoothedNorm(2), unit="person").fit(X)
