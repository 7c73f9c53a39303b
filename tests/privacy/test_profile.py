import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from grids import grid
from scipy.integrate import simpson
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr
from scipy.stats import chi, norm

from expost import LogisticLoss, PseudoHuber, SmoothedHinge, SquaredLoss, calibrate, gaussian
from expost.exceptions import CalibrationError, ParameterError
from expost.losses.base import DerivativeCurve
from expost.privacy.excess import Tangent
from expost.privacy.precision import REAL, Rounding
from expost.privacy.profile import _ADDING, _REMOVING, Noise, PrivacyProfile, WorstSlope, expectation
from expost.privacy.scales import NoiseScales

LOGISTIC = LogisticLoss().curve
SOFT = LogisticLoss(soft=True).curve
HUBER = PseudoHuber().curve
BOX = DerivativeCurve(
    max_slope=1.0, curvature=lambda slope: np.full_like(slope, 0.25), peak=1.0, sign_fixed=False
)
SOFTMAX_LIKE = DerivativeCurve(
    max_slope=math.sqrt(2.0),
    curvature=lambda m: np.full_like(m, 0.5),
    peak=0.0,
    sign_fixed=False,
    outputs=4,
    rank=3,
)
MODEL = {"sigma": 4.6}
HESSIAN = {"sigma": 4.309, "sigma_hessian": 0.970}
# κ(m)/m rises up to m = 1/2, while κ(m)/m² does not: with statistics only the supremum inside is proved.
BENT = DerivativeCurve(
    max_slope=1.0,
    curvature=lambda m: np.where(m <= 0.5, m**2, (1.0 - m) / 2.0),
    peak=0.5,
    sign_fixed=True,
)
EVERYTHING = {"sigma": 6.5, "sigma_gradient": 8.0, "sigma_hessian": 2.0, "sigma_eigenvalue": 3.0}

# curve, l2, epsilon, scales: chosen so that delta runs from one half to 1e-80.
CASES = [
    (LOGISTIC, 0.5, 1.0, MODEL),
    (LOGISTIC, 5.0, 0.1, {"sigma": 41.84}),
    (LOGISTIC, 0.01, 1.0, MODEL),
    (LOGISTIC, 5.0, 1.0, HESSIAN),
    (LOGISTIC, 0.5, 1.0, EVERYTHING),
    (LOGISTIC, 0.5, 10.0, {"sigma": 0.5, "sigma_gradient": 1.0}),
    (LOGISTIC, 2.0, 0.0, EVERYTHING),
    (LOGISTIC, math.inf, 6.0, {"sigma": 1.0, "sigma_eigenvalue": 0.1}),
    (SmoothedHinge(0.5).curve, 2.0, 1.0, {"sigma": 5.0, "sigma_hessian": 3.0}),
    (BOX, 0.5, 1.0, {"sigma": 6.855}),
    (BOX, 5.0, 1.0, EVERYTHING),
    (SOFT, 5.0, 1.0, {"sigma": 4.7, "sigma_hessian": 2.0}),
    (HUBER, 5.0, 1.0, {"sigma": 6.5}),
    (HUBER, 5.0, 1.0, {"sigma": 6.5, "sigma_gradient": 8.0, "sigma_hessian": 2.0}),
    (HUBER, math.inf, 0.5, {"sigma": 5.0}),
    (BENT, 1.0, 1.0, {"sigma": 4.6}),
    (BENT, 1.0, 1.0, {"sigma": 4.6, "sigma_hessian": 0.8}),
    (replace(BENT, sign_fixed=False), 1.0, 1.0, {"sigma": 4.6, "sigma_hessian": 0.8}),
    (SOFTMAX_LIKE, 4.0, 2.0, {"sigma": 5.0}),
    (SOFTMAX_LIKE, 4.0, 2.0, {"sigma": 5.0, "sigma_gradient": 9.0, "sigma_hessian": 4.0}),
]


def dense(profile: PrivacyProfile, epsilon: float) -> float:
    """The expressions of docs/mathematics.md, section 6, by brute force and without the module's code."""
    curve, norm_ = profile.curve, profile.norm
    slopes = np.unique(np.append(np.linspace(0.0, curve.max_slope, 1501), curve.peak))
    curvature = curve.curvature(slopes) * norm_**2
    shift2 = np.zeros_like(slopes)
    if profile.scales.sigma_gradient:
        shift2 += (slopes * norm_ / profile.scales.sigma_gradient) ** 2
    if profile.scales.sigma_hessian:
        shift2 += curve.rank * curvature**2 / (2.0 * profile.scales.sigma_hessian**2)
    if profile.scales.sigma_eigenvalue:
        shift2 += (curvature / profile.scales.sigma_eigenvalue) ** 2
    shift = np.sqrt(shift2)
    rate = slopes * norm_ / profile.scales.sigma

    def integrand(noise, log_term):
        left = epsilon - log_term - 0.5 * rate**2 - rate * noise[:, None]
        value = np.maximum(0.0, -np.expm1(np.minimum(left, 0.0)))
        some = shift > 0.0
        s, e = shift[some], left[:, some]
        value[:, some] = ndtr(s / 2.0 - e / s) - np.exp(e + log_ndtr(-s / 2.0 - e / s))
        return value.max(axis=1)

    def expectation(density, low, high, log_term):
        # The integrand times the density has one peak: find it on a coarse grid, then use a fine one.
        for _ in range(3):
            coarse = np.linspace(low, high, 401)
            product = integrand(coarse, log_term) * density(coarse)
            kept = np.flatnonzero(product > 1e-7 * product.max())
            low, high = coarse[max(kept[0] - 1, 0)], coarse[min(kept[-1] + 1, 400)]
        fine = np.linspace(low, high, 2001)
        return simpson(integrand(fine, log_term) * density(fine), x=fine)

    log_term = curve.rank * np.log1p(curvature / profile.l2)
    if curve.outputs > 1:
        return expectation(chi(curve.outputs).pdf, 0.0, 30.0, log_term)
    if shift.any() and curve.curvature is BENT.curvature:
        adding = expectation(norm.pdf, -30.0, 30.0, log_term)
    else:
        together, e = np.hypot(rate, shift)[1:], (epsilon - log_term)[1:]
        adding = np.max(
            ndtr(together / 2.0 - e / together) - np.exp(e + log_ndtr(-together / 2.0 - e / together))
        )
    zero = np.zeros_like(slopes)
    if curve.sign_fixed:
        return max(adding, expectation(norm.pdf, -30.0, 30.0, zero))
    return max(adding, expectation(lambda x: 2.0 * norm.pdf(x), 0.0, 30.0, zero))


@pytest.mark.parametrize(("curve", "l2", "epsilon", "scales"), CASES)
def test_bracket_contains_a_dense_quadrature_and_is_narrow(curve, l2, epsilon, scales):
    profile = PrivacyProfile(curve, norm=1.0, l2=l2, scales=NoiseScales(**scales))
    lower, upper = profile.delta(epsilon)
    truth = dense(profile, epsilon)
    assert 0.0 < lower <= upper <= 1.0
    assert upper - lower <= 1e-3 * upper
    assert lower * (1.0 - 3e-5) <= truth <= upper * (1.0 + 3e-5)


@pytest.mark.parametrize("rtol", [0.3, 1e-2, 1e-4])
def test_bracket_holds_at_every_tolerance(rtol):
    profile = PrivacyProfile(LOGISTIC, norm=1.0, l2=0.5, scales=NoiseScales(**MODEL))
    lower, upper = profile.delta(1.0, rtol=rtol)
    assert upper - lower <= rtol * upper
    reference = profile.delta(1.0, rtol=1e-5)
    assert lower <= reference.upper
    assert reference.lower <= upper


@pytest.mark.parametrize(
    ("curve", "l2", "epsilon", "expected", "digits"),
    [
        (LOGISTIC, 0.5, 1.0, 4.5758, 4),
        (LOGISTIC, 0.3, 1.0, 5.9897, 4),
        (LOGISTIC, 0.2, 1.0, 10.842, 3),
        (LOGISTIC, 5.0, 1.0, 4.2247, 4),
        (LOGISTIC, 5.0, 0.1, 41.81, 2),
        (BOX, 0.5, 1.0, 6.8546, 4),
        (BOX, 5.0, 1.0, 4.4254, 4),
    ],
)
def test_noise_of_the_model_alone_is_the_reference(curve, l2, epsilon, expected, digits):
    def excess(sigma):
        profile = PrivacyProfile(curve, norm=1.0, l2=l2, scales=NoiseScales(sigma))
        return math.log(profile.delta(epsilon).upper / 1e-6)

    assert round(brentq(excess, 0.9 * expected, 1.1 * expected, xtol=1e-6), digits) == expected


@pytest.mark.parametrize(
    ("scales", "expected"), [({"sigma": 4.309}, 0.970), ({"sigma": 6.094, "sigma_gradient": 6.094}, 0.952)]
)
def test_noise_of_the_hessian_is_the_reference(scales, expected):
    def excess(sigma_hessian):
        noise = NoiseScales(sigma_hessian=sigma_hessian, **scales)
        profile = PrivacyProfile(LOGISTIC, norm=1.0, l2=5.0, scales=noise)
        return math.log(profile.delta(1.0).upper / 1e-6)

    assert round(brentq(excess, 0.9 * expected, 1.1 * expected, xtol=1e-5), 3) == expected


def slopes_of(profile: PrivacyProfile, l2: float, epsilon: float) -> WorstSlope:
    """One direction of the profile: a record is added, or removed where l2 is infinite."""
    return WorstSlope(profile.curve, profile.norm, l2, profile.scales, profile.rounding, epsilon)


def test_a_plan_with_a_hessian_has_the_two_directions_of_the_reference():
    """Adding attains what real tables attain (test_certificate); removing is the larger one."""
    scales = NoiseScales(4.26760, sigma_hessian=1.11128)
    profile = PrivacyProfile(LOGISTIC, norm=1.0, l2=5.0, scales=scales)
    assert slopes_of(profile, 5.0, 1.0).worst_fixed(1e-8).upper == pytest.approx(8.106e-7, rel=1e-4)
    removing = expectation(slopes_of(profile, math.inf, 1.0), Noise(1, signed=True), 1e-4)
    assert removing.upper == pytest.approx(8.750e-7, rel=1e-4)
    assert profile.delta(1.0, rtol=1e-4).upper == pytest.approx(removing.upper, rel=1e-4)


@pytest.mark.parametrize("curve", [LOGISTIC, SOFT, HUBER, BOX, SmoothedHinge(0.5).curve])
def test_two_slopes_change_places_once_as_the_noise_rises(curve):
    """The lemma of section 6 on random pairs of slopes, with and without the price of printed numbers."""
    random = np.random.default_rng(0)
    noise = np.linspace(-12.0, 12.0, 4001)
    for _ in range(40):
        scales = NoiseScales(*np.exp(random.uniform(-1.0, 2.5, 4)))
        rounding = Rounding.planned(1.0, curvature=0.25) if random.random() < 0.5 else REAL
        l2, epsilon = np.exp(random.uniform(-1.5, 3.0)), random.uniform(0.0, 4.0)
        profile = PrivacyProfile(curve, norm=1.0, l2=l2, scales=scales, rounding=rounding)
        low, high = np.sort(random.uniform(-1.0, 1.0, 2))
        if curve.sign_fixed:
            low, high = sorted((abs(low), abs(high)))
        values = [
            slopes_of(profile, l2, epsilon).bound(np.sign(v) * noise, np.abs([v]), np.abs([v]))
            for v in (low, high)
        ]
        # Equal values, near 0 and 1, carry no sign.
        apart = (values[1] - values[0])[np.abs(values[1] - values[0]) > 1e-13]
        signs = np.sign(apart)
        assert np.all(np.diff(signs) >= 0.0)


@pytest.mark.parametrize("scales", [{"sigma": 4.6}, {"sigma": 4.6, "sigma_hessian": 1.2}])
@pytest.mark.parametrize("curve", [LOGISTIC, HUBER])
def test_no_slope_that_falls_with_the_noise_beats_a_constant_one(curve, scales):
    """A dynamic programme over all non-increasing slopes, on grids of noise and slopes."""
    l2, epsilon = 1.2, 1.0
    profile = PrivacyProfile(curve, norm=1.0, l2=l2, scales=NoiseScales(**scales))
    edges = np.linspace(-8.0, 8.0, 1601)
    mass, middle = np.diff(ndtr(edges)), 0.5 * (edges[:-1] + edges[1:])
    levels = np.linspace(0.0 if curve.sign_fixed else -1.0, 1.0, 201)
    gain = slopes_of(profile, l2, epsilon).bound(
        np.sign(levels)[:, None] * middle, np.abs(levels)[:, None], np.abs(levels)[:, None]
    )
    best = np.zeros(len(levels))
    for column in (gain * mass).T:  # slopes fall from one value of the noise to the next
        best = np.maximum.accumulate(best[::-1])[::-1] + column
    constant = (gain @ mass).max()
    assert best.max() <= (1.0 + 1e-9) * constant
    assert constant == pytest.approx(slopes_of(profile, l2, epsilon).worst_fixed(1e-8).upper, rel=1e-3)


@pytest.mark.parametrize("curve", [LOGISTIC, SOFT, HUBER, BOX])
def test_the_closed_form_is_at_most_the_supremum_inside_and_tight(curve):
    for scales in (MODEL, HESSIAN, EVERYTHING):
        profile = PrivacyProfile(curve, norm=1.0, l2=2.0, scales=NoiseScales(**scales))
        added = slopes_of(profile, 2.0, 1.0)
        lower, upper = added.worst_fixed(1e-7)
        assert upper <= (1.0 + 2e-7) * lower
        assert upper <= expectation(added, Noise(1, signed=True), 1e-3).upper


def test_the_removal_of_a_record_from_a_model_alone_has_a_closed_form():
    for curve, epsilon, sigma in [
        (LOGISTIC, 1.0, 4.0),
        (HUBER, 1.0, 4.0),
        (HUBER, 0.1, 0.5),
        (HUBER, 0.0, 2.0),
    ]:
        for rounding in (REAL, Rounding(solver=0.01)):
            profile = PrivacyProfile(curve, norm=1.0, l2=1.0, scales=NoiseScales(sigma), rounding=rounding)
            removed = slopes_of(profile, math.inf, epsilon)
            lower, upper = removed.steepest()
            assert type(lower) is type(upper) is float
            for rtol in (0.3, 1e-6):
                bracket = expectation(removed, Noise(1, signed=curve.sign_fixed), rtol)
                assert lower <= bracket.upper
                assert bracket.lower <= upper <= (1.0 + 1e-3) * bracket.upper
    # At an epsilon of 0 the steepest slope has a value for half of the noise, and slope 0 for the other half.
    removed = slopes_of(PrivacyProfile(LOGISTIC, 1.0, 1.0, NoiseScales(2.0)), math.inf, 0.0)
    bracket = expectation(removed, Noise(1, signed=True), 0.3)
    assert bracket.lower <= float(gaussian.delta(0.0, sensitivity=0.5, sigma=1.0)) <= bracket.upper


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("curve", [LOGISTIC, HUBER], ids=["fixed", "free"])
def test_the_solver_is_paid_for_whatever_slope_a_removed_record_has(curve, epsilon):
    """E max(value at the largest slope, value at slope 0): values are convex in the slope."""
    sigma, solver = 4.0, 0.3
    noise = np.linspace(-9.0 if curve.sign_fixed else 0.0, 9.0, 20001)
    left = epsilon - 0.5 / sigma**2 - noise / sigma
    steep, none = (np.maximum(profile_of_a_shift(at, solver), 0.0) for at in (left, np.full(1, epsilon)))
    density = norm.pdf(noise) * (1.0 if curve.sign_fixed else 2.0)
    truth = simpson(np.maximum(steep, none) * density, x=noise)
    profile = PrivacyProfile(curve, 1.0, 1.0, NoiseScales(sigma), Rounding(solver=solver))
    assert truth * (1.0 - 1e-6) <= profile.removing(epsilon, 1e-3).upper <= 1.6 * truth


def profile_of_a_shift(left, shift):
    """The Gaussian mechanism's delta at any epsilon, which may be negative."""
    return ndtr(shift / 2.0 - left / shift) - np.exp(left + log_ndtr(-shift / 2.0 - left / shift))


@pytest.mark.parametrize(("freedom", "signed"), [(1, False), (1, True), (2, False), (9, False)])
def test_the_law_of_the_noise_is_cut_into_cells(freedom, signed):
    """Masses, quantiles and tails of SciPy, and each cell's mean of v = exp(-rate noise) by quadrature."""
    noise, law = Noise(freedom, signed), norm() if signed else chi(freedom)
    for tail in (0.3, 1e-3, 1e-12):
        assert noise.quantile(tail) == pytest.approx(law.isf(tail), rel=1e-9)
    for at in (0.5, 2.0):
        beyond = np.linspace(at, at + 12.0, 4001)
        assert noise.overshoot(at) == pytest.approx(simpson(law.sf(beyond), x=beyond), rel=1e-8)
    edges = np.array([-1.5, -0.4, 0.0, 0.3, 1.0, 2.7] if signed else [0.0, 0.3, 1.0, 2.7])
    rate = np.linspace(0.2, 3.0, len(edges) - 1)
    mass, mean, chord = noise.cells(edges, rate)
    np.testing.assert_allclose(mass, np.diff(law.cdf(edges)), rtol=1e-9)
    for place, (low, high) in enumerate(pairwise(edges.tolist())):
        inside, r = np.linspace(low, high, 2001), rate[place]
        average = simpson(np.exp(-r * (inside - low)) * law.pdf(inside), x=inside) / mass[place]
        exact, share = low - math.log(average) / r, (1.0 - average) / -math.expm1(-r * (high - low))
        # The mean lies above v at the mean noise and below the chord there.
        assert low <= mean[place] <= exact + 1e-9
        assert share - 1e-9 <= chord[place] <= 1.0
        middle = simpson((inside - low) * law.pdf(inside), x=inside) / mass[place]
        fall = math.expm1(-r * (high - low))
        assert mean[place] == pytest.approx(low - math.log1p(middle / (high - low) * fall) / r)
        assert chord[place] == pytest.approx(math.expm1(-r * middle) / fall)


def test_the_mean_of_a_cell_lies_in_it_however_wide_the_cell():
    """Rounding puts the mean noise at the upper edge of the first cell, where v is 0 in doubles."""
    edges = np.array([-1e17, -1.0, 0.0, 50.0])
    _, mean, chord = Noise(1, signed=True).cells(edges, np.ones(3))
    assert np.all((edges[:-1] <= mean) & (mean <= edges[1:]))
    assert np.all((chord >= 0.0) & (chord <= 1.0))


@pytest.mark.parametrize("curve", [LOGISTIC, HUBER, BENT, LOGISTIC.scaled(3.0)])
def test_a_cell_of_slopes_is_bounded_by_its_ends(curve):
    """At any noise, its sign included; so are expectations and divergences at fixed slopes."""
    rng = np.random.default_rng(7)
    for scales in (NoiseScales(1.5), NoiseScales(1.5, 2.0, 0.5, 0.7)):
        slopes = slopes_of(PrivacyProfile(curve, 1.5, 0.8, scales), 0.8, 0.5)
        ends = np.sort(curve.max_slope * rng.random((2, 60)) ** rng.integers(1, 4, 60), axis=0)
        inside = np.linspace(*ends, 15)
        for noise in (-2.0, -0.5, -1e-3, 0.0, 1e-3, 0.3, 0.8, 1.5):
            at = np.full(60, noise)
            assert np.all(
                slopes.bound(at, inside, inside) <= slopes.bound(at, *ends) * (1.0 + 1e-12) + 1e-300
            )
        fixed = slopes.fixed_bound(at, inside, inside)
        assert np.all(fixed <= slopes.fixed_bound(at, *ends) * (1.0 + 1e-12))
        for sums in (_ADDING, _REMOVING):
            order = np.full(60, 1.7)
            found = slopes.divergence(sums, order, inside, inside)
            assert np.all(found <= slopes.divergence(sums, order, *ends) * (1.0 + 1e-12))


@pytest.mark.parametrize("l2", [0.3, 2.0])
def test_divergences_are_the_largest_over_all_slopes(l2):
    """On a fine grid, by the formulas of section 17 for one eigenvalue."""
    orders, slopes = np.array([1.2, 2.0, 9.0])[:, None], np.linspace(0.0, 1.0, 20001)
    profile = PrivacyProfile(LOGISTIC, 1.0, l2, NoiseScales(4.0, sigma_hessian=1.0))
    bend = slopes * (1.0 - slopes)
    square = 0.5 * orders * ((slopes / 4.0) ** 2 + bend**2 / 2.0)
    added = (orders * np.log1p(bend / l2) - np.log1p(orders * bend / l2)) / (orders - 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        taken = np.log(1.0 - (orders - 1.0) * bend / l2) / (orders - 1.0)
    removed = np.where((orders - 1.0) * bend < l2, -np.log1p(bend / l2) - taken, np.inf)
    found = profile.divergences(orders[:, 0])
    for name, more in (("adding", added), ("removing", removed)):
        exact = (square + more).max(axis=1)
        assert np.all(exact <= found[name] * (1.0 + 1e-9))
        assert np.all(found[name] <= exact * (1.0 + 2e-5))


def test_a_supremum_between_the_slopes_of_the_grid_is_found():
    """Spikes of height 1 and 2 for two noises, narrower than the first cells, on a slope of 0.5."""
    places, heights = np.array([0.2357, 0.7131]), np.array([1.0, 2.0])

    def bound(noise, low, high):
        assert np.all(low <= high)
        own = (noise > 0.0).astype(int)
        nearest = np.clip(places[own], low, high)
        return heights[own] - 40.0 * np.abs(nearest - places[own]) + 0.5 * nearest

    exact = heights + 0.5 * places
    slopes = slopes_of(PrivacyProfile(LOGISTIC, 1.0, 1.0, NoiseScales(1.0)), 1.0, 1.0)
    for rtol in (1e-1, 1e-4):
        upper, best, lower = slopes.supremum(bound, np.array([-1.0, 1.0]), rtol, np.array([0.0]))
        assert np.all(lower <= exact)
        assert np.all(exact <= upper)
        assert np.all(upper <= lower * (1.0 + rtol) + 1e-12)
        np.testing.assert_allclose(best, places, atol=rtol / 10.0)
        np.testing.assert_allclose(bound(np.array([-1.0, 1.0]), best, best), lower, rtol=1e-12)
    # What a value of the floor needs, and no more.
    upper, _, lower = slopes.supremum(bound, np.array([-1.0, 1.0]), 0.01, np.array([100.0]))
    assert np.all(lower <= exact)
    assert np.all(exact <= upper)
    assert np.all(upper <= lower + 1.0)


@pytest.mark.parametrize("rtol", [0.9, 1e-3])
def test_noise_is_cut_at_rising_edges_and_slopes_are_those_of_records(rtol, monkeypatch):
    """Also where the tail is so large that few deviations are left; zero is an edge."""
    cells, bound = Noise.cells, WorstSlope.bound

    def checked_cells(self, edges, rate):
        assert np.all(np.diff(edges) > 0.0)
        assert 0.0 in edges
        return cells(self, edges, rate)

    def checked_bound(self, noise, low, high):
        assert np.all((low >= 0.0) & (low <= high) & (high <= self.curve.max_slope))
        return bound(self, noise, low, high)

    monkeypatch.setattr(Noise, "cells", checked_cells)
    monkeypatch.setattr(WorstSlope, "bound", checked_bound)
    profile = PrivacyProfile(LOGISTIC, 1.0, 0.5, NoiseScales(0.3, sigma_hessian=1.0))
    assert profile.removing(0.1, rtol).upper > 0.8


@pytest.mark.parametrize("curve", [LOGISTIC, HUBER, SOFTMAX_LIKE])
def test_noise_beyond_the_last_edge_counts(curve):
    """Where hardly any noise is added everything is lost, at any tolerance."""
    scales = NoiseScales(1e-3, sigma_gradient=1e-3)
    for tolerance in (0.3, 0.01):
        profile = PrivacyProfile(curve, 1.0, math.inf, scales)
        assert profile.removing(0.0, tolerance).upper == profile.adding(0.0, tolerance).upper == 1.0


@pytest.mark.parametrize("rtol", [0.3, 1e-2])
def test_a_person_s_loss_goes_on_rising_beyond_the_last_edge(rtol):
    """The tangent of |N| at the steepest slope is linear, so that its chords are exact."""
    profile = PrivacyProfile(HUBER, 1.0, 5.0, NoiseScales(2.0), unit="person")
    slopes = replace(slopes_of(profile, math.inf, 0.1), excess=Tangent(0.05))
    exact = slopes.steepest().lower
    assert 0.4 < exact < 0.6
    upper = expectation(slopes, Noise(1, signed=False), rtol).upper
    assert exact <= upper <= exact * (1.0 + 2e-4 * rtol)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("cap", [0.5, 0.7, 1.0])
@pytest.mark.parametrize("l2", [0.3, 2.0])
def test_a_capped_slope_needs_the_noise_of_the_gaussian_mechanism_and_no_more(cap, epsilon, l2):
    """If κ₀/(1 − θ) ≤ λε, then log(1 + κ(m)/λ) ≤ ε(1 − m/c), and δ_G(tε; tΔ) does not fall with t."""
    room = l2 * epsilon / cap
    corner = cap * min(1.0, ((1 + room) - math.sqrt((1 + room) ** 2 - 4 * cap * room)) / (2 * cap))
    steep = corner * (1.0 - corner)

    def curvature(slope):
        above = steep * (cap - slope) / max(cap - corner, 1e-300)
        return np.where(slope <= corner, slope * (1.0 - slope), above)

    curve = DerivativeCurve(max_slope=cap, curvature=curvature, peak=min(corner, 0.5), sign_fixed=True)
    sigma = cap * gaussian.sigma(epsilon, 1e-6)
    profile = PrivacyProfile(curve, norm=1.0, l2=l2, scales=NoiseScales(sigma))
    assert 1e-6 * (1.0 - 1e-9) <= profile.delta(epsilon).upper <= 1e-6 * (1.0 + 4e-6)


@pytest.mark.parametrize("l2", [0.4, math.inf])
@pytest.mark.parametrize("curve", [LOGISTIC, HUBER, BENT, LOGISTIC.scaled(3.0)])
def test_below_any_noise_the_values_are_convex_at_its_rate(curve, l2):
    for epsilon, scales in [(1.0, HESSIAN), (1.0, EVERYTHING), (30.0, {"sigma": 0.2, "sigma_hessian": 0.05})]:
        profile = PrivacyProfile(curve, norm=1.0, l2=l2, scales=NoiseScales(**scales))
        record = slopes_of(profile, l2, epsilon)
        for top, rate in zip(noise := np.linspace(-6.0, 8.0, 29), record.rates(noise), strict=True):
            v = np.exp(-rate * (np.linspace(top - 0.5, top, 41) - top))
            slopes = np.linspace(0.0, curve.max_slope, 101)[:, None]
            values = record.bound(top - np.log(v) / rate, slopes, slopes)
            chords = np.diff(values, axis=1) / np.diff(v)
            slack = 1e-9 * (np.abs(chords[:, 1:]) + 1e-3)
            # v falls along the row, so that its chords' slopes may not rise.
            assert np.all(np.diff(chords, axis=1) <= slack)


@pytest.mark.parametrize("norm_", [0.2, 1.0, 7.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_without_the_determinant_it_is_the_gaussian_mechanism(norm_, epsilon):
    sigma = gaussian.sigma(epsilon, 1e-6, sensitivity=norm_)
    for l2 in (math.inf, 1e9 * norm_**2):
        profile = PrivacyProfile(LOGISTIC, norm=norm_, l2=l2, scales=NoiseScales(sigma))
        lower, upper = profile.delta(epsilon)
        assert lower <= 1e-6 * (1.0 + 1e-6)
        assert 1e-6 * (1.0 - 1e-9) <= upper <= 1e-6 * (1.0 + 1e-3)


def test_only_ratios_to_the_norm_matter():
    one = PrivacyProfile(LOGISTIC, norm=1.0, l2=2.0, scales=NoiseScales(5.0, 7.0, 2.0))
    two = PrivacyProfile(LOGISTIC, norm=3.0, l2=18.0, scales=NoiseScales(15.0, 21.0, 18.0))
    assert two.delta(1.0).upper == pytest.approx(one.delta(1.0).upper, rel=1e-9)
    assert two.rise == pytest.approx(one.rise) == pytest.approx(0.2)
    orders = np.array([1.5, 3.0, 20.0, 100.0])
    for unit in ("row", "person"):
        here, there = (replace(profile, unit=unit).divergences(orders) for profile in (one, two))
        # The trace, 1/8 of λ, is too large for people at the last order.
        assert math.isinf(here["adding"][-1]) == (unit == "person")
        for direction in ("adding", "removing"):
            np.testing.assert_allclose(there[direction], here[direction], rtol=1e-9)


@pytest.mark.parametrize("name", ["sigma", "sigma_gradient", "sigma_hessian", "sigma_eigenvalue", "l2"])
@pytest.mark.parametrize("curve", [LOGISTIC, HUBER, BOX])
def test_delta_falls_as_any_scale_grows(curve, name):
    profile = PrivacyProfile(curve, norm=1.0, l2=0.3, scales=NoiseScales(**EVERYTHING))
    if name == "l2":
        louder = replace(profile, l2=1.3 * profile.l2)
    else:
        louder = replace(profile, scales=replace(profile.scales, **{name: 1.3 * EVERYTHING[name]}))
    before, after = profile.delta(1.0, rtol=1e-4), louder.delta(1.0, rtol=1e-4)
    assert after.lower <= before.upper
    # For the pseudo-Huber curve the flat middle costs most, and there the gradient is zero.
    assert after.upper < before.lower or (curve is HUBER and name in ("sigma", "sigma_gradient"))


@pytest.mark.parametrize("rtol", [1e-2, 1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize(
    ("curve", "scales"),
    [
        (HUBER, {"sigma": 9.0, "sigma_hessian": 4.2}),
        (SOFT, {"sigma": 4.4, "sigma_hessian": 1.05}),
        (BENT, HESSIAN),
    ],
)
def test_a_finer_bracket_is_never_wider(curve, scales, rtol):
    """The rounds start coarse and the best of both ends is kept, so that a limit costs nothing."""
    profile = PrivacyProfile(curve, norm=1.0, l2=5.0, scales=NoiseScales(**scales))
    coarse, fine = profile.delta(1.0, rtol=0.1), profile.delta(1.0, rtol=rtol)
    assert fine.upper <= coarse.upper
    assert fine.lower >= coarse.lower
    assert fine.upper - fine.lower <= max(rtol, 3e-4) * fine.upper


@pytest.mark.long
@pytest.mark.parametrize(
    ("loss", "report", "delta"),
    grid(
        [LogisticLoss(), LogisticLoss(soft=True), SmoothedHinge(), PseudoHuber()],
        ["independent", "leverage", "dependent", "adaptive"],
        [1e-30, 1e-100],
    ),
    ids=str,
)
def test_a_tiny_delta_is_resolved_like_any_other(loss, report, delta):
    plan = calibrate(loss=loss, report=report, delta=delta)
    lower, upper = plan.profile.delta(1.0)
    assert upper - lower <= 1e-3 * upper
    assert 0.999 * delta <= upper <= delta


def test_delta_falls_with_epsilon_and_a_statistic_costs():
    profile = PrivacyProfile(LOGISTIC, norm=1.0, l2=2.0, scales=NoiseScales(**EVERYTHING))
    brackets = [profile.delta(epsilon) for epsilon in (0.0, 0.3, 1.0, 2.0, 4.0)]
    assert all(later.upper < earlier.lower for earlier, later in pairwise(brackets))
    alone = PrivacyProfile(LOGISTIC, norm=1.0, l2=2.0, scales=NoiseScales(sigma=EVERYTHING["sigma"]))
    assert alone.delta(1.0).upper < brackets[2].lower


@pytest.mark.parametrize("delta", [1e-290, 1e-12, 1e-6, 0.3])
@pytest.mark.parametrize(
    ("curve", "scales"), [(LOGISTIC, MODEL), (HUBER, {"sigma": 6.5, "sigma_gradient": 8.0})]
)
def test_epsilon_inverts_delta_on_the_private_side(curve, scales, delta):
    profile = PrivacyProfile(curve, norm=1.0, l2=5.0, scales=NoiseScales(**scales))
    epsilon = profile.epsilon(delta)
    assert profile.delta(epsilon).upper <= delta
    if epsilon > 0.0:
        assert profile.delta(epsilon * (1.0 - 2e-3)).lower > delta


@pytest.mark.parametrize("factor", [0.2, 0.95, 0.9995, 1.0, 1.0005, 1.05, 5.0])
@pytest.mark.parametrize("scales", [MODEL, HESSIAN])
def test_certifies_agrees_with_delta(factor, scales):
    profile = PrivacyProfile(LOGISTIC, norm=1.0, l2=5.0, scales=NoiseScales(**scales))
    upper = profile.delta(1.0).upper
    assert profile.certifies(1.0, factor * upper) == (factor >= 1.0)


def test_extremes():
    assert PrivacyProfile(LOGISTIC, norm=1.0, l2=5.0, scales=NoiseScales(100.0)).delta(1.0).upper <= 1e-300
    assert PrivacyProfile(LOGISTIC, norm=1.0, l2=5.0, scales=NoiseScales(sigma=1e-3)).delta(1.0).lower > 0.99
    assert PrivacyProfile(LOGISTIC, norm=1.0, l2=1e-9, scales=NoiseScales(sigma=1e6)).delta(1.0).lower > 0.9
    scales = NoiseScales(0.00715, sigma_hessian=1e6)
    large = PrivacyProfile(LOGISTIC, norm=1.0, l2=5.0, scales=scales).delta(1e4)
    assert 0.0 < large.lower <= large.upper < 1.001 * large.lower
    quiet = PrivacyProfile(LOGISTIC, norm=1.0, l2=5.0, scales=NoiseScales(sigma=4.6, sigma_hessian=1e9))
    alone = PrivacyProfile(LOGISTIC, norm=1.0, l2=5.0, scales=NoiseScales(sigma=4.6))
    assert quiet.delta(1.0).upper == pytest.approx(alone.delta(1.0).upper, rel=1e-3)


def test_an_unbounded_slope_is_refused():
    with pytest.raises(CalibrationError, match="no worst-case guarantee"):
        PrivacyProfile(SquaredLoss().curve, norm=1.0, l2=1.0, scales=NoiseScales(sigma=1.0))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("norm", 0.0),
        ("l2", -1.0),
        ("sigma", math.inf),
        ("sigma_gradient", 0.0),
        ("sigma_hessian", math.nan),
        ("sigma_eigenvalue", -1.0),
    ],
)
def test_bad_parameters_are_refused(name, value):
    scales = {"norm": 1.0, "l2": 1.0, "sigma": 1.0, name: value}
    norm, l2 = scales.pop("norm"), scales.pop("l2")
    with pytest.raises(ParameterError, match=f"`{name}`"):
        PrivacyProfile(LOGISTIC, norm=norm, l2=l2, scales=NoiseScales(**scales))


def test_bad_arguments_are_refused():
    profile = PrivacyProfile(LOGISTIC, norm=1.0, l2=5.0, scales=NoiseScales(sigma=4.0))
    with pytest.raises(ParameterError, match="`epsilon`"):
        profile.delta(-1.0)
    for rtol in (1e-9, 0.0, 1.0, 1.5):
        with pytest.raises(ParameterError, match="`rtol`"):
            profile.delta(1.0, rtol=rtol)
    with pytest.raises(ParameterError, match="`delta`"):
        profile.epsilon(1e-305)
    with pytest.raises(ParameterError, match="`delta`"):
        profile.certifies(1.0, 1.0)


def test_a_removed_record_is_resolved_as_far_as_a_scale_needs():
    """By default as far as is asked; a coarser bracket holds the finer one."""
    profile = PrivacyProfile(LOGISTIC, 1.0, 5.0, NoiseScales(4.3, sigma_hessian=1.1))
    fine, coarse = profile.removing(1.0, 1e-4), profile.removing(1.0, 1e-4, scale=1.0)
    assert fine.upper - fine.lower <= 1e-4 * fine.upper
    assert coarse.upper - coarse.lower > 1e-2 * coarse.upper
    assert coarse.lower <= fine.lower <= fine.upper <= coarse.upper


@pytest.mark.parametrize("statistics", [{}, {"sigma_gradient": 9.0, "sigma_hessian": 4.0}])
def test_a_record_of_several_outputs_is_removed_without_its_determinant(statistics):
    """The noise along its gradient is a chi variable in both directions; only the logarithm is gone."""
    scales = NoiseScales(5.0, **statistics)
    profile = PrivacyProfile(SOFTMAX_LIKE, 1.0, 4.0, scales)
    removed, added = profile.removing(2.0, 1e-3), profile.adding(2.0, 1e-3)
    exact = dense(replace(profile, l2=math.inf), 2.0)
    assert removed.lower <= exact * (1.0 + 1e-6)
    assert exact * (1.0 - 1e-6) <= removed.upper <= 1.002 * exact
    assert removed.upper < added.lower
