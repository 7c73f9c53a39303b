r"""Rényi divergences of publications at fixed orders: what adds up, and what that promises.

The determinant of a record counts in them as one more Gaussian coordinate, of second order
(docs/mathematics.md, theorem 17.1).
"""

import math
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from expost._common.typing import FloatArray

# Orders less one, as powers of two: the best ones of budgets between 2e-3 and 20 lie inside.
_LOWEST, _HIGHEST, _PER_OCTAVE = -1, 13, 16

Orders: TypeAlias = tuple[tuple[int, float], ...]
"""Numbers of orders, and a bound on the Rényi divergence of each."""

NUMBERS = range(_LOWEST * _PER_OCTAVE, _HIGHEST * _PER_OCTAVE + 1)
"""The numbers of all orders."""


def orders_of(numbers: Iterable[int]) -> FloatArray:
    r"""The orders :math:`\alpha = 1 + 2^{n/16}` of these numbers."""
    return 1.0 + 2.0 ** (np.array(list(numbers), dtype=np.float64) / _PER_OCTAVE)


def columns(orders: Orders) -> tuple[FloatArray, FloatArray]:
    """Orders, given by their numbers, and the divergences at them."""
    numbers, divergences = zip(*orders, strict=True)
    return orders_of(numbers), np.array(divergences)


ORDERS: FloatArray = orders_of(NUMBERS)
"""All orders: the same for every publication, so that divergences add up."""
# What the rounding of a divergence may take away, as a share of it.
_ROUNDING = 1e-12


def adding_excess(order: FloatArray, eigenvalue: FloatArray) -> FloatArray:
    r"""What an eigenvalue of :math:`\nabla^2\ell/\lambda` adds to the divergence of an added record.

    .. math:: \frac{\alpha\log(1 + \beta) - \log(1 + \alpha\beta)}{\alpha - 1} \le \frac{\alpha\beta^2}{2}
    """
    exact = (order * np.log1p(eigenvalue) - np.log1p(order * eigenvalue)) / (order - 1.0)
    # The two terms cancel where the eigenvalue is small, and then the second form is as good.
    with np.errstate(over="ignore"):
        other = 0.5 * order * np.square(eigenvalue)
    return np.asarray(np.minimum(exact + 1e-15 * order * eigenvalue / (order - 1.0), other))


def removing_excess(order: FloatArray, eigenvalue: FloatArray) -> FloatArray:
    r"""What an eigenvalue adds for a removed record; infinite from :math:`1/(\alpha - 1)` on.

    .. math:: -\log(1 + \beta) - \frac{\log(1 - (\alpha - 1)\beta)}{\alpha - 1}
    """
    taken = (order - 1.0) * eigenvalue
    inside = np.minimum(taken, 0.5)
    with np.errstate(divide="ignore"):
        log = np.where(taken > 0.5, np.log(np.maximum(1.0 - taken, 0.0)), np.log1p(-inside))
    return np.asarray(-np.log1p(eigenvalue) - log / (order - 1.0) + 1e-15 * eigenvalue)


def adding_mean(order: FloatArray, largest: FloatArray) -> FloatArray:
    r"""The most that eigenvalues up to the ``largest`` add for each unit of their sum, for an added record.

    The excess of one of them is :math:`\beta/(\alpha - 1)` times the mean over :math:`0 \le x \le \beta` of
    :math:`\alpha/(1 + x) - \alpha/(1 + \alpha x)`, which rises up to :math:`\alpha^{-1/2}`.
    """
    steepest = order * (np.sqrt(order) - 1.0) / ((np.sqrt(order) + 1.0) * (order - 1.0))
    rising = np.minimum(largest, order**-0.5)
    mean = adding_excess(order, rising) / np.maximum(rising, 1e-300)
    return np.asarray(np.where(largest > rising, steepest, mean))


def removing_mean(order: FloatArray, largest: FloatArray) -> FloatArray:
    r"""The most that eigenvalues up to the ``largest`` add for each unit of their sum, for a removed record.

    It is the mean over :math:`0 \le x \le \beta` of :math:`1/(1 - (\alpha - 1)x) - 1/(1 + x)`, which rises.
    """
    return np.asarray(removing_excess(order, largest) / np.maximum(largest, 1e-300))


def adding_sum(order: FloatArray, trace: FloatArray, norm: FloatArray) -> FloatArray:
    r"""The most that eigenvalues of this sum and this root of the sum of squares add, for an added record.

    The function in :func:`adding_mean` is concave up to :math:`\alpha^{-1/3} + \alpha^{-2/3}`: there, by
    Jensen, all of them may be taken as equal.
    """
    concave = norm <= order ** (-1.0 / 3.0) + order ** (-2.0 / 3.0)
    equal = np.where(concave, norm**2 / np.maximum(trace, 1e-300), norm)
    return np.asarray(trace * adding_mean(order, equal))


def removing_sum(order: FloatArray, trace: FloatArray, norm: FloatArray) -> FloatArray:
    r"""The most that eigenvalues of this sum and this root of the sum of squares add, for a removed record.

    The excess is :math:`\beta` times the mean of :math:`1/(1 - sx) - 1/(1 + x)`, :math:`s = \alpha - 1`. That
    rises, so that all eigenvalues may be taken as zero or the largest; and from :math:`s = 1` on it is
    convex, so that one of them may be taken to have all of the squares.
    """
    one = removing_excess(order, norm)
    many = np.maximum(trace / np.maximum(norm, 1e-300), 1.0)
    return np.asarray(np.where(order >= 2.0, one, many * one))


def delta(orders: FloatArray, divergences: FloatArray, epsilon: FloatArray) -> FloatArray:
    r"""The smallest delta at each epsilon that divergences at some orders promise.

    .. math:: \delta = \frac{e^{(\alpha - 1)(D_\alpha - \epsilon)}}{\alpha - 1}
              \Bigl(1 - \frac1\alpha\Bigr)^\alpha

    Proposition 12 of Canonne, Kamath and Steinke (NeurIPS 2020), at the best of the orders.
    """
    steps = orders - 1.0
    constant = steps * np.log1p(-1.0 / orders) - np.log(orders)
    exponent = steps * (divergences * (1.0 + _ROUNDING) - np.asarray(epsilon)[..., None]) + constant
    return np.asarray(np.exp(np.minimum(exponent.min(axis=-1), 0.0)))


def epsilons(orders: FloatArray, divergences: FloatArray, target: float) -> FloatArray:
    """The smallest epsilon at this delta by each order, at least 0: the inverse of :func:`delta`."""
    overhead = (-math.log(target) - np.log(orders)) / (orders - 1.0) + np.log1p(-1.0 / orders)
    return np.maximum(divergences * (1.0 + _ROUNDING) + overhead, 0.0)
