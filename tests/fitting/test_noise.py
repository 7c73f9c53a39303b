"""The noise source; exact noise cannot be seeded, so each test here states its false-alarm rate."""

import math
import multiprocessing
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from expost.exceptions import ParameterError
from expost.fitting.noise import ExactNoise, SeededNoise, noise_source, root_of
from expost.fitting.statistics import printed
from expost.privacy.precision import MOST_NUMBERS, REAL, Rounding


@pytest.mark.parametrize("scale", [1e-12, 0.3, 4.2, 1e6])
def test_exact_noise_has_the_stated_law(scale):
    """Kolmogorov-Smirnov and the chi-squared law of the sum of squares; false alarm 2e-7 per scale."""
    draws = ExactNoise().tilt(scale, 4000).rounded / scale
    assert stats.kstest(draws, "norm").pvalue > 1e-7
    assert 0.5e-7 < stats.chi2.cdf(draws @ draws, len(draws)) < 1 - 0.5e-7


def test_exact_noise_ignores_numpys_seed():
    draws = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002  (that this does nothing is the point)
        draws.append(ExactNoise().tilt(1.0, 8).rounded)
    assert not np.intersect1d(*draws).size


def test_threads_draw_different_noise():
    with ThreadPoolExecutor(4) as pool:
        draws = np.concatenate(list(pool.map(lambda _: ExactNoise().tilt(1.0, 50).rounded, range(16))))
    assert len(np.unique(draws)) == draws.size


def _draw_in_child(queue):
    queue.put((os.getpid(), ExactNoise().tilt(1.0, 50).rounded.tolist()))


@pytest.mark.skipif(sys.platform == "win32", reason="fork does not exist there")
def test_forked_processes_draw_different_noise():
    """A generator whose state is copied by fork would give every child the same noise."""
    ExactNoise().tilt(1.0, 1)  # warm any state before forking
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    children = [context.Process(target=_draw_in_child, args=(queue,)) for _ in range(4)]
    for child in children:
        child.start()
    drawn = dict(queue.get() for _ in children)
    for child in children:
        child.join()
    # Each drew in a process of its own.
    assert set(drawn) == {child.pid for child in children}
    assert os.getpid() not in drawn
    draws = np.concatenate(list(drawn.values()))
    assert draws.size == 200
    assert len(np.unique(draws)) == draws.size


@pytest.mark.parametrize("seed", [7, np.random.RandomState(7), np.random.default_rng(7)])
def test_a_seed_gives_insecure_noise(seed):
    source = noise_source(seed)
    assert isinstance(source, SeededNoise)
    assert source.insecure
    assert not noise_source(None).insecure
    assert source.tilt(2.0, 3).rounded.shape == (3,)


def test_seeded_noise_is_reproducible():
    np.testing.assert_array_equal(SeededNoise(3).tilt(1.0, 5).rounded, SeededNoise(3).tilt(1.0, 5).rounded)


@pytest.mark.parametrize("scale", [0.6, 2.5])
def test_the_discrete_law(scale):
    """Chi-square over all cells with 5 expected draws, and the variance; false alarm 4e-7 each scale."""
    draws = np.array(ExactNoise().integers([scale] * 20_000))
    cells = np.arange(-40, 41)
    weight = np.exp(-(cells**2) / (2.0 * scale**2))
    expected = len(draws) * weight / weight.sum()
    inner = expected >= 5.0
    seen = np.array([np.sum(draws == cell) for cell in cells])
    observed = np.append(seen[inner], len(draws) - seen[inner].sum())
    wanted = np.append(expected[inner], expected[~inner].sum())
    assert stats.chisquare(observed, wanted).pvalue > 2e-7
    variance = float((weight * cells**2).sum() / weight.sum())
    fourth = float((weight * cells**4).sum() / weight.sum())
    z = (np.mean(draws**2) - variance) / math.sqrt((fourth - variance**2) / len(draws))
    assert abs(z) < stats.norm.isf(1e-7)


@pytest.mark.parametrize("bits", [20, 31, 45, 51])
def test_long_draws_are_not_cut_off(bits):
    """The sum of squares and Kolmogorov-Smirnov, false alarm 3e-7 per scale; 32 bits would fail."""
    scale = 1.1 * 2.0**bits
    draws = np.array(ExactNoise().integers([scale] * 3000), dtype=float) / scale
    assert 1e-7 < stats.chi2.cdf(draws @ draws, len(draws)) < 1.0 - 1e-7
    assert stats.kstest(draws, "norm").pvalue > 1e-7


def test_scales_that_do_not_fit_are_refused():
    with pytest.raises(ParameterError, match="steps of its grid"):
        ExactNoise().integers([2.0**53])
    for sigma in (1e-241, 1e271):
        with pytest.raises(ParameterError, match="`sigma` must be between 1e-240 and 1e270"):
            ExactNoise().tilt(sigma, 3)


@pytest.mark.parametrize("source", [ExactNoise(), SeededNoise(3)], ids=["exact", "seeded"])
def test_integers_in_integers_out(source):
    values, grid = [10**40, -(10**40), 0, 7], 2.0**-50
    draws = source.integers([2.0**-30 / grid] * 4)
    assert all(type(drawn) is int and abs(drawn) < 20 * 2**20 for drawn in draws)
    exact = [
        float(Fraction(value + drawn) * Fraction(grid)) for value, drawn in zip(values, draws, strict=True)
    ]
    assert printed(values, draws, grid).tolist() == exact


def test_seeded_integers_are_reproducible():
    assert SeededNoise(7).integers([1e9] * 5) == SeededNoise(7).integers([1e9] * 5)


@pytest.mark.parametrize("sigma", [4.225, 1e-12, 1e12, 1.0, 0.5, 1e-200, 1e200])
def test_the_tilt_has_the_stated_law_and_grid(sigma):
    """Both parts whole on their grids, the sum of the stated variance; false alarm 2e-7 per scale."""
    tilt = ExactNoise().tilt(sigma, 1000)
    grid = 2.0 ** (math.frexp(sigma)[1] - 41)
    high, low = tilt.parts
    for part, step in ((high, grid), (low, grid * 2.0**-30)):
        counts = part / step
        assert np.all(counts == np.rint(counts))
        assert np.max(np.abs(counts)) < 2.0**53
    draws = tilt.rounded / sigma
    assert 1e-7 < stats.chi2.cdf(draws @ draws, len(draws)) < 1.0 - 1e-7
    assert np.std(low / grid) * 1.2 > 2.0**10
    assert np.std(low / grid) < 2.0**16.2
    assert tilt.rounding <= 2.0**-55 * sigma * math.sqrt(1000)


def test_the_tilt_is_as_fine_as_it_is_asked_to_be():
    for rounding in (1e-15, 1e-25, 1e-40):
        tilt = ExactNoise().tilt(4.2, 5, rounding=rounding)
        assert tilt.rounding <= rounding
        assert all(part.shape == (5,) for part in tilt.parts)
        sizes = [np.max(np.abs(part)) for part in tilt.parts]
        assert all(later < 2.0**-20 * earlier for earlier, later in pairwise(sizes))


def test_the_variance_of_the_tilt_is_sigma_squared(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "expost.fitting.noise._discrete_gaussian", lambda scale, size: seen.append(scale) or [0] * size
    )
    for sigma in np.random.default_rng(2).uniform(0.1, 50.0, 200):
        seen.clear()
        ExactNoise().tilt(float(sigma), 1)
        exponent = math.frexp(sigma)[1]
        first = Fraction(seen[0]) * Fraction(2) ** (exponent - 41)
        # The second scale is known up to its own power of two, which the first leaves open.
        left = Fraction(float(sigma)) ** 2 - first**2
        second = Fraction(seen[1]) * Fraction(2) ** -71
        while second**2 < left / 2:
            second *= 2
        excess = (first**2 + second**2) / Fraction(float(sigma)) ** 2 - 1
        assert 0 <= excess < Fraction(1, 2**100)


def test_the_diagonal_scale_is_rounded_up():
    for scale in np.random.default_rng(1).uniform(0.1, 10.0, 300):
        doubled = root_of(2 * Fraction(float(scale)) ** 2)
        assert Fraction(doubled) ** 2 >= 2 * Fraction(float(scale)) ** 2
        assert doubled <= math.sqrt(2.0) * scale * (1.0 + 4e-16)


@pytest.mark.parametrize("tau", [1.0, 3.0, 50.0])
def test_rounded_against_discrete(tau):
    """The two-sided bound on the ratio of the laws, at every k, in 60 digits."""
    with mp.workdps(60):
        t = mp.mpf(tau)
        theta = (
            mp.nsum(lambda k: mp.npdf(k, 0, t), [-mp.inf, mp.inf])
            if tau < 2
            else 1 + 2 * mp.exp(-2 * mp.pi**2 * t**2)
        )
        for k in range(0, int(12 * tau), max(1, int(tau / 2))):
            rounded = mp.ncdf((mp.mpf(k) + 0.5) / t) - mp.ncdf((mp.mpf(k) - 0.5) / t)
            if k > 8 * tau:
                rounded = mp.quad(lambda x: mp.npdf(x, 0, t), [k - mp.mpf(1) / 2, k + mp.mpf(1) / 2])
            ratio = mp.log(rounded * theta / mp.npdf(k, 0, t))
            assert -1 / (24 * t**2) <= ratio
            assert ratio <= (k / t) ** 2 / (24 * t**2) + mp.mpf("2.1") * mp.exp(-2 * mp.pi**2 * t**2)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 8.0, 50.0, 1e4])
def test_the_price_of_the_discrete_law(epsilon):
    """Noise beyond what the price allows for has a mass of 1e-300, even multiplied by e^epsilon."""
    printed = Rounding.planned(epsilon or 1.0, curvature=0.25)
    reach = math.sqrt(24.0 * printed.steps**2 * printed.law(epsilon))
    beyond = reach - math.sqrt(MOST_NUMBERS)
    assert epsilon - beyond**2 / 2.0 <= math.log(printed.tail)
    assert printed.law(epsilon) < 1e-7
    assert REAL.law(epsilon) == REAL.tail == 0.0
