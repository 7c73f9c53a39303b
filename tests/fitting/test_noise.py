"""The noise source; exact noise cannot be seeded, so each test here states its false-alarm rate."""

import multiprocessing
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

from expost.fitting.noise import ExactNoise, SeededNoise, noise_source


@pytest.mark.parametrize("scale", [1e-12, 0.3, 4.2, 1e6])
def test_exact_noise_has_the_stated_law(scale):
    """Kolmogorov-Smirnov and the chi-squared law of the sum of squares; false alarm 2e-7 per scale."""
    draws = ExactNoise().gaussian(scale, 4000) / scale
    assert stats.kstest(draws, "norm").pvalue > 1e-7
    assert 0.5e-7 < stats.chi2.cdf(draws @ draws, len(draws)) < 1 - 0.5e-7


def test_exact_noise_ignores_numpys_seed():
    draws = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002  (that this does nothing is the point)
        draws.append(ExactNoise().gaussian(1.0, 8))
    assert not np.intersect1d(*draws).size


def test_threads_draw_different_noise():
    with ThreadPoolExecutor(4) as pool:
        draws = np.concatenate(list(pool.map(lambda _: ExactNoise().gaussian(1.0, 50), range(16))))
    assert len(np.unique(draws)) == draws.size


def _draw_in_child(queue):
    queue.put((os.getpid(), ExactNoise().gaussian(1.0, 50).tolist()))


@pytest.mark.skipif(sys.platform == "win32", reason="fork does not exist there")
def test_forked_processes_draw_different_noise():
    """A generator whose state is copied by fork would give every child the same noise."""
    ExactNoise().gaussian(1.0, 1)  # warm any state before forking
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
    assert source.gaussian(2.0, 3).shape == (3,)


def test_seeded_noise_is_reproducible():
    np.testing.assert_array_equal(SeededNoise(3).gaussian(1.0, 5), SeededNoise(3).gaussian(1.0, 5))
