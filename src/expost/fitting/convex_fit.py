"""Objective perturbation for any convex loss: draw, solve, release."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from expost._common.memory import check_memory
from expost._common.progress import Step, silent
from expost._common.typing import FloatArray
from expost.data.convex_records import RecordRows
from expost.exceptions import SolverError
from expost.fitting.convex_objective import ConvexObjective
from expost.fitting.inputs import MATRICES, fit_memory
from expost.fitting.noise import NoiseSource
from expost.fitting.private_fit import PrivateFit
from expost.fitting.solvers import minimize
from expost.privacy.convex_plan import ConvexPlan


@dataclass(frozen=True, eq=False)
class ConvexRelease:
    """The parameters of a convex model: public, and all that a report may read."""

    plan: ConvexPlan
    parameters: FloatArray
    insecure: bool = False
    """Whether the noise came from a seed: then the guarantee is void."""


def fit_convex(
    plan: ConvexPlan,
    records: RecordRows,
    *,
    noise: NoiseSource,
    step: Step = silent,
    before_noise: Callable[[], None] | None = None,
) -> tuple[ConvexRelease, PrivateFit]:
    r"""Release the minimiser of a randomly tilted objective (Algorithm 1 of [RW21]_, after [KST12]_).

    .. math:: b \sim N(0, \sigma^2 I), \qquad
              \hat\theta = \arg\min_\theta \sum_i \ell(\theta; z_i) + \frac\lambda2\|\theta\|^2 + b^\top\theta

    Solved by Newton's method to a gradient of the size of rounding. The released parameters are the solver's
    doubles: the guarantee is for real arithmetic, because a loss of one's own states no error for its
    derivatives. Assumes a loss that is what it declares; the records are in its set by construction.
    ``before_noise`` is called when everything was checked.

    Privacy
    -------
    Spends what ``plan`` states, once. The first part of the result is public, the second is not. Where the
    minimum is not reached nothing is released, and the noise is not drawn again.

    References
    ----------
    .. [KST12] D. Kifer, A. Smith and A. Thakurta. Private convex empirical risk minimization and
       high-dimensional regression. COLT 2012.
    .. [RW21] R. Redberg and Y.-X. Wang. Privately publishable per-instance privacy. NeurIPS 2021.
    """
    dimension = plan.loss.n_parameters
    check_memory(fit_memory(dimension, records.engine, MATRICES, records.block_numbers), "this fit")
    step("Checking the table")
    records.scan()  # refuses NaN and infinity before anything is drawn
    if before_noise is not None:
        before_noise()
    step("Drawing the noise and fitting")
    tilt = noise.tilt(plan.sigma, dimension).rounded
    objective = ConvexObjective(records, plan.loss, l2=plan.l2, tilt=tilt)
    tolerance = 1e-10 * (1.0 + plan.sigma * math.sqrt(dimension))
    solution = minimize(objective, tolerance=tolerance)
    # Where numbers left the range of doubles, no point is known to be the minimiser.
    if not (solution.meets(tolerance) and math.isfinite(solution.evaluation.floor)):
        raise SolverError(
            "the minimiser was not reached, so nothing is released and the noise is not drawn again; `l2` "
            f"may be too small for double precision (got l2={plan.l2:g}), or the derivatives of the loss may "
            "be wrong. Raise it, or run `expost.check_convex_loss`."
        )
    here = objective.evaluate(solution.theta, hessian=np.float64)
    assert here.hessian is not None
    theta = solution.theta.copy()
    theta.flags.writeable = False
    private = PrivateFit(
        theta,
        here.gradient,
        here.hessian,
        plan.sigma,
        here.norm,
        here.floor,
        steepness=max(1.0, plan.loss.max_gradient / plan.sigma),
    )
    return ConvexRelease(plan, theta, noise.insecure), private
