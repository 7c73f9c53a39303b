"""The smallest eigenvalue of a symmetric matrix to a given error."""

import math

import numpy as np
from scipy.linalg import eigvalsh

from expost.fitting.certified.pairs import UNIT, FloatArray


def smallest_eigenvalue(matrix: FloatArray, error: float) -> float:
    r"""The smallest eigenvalue within ``error``.

    The double-precision solver is backward stable: its eigenvalues are off by a modest multiple of
    :math:`d\,u\,\|H\|`, for which :math:`16d\,u\|H\|_F` is taken. Where that is too much, the value is
    bracketed by exact elimination: by Sylvester's law of inertia all pivots of :math:`H - tI` are positive if
    and only if :math:`t` is below every eigenvalue.
    """
    value = float(eigvalsh(matrix, subset_by_index=(0, 0))[0])
    off = 16.0 * len(matrix) * UNIT * float(np.linalg.norm(matrix))
    if off <= error:
        return value
    low, high = value - 2.0 * off, value + 2.0 * off
    while not _positive_definite(matrix, low):
        low -= high - low
    while high - low > error:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if _positive_definite(matrix, middle) else (low, middle)
    return 0.5 * (low + high)


def _positive_definite(matrix: FloatArray, shift: float) -> bool:
    """Whether the matrix less a multiple of the identity is positive definite, in whole numbers.

    Bareiss's elimination has no fractions: its pivots are the leading minors of a matrix of integers.
    """
    numbers = np.append(matrix.ravel(), shift)
    fractions, exponents = np.frexp(numbers)
    least = int(np.min(exponents[fractions != 0.0], initial=0))
    whole = [
        int(math.ldexp(f, 53)) << (int(e) - least) if f else 0
        for f, e in zip(fractions, exponents, strict=True)
    ]
    size = len(matrix)
    rows = [whole[i * size : (i + 1) * size] for i in range(size)]
    for i in range(size):
        rows[i][i] -= whole[-1]
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
