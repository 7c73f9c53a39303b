"""The minimiser of the perturbed objective and the Hessian there, with a proof of how close they are.

One Newton step from a good start, with the residual in pairs of doubles, is enough on almost every table.
Where there are no compiled kernels, or rows lie on a device, the residual is in slices instead. Where the
bound is too large the same step is repeated, then taken in three slices if it was in two, then in decimal
arithmetic of as many digits as it needs. Three slices stay for devices and machines without kernels: they
serve large tables with dependent columns, for which decimals would take days. The noise is the same
throughout: it is never drawn again.
"""

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from expost._common import kernels
from expost._common.namespaces import HERE
from expost.data.rows import LONGEST_SUM
from expost.fitting.certified.bound import (
    UP,
    Curvature,
    ExactProblem,
    Minimum,
    Visit,
    bound,
    bound_without_step,
)
from expost.fitting.certified.decimals import certify_in_decimals, hessian_in_decimals
from expost.fitting.certified.pairs import UNIT, Dyadic, FloatArray, Pair, exact_in, length
from expost.fitting.certified.residual import HessianPass, Partial, ResidualPass
from expost.fitting.objective import Objective
from expost.fitting.solvers import conjugate_gradients
from expost.fitting.wide import is_wide

_ROUNDS = 200
# How much of a residual conjugate gradients leave.
_FORCING = 1e-8
_FRESH = 0.05  # a Hessian from closer than this (relative change of a curvature) is kept


def certify(problem: ExactProblem, start: FloatArray, *, target: float, grid: float) -> Minimum:
    """The minimiser on a grid, certified to ``target``, which must leave room for the grid, a power of two.

    The first pass takes gradient and Hessian from the same rows, so that the certificate does not depend on
    what earlier passes read. Any finite start will do, the closer to the minimiser the better.

    Privacy
    -------
    Everything here is private: the radius, the number of passes and the level that was needed.
    """
    if not 0.0 < grid * math.sqrt(problem.dimension) + 2.0 * problem.slack <= target:
        raise ValueError("the grid or the noise is too coarse for the target radius")
    point = Dyadic.of(start)
    curvature: Curvature | None = None
    with suppress(OverflowError):  # beyond the range of doubles, as below
        found = _by_products(problem, point, target, grid)
        if found is not None:
            return found
    for slices in (2, 3) if exact_in(HERE) or kernels.library() is not None else ():
        search = _Search(problem, slices, target, grid, curvature, point)
        try:
            search.run()
        except OverflowError:  # beyond the range of doubles; decimals have no such range
            break
        if search.met is not None:
            return search.met
        point, curvature = search.reached, search.curvature
        if not search.sliced:
            break
    matrix = None if curvature is None else curvature.matrix
    return certify_in_decimals(problem, point, matrix, target=target, grid=grid)


def _by_products(problem: ExactProblem, point: Dyadic, target: float, grid: float) -> Minimum | None:
    r"""The minimiser of a wide model on a grid, without a matrix; None where slices do not reach it.

    The objective is strongly convex, so that the gradient alone bounds the distance. Steps are by conjugate
    gradients in doubles; only their number depends on how good these are.
    """
    if not is_wide(problem.loss, problem.dimension, problem.corners):
        return None
    objective = Objective(problem.rows, problem.loss, problem.l2)
    before = math.inf
    for _ in range(_ROUNDS if exact_in(HERE) or kernels.library() is not None else 0):
        # At a point of 101 bits, which pairs of doubles hold, too: small penalties make it long.
        work = residual_at(problem, point, 3)
        sums = work.finished(reduce(add, problem.rows.sweep(work)))
        gradient, distance = bound_without_step(problem, work.points.exact, sums, sums.predictor_error)
        nearest = work.points.exact.on_grid(grid)
        radius = distance + length((work.points.exact - nearest).doubles()) + problem.slack
        norm = length(gradient)
        if radius <= target:
            return Minimum(nearest, radius)
        if not (math.isfinite(norm) and norm < 0.5 * before):
            return None
        before, point = norm, work.points.exact
        product = objective.curvature_product(point.doubles())
        step, _ = conjugate_gradients(product, -gradient, _FORCING, math.inf)
        assert step is not None
        point = point + Dyadic.of(step)
    return None


@dataclass
class _Search:
    """Newton steps in a given number of slices, damped where the gradient would not fall."""

    problem: ExactProblem
    slices: int
    target: float
    grid: float
    curvature: Curvature | None
    reached: Dyadic
    """Where to start, and to go on from at the next level."""
    best: Minimum | None = None
    sliced: bool = True
    """Whether slices were taken: pairs of doubles, which compiled kernels take, have no further level."""

    @property
    def met(self) -> Minimum | None:
        """The best point, if it is certified to the target."""
        return self.best if self.best is not None and self.best.radius <= self.target else None

    def run(self) -> None:
        """Step until the bound is met, or until more steps cannot meet it."""
        here = self._visit(self.reached, fresh=self.curvature is None)
        share = 1.0
        for _ in range(_ROUNDS):
            if here is None:
                return
            self._settle(here)
            if self.met is not None:
                return
            # More steps do not help against rounding, and the grid takes up to half of the target.
            if here.floor > 0.5 * self.target:
                return
            far = self.problem.steepening * length(here.step) > _FRESH
            whole = here.certified if share == 1.0 else here.point + Dyadic.of(share * here.step)
            there = self._visit(whole, fresh=far)
            if there is not None and length(there.gradient) <= (1.0 - 1e-4 * share) * length(here.gradient):
                here, share = there, 1.0
            else:
                # The step was too long, or its Hessian another point's.
                share /= 4.0
                if share < 2.0**-60:
                    return
                here = self._visit(here.point, fresh=True)

    def _settle(self, here: Visit) -> None:
        """Keep the point on the grid, if it is the best so far."""
        self.reached = here.certified if here.radius < math.inf else here.point
        nearest = here.certified.on_grid(self.grid)
        radius = here.radius + length((here.certified - nearest).doubles()) + self.problem.slack
        if self.best is None or radius < self.best.radius:
            self.best = Minimum(nearest, radius, self.curvature)

    def _visit(self, where: Dyadic, *, fresh: bool) -> Visit | None:
        """One pass at a point, or None where doubles do not reach."""
        problem = self.problem
        work = residual_at(problem, where, self.slices, hessian=fresh)
        sums: Partial = reduce(add, problem.rows.sweep(work))
        numbers = [sums.error, sums.curvature, sums.absolute]
        if not (np.all(np.isfinite(sums.total)) and np.all(np.isfinite(numbers))):
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            sums = work.finished(sums)
        if sums.hessian is not None:
            if not np.all(np.isfinite(sums.hessian)):
                return None
            chain = min(sums.rows, LONGEST_SUM + sums.additions) + work.loss.hessian_roundings
            self.curvature = Curvature.of(sums.hessian, work.points.exact.doubles(), problem, chain)
        assert self.curvature is not None
        self.sliced = sums.sliced
        with np.errstate(over="ignore", invalid="ignore"):  # the bound is then infinite
            return bound(problem, self.curvature, work.points.exact, sums, sums.predictor_error)


def residual_at(problem: ExactProblem, where: Dyadic, slices: int, *, hessian: bool = False) -> ResidualPass:
    """The pass that finds the gradient in slices at the point that they can hold."""
    return ResidualPass(problem.proved, problem.proved.points(where, slices), problem.radius, hessian)


def rows_hessian(problem: ExactProblem, minimum: Minimum, *, allowed: float, reduced: bool = False) -> Pair:
    """The Hessian of the rows at the exact minimiser, or the reduced one, off by ``allowed`` (Frobenius).

    The matrix of the certificate's own pass serves where it is good enough. Where it is not, a further pass
    at the certified point adds up the same products without rounding, in two slices, then in three, then in
    decimals, which never fail. Where the minimiser is not known well enough, it is certified again first.

    Privacy
    -------
    Private: only noise makes it public.
    """
    known = minimum.curvature
    if known is not None and not reduced:
        distance = minimum.radius + known.distance(minimum.point)
        if known.rows_error + UP * problem.change(distance) * float(np.trace(known.rows)) <= allowed:
            return known.rows, np.zeros_like(known.rows)
    for slices in (2, 3, None) if exact_in(HERE) else (None,):
        matrix, error = _summed(problem, minimum.point, slices, reduced=reduced)
        if math.isinf(error):
            continue
        trace = float(np.trace(matrix[0]))
        # A radius at which the minimiser's own uncertainty takes a quarter of what is allowed.
        rate = problem.steepening * trace
        if minimum.radius * rate > 0.25 * allowed:
            wanted = 0.25 * allowed / rate
            grid = math.ldexp(1.0, math.frexp(wanted)[1] - 14)
            minimum = certify(problem, minimum.point.doubles(), target=wanted, grid=grid)
            matrix, error = _summed(problem, minimum.point, slices, reduced=reduced)
            trace = float(np.trace(matrix[0]))
        if slices is None or error + UP * problem.change(minimum.radius) * trace <= allowed:
            break
    return matrix


def _summed(
    problem: ExactProblem, point: Dyadic, slices: int | None, *, reduced: bool = False
) -> tuple[Pair, float]:
    """The Hessian in slices, or in decimals, at a point, and a bound on its error there (Frobenius)."""
    if slices is None:
        return hessian_in_decimals(problem, point, reduced=reduced)
    work = residual_at(problem, point, slices)
    loss, sums = work.loss, reduce(add, problem.rows.sweep(HessianPass(work, reduced)))
    matrix = sums.total[0][0] + sums.total[1][0] if reduced else loss.exact_hessian(sums.total)
    relative = (16.0 + loss.weight_roundings) * UNIT + loss.third_order * work.predictor_error()
    relative += problem.change(length((work.points.exact - point).doubles()))
    largest = sums.rows * problem.max_curvature * problem.radius**2
    rest = 2.0**-23 * (LONGEST_SUM + 64.0) * UNIT * problem.dimension * largest
    leftovers = 1.0 if reduced else loss.trace * loss.sums
    error = UP * (float(np.trace(matrix)) * relative + leftovers * rest) + sums.error
    return (matrix, np.zeros_like(matrix)), error
