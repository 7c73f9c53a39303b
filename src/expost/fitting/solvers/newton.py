"""Newton's method with Hessians no better than the next step needs."""

import math
from functools import partial

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from expost._common.parallel import limit_blas_threads
from expost._common.typing import FloatArray
from expost.fitting.objective import Evaluation, Objective
from expost.fitting.solvers.base import Solution, backtrack

_MAX_STEPS = 200
# How far a single-precision Hessian lets one step shrink the gradient.
_SINGLE = 1e-6
# A Hessian whose last step shrank the gradient this much is kept for another one.
_GOOD_REDUCTION = 1e-2
# How much worse than in the last step the rate of a Hessian of fewer rows may be in the next.
_CAUTION = 10.0
# After so many steps that shrank the gradient no more than this, each with a Hessian of its own, single
# precision is to blame.
_POOR_REDUCTION, _PATIENCE = 0.3, 2


def newton(
    objective: Objective,
    start: FloatArray,
    *,
    tolerance: float,
    relative: float = 0.0,
    unseen: float = 0.0,
    model: Evaluation | None = None,
) -> Solution:
    """Minimise by Newton steps, globally convergent by backtracking on the gradient norm.

    Hessians are in single precision while that serves, and one that still serves is kept for another step.
    The gradient is always in double precision, so neither changes where the method ends, only what it costs.
    Where a single-precision Hessian reduces the gradient poorly, as with many rows that are alike, double
    precision takes over.

    Parameters
    ----------
    objective
        What to minimise.
    start
        Where to begin.
    tolerance, relative
        Stop where the gradient norm is at most ``tolerance`` or ``relative`` times its value at the start.
    unseen
        Leave the last pass to the caller: stop after a step whose error is likely to be no longer than this,
        judged by how the step before shrank the gradient. The evaluation is then of the point before.
    model
        An evaluation nearby, perhaps of fewer rows, whose Hessian is good enough for the first steps.
    """
    theta = start
    here = objective.evaluate(theta, hessian=np.float32 if model is None else None)
    goal = max(tolerance, relative * here.norm)
    model = model or here  # the evaluation whose Hessian is in use
    borrowed = model is not here
    reduction, poor = 1.0, 0
    precision: DTypeLike = np.float32
    for _ in range(_MAX_STEPS):
        if here.norm <= max(goal, here.floor):
            break
        step = _solve(model.hessian, here.tilted_gradient)
        length = math.inf if step is None else float(np.linalg.norm(step))
        # A Hessian of other rows has the same rate in every step, or a little worse.
        caution = _CAUTION if model.of_fewer_rows else 1.0
        if step is not None and reduction <= _GOOD_REDUCTION and caution * length * reduction <= unseen:
            return Solution(theta + step, here, model)
        # A Hessian of this point squares the rate, up to its precision; one that is kept has it once more.
        rate = max(reduction**2, _SINGLE) if model is here else reduction
        last = here.norm * reduction <= max(goal, here.floor) or length * rate**2 <= unseen
        kept = reduction <= _GOOD_REDUCTION or borrowed
        wanted = None if last or kept else precision
        borrowed = False
        evaluate = partial(objective.evaluate, hessian=wanted)
        reached = None if step is None else backtrack(theta, step, here.norm, evaluate)
        if reached is None:
            if model is here and here.precise:
                break  # no better direction exists: the caller sees that the tolerance was not met
            precision = np.float64
            here = model = objective.evaluate(theta, hessian=precision)
            reduction = 1.0
            continue
        reduction = reached[1].norm / here.norm
        poor = poor + 1 if model is here and reduction > _POOR_REDUCTION else 0
        if poor == _PATIENCE:
            precision = np.float64
        theta, here = reached
        if here.hessian is not None:
            model = here
    return Solution(theta, here, model)


def _solve(hessian: FloatArray | None, gradient: FloatArray) -> FloatArray | None:
    """The Newton step, or ``None`` where rounding has cost the Hessian its positive definiteness."""
    assert hessian is not None
    if not (np.all(np.isfinite(hessian)) and np.all(np.isfinite(gradient))):
        return None  # beyond the range of its precision
    try:
        with limit_blas_threads(len(gradient)):
            step: FloatArray = -cho_solve(cho_factor(hessian), gradient)
    except LinAlgError:
        return None
    return step if np.all(np.isfinite(step)) else None
