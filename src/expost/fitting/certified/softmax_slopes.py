r"""Gradients of the softmax loss as pairs, with a bound on their error.

With :math:`e_j = e^{s_j - t}`, :math:`t` the largest score of a class other than :math:`y`, :math:`S =
\sum_{j\ne y}e_j` and :math:`G = t - s_y`, the gradient in the scores is :math:`v_j = qe_j/S`, :math:`v_y =
-q`, with :math:`q = Se^G/(1 + Se^G)` up to the corner of a cap and :math:`q = F'(G + \log S)` beyond it.
"""

import math
from itertools import combinations
from typing import NamedTuple

from expost._common.namespaces import namespace_of
from expost._common.typing import BoolArray
from expost.fitting.certified.corner import Corner
from expost.fitting.certified.exponential import RELATIVE_ERROR, decay
from expost.fitting.certified.pairs import (
    TINY,
    UNIT,
    FloatArray,
    Pair,
    add,
    add_accurately,
    divide,
    times,
    two_sum,
)
from expost.fitting.certified.slopes import OF_PRODUCT
from expost.losses import SoftmaxLoss
from expost.losses.softmax import TrueClass


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
    (:meth:`~expost.fitting.certified.corner.Corner.slopes`); :math:`A \succeq \kappa hh^\top`, so an error
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
