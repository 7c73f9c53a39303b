r"""Two-sided bounds on the expectation of a function of Gaussian noise that is convex in v = exp(-rN).

The functions here, suprema of Gaussian profiles, rise in the noise :math:`N`, and on each cell of the noise
they are convex and falling in :math:`v = e^{-rN}` for a rate :math:`r` of that cell. There the chord in
:math:`v` lies above the function, and the function at the cell's mean of :math:`v` lies below its average
(the inequalities of Edmundson and Madansky, and of Jensen). Both are of second order in the width of a cell,
and both hold however coarse the cells are.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import gammaincc, gammainccinv, gammaln

from expost._common.typing import FloatArray

# Probabilities below this are not resolved, only bounded.
NEGLIGIBLE = 1e-300
# Covers rounding: errors of 1e-12 in the Gaussian profile and, where cells are narrow, of 1e-10 in their
# probabilities and means. Directed rounding of every operation would buy nothing at a tolerance of 1e-4.
_ROUNDING = 1e-9
# The first round is at least this coarse: the rounds end as soon as the question is decided.
_COARSE = 1e-2
_ROUNDS = 10
# Edges at most: what needs more gets a wider bracket, not more time.
_EDGE_LIMIT = 3_000


class Bracket(NamedTuple):
    """Two numbers with the wanted one between them."""

    lower: float
    upper: float


def certified(lower: float, upper: float) -> Bracket:
    """The bracket of two computed ends, with room for rounding and for what is too small to be a double."""
    return Bracket(lower * (1.0 - _ROUNDING), min(upper * (1.0 + _ROUNDING) + NEGLIGIBLE, 1.0))


class Integrand(Protocol):
    """What is averaged over the noise."""

    def rates(self, noise: FloatArray) -> FloatArray:
        """A rate in ``v`` for all values below this noise; any larger one serves as well."""

    @property
    def cheap(self) -> bool:
        """Whether a value costs so little that the noise may be resolved more finely than asked."""

    def fixed_slope(self) -> float:
        """A lower bound on the whole expectation, in closed form."""

    def sample(self, noise: FloatArray) -> FloatArray:
        """A good lower bound on the integrand, at a fixed cost."""

    def bound(self, noise: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """An upper bound for slopes in ``[low, high]``; a lower bound on the integrand where they agree."""

    def supremum(self, noise: FloatArray, rtol: float, floor: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Upper bounds within ``rtol`` of the integrand or of ``floor``, and slopes that nearly attain it."""


class Cells(NamedTuple):
    """The noise law cut into cells at ``edges``, one entry per cell."""

    mass: FloatArray
    mean: FloatArray
    """Where the mean of ``v`` over the cell lies, on the scale of the noise; never above it."""
    chord: FloatArray
    """The chord's weight on the cell's upper edge; never below it."""


@dataclass(frozen=True)
class Noise:
    """A chi variable of ``freedom`` degrees, or, where ``signed``, a standard normal."""

    freedom: int
    signed: bool

    def quantile(self, tail: float) -> float:
        """The point exceeded with probability ``tail``."""
        beyond = 2.0 * tail if self.signed else tail
        return math.sqrt(2.0 * float(gammainccinv(0.5 * self.freedom, beyond)))

    def cells(self, edges: FloatArray, rate: FloatArray) -> Cells:
        """Cut the law at ``edges``, which contain 0 where ``signed``, each cell for its own rate in ``v``."""
        low, high = edges[:-1], edges[1:]
        width = high - low
        half = 0.5 * edges * edges
        mass = np.abs(np.diff(gammaincc(0.5 * self.freedom, half)))
        # x times the chi density is the density of one more degree of freedom, times this constant.
        moment = math.sqrt(2.0) * math.exp(gammaln(0.5 * (self.freedom + 1)) - gammaln(0.5 * self.freedom))
        first = np.copysign(moment, low + high) * np.abs(np.diff(gammaincc(0.5 * (self.freedom + 1), half)))
        centre = np.divide(first, mass, out=0.5 * (low + high), where=mass > 0.0)
        offset = np.clip(centre - low, 0.0, width)
        # v is convex in the noise: its mean lies above v at the mean noise and below the chord there.
        fall = np.expm1(-rate * width)
        mean = low - np.log1p(np.maximum(offset / width * fall, 1e-15 - 1.0)) / rate
        return Cells(0.5 * mass if self.signed else mass, mean, np.expm1(-rate * offset) / fall)


def expectation(integrand: Integrand, noise: Noise, rtol: float, scale: float = 0.0) -> Bracket:
    """Bracket an expectation to ``rtol``, relative to itself or to ``scale`` if that is larger.

    Where the expectation is found to be below ``scale``, it is resolved no further.
    """
    fixed = integrand.fixed_slope()
    size = max(fixed, scale, NEGLIGIBLE)
    tail = 1e-2 * rtol * size
    reach = noise.quantile(tail)
    edges = np.linspace(0.0, reach, 17)
    if noise.signed:
        edges = np.concatenate([np.linspace(-reach, 0.0, 5)[:-1], edges])
    share = max(rtol, _COARSE)
    part = 0.2 if integrand.cheap else 0.6
    lower, upper, width = fixed, 1.0, math.inf
    for _ in range(_ROUNDS):
        edges = _place(integrand, noise, edges, part * share * size)
        mass, mean, chord = noise.cells(edges, integrand.rates(edges[1:]))
        # The chords amount to a law on the edges. Below the first edge the integrand is at most its
        # value there; beyond the last it is at most 1.
        weight = np.concatenate([mass * (1.0 - chord), [0.0]]) + np.concatenate([[tail], mass * chord])
        # An edge may err by a share of its own value, or by an even part of the whole if that is larger.
        even = size / (len(edges) * np.maximum(weight, NEGLIGIBLE))
        values, best = integrand.supremum(edges, 0.3 * share, even)
        near = np.stack([best[:-1], 0.5 * (best[:-1] + best[1:]), best[1:]], axis=1)
        below = integrand.bound(mean[:, None], near, near).max(axis=1)
        # Every round is a bracket of its own, and a finer one need not be narrower at both ends.
        lower, upper = max(lower, float(mass @ below)), min(upper, float(weight @ values) + tail)
        if upper <= scale or upper - lower <= rtol * max(upper, size):
            break
        if upper - lower > 0.7 * width:  # a limit is reached: more rounds would take time only
            break
        width = upper - lower
        share *= 0.25
    return certified(lower, upper)


def _place(integrand: Integrand, noise: Noise, edges: FloatArray, tolerance: float) -> FloatArray:
    """Halve cells until the chords are close, as estimated from a few slopes."""
    while True:
        mass, mean, chord = noise.cells(edges, integrand.rates(edges[1:]))
        at_edges, at_means = np.split(integrand.sample(np.concatenate([edges, mean])), [len(edges)])
        gap = mass * (at_edges[:-1] + chord * np.diff(at_edges) - at_means)
        # Parameters so extreme that the gap is not a number end here too, and are certified by nothing.
        if not gap.sum() > tolerance or len(edges) > _EDGE_LIMIT:
            return edges
        wide = gap > tolerance / len(gap)
        edges = np.sort(np.concatenate([edges, 0.5 * (edges[:-1] + edges[1:])[wide]]))
