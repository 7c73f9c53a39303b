r"""The minimiser of the perturbed objective with a proof of how close it is.

One Newton step from a good start, with the residual in slices, is enough on almost every table. Where its
bound is too large the same step is repeated, then taken in three slices, then in decimal arithmetic of as
many digits as it needs. The noise is the same throughout: it is never drawn again.
"""

import math
from functools import reduce
from operator import add

import numpy as np

from expost._common.namespaces import HERE
from expost.fitting.certified.bound import Curvature, Visit, after, bound
from expost.fitting.certified.decimals import certify_in_decimals
from expost.fitting.certified.dyadic import Dyadic
from expost.fitting.certified.minimum import Minimum, on_grid
from expost.fitting.certified.pairs import FloatArray, length
from expost.fitting.certified.point import Point
from expost.fitting.certified.problem import Problem
from expost.fitting.certified.residual import ResidualPass, exact_in
from expost.fitting.certified.slopes import third_order
from expost.fitting.certified.softmax_residual import ClassPoints, SoftmaxPass
from expost.fitting.gram import LONGEST_SUM
from expost.losses import Loss, SoftmaxLoss

_ROUNDS = 200
_FRESH = 0.05  # a Hessian from closer than this (relative change of a curvature) is kept


def certify(problem: Problem, start: FloatArray, *, target: float, grid: float) -> Minimum:
    """The minimiser on a grid, certified to ``target``.

    The first pass takes gradient and Hessian from the same rows, so that the certificate does not depend on
    what earlier passes read.

    Parameters
    ----------
    problem
        What to minimise.
    start
        Where to begin, better the closer to the minimiser; any finite point will do.
    target
        The radius to be certified; must leave room for the grid.
    grid
        A power of two; the result is a whole multiple of it.

    Returns
    -------
    Minimum
        Its radius is at most ``target``.

    Privacy
    -------
    Everything here is private: the radius, the number of passes and the level that was needed.
    """
    if not 0.0 < grid * math.sqrt(problem.dimension) + 2.0 * problem.slack <= target:
        raise ValueError("the grid or the noise is too coarse for the target radius")
    point = Dyadic.of(start)
    curvature: Curvature | None = None
    for slices in (2, 3) if exact_in(HERE) else ():
        search = _Search(problem, slices, target, grid, curvature)
        try:
            search.run(point)
        except OverflowError:  # beyond the range of doubles; decimals have no such range
            break
        if search.best is not None and search.best.radius <= target:
            return search.best
        point, curvature = search.reached or point, search.curvature
    matrix = None if curvature is None else curvature.matrix
    return certify_in_decimals(problem, point, matrix, target=target, grid=grid)


class _Search:
    """Newton steps in a given number of slices, damped where the gradient would not fall."""

    def __init__(
        self, problem: Problem, slices: int, target: float, grid: float, curvature: Curvature | None
    ) -> None:
        self.curvature = curvature
        self.best: Minimum | None = None
        self.reached: Dyadic | None = None
        """Where to go on from at the next level."""
        self._problem = problem
        self._slices = slices
        self._target = target
        self._grid = grid

    def run(self, start: Dyadic) -> None:
        """Step until the bound is met, or until more steps cannot meet it."""
        self.reached = start
        here = self._visit(start, fresh=self.curvature is None)
        share = 1.0
        for _ in range(_ROUNDS):
            if here is None:
                return
            self._settle(here)
            if self.best is not None and self.best.radius <= self._target:
                return
            # More steps do not help against rounding, and the grid takes up to half of the target.
            if here.floor > 0.5 * self._target:
                return
            there = self._visit(after(here.point.exact, here.step, share), fresh=self._is_far(here))
            if there is not None and length(there.gradient) <= (1.0 - 1e-4 * share) * length(here.gradient):
                here, share = there, 1.0
            else:
                # The step was too long, or its Hessian another point's.
                share /= 4.0
                if share < 2.0**-60:
                    return
                here = self._visit(here.point.exact, fresh=True)

    def _is_far(self, here: Visit) -> bool:
        return third_order(self._problem.loss) * self._problem.radius * length(here.step) > _FRESH

    def _settle(self, here: Visit) -> None:
        """Keep the point on the grid, if it is the best so far."""
        self.reached = here.certified if here.radius < math.inf else here.point.exact
        integers, offset = on_grid(here.certified, self._grid)
        radius = here.radius + offset + self._problem.slack
        if self.best is None or radius < self.best.radius:
            assert self.curvature is not None
            self.best = Minimum(integers, radius, self.curvature)

    def _visit(self, where: Dyadic, *, fresh: bool) -> Visit | None:
        """One pass at a point, or None where doubles do not reach."""
        problem = self._problem
        work = residual_at(problem, where, self._slices, hessian=fresh)
        sums = work.finished(reduce(add, problem.rows.sweep(work)))
        if not (
            np.all(np.isfinite(sums.total)) and math.isfinite(sums.error + sums.curvature + sums.absolute)
        ):
            return None
        if sums.hessian is not None:
            if not np.all(np.isfinite(sums.hessian)):
                return None
            chain = min(sums.rows, LONGEST_SUM + sums.additions) + work.roundings()
            self.curvature = Curvature.of(sums.hessian, work.at(), problem, chain)
        assert self.curvature is not None
        return bound(problem, self.curvature, work.point, sums, work.predictor_error())


def residual_at(
    problem: Problem, where: Dyadic, slices: int, *, hessian: bool = False
) -> ResidualPass | SoftmaxPass:
    """The pass that finds the gradient in slices at the point that so many of them can hold."""
    loss, radius = problem.loss, problem.radius
    if isinstance(loss, SoftmaxLoss):
        return SoftmaxPass(loss, ClassPoints.near(where, slices, loss.classes), radius, hessian)
    assert isinstance(loss, Loss)
    return ResidualPass(loss, Point.near(where, slices), radius, hessian)
