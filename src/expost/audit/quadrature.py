"""Many one-dimensional integrals at once, of functions with kinks and narrow peaks at unknown places.

A cell is an interval in one column, and each column is a separate integral.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from expost._common.typing import FloatArray

Columns: TypeAlias = NDArray[np.intp]
"""The column of each cell."""

Cells: TypeAlias = tuple[Columns, FloatArray, FloatArray]
"""Column, lower and upper end of each cell."""

_TOLERANCE = 1e-9  # of one cell, relative to the integral of its column
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def even_cells(reach: float, number: int, columns: int) -> Cells:
    """Cells of equal width over ``[-reach, reach]``, the same number in every column."""
    edges = np.linspace(-reach, reach, number + 1)
    column = np.repeat(np.arange(columns), number)
    return column, np.tile(edges[:-1], columns), np.tile(edges[1:], columns)


def cut(at: Callable[[Columns, FloatArray], tuple[FloatArray, ...]], cells: Cells) -> Cells:
    """Cut cells until slope and log-determinant change little in each, then at the roots of the excess.

    With little regularisation a record's slope goes from flat to steep within a very small part of the
    noise's range, which cells of equal width would miss. Its slope is monotone, and its log-determinant,
    ``log(1 + curvature / l2)``, rises and falls once, so the ends of a cell show what is inside. ``at`` gives
    the excess, whose sign changes at the kinks, the shift, the slope and the log-determinant.
    """
    column, low, high = cells
    done: list[Cells] = []
    largest = 0.0
    for _ in range(12):
        _, _, slope, log_determinant = at(column, np.stack([low, high], axis=1))
        largest = max(largest, float(np.max(np.abs(slope))))
        uneven = np.abs(np.diff(slope)[:, 0]) > 0.1 * largest
        uneven |= np.abs(np.diff(log_determinant)[:, 0]) > 0.2
        done.append((column[~uneven], low[~uneven], high[~uneven]))
        grid = np.linspace(low[uneven], high[uneven], 5, axis=1)
        column, low, high = np.repeat(column[uneven], 4), grid[:, :-1].ravel(), grid[:, 1:].ravel()
        if low.size == 0:
            break
    done.append((column, low, high))
    column, low, high = (np.concatenate(part) for part in zip(*done, strict=True))

    positive = at(column, np.stack([low, high], axis=1))[0] > 0.0
    kinked = np.flatnonzero(positive[:, 0] != positive[:, 1])
    left, right = low[kinked], high[kinked]
    for _ in range(4 if kinked.size else 0):  # each round narrows the bracket sixteenfold
        grid = np.linspace(left, right, 17, axis=1)
        switched = (at(column[kinked], grid)[0] > 0.0) == positive[kinked, 1:]
        first = np.maximum(np.argmax(switched, axis=1), 1)[:, None]
        left, right = (np.take_along_axis(grid, first - back, axis=1)[:, 0] for back in (1, 0))
    low, top = np.concatenate([low, left, right]), high[kinked]
    high[kinked] = left
    return _balanced(
        np.concatenate([column, np.tile(column[kinked], 2)]), low, np.concatenate([high, right, top])
    )


def _balanced(column: Columns, low: FloatArray, high: FloatArray) -> Cells:
    """Cut cells next to much smaller ones: a change may continue before the wide cell's first node."""
    for _ in range(12):
        order = np.lexsort((low, column))
        column, low, high = column[order], low[order], high[order]
        width = high - low
        smaller = np.where(column[1:] == column[:-1], np.minimum(width[1:], width[:-1]), math.inf)
        wide = width > 8.0 * np.minimum(np.append(smaller, math.inf), np.append(math.inf, smaller))
        if not wide.any():
            break
        ends = width[wide] / 8.0
        near, far = low[wide] + ends, high[wide] - ends
        column = np.append(column, np.tile(column[wide], 2))
        low, top = np.concatenate([low, near, far]), high[wide]
        high[wide] = near
        high = np.concatenate([high, far, top])
    return column, low, high


def integrate(
    function: Callable[[Columns, FloatArray], FloatArray], cells: Cells, columns: int
) -> tuple[FloatArray, FloatArray]:
    """Integrate over the cells of each column, halving those that still change; values and errors."""

    def quadrature(column: Columns, low: FloatArray, high: FloatArray) -> FloatArray:
        radius = (high - low)[:, None] / 2.0
        values = function(column, (low + high)[:, None] / 2.0 + radius * _NODES)
        return (radius * values) @ _WEIGHTS

    column, low, high = cells
    coarse = quadrature(column, low, high)
    value, error = np.zeros(columns), np.zeros(columns)
    for depth in range(20):
        middle = (low + high) / 2.0
        halves = np.tile(column, 2), np.concatenate([low, middle]), np.concatenate([middle, high])
        parts = quadrature(*halves)
        fine = parts.reshape(2, -1).sum(axis=0)
        gap = np.abs(fine - coarse)
        estimate = value + np.bincount(column, fine, columns)
        settled = (gap <= _TOLERANCE * estimate[column]) | (depth == 19)
        value += np.bincount(column[settled], fine[settled], columns)
        error += np.bincount(column[settled], gap[settled], columns)
        if settled.all():
            break
        again = np.tile(~settled, 2)
        column, low, high = halves[0][again], halves[1][again], halves[2][again]
        coarse = parts[again]
    return value, error
