r"""The Hessian of the rows at the exact minimiser, with a bound on its error.

.. math:: \|\tilde H - X^\top D(\hat w)X\|_F \le \gamma\,\mathrm{tr} + (e^{\zeta R\rho} - 1)\,\mathrm{tr}

for a double :math:`\tilde H` taken at a distance of at most :math:`\rho` from the minimiser :math:`\hat w`:
curvatures change by a factor of at most :math:`e^{\zeta R\rho}`, and :math:`\|\,|X|^\top D|X|\,\|_F` is at
most the trace.
"""

import math
from functools import reduce
from threading import Lock

import numpy as np

from expost.fitting.certified.bound import UP, Curvature
from expost.fitting.certified.certify import certify
from expost.fitting.certified.decimals import hessian_in_decimals
from expost.fitting.certified.dyadic import Dyadic
from expost.fitting.certified.minimum import Minimum
from expost.fitting.certified.pairs import (
    UNIT,
    FloatArray,
    Pair,
    add_accurately,
    length,
    power_above,
    round_to,
)
from expost.fitting.certified.point import Point
from expost.fitting.certified.problem import Blocks, Problem
from expost.fitting.certified.residual import (
    BITS,
    LONGEST_CHUNK,
    SUB_BLOCK,
    ResidualPass,
    exact_sum,
    slices_are_exact,
)
from expost.fitting.certified.slopes import slope_pair, third_order
from expost.losses import Loss


def rows_hessian(problem: Problem, minimum: Minimum, *, grid: float, allowed: float) -> FloatArray:
    """The Hessian of the rows at the exact minimiser, off by at most ``allowed`` (Frobenius).

    The matrix of the certificate's own pass serves where it is good enough. Where it is not, a further pass
    at the certified point adds up the same products without rounding, in two slices, then in three, then in
    decimals. Where the minimiser itself is not known well enough, it is certified to a smaller radius first.

    Privacy
    -------
    Private: only noise makes it public.
    """
    point, radius = Dyadic(minimum.integers, math.frexp(grid)[1] - 1), minimum.radius
    known = minimum.curvature
    if known is not None and _error(problem, minimum, point, known) <= allowed:
        return known.rows
    sliced = isinstance(problem.loss, Loss) and slices_are_exact()  # other losses go to decimals at once
    for slices in (2, 3) if sliced else ():
        matrix, error = _summed(problem, point, slices)
        wanted = _wanted_radius(problem, float(np.trace(matrix)), allowed)
        if radius > wanted:
            point, radius = _closer(problem, point, wanted)
            matrix, error = _summed(problem, point, slices)
        if error + UP * _moved(problem, radius) * float(np.trace(matrix)) <= allowed:
            return matrix
    matrix = hessian_in_decimals(problem, point)
    wanted = _wanted_radius(problem, float(np.trace(matrix)), allowed)
    if radius > wanted:
        matrix = hessian_in_decimals(problem, _closer(problem, point, wanted)[0])
    return matrix


def _wanted_radius(problem: Problem, trace: float, allowed: float) -> float:
    """A radius at which the minimiser's own uncertainty takes a quarter of what is allowed."""
    rate = (third_order(problem.loss) or 0.0) * problem.radius * trace
    return 0.25 * allowed / rate if rate > 0.0 else math.inf


def _closer(problem: Problem, point: Dyadic, target: float) -> tuple[Dyadic, float]:
    """A point certified to a smaller radius, and that radius."""
    grid = math.ldexp(1.0, math.frexp(target)[1] - 14)
    minimum = certify(problem, point.doubles(), target=target, grid=grid)
    return Dyadic(minimum.integers, math.frexp(grid)[1] - 1), minimum.radius


def _summed(problem: Problem, point: Dyadic, slices: int) -> tuple[FloatArray, float]:
    r"""The Hessian in slices at a point, and a bound on its error there (Frobenius).

    A curvature and its product with a row are rounded at most sixteen times, and the error of a linear
    predictor changes a curvature by :math:`\zeta` times that. What the slices leave over is at most
    :math:`2^{-23}` of the largest curvature in every entry, and is added in chunks.
    """
    work = HessianPass(problem, Point.near(point, slices))
    high, low = reduce(add_accurately, problem.rows.sweep(work))
    matrix: FloatArray = high + low
    trace = float(np.trace(matrix))
    away = length((work.residual.point.exact - point).doubles())
    relative = 16.0 * UNIT + (third_order(problem.loss) or 0.0) * work.residual.predictor_error()
    rest = (
        2.0**-23 * (LONGEST_CHUNK + 64.0) * UNIT * problem.dimension * work.rows * problem.largest_curvature
    )
    return matrix, UP * (trace * (relative + _moved(problem, away)) + rest)


def _error(problem: Problem, minimum: Minimum, point: Dyadic, known: Curvature) -> float:
    distance = minimum.radius + length((point - Dyadic.of(known.at)).doubles())
    return known.rows_error + UP * _moved(problem, distance) * float(np.trace(known.rows))


def _moved(problem: Problem, distance: float) -> float:
    """The relative change of a curvature over a distance."""
    zeta = third_order(problem.loss)
    exponent = math.inf if zeta is None else zeta * problem.radius * distance
    return UP * math.expm1(exponent) if exponent <= 1.0 else math.inf


class HessianPass:
    r"""A function from row blocks to :math:`\sum_i f''x_ix_i^\top` as a pair, nearly without rounding.

    Rows and weighted rows are cut into slices of 23 bits, of which 128 products at a time are added exactly.
    What the slices leave over is smaller by :math:`2^{-22}` and is added in plain doubles.
    """

    def __init__(self, problem: Problem, point: Point) -> None:
        assert isinstance(problem.loss, Loss)
        self.residual = ResidualPass(problem.loss, point, problem.radius)
        self._loss: Loss = problem.loss
        self._dimension = problem.dimension
        self._unit = math.ldexp(power_above(problem.radius), -BITS)
        self.rows = 0
        self._lock = Lock()

    def __call__(self, blocks: Blocks) -> Pair:
        """Add up over the blocks."""
        count = 0
        zero = np.zeros((self._dimension, self._dimension))
        total: Pair = (zero, zero.copy())
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for rows, labels, weights, parts in self.residual.chunks(blocks):
                predictors = self.residual.predictors(rows, parts)
                curvature = slope_pair(self._loss, *predictors, labels, weights).curvature
                total = add_accurately(total, self._product(rows, curvature, parts))
                count += len(rows)
        with self._lock:
            self.rows += count
        return total

    def _product(self, rows: FloatArray, curvature: FloatArray, parts: list[FloatArray]) -> Pair:
        coarse = parts[0]
        fine = parts[1] if len(parts) == 2 else parts[1] + parts[2]
        weighted = rows * curvature[:, None]
        step = math.ldexp(max(power_above(float(np.max(np.abs(weighted)))), 2.0**-600), -BITS)
        whole = round_to(weighted, step)
        plain = coarse.T @ (weighted - whole) + fine.T @ weighted
        products = np.stack(
            [
                coarse[start : start + SUB_BLOCK].T @ whole[start : start + SUB_BLOCK]
                for start in range(0, len(rows), SUB_BLOCK)
            ]
        )
        return add_accurately(exact_sum(products, self._unit * step), (plain, np.zeros_like(plain)))
