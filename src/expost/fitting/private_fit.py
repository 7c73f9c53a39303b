"""The private part of a fit, from which exact losses are computed, and what is refused before a fit."""

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import chdtr, chdtrc

from expost._common.machine import check_memory, limit_blas_threads
from expost._common.namespaces import Space
from expost._common.typing import FloatArray
from expost._common.validation import parameter_error
from expost.data.design import Design
from expost.data.encoding import Encoded
from expost.exceptions import DomainError, ParameterError, PrivateStateError
from expost.fitting.contributions import Totals
from expost.fitting.faces import Face
from expost.fitting.objective import Objective
from expost.fitting.release import Release
from expost.fitting.wide import GramRoot, is_wide, not_definite_error
from expost.losses.corners import Corners, bounds_of, l1_of
from expost.privacy.plan import Plan
from expost.privacy.precision import MOST_COEFFICIENTS, MOST_NUMBERS

# How much farther than by its noise a coefficient may have been moved to be printed on a kink.
_SNAPPED = 17.0
# How many times as far apart as the output's noise two kinks of a coefficient are, at least.
_CLOSEST = 2.0**6
# Square matrices besides the sums of the parts under way: the last Hessian with and without its penalty, its
# factor, the sum of the rows and the next sum. With several classes that is turned into other coordinates.
_MATRICES, _OF_CLASSES = 5, 8
# Of the curvature of one row, or of the noise along it: penalties below this may be too small for products
# with vectors, because the coefficients are then so long that curvatures vanish.
_TINY_PENALTY = 1e-3
# Copies of a block in a pass, slices included, for each sum; and bytes of a printed number while it is made.
_COPIES, _PRINTED = 3, 400


FALSE_ALARMS = 1e-9
"""How often the table that was fitted is taken for another, at most."""
# A matrix with at least this many rows is worth sending to a device.
_LARGE = 1000


def inverse_root(hessian: FloatArray, space: Space | None = None) -> Any:
    r"""The lower triangular :math:`L^{-1}` for :math:`H = LL^\top`; a large one stays on a device."""
    if space is not None and len(hessian) >= _LARGE:
        xp = space.xp
        with suppress(Exception):  # each library has an error of its own
            # In one expression: each of these is as large as the matrix, and given back at once.
            found = xp.tril(xp.linalg.inv(xp.linalg.cholesky(space.put(hessian))))
            if bool(xp.all(xp.isfinite(found))):
                return found
    with suppress(LinAlgError), limit_blas_threads(len(hessian)):
        return solve_triangular(cholesky(hessian, lower=True), np.eye(len(hessian)), lower=True)
    raise not_definite_error()


def needs_hessian(plan: Plan) -> bool:
    """Whether a statistic is made from the Hessian."""
    return plan.sigma_hessian is not None or plan.sigma_eigenvalue is not None


def check_inputs(plan: Plan, design: Design, corners: Corners | None = None) -> None:
    """Refuse what the plan was not made for, before anything is drawn.

    Privacy
    -------
    An error names public values only: what the plan and the loss declare, never a row, a label or a count.
    """
    ones = design.intercept or design.indicators > 0
    if ones != plan.fit_intercept or design.radius > plan.radius:
        made = f"norm={plan.norm:g} and fit_intercept={plan.fit_intercept}"
        raise parameter_error("plan", "made for the norm and the intercept of the design", made)
    if corners is not None:
        check_corners(plan, corners)
    dimension = plan.loss.coefficient_count(design.dimension)
    numbers = dimension + plan.entries(dimension)
    if dimension > MOST_COEFFICIENTS or numbers > MOST_NUMBERS:
        raise DomainError(
            f"a release has at most {MOST_COEFFICIENTS} coefficients and {MOST_NUMBERS} numbers; this one "
            f"would have {dimension} and {numbers}. Use fewer features, or report='independent'."
        )


def check_corners(plan: Plan, corners: Corners) -> None:
    """Refuse corners for which no theorem holds, from public values.

    Each problem is about ``l1`` or ``coef_bounds``, whichever of them was given.
    """
    name = "l1" if np.any(corners.l1 > 0.0) else "coef_bounds"
    none = {"l1": "0", "coef_bounds": "None, and no feature have an `effect`,"}[name]
    if not plan.loss.along_row:
        way_out = "Leave it out."
        if plan.loss.class_scores:
            way_out = "Fit one class against the others instead."
        raise ParameterError(
            f"`{name}` must be {none} for {type(plan.loss).__name__}: losses of several predictors and "
            f"of convex models are not known at corners. {way_out}"
        )
    if math.isinf(plan.curve.max_slope):
        raise ParameterError(
            f"`{name}` must be {none} for {type(plan.loss).__name__}, whose slope is unbounded: no report "
            "holds at corners without a largest slope. Choose loss='pseudo_huber'."
        )
    if plan.sigma_gradient is not None:
        raise ParameterError(
            f"`{name}` must be {none} with report={plan.report!r}, whose noisy gradient says too little of "
            "the noise at corners. Choose report='leverage' or 'independent'."
        )
    closest = 0.0 if plan.precision is None else _CLOSEST * plan.precision.output_noise
    if corners.narrowest < closest:
        raise ParameterError(
            f"`coef_bounds`, or an `effect`, must leave {closest:.3g} or more between two bounds, and with "
            f"`l1` between a bound and zero; got {corners.narrowest:.3g}. Move them apart, or leave the "
            "column out."
        )


def corners_for(
    plan: Plan, l1: Any, coef_bounds: Any, columns: int, *, intercept: int | None = None
) -> Corners | None:
    """The corners that arguments describe for a model of so many columns, or ParameterError; public.

    ``intercept`` is how many intercepts come last, by default one where the plan has one.
    """
    last = plan.fit_intercept if intercept is None else intercept
    low, high = bounds_of(coef_bounds, columns)
    corners = Corners.of(l1_of(l1, plan.sigma), low, high, intercept=last)
    if corners is not None:
        check_corners(plan, corners)
    return corners


def check_room(plan: Plan, records: Encoded, corners: Corners | None = None) -> None:
    """Refuse a model whose fit, or whose exact losses, would run out of memory halfway.

    Privacy
    -------
    Decided by public sizes alone: columns, classes, report and threads, never the number of rows. The
    matrices of the coefficients and the blocks of rows that a fit holds do not grow with the table.
    """
    columns, held = records.design.dimension, records.engine.sums_held
    dimension = plan.loss.coefficient_count(columns)
    matrices = held + (_MATRICES if dimension == columns else _OF_CLASSES)
    # A wide model with a tiny penalty may be out of reach of products, and is then fitted as any other.
    tiny = plan.l2 < _TINY_PENALTY * plan.radius * max(plan.curve.max_curvature * plan.radius, plan.sigma)
    matrices = matrices if tiny or not is_wide(plan.loss, dimension, corners) else 0
    # Exact losses take less: four matrices while the Hessian is inverted, then two and one for each thread.
    block = records.design.block_length(dimension) * records.design.numbers_held(dimension)
    numbers = matrices * dimension**2 + held * _COPIES * block
    check_memory(8 * numbers + _PRINTED * plan.entries(dimension), "this fit")


@dataclass(frozen=True, repr=False, eq=False)
class PrivateFit:
    """What the curator keeps in memory to compute exact losses.

    Privacy
    -------
    Private, and never written anywhere. Its repr shows nothing, it cannot be pickled or copied, and an
    estimator drops it when pickled.
    """

    coefficients: FloatArray
    gradient: FloatArray
    """Of the objective without its noise, at the published coefficients, as is the Hessian."""
    hessian: Any
    """None for a wide model, whose ``objective`` is kept in its place."""
    plan: Plan
    gradient_norm: float
    """Norm of the perturbed objective's gradient at the minimiser that was found, or a bound on it."""
    floor: float
    """The part of that norm that rounding alone may account for."""
    objective: Objective | None = None
    corners: Corners | None = None
    totals: Totals | None = None
    """What all rows add to the numbers that recalibrate the model, where there are some."""

    @property
    def sigma(self) -> float:
        """The scale of the objective's noise."""
        return self.plan.sigma

    def root(self, space: Space | None = None) -> Any:
        """What leverages are found from, kept for the next time: see :func:`inverse_root`."""
        if space not in self._roots:
            self._roots[space] = self._gram if self.hessian is None else inverse_root(self.hessian, space)
        return self._roots[space]

    @cached_property
    def _roots(self) -> dict[Space | None, Any]:
        return {}

    @cached_property
    def _gram(self) -> GramRoot:
        assert self.objective is not None
        return GramRoot.of(self.objective, self.coefficients)

    @property
    def printing_share(self) -> float:
        r""":math:`s\|H\|_F/\sigma`: how far printing moves the gradient at most, in units of the noise."""
        norm = self._gram.largest if self.hessian is None else float(np.linalg.norm(self.hessian))
        return (self.plan.output_noise or 0.0) * norm / self.sigma

    @property
    def loss_error(self) -> float:
        r"""The order of the difference between exact losses here and those of the printed numbers' law.

        .. math:: \max\{1, \xi/\sigma\}\sqrt d\,q^2 + 2^{-16}q, \qquad q = s\|H\|/\sigma

        The losses are log ratios of the minimiser's density, taken at the published coefficients. What was
        published has that density convolved with noise of scale :math:`s`, which changes a loss by a
        quantity of this order (docs/mathematics.md, section 10). Private: it grows with the table.
        """
        plan = self.plan
        if self.hessian is None:
            largest = self._gram.largest
        else:
            with limit_blas_threads(len(self.coefficients)):
                largest = float(np.linalg.norm(self.hessian, 2))
        share = (plan.output_noise or 0.0) * largest / plan.sigma
        steepest = plan.curve.max_slope * plan.radius / plan.sigma
        steepness = max(1.0, steepest) if math.isfinite(steepest) else 1.0
        error = steepness * math.sqrt(len(self.coefficients)) * share**2 + 2.0**-16 * share
        return error if self.corners is None else error + steepness * self.face.remainder

    @cached_property
    def face(self) -> Face:
        """Where the coefficients are at kinks, and what losses need to know of it."""
        assert self.corners is not None
        return Face.of(self.corners, self.coefficients, self.gradient, self.hessian, self.plan)

    def __repr__(self) -> str:
        return "PrivateFit(withheld)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise PrivateStateError("PrivateFit never leaves memory: it cannot be pickled or copied.")


def recover(release: Release, records: Encoded) -> PrivateFit:
    """The private part of a fit, from one pass over the table at the published coefficients.

    Whether ``records`` are the table that was fitted cannot be known; :func:`plausible` finds gross mistakes.

    Privacy
    -------
    Spends nothing. The result is private, and nothing private is ever written down.
    """
    plan = release.plan
    wanted = plan.loss.coefficient_count(records.design.dimension)
    if len(release.coefficients) != wanted:
        raise DomainError(
            f"the table must have the features of the {len(release.coefficients)} coefficients: with its "
            f"{records.design.n_features} columns{' and an intercept, which is last' * plan.fit_intercept}, "
            f"there are {wanted}."
        )
    check_room(plan, records, release.corners)
    objective = Objective(records, plan.loss, l2=plan.l2)
    wide = is_wide(plan.loss, objective.dimension, release.corners)
    here = objective.evaluate(release.coefficients, hessian=None if wide else np.float64)
    # The norm that the solver reached is no longer known; it was below what rounding and its tolerance allow.
    kept = objective if wide else None
    found, totals = (release.coefficients, here.gradient, here.hessian), None
    if release.recalibration is not None:
        totals = Totals.of(plan, records, release.coefficients).beside(release)
    return PrivateFit(*found, plan, 0.0, here.floor, kept, release.corners, totals)


def plausible(fit: PrivateFit, *, level: float = FALSE_ALARMS) -> bool:
    r"""Whether the noise that the table implies has a plausible length, at a false-alarm rate of ``level``.

    For the table that was fitted :math:`-\nabla J = b + He` at the printed coefficients, with
    :math:`b \sim N(0, \sigma^2 I)` and :math:`e \sim N(0, s^2 I)` what printing added. So
    :math:`\|\nabla J\|^2/\sigma^2` is above a chi-square draw with one degree of freedom per coefficient, and
    divided by :math:`(1 + s\|H\|/\sigma)^2` it is below one. For another table it is usually enormous. That a
    few records are missing cannot be noticed: that is what the promise says.

    Privacy
    -------
    The answer is private: it depends on the table.
    """
    freedom, printed = len(fit.gradient), (1.0 + fit.printing_share) ** 2
    if fit.corners is not None:  # the shortest noise that leads there is no longer than the noise that did
        shortest = fit.corners.residual(fit.gradient, fit.coefficients)
        printed = (1.0 + _SNAPPED * fit.printing_share) ** 2
        return bool(chdtrc(freedom, float(shortest @ shortest) / fit.sigma**2 / printed) >= level)
    length = float(fit.gradient @ fit.gradient) / fit.sigma**2
    return bool(2.0 * min(chdtrc(freedom, length / printed), chdtr(freedom, length)) >= level)
