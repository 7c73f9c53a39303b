r"""Centred coordinates without rounding: the Helmert matrix in integers.

The coefficients :math:`w` of :math:`K - 1` linear predictors stand for :math:`Qw`, one vector per class. The
entries of :math:`Q` are irrational; here they are whole numbers of :math:`2^{-192}`, each off by less than
:math:`K` of them.
"""

from functools import cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from expost.fitting.certified.dyadic import Dyadic
from expost.fitting.certified.pairs import FloatArray, Pair, add_accurately, times

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
