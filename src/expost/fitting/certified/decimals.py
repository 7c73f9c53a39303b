r"""The last level: gradients in decimal arithmetic of as many digits as the radius asks for.

A point is certified by :math:`\|\hat w - w\| \le \|\nabla\|/\lambda`. Errors are proved in
docs/mathematics.md, section 10, "Decimals".
"""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from expost.data.blocks import Block
from expost.fitting.certified.bound import ExactProblem, Minimum
from expost.fitting.certified.functions import DecimalArray, ProvedLoss, context
from expost.fitting.certified.pairs import Dyadic, FloatArray, Pair, length
from expost.fitting.faces import model_minimum
from expost.losses.corners import Corners

_exactly: Callable[..., Any] = np.frompyfunc(Decimal, 1, 1)


class _Sums(NamedTuple):
    gradient: DecimalArray
    steepness: Decimal
    rows: int
    hessian: DecimalArray
    """Of no rows and columns where it was not asked for."""


@dataclass(frozen=True, eq=False, repr=False)
class DecimalPass:
    """The pass that adds up gradients and, where asked for, Hessians in decimals of this many digits."""

    loss: ProvedLoss
    point: DecimalArray
    digits: int
    hessian: bool = False
    reduced: bool = False

    def __call__(self, blocks: Iterator[Block]) -> _Sums:
        """The sums over the blocks."""
        with localcontext(context(self.digits)):
            order = len(self.point) // (self.loss.outputs if self.reduced else 1) if self.hessian else 0
            gradient, hessian = (np.full(shape, Decimal(0)) for shape in (len(self.point), (order, order)))
            steepness, count = Decimal(0), 0
            for rows, labels, weights, *_ in blocks:
                sizes = np.ones(len(labels)) if weights is None else weights
                for row, label, size in zip(rows, labels, sizes, strict=True):
                    x, weight = _exactly(row), Decimal(float(size))
                    first, second, least = self.loss.for_row(row).in_decimals(
                        self.point, x, Decimal(float(label)), self.digits
                    )
                    slopes = weight * first
                    gradient = gradient + np.outer(slopes, x).ravel()
                    steepness += norm(slopes)
                    count += 1
                    if self.hessian:
                        matrix = np.array([[least]]) if self.reduced else second
                        hessian = hessian + np.kron(weight * matrix, np.outer(x, x))
        return _Sums(gradient, steepness, count, hessian)

    def over(self, problem: ExactProblem) -> _Sums:
        """The sums over all rows."""
        return reduce(lambda one, other: _Sums(*map(add, one, other)), problem.rows.sweep(self))


@dataclass(frozen=True)
class _Found:
    point: DecimalArray
    gradient: DecimalArray
    norm: Decimal
    error: Decimal
    """A bound on the norm of the gradient's error."""
    hessian: DecimalArray | None


def certify_in_decimals(
    problem: ExactProblem, start: Dyadic, hessian: FloatArray | None, *, target: float, grid: float
) -> Minimum:
    """The minimiser on the grid, certified to ``target`` whatever the conditioning.

    Steps use the double Hessian while they halve the gradient, and one in decimals, damped, afterwards. More
    digits are taken whenever rounding stands in the way.
    """
    corners = problem.corners
    digits = 50 if corners is None else max(50, corners.digits + 5)
    with localcontext(context(60)):  # for the comparisons; every evaluation sets its own
        allowed = Decimal(problem.l2) * Decimal(target) / 4  # the grid and the noise take at most half
        here = _evaluate(problem, rounded(start, digits), digits, hessian=hessian is None)
        while True:
            if here.error > allowed / 4:
                digits += max(10, (here.error / allowed).adjusted() + 5)
                here = _evaluate(problem, here.point, digits, hessian=here.hessian is not None)
                continue
            if here.norm + here.error <= allowed:
                return _settle(problem, here, grid)
            there = None
            if hessian is not None:
                there = _halved(problem, here, digits, hessian)
            if there is None:
                hessian = None
                if here.hessian is None:
                    here = _evaluate(problem, here.point, digits, hessian=True)
                there = (_damped if corners is None else _to_face)(problem, here, digits)
            if there is None:
                digits *= 2
                here = _evaluate(problem, here.point, digits, hessian=True)
            else:
                here = there


def hessian_in_decimals(problem: ExactProblem, point: Dyadic, *, reduced: bool = False) -> tuple[Pair, float]:
    """The Hessian of the rows, or the reduced one, as a pair; off by ``2**-100`` of the trace (Frobenius)."""
    size = max(1.0, problem.radius * length(point.doubles()) * len(point.counts))
    digits = 60 + max(0, math.ceil(math.log10(size)))
    with localcontext(context(digits)):
        work = DecimalPass(problem.proved, rounded(point, digits), digits, hessian=True, reduced=reduced)
        exact = work.over(problem).hessian
        high = exact.astype(np.float64)
        found = high, (exact - _exactly(high)).astype(np.float64)
    return found, 2.0**-100 * float(np.trace(high))


def _settle(problem: ExactProblem, here: _Found, grid: float) -> Minimum:
    """Round to the grid in whole numbers: a decimal is an integer over a power of ten."""
    exact = [Fraction(value) / Fraction(grid) for value in here.point]
    counts = [round(value) for value in exact]
    off = np.array([float(value - count) for value, count in zip(exact, counts, strict=True)])
    radius = float((here.norm + here.error) / Decimal(problem.l2)) * (1.0 + 2.0**-40)
    return Minimum(Dyadic(counts, math.frexp(grid)[1] - 1), radius + length(off) * grid + problem.slack)


def _evaluate(
    problem: ExactProblem, start: DecimalArray, digits: int, step: Any = 0, *, hessian: bool = False
) -> _Found:
    """Gradient a step from a point, in this many digits, with a bound on its error."""
    with localcontext(context(digits)):
        point = start + step
        if problem.corners is not None:  # a step to a kink may have been rounded
            point = problem.corners.in_decimals().snapped(point, Decimal(10) ** (10 - digits))
        sums = DecimalPass(problem.proved, point, digits, hessian=hessian).over(problem)
        penalty, radius = Decimal(problem.l2), Decimal(problem.radius)
        tilt = [_exactly(part) for part in problem.tilt]
        gradient = reduce(np.add, tilt, sums.gradient + penalty * point)
        unit = Decimal(5).scaleb(-digits)
        size = norm(point)
        terms = radius * sums.steepness + penalty * size + sum((norm(part) for part in tilt), Decimal(0))
        curvature = Decimal(problem.max_curvature)
        slope = Decimal(problem.max_weight) * Decimal(problem.proved.slope_unit)
        several = problem.proved.decimal_factor
        predictors = several * radius * sums.rows * curvature * (len(point) + 1) * radius * size
        slopes = 16 * several * radius * (sums.rows * slope + sums.steepness)
        error = 4 * unit * ((sums.rows + 8) * terms + predictors + slopes)
        square = sums.hessian + np.diag(np.full(len(point), penalty)) if hessian else None
        left = gradient
        if problem.corners is not None:
            left = problem.corners.in_decimals().residual(gradient, point)
        return _Found(point, gradient, norm(left), error, square)


def _halved(problem: ExactProblem, here: _Found, digits: int, hessian: FloatArray) -> _Found | None:
    """One step with a double Hessian, or None where doubles fail or the gradient is not halved."""
    if problem.corners is not None:
        move = _model_step(problem.corners, here, _exactly(hessian), digits)
        there = None if move is None else _evaluate(problem, here.point, digits, move)
        return there if there is not None and there.norm <= here.norm / 2 else None
    top = max(map(abs, here.gradient))
    try:
        factor = cho_factor(hessian, lower=True)
        step = cho_solve(factor, np.array([-float(value / top) for value in here.gradient]))
    except (LinAlgError, ValueError, OverflowError):
        return None
    if not np.all(np.isfinite(step)):
        return None
    there = _evaluate(problem, here.point, digits, _exactly(step) * top)
    return there if there.norm <= here.norm / 2 else None


def _damped(problem: ExactProblem, here: _Found, digits: int) -> _Found | None:
    """Along the Newton direction as far as the gradient falls, or None if rounding leaves no such point."""
    assert here.hessian is not None
    with localcontext(context(digits)):
        step = solve(here.hessian, here.gradient)
    share = Decimal(1)
    while step is not None and share > Decimal(10) ** (10 - digits):
        there = _evaluate(problem, here.point, digits, share * step, hessian=True)
        if there.norm <= (1 - share / 10000) * here.norm:
            return there
        share /= 4
    return None


def _model_step(corners: Corners, here: _Found, hessian: DecimalArray, digits: int) -> DecimalArray | None:
    """The step to the minimiser of the model with corners, or None where it is not positive definite."""
    exact = corners.in_decimals()
    with localcontext(context(digits)), suppress(LinAlgError):
        gradient = here.gradient + exact.offset(here.point)
        return model_minimum(hessian, gradient, here.point, exact, _solve_or_raise).end - here.point
    return None


def _solve_or_raise(matrix: DecimalArray, vector: DecimalArray) -> DecimalArray:
    found = solve(matrix, -vector)
    if found is None:
        raise LinAlgError
    return found


def _to_face(problem: ExactProblem, here: _Found, digits: int) -> _Found | None:
    """Along the step to the model's minimiser as far as the objective falls, or as :func:`_damped`."""
    corners = problem.corners
    assert here.hessian is not None
    assert corners is not None
    step, exact = _model_step(corners, here, here.hessian, digits), corners.in_decimals()
    share = Decimal(1)
    while step is not None and share > Decimal(10) ** (10 - digits):
        there = _evaluate(problem, here.point, digits, share * step, hessian=True)
        with localcontext(context(digits)):
            rate = exact.rate(there.gradient, there.point, step, arriving=True)
        if there.norm <= here.norm / 2 or rate <= 0:
            return there
        share /= 4
    return None


def solve(matrix: DecimalArray, gradient: DecimalArray) -> DecimalArray | None:
    """Minus the gradient divided by the matrix, or None where that is not positive definite."""
    rows, half = matrix.copy(), -gradient
    for j in range(len(half)):
        if rows[j, j] <= 0:
            return None
        share = rows[j + 1 :, j] / rows[j, j]
        rows[j + 1 :, j:] = rows[j + 1 :, j:] - np.outer(share, rows[j, j:])
        half[j + 1 :] = half[j + 1 :] - share * half[j]
    for j in reversed(range(len(half))):
        half[j] = half[j] / rows[j, j]
        half[:j] = half[:j] - rows[:j, j] * half[j]
    return half


def rounded(values: Dyadic, digits: int) -> DecimalArray:
    """A dyadic vector in this many digits."""
    with localcontext(context(digits)):
        step = Decimal(2) ** values.exponent
        return np.array([Decimal(count) * step for count in values.counts], dtype=object)


def norm(vector: DecimalArray) -> Decimal:
    """An upper bound on the Euclidean norm."""
    square: Decimal = sum((value * value for value in vector), Decimal(0))
    return square.sqrt() * (1 + Decimal(10) ** -20)
