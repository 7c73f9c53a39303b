"""What a report pays because the printed coefficients are not the exact minimiser, by formulas written out.

With the planned precision these terms are a millionth of a figure, and no test of coverage would miss them.
Here coefficients are printed so coarsely that every term counts.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from problems import linear_records
from scipy import integrate, stats

import expost
from expost.fitting.release import Release
from expost.losses.corners import Corners
from expost.privacy.precision import Precision
from expost.reports.base import Interval, Scope, Shares, goe_quantile
from expost.reports.evaluate import TightReader
from expost.reports.forgotten import Forgotten
from expost.reports.intervals import (
    Determinant,
    gradient_factors,
    inner_product,
    noise_factors,
    reach_factors,
)
from expost.reports.laws import NO_DRIFT, Across, Chi, Drift, Spread, conditional_quantile
from expost.reports.several import _part, sum_noise
from expost.reports.total import (
    WholeNoise,
    ellipse_stretch,
    largest_curved,
    largest_shifts,
    report_cost,
    statistics_shift,
    whole_cost,
    whole_noise,
    whole_parts,
)

D, NORM, L2, ROWS = 4, 1.5, 0.7, 1000
SIGMAS = {"sigma": 3.0, "sigma_gradient": 5.0, "sigma_hessian": 0.8, "sigma_eigenvalue": 1.1}
BETA = 0.25 * NORM**2
# The output's noise, the solver's radius and the grid: η = 1/32.
PRINTED = Precision(1e-3, 2.0**-6 * 1e-3, 2.0**-15 * 1e-3, ROWS)
SOLVER = 2.0**-5
# The errors of a computed statistic, in units of its noise.
ERROR = 2.0**-20


def release_of(report, *, precision=PRINTED):
    names = {"independent": (), "leverage": ("hessian",), "adaptive": ("gradient", "hessian", "eigenvalue")}
    scales = {"sigma": SIGMAS["sigma"]} | {f"sigma_{name}": SIGMAS[f"sigma_{name}"] for name in names[report]}
    plan = expost.calibrate(
        loss="logistic", report=report, l2=L2, norm=NORM, fit_intercept=False, rows_at_most=ROWS, **scales
    )
    plan = replace(plan, precision=precision)
    rng = np.random.default_rng(0)
    released = {
        "gradient": rng.normal(size=D),
        "hessian": np.diag([2.0, 3.0, 4.0, 9.0]),
        "eigenvalue": 2.1,
    }
    return Release(
        plan,
        np.full(D, 0.3),
        **{name: value for name, value in released.items() if name in names[report]},
    )


def some_records(release):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(6, D)) / 3.0
    slope, curvature = rng.uniform(-1.0, 1.0, 6), rng.uniform(0.05, 0.25, 6)
    return linear_records(rows, slope, curvature, gradient=release.gradient), rows, slope, curvature


def test_the_drift_is_that_of_its_formulas():
    drift = Drift.of(release_of("adaptive"))
    noise, sigma = PRINTED.output_noise, SIGMAS["sigma"]
    distance = noise * (stats.chi.isf(1e-15, D) + 1.0)
    change = NORM * distance
    assert drift.tilt == pytest.approx(noise * (L2 + BETA * ROWS) / sigma, rel=1e-12)
    assert drift.slope == pytest.approx(BETA * distance / sigma, rel=1e-9)
    assert drift.curvature == pytest.approx(2.0 * change, rel=1e-9)
    assert drift.curvature >= math.expm1(change)
    assert drift.widened(2.0, 3.0) == pytest.approx(2.0 + drift.tilt * (3.0 + 2.0**-10), rel=1e-14)


def test_a_large_change_of_the_hessian_is_the_exponential_of_its_rate():
    far = replace(PRINTED, output_noise=0.5)
    change = NORM * 0.5 * (stats.chi.isf(1e-15, D) + 1.0)
    assert Drift.of(release_of("adaptive", precision=far)).curvature == pytest.approx(
        math.expm1(change), rel=1e-9
    )


def test_at_corners_the_noise_of_the_output_may_be_longer_and_moves_what_is_at_a_kink():
    """A probability of 1e-40 is left, and each coefficient at a kink may be as far from it as the window."""
    corners = Corners(np.full(D, 0.01), np.full(D, -np.inf), np.full(D, np.inf))
    release = replace(
        release_of("independent"), corners=corners, coefficients=np.array([0.3, 0.0, 0.0, -0.2])
    )
    length = (
        Drift.of(release, 3).slope * SIGMAS["sigma"] / (3.0 * BETA) - 0.016 * math.sqrt(2.0)
    ) / 1e-3 - 1.0
    assert stats.chi.logsf(length, D) == pytest.approx(math.log(1e-40), rel=1e-9)
    change = NORM * 1e-3 * (length + 1.0 + 16.0 * math.sqrt(2.0))
    assert Drift.of(release, 3).curvature == pytest.approx(2.0 * change, rel=1e-9)
    assert Drift.of(release).slope == pytest.approx(Drift.of(release, 3).slope / 3.0, rel=1e-12)


def test_what_has_one_curvature_changes_none_and_a_change_beyond_doubles_is_cut():
    plan = expost.calibrate(loss="squared", sigma=3.0, l2=L2, norm=NORM, fit_intercept=False)
    drift = Drift.of(Release(replace(plan, precision=PRINTED), np.full(D, 0.3)))
    assert drift.curvature == 0.0
    assert drift.slope > 0.0
    far = Drift.of(release_of("adaptive", precision=replace(PRINTED, output_noise=1e3)))
    assert far.curvature == math.expm1(700.0)


@pytest.mark.parametrize("report", ["leverage", "adaptive"])
def test_shifts_are_those_at_the_exact_minimiser_with_the_errors_of_what_is_computed(report):
    release = release_of(report)
    drift, (records, rows, slope, curvature) = Drift.of(release), some_records(release)
    norm = np.linalg.norm(rows, axis=1)
    gradient = np.abs(slope) * norm + drift.slope * SIGMAS["sigma"]
    bend = curvature * norm**2 * (1.0 + drift.curvature)
    hessian = bend / math.sqrt(2.0) / SIGMAS["sigma_hessian"] + 2.0 * ERROR
    curved = SOLVER**2 + hessian**2
    model, measured = (gradient / SIGMAS["sigma"]) ** 2, 0.0
    if report == "adaptive":
        curved += (bend / SIGMAS["sigma_eigenvalue"] + 2.0 * ERROR) ** 2
        measured = (gradient / SIGMAS["sigma_gradient"] + 2.0 * ERROR) ** 2
    parts = whole_parts(release, records, drift)
    np.testing.assert_allclose(parts.curved, np.sqrt(curved), rtol=1e-12)
    np.testing.assert_allclose(parts.moved, np.sqrt(model + measured), rtol=1e-12)
    np.testing.assert_allclose(parts.reaching, np.sqrt(model + measured), rtol=1e-12)
    shift = np.sqrt(curved - SOLVER**2 + measured)
    np.testing.assert_allclose(statistics_shift(release, records, drift), shift, rtol=1e-12)
    cost = 0.5 * shift**2 + shift * stats.norm.isf(0.025 / 7)
    np.testing.assert_allclose(report_cost(release, records, Scope(7), 0.05, drift), cost, rtol=1e-9)


def test_rows_that_are_not_known_add_to_the_shift_of_the_statistics():
    """They move the statistics in the direction that is worst for the record."""
    release, some = release_of("adaptive"), Forgotten(3, 0.5)
    records, drift = some_records(release)[0], Drift.of(release)
    bend = BETA * math.hypot(math.sqrt(0.5) / SIGMAS["sigma_hessian"], 1.0 / SIGMAS["sigma_eigenvalue"])
    more = 1.5 * math.hypot(NORM / SIGMAS["sigma_gradient"], bend)
    shift = statistics_shift(release, records, drift) + more
    cost = 0.5 * shift**2 + shift * stats.norm.isf(0.025)
    found = TightReader(release, 0.05, Scope(None), forgotten=some).read(records, (True,))
    np.testing.assert_allclose(found.report_cost, cost, rtol=1e-9)


@pytest.mark.parametrize("apart", [False, True])
def test_a_total_adds_up_its_terms(apart):
    """The determinant's size, half of the squares, the noise along both parts, and what errors add."""
    release = release_of("adaptive")
    drift, records, determinant = Drift.of(release), some_records(release)[0], np.linspace(0.1, 0.6, 6)
    parts = whole_parts(release, records, drift)
    model, others = 2.0 * parts.reaching, 3.0 * parts.curved
    reached = model + others if apart else np.sqrt(model**2 + others**2)
    expected = determinant + 0.5 * parts.moved**2 + 0.5 * parts.curved**2 + reached + 0.125
    found = whole_cost(release, records, determinant, WholeNoise(2.0, 3.0, apart, 0.125), drift)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_errors_that_do_not_lie_along_a_row_are_paid_apart():
    for report, error in (("leverage", 0.0), ("adaptive", 2.0 * ERROR)):
        release = release_of(report)
        assert whole_noise(release, Scope(None), 0.05).rest == pytest.approx(8.1 * error, rel=1e-12)
        every = whole_noise(release, Scope("all"), 0.05)
        assert every.rest == pytest.approx((error + SOLVER) * stats.chi.isf(1e-15, D), rel=1e-9)
        entries = 10 if report == "leverage" else 11
        assert every.statistics == pytest.approx(stats.chi.isf(0.025, entries), rel=1e-9)
        assert every.apart
    # Of one release the model alone is published, so that the solver's error is paid here.
    noise = sum_noise([release_of("independent"), release_of("adaptive")], 0.05, Scope(None))
    assert noise is not None
    assert noise.rest == pytest.approx(8.1 * (SOLVER + 2.0 * ERROR), rel=1e-12)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("cornered", [False, True])
@pytest.mark.parametrize("report", ["independent", "adaptive"])
def test_a_part_of_a_sum_allows_what_its_own_bound_would(report, cornered, rows):
    """It decides whether bounds are added up. At corners the solver's error is one more normal."""
    release = release_of(report)
    release = replace(release, plan=replace(release.plan, max_weight=2.0))
    if cornered:
        release = replace(release, corners=Corners(np.full(D, 0.01), np.full(D, -np.inf), np.full(D, np.inf)))
    law, statistics = None if rows == 1 else Across(3), report == "adaptive"
    share = 0.05 * (Shares.of(report, 1.0).whole if statistics else 1.0)
    steep, curved = (2.0 * shift for shift in largest_shifts(release.plan))
    if cornered:
        steep, curved = rows * steep, rows * largest_curved(release.plan)
    if statistics:
        noise = whole_noise(release, Scope(5), share, law, rows, 1.0)
        apart, rest = math.hypot(noise.model * steep, noise.statistics * curved), 8.1 * 2.0 * ERROR
    else:
        apart = noise_factors(release, Scope(5), share, NO_DRIFT, law, rows, 1.0).norm * steep
        rest = 0.0 if cornered else 8.1 * SOLVER
    found = _part(release, 0.05, Scope(5), rows, corners=cornered)
    assert found.share == pytest.approx(share, rel=1e-12)
    assert found.shifts == pytest.approx((steep, curved), rel=1e-12)
    assert found.normals == rows + (statistics or cornered)
    assert found.apart == pytest.approx(apart, rel=1e-12)
    assert found.rest == pytest.approx(rest, rel=1e-12)


def average_beyond(law, failure, largest):
    """The logarithm of the average of exp(a Q) beyond its quantile, divided by a."""
    at = law.quantile(failure)

    def grown(u):
        return math.exp(largest * u) * float(law.tail(np.array(at + u)))

    beyond = integrate.quad(grown, 0.0, 36.0, epsabs=0.0, epsrel=1e-11, limit=200)[0]
    return at + math.log1p(largest * beyond / failure) / largest


@pytest.mark.parametrize("largest", [0.2, 3.0, 19.0])
@pytest.mark.parametrize("law", [Chi(1), Chi(400), Spread(4), Across(3)], ids=str)
def test_what_the_noise_is_on_average_beyond_is_an_integral_to_its_end(law, largest):
    """The integrand may be largest far out: at the length of many normals, and the multiple of the noise."""
    for failure in (0.3, 1e-9):
        wanted = average_beyond(law, failure, largest)
        assert conditional_quantile(law, failure, largest) == pytest.approx(wanted, rel=1e-9)


def test_at_corners_the_noise_of_a_whole_release_is_what_it_is_on_average_beyond():
    free = release_of("leverage")
    corners = Corners(np.full(D, 0.01), np.full(D, -np.inf), np.full(D, np.inf))
    release = replace(free, corners=corners)
    steep = NORM / SIGMAS["sigma"]
    curved = math.hypot(BETA / math.sqrt(2.0) / SIGMAS["sigma_hessian"] + 2.0 * ERROR, SOLVER)
    for law, rows, parts, weight in ((None, 1, 1.0, 1), (Across(3), 3, 2.0, 3)):
        ellipse = Across(2, ellipse_stretch(free.plan)) if law is None else Across(4)
        stretch = 1.0 if law is None else ellipse.stretch
        largest = parts * weight * math.hypot(stretch * steep, ellipse.stretch * curved)
        found = whole_noise(release, Scope(5), 0.05, law, rows, parts)
        wanted = average_beyond(ellipse, 0.01, largest)
        assert found.model == pytest.approx(wanted, rel=1e-8)
        assert found.statistics == pytest.approx(ellipse.stretch * wanted, rel=1e-8)
        assert (found.apart, found.rest) == (False, 0.0)
    every = whole_noise(release, Scope("all"), 0.05, parts=2.0)
    assert every.model == pytest.approx(average_beyond(Chi(D), 0.025, 4.0 * steep), rel=1e-8)
    assert every.statistics == pytest.approx(average_beyond(Chi(10 + D), 0.025, 4.0 * curved), rel=1e-8)
    assert (every.apart, every.rest) == (True, 0.0)


def test_at_corners_what_printing_changes_is_paid_besides_the_noise():
    """A share of 1/1024 of the failure is for the solver's error; steepness and curvatures change too."""
    corners = Corners(np.full(D, 0.01), np.full(D, -np.inf), np.full(D, np.inf))
    release = replace(release_of("independent"), corners=corners)
    drift, share = Drift(curvature=0.02, slope=0.25), 2.0**-10
    for law, weight, parts, scope in ((None, 1, 1.0, 5), (Across(3, 1.5), 3, 2.0, 5), (None, 2, 2.0, "all")):
        along, error = (Chi(D), Chi(D)) if scope == "all" else (law or Chi(1), Chi(1))
        stretch, each = 1.0 if law is None else 1.5, 0.05 / (1 if scope == "all" else scope)
        largest = parts * weight * stretch * NORM / SIGMAS["sigma"] / (1.0 - share)
        reach = average_beyond(along, (1.0 - share) * each, largest)
        # The solver's multiple is above 20, where the average is bounded in closed form.
        steep = parts * SOLVER / share
        solver = math.sqrt(error.freedom) + 0.5 * steep - math.log(share * each) / steep
        slope = 0.25 * stretch
        rest = SOLVER * solver + reach * slope + 0.5 * (slope**2 + SOLVER**2)
        rest += 2.0 * 0.02 * weight * BETA / L2
        found = noise_factors(release, Scope(scope), 0.05, drift, law, weight, parts)
        assert found.norm == pytest.approx(reach, rel=1e-8)
        assert (found.norm1, found.slope) == (None, slope)
        assert found.rest == pytest.approx(rest, rel=1e-8)


def test_at_corners_numbers_that_are_real_have_nothing_to_pay_besides_the_noise():
    corners = Corners(np.full(D, 0.01), np.full(D, -np.inf), np.full(D, np.inf))
    release = replace(release_of("independent", precision=None), corners=corners)
    found = noise_factors(release, Scope(5), 0.05, NO_DRIFT)
    largest = NORM / SIGMAS["sigma"] / (1.0 - 2.0**-10)
    assert found.norm == pytest.approx(average_beyond(Chi(1), 0.01, largest), rel=1e-8)
    assert (found.norm1, found.slope, found.rest) == (None, 0.0, 0.0)


def test_at_corners_known_and_forgotten_rows_have_half_of_the_noise_each():
    """Half of the failure and of the noise is for each, and of the latter each of the rows has its part."""
    corners = Corners(np.full(D, 0.01), np.full(D, -np.inf), np.full(D, np.inf))
    release = replace(release_of("independent"), corners=corners)
    drift, (records, rows, slope, curvature) = Drift.of(release), some_records(release)
    norm = np.linalg.norm(rows, axis=1)
    length, sigma = np.abs(slope) * norm, SIGMAS["sigma"]
    determinant = np.log1p(curvature * norm**2 / L2) + 3.0 * math.log1p(0.5 * BETA / L2)
    quadratic = 0.5 * ((length + 1.5 * NORM) / sigma) ** 2
    one = noise_factors(release, Scope(None), 0.025, drift, parts=2.0)
    other = noise_factors(release, Scope(None), 0.025 / 3.0, drift, parts=3.0)
    product = (one.norm * length + one.slope * length + other.norm * 1.5 * NORM) / sigma + one.rest
    found = TightReader(release, 0.05, Scope(None), forgotten=Forgotten(3, 0.5)).read(records, (True,))
    np.testing.assert_allclose(found.upper, determinant + quadratic + product, rtol=1e-9)
    np.testing.assert_array_equal(found.total, found.upper)
    alone = noise_factors(release, Scope(None), 0.05, drift, None, 1, 1.0)
    product = (alone.norm + alone.slope) * length / sigma + alone.rest
    expected = np.log1p(curvature * norm**2 / L2) + 0.5 * (length / sigma) ** 2 + product
    found = TightReader(release, 0.05, Scope(None)).read(records, (True,))
    np.testing.assert_allclose(found.upper, expected, rtol=1e-9)


def test_where_a_weight_or_a_row_is_unknown_nothing_is_known_below():
    """A surprising record has surely lost something, but not if it may weigh nothing, or rows are missing."""
    release = release_of("leverage")
    records = linear_records(np.eye(D), np.full(D, 60.0), np.full(D, 0.1))
    reader = TightReader(release, 0.05, Scope(None))
    for member in (True, False):
        assert np.all(reader.read(records, (member,)).lower > 100.0)
        assert np.all(replace(reader, weights_at_most=True).read(records, (member,)).lower == 0.0)
        assert np.all(replace(reader, forgotten=Forgotten(1, 1.0)).read(records, (member,)).lower == 0.0)


def test_statistics_are_one_more_direction_of_a_person():
    found = whole_noise(release_of("leverage"), Scope(5), 0.05, Across(3))
    assert found.model == pytest.approx(Across(4).quantile(0.01), rel=1e-12)
    assert found.statistics == pytest.approx(2.0 * found.model, rel=1e-12)
    assert (found.apart, found.rest) == (False, 0.0)
    # A computed gradient has an error that need not lie along her rows.
    assert whole_noise(release_of("adaptive"), Scope(5), 0.05, Across(3)).rest == pytest.approx(16.2 * ERROR)


def test_forgotten_rows_add_to_a_total_what_their_theorem_says():
    """The squares of theorem 15.3, and the noise along the gradient and along the other statistics."""
    release, some = release_of("adaptive"), Forgotten(3, 0.5)
    known = whole_parts(release, some_records(release)[0], Drift.of(release))
    steep = 1.5 * NORM * math.hypot(1.0 / SIGMAS["sigma"], 1.0 / SIGMAS["sigma_gradient"])
    curved = (
        1.5 * BETA * math.hypot(math.sqrt(0.5) / SIGMAS["sigma_hessian"], 1.0 / SIGMAS["sigma_eigenvalue"])
    )
    squares = 0.5 * ((known.moved + steep) ** 2 - known.moved**2)
    squares += 0.5 * ((known.curved + curved) ** 2 - known.curved**2)
    for scope in (Scope(4), Scope("all")):
        noise = whole_noise(release, scope, 0.05 / 3)
        reached = noise.model * steep, noise.statistics * curved
        more = sum(reached) if noise.apart else math.hypot(*reached)
        np.testing.assert_allclose(some.whole(release, known, scope, 0.05), squares + more, rtol=1e-12)


def test_forgotten_rows_widen_the_third_term_to_both_sides():
    """By their length together, and the noise along each of them with its share of the failure."""
    release, some = release_of("adaptive"), Forgotten(3, 0.5)
    known, drift = Interval(np.array([-1.0, 0.25]), np.array([2.0, 0.5])), Drift.of(release)
    reached = noise_factors(release, Scope(4), 0.05 / 3, drift, parts=3.0).norm
    more = 1.5 * NORM * reached / SIGMAS["sigma"]
    found = some.product(release, known, Scope(4), 0.05, drift)
    np.testing.assert_allclose((found.low, found.high), (known.low - more, known.high + more), rtol=1e-12)


def test_quantiles_are_widened_by_the_noise_of_the_output():
    release = release_of("adaptive")
    drift, plan, failure = Drift.of(release), release.plan, 0.05
    share = failure / 1024.0
    quantile, rest = stats.norm.isf(0.5 * (failure - share) / 9), stats.norm.isf(0.5 * share / 9) + 2.0**-10
    got = reach_factors(Scope(9), failure, D, drift, plan.loss)
    assert got.norm == pytest.approx(quantile + drift.tilt * rest, rel=1e-9)
    assert (got.norm1, got.slope, got.rest) == (None, 0.0, 0.0)
    unit = math.hypot(SIGMAS["sigma"], SIGMAS["sigma_gradient"]) / SIGMAS["sigma_gradient"]
    measured = gradient_factors(Scope(9), failure, D, drift, plan)
    assert measured.norm == pytest.approx(quantile + unit * drift.tilt * rest, rel=1e-9)
    got = reach_factors(Scope("all"), failure, D, drift, plan.loss)
    rest = drift.tilt * (stats.chi.isf(share, D) + 2.0**-10)
    assert got.norm == pytest.approx(stats.chi.isf(0.5 * (failure - share), D) + rest, rel=1e-9)
    tail = 0.5 * (1.0 - (1.0 - 0.5 * (failure - share)) ** (1.0 / D))
    assert got.norm1 == pytest.approx(stats.norm.isf(tail) + rest, rel=1e-9)


def test_at_corners_an_interval_is_that_of_the_noise_and_of_what_printing_changes():
    corners = Corners(np.full(D, 0.01), np.full(D, -np.inf), np.full(D, np.inf))
    release = replace(release_of("independent"), corners=corners)
    records, rows, slope, _ = some_records(release)
    length, drift = np.abs(slope) * np.linalg.norm(rows, axis=1), Drift(slope=0.25)
    factors = noise_factors(release, Scope(None), 0.02, drift, None, 1, 1.0)
    width = (factors.norm + 0.25) * length / SIGMAS["sigma"] + factors.rest
    for member in (True, False):
        shares = Shares(0.0, 0.0, 0.0, 0.0, 0.02)
        found = inner_product(release, records, shares, Scope(None), drift, member=member)
        np.testing.assert_allclose((found.low, found.high), (-width, width), rtol=1e-12)


@pytest.mark.parametrize("member", [True, False])
def test_intervals_that_miss_each_other_are_both_covered(member):
    """Of the noisy gradient and of the noise alone; such a gradient is far from what noise can make of it."""
    release = release_of("adaptive", precision=None)
    release = replace(release, gradient=1e4 * release.gradient)
    records, rows, slope, _ = some_records(release)
    sigma, second = SIGMAS["sigma"], SIGMAS["sigma_gradient"]
    steep, whole = np.abs(slope) * np.linalg.norm(rows, axis=1), math.hypot(sigma, second)
    centre = (-1.0 if member else 1.0) * slope * (rows @ release.gradient) / whole**2
    width = steep * stats.norm.isf(0.01) / sigma
    narrow = steep * stats.norm.isf(0.02) * second / (sigma * whole)
    assert np.all(np.abs(centre) > width + narrow)
    assert np.any(centre > 0.0)
    assert np.any(centre < 0.0)
    shares = Shares(0.0, 0.0, 0.0, 0.04, 0.02)
    found = inner_product(release, records, shares, Scope(None), NO_DRIFT, member=member)
    np.testing.assert_allclose(found.low, np.minimum(centre - narrow, -width), rtol=1e-9)
    np.testing.assert_allclose(found.high, np.maximum(centre + narrow, width), rtol=1e-9)


def test_the_determinant_pays_for_the_change_of_the_hessian():
    release = release_of("adaptive")
    drift, shares = Drift.of(release), Shares(0.05, 0.05, 0.05, 0.0, 0.0)
    one = Determinant(release, shares, Scope(None), drift)
    values, sigma = np.diag(release.hessian), SIGMAS["sigma_hessian"]
    lowered = values - (math.sqrt(2.0) * stats.norm.isf(0.05) + ERROR) * sigma
    np.testing.assert_allclose(one.public.values, lowered - drift.curvature * np.abs(lowered), rtol=1e-9)
    eigenvalue = 2.1 - (stats.norm.isf(0.05) + ERROR) * SIGMAS["sigma_eigenvalue"]
    assert one.adaptive is not None
    assert one.adaptive.floor == pytest.approx(max(L2, eigenvalue * (1.0 - drift.curvature)), rel=1e-9)
    large = Determinant(replace(release, eigenvalue=9.0), shares, Scope(None), drift).adaptive
    assert large is not None
    assert large.floor == pytest.approx((eigenvalue + 6.9) * (1.0 - drift.curvature), rel=1e-9)
    raised = values + (goe_quantile(D, 0.05) + ERROR) * sigma
    assert one.upper is not None
    np.testing.assert_allclose(one.upper.values, raised * (1.0 + drift.curvature), rtol=1e-9)
    records = some_records(release)[0]
    reader = TightReader(release, 0.05, Scope(None))
    ends = reader.determinant.bound(records, member=True)
    np.testing.assert_allclose(
        reader.determinant_size(ends), ends.high * (1.0 + 2.0 * drift.curvature), rtol=1e-14
    )
