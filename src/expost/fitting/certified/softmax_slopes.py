"""The derivatives of the softmax loss in the scores of its classes, as pairs and in decimals.

The coefficients :math:`w` of :math:`K - 1` linear predictors stand for :math:`Qw`, one vector per class, with
:math:`Q` in whole numbers of :math:`2^{-192}`. Only sums are turned into centred coordinates, in integers.
Formulas and errors are in docs/mathematics.md, section 10, "Several classes".
"""

import math
from decimal import Decimal, localcontext
from functools import cache
from itertools import combinations
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from expost._common.namespaces import namespace_of
from expost._common.typing import BoolArray
from expost.fitting.certified.functions import (
    RELATIVE_ERROR,
    Corner,
    DecimalArray,
    ProvedLoss,
    ProvedSlopes,
    beyond_corner,
    context,
    decay,
    smallest_rate,
)
from expost.fitting.certified.pairs import (
    UNIT,
    Dyadic,
    FloatArray,
    Pair,
    Point,
    Points,
    add,
    add_accurately,
    as_pair,
    divide,
    length,
    times,
    two_sum,
)
from expost.losses import SoftmaxLoss
from expost.losses.softmax import TrueClass, centring

_BITS = 192
# Numbers that are held for each row on a device, for every class and for every pair of classes.
_PER_CLASS, _PER_PAIR = 40, 6


class ClassScores(ProvedLoss):
    r"""The softmax loss as a function of one score for each class, with a weight :math:`B_{ab}` of each pair.

    The Hessian in the scores is :math:`\sum_{a<b}B_{ab}(e_a - e_b)(e_a - e_b)^\top`.
    """

    loss: SoftmaxLoss
    trace = 2.0
    # Scores off by e each move a gradient by at most 2e times the root of the trace, in the Hessian's norm.
    score_error = 2.02

    def __init__(self, loss: SoftmaxLoss) -> None:
        super().__init__(loss)
        classes, self.outputs = loss.classes, loss.outputs
        self.sums = classes * (classes - 1) // 2
        self.numbers_held = _PER_CLASS * classes + _PER_PAIR * self.sums
        # Beyond the corner q - κ is at least q**2, so that the difference loses a factor of 1/q.
        corner = 0.0 if loss.corner is None else 8.0 / loss.link.corner_slope
        self.weight_roundings = 4.0 * classes + 33.0 + corner
        self.hessian_roundings = math.ceil(self.weight_roundings + 2.0 * classes**2)
        self.decimal_factor = 4 * classes**2

    @property
    def third_order(self) -> float:
        r""":math:`\sqrt2\max\{1, (r + (1-m_0)^2)/m_0\}`, or :math:`\sqrt2` without a cap; see section 10."""
        if self.loss.corner is None:
            return float(np.nextafter(np.sqrt(2.0), 2.0))
        steep = self.loss.link.corner_slope
        bend = (self.loss.link.corner_rate + (1.0 - steep) ** 2) / steep
        return float(np.sqrt(2.0)) * max(1.0, bend) * (1.0 + 2.0**-40)

    def points(self, where: Dyadic, slices: int) -> Points:
        """The point itself, and for each class the nearest point that slices can hold."""
        parts = to_classes(where, self.loss.classes)
        points = [Point.near(part, slices) for part in parts]
        away = [length((part - point.exact).doubles()) for part, point in zip(parts, points, strict=True)]
        return Points(where, points, max(away) + 2.0**-150 * length(where.doubles()))

    def gradient(self, sums: Pair) -> tuple[Pair, float]:
        """The sums of the classes in centred coordinates."""
        high, low = (part.ravel() for part in sums)
        total = from_classes(Dyadic.of(high) + Dyadic.of(low), self.loss.classes)
        return as_pair(total), 2.0**-100 * length(high)

    def hessian(self, sums: FloatArray) -> FloatArray:
        r"""In centred coordinates, from :math:`\sum_i B_{i,ab}x_ix_i^\top` for pairs of classes."""
        helmert = centring(self.loss.classes)
        first, second = np.triu_indices(len(helmert), 1)
        difference = helmert[first] - helmert[second]
        outputs, columns = helmert.shape[1], sums.shape[1]
        # One product over the pairs: (predictor, predictor) by pairs, times pairs by (column, column).
        squares = (difference[:, :, None] * difference[:, None, :]).reshape(len(first), -1)
        full = (squares.T @ sums.reshape(len(first), -1)).reshape(outputs, outputs, columns, columns)
        matrix = _as_matrix(full)
        return np.ascontiguousarray(0.5 * (matrix + matrix.T))

    def exact_hessian(self, sums: Pair) -> FloatArray:
        """The Hessian in centred coordinates, rounded once at the end."""
        helmert, outputs, columns = _helmert(self.loss.classes), self.outputs, sums[0].shape[1]
        full = np.zeros((outputs, outputs, columns, columns))
        total: Pair = full, full.copy()
        for place, (a, b) in enumerate(combinations(range(self.loss.classes), 2)):
            difference = helmert[a] - helmert[b]
            counts = [int(count) for count in np.outer(difference, difference).ravel()]
            high, low = (part.reshape(outputs, outputs, 1, 1) for part in as_pair(Dyadic(counts, -2 * _BITS)))
            total = add_accurately(total, times((high, low), (sums[0][place], sums[1][place])))
        matrix = _as_matrix(total[0] + total[1])
        # Entries and their mirrors are sums of the same products in another order.
        return np.ascontiguousarray(np.triu(matrix) + np.triu(matrix, 1).T)

    def slopes(self, scores: list[Pair], y: FloatArray) -> ProvedSlopes:
        """Gradients and Hessians in the scores.

        Scores off by :math:`2^{-74}`, and more beyond a corner, make the error relative to the curvature. The
        absolute one is :math:`(8K + 256)u^2` (docs/mathematics.md, section 10).
        """
        loss = self.loss
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
            corner = Corner.of(loss.link, self.level)
            outside = steep[0] > corner.steep
            beyond = corner.beyond(add_accurately(ahead, _logarithm(total)))
            bent, flat = corner.slopes(decay(*corner.exponent(beyond)))
            steep = _where(outside, bent, steep)
            curvature = xp.where(outside, flat, curvature)
            mixed = xp.where(outside, steep[0] - curvature, mixed)
            right = xp.where(outside, steep[0] * curvature / xp.where(outside, mixed, 1.0), right)
            per_curvature += 1.1 * RELATIVE_ERROR / smallest_rate(loss.link)
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
        first = xp.stack([high for high, _ in gradient]), xp.stack([low for _, low in gradient])
        absolute = (8.0 * loss.classes + 256.0) * UNIT**2
        return ProvedSlopes(first, xp.stack(pairs, axis=1), smallest, per_curvature, absolute)

    def in_decimals(
        self, point: DecimalArray, row: DecimalArray, label: Decimal, digits: int
    ) -> tuple[DecimalArray, DecimalArray, Decimal]:
        """Gradient and Hessian in the linear predictors, and the smallest mass.

        Each entry of the gradient is rounded fewer than ``16 K`` times, relative to a vector of length two.
        """
        with localcontext(context(digits)):
            basis, true = _helmert(self.loss.classes, digits), int(label)
            scores = basis @ (point.reshape(self.outputs, -1) @ row)
            steep, curvature, others, own = _masses(self.loss, scores, true, digits)
            away = others.copy()
            away[true] = away[true] - 1
            # The Hessian as weighted squares of the classes' distances from their mean.
            weights = steep * others
            smallest: Decimal = min(own, *np.delete(weights, true))
            weights[true] = curvature
            distances = basis - others @ basis
            hessian: DecimalArray = (distances * weights[:, None]).T @ distances
            return steep * (away @ basis), hessian, smallest


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


def to_classes(coefficients: Dyadic, classes: int) -> list[Dyadic]:
    """The coefficients of each class, off by less than ``2**-160`` of the norm for up to 10,000 classes."""
    counts = np.array(coefficients.counts, dtype=object).reshape(classes - 1, -1)
    return [Dyadic(list(row), coefficients.exponent - _BITS) for row in _helmert(classes) @ counts]


def from_classes(vectors: Dyadic, classes: int) -> Dyadic:
    """The centred coordinates of one vector per class, all in a row; off by as little."""
    counts = np.array(vectors.counts, dtype=object).reshape(classes, -1)
    return Dyadic(list((_helmert(classes).T @ counts).ravel()), vectors.exponent - _BITS)


def _as_matrix(blocks: FloatArray) -> FloatArray:
    """Predictor by predictor by column by column as one matrix of all coefficients."""
    size = blocks.shape[0] * blocks.shape[2]
    matrix: FloatArray = blocks.transpose(0, 2, 1, 3).reshape(size, size)
    return matrix


@cache
def _helmert(classes: int, digits: int | None = None) -> NDArray[np.object_]:
    """In decimals of this many digits, or in whole numbers of ``2**-192``."""
    matrix = np.full((classes, classes - 1), 0 if digits is None else Decimal(0), dtype=object)
    with localcontext(context(digits or 1)):
        for a in range(classes - 1):
            square = (a + 1) * (a + 2)
            root = isqrt((1 << 2 * _BITS) // square) if digits is None else 1 / Decimal(square).sqrt()
            matrix[: a + 1, a] = root
            matrix[a + 1, a] = -(a + 1) * root
    return matrix


def _masses(
    loss: SoftmaxLoss, scores: DecimalArray, true: int, digits: int
) -> tuple[Decimal, Decimal, DecimalArray, Decimal]:
    """Of one record: slope and curvature of the link, the law of the other classes and the own mass."""
    others = [j for j in range(loss.classes) if j != true]
    top = max(scores[j] for j in others)
    powers = np.array([Decimal(0)] * loss.classes, dtype=object)
    for j in others:
        powers[j] = (scores[j] - top).exp()
    total = sum(powers, Decimal(0))
    ahead = top - scores[true]
    if ahead > 0:
        less = (-ahead).exp()
        steep, own = total / (total + less), less / (total + less)
    else:
        scaled = total * ahead.exp()
        steep, own = scaled / (1 + scaled), 1 / (1 + scaled)
    curvature = steep * own
    bent = None if loss.corner is None else beyond_corner(loss.link, ahead + total.ln(), digits)
    if bent is not None:
        steep, curvature = bent
        own = steep * curvature / (steep - curvature)
    return steep, curvature, powers / total, own
