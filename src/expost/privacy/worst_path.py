r"""The exact worst case of one row with one linear predictor, bounded from above on cells.

Given the noise across its row, a row's shift :math:`g = f'\|x\|/\sigma` is a path over the noise :math:`y`
along it, and the two laws are :math:`\varphi(y)` and :math:`\varphi(y + g)(1 + g')`. Every table, dimension
and convex regulariser is such a path, with :math:`0 \le g' \le k(g)`. It waits or grows, and the best one is
found level by level, from the steepest slope down (docs/mathematics.md, theorem 16.2).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from expost._common.typing import FloatArray
from expost.losses.base import DerivativeCurve
from expost.privacy import gaussian

# How far beyond the largest shift the noise is resolved: outside, densities are at most the normal one there.
_REACH = 10.0
# A path below this share of the steepest slope is bounded in one piece.
_LOWEST = 1e-3
# Levels: by growth time, at least this many, and no closer than this share of the steepest slope; the second
# one where growth is slow everywhere, so that hardly anything depends on it.
_TIME, _LEVELS, _CLOSEST, _CLOSEST_SLOW = 0.02, 200, 1e-4, 2e-3
SLOW = 0.01
# Slower growth is not resolved: a larger rate admits more paths.
_SLOWEST = 1e-4
# Epsilons beyond this have no exponential.
LAST_EPSILON = 700.0
# Cells of the noise.
COARSE, FINE = 0.02, 0.005
# Numbers of the cells and levels that are worked on at a time: they stay in the cache.
_NUMBERS = 1 << 15


@dataclass(frozen=True)
class WorstPath:
    r"""The largest divergences over all paths of a row's shift, for arrays of epsilons.

    Assumes that :math:`\kappa(m)/m^2` does not rise, so that shorter rows have no other paths.
    """

    curve: DerivativeCurve
    norm: float
    l2: float
    sigma: float
    cell: float = COARSE

    @property
    def steepest(self) -> float:
        """The largest shift, that of the steepest slope."""
        return self.curve.max_slope * self.norm / self.sigma

    @property
    def fastest(self) -> float:
        """The largest rate of growth."""
        return self._rate(0.0, self.steepest)

    def _rate(self, low: float, high: float) -> float:
        """An upper bound on how fast a shift between these two grows with the noise."""
        slopes = np.minimum(np.array([low, high]) * self.sigma / self.norm, self.curve.max_slope)
        return float(self.curve.max_curvature_between(slopes[:1], slopes[1:])[0]) * self.norm**2 / self.l2

    @cached_property
    def _levels(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Edges of the shift, the largest rate between two of them, and the least time to grow up to each."""
        top, corner = self.steepest, self.curve.peak * self.norm / self.sigma
        closest = _CLOSEST_SLOW if self.fastest < SLOW else _CLOSEST
        edges, rates = [_LOWEST * top], []
        while edges[-1] < top:
            low = edges[-1]
            widest = top / _LEVELS
            step = _TIME * max(self._rate(low, min(low + widest, top)), _SLOWEST)
            high = low + max(min(step, widest), closest * top)
            if low < corner < high:
                high = corner
            high = top if high > top * (1.0 - 1e-6) else high
            edges.append(high)
            rates.append(max(self._rate(low, high), _SLOWEST))
        found = np.array(edges), np.array(rates)
        return *found, np.concatenate([[0.0], np.cumsum(np.diff(found[0]) / found[1])])

    def _gaussian(self, epsilon: FloatArray, shift: FloatArray | float) -> FloatArray:
        return np.asarray(gaussian.delta(epsilon, sensitivity=shift, sigma=1.0))

    def _pays_below(self, epsilon: FloatArray, shift: float) -> FloatArray:
        """The largest density of the noise at which it pays to grow while the shift is below this one."""
        beyond = (math.log1p(self._rate(0.0, shift)) - epsilon) / shift + 0.5 * shift
        return np.asarray(_density(np.minimum(beyond, 0.0)))

    def adding(self, epsilon: FloatArray) -> FloatArray:
        """An upper bound on delta at each epsilon when the row is added."""
        top = self.steepest
        constant, at = self._gaussian(epsilon, top), epsilon[:, None]
        edges, _, times = self._levels
        reach, cell = _REACH + top, self.cell
        # The cells in which the noise is within reach: they move with the time that growth takes.
        firsts = np.floor((-reach - times[1:]) / cell).astype(int) - 1
        lasts = np.ceil((reach - times[:-1]) / cell).astype(int) + 1
        ends = self._gaussian(at, edges) - constant[:, None]
        best, start, value = np.zeros(len(epsilon)), int(firsts[-1]), np.zeros((len(epsilon), 0))
        for level, gain in self._gains(epsilon, firsts, lasts):
            first, count = firsts[level], lasts[level] - firsts[level]
            # Above them the rest is grown where there is no noise left.
            later = np.repeat(ends[:, level + 1, None], count, axis=1)
            shared = max(min(count, value.shape[1] - (first - start)), 0)
            known = value[:, first - start : first - start + shared]
            later[:, :shared] = np.maximum(known, later[:, :shared])
            value = np.maximum(_falling(later + gain), ends[:, level, None])
            start = int(first)
            best = np.maximum(best, value[:, 0])
        beyond = edges[0] * self._pays_below(epsilon, edges[0]) + 2.0 * top * float(_density(_REACH))
        fixed = constant + best + beyond
        if self.curve.sign_fixed:
            return np.asarray(np.minimum(fixed, 1.0))
        # The path crosses zero in some cell; the part before is the mirror image of one after.
        half = min(-start, start + value.shape[1])
        part = np.maximum(constant[:, None] + value[:, -start - half : -start + half], 0.0) + beyond[:, None]
        crossing = np.max(part + part[:, ::-1], axis=1)
        crossing = np.maximum(crossing, fixed + ndtr(-half * cell))
        alone = epsilon >= math.log1p(self.fastest)
        return np.asarray(np.minimum(np.where(alone, fixed, crossing), 1.0))

    def _gains(
        self, epsilon: FloatArray, firsts: NDArray[np.int64], lasts: NDArray[np.int64]
    ) -> Iterator[tuple[int, FloatArray]]:
        """What each level gains in its cells, the last one first; many levels are worked on at a time."""
        edges, rates, times = (each[:, None] for each in self._levels)
        longest = int(np.max(lasts - firsts))
        together = max(1, _NUMBERS // (longest * len(epsilon)))
        for stop in range(len(rates), 0, -together):
            some = slice(max(stop - together, 0), stop)
            above = slice(some.start + 1, stop + 1)
            noise = (firsts[some, None] + np.arange(longest + 1)) * self.cell
            left, right = noise[:, :-1] + times[some], noise[:, 1:] + times[above]
            low, high = edges[some], edges[above]
            gain = (high - low) * _gain(epsilon[:, None, None], left, right, low, high, rates[some])
            for level in range(stop - 1, some.start - 1, -1):
                yield level, gain[:, level - some.start, : lasts[level] - firsts[level]]

    def removing(self, epsilon: FloatArray) -> FloatArray:
        """An upper bound on delta at each epsilon when the row is removed."""
        top = self.steepest
        constant, at = self._gaussian(epsilon, top), epsilon[:, None]
        if self.curve.sign_fixed:
            return constant
        edges, rates, times = self._levels
        half = math.ceil((_REACH + top) / self.cell)
        noise = np.arange(-half, half) * self.cell
        value = np.zeros((len(epsilon), 2 * half))
        for low, high, rate, time in zip(edges[:-1], edges[1:], rates, times[:-1], strict=True):
            value += (high - low) * _removing_gain(at, noise + time, low, high, rate)
        value = np.minimum(value, constant[:, None])
        crossing = np.max(value + value[:, ::-1], axis=1)
        lowest = _density(np.maximum(epsilon / edges[0] - 0.5 * edges[0], 0.0))
        beyond = 2.0 * (edges[0] * lowest + top * float(_density(_REACH))) + ndtr(-_REACH - top)
        return np.asarray(np.minimum(np.maximum(constant, crossing) + beyond, 1.0))


def _density(at: FloatArray | float) -> FloatArray:
    return np.asarray(np.exp(-0.5 * np.square(at)) / math.sqrt(2.0 * math.pi))


def _falling(value: FloatArray) -> FloatArray:
    """The largest value from each cell on: a path may wait."""
    return np.maximum.accumulate(value[:, ::-1], axis=1)[:, ::-1]


def _gain(
    epsilon: FloatArray,
    left: FloatArray,
    right: FloatArray,
    low: FloatArray,
    high: FloatArray,
    rate: FloatArray,
) -> FloatArray:
    """What growing by one unit gains over waiting, at most: noise and shift in a cell, for an added row."""
    exponent = np.maximum(_largest_exponent(left, low, high), _largest_exponent(right, low, high))
    share = np.exp(np.minimum(exponent - epsilon, 0.0))
    grown = np.exp(epsilon - 0.5 * np.clip(0.0, left, right) ** 2) / math.sqrt(2.0 * math.pi)
    grown = grown * np.maximum(share - (1.0 - share) / rate, 0.0)
    # Beyond the noise at which waiting earns nothing any more, the Gaussian's own rise is what it costs.
    gain = grown - np.minimum(_density(0.5 * low - epsilon / low), _density(0.5 * high - epsilon / high))
    ends = -epsilon / low - 0.5 * low, -epsilon / high - 0.5 * high
    peak = (low * low < 2.0 * epsilon) & (2.0 * epsilon < high * high)
    latest = np.where(peak, -np.sqrt(2.0 * epsilon), np.maximum(*ends))
    gain = np.where(left >= latest, gain, np.maximum(gain, 0.0))
    gain = np.where(right <= np.minimum(*ends), 0.0, gain)
    waits = rate * (epsilon - 0.5 * low * low) <= low * low  # lemma 16.3
    return np.where(waits, np.minimum(gain, 0.0), gain)


def _largest_exponent(noise: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """The largest log-ratio of the two densities at this noise, over shifts in a cell."""
    shift = np.clip(-noise, low, high)
    return -noise * shift - 0.5 * shift * shift


def _removing_gain(
    epsilon: FloatArray, noise: FloatArray, low: float, high: float, rate: float
) -> FloatArray:
    """The gain in a cell where a row is removed; it falls with the noise, of which this is the least."""
    nearest = np.clip(np.sqrt(2.0 * epsilon), low, high)
    most = _density(0.5 * nearest - epsilon / nearest)
    grown = np.exp(epsilon - 0.5 * (noise + low) ** 2) * (1.0 + 1.0 / rate) - np.exp(-0.5 * noise**2) / rate
    grown = np.maximum(grown, 0.0) / math.sqrt(2.0 * math.pi)
    return np.where(noise <= epsilon / low - 0.5 * low, most, np.minimum(grown, most))
