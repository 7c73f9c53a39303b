r"""The law of the two largest of the differences :math:`W_j - W_y`, :math:`j \ne y`, of normal variables.

Their densities (docs/mathematics.md, section 11, "Two order statistics") have an expectation as a factor that
is a function of one variable, tabulated once for each number of classes.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.interpolate import BSpline, make_interp_spline
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri_exp

from expost._common.typing import FloatArray
from expost._common.validation import check_positive
from expost.privacy import gaussian
from expost.privacy.excess import ROW, Excess

# Gauss-Legendre nodes in each direction of a cell.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)
# Where the powers are tabulated. Below, they are taken to be those at the end, which are larger.
_LOWEST, _HIGHEST, _STEP = -15.0, 13.0, 0.04
# The last edge of the gap, in units of the last edge of the largest difference.
_GAP_REACH = 1.5


@lru_cache(maxsize=64)
def _log_power(power: int, spread: float) -> BSpline:
    """The logarithm of the mean of ``ndtr(s + spread Z)**power`` as a function of ``s``."""
    at = np.linspace(_LOWEST, _HIGHEST, round((_HIGHEST - _LOWEST) / _STEP) + 1)
    # The trapezoidal rule for an entire function that decays like a normal density is exact to rounding.
    normal = np.linspace(-11.0, 11.0 - _LOWEST / spread, 601)
    exponent = power * log_ndtr(at[:, None] + spread * normal) - 0.5 * normal**2
    top = exponent.max(axis=1)
    total = np.exp(exponent - top[:, None]).sum(axis=1) * (normal[1] - normal[0])
    return make_interp_spline(at, top + np.log(total) - 0.5 * math.log(2.0 * math.pi), k=5)


def _power(power: int, spread: float, at: FloatArray) -> FloatArray:
    """The mean of ``ndtr(at + spread Z)**power``."""
    if power == 0:
        return np.ones_like(at)
    return np.exp(_log_power(power, spread)(np.clip(at, _LOWEST, _HIGHEST)))


@dataclass(frozen=True)
class LargestTwo:
    """The law of the largest difference and of the gap to the second largest, for ``classes`` >= 3."""

    classes: int

    def largest(self, at: FloatArray) -> FloatArray:
        """The density of the largest difference."""
        scale = (self.classes - 1) / math.sqrt(4.0 * math.pi)
        power = _power(self.classes - 2, math.sqrt(0.5), 0.5 * at)
        density: FloatArray = scale * np.exp(-0.25 * at**2) * power
        return density

    def density(self, at: FloatArray, gap: FloatArray) -> FloatArray:
        """The joint density of the largest difference and of the gap to the second largest."""
        second = at - gap
        scale = (self.classes - 1) * (self.classes - 2) / (2.0 * math.pi * math.sqrt(3.0))
        exponent = (at**2 - at * second + second**2) / 3.0
        power = _power(self.classes - 3, math.sqrt(1.0 / 3.0), (2.0 * second - at) / 3.0)
        density: FloatArray = scale * np.exp(-exponent) * power
        return density

    def above(self, at: float) -> float:
        """An upper bound on the probability that the largest difference is above ``at``."""
        return min(1.0, (self.classes - 1) * float(ndtr(-at / math.sqrt(2.0))))

    def overshoot(self, at: float) -> float:
        """An upper bound on the mean of the part of the largest difference above ``at``."""
        apart = at / math.sqrt(2.0)
        one = math.exp(-0.5 * apart**2) / math.sqrt(2.0 * math.pi) - apart * float(ndtr(-apart))
        return (self.classes - 1) * math.sqrt(2.0) * max(one, 0.0)

    def below(self, at: float) -> float:
        """An upper bound on the probability that the largest difference is below ``at``."""
        return float(ndtr(at / math.sqrt(2.0)))

    def reach(self, logarithm: float) -> float:
        """A point that the largest difference exceeds with a probability of at most exp(``logarithm``)."""
        return -math.sqrt(2.0) * float(ndtri_exp(min(logarithm - math.log(self.classes - 1), -math.log(2.0))))


@dataclass(frozen=True, eq=False)
class Grid:
    """The law on a grid of the largest difference (``edges``) and of the gap (``gaps``).

    ``joint`` is the mass at the quadrature nodes of every cell, ``beyond`` that of gaps above the last edge.
    """

    edges: FloatArray
    gaps: FloatArray
    joint: FloatArray
    beyond: FloatArray

    def weights(self, rate: float, gap_rate: float) -> FloatArray:
        """Weights on the points of the grid that bound the expectation of a function from above.

        Section 11, "Expectation", says of which. What lies outside the first and last edge is left out.
        """
        nodes, _ = _composite(self.edges)
        gap_nodes, _ = _composite(self.gaps)
        high = np.expm1(-rate * (nodes - _per_node(self.edges[:-1])))
        high /= _per_node(np.expm1(-rate * np.diff(self.edges)))
        # For the gap the exponential rises: it is taken from the upper edge, where nothing overflows.
        fall = np.expm1(-gap_rate * (_per_node(self.gaps[1:]) - gap_nodes))
        gap_high = 1.0 - fall / _per_node(np.expm1(-gap_rate * np.diff(self.gaps)))
        along = _onto_edges(self.joint, gap_high, axis=1)
        along[:, -1] += self.beyond
        return _onto_edges(along, high[:, None], axis=0)


# A search for a noise scale comes back to the same grid many times.
@lru_cache(maxsize=8)
def grid_of(law: LargestTwo, low: float, high: float, cells: int, gap_cells: int) -> Grid:
    """The law between two values of the largest difference, cut into cells."""
    edges = np.linspace(low, high, cells + 1)
    # Small gaps matter most: there a second class adds to the privacy loss.
    gaps = _GAP_REACH * max(high, 1.0) * np.linspace(0.0, 1.0, gap_cells + 1) ** 1.5
    nodes, masses = _composite(edges)
    gap_nodes, gap_masses = _composite(gaps)
    joint = law.density(nodes[:, None], gap_nodes) * gap_masses
    beyond = np.maximum(law.largest(nodes) - joint.sum(axis=1), 0.0)
    return Grid(edges, gaps, joint * masses[:, None], beyond * masses)


def _composite(edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the Gauss-Legendre rule on every cell."""
    half = 0.5 * np.diff(edges)[:, None]
    return (edges[:-1, None] + half * (1.0 + _NODES)).ravel(), (half * _WEIGHTS).ravel()


def _per_node(values: FloatArray) -> FloatArray:
    """One value for each cell, repeated for its nodes."""
    return np.repeat(values, len(_NODES))


def _onto_edges(values: FloatArray, high: FloatArray, *, axis: int) -> FloatArray:
    """Share values at the nodes between the edges of their cells, ``high`` of each to the upper one."""
    nodes = len(_NODES)
    shape = (*values.shape[:axis], values.shape[axis] // nodes, nodes, *values.shape[axis + 1 :])
    upper = (values * high).reshape(shape).sum(axis=axis + 1)
    lower = values.reshape(shape).sum(axis=axis + 1) - upper
    edge = np.zeros_like(upper.take([0], axis=axis))
    shared: FloatArray = np.concatenate([lower, edge], axis=axis) + np.concatenate([edge, upper], axis=axis)
    return shared


def flat_delta(classes: int, epsilon: float, shift: float, excess: Excess = ROW) -> float:
    """The profile of softmax without its log-determinant at the shift cR/σ (section 11)."""
    law = LargestTwo(classes)
    kink, lowest = (epsilon - excess.room) / shift - shift, -law.reach(-80.0)
    start = max(kink, lowest)
    reach = max(law.reach(-0.25 * max(start, 0.0) ** 2 - 60.0), start + 1.0)
    nodes, masses = _composite(np.linspace(start, reach, 401))
    values = excess.mean_at_shift(epsilon - shift**2 - shift * nodes, 0.0)
    outside = excess.beyond(law.above(reach), float(values[-1]), shift * law.overshoot(reach))
    outside += law.below(lowest) * float(values[0]) if kink < lowest else 0.0
    return min(1.0, float(masses @ (values * law.largest(nodes))) + outside)


def flat_sigma(classes: int, epsilon: float, delta: float) -> float:
    """The noise that softmax needs without its log-determinant, where the cap times the norm is 1."""
    target = check_positive("delta", delta, below=1.0)
    one = math.sqrt(2.0) * gaussian.sigma(epsilon, target, sensitivity=1.0)
    if classes == 2:
        return one
    # At most one Gaussian mechanism for each wrong class.
    most = math.sqrt(2.0) * gaussian.sigma(epsilon, target / (classes - 1), sensitivity=1.0)

    def excess(sigma: float) -> float:
        return math.log(flat_delta(classes, epsilon, 1.0 / sigma) / target)

    root = float(brentq(excess, 0.99 * one, 1.01 * most, xtol=1e-12 * one))
    while excess(root) > 0.0:
        root *= 1.0 + 1e-12
    return root
