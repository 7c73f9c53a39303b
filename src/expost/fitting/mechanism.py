"""Objective perturbation, from a plan and encoded records to a release: draw, solve, certify, print."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from expost._common.machine import limit_blas_threads
from expost._common.progress import Step, silent
from expost._common.typing import FloatArray
from expost.data.encoding import Encoded
from expost.exceptions import SolverError
from expost.fitting.certified.bound import ExactProblem
from expost.fitting.certified.certify import certify, rows_hessian
from expost.fitting.certified.pairs import Dyadic, Pair, exact_in
from expost.fitting.certified.slopes import proved, third_order
from expost.fitting.contributions import Totals
from expost.fitting.noise import NoiseSource, Tilt
from expost.fitting.objective import Objective
from expost.fitting.private_fit import PrivateFit, check_inputs, check_room, needs_hessian
from expost.fitting.release import Release
from expost.fitting.solvers import Solution, minimize, warm_start
from expost.fitting.statistics import allowed_hessian_error, draw, measure, printed, published
from expost.fitting.wide import is_wide
from expost.losses.corners import Corners
from expost.privacy.plan import Plan, check_rows
from expost.privacy.precision import Precision

# Tables with fewer products than this are evaluated once more at the published point: a few milliseconds.
_FEW_PRODUCTS = 5e7
# The objective's noise is fine enough for a Hessian of this many times the plan's rows, or of all there are.
_LEAST_FOLD = 8.0


def perturb(
    plan: Plan,
    records: Encoded,
    *,
    noise: NoiseSource,
    corners: Corners | None = None,
    step: Step = silent,
    before_noise: Callable[[], None] | None = None,
) -> tuple[Release, PrivateFit]:
    r"""Release the minimiser of a randomly tilted objective (Redberg and Wang 2021, Algorithm 1).

    After Kifer, Smith and Thakurta (2012):

    .. math:: b \sim N(0, \sigma^2 I), \qquad
              \hat\theta = \arg\min_\theta J(\theta; D) + b^\top\theta

    What is printed is :math:`\mathrm{round}_h(\tilde\theta + sZ)`, where
    :math:`\|\tilde\theta - \hat\theta\| \le r_0` is certified and :math:`s`, :math:`r_0` and :math:`h` are
    the plan's. Where the plan says so, statistics at the exact minimiser are printed too (Algorithms "release
    g", "release H" and "the smallest eigenvalue" of Redberg and Wang):

    .. math:: \hat g = \nabla J(\hat\theta; D) + N(0, \sigma_2^2 I), \qquad
              \hat H = \nabla^2 J(\hat\theta; D) + \sigma_3\,\mathrm{GOE}, \qquad
              \hat\lambda = \lambda_{\min}(\nabla^2 J(\hat\theta; D)) + N(0, \sigma_4^2)

    With ``plan.reduced`` the matrix is :math:`\lambda I + \sum_i\omega_iP_ix_ix_i^\top`, :math:`P` the
    smallest mass of each record (:meth:`expost.losses.SoftmaxLoss.smallest_mass`).

    What recalibrates the model are sums of what each row adds at the printed coefficients
    (:class:`~expost.fitting.contributions.Contributions`), each with noise :math:`N(0, \sigma_h^2)`.

    With ``corners`` :math:`\Lambda(\theta)` is added to the objective, and what is printed is put onto a kink
    within :attr:`~expost.privacy.precision.Precision.window` of it (docs/mathematics.md, section 19).

    Assumes a convex, twice differentiable loss. The labels must be from its label set, and weights from 0 to
    the plan's ``max_weight``; the rows are inside the ball by construction of the design. ``step`` is called
    with what is being done, ``before_noise`` when nothing but the draw and the solution is left; what it
    raises stops the fit.

    Privacy
    -------
    Spends what ``plan`` states, once. The first part of the result is public, the second is not. Everything
    is checked before noise is drawn, which is never drawn twice: where the solver or the certificate misses
    its goal, more digits are used with the same noise.
    """
    if not proved(plan.loss):
        plan = replace(plan, precision=None)  # some gradient has no proved error: real arithmetic
    check_rows(plan, records.people)
    check_inputs(plan, records.design, corners)
    check_room(plan, records, corners)
    step("Checking the table")
    records = records.checked_for(plan.loss, plan.max_weight)  # before anything is drawn
    dimension = plan.loss.coefficient_count(records.design.dimension)
    tolerance = 1e-10 * (1.0 + plan.sigma * math.sqrt(dimension))
    objective = Objective(records, plan.loss, plan.l2, corners=corners)
    start = warm_start(objective, tolerance=tolerance)  # the rows too
    if before_noise is not None:
        before_noise()
    step("Drawing the noise and fitting")
    tilt = noise.tilt(plan.sigma, dimension, rounding=_tilt_rounding(plan, records.n_rows))
    objective = replace(objective, tilt=tilt.rounded)
    solution = minimize(objective, tolerance=tolerance, unseen=_unseen_error(plan), start=start)
    step("Certifying the minimiser")
    if plan.precision is None:
        point = _as_solved(plan, objective, solution, tolerance)
    else:
        # The certificate makes a Hessian of its own; these are given back.
        solution = Solution(solution.theta, replace(solution.evaluation, hessian=None, rows_hessian=None))
        point = _certified(plan, plan.precision, objective, tilt, solution)
    step("Measuring and printing")
    # All noise is drawn before any of it is used, in one order.
    draws = draw(plan, dimension, noise)
    coefficients = _printed(plan.precision, point, noise, corners)
    totals = None if plan.sigma_recalibration is None else Totals.of(plan, records, coefficients)
    measured = measure(
        plan,
        gradient=point.gradient,
        rows_hessian=point.rows_hessian,
        added=None if totals is None else totals.exact,
    )
    statistics = published(plan, measured, draws)
    for numbers in (coefficients, *statistics.values()):
        if isinstance(numbers, np.ndarray):
            numbers.flags.writeable = False
    release = Release(plan, coefficients, corners, insecure=noise.insecure, **statistics)
    private = _keep(plan, objective, solution, point, coefficients)
    return release, private if totals is None else replace(private, totals=totals.beside(release))


def _printed(
    precision: Precision | None, point: "_Point", noise: NoiseSource, corners: Corners | None
) -> FloatArray:
    """The coefficients with their noise, on their grid and on kinks that are close; public."""
    if precision is None:
        return point.exact.doubles()
    steps, grid = point.exact.counts, precision.grid
    found = printed(steps, noise.integers([precision.output_noise / grid] * len(steps)), grid)
    return found if corners is None else corners.snapped(found, precision.window)


def _tilt_rounding(plan: Plan, rows: int) -> float:
    """How far from continuous noise the objective's may be: a small part of every certified radius.

    The grid of the noise may depend on the table (docs/mathematics.md, section 10).
    """
    if plan.precision is None:
        return math.inf
    radius = plan.precision.solver_radius
    if needs_hessian(plan):
        # The smallest radius that a Hessian of this many rows can ask for.
        fold = max(_LEAST_FOLD, rows / plan.precision.rows_at_most)
        radius = min(radius, 2.0**-50 / (fold * max(third_order(plan.loss) * plan.radius, 1e-300)))
    rounding = 0.125 * radius * plan.l2
    if plan.sigma_gradient is not None:
        rounding = min(rounding, 2.0**-22 * plan.sigma_gradient)
    return rounding


def _unseen_error(plan: Plan) -> float:
    r"""How far from the minimiser the certificate's own Newton step may start to end within its radius.

    A step from an error :math:`e` ends within :math:`\zeta Re^2/2` or so. Nothing but time depends on it.
    """
    # A published Hessian is taken where the certificate starts, and would have to be taken again.
    if plan.precision is None or needs_hessian(plan):
        return 0.0
    return math.sqrt(0.5 * plan.precision.solver_radius / max(third_order(plan.loss) * plan.radius, 1e-3))


@dataclass(frozen=True, repr=False)
class _Point:
    """The computed minimiser, within ``radius`` of the exact one, and what was measured there; private."""

    exact: Dyadic
    gradient: Dyadic
    """Of the objective without its noise, at the exact minimiser."""
    hessian: FloatArray | None
    """Of the whole objective, in double precision; None where only decimals reached the minimiser."""
    rows_hessian: Pair | None
    """Of the rows alone, where a statistic needs it; the reduced one where the plan says so."""
    radius: float = 0.0


def _certified(
    plan: Plan,
    precision: Precision,
    objective: Objective,
    tilt: Tilt,
    solution: Solution,
) -> _Point:
    """A point within the plan's radius of the exact minimiser, with a proof."""
    records = objective.records
    if records.kernels_in is not None and not exact_in(records.kernels_in):
        records = replace(records, on_host=True)
    problem = ExactProblem(
        rows=records,
        loss=plan.loss,
        l2=plan.l2,
        radius=records.design.radius,
        tilt=tilt.parts,
        corners=objective.corners,
        tilt_rounding=tilt.rounding,
        max_weight=plan.max_weight,
    )
    start = np.where(np.isfinite(solution.theta), solution.theta, 0.0)
    with limit_blas_threads(problem.dimension):
        minimum = certify(problem, start, target=precision.solver_radius, grid=precision.grid)
    hessian = None if minimum.curvature is None else minimum.curvature.matrix
    measured = None
    if needs_hessian(plan):
        allowed = allowed_hessian_error(plan)
        measured = rows_hessian(problem, minimum, allowed=allowed, reduced=plan.reduced)
    gradient = reduce(Dyadic.__add__, (Dyadic.of(-part) for part in tilt.parts))
    return _Point(minimum.point, gradient, hessian, measured, minimum.radius)


def _as_solved(plan: Plan, objective: Objective, solution: Solution, tolerance: float) -> _Point:
    """The solver's own minimiser, for a loss whose derivatives have no proved error."""
    # Where numbers left the range of doubles, no point is known to be the minimiser.
    if not (solution.meets(tolerance) and math.isfinite(solution.evaluation.floor)):
        raise SolverError(
            "the minimiser was not reached, so nothing is released and the noise is not drawn again; "
            f"`l2` may be too small for double precision (got l2={plan.l2:g}), or the "
            "derivatives of the loss may be wrong: raise it, shrink `norm`, or run `expost.check_loss` or "
            "`expost.check_convex_loss`."
        )
    wide = is_wide(plan.loss, objective.dimension, objective.corners)
    here = objective.evaluate(solution.theta, hessian=None if wide else np.float64)
    measured = None
    if needs_hessian(plan):
        matrix = objective.reduced_hessian(solution.theta) if plan.reduced else here.rows_hessian
        assert matrix is not None
        measured = matrix, np.zeros_like(matrix)
    return _Point(Dyadic.of(solution.theta), Dyadic.of(here.gradient), here.hessian, measured)


def _keep(
    plan: Plan, objective: Objective, solution: Solution, point: _Point, coefficients: FloatArray
) -> PrivateFit:
    """What exact losses need at the published coefficients.

    Large tables are not evaluated there: the step is so short that the gradient follows to first order.
    """
    products = objective.records.n_rows * objective.dimension**2
    reached, corners = solution.evaluation, objective.corners
    if is_wide(plan.loss, objective.dimension, corners):
        moved = (Dyadic.of(coefficients) - point.exact).doubles()
        gradient = point.gradient.doubles() + objective.curvature_product(coefficients)(moved)
        steepest = plan.l2 + plan.curve.max_curvature * plan.radius**2 * objective.records.n_rows
        norm = reached.norm if plan.precision is None else point.radius * steepest
        return PrivateFit(coefficients.copy(), gradient, None, plan, norm, reached.floor, objective)
    # At a kink the noise does not tell the gradient.
    if point.hessian is None or products <= _FEW_PRODUCTS or corners is not None:
        here = objective.evaluate(coefficients, hessian=np.float64)
        assert here.hessian is not None
        gradient, hessian = here.gradient, here.hessian
    else:
        hessian = point.hessian
        gradient = point.gradient.doubles() + hessian @ (Dyadic.of(coefficients) - point.exact).doubles()
    norm = reached.norm if plan.precision is None else point.radius * float(np.linalg.norm(hessian))
    return PrivateFit(coefficients.copy(), gradient, hessian, plan, norm, reached.floor, corners=corners)
