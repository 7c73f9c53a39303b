r"""The last level: gradients in decimal arithmetic of as many digits as the radius asks for.

Python's decimals are correctly rounded, the exponential and the square root included, and have no range to
leave. With :math:`p` digits each operation is off by at most :math:`v = 5\cdot10^{-p}` of its result. A point
is certified by :math:`\|\hat w - w\| \le \|\nabla\|/\lambda`, which needs neither Hessian nor third
derivatives.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, reduce
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from expost.fitting.certified.bound import Blocks, Minimum, Problem
from expost.fitting.certified.functions import (
    DecimalArray,
    context,
    decimal_derivatives,
    in_decimals,
    moved,
    norm,
    rounded,
    solve,
)
from expost.fitting.certified.pairs import Dyadic, FloatArray, Pair, length
from expost.losses import AnyLoss, LogisticLoss, Loss, PseudoHuber, SmoothedHinge, SoftmaxLoss, VectorLoss


class _Masses(NamedTuple):
    """Of one record: slope and curvature of the link, the law of the other classes and the own mass."""

    steep: Decimal
    curvature: Decimal
    others: DecimalArray
    own: Decimal


def softmax_derivatives(
    loss: SoftmaxLoss, coefficients: DecimalArray, row: DecimalArray, label: Decimal, digits: int
) -> tuple[DecimalArray, DecimalArray]:
    """The gradient in the linear predictors and the Hessian in them, from all coefficients in a row.

    Each entry of the gradient is rounded fewer than ``16 K`` times, relative to a vector of length two.
    """
    with localcontext(context(digits)):
        basis, true = _helmert(loss.classes, digits), int(label)
        found = _masses(loss, basis @ (coefficients.reshape(loss.classes - 1, -1) @ row), true, digits)
        away = found.others.copy()
        away[true] = away[true] - 1
        # The Hessian as weighted squares of the classes' distances from their mean.
        weights = found.steep * found.others
        weights[true] = found.curvature
        distances = basis - found.others @ basis
        hessian: DecimalArray = (distances * weights[:, None]).T @ distances
        return found.steep * (away @ basis), hessian


def smallest_mass(
    loss: SoftmaxLoss, coefficients: DecimalArray, row: DecimalArray, label: Decimal, digits: int
) -> Decimal:
    """The smallest mass of a record, which the reduced Hessian is made of."""
    with localcontext(context(digits)):
        basis, true = _helmert(loss.classes, digits), int(label)
        found = _masses(loss, basis @ (coefficients.reshape(loss.classes - 1, -1) @ row), true, digits)
        masses = (found.steep * share for j, share in enumerate(found.others) if j != true)
        smallest: Decimal = min((found.own, *masses))
        return smallest


def _masses(loss: SoftmaxLoss, scores: DecimalArray, true: int, digits: int) -> _Masses:
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
    if loss.corner is not None and steep > Decimal(loss.link.corner_slope):
        place, rate = in_decimals(loss.link, digits)
        cap = Decimal(loss.cap)
        lost = (cap - Decimal(loss.link.corner_slope)) * (-rate * (ahead + total.ln() - place)).exp()
        steep, curvature = cap - lost, rate * lost
        own = steep * curvature / (steep - curvature)
    return _Masses(steep, curvature, powers / total, own)


@cache
def _helmert(classes: int, digits: int) -> DecimalArray:
    with localcontext(context(digits)):
        matrix = np.array([[Decimal(0)] * (classes - 1) for _ in range(classes)], dtype=object)
        for a in range(classes - 1):
            root = 1 / Decimal((a + 1) * (a + 2)).sqrt()
            matrix[: a + 1, a] = root
            matrix[a + 1, a] = -(a + 1) * root
        return matrix


_ONE = Decimal(1)
_exactly: Callable[..., Any] = np.frompyfunc(Decimal, 1, 1)
_sizes: Callable[..., Any] = np.frompyfunc(abs, 1, 1)


@dataclass
class _Sums:
    gradient: DecimalArray
    steepness: Decimal = Decimal(0)
    rows: int = 0
    hessian: DecimalArray | None = field(default=None, repr=False)

    def __add__(self, other: "_Sums") -> "_Sums":
        both = self.hessian is not None and other.hessian is not None
        return _Sums(
            self.gradient + other.gradient,
            self.steepness + other.steepness,
            self.rows + other.rows,
            self.hessian + other.hessian if both else None,  # type: ignore[operator]
        )


@dataclass(frozen=True)
class _Found:
    point: DecimalArray
    gradient: DecimalArray
    norm: Decimal
    error: Decimal
    """A bound on the norm of the gradient's error."""
    hessian: DecimalArray | None


def certify_in_decimals(
    problem: Problem, start: Dyadic, hessian: FloatArray | None, *, target: float, grid: float
) -> Minimum:
    """The minimiser on the grid, certified to ``target`` whatever the conditioning.

    Steps use the double Hessian while they halve the gradient, and one in decimals, damped, afterwards. More
    digits are taken whenever rounding stands in the way.
    """
    with localcontext(context(60)):  # for the comparisons; every evaluation sets its own
        return _descend(problem, start, hessian, Decimal(target), grid)


def hessian_in_decimals(problem: Problem, point: Dyadic, *, reduced: bool = False) -> Pair:
    """The Hessian of the rows at a point, or the reduced one, with one rounding to a pair at the end.

    Entries are off by less than ``2**-100`` of the trace for up to ``10**25`` rows.
    """
    size = max(1.0, problem.radius * length(point.doubles()) * len(point.counts))
    digits = 60 + max(0, math.ceil(math.log10(size)))
    with localcontext(context(digits)):
        where = rounded(point, digits)
        work = DecimalPass(problem.loss, where, digits, hessian=True, reduced=reduced)
        sums: _Sums = reduce(_Sums.__add__, problem.rows.sweep(work))
        assert sums.hessian is not None
        high = sums.hessian.astype(np.float64)
        return high, (sums.hessian - _exactly(high)).astype(np.float64)


def _descend(
    problem: Problem, start: Dyadic, hessian: FloatArray | None, target: Decimal, grid: float
) -> Minimum:
    digits = 50
    point = rounded(start, digits)
    allowed = Decimal(problem.l2) * target / 4  # the grid and the noise take at most half
    here = _evaluate(problem, point, digits, hessian=hessian is None)
    while True:
        if here.error > allowed / 4:
            digits += max(10, (here.error / allowed).adjusted() + 5)
            here = _evaluate(problem, here.point, digits, hessian=here.hessian is not None)
            continue
        if here.norm + here.error <= allowed:
            return _settle(problem, here, grid)
        there = None
        if hessian is not None:
            step = _double_step(problem, here, hessian)
            there = None if step is None else _evaluate(problem, moved(here.point, step, digits), digits)
            if there is None or not there.norm <= here.norm / 2:
                there, hessian = None, None
        if there is None:
            if here.hessian is None:
                here = _evaluate(problem, here.point, digits, hessian=True)
            there = _damped(problem, here, digits)
        if there is None:
            digits *= 2
            here = _evaluate(problem, here.point, digits, hessian=True)
        else:
            here = there


def _settle(problem: Problem, here: _Found, grid: float) -> Minimum:
    """Round to the grid in whole numbers: a decimal is an integer over a power of ten."""
    step = Fraction(grid)
    exact = [Fraction(value) / step for value in here.point]
    integers = [round(value) for value in exact]
    offset = (
        length(np.array([float(value - count) for value, count in zip(exact, integers, strict=True)])) * grid
    )
    radius = float((here.norm + here.error) / Decimal(problem.l2)) * (1.0 + 2.0**-40)
    return Minimum(integers, radius + offset + problem.slack)


def _evaluate(problem: Problem, point: DecimalArray, digits: int, *, hessian: bool = False) -> _Found:
    r"""Gradient at a point with a bound on its error.

    A linear predictor is off by :math:`(d+1)v\,\|x\|\|w\|`, a slope by the largest curvature times that plus
    :math:`16v` of itself or of its unit, the sums by :math:`(n+8)v` of the sizes of their terms.
    The bound has a factor of four to spare.
    """
    with localcontext(context(digits)):
        work = DecimalPass(problem.loss, point, digits, hessian=hessian)
        sums: _Sums = reduce(_Sums.__add__, problem.rows.sweep(work))
        penalty, radius = Decimal(problem.l2), Decimal(problem.radius)
        tilt = [_exactly(part) for part in problem.tilt]
        gradient = reduce(np.add, tilt, sums.gradient + penalty * point)
        unit = Decimal(5).scaleb(-digits)
        size = norm(point)
        terms = radius * sums.steepness + penalty * size + sum((norm(part) for part in tilt), Decimal(0))
        square = sums.hessian
        if square is not None:
            square = square + np.diag(np.full(len(point), penalty, dtype=object))
        if problem.regularizer is not None:
            weight, scale = Decimal(problem.regularizer.weight), Decimal(problem.regularizer.scale)
            roots = np.array([(value * value + scale * scale).sqrt() for value in point], dtype=object)
            gradient = gradient + weight * point / roots
            terms += 16 * weight * Decimal(len(point)).sqrt()
            if square is not None:
                square = square + np.diag(weight * (scale / roots) ** 2 / roots)
        curvature = Decimal(problem.curve.max_curvature)
        slope = Decimal(problem.max_weight) * _slope_unit(problem.loss)
        # Several predictors are turned into scores by as many products each, and so are their slopes.
        several = 4 * (problem.loss.outputs + 1) ** 2 if isinstance(problem.loss, VectorLoss) else 1
        predictors = several * radius * sums.rows * curvature * (len(point) + 1) * radius * size
        slopes = 16 * several * radius * (sums.rows * slope + sums.steepness)
        error = 4 * unit * ((sums.rows + 8) * terms + predictors + slopes)
        return _Found(point, gradient, norm(gradient), error, square)


@dataclass(frozen=True, eq=False, repr=False)
class DecimalPass:
    """The pass that adds up gradients and, where asked for, Hessians in decimals of so many digits."""

    loss: AnyLoss
    point: DecimalArray
    digits: int
    hessian: bool = False
    reduced: bool = False

    def __call__(self, blocks: Blocks) -> _Sums:
        """The sums over the blocks."""
        loss, point, digits = self.loss, self.point, self.digits
        order = len(point) // loss.outputs if self.reduced else len(point)
        with localcontext(context(digits)):
            zero = np.full(len(point), Decimal(0), dtype=object)
            square = np.full((order, order), Decimal(0), dtype=object) if self.hessian else None
            sums = _Sums(zero, hessian=square)
            for rows, labels, weights in blocks:
                for place, (row, label) in enumerate(zip(rows, labels, strict=True)):
                    x = _exactly(row)
                    sums.rows += 1
                    weight = _ONE if weights is None else Decimal(float(weights[place]))
                    if isinstance(loss, VectorLoss):
                        y = Decimal(float(label))
                        _add_vector(sums, loss, point, x, y, weight, digits, self.reduced)
                        continue
                    slope, curvature = _derivatives(loss, x @ point, Decimal(float(label)), digits)
                    if weights is not None:
                        slope, curvature = weight * slope, weight * curvature
                    sums.gradient = sums.gradient + slope * x
                    sums.steepness += abs(slope)
                    if sums.hessian is not None:
                        sums.hessian = sums.hessian + np.outer(curvature * x, x)
        return sums


def _add_vector(
    sums: _Sums,
    loss: VectorLoss,
    point: DecimalArray,
    x: DecimalArray,
    label: Decimal,
    weight: Decimal,
    digits: int,
    reduced: bool,
) -> None:
    assert isinstance(loss, SoftmaxLoss)
    slopes, curvature = softmax_derivatives(loss, point, x, label, digits)
    slopes, curvature = weight * slopes, weight * curvature
    sums.gradient = sums.gradient + np.outer(slopes, x).ravel()
    sums.steepness += norm(slopes)
    if sums.hessian is not None and reduced:
        mass = weight * smallest_mass(loss, point, x, label, digits)
        sums.hessian = sums.hessian + np.outer(mass * x, x)
    elif sums.hessian is not None:
        sums.hessian = sums.hessian + np.kron(curvature, np.outer(x, x))


def _derivatives(loss: Loss, eta: Decimal, y: Decimal, digits: int) -> tuple[Decimal, Decimal]:
    """Slope and curvature, rounded at most fifteen times; a weight rounds them once more."""
    if isinstance(loss, LogisticLoss):
        if loss.corner is not None and (found := decimal_derivatives(loss, eta, y, digits)) is not None:
            return found
        small = _small(eta, digits)
        return ((1 - y) - small if eta >= 0 else small - y), small * (1 - small)
    if isinstance(loss, SmoothedHinge):
        t = (1 - y * eta) / Decimal(loss.scale)
        small = _small(t, digits)
        return -y * (1 - small if t >= 0 else small), small * (1 - small) / Decimal(loss.scale)
    residual = eta - y
    if isinstance(loss, PseudoHuber):
        c = Decimal(loss.threshold)
        cosine = c / (c * c + residual * residual).sqrt()
        return residual * cosine, cosine**3
    return residual, _ONE


def _small(t: Decimal, digits: int) -> Decimal:
    """``1/(1 + e^|t|)``; below the last digit of anything it is zero."""
    if abs(t) > 3 * digits:
        return Decimal(0)
    power = (-abs(t)).exp()
    return power / (1 + power)


def _slope_unit(loss: AnyLoss) -> Decimal:
    return Decimal(loss.threshold) if isinstance(loss, PseudoHuber) else _ONE


def _double_step(problem: Problem, here: _Found, hessian: FloatArray) -> DecimalArray | None:
    """Minus the gradient times the inverse of a double Hessian, or None where doubles fail."""
    top = max(_sizes(here.gradient))
    try:
        matrix = hessian
        if problem.regularizer is not None:
            matrix = matrix + problem.regularizer.hessian(np.array([float(value) for value in here.point]))
        factor = cho_factor(matrix, lower=True)
        step = cho_solve(factor, np.array([-float(value / top) for value in here.gradient]))
    except (LinAlgError, ValueError, OverflowError):
        return None
    if not np.all(np.isfinite(step)):
        return None
    result: DecimalArray = _exactly(step) * top
    return result


def _damped(problem: Problem, here: _Found, digits: int) -> _Found | None:
    """Along the Newton direction as far as the gradient falls, or None if rounding leaves no such point."""
    assert here.hessian is not None
    with localcontext(context(digits)):
        step = solve(here.hessian, here.gradient)
    share = _ONE
    while step is not None and share > Decimal(10) ** (10 - digits):
        there = _evaluate(problem, moved(here.point, share * step, digits), digits, hessian=True)
        if there.norm <= (1 - share / 10000) * here.norm:
            return there
        share /= 4
    return None
