import mpmath as mp
import numpy as np
import pytest

from expost.fitting.certified import functions, pairs

_PLACES = 200


def _worst(high, low):
    result, rest = functions.decay(high, low)
    worst = mp.mpf(0)
    with mp.workprec(_PLACES):
        for t, t_low, e, e_low in zip(*map(np.ndarray.tolist, (high, low, result, rest)), strict=True):
            true = mp.exp(-(mp.mpf(t) + mp.mpf(t_low)))
            worst = max(worst, abs((mp.mpf(e) + mp.mpf(e_low)) / true - 1))
    return worst


@pytest.mark.long
@pytest.mark.parametrize(
    "sample",
    [
        lambda random, n: random.exponential(2.0, n),
        lambda random, n: random.uniform(0.0, functions.LIMIT, n),
        lambda random, n: 10.0 ** random.uniform(-300, 2.8, n),
        lambda random, n: random.integers(0, 2_600_000, n) / 4096.0,
        lambda random, n: np.nextafter((random.integers(0, 2_600_000, n) + 0.5) / 4096.0, 0.0),
    ],
    ids=["usual", "uniform", "every size", "table points", "farthest from them"],
)
def test_the_stated_error_holds(sample):
    """100,000 points in all; the largest error measured is about an eighth of the bound."""
    random = np.random.default_rng(1)
    t = np.minimum(sample(random, 20_000), functions.LIMIT)
    assert _worst(t, t * random.uniform(-1, 1, len(t)) * pairs.UNIT) < functions.RELATIVE_ERROR


def test_extremes():
    t = np.array([0.0, 5e-324, 2.0**-1022, 2.0**-60, 0.125, functions.LIMIT])
    assert _worst(t, np.zeros_like(t)) < functions.RELATIVE_ERROR
    beyond, _ = functions.decay(np.array([640.5, 1e4, 1e300, np.inf]), np.zeros(4))
    assert np.all((beyond > 0.0) & (beyond < 2.0**-923))


def test_error_free_transformations():
    random = np.random.default_rng(2)
    a, b = (random.normal(size=2000) * 10.0 ** random.uniform(-100, 100, 2000) for _ in range(2))
    with mp.workprec(2000):
        for function, exact in ((pairs.two_sum, mp.fadd), (pairs.two_prod, mp.fmul)):
            for x, y, high, low in zip(a, b, *function(a, b), strict=True):
                assert exact(mp.mpf(x), mp.mpf(y)) == mp.mpf(high) + mp.mpf(low)


def test_halves_do_not_overflow():
    a = np.array([1.7e308, -1.7e308, 5e-324, 0.0, 1.0 + 2.0**-52])
    high, low = pairs.halves(a)
    np.testing.assert_array_equal(high + low, a)
    assert np.all(np.isfinite(high))


def test_division_and_root():
    random = np.random.default_rng(3)
    a, b = ((x, x * pairs.UNIT * random.uniform(-1, 1, 2000)) for x in random.uniform(1.0, 1.99, (2, 2000)))
    with mp.workprec(_PLACES):

        def value(pair, i):
            return mp.mpf(float(pair[0][i])) + mp.mpf(float(pair[1][i]))

        quotient, root, product, total = (
            pairs.divide(a, b),
            pairs.square_root(a),
            pairs.times(a, b),
            pairs.add(a, b),
        )
        for i in range(2000):
            x, y = value(a, i), value(b, i)
            assert abs(value(quotient, i) * y / x - 1) < 16 * pairs.UNIT**2
            assert abs(value(root, i) / mp.sqrt(x) - 1) < 16 * pairs.UNIT**2
            assert abs(value(product, i) / (x * y) - 1) < 8 * pairs.UNIT**2
            assert abs(value(total, i) / (x + y) - 1) < 3 * pairs.UNIT**2
