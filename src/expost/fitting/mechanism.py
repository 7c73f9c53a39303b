"""Objective perturbation: draw, solve, check, release."""

import math
from dataclasses import dataclass
from typing import NoReturn, overload

import numpy as np
from scipy.linalg import eigvalsh
from scipy.special import chdtr, chdtrc

from expost._common.typing import FloatArray
from expost._common.validation import parameter_error
from expost.data.design import Design
from expost.exceptions import DomainError, PrivateStateError, SolverError
from expost.fitting.noise import NoiseSource
from expost.fitting.objective import Objective
from expost.fitting.release import Release
from expost.fitting.solvers import Solution, minimize
from expost.losses.regularizers import Regularizer
from expost.privacy.plan import Plan


@dataclass(frozen=True, repr=False, eq=False)
class PrivateFit:
    """What the curator keeps in memory to compute exact losses: private, and never written anywhere.

    Its repr shows nothing, it cannot be pickled or copied, and an estimator drops it when pickled.
    """

    coefficients: FloatArray
    gradient: FloatArray
    """Gradient of the objective without its tilt, there: minus the noise that was drawn."""
    hessian: FloatArray
    """Hessian of the objective at the released coefficients."""
    sigma: float
    gradient_norm: float
    """Norm of the perturbed objective's gradient that the solver reached."""
    floor: float
    """The part of that norm that rounding alone may account for."""

    def __repr__(self) -> str:
        return "PrivateFit(withheld)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise PrivateStateError("PrivateFit never leaves memory: it cannot be pickled or copied.")


def perturb(
    plan: Plan,
    design: Design,
    y: FloatArray,
    *,
    noise: NoiseSource,
    regularizer: Regularizer | None = None,
) -> tuple[Release, PrivateFit]:
    r"""Release the minimiser of a randomly tilted objective (Algorithm 1 of [RW21]_, after [KST12]_).

    .. math:: b \sim N(0, \sigma^2 I), \qquad
              \hat\theta = \arg\min_\theta J(\theta; D) + b^\top\theta

    and, where the plan says so, statistics at it (Algorithms "release g", "release H" and "the smallest
    eigenvalue" of [RW21]_):

    .. math:: \hat g = \nabla J(\hat\theta; D) + N(0, \sigma_2^2 I), \qquad
              \hat H = \nabla^2 J(\hat\theta; D) + \sigma_3\,\mathrm{GOE}, \qquad
              \hat\lambda = \lambda_{\min}(\nabla^2 J(\hat\theta; D)) + N(0, \sigma_4^2)

    Assumes a convex, twice differentiable loss and labels from its label set; the rows are inside
    the ball by construction of the design.

    Privacy
    -------
    Spends what ``plan`` states, once. The first part of the result is public, the second is not. If the
    solver misses its tolerance nothing is released and the noise is never drawn again, because a second draw
    that depends on the first would void the guarantee.

    References
    ----------
    .. [KST12] D. Kifer, A. Smith and A. Thakurta. Private convex empirical risk minimization and
       high-dimensional regression. COLT 2012.
    .. [RW21] R. Redberg and Y.-X. Wang. Privately publishable per-instance privacy. NeurIPS 2021.
    """
    loss = plan.loss
    if design.intercept != plan.fit_intercept or design.norm > plan.norm:
        made = f"norm={plan.norm:g} and fit_intercept={plan.fit_intercept}"
        raise parameter_error("plan", "made for the norm and the intercept of the design", made)
    if not np.all(loss.labels.contains(y)):
        raise DomainError(
            f"`y` has labels outside {loss.labels}, the set that {type(loss).__name__} accepts. Recode them."
        )
    design.scan()  # refuses NaN and infinity before anything is drawn
    tilt = noise.gaussian(plan.sigma, design.dimension)
    objective = Objective(design, y, loss, l2=plan.l2, regularizer=regularizer, tilt=tilt)
    tolerance = 1e-10 * (1.0 + plan.sigma * math.sqrt(design.dimension))
    solution = minimize(objective, tolerance=tolerance)
    if not solution.meets(tolerance):
        raise SolverError(
            "the minimiser was not reached, so nothing is released and the noise is not drawn again; "
            f"`l2` may be too small for double precision (got l2={plan.l2:g}): raise it, or shrink `norm`."
        )
    private = _keep(plan, solution, objective)
    return _publish(plan, private, regularizer, noise), private


def recover(release: Release, design: Design, y: FloatArray) -> PrivateFit:
    r"""The private part of a fit, from the table and the release alone.

    At an exact minimum the noise is minus the gradient, :math:`b = -\nabla J(\hat\theta; D)`, so that one
    pass over the table finds everything that the fit knew and nothing private need ever be written down.

    Whether ``design`` and ``y`` are the table that was fitted cannot be known; :func:`plausible` finds gross
    mistakes.

    Privacy
    -------
    Spends nothing. The result is private.
    """
    if len(release.coefficients) != design.dimension:
        raise DomainError("the table must have the features of the publication.")
    plan = release.plan
    objective = Objective(design, y, plan.loss, l2=plan.l2, regularizer=release.regularizer)
    here = objective.evaluate(release.coefficients, hessian=np.float64)
    assert here.hessian is not None
    # The norm that the solver reached is no longer known; it was below what rounding and its tolerance allow.
    return PrivateFit(release.coefficients, here.gradient, here.hessian, plan.sigma, 0.0, here.floor)


def plausible(fit: PrivateFit, *, level: float = 1e-12) -> bool:
    r"""Whether the noise that the table implies has a plausible length, at a false-alarm rate of ``level``.

    For the table that was fitted :math:`\|\nabla J\|^2/\sigma^2` is a chi-square draw with one degree of
    freedom per coefficient. For another table it is not, and is usually enormous.

    Privacy
    -------
    The answer is private: it depends on the table.
    """
    length = float(fit.gradient @ fit.gradient) / fit.sigma**2
    freedom = len(fit.gradient)
    return bool(2.0 * min(chdtrc(freedom, length), chdtr(freedom, length)) >= level)


def _keep(plan: Plan, solution: Solution, objective: Objective) -> PrivateFit:
    here = solution.evaluation
    if not here.precise:
        here = objective.evaluate(solution.theta, hessian=np.float64)
    assert here.hessian is not None
    return PrivateFit(solution.theta, here.gradient, here.hessian, plan.sigma, here.norm, here.floor)


def _publish(plan: Plan, private: PrivateFit, regularizer: Regularizer | None, noise: NoiseSource) -> Release:
    """The coefficients, and the statistics at them that the plan pays for, each with its own noise."""
    dimension = len(private.coefficients)
    gradient = hessian = eigenvalue = None
    if plan.sigma_gradient is not None:
        gradient = private.gradient + noise.gaussian(plan.sigma_gradient, dimension)
    if plan.sigma_hessian is not None:
        hessian = private.hessian + noise.symmetric(plan.sigma_hessian, dimension)
    if plan.sigma_eigenvalue is not None:
        smallest = float(eigvalsh(private.hessian, subset_by_index=(0, 0))[0])
        eigenvalue = smallest + float(noise.gaussian(plan.sigma_eigenvalue, 1)[0])
    return Release(
        plan=plan,
        coefficients=_frozen(private.coefficients.copy()),
        regularizer=regularizer,
        gradient=_frozen(gradient),
        hessian=_frozen(hessian),
        eigenvalue=eigenvalue,
        insecure=noise.insecure,
    )


@overload
def _frozen(array: FloatArray) -> FloatArray: ...
@overload
def _frozen(array: FloatArray | None) -> FloatArray | None: ...
def _frozen(array: FloatArray | None) -> FloatArray | None:
    """The same array, from now on read-only."""
    if array is not None:
        array.flags.writeable = False
    return array
