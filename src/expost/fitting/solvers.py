"""Minimise the perturbed objective on all rows: Newton's method with Hessians no better than it needs."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from expost._common.machine import limit_blas_threads
from expost._common.typing import FloatArray
from expost.fitting.faces import model_minimum
from expost.fitting.objective import Evaluation, Objective
from expost.fitting.wide import is_wide
from expost.losses.corners import Corners

Evaluate = Callable[[FloatArray], Evaluation]
_Move = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class Solution:
    """Where a solver ended; private, its numbers above all."""

    theta: FloatArray
    evaluation: Evaluation
    """What the last pass found: at ``theta``, or one step before it."""
    model: Evaluation | None = None
    """The last one with a Hessian, where there was one."""
    bend: float = math.inf
    """How much of itself a step of length one gets wrong that has the Hessian of its start, about."""

    def meets(self, tolerance: float) -> bool:
        """Whether the gradient is as small as asked, or as small as rounding lets it be."""
        return self.evaluation.norm <= max(tolerance, self.evaluation.floor)


@dataclass(frozen=True)
class Start:
    """Where steps begin: what is there, and a solution on fewer rows nearby, if there is one; private."""

    theta: FloatArray
    here: Evaluation
    nearby: Solution | None = None
    """Its Hessian serves the first step."""
    kept: bool = False
    """Whether it serves more of them."""

    @classmethod
    def at(
        cls, objective: Objective, theta: FloatArray, nearby: Solution | None = None, *, kept: bool = False
    ) -> Self:
        """At a point, where a Hessian is taken unless another one serves."""
        here = objective.evaluate(theta, hessian=np.float32 if nearby is None else None)
        return cls(theta, here, nearby, kept)


def backtrack(
    theta: FloatArray, step: FloatArray, norm: float, evaluate: Evaluate, *, forcing: float = 0.0
) -> tuple[FloatArray, Evaluation] | None:
    r"""Shorten a Newton step until the gradient norm falls enough; ``None`` where no length will do.

    .. math:: \|g(\theta + tp)\| \le (1 - 10^{-4} t (1 - \eta)) \|g(\theta)\|

    ends the halving of :math:`t`, and converges from any start (docs/mathematics.md, section 8).
    """
    length = 1.0
    while length > 1e-12:
        candidate = theta + length * step
        evaluation = evaluate(candidate)
        if evaluation.norm <= (1.0 - 1e-4 * length * (1.0 - forcing)) * norm:
            return candidate, evaluation
        length *= 0.5
    return None


def _shortened(
    corners: Corners | None,
    theta: FloatArray,
    move: _Move,
    here: Evaluation,
    evaluate: Evaluate,
    count: int,
) -> tuple[FloatArray, Evaluation] | None:
    """Shorten a step of an objective with corners until it no longer overshoots; else :func:`backtrack`.

    Its derivative along the step may have risen to half of its size at the start, with the other sign; after
    a ``count`` of steps to zero. Then the objective has fallen by at least half as much as anywhere along the
    step, because it is convex.
    """
    (step, end), length = move, 1.0
    if corners is None:
        return backtrack(theta, step, here.norm, evaluate)
    allowed = -(0.5 if count < _FREE_STEPS else 0.0) * corners.rate(here.tilted_gradient, theta, step)
    while length > 1e-12 and allowed >= 0.0:
        candidate = end if length == 1.0 else theta + length * step
        evaluation = evaluate(candidate)
        if corners.rate(evaluation.tilted_gradient, candidate, step, arriving=True) <= allowed:
            return candidate, evaluation
        length *= 0.5
    return None


_MAX_STEPS = 200
# After so many steps with corners, no step may overshoot at all.
_FREE_STEPS = 30
# How far a single-precision Hessian lets one step shrink the gradient.
_SINGLE = 1e-6
# A Hessian whose last step shrank the gradient this much is kept for another one.
_GOOD_REDUCTION = 1e-2
# How much worse than in the last step the rate of a Hessian of fewer rows may be in the next.
_CAUTION = 10.0
# Steps that shrank the gradient no more than this, each with a Hessian of its own; and how many of them in a
# row show that single precision is to blame.
_POOR_REDUCTION, _PATIENCE = 0.3, 2


def newton(
    objective: Objective,
    start: Start,
    *,
    tolerance: float,
    relative: float = 0.0,
    unseen: float = 0.0,
) -> Solution:
    """Minimise by Newton steps, globally convergent by backtracking on the gradient norm.

    Hessians are in single precision while that serves, and one that still serves is kept for another step.
    The gradient is always in double precision, so neither changes where the method ends, only what it costs.

    It stops where the gradient norm is at most ``tolerance``. A warm start stops after the step that is
    likely to get it to ``relative`` times its value at the start. With ``unseen`` the last pass is left to
    the caller: it stops after a step whose error is likely to be no longer than this, judged by how the step
    before shrank the gradient. The evaluation is then of the point before.
    """
    state = _State.first(start)
    goal = max(tolerance, relative * state.here.norm)
    for count in range(_MAX_STEPS):
        here, model = state.here, state.model
        if here.norm <= max(goal, here.floor):
            break
        move, reached = _solve(model.hessian, here.tilted_gradient, state.theta, objective.corners), None
        if move is not None:
            length = float(np.linalg.norm(move[0]))
            if state.may_end(length, unseen, goal if relative > 0.0 else 0.0):
                return Solution(move[1], here, model, state.bend)
            evaluate = partial(objective.evaluate, hessian=state.next_hessian(length, goal, unseen))
            reached = _shortened(objective.corners, state.theta, move, here, evaluate, count)
        if reached is not None:
            state.move(*reached)
        elif model is here and here.precise:
            break  # no better direction exists: the caller sees that the tolerance was not met
        else:
            here = objective.evaluate(state.theta, hessian=np.float64)
            state = _State(state.theta, here, here, precision=np.float64, poor=state.poor, bend=state.bend)
    return Solution(state.theta, state.here, state.model, state.bend)


@dataclass
class _State:
    """Where Newton's method is, the Hessian that it uses, and how well the last step went."""

    theta: FloatArray
    here: Evaluation
    model: Evaluation
    """The evaluation whose Hessian is in use."""
    kept: bool = False
    """Whether it is to serve for another step, whatever the first one does."""
    precision: DTypeLike = np.float32
    reduction: float = 1.0
    """How much the last step shrank the gradient."""
    poor: int = 0
    """How many steps in a row shrank it too little."""
    bend: float = math.inf
    """As in :class:`Solution`, from the last such step."""

    @classmethod
    def first(cls, start: Start) -> Self:
        """At the start, with the Hessian of a solution nearby where there is one."""
        if start.nearby is None:
            return cls(start.theta, start.here, start.here)
        assert start.nearby.model is not None
        return cls(start.theta, start.here, start.nearby.model, kept=start.kept, bend=start.nearby.bend)

    def may_end(self, length: float, unseen: float, norm: float) -> bool:
        """Whether a step of some length is likely to leave no longer an error, or gradient, than these."""
        return length * self.error_rate <= unseen or self.likely_norm <= norm

    @property
    def error_rate(self) -> float:
        """About how much of the next step's length will be its error, where the last one went well."""
        if self.reduction > _GOOD_REDUCTION:
            return math.inf
        # A Hessian of other rows has the same rate in every step, or a little worse.
        return _CAUTION * self.reduction if self.model.of_fewer_rows else self.reduction

    @property
    def likely_norm(self) -> float:
        """About how long the gradient will be after the next step."""
        return self.here.norm * self.reduction

    def next_hessian(self, length: float, goal: float, unseen: float) -> DTypeLike | None:
        """The precision of the Hessian that the point after this step will need, or None for no Hessian."""
        # A Hessian of this point squares the rate, or has the one of another such step, whichever is less, up
        # to its precision; one that is kept has it once more.
        own = max(min(self.reduction**2, self.bend * length), _SINGLE)
        rate = own if self.model is self.here else self.reduction
        last = self.likely_norm <= max(goal, self.here.floor) or length * rate**2 <= unseen
        kept = self.kept or self.reduction <= _GOOD_REDUCTION
        return None if last or kept else self.precision

    def move(self, theta: FloatArray, there: Evaluation) -> None:
        """Go on from the point that a step reached."""
        self.reduction, own = there.norm / self.here.norm, self.model is self.here
        self.poor = self.poor + 1 if own and self.reduction > _POOR_REDUCTION else 0
        if own:
            self.bend = self.reduction / float(np.linalg.norm(theta - self.theta))
        if self.poor == _PATIENCE:
            self.precision = np.float64
        self.theta, self.here, self.kept = theta, there, False
        if there.hessian is not None:
            self.model = there


def _solve(
    hessian: FloatArray | None, gradient: FloatArray, theta: FloatArray, corners: Corners | None
) -> _Move | None:
    """The Newton step, or ``None`` where rounding has cost the Hessian its positive definiteness."""
    assert hessian is not None
    if not (np.all(np.isfinite(hessian)) and np.all(np.isfinite(gradient))):
        return None  # beyond the range of its precision
    try:
        if corners is not None:
            step, end, _ = model_minimum(hessian, gradient + corners.offset(theta), theta, corners)
        else:
            with limit_blas_threads(len(gradient)):
                step = -cho_solve(cho_factor(hessian), gradient)
            end = theta + step
    except LinAlgError:
        return None
    return (step, end) if np.all(np.isfinite(step)) else None


def newton_cg(
    objective: Objective, start: Start, *, tolerance: float, products: int | None = None
) -> Solution:
    r"""Minimise by inexact Newton steps, globally convergent by backtracking on the gradient norm.

    Each step is by conjugate gradients to :math:`\eta = \min(0.1, \|g\|/\|g_0\|)`; no matrix is formed. With
    ``products``, it ends at the last full step once it has multiplied the Hessian so often.
    """
    theta, here = start.theta, start.here
    first = here.norm
    left = math.inf if products is None else products
    for _ in range(_MAX_STEPS):
        if here.norm <= max(tolerance, here.floor):
            break
        forcing = min(0.1, here.norm / first)
        # Asking for more than the tolerance would only resolve rounding.
        forcing = max(forcing, 0.1 * max(tolerance, here.floor) / here.norm)
        product = objective.curvature_product(theta)
        step, taken = conjugate_gradients(product, -here.tilted_gradient, forcing, left)
        left -= taken
        if step is None:
            break
        reached = backtrack(theta, step, here.norm, objective.evaluate, forcing=forcing)
        if reached is None:
            break
        theta, here = reached
    return Solution(theta, here)


def conjugate_gradients(
    product: Callable[[FloatArray], FloatArray], target: FloatArray, forcing: float, most: float
) -> tuple[FloatArray | None, int]:
    """Solve ``product(x) = target`` to the relative residual ``forcing``, or as well as rounding allows.

    The number of products comes with it; there is no solution where they would be more than ``most``.
    """
    solution = np.zeros_like(target)
    residual = target.copy()
    direction = residual.copy()
    square = float(residual @ residual)
    goal = forcing * math.sqrt(square)
    for taken in range(2 * target.size):
        if math.sqrt(square) <= goal:
            return solution, taken
        if taken >= most:
            return None, taken
        image = product(direction)
        length = square / float(direction @ image)
        solution += length * direction
        residual -= length * image
        previous, square = square, float(residual @ residual)
        direction = residual + (square / previous) * direction
    return solution, 2 * target.size


# Beyond this dimension conjugate gradients are cheaper than a Hessian per step, where they converge fast.
LARGEST_DENSE_DIMENSION = 1_200
# A warm start is on each 8th row, or on fewer where so many per column are left, and one before it on an 8th
# of those; if there are rows enough to be worth it.
_THINNING, _SAMPLE_PER_COLUMN, _ROWS_PER_COLUMN = 8, 2_400, 40
# The Hessian of this many rows is that of all of them to a few percent: the first step on all rows uses it.
_SOME_PER_COLUMN = 1_000
# The Hessian of this many rows is that of all of them to a percent. Where each 16th row leaves as many, steps
# on all rows use it, and no Hessian of all rows is taken.
_THIN, _ENOUGH_PER_COLUMN = 16, 20_000
# How many Hessians Newton's method takes; and how many columns of a Hessian cost as much as a product of the
# rows with a vector, and how many entries of its factor per row.
_HESSIANS, _COLUMNS_PER_PRODUCT, _ENTRIES_PER_PRODUCT = 5, 250, 200


def warm_start(objective: Objective, *, tolerance: float) -> Start:
    """Where steps on all rows begin: large tables start from the solution on a part of their rows.

    The last pass is over all rows, so that one that is refused is found here.
    """
    theta, corners = np.zeros(objective.dimension), objective.corners
    if corners is not None:
        theta = corners.inside(theta)
    elif objective.dimension > LARGEST_DENSE_DIMENSION:
        return Start(theta, objective.evaluate(theta))
    per_column, found = objective.records.n_rows / objective.columns, None
    kept = per_column >= _THIN * _ENOUGH_PER_COLUMN
    fine = max(_THINNING, int(per_column // (_ENOUGH_PER_COLUMN if kept else _SAMPLE_PER_COLUMN)))
    for every in (_THINNING * fine, fine):
        if per_column >= every * _ROWS_PER_COLUMN:
            thin, relative = objective.thinned(every), 1e-4 if kept and every == fine else 0.01
            found = newton(thin, Start.at(thin, theta), tolerance=tolerance, relative=relative)
            theta = found.theta
    if not (kept or per_column >= fine * _SOME_PER_COLUMN):
        found = None
    return Start.at(objective, theta, found, kept=kept)


def minimize(
    objective: Objective, *, tolerance: float, unseen: float = 0.0, start: Start | None = None
) -> Solution:
    """Find the minimiser to a gradient norm of ``tolerance``, or to the rounding floor of the sums.

    The end is always the minimiser on all rows. Wide tables are solved without a matrix, while that takes
    fewer passes than Hessians would. The caller checks whether the tolerance was met:
    :meth:`Solution.meets`. For ``unseen`` see :func:`newton`; ``start`` is that of the same objective without
    its linear term.
    """
    if start is None:
        start = warm_start(replace(objective, tilt=0.0), tolerance=tolerance)
    start = replace(start, here=objective.tilted(start.here, start.theta))
    if objective.corners is None and objective.dimension > LARGEST_DENSE_DIMENSION:
        return _minimize_wide(objective, start, tolerance)
    return newton(objective, start, tolerance=tolerance, unseen=unseen)


def _minimize_wide(objective: Objective, start: Start, tolerance: float) -> Solution:
    wide = is_wide(objective.loss, objective.dimension)
    products = None if wide else products_of_a_dense_solver(objective)
    solution = newton_cg(objective, start, tolerance=tolerance, products=products)
    if wide or solution.meets(tolerance):
        return solution
    return newton(objective, Start.at(objective, solution.theta), tolerance=tolerance)


def products_of_a_dense_solver(objective: Objective) -> int:
    """How many products with a vector cost as much as Newton's method with Hessians (section 8)."""
    dimension, rows = objective.dimension, max(objective.records.n_rows, 1)
    hessian = dimension / _COLUMNS_PER_PRODUCT + dimension**2 / (_ENTRIES_PER_PRODUCT * rows)
    return max(1, round(_HESSIANS * hessian * objective.columns / objective.records.product_width))
