"""Compare the largest eigenvalue's law with closed forms, high precision, other methods and simulation."""

import math

import numpy as np
import pytest
from grids import grid
from scipy.integrate import quad
from scipy.special import erfc, ndtr

from expost.exceptions import ParameterError
from expost.goe import LargestEigenvalue
from expost.goe.pfaffian import hermite_integral, hermite_pair

# (d, x, cdf, sf) by De Bruijn's Pfaffian in the monomial basis: sqrt(det A(t) / det A(∞)), t = x/√2, with
# the entries from their exact recursions in i and j (partial integration down to erfc), in mpmath with 120
# (d = 2) to 1200 digits. Nothing here is shared with the library: other basis, other determinant.
HIGH_PRECISION = [
    (2, -2.52, 0.0004644059715810378, 0.999535594028419),
    (2, -0.74, 0.04441387089594994, 0.95558612910405),
    (2, 1.05, 0.4392449653800293, 0.5607550346199707),
    (2, 2.83, 0.9043553332643052, 0.09564466673569476),
    (2, 4.61, 0.9965160139410523, 0.003483986058947716),
    (2, 6.39, 0.9999739266939677, 2.607330603231929e-05),
    (2, 9.96, 0.9999999999880103, 1.198969493762472e-11),
    (2, 12.18, 0.9999999999999999, 5.524943331553434e-17),
    (2, 13.07, 1.0, 2.006352057946607e-19),
    (2, 13.7, 1.0, 2.960071319865903e-21),
    (3, -1.53, 0.0002017199312943568, 0.9997982800687056),
    (3, 0.13, 0.03352359909071425, 0.9664764009092857),
    (3, 1.8, 0.4108176994028245, 0.5891823005971755),
    (3, 3.46, 0.8946375381257652, 0.1053624618742348),
    (3, 5.13, 0.9958367862006569, 0.00416321379934314),
    (3, 6.79, 0.9999614017008381, 3.859829916186247e-05),
    (3, 10.13, 0.9999999999583437, 4.165628416843659e-11),
    (3, 12.21, 0.9999999999999994, 4.512385946266438e-16),
    (3, 13.04, 1.0, 2.553807805748855e-18),
    (3, 13.62, 1.0, 5.585066917146659e-20),
    (10, 2.24, 3.105669391104657e-05, 0.999968943306089),
    (10, 3.6, 0.01839616449706484, 0.9816038355029352),
    (10, 4.96, 0.3542071984941492, 0.6457928015058508),
    (10, 6.32, 0.8734633489739615, 0.1265366510260385),
    (10, 7.69, 0.994010285089697, 0.005989714910303029),
    (10, 9.05, 0.9999176220572599, 8.237794274006612e-05),
    (10, 11.77, 0.9999999994675995, 5.32400469415371e-10),
    (10, 13.48, 0.9999999999999665, 3.350405851911607e-14),
    (10, 14.16, 0.9999999999999994, 4.57139398048374e-16),
    (10, 14.64, 1.0, 1.895953213882002e-17),
    (25, 6.49, 1.280235208720124e-05, 0.9999871976479128),
    (25, 7.66, 0.01378241499678611, 0.9862175850032139),
    (25, 8.83, 0.3300544756248919, 0.6699455243751081),
    (25, 10.0, 0.8632264623205417, 0.1367735376794583),
    (25, 11.17, 0.9928415968587048, 0.007158403141295181),
    (25, 12.34, 0.9998840127649125, 0.0001159872350875644),
    (25, 14.68, 0.999999998489966, 1.510034037955942e-09),
    (25, 16.14, 0.9999999999997833, 2.167192651809961e-13),
    (25, 16.73, 0.9999999999999958, 4.166746325247476e-15),
    (25, 17.13, 0.9999999999999997, 2.536577819439955e-16),
    (100, 17.22, 6.581585084674197e-06, 0.9999934184149153),
    (100, 18.14, 0.01050743719955169, 0.9894925628004483),
    (100, 19.07, 0.3064392297728966, 0.6935607702271034),
    (100, 20.0, 0.8515889070122722, 0.1484110929877278),
    (100, 21.86, 0.9998460301363629, 0.000153969863637051),
    (100, 23.71, 0.999999996276864, 3.723136030265128e-09),
    (100, 25.57, 0.999999999999996, 3.980544308379451e-15),
    (2, 29.56, 1.0, 9.51810083850463e-96),
    (2, 51.83, 1.0, 1.523558266667499e-292),
    (11, 26.75, 1.0, 8.207542062182404e-69),
    (11, 43.51, 1.0, 9.422889826979754e-195),
    (26, 27.63, 1.0, 1.30568877869205e-61),
    (26, 42.15, 1.0, 3.93828567368101e-167),
    (11, 46.87, 1.0, 1.970185255742453e-227),
]

# (n, x, ψ_{n-1}, ψ_n, ∫_x^∞ ψ_{n-1}, ∫_x^∞ ψ_n) from the three-term recurrence in mpmath with 60 digits.
HERMITE = [
    (1, 0.75, 0.5669793070276936, 0.6013723691875975, 0.4266922855943854, 0.8018298255834634),
    (30, -3.5, -0.2172129651450309, -0.0920691405549397, 0.3915740848385003, 0.316486434950782),
    (700, 37.75, 0.05194798941337646, 0.06029377472421258, 0.008029954327478253, 0.009520100205689356),
    (5000, 99.5, -0.1983827853626223, -0.212015897185649, 0.1173453187641574, 0.1152823634015497),
    (5000, 101.0, 7.764737934418202e-06, 8.96460401341996e-06, 5.214453801983048e-07, 6.046480823940276e-07),
]


@pytest.mark.parametrize(("d", "x", "cdf", "sf"), HIGH_PRECISION)
def test_agrees_with_high_precision(d, x, cdf, sf):
    law = LargestEigenvalue(d)
    assert law.cdf(x) == pytest.approx(cdf, rel=1e-9, abs=0)
    assert law.sf(x) == pytest.approx(sf, rel=1e-12, abs=0)


@pytest.mark.parametrize(("degree", "x", "before", "last", "before_tail", "last_tail"), HERMITE)
def test_hermite_functions_agree_with_high_precision(degree, x, before, last, before_tail, last_tail):
    pair = hermite_pair(degree, np.array([x]))
    expected = (before, last, before_tail, last_tail)
    assert np.concatenate(pair) == pytest.approx(expected, rel=1e-11, abs=0)


def test_reference_numbers():
    assert LargestEigenvalue(50).sf(12.0 * math.sqrt(2.0)) == pytest.approx(4.23246e-06, rel=2e-6)
    assert LargestEigenvalue(21).isf(5e-7) == pytest.approx(12.81987, abs=5e-6)


def test_one_dimension_is_normal_with_variance_two():
    law, x = LargestEigenvalue(1), np.linspace(-50.0, 50.0, 101)
    assert np.array_equal(law.cdf(x), ndtr(x / math.sqrt(2.0)))
    assert np.array_equal(law.sf(x), ndtr(-x / math.sqrt(2.0)))
    assert law.mean() == pytest.approx(0.0, abs=1e-12)
    assert law.std() == pytest.approx(math.sqrt(2.0), rel=1e-12)
    assert law.ppf(1e-300) == pytest.approx(-math.sqrt(2.0) * 37.0471, rel=1e-6)


def test_two_dimensions_have_a_closed_form():
    # λ₁ = half the trace + a Rayleigh variable, independent of each other.
    x = np.linspace(-2.0, 14.0, 81)
    overlap = math.sqrt(0.5) * np.exp(-0.25 * x**2) * ndtr(x / math.sqrt(2.0))
    law = LargestEigenvalue(2)
    assert law.sf(x) == pytest.approx(0.5 * erfc(x / math.sqrt(2.0)) + overlap, rel=1e-12, abs=0)
    assert law.cdf(x) == pytest.approx(ndtr(x) - overlap, rel=1e-10, abs=0)
    assert ndtr(high := law.ppf(0.995)) - math.sqrt(0.5) * math.exp(-0.25 * high**2) * ndtr(
        high / math.sqrt(2.0)
    ) == pytest.approx(0.995, rel=1e-12)
    assert law.mean() == pytest.approx(math.sqrt(math.pi / 2.0), rel=1e-10)
    assert law.std() == pytest.approx(math.sqrt(3.0 - math.pi / 2.0), rel=1e-10)


def ordered_density_integral(upper: float) -> float:
    """Integrate the joint density of three eigenvalues over u < v < w < upper, not normalised."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    nodes, weights = 0.5 * (nodes + 1.0), 0.5 * weights
    bottom = -16.0
    w = bottom + (upper - bottom) * nodes[:, None, None]
    v = bottom + (w - bottom) * nodes[:, None]
    u = bottom + (v - bottom) * nodes
    density = (w - v) * (w - u) * (v - u) * np.exp(-0.25 * (u * u + v * v + w * w))
    volume = (upper - bottom) * (w - bottom) * (v - bottom)
    return float(np.einsum("ijk,i,j,k->", density * volume, weights, weights, weights))


def test_three_dimensions_integrate_the_joint_density():
    total = ordered_density_integral(16.0)
    for x in (0.0, 1.0, 2.5, 4.0, 6.0):
        expected = ordered_density_integral(x) / total
        assert LargestEigenvalue(3).cdf(x) == pytest.approx(expected, rel=1e-9)


def direct_pfaffian(d: int, upper: float) -> float:
    """Half the log-determinant of De Bruijn's matrix, entry by entry on panels, in the Hermite basis."""
    bottom = -math.sqrt(2.0 * d) - 6.0
    panels = math.ceil(6 * d / 16) + 8
    edges = np.linspace(bottom, upper, panels + 1)
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half = 0.5 * np.diff(edges)[:, None]
    x = (edges[:-1, None] + half * (nodes + 1.0)).ravel()
    values = np.empty((d + 1, x.size))
    integrals = np.empty((d + 1, x.size))  # from minus infinity
    log_scale = -0.5 * x * x - 0.25 * math.log(math.pi)
    before, last = np.zeros_like(x), np.ones_like(x)
    for k in range(d + 1):
        values[k] = np.exp(log_scale) * last
        before, last = last, math.sqrt(2 / (k + 1)) * x * last - math.sqrt(k / (k + 1)) * before
        size = np.abs(before) + np.abs(last)
        before, last, log_scale = before / size, last / size, log_scale + np.log(size)
    integrals[0] = math.pi**-0.25 * math.sqrt(math.pi / 2.0) * erfc(-x / math.sqrt(2.0))
    integrals[1] = -math.sqrt(2.0) * values[0]
    for k in range(1, d):
        integrals[k + 1] = math.sqrt(k / (k + 1)) * integrals[k - 1] - math.sqrt(2 / (k + 1)) * values[k]
    weighted = values[:d] * (half * weights).ravel()
    products = integrals[:d] @ weighted.T
    matrix = products - products.T
    if d % 2:
        border = weighted.sum(axis=1)[:, None]
        matrix = np.block([[matrix, border], [-border.T, np.zeros((1, 1))]])
    return 0.5 * float(np.linalg.slogdet(matrix)[1])


@pytest.mark.parametrize("d", [4, 7, 150, 151, 600])
def test_agrees_with_the_pfaffian_computed_entry_by_entry(d):
    edge, width = 2.0 * math.sqrt(d), d ** (-1.0 / 6.0)
    total = direct_pfaffian(d, math.sqrt(2.0 * d) + 6.0)
    for position in (-4.0, -1.0, 2.0):
        x = edge + position * width
        expected = math.exp(direct_pfaffian(d, x / math.sqrt(2.0)) - total)
        assert LargestEigenvalue(d).cdf(x) == pytest.approx(expected, rel=1e-9)


def expected_count(d: int, x: float) -> float:
    """Expected number of eigenvalues above x: the one-point density, integrated adaptively."""
    step, t = math.sqrt(d / 2.0), x / math.sqrt(2.0)

    def density(z: float) -> float:
        pair = hermite_pair(d, np.array([z]))
        before, last, _, last_tail = (float(part[0]) for part in pair)
        kernel = step * (math.sqrt(2.0 * d) * (before**2 + last**2) - 2.0 * z * before * last)
        odd = before / hermite_integral(d - 1) if d % 2 else 0.0
        return kernel + step * before * (0.5 * hermite_integral(d) - last_tail) + odd

    # The density falls at the rate sqrt(z² - 2d), and like exp(-z²/2) at least.
    rate = math.sqrt(max(t * t - 2.0 * d, 16.0))
    return quad(density, t, t + 40.0 / rate, epsabs=0.0, epsrel=1e-11)[0]


def large_but_for_one(d, level):
    """What takes long: the largest matrix, but for the level that a report has."""
    return d == 2000 and level != 5e-7


@pytest.mark.long
@pytest.mark.parametrize(
    ("d", "probability"), grid([2, 9, 200, 201, 2000], [0.2, 1e-3, 5e-7, 1e-15], slow=large_but_for_one)
)
def test_lies_below_the_expected_count_and_meets_it_in_the_tail(d, probability):
    law = LargestEigenvalue(d)
    x = law.isf(probability)
    excess = expected_count(d, x) / law.sf(x) - 1.0
    assert -1e-10 <= excess <= 0.5 * probability + 1e-10


# Bisections leave the samples within 1e-6 of the eigenvalue, far below the resolution of the test.
BISECTIONS = 25


def simulate(d: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Largest eigenvalues of the tridiagonal model of Dumitriu & Edelman (2002), by Sturm bisection."""
    diagonal = rng.normal(scale=math.sqrt(2.0), size=(d, size))
    squared = rng.chisquare(np.arange(d - 1, 0, -1)[:, None], size=(d - 1, size))
    low, high = np.full(size, -20.0), np.full(size, 20.0)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        pivot = diagonal[0] - middle
        below = pivot < 0.0
        for row in range(1, d):
            pivot = diagonal[row] - middle - squared[row - 1] / pivot
            below &= pivot < 0.0
        low, high = np.where(below, low, middle), np.where(below, middle, high)
    return 0.5 * (low + high)


@pytest.mark.long
@pytest.mark.parametrize("d", [2, 3, 10, 25])
@pytest.mark.parametrize("size", [40_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_simulated_matrices_follow_the_law(d, size):
    false_alarm = 1e-6
    samples = np.sort(simulate(d, size, np.random.default_rng(20210 + d)))
    # Linear between 2,000 exact values, which adds about 1e-6 to a threshold of 6e-3 or more.
    grid = np.linspace(samples[0], samples[-1], 2_000)
    exact = np.interp(samples, grid, LargestEigenvalue(d).cdf(grid))
    steps = np.arange(size + 1) / size
    distance = max(np.max(steps[1:] - exact), np.max(exact - steps[:-1]))
    # Dvoretzky-Kiefer-Wolfowitz with Massart's constant: P(distance > s) <= 2 exp(-2 n s²).
    assert distance <= math.sqrt(math.log(2.0 / false_alarm) / (2.0 * size))


def test_the_tridiagonal_model_has_the_eigenvalues_of_the_matrix():
    rng = np.random.default_rng(5)
    dense = rng.normal(size=(20_000, 4, 4))
    largest = np.linalg.eigvalsh((dense + dense.transpose(0, 2, 1)) / math.sqrt(2.0))[:, -1]
    law = LargestEigenvalue(4)
    # Six standard errors: false alarms under 1e-8.
    assert largest.mean() == pytest.approx(law.mean(), abs=6.0 * law.std() / math.sqrt(largest.size))


@pytest.mark.parametrize("d", [2, 3, 25, 200, 5000])
def test_monotone_and_complementary(d):
    law = LargestEigenvalue(d)
    edge, width = 2.0 * math.sqrt(d), d ** (-1.0 / 6.0)
    x = edge + width * np.linspace(-14.0, 40.0, 400)
    cdf, sf = law.cdf(x), law.sf(x)
    assert np.all(np.diff(sf) <= 1e-12 * sf[:-1])
    assert np.all(np.diff(cdf) >= -1e-12)
    assert cdf + sf == pytest.approx(np.ones_like(x), abs=1e-15)
    assert np.array_equal(law.cdf(np.array([-np.inf, np.inf])), [0.0, 1.0])
    assert np.array_equal(law.sf(np.array([-1e200, 1e200])), [1.0, 0.0])


@pytest.mark.parametrize(
    ("d", "q"),
    grid([1, 2, 3, 21, 100, 2000], [1e-300, 1e-15, 5e-7, 0.01, 0.3, 0.5, 0.8, 0.999], slow=large_but_for_one),
)
def test_quantiles_invert_the_law_on_the_private_side(d, q):
    law = LargestEigenvalue(d)
    x = law.isf(q)
    assert q * (1.0 - 3e-10) <= law.sf(x) <= q
    assert law.isf(law.sf(x)) == pytest.approx(x, rel=1e-10, abs=1e-9)
    level = min(1.0 - q, 1.0 - 1e-15)
    assert law.cdf(law.ppf(level)) == pytest.approx(level, rel=1e-9)


@pytest.mark.parametrize("d", [500, 5000])
def test_large_dimensions_approach_tracy_widom(d):
    # Mean and standard deviation of the Tracy-Widom law with β = 1; the error falls like d^(-1/3).
    law, width = LargestEigenvalue(d), d ** (-1.0 / 6.0)
    assert (law.mean() - 2.0 * math.sqrt(d)) / width == pytest.approx(
        -1.2065335745820, abs=0.6 * d ** (-1 / 3)
    )
    assert law.std() / width == pytest.approx(math.sqrt(1.6077810345810), abs=0.1 * d ** (-2 / 3))


def test_shapes_and_extremes():
    law = LargestEigenvalue(3)
    assert isinstance(law.cdf(1.0), float)
    assert isinstance(law.sf(np.float64(1.0)), float)
    assert isinstance(law.isf(0.1), float)
    points = np.array([[0.0, 1.0], [2.0, 3.0]])
    assert law.cdf(points)[1, 0] == law.cdf(2.0)
    assert law.sf(np.empty((0, 3))).shape == (0, 3)
    assert np.array_equal(law.ppf([0.0, 1.0]), [-np.inf, np.inf])
    assert np.array_equal(law.isf([0.0, 1.0]), [np.inf, -np.inf])
    assert law.ppf(np.full((2, 2), 0.5)).shape == (2, 2)
    for subnormal in (1e-310, 5e-324):
        assert law.sf(law.isf(subnormal)) <= subnormal
        assert law.cdf(law.ppf(subnormal)) < 1e-12
    assert math.copysign(1.0, law.sf(1e9)) == 1.0
    assert repr(law) == "LargestEigenvalue(d=3)"


@pytest.mark.parametrize("d", [0, -1, 2.0, 2.5, True, "3", None, math.nan])
def test_refuses_a_dimension_that_is_not_a_positive_integer(d):
    with pytest.raises(ParameterError, match="`d` must be a whole number of at least 1; got d="):
        LargestEigenvalue(d)


@pytest.mark.parametrize("method", ["ppf", "isf"])
@pytest.mark.parametrize("q", [-1e-9, 1.0 + 1e-9, math.nan, [0.5, 2.0], "half", None])
def test_refuses_levels_that_are_not_probabilities(method, q):
    with pytest.raises(ParameterError, match=r"`q` must be .* between 0 and 1, or an array of them; got q="):
        getattr(LargestEigenvalue(2), method)(q)


@pytest.mark.parametrize("method", ["cdf", "sf"])
@pytest.mark.parametrize("x", [math.nan, [0.0, math.nan], "wide", None])
def test_refuses_points_that_are_not_numbers(method, x):
    with pytest.raises(ParameterError, match=r"`x` must be .* none of them NaN; got x="):
        getattr(LargestEigenvalue(2), method)(x)
