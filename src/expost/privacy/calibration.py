"""From a budget to a Plan: the least noise that is certified to meet it."""

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from expost._common.validation import (
    CalibrationName,
    LossName,
    ReportName,
    UnitName,
    check_choice,
    check_count,
    check_positive,
    parameter_error,
)
from expost.exceptions import CalibrationError, ParameterError
from expost.losses import AnyLoss, ConvexLoss, as_loss, check_convex_loss
from expost.losses.registry import has_certified_slopes
from expost.losses.robust import LipschitzPoisson, LocationScale, SmoothedNorm
from expost.privacy.excess import UNITS
from expost.privacy.plan import ConvexPlan, Plan, covers_rows, row_radius
from expost.privacy.precision import REAL, ROWS_AT_MOST, Precision, Rounding
from expost.privacy.recalibration import recalibration_of
from expost.privacy.recipes import Target, check_delta, kifer, tight
from expost.privacy.scales import REPORT_KINDS, NoiseScales

CALIBRATIONS = {"tight": tight, "kifer2012": kifer}
# Between which the largest weight of a record may lie.
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-9, 1e9
# Of the largest curvature of a record; with less, minimisers are so far away that no arithmetic finds them.
_SMALLEST_L2 = 1e-12
# Convex losses whose bounds are proved in docs/mathematics.md; every other one is checked.
_PROVED = (SmoothedNorm, LipschitzPoisson, LocationScale)
# A fit with a convex loss holds a square matrix of this order for each record of a block.
_MOST_PARAMETERS = 2_000


def calibrate(
    *,
    loss: AnyLoss | LossName = "logistic",
    norm: float = 1.0,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    l2: float | None = None,
    report: ReportName = "independent",
    split: float | Sequence[float] | None = None,
    fit_intercept: bool = False,
    calibration: CalibrationName = "tight",
    sigma: float | None = None,
    sigma_gradient: float | None = None,
    sigma_hessian: float | None = None,
    sigma_eigenvalue: float | None = None,
    sigma_recalibration: float | None = None,
    rows_at_most: int = ROWS_AT_MOST,
    max_weight: float = 1.0,
    reduced: bool = False,
    unit: UnitName = "row",
    recalibrate: bool = False,
) -> Plan:
    r"""Choose every noise scale and the regularisation that meet one total budget, without seeing any data.

    ``calibration="tight"`` finds the smallest scales whose certified profile
    (:class:`expost.privacy.sharpest.SharpestProfile`) is at most ``delta`` at ``epsilon`` for the whole
    publication.
    ``calibration="kifer2012"`` is the recipe of [RW21]_, Theorem 1 after [KST12]_, kept for comparison:

    .. math:: \lambda \ge 2\beta/\epsilon_1, \quad
              \sigma^2 = \xi^2(8\log(2/\delta) + 4\epsilon_1)/\epsilon_1^2,

    statistics by the analytic Gaussian mechanism, and budgets that add up.

    Parameters
    ----------
    loss
        A loss or the name of one.
    norm
        The largest norm of a row of features, not counting the intercept's constant 1.
    epsilon, delta
        The total budget, for the model and everything published with it.
    l2
        The regularisation :math:`\lambda`; by default chosen from public values (docs/calibration.md).
    report
        What is published with the model: ``"independent"`` nothing, ``"leverage"`` a noisy Hessian,
        ``"dependent"`` a noisy gradient too, ``"adaptive"`` the Hessian's smallest eigenvalue too.
    split
        By default the Hessian and its eigenvalue get enough noise to cost little, and the model all but a
        little of the budget, half of which it gives to a gradient (docs/calibration.md). Otherwise the
        model's share of the precision :math:`1/\sigma^2` that the budget would buy it alone, between 0 and
        1; the rest pays for the statistics. With ``"kifer2012"``: one ε for each part, adding up to
        ``epsilon``.
    fit_intercept
        Whether a constant 1 is appended to every row.
    sigma, sigma_gradient, sigma_hessian, sigma_eigenvalue, sigma_recalibration
        Explicit scales. They need ``l2``, and ``epsilon`` is then what they guarantee at ``delta``.
    rows_at_most
        Up to how many rows exact losses and intervals keep their stated accuracy, or people where they are
        the ``unit``. A public guess, not a limit: the guarantee holds for any number of rows.
    max_weight
        The largest weight of a record, between 1e-9 and 1e9. Weights from 0 to it cost as much as all of them
        at it: the noise and the default ``l2`` are those of the loss times it (docs/mathematics.md,
        section 6).
    reduced
        For more than two classes: whether the Hessian is released as a matrix of the features alone, the
        reduced one, whose noise and size do not grow with the number of classes (docs/mathematics.md,
        section 11).
    unit
        For whom the budget is: ``"row"``, or ``"person"``, for each person with all of her rows, however many
        they are. Their weights then sum to at most 1, so that each row counts for less. It costs 0.1% more
        noise at ``epsilon=1`` and the default ``l2`` (docs/mathematics.md, section 15).
    recalibrate
        Whether noisy sums are published too, by which predictions are corrected (docs/calibration.md,
        "Recalibration"): a histogram of scores and labels for a tenth of the budget with the logistic loss of
        two classes, five moments of predictions and residuals for 3% of it with the pseudo-Huber loss.

    Privacy
    -------
    Public in, public out.

    References
    ----------
    .. [KST12] D. Kifer, A. Smith and A. Thakurta. Private convex empirical risk minimization and
       high-dimensional regression. COLT 2012.
    .. [RW21] R. Redberg and Y.-X. Wang. Privately publishable per-instance privacy. NeurIPS 2021.

    Examples
    --------
    >>> plan = calibrate(loss="logistic", epsilon=1.0, delta=1e-6, l2=5.0)
    >>> round(plan.sigma, 4), plan.delta_at(1.0) <= 1e-6
    (4.2247, True)
    >>> classical = calibrate(loss="logistic", epsilon=1.0, delta=1e-6, l2=5.0, calibration="kifer2012")
    >>> round(classical.sigma, 4)
    10.9576
    """
    loss = as_loss(loss)
    norm = check_positive("norm", norm)
    if not 1e-30 <= norm <= 1e30:
        raise parameter_error("norm", "between 1e-30 and 1e30", norm, "Scale the data by a constant.")
    check_choice("report", report, REPORT_KINDS)
    check_choice("calibration", calibration, CALIBRATIONS)
    if l2 is not None:
        l2 = check_positive("l2", l2)
    epsilon = check_positive("epsilon", epsilon)
    target = Target(
        epsilon=epsilon,
        delta=check_delta(delta),
        loss=loss,
        radius=row_radius(norm, fit_intercept=fit_intercept),
        report=report,
        max_weight=_check_weight(loss, max_weight),
        reduced=bool(reduced),
        unit=check_choice("unit", unit, UNITS),
        recalibrate=bool(recalibrate),
    )
    _check_recalibration(target, split, calibration)
    if not covers_rows(loss, target.radius):
        wanted = f"at most the loss's largest slope times the length of the longest row, {target.radius:g}"
        raise parameter_error("gradient_cap", wanted, loss.gradient_cap)  # type: ignore[union-attr]
    if has_certified_slopes(loss):  # which states the error of its derivatives: printed numbers are paid for
        if check_count("rows_at_most", rows_at_most) > 10**15:
            raise parameter_error("rows_at_most", "at most 1e15", rows_at_most)
        curvature = target.accounting.curvature
        rounding = Rounding.planned(epsilon, curvature=curvature, rows_at_most=rows_at_most)
        target = replace(target, rounding=rounding)
    if reduced:
        _check_reduced(target)
    given = (sigma, sigma_gradient, sigma_hessian, sigma_eigenvalue, sigma_recalibration)
    if any(scale is not None for scale in given):
        if split is not None:
            raise parameter_error("split", "None where the scales are given", split)
        epsilon, l2, scales = _explicit(target, l2, *given)
    else:
        l2, scales = _searched(target, l2, split, calibration)
    return Plan(
        loss=loss,
        norm=norm,
        fit_intercept=bool(fit_intercept),
        report=report,
        calibration=calibration,
        epsilon=epsilon,
        delta=target.delta,
        l2=l2,
        scales=scales,
        precision=_precision(target, l2, scales, rows_at_most),
        max_weight=target.max_weight,
        reduced=target.reduced,
        unit=target.unit,
    )


def _check_weight(loss: AnyLoss, max_weight: float) -> float:
    """The largest weight, or ParameterError; a curve that does not cover smaller weights is refused."""
    weight = check_positive("max_weight", max_weight)
    if not SMALLEST_WEIGHT <= weight <= LARGEST_WEIGHT:
        limits = f"between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}"
        raise parameter_error("max_weight", limits, weight, "Scale all weights by a constant.")
    if weight != 1.0 and not loss.curve.ratio_falls:
        way_out = f"The curve of {type(loss).__name__} does not cover smaller weights."
        raise parameter_error("max_weight", "1 for a loss whose curvature(m)/m rises", weight, way_out)
    return weight


def _check_recalibration(target: Target, split: Any, calibration: str) -> None:
    """Refuse to recalibrate where no certificate covers it, or nothing is known to correct predictions."""
    problem = None
    if not target.recalibrate:
        return
    if recalibration_of(target.loss) is None:
        problem = (
            "for another loss than the logistic one of two classes and the pseudo-Huber one of an outcome of "
            'kind = "number": nothing is published that corrects its predictions'
        )
    elif target.unit != "row":
        problem = (
            "with unit='person', which ordered classes and times have too: what many rows of one "
            "person add has no certificate"
        )
    elif split is not None or calibration != "tight":
        problem = "with `split` and with calibration='kifer2012': recalibration has a share of its own"
    if problem is not None:
        raise ParameterError(f"`recalibrate` must be False {problem}. Leave it out.")


def _check_reduced(target: Target) -> None:
    if not target.accounting.can_be_reduced:
        raise parameter_error("reduced", "False without more than two classes", True)
    if "hessian" not in target.kind.releases:
        raise parameter_error("reduced", f"False with report={target.report!r}, which has no Hessian", True)


def _precision(target: Target, l2: float, scales: NoiseScales, rows_at_most: int) -> Precision | None:
    if target.rounding == REAL:
        return None
    curvature = target.accounting.curvature
    least = _SMALLEST_L2 * curvature
    if l2 < least:
        raise CalibrationError(
            f"l2={l2:g} is too small for printed numbers; raise it to {least:.3g} or more."
        )
    return Precision.choose(
        target.rounding,
        sigma=scales.sigma,
        l2=l2,
        curvature=curvature,
        radius=target.radius,
        rows_at_most=rows_at_most,
    )


def _searched(target: Target, l2: float | None, split: Any, calibration: str) -> tuple[float, NoiseScales]:
    """The regularisation and the scales that meet the budget by one of the recipes."""
    if math.isinf(target.accounting.slope):
        raise CalibrationError(
            f"no noise scale gives {type(target.loss).__name__} a worst-case guarantee: its slope is "
            "unbounded. Give `sigma` and `l2` to fit without one, or choose loss='pseudo_huber'."
        )
    l2, scales = CALIBRATIONS[calibration](target, l2, split)
    if calibration != "tight" and not target.profile(l2, scales).certifies(target.epsilon, target.delta):
        raise CalibrationError(
            f"calibration={calibration!r} does not pay for printed numbers here; lower `rows_at_most`, "
            "give the statistics more of `split`, or choose calibration='tight'."
        )
    return l2, scales


def _explicit(target: Target, l2: float | None, *given: float | None) -> tuple[float, float, NoiseScales]:
    """Take the scales as they are and state what they guarantee."""
    needed = {"sigma", *(f"sigma_{name}" for name in target.kind.releases)}
    needed |= {"sigma_recalibration"} if target.recalibrate else set()
    scales = {}
    for name, scale in zip((field.name for field in fields(NoiseScales)), given, strict=False):
        if name in needed:
            way_out = "Explicit scales come all together." if scale is None else ""
            scales[name] = check_positive(name, scale, way_out=way_out)
        elif scale is not None:
            other = "recalibrate=False" if name == "sigma_recalibration" else f"report={target.report!r}"
            raise parameter_error(name, f"None with {other}", scale)
    l2 = check_positive("l2", l2, way_out="An explicit `sigma` needs an explicit `l2`.")
    noise = NoiseScales(**scales)
    if math.isinf(target.accounting.slope):
        return math.inf, l2, noise
    return target.profile(l2, noise).epsilon(target.delta), l2, noise


def calibrate_convex(
    loss: ConvexLoss,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    l2: float | None = None,
    sigma: float | None = None,
    unit: UnitName = "row",
) -> ConvexPlan:
    r"""Choose the noise and the regularisation of a convex model for a budget, without seeing any data.

    The smallest :math:`\sigma` is taken at which the certified profile is at most ``delta`` at ``epsilon``:

    .. math:: \delta(\epsilon) \le E\,\sup_m \delta_G\Bigl(\epsilon - k\log(1 + \kappa(m)/\lambda)
              - \frac{m^2}{2\sigma^2} - \frac{m}{\sigma}\chi_{r_g};\, 0\Bigr)

    with the loss's :attr:`~expost.ConvexLoss.curve` :math:`\kappa` on :math:`0 \le m \le \xi`, the rank
    :math:`k` of its Hessians and a chi variable of :math:`r_g` degrees of freedom, the dimension of one
    record's gradients; where :math:`r_g = 1` by the sharper profile of one linear predictor
    (docs/mathematics.md, theorem 12.1). Or it is that of its Rényi divergences, in which neither :math:`r_g`
    nor the determinant counts at first order (theorem 17.1), where that is smaller. The first certificate has
    no noise scale unless :math:`k\log(1 + \kappa_{\max}/\lambda) < \epsilon`, the second has some for a large
    :math:`\lambda` whatever :math:`k` is.

    Parameters
    ----------
    loss
        A convex loss with its bounds. One that the library does not know is checked by
        :func:`expost.check_convex_loss` first.
    epsilon, delta
        The budget.
    l2
        The regularisation :math:`\lambda`; by default :math:`\max\{\lambda_{1.05}, \sigma(\infty)/2e\}`, with
        :math:`\lambda_{1.05}` the smallest that costs at most 5% more noise than an infinite one and
        :math:`e` the loss's :attr:`~expost.ConvexLoss.parameter_scale`.
    sigma
        An explicit noise scale. It needs ``l2``, and ``epsilon`` is then what it guarantees at ``delta``.
    unit
        For whom the budget is, as in :func:`expost.calibrate`.

    Privacy
    -------
    Public in, public out.

    Examples
    --------
    >>> from expost.losses import SmoothedNorm
    >>> plan = calibrate_convex(SmoothedNorm(2), epsilon=1.0, delta=1e-6, l2=1e6)
    >>> round(plan.sigma, 3), plan.delta_at(1.0) <= 1e-6
    (4.531, True)
    """
    if not isinstance(loss, ConvexLoss):
        raise parameter_error("loss", "a ConvexLoss", loss, "For other losses use `expost.calibrate`.")
    if loss.n_parameters > _MOST_PARAMETERS:
        raise parameter_error("n_parameters", f"at most {_MOST_PARAMETERS}", loss.n_parameters)
    if type(loss) not in _PROVED:
        check_convex_loss(loss)  # the certificate relies on what the loss declares
    epsilon, delta = check_positive("epsilon", epsilon), check_delta(delta)
    l2 = None if l2 is None else check_positive("l2", l2)
    target = Target(epsilon, delta, loss, 1.0, "independent", unit=check_choice("unit", unit, UNITS))
    if sigma is None:
        l2, scales = tight(target, l2, None)
    else:
        epsilon, l2, scales = _explicit(target, l2, sigma)
    return ConvexPlan.of(loss, epsilon=epsilon, delta=delta, l2=l2, sigma=scales.sigma, unit=target.unit)
