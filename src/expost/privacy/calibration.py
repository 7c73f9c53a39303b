"""From a budget to a Plan: the least noise that is certified to meet it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.optimize import brentq

from expost._common.validation import check_choice, check_positive, refuse
from expost.exceptions import CalibrationError
from expost.losses import (
    DerivativeCurve,
    LogisticLoss,
    Loss,
    PseudoHuber,
    SmoothedHinge,
    SquaredLoss,
    check_loss,
)
from expost.privacy import gaussian
from expost.privacy.plan import Plan
from expost.privacy.profile import PrivacyProfile

LOSSES: dict[str, type[Loss]] = {
    loss.name: loss for loss in (LogisticLoss, SmoothedHinge, PseudoHuber, SquaredLoss)
}
CALIBRATIONS = ("tight", "kifer2012")
# Which statistics each kind of report releases: gradient, Hessian, smallest eigenvalue.
REPORTS = {
    "independent": (False, False, False),
    "leverage": (False, True, False),
    "dependent": (True, True, False),
    "adaptive": (True, True, True),
}
# The model's share of the precision that the budget buys, 1/σ²; docs/calibration.md has the experiment.
DEFAULT_SPLIT = {"independent": 1.0, "leverage": 0.98, "dependent": 0.5, "adaptive": 0.5}
# What the Hessian and its eigenvalue get where the gradient is released too.
HESSIAN_SHARE = 0.04
# The default regularisation in units of what one standard deviation of noise can bend; docs/calibration.md.
L2_PER_SIGMA = 0.5
# How much more noise than without a log-determinant the default regularisation may cost.
NOISE_INFLATION = 1.05


def calibrate(
    *,
    loss: Loss | str = "logistic",
    norm: float = 1.0,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    l2: float | None = None,
    report: str = "independent",
    split: float | Sequence[float] | None = None,
    fit_intercept: bool = False,
    calibration: str = "tight",
    sigma: float | None = None,
    sigma_gradient: float | None = None,
    sigma_hessian: float | None = None,
    sigma_eigenvalue: float | None = None,
) -> Plan:
    r"""Choose every noise scale and the regularisation that meet one total budget, without seeing any data.

    ``calibration="tight"`` finds the smallest scales whose certified profile
    (:class:`expost.privacy.profile.PrivacyProfile`) is at most ``delta`` at ``epsilon`` for the whole publication.
    ``calibration="kifer2012"`` is the recipe of [RW21]_, Theorem 1 after [KST12]_, kept for comparison:

    .. math:: \lambda \ge 2\beta/\epsilon_1, \quad
              \sigma^2 = \xi^2(8\log(2/\delta) + 4\epsilon_1)/\epsilon_1^2,

    statistics by the analytic Gaussian mechanism, and budgets that add up.

    Parameters
    ----------
    loss
        A loss or the name of one.
    norm
        The largest norm of a row of features; with ``fit_intercept`` the constant 1 comes on top.
    epsilon, delta
        The total budget, for the model and everything published beside it.
    l2
        The regularisation :math:`\lambda`; by default chosen from public values (docs/calibration.md).
    report
        What is published beside the model: ``"independent"`` nothing, ``"leverage"`` a noisy Hessian,
        ``"dependent"`` a noisy gradient too, ``"adaptive"`` the Hessian's smallest eigenvalue too.
    split
        The model's share of the precision :math:`1/\sigma^2` that the budget would buy it alone, between 0
        and 1; the rest pays for the statistics. With ``"kifer2012"``: one ε for each part, adding up to
        ``epsilon``.
    fit_intercept
        Whether a constant 1 is appended to every row.
    calibration
        The theorem to rely on.
    sigma, sigma_gradient, sigma_hessian, sigma_eigenvalue
        Explicit scales. They need ``l2``, and ``epsilon`` is then what they guarantee at ``delta``.

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
    loss = _as_loss(loss)
    norm = check_positive("norm", norm)
    if not 1e-30 <= norm <= 1e30:
        raise refuse("norm", "between 1e-30 and 1e30", norm, "Scale the data by a constant.")
    check_choice("report", report, REPORTS)
    check_choice("calibration", calibration, CALIBRATIONS)
    if l2 is not None:
        l2 = check_positive("l2", l2)
    radius = math.hypot(norm, 1.0) if fit_intercept else norm
    budget = _Budget(
        check_positive("epsilon", epsilon), check_positive("delta", delta, below=1.0), loss, radius, report
    )
    explicit = {
        "sigma": sigma,
        "sigma_gradient": sigma_gradient,
        "sigma_hessian": sigma_hessian,
        "sigma_eigenvalue": sigma_eigenvalue,
    }
    promised = budget.epsilon
    if any(scale is not None for scale in explicit.values()):
        if split is not None:
            raise refuse("split", "None where the scales are given", split)
        promised, scales = _explicit(budget, l2, explicit)
    elif math.isinf(loss.curve.max_slope):
        raise CalibrationError(
            f"no noise scale gives {type(loss).__name__} a worst-case guarantee: its slope is unbounded. "
            "Give `sigma` and `l2` to fit without one, or choose loss='pseudo_huber'."
        )
    else:
        scales = _tight(budget, l2, split) if calibration == "tight" else _kifer(budget, l2, split)
    return Plan(
        loss=loss,
        norm=norm,
        fit_intercept=bool(fit_intercept),
        report=report,
        calibration=calibration,
        epsilon=promised,
        delta=budget.delta,
        **scales,  # type: ignore[arg-type]
    )


Scales = dict[str, float | None]


@dataclass(frozen=True)
class _Budget:
    """What the scales have to meet."""

    epsilon: float
    delta: float
    loss: Loss
    radius: float
    report: str

    @property
    def curve(self) -> DerivativeCurve:
        return self.loss.curve

    @property
    def slope(self) -> float:
        """The largest norm of one record's gradient, ξ."""
        return self.curve.max_slope * self.radius

    @property
    def curvature(self) -> float:
        """The largest eigenvalue of one record's Hessian, β."""
        return self.curve.max_curvature * self.radius**2

    def profile(self, **scales: float | None) -> PrivacyProfile:
        return PrivacyProfile(self.curve, norm=self.radius, **scales)  # type: ignore[arg-type]

    def smallest(self, profile: Callable[[float], PrivacyProfile], start: float) -> float:
        """The smallest scale whose profile meets the budget, on the private side and close to it.

        A coarse search finds it to about 1e-4; a few steps with the full certificate end below the target.
        """

        def excess(logarithm: float, rtol: float | None = 1e-2) -> float:
            reached = profile(math.exp(logarithm)).delta(self.epsilon, rtol=rtol).upper
            return math.log(max(reached, 1e-300) / self.delta)

        low = high = math.log(start)
        step = 0.02
        while excess(high) > 0.0:
            low, high, step = high, high + step, 2.0 * step
            if step > 100.0:
                raise CalibrationError(
                    f"no noise scale meets epsilon={self.epsilon:g}, delta={self.delta:g} with these shares. "
                    "Raise `epsilon`, `delta` or `l2`, or lower `split`."
                )
        while low == high or excess(low) <= 0.0:
            low, high, step = low - step, low, 2.0 * step
        root = float(brentq(excess, low, high, xtol=1e-4))
        slope = min((excess(root + 1e-3) - excess(root - 1e-3)) / 2e-3, -1.0)
        # Secant steps; the coarse values they start from may mislead, so they never leave what is known.
        low, high, last = -math.inf, math.inf, None
        for _ in range(30):
            above = excess(root, rtol=None)
            if -2e-4 <= above <= 0.0:
                return math.exp(root)
            low, high = (root, high) if above > 0.0 else (low, root)
            if last is not None:
                slope = min((above - last[1]) / (root - last[0]), -1.0)
            last = root, above
            root -= (above + 5e-5) / slope
            if not low < root < high:
                root = 0.5 * (low + high)
        if math.isinf(high):
            high = root
            while excess(high, rtol=None) > 0.0:
                high += 1e-4
        return math.exp(high)


def _tight(budget: _Budget, l2: float | None, split: Any) -> Scales:
    """The least noise whose certified profile meets the budget."""
    share = DEFAULT_SPLIT[budget.report] if split is None else split
    if budget.report == "independent":
        if split is not None:
            raise refuse("split", "None where nothing but the model is published", split)
    else:
        share = check_positive("split", share, below=1.0)
    each = budget.epsilon / budget.curve.rank
    floor = budget.curvature * math.exp(-each) / -math.expm1(-each)  # β/(e^ε − 1), at any ε
    if l2 is not None and l2 <= floor:
        # Six digits, rounded up: what is suggested works as it is printed.
        enough = (1.0 + 1e-5) * budget.curve.rank * math.log1p(budget.curvature / l2)
        raise CalibrationError(
            f"no noise scale meets epsilon={budget.epsilon:g} with l2={l2:g} for "
            f"{type(budget.loss).__name__}: the floor is l2 > {floor:.6g}. Raise `l2` above it, "
            f"or `epsilon` to {enough:.6g} or more."
        )
    start = gaussian.sigma(budget.epsilon, budget.delta, sensitivity=budget.slope)
    flat = start
    if not budget.curve.sign_fixed or budget.curve.outputs > 1:
        flat = budget.smallest(lambda scale: budget.profile(l2=math.inf, sigma=scale), start)
    chosen = _default_l2(budget, flat) if l2 is None else l2
    alone = budget.smallest(lambda scale: budget.profile(l2=chosen, sigma=scale), flat)
    with_gradient, with_hessian, with_eigenvalue = REPORTS[budget.report]
    sigma = alone / math.sqrt(share)
    sigma_gradient = None
    if with_gradient:
        rest = 1.0 - share - HESSIAN_SHARE * (1.0 - share)
        sigma_gradient = alone / math.sqrt(rest)
    scales: Scales = {"l2": chosen, "sigma": sigma, "sigma_gradient": sigma_gradient}
    if with_hessian:

        def with_statistics(scale: float) -> PrivacyProfile:
            # Of the two parts of the whitened sensitivity the eigenvalue takes as much as the matrix.
            eigenvalue = math.sqrt(2.0) * scale if with_eigenvalue else None
            return budget.profile(**scales, sigma_hessian=scale, sigma_eigenvalue=eigenvalue)

        sigma_hessian = budget.smallest(with_statistics, budget.curvature * start / budget.slope)
        scales["sigma_hessian"] = sigma_hessian
        scales["sigma_eigenvalue"] = math.sqrt(2.0) * sigma_hessian if with_eigenvalue else None
    return scales


def _default_l2(budget: _Budget, flat: float) -> float:
    r"""The regularisation to use where the curator names none: a rule in public quantities only.

    .. math:: \lambda = \max\{\lambda_{1.05},\; R\,\sigma(\infty) / 2m_{\max}\}

    :math:`\lambda_{1.05}` is the smallest that costs at most 5% more noise than an infinite one. The second
    term keeps the penalty as strong as the noise on a coefficient of the size :math:`2 m_{\max}/R`, so that
    directions in which the table says little shrink instead of following the noise.
    """
    strong = L2_PER_SIGMA * budget.radius * flat / budget.curve.max_slope

    def profile(weight: float) -> PrivacyProfile:
        return budget.profile(l2=weight, sigma=NOISE_INFLATION * flat)

    # Nearly always the second term is the larger one, and one look shows it.
    if profile(strong).certifies(budget.epsilon, budget.delta):
        return strong
    return budget.smallest(profile, strong)


def _kifer(budget: _Budget, l2: float | None, split: Any) -> Scales:
    """The classical recipe, with one ε per part and equal parts of δ; everything adds up."""
    released = [True, *REPORTS[budget.report]]
    parts = sum(released)
    shares = _epsilons(budget, split, parts)
    delta = budget.delta / parts
    model = next(shares)
    floor = 2.0 * budget.curvature / model
    if l2 is not None and l2 < floor:
        raise CalibrationError(
            f"calibration='kifer2012' needs l2 >= {floor:.6g} at epsilon={model:g}; got l2={l2:g}. "
            f"Raise `l2` to {floor:.6g} or the model's epsilon to {2.0 * budget.curvature / l2:.6g}."
        )
    scales: Scales = {
        "l2": floor if l2 is None else l2,
        "sigma": budget.slope * math.sqrt(8.0 * math.log(2.0 / delta) + 4.0 * model) / model,
    }
    for name, wanted, sensitivity in zip(
        ("sigma_gradient", "sigma_hessian", "sigma_eigenvalue"),
        REPORTS[budget.report],
        (budget.slope, budget.curvature * math.sqrt(budget.curve.rank / 2.0), budget.curvature),
        strict=True,
    ):
        if wanted:
            scales[name] = gaussian.sigma(next(shares), delta, sensitivity=sensitivity)
    return scales


def _epsilons(budget: _Budget, split: Any, parts: int) -> Any:
    if parts == 1 and split is None:
        return iter([budget.epsilon])
    valid = isinstance(split, Sequence) and len(split) == parts
    if not valid or not all(isinstance(share, float | int) and share > 0 for share in split):
        raise refuse("split", f"{parts} positive epsilons, one for each part", split)
    if not math.isclose(sum(split), budget.epsilon, rel_tol=1e-9):
        raise refuse("split", f"epsilons that add up to epsilon={budget.epsilon:g}", split)
    return iter(split)


def _explicit(budget: _Budget, l2: float | None, scales: Scales) -> tuple[float, Scales]:
    """Take the scales as they are and state what they guarantee."""
    needed = dict(zip(scales, (True, *REPORTS[budget.report]), strict=True))
    for name, wanted in needed.items():
        if wanted:
            scales[name] = check_positive(name, scales[name], way_out="Explicit scales come all together.")
        elif scales[name] is not None:
            raise refuse(name, f"None with report={budget.report!r}", scales[name])
    scales["l2"] = check_positive("l2", l2, way_out="An explicit `sigma` needs an explicit `l2`.")
    if math.isinf(budget.slope):
        return math.inf, scales
    return budget.profile(**scales).epsilon(budget.delta), scales


def _as_loss(loss: Any) -> Loss:
    if isinstance(loss, Loss):
        if type(loss) not in LOSSES.values():
            check_loss(loss)  # the certificate is only as true as the curve that the loss declares
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]()
    raise refuse("loss", "a Loss or one of " + ", ".join(map(repr, LOSSES)), loss)
