r"""The gradient of the softmax objective's rows in more than double precision, class by class, in one pass.

The coefficients :math:`w` of :math:`K - 1` linear predictors stand for :math:`Qw`, one vector per class. The
entries of :math:`Q` are irrational; here they are whole numbers of :math:`2^{-192}`, each off by less than
:math:`K` of them.

With :math:`e_j = e^{s_j - t}`, :math:`t` the largest score of a class other than :math:`y`, :math:`S =
\sum_{j\ne y}e_j` and :math:`G = t - s_y`, the gradient in the scores is :math:`v_j = qe_j/S`, :math:`v_y =
-q`, with :math:`q = Se^G/(1 + Se^G)` up to the corner of a cap and :math:`q = F'(G + \log S)` beyond it.

Everything is done in the scores of the :math:`K` classes: each class has its own coefficients
:math:`\theta_j`, rows of :math:`Qw`, cut into slices as a scalar loss's are, and its own sum of slope times
row. Only the sums are turned into centred coordinates, in integers.
"""

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations
from math import isqrt
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from expost._common.namespaces import namespace_of
from expost._common.typing import BoolArray
from expost.fitting.certified.functions import RELATIVE_ERROR, Corner, decay
from expost.fitting.certified.pairs import (
    TINY,
    UNIT,
    Dyadic,
    FloatArray,
    Pair,
    Point,
    add,
    add_accurately,
    divide,
    length,
    times,
    two_sum,
)
from expost.fitting.certified.residual import Found, Partial, SlicedPass, Slicing
from expost.fitting.certified.slopes import OF_PRODUCT
from expost.losses import SoftmaxLoss
from expost.losses.softmax import TrueClass, centring

_BITS = 192


def to_classes(coefficients: Dyadic, classes: int) -> list[Dyadic]:
    """The coefficients of each class, off by less than ``2**-160`` of the norm for up to 10,000 classes."""
    counts = np.array(coefficients.counts, dtype=object).reshape(classes - 1, -1)
    return [Dyadic(list(row), coefficients.exponent - _BITS) for row in _helmert(classes) @ counts]


def from_classes(vectors: Dyadic, classes: int) -> Dyadic:
    """The centred coordinates of one vector per class, all in a row; off by as little."""
    counts = np.array(vectors.counts, dtype=object).reshape(classes, -1)
    return Dyadic(list((_helmert(classes).T @ counts).ravel()), vectors.exponent - _BITS)


def as_pair(vector: Dyadic) -> Pair:
    """The nearest pair of doubles, off by ``2**-106`` of each entry."""
    high = vector.doubles()
    return high, (vector - Dyadic.of(high)).doubles()


def centred_hessian(blocks: FloatArray, helmert: FloatArray) -> FloatArray:
    r"""The Hessian in centred coordinates from :math:`\sum_i B_{i,ab}x_ix_i^\top` for all pairs of classes.

    .. math:: \sum_{a<b}(q_a - q_b)(q_a - q_b)^\top \otimes \sum_i B_{i,ab}x_ix_i^\top

    with :math:`q_a` the rows of the Helmert matrix.
    """
    first, second = np.triu_indices(len(helmert), 1)
    difference = helmert[first] - helmert[second]
    outputs, columns = helmert.shape[1], blocks.shape[1]
    # One product over the pairs: (predictor, predictor) by pairs, times pairs by (column, column).
    squares = (difference[:, :, None] * difference[:, None, :]).reshape(len(first), -1)
    full = (squares.T @ blocks.reshape(len(first), -1)).reshape(outputs, outputs, columns, columns)
    matrix: FloatArray = full.transpose(0, 2, 1, 3).reshape(outputs * columns, outputs * columns)
    return np.ascontiguousarray(0.5 * (matrix + matrix.T))


def centred_pair(blocks: Pair, classes: int) -> FloatArray:
    """The same from sums that are pairs, rounded once at the end."""
    helmert = _helmert(classes)
    first, second = np.triu_indices(classes, 1)
    outputs, columns = classes - 1, blocks[0].shape[1]
    full = np.zeros((outputs, outputs, columns, columns))
    total: Pair = full, full.copy()
    for place, (a, b) in enumerate(zip(first, second, strict=True)):
        difference = helmert[a] - helmert[b]
        counts = [int(count) for count in np.outer(difference, difference).ravel()]
        square = as_pair(Dyadic(counts, -2 * _BITS))
        coefficient = tuple(part.reshape(outputs, outputs, 1, 1) for part in square)
        product = times((coefficient[0], coefficient[1]), (blocks[0][place], blocks[1][place]))
        total = add_accurately(total, product)
    matrix = (total[0] + total[1]).transpose(0, 2, 1, 3).reshape(outputs * columns, outputs * columns)
    # Entries and their mirrors are sums of the same products in another order.
    return np.ascontiguousarray(np.triu(matrix) + np.triu(matrix, 1).T)


@cache
def _helmert(classes: int) -> NDArray[np.object_]:
    matrix = np.zeros((classes, classes - 1), dtype=object)
    for a in range(classes - 1):
        root = isqrt((1 << 2 * _BITS) // ((a + 1) * (a + 2)))
        matrix[: a + 1, a] = root
        matrix[a + 1, a] = -(a + 1) * root
    return matrix


class SoftmaxSlopes(NamedTuple):
    """Gradients and Hessians of one block of rows, in the scores of the classes."""

    gradient: list[Pair]
    """One pair of vectors per class."""
    weights: FloatArray
    r"""Rows by pairs of classes: the Hessian is :math:`\sum_{a<b}B_{ab}(e_a - e_b)(e_a - e_b)^\top`."""
    smallest: FloatArray
    r"""The smallest of :math:`qe_j/S` and, for the class :math:`y`, :math:`q\kappa/(q-\kappa)`."""
    per_curvature: float
    """The error is at most this in the norm of the Hessian, times the root of its trace ..."""
    absolute: FloatArray | float
    """... plus this (Euclidean), for each row."""


def softmax_slopes(
    loss: SoftmaxLoss, scores: list[Pair], y: FloatArray, weights: FloatArray | None = None
) -> SoftmaxSlopes:
    r"""Gradients at the scores, one pair of vectors per class, times the weights of the rows.

    Notes
    -----
    *Exponentials.* A relative error :math:`\epsilon = 2^{-74}` of each :math:`e_j` and of :math:`e^{-|G|}`
    is a change of the scores by as much: the gradient is then that at scores off by :math:`\delta`,
    :math:`|\delta_j| \le \epsilon`. For scores off by :math:`\delta` the error is :math:`A\delta` up to the
    change of :math:`A`, and :math:`\delta^\top A\delta = q\mathrm{Var}_\pi\delta + \kappa(h^\top\delta)^2
    \le 4\epsilon^2\,\mathrm{tr}A`, because :math:`\mathrm{Var}_\pi\delta \le 2\epsilon^2(1 - \|\pi\|^2)`.

    *Beyond the corner* :math:`\log S` is off by another :math:`\epsilon`: one Newton step from a double
    logarithm, whose own error :math:`\tau` leaves :math:`\tau^3`. That moves :math:`q` by
    :math:`2\epsilon\kappa`, and the corner's exponential by :math:`\epsilon\kappa/r`
    (:meth:`~expost.fitting.certified.functions.Corner.slopes`); :math:`A \succeq \kappa hh^\top`, so an error
    of :math:`c\kappa h` is :math:`c\sqrt\kappa` in the norm of :math:`A^{-1}`.

    *Pairs.* Differences of scores beyond 640 do not count, so the others are off by less than
    :math:`4 \cdot 640u^2 < 2^{-94}`; sums of :math:`K` positive pairs by :math:`3Ku^2`, products and
    quotients by :math:`16u^2` each, the corner's slope by :math:`27u^2`: together less than
    :math:`(8K + 256)u^2` of a vector no longer than :math:`\sqrt2`.
    """
    xp, true, zero = namespace_of(y), TrueClass(y, loss.classes), namespace_of(y).zeros_like(y)
    high, low = (xp.stack([pair[i] for pair in scores], axis=1) for i in (0, 1))
    own = true.entries(high)[:, 0], true.entries(low)[:, 0]
    high = true.replaced(high, -math.inf)
    largest = xp.max(high, axis=1)
    # Pairs are compared by their high parts, then by their low ones.
    top = largest, xp.max(xp.where(high == largest[:, None], low, -math.inf), axis=1)
    powers: list[Pair] = []
    total: Pair = (zero, zero)
    for j, score in enumerate(scores):
        here = y == j
        distance = add_accurately(top, (-score[0], -score[1]))
        power = decay(xp.where(here, 0.0, distance[0]), xp.where(here, 0.0, distance[1]))
        power = xp.where(here, 0.0, power[0]), xp.where(here, 0.0, power[1])
        powers.append(power)
        total = add(total, power)
    ahead = add_accurately(top, (-own[0], -own[1]))
    wrong = ahead[0] > 0.0
    sign = xp.where(wrong, xp.ones_like(y), -xp.ones_like(y))
    less = decay(sign * ahead[0], sign * ahead[1])
    scaled = times(total, less)
    one: Pair = (xp.ones_like(y), zero)
    over = _where(wrong, total, scaled)
    under = add(over, _where(wrong, less, one))
    steep = divide(over, under)
    right = xp.where(wrong, less[0], 1.0) / under[0]
    curvature = steep[0] * right
    mixed = steep[0] * steep[0]
    per_curvature = 6.0 * RELATIVE_ERROR
    if loss.corner is not None:
        corner = Corner.of(loss.link).placed(y)
        outside = steep[0] > loss.link.corner_slope
        beyond = corner.beyond(add_accurately(ahead, _logarithm(total)))
        bent, flat = corner.slopes(decay(*corner.turn(beyond)))
        steep = _where(outside, bent, steep)
        curvature = xp.where(outside, flat, curvature)
        mixed = xp.where(outside, steep[0] - curvature, mixed)
        right = xp.where(outside, steep[0] * curvature / xp.where(outside, mixed, 1.0), right)
        per_curvature += 1.1 * RELATIVE_ERROR / float(corner.rate[0][0])
    share = divide(steep, total)
    gradient = []
    smallest = right
    shares = [power[0] / total[0] for power in powers]
    for j, power in enumerate(powers):
        smallest = xp.where(y == j, smallest, xp.minimum(smallest, steep[0] * shares[j]))
        slope = times(power, share)
        gradient.append(_where(y == j, (-steep[0], -steep[1]), slope))
    pairs = []
    for a, b in combinations(range(loss.classes), 2):
        with_true = xp.where(y == a, shares[b], 0.0) + xp.where(y == b, shares[a], 0.0)
        pairs.append(mixed * shares[a] * shares[b] + curvature * with_true)
    bends = xp.stack(pairs, axis=1)
    absolute = (8.0 * loss.classes + 256.0) * UNIT**2
    found = SoftmaxSlopes(gradient, bends, smallest, per_curvature, absolute)
    return found if weights is None else _weighted(found, weights)


def _weighted(found: SoftmaxSlopes, weights: FloatArray) -> SoftmaxSlopes:
    r"""Gradients and Hessians times weights, which are doubles and not negative.

    As for one predictor: each product of a pair and a double is off by :data:`OF_PRODUCT` of itself and by
    :data:`TINY`, and what a weight of the Hessian may have lost by underflow is paid for here, with room for
    scores that are off by up to :math:`2^{10}`.
    """
    xp = namespace_of(weights)
    zero = xp.zeros_like(weights)
    gradient = [times(pair, (weights, zero)) for pair in found.gradient]
    sizes = sum((xp.abs(high) for high, _ in gradient), zero)
    underflow = 2.0**12 * TINY * (len(gradient) + found.weights.shape[1])
    absolute = weights * found.absolute + OF_PRODUCT * sizes + underflow
    bends, smallest = weights[:, None] * found.weights, weights * found.smallest
    return SoftmaxSlopes(gradient, bends, smallest, found.per_curvature, absolute)


def weight_roundings(loss: SoftmaxLoss) -> float:
    """How many roundings, of the weight itself, are in a weight or in the smallest mass at most.

    Beyond the corner ``q - κ`` is at least ``q**2``, so that the difference loses a factor of ``1/q``.
    """
    return 4.0 * loss.classes + 33.0 + (0.0 if loss.corner is None else 8.0 / loss.link.corner_slope)


def _where(condition: BoolArray, a: Pair, b: Pair) -> Pair:
    xp = namespace_of(condition)
    return xp.where(condition, a[0], b[0]), xp.where(condition, a[1], b[1])


def _logarithm(a: Pair) -> Pair:
    """The logarithm of pairs of at least one, within ``2**-74`` and what is left of a double's error."""
    xp = namespace_of(a[0])
    rough = xp.clip(xp.log(a[0]), 0.0, None)
    zero = xp.zeros_like(rough)
    left = add_accurately(times(a, decay(rough, zero)), (-xp.ones_like(rough), zero))
    step = left[0] + left[1]
    return two_sum(rough, step - 0.5 * step * step)


# Numbers that are held for each row on a device, for every class and for every pair of classes.
_PER_CLASS, _PER_PAIR = 40, 6


@dataclass(frozen=True)
class ClassPoints:
    """A point in centred coordinates, and for each class the nearest point that slices can hold."""

    exact: Dyadic
    points: list[Point]
    offset: float
    """No class's coefficients are farther from its point than this."""

    @classmethod
    def near(cls, values: Dyadic, slices: int, classes: int) -> Self:
        """The point itself, and the points of its classes."""
        parts = to_classes(values, classes)
        points = [Point.near(part, slices) for part in parts]
        away = [length((part - point.exact).doubles()) for part, point in zip(parts, points, strict=True)]
        return cls(values, points, max(away) + 2.0**-150 * length(values.doubles()))


@dataclass(frozen=True, eq=False, repr=False)
class SoftmaxPass(SlicedPass):
    r"""The pass that finds :math:`\sum_i \omega_iv_{ij}x_i` for every class :math:`j`, as pairs.

    Parameters
    ----------
    loss
        The softmax loss.
    point
        Where to evaluate.
    radius
        No row is longer than this.
    hessian
        Whether to add up :math:`\sum_i B_{i,ab}x_ix_i^\top` for every pair of classes as well, in doubles.

    Notes
    -----
    Errors of the classes are added, which is more than their Euclidean sum.
    """

    loss: SoftmaxLoss
    point: ClassPoints
    radius: float
    hessian: bool = False
    trace = 2.0  # the trace of a pair of classes is twice its weight

    @property
    def sums(self) -> int:  # type: ignore[override]  # an attribute of the base that is computed here
        """One sum of squares for each pair of classes."""
        return self.loss.classes * (self.loss.classes - 1) // 2

    @cached_property
    def slicing(self) -> Slicing:
        """The slices of the points of all classes."""
        return Slicing(self.point.points, self.radius)

    @property
    def numbers_held(self) -> int:
        """How many numbers are held for each row, every class and pair of classes included."""
        return super().numbers_held + _PER_CLASS * self.loss.classes + _PER_PAIR * self.sums

    def found(self, predictors: list[Pair], y: FloatArray, weights: FloatArray | None) -> Found:
        """One slope for each class, and one weight for each pair of classes."""
        one, xp = softmax_slopes(self.loss, predictors, y, weights), namespace_of(y)
        high, low = (xp.stack([pair[i] for pair in one.gradient]) for i in (0, 1))
        return Found((high, low), one.weights, one.smallest, one.per_curvature, one.absolute)

    def predictor_error(self) -> float:
        """Twice a bound on the error of every score.

        Scores off by ``e`` each move a gradient by at most ``2e`` times the root of the Hessian's trace, in
        the Hessian's norm: what :mod:`expost.fitting.certified.bound` takes ``e`` times the root of the
        curvature for.
        """
        return 2.02 * (self.slicing.predictor_error() + self.radius * self.point.offset)

    @property
    def weight_roundings(self) -> float:  # type: ignore[override]  # as above
        """How often the weight of a pair of classes is rounded."""
        return weight_roundings(self.loss)

    def roundings(self) -> int:
        """How many more roundings are in a term of the Hessian than a scalar loss has."""
        return math.ceil(self.weight_roundings + 2.0 * self.loss.classes**2)

    def assembled(self, total: Pair) -> FloatArray:
        """The Hessian in centred coordinates, rounded once."""
        return centred_pair(total, self.loss.classes)

    def at(self) -> FloatArray:
        """The point in centred coordinates, rounded once."""
        return self.point.exact.doubles()

    def finished(self, sums: Partial) -> Partial:
        """The sums of all rows in centred coordinates."""
        classes = self.loss.classes
        high, low = (part.ravel() for part in sums.total)
        if not (np.all(np.isfinite(high)) and np.all(np.isfinite(low))):
            raise OverflowError("the gradient is beyond the range of doubles")
        total = from_classes(Dyadic.of(high) + Dyadic.of(low), classes)
        hessian = sums.hessian
        if hessian is not None:
            hessian = centred_hessian(hessian, centring(classes))
        return replace(
            sums, total=as_pair(total), error=sums.error + 2.0**-100 * length(high), hessian=hessian
        )
