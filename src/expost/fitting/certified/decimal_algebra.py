"""Vectors and matrices of decimals: just enough to take a Newton step in any precision."""

from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from expost.fitting.certified.dyadic import Dyadic

DecimalArray: TypeAlias = NDArray[Any]
"""An array of objects, all of them decimals."""


def solve(matrix: DecimalArray, gradient: DecimalArray) -> DecimalArray | None:
    """Minus the gradient divided by the matrix, by Cholesky, or None if that does not run through."""
    size = len(gradient)
    factor = matrix.copy()
    half = -gradient
    for j in range(size):
        row = factor[j, :j]
        pivot = factor[j, j] - (row @ row if j else 0)
        if pivot <= 0:
            return None
        factor[j, j] = pivot.sqrt()
        if j:
            factor[j + 1 :, j] = factor[j + 1 :, j] - factor[j + 1 :, :j] @ row
            half[j] = half[j] - row @ half[:j]
        factor[j + 1 :, j] = factor[j + 1 :, j] / factor[j, j]
        half[j] = half[j] / factor[j, j]
    for j in reversed(range(size)):
        if j + 1 < size:
            half[j] = half[j] - factor[j + 1 :, j] @ half[j + 1 :]
        half[j] = half[j] / factor[j, j]
    return half


def moved(point: DecimalArray, step: DecimalArray, digits: int) -> DecimalArray:
    """The point a step further, in this many digits."""
    with localcontext(context(digits)):
        result: DecimalArray = point + step
        return result


def rounded(values: Dyadic, digits: int) -> DecimalArray:
    """A dyadic vector in this many digits."""
    with localcontext(context(digits)):
        step = Decimal(2) ** values.exponent
        return np.array([Decimal(count) * step for count in values.counts], dtype=object)


def norm(vector: DecimalArray) -> Decimal:
    """An upper bound on the Euclidean norm."""
    square: Decimal = sum((value * value for value in vector), Decimal(0))
    return square.sqrt() * (1 + Decimal(10) ** -20)


def context(digits: int) -> Context:
    """Correct rounding to this many digits, and exponents without practical limit."""
    return Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
