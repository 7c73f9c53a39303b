"""From a budget to a Plan: the least noise that is certified to meet it."""

import math
from collections.abc import Sequence

from expost._common.validation import (
    CalibrationName,
    LossName,
    ReportName,
    check_choice,
    check_count,
    check_positive,
    parameter_error,
)
from expost.exceptions import CalibrationError
from expost.losses import AnyLoss, SoftmaxLoss, as_loss
from expost.losses.registry import has_certified_slopes
from expost.privacy.plan import Plan, row_radius
from expost.privacy.precision import REAL, ROWS_AT_MOST, Precision, Rounding
from expost.privacy.recipes import Target, check_delta, kifer, tight
from expost.privacy.scales import REPORT_KINDS, NoiseScales

CALIBRATIONS = {"tight": tight, "kifer2012": kifer}
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-9, 1e9
"""Between which the largest weight of a record may lie."""
# Of the largest curvature of a record; with less, minimisers are so far away that no arithmetic finds them.
_SMALLEST_L2 = 1e-12


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
    rows_at_most: int = ROWS_AT_MOST,
    max_weight: float = 1.0,
    reduced: bool = False,
) -> Plan:
    r"""Choose every noise scale and the regularisation that meet one total budget, without seeing any data.

    ``calibration="tight"`` finds the smallest scales whose certified profile
    (:class:`expost.privacy.profile.PrivacyProfile`) is at most ``delta`` at ``epsilon`` for the whole
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
        By default the Hessian and its eigenvalue get so much noise that they cost little, and the model all
        but a little of the budget, half of which it gives to a gradient (docs/calibration.md). Otherwise the
        model's share of the precision :math:`1/\sigma^2` that the budget would buy it alone, between 0 and
        1; the rest pays for the statistics. With ``"kifer2012"``: one ε for each part, adding up to
        ``epsilon``.
    fit_intercept
        Whether a constant 1 is appended to every row.
    calibration
        The theorem to rely on.
    sigma, sigma_gradient, sigma_hessian, sigma_eigenvalue
        Explicit scales. They need ``l2``, and ``epsilon`` is then what they guarantee at ``delta``.
    rows_at_most
        Up to how many rows exact losses and intervals keep their stated accuracy. A public guess, not a
        limit: the guarantee holds for any number of rows.
    max_weight
        The largest weight of a record, between 1e-9 and 1e9. Weights from 0 to it cost as much as all of them
        at it: the noise and the default ``l2`` are those of so many times the loss (docs/mathematics.md,
        section 6).
    reduced
        For more than two classes: whether the Hessian is released as a matrix of the features alone, the
        reduced one, whose noise and size do not grow with the number of classes (docs/mathematics.md,
        section 11).

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
    radius = row_radius(norm, fit_intercept=fit_intercept)
    max_weight = _check_weight(loss, max_weight)
    curve = loss.curve.scaled(max_weight)
    rounding = REAL
    if has_certified_slopes(loss):
        curvature = curve.max_curvature * radius**2
        if check_count("rows_at_most", rows_at_most) > 10**15:
            raise parameter_error("rows_at_most", "at most 1e15", rows_at_most)
        rounding = Rounding.planned(epsilon, curvature=curvature, rows_at_most=rows_at_most)
    delta = check_delta(delta)
    if reduced and not (isinstance(loss, SoftmaxLoss) and loss.classes > 2):
        raise parameter_error("reduced", "False without more than two classes", reduced)
    if reduced and "hessian" not in REPORT_KINDS[report].releases:
        raise parameter_error("reduced", f"False with report={report!r}, which has no Hessian", reduced)
    target = Target(epsilon, delta, loss, radius, report, rounding, max_weight, bool(reduced))
    explicit = {
        "sigma": sigma,
        "sigma_gradient": sigma_gradient,
        "sigma_hessian": sigma_hessian,
        "sigma_eigenvalue": sigma_eigenvalue,
    }
    promised = target.epsilon
    if any(scale is not None for scale in explicit.values()):
        if split is not None:
            raise parameter_error("split", "None where the scales are given", split)
        promised, l2, scales = _explicit(target, l2, explicit)
    elif math.isinf(loss.curve.max_slope):
        raise CalibrationError(
            f"no noise scale gives {type(loss).__name__} a worst-case guarantee: its slope is unbounded. "
            "Give `sigma` and `l2` to fit without one, or choose loss='pseudo_huber'."
        )
    else:
        l2, scales = CALIBRATIONS[calibration](target, l2, split)
        if calibration != "tight" and not target.profile(l2, scales).certifies(target.epsilon, target.delta):
            raise CalibrationError(
                f"calibration={calibration!r} does not pay for printed numbers here; lower `rows_at_most`, "
                "give the statistics more of `split`, or choose calibration='tight'."
            )
    if rounding != REAL and l2 < _SMALLEST_L2 * target.curvature:
        least = _SMALLEST_L2 * target.curvature
        raise CalibrationError(
            f"l2={l2:g} is too small for printed numbers; raise it to {least:.3g} or more."
        )
    return Plan(
        loss=loss,
        norm=norm,
        fit_intercept=bool(fit_intercept),
        report=report,
        calibration=calibration,
        epsilon=promised,
        delta=target.delta,
        l2=l2,
        scales=scales,
        precision=_precision(target, l2, scales, rows_at_most),
        max_weight=max_weight,
        reduced=target.reduced,
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


def _precision(target: Target, l2: float, scales: NoiseScales, rows_at_most: int) -> Precision | None:
    if target.rounding == REAL:
        return None
    return Precision.choose(
        target.rounding,
        sigma=scales.sigma,
        l2=l2,
        curvature=target.curvature,
        radius=target.radius,
        rows_at_most=rows_at_most,
    )


def _explicit(
    target: Target, l2: float | None, given: dict[str, float | None]
) -> tuple[float, float, NoiseScales]:
    """Take the scales as they are and state what they guarantee."""
    needed = {"sigma", *(f"sigma_{name}" for name in target.kind.releases)}
    scales = {}
    for name, scale in given.items():
        if name in needed:
            scales[name] = check_positive(name, scale, way_out="Explicit scales come all together.")
        elif scale is not None:
            raise parameter_error(name, f"None with report={target.report!r}", scale)
    l2 = check_positive("l2", l2, way_out="An explicit `sigma` needs an explicit `l2`.")
    noise = NoiseScales(**scales)
    if math.isinf(target.slope):
        return math.inf, l2, noise
    return target.profile(l2, noise).epsilon(target.delta), l2, noise
