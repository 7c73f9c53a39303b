"""The smallest eigenvalue of a symmetric matrix to a given error."""

import math
from fractions import Fraction

import numpy as np
from scipy.linalg import eigvalsh

from expost.fitting.certified.dyadic import Dyadic
from expost.fitting.certified.pairs import UNIT, Pair


def smallest_eigenvalue(matrix: Pair, error: float) -> Fraction:
    r"""The smallest eigenvalue of the sum of two matrices, the second far smaller, within ``error``.

    The double-precision solver is backward stable: its eigenvalues are off by a modest multiple of
    :math:`d\,u\,\|H\|`, for which :math:`16d\,u\|H\|_F` is taken. Where that is too much, the value is
    bracketed by exact elimination: by Sylvester's law of inertia all pivots of :math:`H - tI` are positive if
    and only if :math:`t` is below every eigenvalue. An error of zero asks for as much as a double can hold.
    """
    high, low = matrix
    size = len(high)
    value = float(eigvalsh(high, subset_by_index=(0, 0))[0])
    off = 16.0 * size * UNIT * float(np.linalg.norm(high))
    if off <= error:
        return Fraction(value)
    exact = Dyadic.of(high.ravel()) + Dyadic.of(low.ravel())
    below, above = Fraction(value - 2.0 * off), Fraction(value + 2.0 * off)
    while not _positive_definite(exact, size, below):
        below -= above - below
    error = error or math.ulp(value)
    while above - below > error:
        middle = _short_middle(below, above)
        if middle in (below, above):
            middle = (below + above) / 2
        below, above = (middle, above) if _positive_definite(exact, size, middle) else (below, middle)
    return _short_middle(below, above)


def _short_middle(low: Fraction, high: Fraction) -> Fraction:
    """The double nearest to the middle of an interval, or the middle where no double is in it."""
    middle = (low + high) / 2
    double = Fraction(float(middle))
    return double if low <= double <= high else middle


def _positive_definite(matrix: Dyadic, size: int, shift: Fraction) -> bool:
    """Whether the matrix less a multiple of the identity is positive definite, in whole numbers.

    Bareiss's elimination has no fractions: its pivots are the leading minors of a matrix of integers. The
    shift has a power of two for its denominator.
    """
    multiple = Dyadic([shift.numerator], 1 - shift.denominator.bit_length())
    least = min(matrix.exponent, multiple.exponent)
    (moved,), whole = multiple.rounded(least).counts, matrix.rounded(least).counts
    rows = [whole[i * size : (i + 1) * size] for i in range(size)]
    for i in range(size):
        rows[i][i] -= moved
    previous = 1
    for k in range(size):
        pivot = rows[k][k]
        if pivot <= 0:
            return False
        for i in range(k + 1, size):
            factor = rows[i][k]
            rows[i] = [(pivot * a - factor * b) // previous for a, b in zip(rows[i], rows[k], strict=True)]
        previous = pivot
    return True
