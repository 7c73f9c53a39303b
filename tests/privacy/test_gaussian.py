import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

from expost.exceptions import ParameterError
from expost.privacy import gaussian

# epsilon, shift, delta: the formula of Theorem 8 in mpmath 1.3 with more digits than it cancels.
REFERENCE = [
    (1.0, 0.25, 2.9242721048564073e-6),
    (0.1, 0.03, 3.5343760495111441e-6),
    (0.0, 1e-06, 3.9894228040141604e-7),
    (0.0, 0.0049, 0.0019548152183370997),
    (0.01, 0.0049, 3.7455604681286642e-5),
    (3.7e-06, 1e-07, 1.5452020491331653e-308),
    (0.18, 0.0049, 1.4872865631218792e-299),
    (0.18, 0.0051, 5.7053810551753068e-277),
    (2.0, 0.054, 5.7438799216095743e-303),
    (-0.3, 0.01, 0.25918177931828213),
    (-0.3, 0.4, 0.30382205411058936),
    (-20.0, 1.0, 0.99999999793884638),
    (-10000.0, 50.0, 1.0),
    (10000.0, 109.0, 5.1019557996499163e-304),
    (10000.0, 141.0, 0.3339371871351722),
    (10000.0, 200.0, 1.0),
    (40.0, 1.08, 1.7732105312091499e-293),
    (0.7, 0.5, 0.025448632941852282),
    (5.0, 8.0, 0.99935294488520639),
]


@pytest.mark.parametrize(("epsilon", "shift", "expected"), REFERENCE)
def test_delta_agrees_with_many_digits(epsilon, shift, expected):
    found = gaussian.delta(epsilon, sensitivity=3.0 * shift, sigma=3.0)
    assert found == pytest.approx(expected, rel=1e-11, abs=0.0)


def test_delta_is_smooth_where_the_expansion_takes_over():
    shift = np.array([1.0 - 1e-9, 1.0 + 1e-9]) * gaussian._SMALL_SHIFT
    for start in (0.0, 1.0, 10.0, 35.0):
        below, above = gaussian.delta(shift * start, sensitivity=shift, sigma=1.0)
        assert above / below == pytest.approx(1.0, abs=1e-7)


def test_the_profile_of_one_shift_is_that_of_any():
    """In the range where the shift still counts, and where the limits are taken in its place."""
    for shift in (1e-3, 0.5, 6.0, 30.0):
        reach = 36.0 * shift + 0.5 * shift**2
        left = np.concatenate([reach * np.linspace(-1.0, 1.0, 41), [-3.0 * reach, 3.0 * reach]])
        found = gaussian.delta_at_shift(left, shift)
        assert found == pytest.approx(gaussian.delta(left, sensitivity=shift, sigma=1.0), rel=1e-14, abs=0.0)
    left = np.array([-2.0, -1e-9, 0.0, 0.5, 500.0])
    assert np.array_equal(gaussian.delta_at_shift(left, 0.0), np.maximum(0.0, -np.expm1(left)))


def test_delta_has_its_limits():
    epsilon = np.array([-math.inf, -2.0, 0.0, 2.0, math.inf])
    vanishing = np.maximum(0.0, -np.expm1(epsilon))
    assert np.array_equal(gaussian.delta(epsilon, sensitivity=0.0, sigma=1.0), vanishing)
    assert gaussian.delta(epsilon, sensitivity=1e-200, sigma=1.0) == pytest.approx(vanishing, rel=1e-12)
    assert np.array_equal(gaussian.delta(epsilon[1:4], sensitivity=math.inf, sigma=1.0), np.ones(3))
    assert gaussian.delta(1e4, sensitivity=1e3, sigma=1.0) == pytest.approx(1.0, abs=1e-14)
    assert gaussian.delta(1e4, sensitivity=1.0, sigma=1.0) == 0.0


def test_delta_is_monotone_and_broadcasts():
    epsilon = np.linspace(-5.0, 20.0, 201)
    shift = np.geomspace(1e-4, 10.0, 101)[:, None]
    values = gaussian.delta(epsilon, sensitivity=shift, sigma=1.0)
    assert values.shape == (101, 201)
    assert np.all((values >= 0.0) & (values <= 1.0))
    assert np.all(np.diff(values, axis=1) <= 1e-15)
    assert np.all(np.diff(values, axis=0) >= -1e-15)


@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-6, 0.1, 0.999])
def test_epsilon_inverts_delta_on_the_private_side(delta):
    shift = np.geomspace(1e-8, 140.0, 200)
    epsilon = gaussian.epsilon(delta, sensitivity=shift, sigma=1.0)
    assert np.all(gaussian.delta(epsilon, sensitivity=shift, sigma=1.0) <= delta)
    positive = epsilon > 0.0
    smaller = gaussian.delta(epsilon[positive] * (1.0 - 1e-9), sensitivity=shift[positive], sigma=1.0)
    assert np.all(smaller > delta)
    zero = gaussian.delta(0.0, sensitivity=shift[~positive], sigma=1.0)
    assert np.all(zero <= delta)


def test_epsilon_has_its_limits():
    epsilon = gaussian.epsilon(1e-6, sensitivity=[0.0, 1e-7, math.inf], sigma=1.0)
    assert np.array_equal(epsilon, [0.0, 0.0, math.inf])


@pytest.mark.parametrize(("epsilon", "expected"), [(1.0, 4.22468), (0.1, 36.3047)])
def test_sigma_is_the_analytic_gaussian_mechanism(epsilon, expected):
    assert gaussian.sigma(epsilon, 1e-6) == pytest.approx(expected, rel=2e-6)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.5, 0.99])
@pytest.mark.parametrize("sensitivity", [0.01, 1.0, 100.0])
def test_sigma_ends_on_the_private_side(epsilon, delta, sensitivity):
    sigma = gaussian.sigma(epsilon, delta, sensitivity=sensitivity)
    assert gaussian.delta(epsilon, sensitivity=sensitivity, sigma=sigma) <= delta
    assert gaussian.delta(epsilon, sensitivity=sensitivity, sigma=sigma * (1.0 - 1e-10)) > delta
    assert gaussian.epsilon(delta, sensitivity=sensitivity, sigma=sigma) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("delta", [1e-6, 0.3, 0.5, 0.7, 0.99])
def test_sigma_at_a_vanishing_epsilon_is_that_of_the_total_variation(delta):
    """Two normal laws a distance of Δ apart differ by 2Φ(Δ/2) - 1 in total variation."""
    expected = 0.5 / ndtri(0.5 + 0.5 * delta)
    assert gaussian.sigma(1e-18, delta) == pytest.approx(expected, rel=1e-9)


def test_sigma_starts_on_the_private_side_whatever_the_rounding():
    """So close to one that the tail of the loss alone is the profile, to the last digit."""
    for epsilon, delta in [(1137.0499199147246, 1.0 - 2.0**-53), (0.00808454856315762, 0.9999999999999984)]:
        assert gaussian.delta(epsilon, sensitivity=1.0, sigma=gaussian.sigma(epsilon, delta)) <= delta


def test_ex_post_loss_is_the_density_ratio():
    rng = np.random.default_rng(0)
    output, mean, other = rng.normal(size=(3, 50, 4))
    squares = np.sum((output - other) ** 2, axis=1) - np.sum((output - mean) ** 2, axis=1)
    expected = np.abs(squares) / (2.0 * 0.7**2)
    assert gaussian.ex_post_loss(output, mean=mean, other_mean=other, sigma=0.7) == pytest.approx(expected)
    assert gaussian.ex_post_loss(2.0, mean=0.0, other_mean=1.0, sigma=1.0) == pytest.approx(1.5)


def test_ex_post_bound_holds_as_often_as_it_says():
    rng = np.random.default_rng(1)
    shift, failure = 0.8, 0.1
    output = rng.normal(size=(100_000, 1))
    losses = gaussian.ex_post_loss(output, mean=[0.0], other_mean=[shift], sigma=1.0)
    bound = gaussian.ex_post_bound(sensitivity=shift, sigma=1.0, failure=failure)
    # The bound spends half of the failure on either side; the lower side has room to spare.
    exact = ndtr(-(bound / shift - shift / 2.0)) + ndtr(-(bound / shift + shift / 2.0))
    assert ndtr(-(bound / shift - shift / 2.0)) == pytest.approx(0.5 * failure, rel=1e-12)
    assert exact <= failure
    # Two-sided, with a false-alarm rate of 1e-6.
    missed = stats.binom(len(losses), exact)
    assert missed.ppf(5e-7) <= np.sum(losses > bound) <= missed.isf(5e-7)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: gaussian.delta(math.nan, sensitivity=1.0, sigma=1.0), "`epsilon` must be a number"),
        (lambda: gaussian.delta(1.0, sensitivity=-1.0, sigma=1.0), "`sensitivity` must be at least 0"),
        (lambda: gaussian.delta(1.0, sensitivity=[1.0, math.nan], sigma=1.0), "`sensitivity`"),
        (lambda: gaussian.delta(1.0, sensitivity=1.0, sigma=0.0), "`sigma` must be finite and positive"),
        (lambda: gaussian.epsilon(0.0, sensitivity=1.0, sigma=1.0), "`delta`"),
        (lambda: gaussian.epsilon(1.0, sensitivity=1.0, sigma=1.0), "`delta`"),
        (lambda: gaussian.sigma(0.0, 1e-6), "`epsilon`"),
        (lambda: gaussian.sigma(1.0, 1.0), "`delta` must be"),
        (lambda: gaussian.sigma(1.0, 1e-6, sensitivity=math.inf), "`sensitivity`"),
        (lambda: gaussian.ex_post_loss(1.0, mean=0.0, other_mean=1.0, sigma=-1.0), "`sigma`"),
        (lambda: gaussian.ex_post_bound(sensitivity=1.0, sigma=1.0, failure=2.0), "`failure`"),
        (lambda: gaussian.ex_post_bound(sensitivity=1.0, sigma=1.0, failure=1.0), "`failure`"),
    ],
)
def test_bad_parameters_are_refused(call, match):
    with pytest.raises(ParameterError, match=match):
        call()
