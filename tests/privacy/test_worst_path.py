"""The worst path of a row: above every path, close to the best, and not used where it is not proved."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

import expost
from expost import LogisticLoss, PseudoHuber, SmoothedHinge, gaussian
from expost.losses.base import DerivativeCurve
from expost.privacy.precision import Rounding
from expost.privacy.profile import PrivacyProfile
from expost.privacy.scales import NoiseScales
from expost.privacy.shapes import capped_logistic, default_threshold
from expost.privacy.sharpest import SharpestProfile
from expost.privacy.worst_path import COARSE, FINE, WorstPath, _gain, _removing_gain

SQUARE = DerivativeCurve(1.0, lambda m: m**2 * (1.0 - m), peak=2.0 / 3.0, sign_fixed=True)
TILTED = DerivativeCurve(0.98, lambda m: (0.02 + m) * (0.98 - m), peak=0.48, sign_fixed=False)
HUBER = PseudoHuber(default_threshold(1.0, 1e-6)).curve
CAPPED = capped_logistic(1.0, 1e-6).curve
# Curve, σ, λ and norm, from the defaults down to a twentieth of them.
PLANS = [
    (LogisticLoss().curve, 4.374, 0.5, 1.0),
    (LogisticLoss().curve, 8.77, 0.2, 1.0),
    (CAPPED, 2.7995, 1.3998, 1.0),
    (CAPPED, 3.959, 2.7995, math.sqrt(2.0)),
    (HUBER, 0.84693, 0.61, 1.0),
    (PseudoHuber().curve, 4.4, 0.5, 1.0),
    (SmoothedHinge(0.5).curve, 4.3, 1.0, 1.0),
    (SQUARE, 2.0, 0.1, 1.0),
    (TILTED, 8.0, 0.2, 1.0),
]
EPSILONS = np.array([0.0, 0.03, 0.1, 0.3, 0.5, 0.8, 1.0, 1.5])


def constant(path, epsilon):
    return np.asarray(gaussian.delta(epsilon, sensitivity=path.steepest, sigma=1.0))


def growth(path):
    """Shifts and the rates there, on a fine grid, and the time that growth takes up to each."""
    top, unit = path.steepest, path.sigma / path.norm
    shifts = np.concatenate([np.geomspace(1e-6, 1e-3, 400)[:-1], np.linspace(1e-3, 1.0, 6000)]) * top
    if not path.curve.sign_fixed:
        shifts = np.concatenate([-shifts[::-1], [0.0], shifts])
    slopes = np.minimum(np.abs(shifts) * unit, path.curve.max_slope)
    rates = path.curve.curvature(slopes) * path.norm**2 / path.l2
    # The rate is at least that of the slower end between two shifts, so that every path is admissible.
    slower = np.maximum(np.minimum(rates[:-1], rates[1:]), 1e-12)
    return shifts, np.concatenate([[0.0], np.cumsum(np.diff(shifts) / slower)])


NOISE = np.linspace(-9.0, 9.0, 3601)


def divergences(path, rng, count, noise=NOISE):
    """Divergences of random tables in one dimension, both directions: rows by paths, epsilons by columns.

    In one dimension the regulariser may be any convex function. Where it has kinks the slope waits, where it
    is quadratic it grows: the noise at which a path grows is all that tells one from another.
    """
    shifts, times = growth(path)
    step = noise[1] - noise[0]
    edges = np.sort(rng.choice([1.0, 3.0, 6.0], (count, 1)) * rng.standard_normal((count, 6)), axis=1)
    grows = (np.sum(noise[None, :-1] > edges[:, :, None], axis=1) + rng.integers(0, 2, (count, 1))) % 2
    start = np.where(rng.random(count) < 0.5, 0.0, rng.random(count) ** 3) * times[-1]
    spent = start[:, None] + np.concatenate([np.zeros((count, 1)), np.cumsum(step * grows, axis=1)], axis=1)
    shift = np.interp(np.minimum(spent, times[-1]), times, shifts)
    # Cells of the noise: their masses are exact, and to look at cells only is post-processing.
    with_it = np.diff(norm.cdf(noise + shift), axis=1)
    without = np.diff(norm.cdf(noise))[None, :] + np.zeros_like(with_it)
    factors = np.exp(EPSILONS)[:, None, None]
    added = np.maximum(with_it - factors * without, 0.0).sum(axis=2)
    removed = np.maximum(without - factors * with_it, 0.0).sum(axis=2)
    return added.T, removed.T


@pytest.mark.parametrize("count", [40, pytest.param(1200, marks=pytest.mark.slow)])
def test_no_table_in_one_dimension_exceeds_it(count):
    """Nine plans, eight epsilons, both directions; the paths are seeded, and nothing is left to chance."""
    for number, (curve, sigma, l2, length) in enumerate(PLANS):
        path = WorstPath(curve, length, l2, sigma)
        added, removed = path.adding(EPSILONS), path.removing(EPSILONS)
        for part in range(-(-count // 100)):
            found = divergences(path, np.random.default_rng([number, part]), min(count, 100))
            assert np.all(found[0] <= added * (1.0 + 1e-9) + 1e-13)
            assert np.all(found[1] <= removed * (1.0 + 1e-9) + 1e-13)


def test_paths_that_wait_and_grow_come_close():
    """The best of the threshold paths: grow at once from some noise on. It beats the Gaussian mechanism."""
    path = WorstPath(LogisticLoss().curve, 1.0, 0.2, 8.77, FINE)
    shifts, times = growth(path)
    noise = np.linspace(-9.0, 9.0, 20001)
    best = 0.0
    for first in np.linspace(-7.0, 0.0, 36):
        for begin in (0.0, 0.2, 0.4, 0.6):
            spent = np.minimum(np.maximum(noise - first, 0.0) + begin * times[-1], times[-1])
            with_it = np.diff(norm.cdf(noise + np.interp(spent, times, shifts)))
            best = max(best, np.maximum(with_it - math.e * np.diff(norm.cdf(noise)), 0.0).sum())
    certified = float(path.adding(np.array([1.0]))[0])
    assert 100.0 * constant(path, 1.0) < best <= certified <= 1.3 * best


def programmed(path, epsilon, *, removing=False, cell=0.02):
    """The best path that waits or grows in each cell of the noise, by a dynamic programme.

    The shifts are those that growth reaches after whole cells, so that every step of it is a path that some
    table has, and its cells have exact masses: a lower bound on the worst case.
    """
    shifts, times = growth(path)
    within = np.abs(shifts) <= (1.0 - 1e-4) * path.steepest
    shifts, times = shifts[within], times[within]
    states = np.interp(np.arange(times[0], times[-1], cell), times, shifts)
    noise, factor = np.arange(-9.0, 9.0 + cell, cell), math.exp(epsilon)

    def reward(left, right, before, after):
        without, with_it = ndtr(right) - ndtr(left), ndtr(right + after) - ndtr(left + before)
        return np.maximum(without - factor * with_it if removing else with_it - factor * without, 0.0)

    value = np.zeros(len(states))
    for left, right in zip(noise[-2::-1], noise[:0:-1], strict=True):
        waits, grows = reward(left, right, states, states) + value, np.zeros(len(states))
        grows[:-1] = reward(left, right, states[:-1], states[1:]) + value[1:]
        value = np.maximum(waits, grows)
    return float(value.max())


# A plan, an epsilon, and how loose levels and cells are there: more where the regularisation is small.
PROGRAMMED = [(2, 1.0, 1.01), (4, 0.5, 1.03), (8, 0.3, 1.03), (0, 0.5, 1.06), (6, 1.0, 1.22), (1, 1.0, 1.4)]


@pytest.mark.parametrize(("number", "epsilon", "loose"), PROGRAMMED)
def test_a_dynamic_programme_over_paths_is_just_below(number, epsilon, loose):
    curve, sigma, l2, length = PLANS[number]
    path, at = WorstPath(curve, length, l2, sigma, FINE), np.array([epsilon])
    for bound, removing in ((path.adding, False), (path.removing, True)):
        found = programmed(path, epsilon, removing=removing)
        assert found - 1e-13 <= bound(at)[0] <= loose * found + 1e-13


@pytest.mark.slow
def test_random_plans_keep_their_order():
    """More curvature never costs less, finer cells hardly ever more, and no path is above: twenty plans."""
    rng = np.random.default_rng(20)
    for number in range(20):
        curve = [LogisticLoss().curve, CAPPED, HUBER, TILTED, SQUARE][number % 5]
        sigma, l2 = (
            curve.max_slope * np.exp(rng.uniform(-0.5, 2.3)),
            curve.max_curvature * np.exp(rng.uniform(-2, 3)),
        )
        path = WorstPath(curve, 1.0, l2, sigma)
        found = path.adding(EPSILONS)
        assert np.all(found <= replace(path, l2=l2 / 1.1).adding(EPSILONS) * (1.0 + 1e-3) + 1e-14)
        assert np.all(replace(path, cell=0.5 * COARSE).adding(EPSILONS) <= found * (1.0 + 1e-3))
        added, removed = divergences(path, rng, 100)
        assert np.all(added <= found * (1.0 + 1e-9) + 1e-13)
        assert np.all(removed <= path.removing(EPSILONS) * (1.0 + 1e-9) + 1e-13)


def test_waiting_pays_exactly_where_the_lemma_says():
    """n(·, g) ≤ 0 for all noise iff k(ε − g²/2) ≤ g²; at ε = 0 always."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        g, k, epsilon = np.exp(rng.uniform(-3.0, 1.0)), np.exp(rng.uniform(-3.0, 2.0)), rng.uniform(0.0, 3.0)
        epsilon *= rng.integers(0, 2)
        start = -epsilon / g - 0.5 * g
        y = start + np.concatenate([np.geomspace(1e-11, 1e-2, 200), np.linspace(0.01, 15.0, 2000)]) / g
        exponent = epsilon - 0.5 * y**2 + 0.5 * (g / 2.0 - epsilon / g) ** 2
        share = np.exp(-(y - start) * g)
        # m / δ_G′, which is 0 from where growth earns nothing on.
        earns = share > (1.0 - share) / k
        ratio = np.exp(exponent[earns]) * (share - (1.0 - share) / k)[earns]
        holds = k * (epsilon - 0.5 * g * g) <= g * g
        if epsilon == 0.0:
            assert holds
        if abs(k * (epsilon - 0.5 * g * g) - g * g) > 1e-3 * g * g:
            assert (ratio.max() <= 1.0 + 1e-10) == holds


def advantage(noise, shift, rate, epsilon, *, removing):
    """What growing gains over waiting by theorem 16.2: n, or n_r for a row that is removed."""
    rise = norm.pdf(0.5 * shift - epsilon / shift)
    if removing:
        without, with_it = norm.pdf(noise), np.exp(epsilon) * norm.pdf(noise + shift)
        beyond = np.maximum(with_it * (1.0 + 1.0 / rate) - without / rate, 0.0)
        return np.where(noise <= epsilon / shift - 0.5 * shift, rise, beyond)
    with_it, without = norm.pdf(noise + shift), np.exp(epsilon) * norm.pdf(noise)
    grown = np.maximum(with_it * (1.0 + rate) - without, 0.0) / rate - rise
    return np.where(noise > -epsilon / shift - 0.5 * shift, grown, 0.0)


@pytest.mark.parametrize("removing", [False, True], ids=["adding", "removing"])
@pytest.mark.parametrize("size", [1e-9, 0.02, 0.5])
def test_a_cell_gains_no_less_than_any_noise_and_shift_in_it(size, removing):
    """Cells of all sizes, brute force inside; and those that are hardly more than a point are sharp."""
    rng, count = np.random.default_rng(16), 4000
    middle, rate, epsilon = np.exp(rng.uniform([-3.0, -4.0, -3.0], [1.0, 2.0, 1.2], (count, 3))).T
    epsilon *= rng.integers(0, 4, count) > 0
    # The noise from which on waiting earns nothing is largest at the shift √(2ε).
    middle = np.where((epsilon > 0.0) & (rng.integers(0, 3, count) == 0), np.sqrt(2.0 * epsilon), middle)
    edge = epsilon / middle * (1.0 if removing else -1.0) - 0.5 * middle
    left = edge + rng.normal(size=count) * rng.choice([0.03, 0.2, 1.0], count)
    one, two, three = size * rng.random((3, count))
    right, low, high = left + one, middle * (1.0 - two), middle * (1.0 + three)
    share = np.linspace(0.0, 1.0, 7)[:, None]
    noise, shift = left + (right - left) * share[:, None], low + (high - low) * share
    inside = advantage(noise, shift, rate, epsilon, removing=removing).max(axis=(0, 1))
    if removing:
        gain = _removing_gain(epsilon, left, low, high, rate)
    else:
        gain = _gain(epsilon, left, right, low, high, rate)
    assert np.all(inside <= gain + 1e-12)
    if size == 1e-9:
        np.testing.assert_allclose(gain, inside, atol=1e-5)


@pytest.mark.parametrize(("curve", "sigma", "l2", "length"), PLANS[2:4])
def test_a_path_depends_on_ratios_to_the_norm_alone(curve, sigma, l2, length):
    path = WorstPath(curve, length, l2, sigma)
    for factor in (0.3, 4.0):
        other = WorstPath(curve, factor * length, factor**2 * l2, factor * sigma)
        np.testing.assert_allclose(other.adding(EPSILONS), path.adding(EPSILONS), rtol=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.5, 0.8, 1.0, 1.5])
def test_the_default_is_nearly_free_at_every_epsilon(epsilon):
    path, at = WorstPath(CAPPED, 1.0, 1.3998, 2.7995), np.array([epsilon])
    assert constant(path, epsilon) <= path.adding(at)[0] <= constant(path, epsilon) * (1.0 + 4e-4)
    assert replace(path, cell=0.04).adding(at)[0] <= constant(path, epsilon) * 1.023
    np.testing.assert_array_equal(path.removing(at), constant(path, at))


@pytest.mark.parametrize("epsilon", [1.0, 1.5, 3.0])
def test_from_the_promise_on_the_default_is_a_gaussian_mechanism(epsilon):
    first = PrivacyProfile(CAPPED, 1.0, 1.3998, NoiseScales(2.7995))
    found = SharpestProfile(first, Rounding()).delta(epsilon).upper
    assert found == pytest.approx(gaussian.delta(epsilon, sensitivity=first.rise, sigma=1.0), rel=1e-3)


@pytest.mark.parametrize("width", [0.1, 1e-3])
def test_the_other_theorem_is_asked_unless_the_bracket_is_wider_than_what_it_could_save(width):
    """What is stated is at most what the path allows, or above the Gaussian mechanism by 3% of the width."""
    first = PrivacyProfile(CAPPED, 1.0, 1.3998, NoiseScales(2.7995))
    path = WorstPath(CAPPED, 1.0, 1.3998, 2.7995)
    for epsilon in (0.3, 0.7, 0.9, 0.95, 1.0):
        least, other = constant(path, epsilon), path.adding(np.array([epsilon]))[0]
        found = SharpestProfile(first, Rounding()).adding(epsilon, width)
        assert least * (1.0 - 1e-8) <= found.upper <= max(other, least * (1.0 + 0.03 * width)) * (1.0 + 2e-5)
        assert found.lower <= least


def test_a_bound_is_a_probability():
    """Where hardly any noise is added everything may be lost, and no more."""
    for curve in (LogisticLoss().curve, PseudoHuber().curve):
        path, at = WorstPath(curve, 1.0, 0.1, 0.05), np.zeros(1)
        assert path.adding(at) == pytest.approx(1.0, abs=1e-12)
        assert path.removing(at) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("curve", [LogisticLoss().curve, PseudoHuber().curve], ids=["fixed", "free"])
def test_many_epsilons_at_once_are_printed_like_one(curve):
    """With discrete noise so coarse that it costs 0.046 of epsilon on each side, from below that on."""
    rounding = Rounding(steps=2000.0)
    assert rounding.law(0.0) == pytest.approx(0.0453, abs=1e-4)
    first = PrivacyProfile(curve, 1.0, 0.5, NoiseScales(4.4), rounding)
    sharpest, epsilons = SharpestProfile(first, rounding), np.array([0.0, 0.03, 0.08, 0.1, 0.5])
    own = np.array([first.directed(at, rtol=1e-3) for at in epsilons])
    found = sharpest.sharpened(epsilons, own, rtol=1e-3)
    each = np.array([sharpest.directed(at, rtol=1e-3) for at in epsilons])
    np.testing.assert_allclose(found, each, rtol=2e-4)
    assert np.all(found <= own)
    assert np.any(found < 0.9 * own)


def test_the_solver_is_paid_for_like_one_more_gaussian_coordinate():
    """At an epsilon of 0 all of it is added, the total variation of two normals that are this far apart."""
    for curve in (LogisticLoss().curve, PseudoHuber().curve):
        path = WorstPath(curve, 1.0, 0.5, 4.4)
        for direction, real in (("adding", path.adding), ("removing", path.removing)):
            profile = PrivacyProfile(curve, 1.0, 0.5, NoiseScales(4.4), Rounding(solver=0.1))
            found = profile.other(direction, np.zeros(1), 0.1)
            assert found == pytest.approx(real(np.zeros(1)) + 2.0 * ndtr(0.05) - 1.0, rel=1e-9)


@pytest.mark.parametrize("l2", [0.01, 0.3, 5.0])
def test_removing_a_row_of_fixed_sign_is_the_gaussian_mechanism(l2):
    path = WorstPath(LogisticLoss().curve, 1.0, l2, 3.0)
    np.testing.assert_array_equal(path.removing(EPSILONS), constant(path, EPSILONS))


@pytest.mark.parametrize(("sigma", "epsilon", "least"), [(1.0, 2.0, 0.02331), (2.0, 1.0, 0.02063)])
def test_growth_that_takes_long_is_not_cut_off(sigma, epsilon, least):
    """A real objective has this much; a window of fixed growth time gave a third of it."""
    found = WorstPath(SQUARE, 1.0, 0.1, sigma, 0.01).adding(np.array([epsilon]))[0]
    assert least <= found <= 1.1 * least


def test_two_signs_count_where_the_largest_rate_allows_it():
    """The largest rate over all slopes decides, not the one at slope zero: here they differ 13 times."""
    path = WorstPath(TILTED, 1.0, 0.2, 8.0)
    at = np.array([math.log1p(0.02 * 0.98 / 0.2) * 1.01])
    one = WorstPath(replace(TILTED, sign_fixed=True), 1.0, 0.2, 8.0).adding(at)[0]
    assert 1.88 <= path.adding(at)[0] / one <= 1.96


@pytest.mark.parametrize(("curve", "sigma", "l2", "length"), PLANS)
def test_at_epsilon_zero_both_directions_agree(curve, sigma, l2, length):
    path, at = WorstPath(curve, length, l2, sigma), np.zeros(1)
    assert path.adding(at)[0] == pytest.approx(path.removing(at)[0], rel=0.01)


@pytest.mark.long
@pytest.mark.parametrize(("curve", "sigma", "l2", "length"), PLANS)
def test_more_curvature_never_costs_less_and_finer_cells_never_more(curve, sigma, l2, length):
    path = WorstPath(curve, length, l2, sigma)
    found = path.adding(EPSILONS)
    assert np.all(found <= replace(path, l2=l2 / 1.1).adding(EPSILONS) * (1.0 + 1e-3))
    assert np.all(replace(path, cell=0.5 * COARSE).adding(EPSILONS) <= found * (1.0 + 1e-3))


def test_a_peak_inside_a_cell_counts():
    spike = DerivativeCurve(
        1.0, lambda m: np.maximum(0.25 - 40.0 * np.abs(m - 0.5004), 1e-3), peak=0.5004, sign_fixed=True
    )
    assert WorstPath(spike, 1.0, 1.0, 4.0)._rate(0.1, 0.2) == pytest.approx(0.25)


@pytest.mark.long
@pytest.mark.parametrize("share", [10.0, 30.0, 1e9])
def test_strong_regularisation_leaves_one_tail(share):
    for curve in (LogisticLoss().curve, PseudoHuber().curve):
        path = WorstPath(curve, 1.0, share * 4.2, 4.2)
        for found in (path.adding(EPSILONS), path.removing(EPSILONS)):
            np.testing.assert_allclose(found, constant(path, EPSILONS), rtol=4e-3)


@pytest.mark.long
def test_it_is_the_smaller_of_the_two_and_pays_for_the_solver():
    scales, rounding = NoiseScales(4.5), Rounding(solver=1e-3)
    for curve, deltas in ((LogisticLoss().curve, (1e-6,)), (PseudoHuber().curve, ())):
        first = PrivacyProfile(curve, 1.0, 0.5, scales, rounding)
        sharpest = SharpestProfile(first, rounding)
        real = SharpestProfile(replace(first, rounding=Rounding()), Rounding())
        for epsilon in (0.0, 0.3, 1.0, 2.0, 20.0, 1e4):
            assert sharpest.delta(epsilon).upper <= first.delta(epsilon).upper
            assert sharpest.delta(epsilon).upper >= real.delta(epsilon).upper * (1.0 - 1e-12)
            assert sharpest.delta(epsilon).lower <= sharpest.delta(epsilon).upper
        for delta in deltas:
            assert sharpest.epsilon(delta) <= first.epsilon(delta) * (1.0 + 1e-6)
            assert sharpest.delta(sharpest.epsilon(delta)).upper <= delta


def test_what_is_not_proved_is_not_used():
    """A curve whose κ/m² rises, statistics, an epsilon above 700, people: no path."""
    rising = DerivativeCurve(1.0, lambda m: 0.2 * m**3, peak=1.0, sign_fixed=True)
    at = np.array([0.5])
    for curve, scales, unit in [
        (rising, NoiseScales(4.0), "row"),
        (LogisticLoss().curve, NoiseScales(4.0, sigma_hessian=1.0), "row"),
    ]:
        assert np.all(np.isinf(PrivacyProfile(curve, 1.0, 0.5, scales, unit=unit).other("adding", at, 1e-3)))
    far = PrivacyProfile(LogisticLoss().curve, 1.0, 0.5, NoiseScales(0.1))
    assert np.isfinite(far.other("adding", np.array([700.0, 700.1]), 1e-3)).tolist() == [True, False]
    people = PrivacyProfile(LogisticLoss().curve, 1.0, 0.5, NoiseScales(4.0), unit="person")
    assert people.other("adding", at, 1e-3)[0] > WorstPath(LogisticLoss().curve, 1.0, 0.5, 4.0).adding(at)[0]


@pytest.mark.parametrize(("l2", "fine"), [(0.5, FINE), (500.0, COARSE)])
def test_fine_cells_where_a_fine_question_meets_fast_growth(l2, fine):
    """A rough question has the coarse ones, and so has growth that is slow everywhere."""
    profile, at = PrivacyProfile(LogisticLoss().curve, 1.0, l2, NoiseScales(4.4)), np.array([1.0])
    for width, cell in ((1e-2, COARSE), (1e-4, fine)):
        wanted = WorstPath(LogisticLoss().curve, 1.0, l2, 4.4, cell).adding(at)
        np.testing.assert_array_equal(profile.other("adding", at, width), wanted)


@pytest.mark.parametrize(
    ("epsilon", "delta", "l2", "sigma"),
    [(1.0, 1e-6, 0.5, 4.374), (1.0, 1e-6, 0.2, 8.77), (0.3, 1e-5, 1.2, 13.53)],
)
def test_noise_below_the_default_regularisation(epsilon, delta, l2, sigma):
    """At cells four times as wide the noise is this; finer ones need less, but not by more than 1%."""
    plan = expost.calibrate(loss="logistic", epsilon=epsilon, delta=delta, l2=l2)
    assert 0.99 * sigma < plan.sigma <= 1.0005 * sigma
    assert plan.delta_at(epsilon) <= delta < plan.profile.first.delta(epsilon).lower


@pytest.mark.parametrize("shift", [0.05, 0.4])
def test_below_the_first_level_growing_pays_no_denser_than_is_said(shift):
    """Where the ratio of the laws, with the fastest growth, exceeds e^epsilon, on a grid."""
    path = WorstPath(LogisticLoss().curve, 1.0, 0.5, 4.0)
    fastest = math.log1p(path._rate(0.0, shift))
    shifts, noise = np.linspace(1e-3, shift, 60)[:, None], np.arange(-9.0, 9.0, 1e-3)[None, :]
    epsilons = fastest + np.array([-0.01, 0.0, 0.2, 1.0, 2.0]) * shift
    said = path._pays_below(epsilons, shift)
    for epsilon, most in zip(epsilons, said, strict=True):
        pays = fastest - noise * shifts - 0.5 * shifts**2 > epsilon
        found = np.max(np.where(pays, norm.pdf(noise + shifts), 0.0))
        assert 0.98 * most <= found <= most * (1.0 + 1e-12)


def test_what_lies_beyond_the_window_is_paid_for():
    """Twice the density at its ends, times the whole shift: all that is left where nothing else pays."""
    path = WorstPath(LogisticLoss().curve, 1.0, 2.0, 0.25)
    assert path.steepest == 4.0
    at = np.array([300.0])
    assert path.adding(at)[0] >= 2.0 * 4.0 * norm.pdf(10.0) * (1.0 - 1e-9)


@pytest.mark.parametrize("top", [0.3, 0.5])
def test_a_slope_that_jumps_at_once_to_its_opposite_is_the_worst_without_regularisation(top):
    """What lies between the two shifts is seen with the row alone, and beyond them its law is thinner."""
    even = DerivativeCurve(1.0, lambda m: 0.25 + 0.0 * m, peak=0.5, sign_fixed=False)
    path, at = WorstPath(even, 1.0, 1e-9, 1.0 / top, FINE), np.linspace(0.0, 0.35, 8)
    added, removed = path.adding(at), path.removing(at)
    between = 2.0 * ndtr(top) - 1.0
    assert np.all((between * (1.0 - 1e-6) <= added) & (added <= between * 1.005))
    first = np.maximum(at / top - 0.5 * top, 0.0)
    outside = 2.0 * (ndtr(-first) - np.exp(at) * ndtr(-first - top))
    assert np.all((outside * (1.0 - 1e-6) <= removed) & (removed <= outside * 1.01))


def test_below_the_first_level_a_removed_row_pays_for_both_signs():
    """With strong regularisation it is the Gaussian mechanism, and this: the gain at its largest, twice."""
    path = WorstPath(PseudoHuber().curve, 1.0, 1e9, 0.25)
    low = path._levels[0][0]
    shift = np.geomspace(1e-3, 1.0, 20_001)[:, None] * low
    at = np.array([0.0, 0.1 * low * low, 0.3 * low, low, 2.0 * low])
    most = norm.pdf(0.5 * shift - at / shift).max(axis=0)
    np.testing.assert_allclose(path.removing(at) - constant(path, at), 2.0 * low * most, rtol=1e-5)


@pytest.mark.parametrize("top", [4.0, 1e-3])
def test_what_lies_beyond_the_window_is_paid_for_by_a_removed_row_too(top):
    """With little noise the density at the window's ends counts, with much noise the mass beyond it."""
    path, at = WorstPath(PseudoHuber().curve, 1.0, 2.0, 1.0 / top), np.array([300.0])
    beyond = 2.0 * top * norm.pdf(10.0) + ndtr(-10.0 - top)
    assert path.removing(at)[0] == pytest.approx(beyond, rel=1e-9, abs=0.0)
