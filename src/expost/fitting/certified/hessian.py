r"""The Hessian of the rows at the exact minimiser, with a bound on its error.

.. math:: \|\tilde H - X^\top D(\hat w)X\|_F \le \gamma\,\mathrm{tr} + (e^{\zeta R\rho} - 1)\,\mathrm{tr}

for a double :math:`\tilde H` taken at a distance of at most :math:`\rho` from the minimiser :math:`\hat w`:
curvatures change by a factor of at most :math:`e^{\zeta R\rho}`, and :math:`\|\,|X|^\top D|X|\,\|_F` is at
most the trace.
"""

import math
from functools import reduce

import numpy as np

from expost.exceptions import SolverError
from expost.fitting.certified.bound import UP, Curvature
from expost.fitting.certified.certify import certify
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
from expost.fitting.certified.residual import BITS, SUB_BLOCK, ResidualPass, exact_sum
from expost.fitting.certified.slopes import slope_pair, third_order


def rows_hessian(problem: Problem, minimum: Minimum, *, grid: float, allowed: float) -> FloatArray:
    """The Hessian of the rows at the exact minimiser, off by at most ``allowed`` (Frobenius).

    The matrix of the certificate's own pass serves where it is good enough. Where it is not, one more pass
    at the certified point adds up the same products without rounding.

    Privacy
    -------
    Private: only noise makes it public.
    """
    point = Dyadic(minimum.integers, math.frexp(grid)[1] - 1)
    known = minimum.curvature
    if known is not None and _error(problem, minimum, point, known) <= allowed:
        return known.rows
    radius = minimum.radius
    zeta = third_order(problem.loss) or 0.0
    # A radius at which the minimiser's own uncertainty takes a quarter of what is allowed.
    trace = math.inf if known is None else float(np.trace(known.rows))
    wanted = 0.25 * allowed / max(zeta * problem.radius * trace, 1e-300) if math.isfinite(trace) else radius
    if zeta > 0.0 and radius > wanted:
        finer = math.ldexp(1.0, math.frexp(wanted)[1] - 12)
        minimum = certify(problem, point.doubles(), target=wanted, grid=finer)
        point, radius = Dyadic(minimum.integers, math.frexp(finer)[1] - 1), minimum.radius
    work = HessianPass(problem, Point.near(point, 2))
    high, low = reduce(add_accurately, problem.rows.sweep(work))
    matrix: FloatArray = high + low
    trace = float(np.trace(matrix))
    # What is left to round: a curvature (eight operations), its product with a row, and the small slices.
    predictors = zeta * work.residual.predictor_error()
    moved = _moved(problem, radius + length((work.residual.point.exact - point).doubles()))
    error = (
        UP
        * trace
        * (16.0 * UNIT + (problem.dimension + SUB_BLOCK + 64.0) * UNIT * 2.0**-20 + predictors + moved)
    )
    if not error <= allowed:
        raise SolverError(
            "the Hessian of so many rows has no stated error at this noise scale, so nothing is released; "
            "raise `sigma_hessian`, or choose report='independent'."
        )
    return matrix


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
        self.residual = ResidualPass(problem.loss, point, problem.radius)
        self._loss = problem.loss
        self._dimension = problem.dimension
        self._unit = math.ldexp(power_above(problem.radius), -BITS)

    def __call__(self, blocks: Blocks) -> Pair:
        """Add up over the blocks."""
        zero = np.zeros((self._dimension, self._dimension))
        total: Pair = (zero, zero.copy())
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for rows, labels, parts in self.residual.chunks(blocks):
                predictors = self.residual.predictors(rows, parts)
                curvature = slope_pair(self._loss, *predictors, labels).curvature
                total = add_accurately(total, self._product(rows, curvature, parts))
        return total

    def _product(self, rows: FloatArray, curvature: FloatArray, parts: list[FloatArray]) -> Pair:
        coarse, fine = parts[0], parts[1]
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
