"""Two recipes for the noise scales: the tight profile, and the classical theorem for comparison."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from scipy.optimize import brentq

from expost._common.validation import check_positive, parameter_error, warn_caller
from expost.exceptions import CalibrationError, LargeDeltaWarning
from expost.losses import AnyLoss, ConvexLoss
from expost.privacy import gaussian, renyi
from expost.privacy.certified_profile import CertifiedProfile
from expost.privacy.plan import accounting_of
from expost.privacy.precision import REAL, Rounding
from expost.privacy.recalibration import recalibration_of
from expost.privacy.scales import REPORT_KINDS, STATISTICS, NoiseScales, ReportKind
from expost.privacy.sharpest import Accounting

# With more, to publish one record in a thousand as it is would be within the promise.
_LARGEST_DELTA = 1e-3
# By how much the certified delta stays below the target: the last digits of another machine may differ.
_MARGIN = 1e-7
# The certificate jumps by less than its width where one more round is taken; a search ends at such a jump.
_NARROW = 1e-6
# So much noise, in units of the slope, that it is as good as infinite.
_ENDLESS = 1e9


def check_delta(delta: float) -> float:
    """Return ``delta`` as a number between 0 and 1, or raise ParameterError; warn where it is large."""
    found = check_positive("delta", delta, below=1.0)
    if found > _LARGEST_DELTA:
        warn_caller(
            f"`delta` should be at most {_LARGEST_DELTA:g}, and far below one divided by the number of "
            f"people; got delta={found:g}. It is about the chance that a person is promised nothing: choose "
            "1e-6 or less.",
            LargeDeltaWarning,
        )
    return found


@dataclass(frozen=True)
class Target:
    """A total budget for one loss, one norm of the rows and one kind of report."""

    epsilon: float
    delta: float
    loss: AnyLoss | ConvexLoss
    radius: float
    report: str
    rounding: Rounding = REAL
    max_weight: float = 1.0
    reduced: bool = False
    unit: str = "row"
    recalibrate: bool = False

    @property
    def kind(self) -> ReportKind:
        """The row of the table of report kinds."""
        return REPORT_KINDS[self.report]

    @property
    def share(self) -> float:
        """What recalibration takes of the precision that the budget buys."""
        kind = recalibration_of(self.loss) if self.recalibrate else None
        return 0.0 if kind is None else kind.share

    @cached_property
    def accounting(self) -> Accounting:
        """How the largest weight times the loss is accounted for."""
        curve = self.loss.curve.scaled(self.max_weight)
        return accounting_of(curve, self.radius, reduced=self.reduced, unit=self.unit)

    def profile(self, l2: float, scales: NoiseScales) -> CertifiedProfile:
        """The certified profile of a publication with this regularisation and these scales."""
        return self.accounting.sharpest(l2, scales, self.rounding)

    def published(self, joint: float, **others: float | None) -> NoiseScales:
        r"""The scales where the model, together with a gradient, has this noise.

        What recalibrates it has the rest of the precision that the budget buys, a share :math:`\alpha`:
        :math:`\sigma_h = \sqrt{(1 - \alpha)/\alpha}\,\sigma/\xi`.
        """
        if self.recalibrate:
            ratio = math.sqrt((1.0 - self.share) / self.share)
            others["sigma_recalibration"] = joint / self.accounting.slope * ratio
        return NoiseScales(**{"sigma": joint} | others)  # type: ignore[arg-type]

    def smallest(self, profile: Callable[[float], CertifiedProfile], start: float) -> float:
        """The smallest scale whose profile meets the budget, on the private side and close to it.

        A coarse search finds it to about 1e-4; a few steps with the full certificate end below the target.
        """

        @cache
        def excess(logarithm: float, rtol: float | None = 1e-2) -> float:
            reached = profile(math.exp(logarithm)).delta(self.epsilon, rtol=rtol).upper
            return math.log(max(reached, 1e-300) / self.delta)

        root = float(brentq(excess, *self._bracket(excess, math.log(start)), xtol=1e-4))
        slope = min((excess(root + 1e-3) - excess(root)) / 1e-3, -1.0)
        # Secant steps; the coarse values they start from may mislead, so they never leave what is known.
        low, high, last = -math.inf, math.inf, None
        window = 0.1 * profile(math.exp(root)).width
        for _ in range(30):
            above = excess(root, rtol=None)
            if -window <= above <= -_MARGIN:
                return math.exp(root)
            low, high = (root, high) if above > -_MARGIN else (low, root)
            if last is not None:
                slope = min((above - last[1]) / (root - last[0]), -1.0)
            if high - low < _NARROW:
                break
            last = root, above
            root -= (above + 0.25 * window) / slope
            if not low < root < high:
                root = 0.5 * (low + high)
        if math.isinf(high):
            high = root
            while excess(high, rtol=None) > -_MARGIN:
                high += 1e-4
        return math.exp(high)

    def _bracket(self, excess: Callable[[float], float], start: float) -> tuple[float, float]:
        """Two logarithms of a scale, too small and large enough, in growing steps from ``start``."""
        low = high = start
        step = 0.02
        while excess(high) > 0.0:
            low, high, step = high, high + step, 2.0 * step
            if step > 100.0:
                raise CalibrationError(
                    f"this certificate has no noise scale for epsilon={self.epsilon:g}, delta={self.delta:g} "
                    "with these shares. Raise `epsilon`, `delta` or `l2`, or lower `split`."
                )
        while low == high or excess(low) <= 0.0:
            low, high, step = low - step, low, 2.0 * step
        return low, high


# How little a record moves the Hessian compared with the model, by default; docs/calibration.md.
HESSIAN_NOISE = 12.0
# What the Hessian and its eigenvalue get of the report's part where the split is given and the gradient is
# released too.
HESSIAN_SHARE = 0.04
# The default regularisation per unit of the noise in the objective; docs/calibration.md.
L2_PER_SIGMA = 0.5
# How much more noise than without a log-determinant the default regularisation may cost.
NOISE_INFLATION = 1.05
# Of the two parts of the whitened sensitivity the eigenvalue takes as much as the Hessian.
EIGENVALUE_PER_HESSIAN = math.sqrt(2.0)


def tight(target: Target, l2: float | None, split: Any) -> tuple[float, NoiseScales]:
    """The regularisation and the least noise whose certified profile meets the target."""
    if split is not None and not target.kind.releases:
        wanted = "None where nothing but the model is published"
        raise parameter_error("split", wanted, split, "Choose a report too, such as 'leverage'.")
    if split is not None:
        check_positive("split", split, below=1.0)
    _check_floor(target, l2)
    # By the row for either unit: the default regularisation is for the model, which is the same.
    rows = replace(target, unit="row")
    flat = rows.accounting.flat_sigma(target.epsilon, target.delta)
    if flat is None:
        start = gaussian.sigma(target.epsilon, target.delta, sensitivity=target.accounting.slope)
        flat = rows.smallest(lambda sigma: rows.profile(math.inf, NoiseScales(sigma)), start)
    flat /= math.sqrt(1.0 - target.share)
    chosen = default_l2(target, flat) if l2 is None else l2
    if not target.kind.releases:
        alone = target.smallest(lambda sigma: target.profile(chosen, target.published(sigma)), flat)
        return chosen, target.published(alone)
    # What the model alone would need counts as a share here, so it is that of the certificate for both.
    certificate = partial(target.accounting.profile, rounding=target.rounding)
    alone = target.smallest(lambda sigma: certificate(chosen, NoiseScales(sigma)), flat)
    if split is None:
        return chosen, _by_rule(target, chosen, alone)
    return chosen, _by_split(target, chosen, alone, split)


def _by_rule(target: Target, l2: float, alone: float) -> NoiseScales:
    """Statistics of the curvature that cost little (docs/calibration.md, "The noise of the statistics").

    One number is left, and it is as small as the budget allows.
    """
    kind, accounting = target.kind, target.accounting
    share, ratio = kind.model_share, HESSIAN_NOISE * accounting.released_curvature / accounting.slope
    if "eigenvalue" in kind.releases:
        ratio *= math.sqrt(2.0)

    def scales(joint: float) -> NoiseScales:
        return target.published(
            joint,
            sigma=joint / math.sqrt(share),
            sigma_gradient=joint / math.sqrt(1.0 - share) if "gradient" in kind.releases else None,
            sigma_hessian=ratio * joint,
            sigma_eigenvalue=EIGENVALUE_PER_HESSIAN * ratio * joint
            if "eigenvalue" in kind.releases
            else None,
        )

    return scales(target.smallest(lambda joint: target.profile(l2, scales(joint)), alone))


def _by_split(target: Target, l2: float, alone: float, share: float) -> NoiseScales:
    """The model's share of the precision as asked; the statistics of the curvature take all that is left."""
    released = target.kind.releases
    sigma, sigma_gradient = alone / math.sqrt(share), None
    if "gradient" in released:
        rest = 1.0 - share - HESSIAN_SHARE * (1.0 - share)
        sigma_gradient = alone / math.sqrt(rest)

    def scales(hessian: float) -> NoiseScales:
        eigenvalue = EIGENVALUE_PER_HESSIAN * hessian if "eigenvalue" in released else None
        return NoiseScales(sigma, sigma_gradient, hessian, eigenvalue)

    slope, curvature = target.accounting.slope, target.accounting.released_curvature
    start = curvature * gaussian.sigma(target.epsilon, target.delta, sensitivity=slope) / slope
    return scales(target.smallest(lambda hessian: target.profile(l2, scales(hessian)), start))


def default_l2(target: Target, flat: float) -> float:
    r"""The rule :math:`\lambda = \max\{\lambda_{1.05},\; R\,\sigma(\infty) / 2e\}` of docs/calibration.md."""
    accounting = target.accounting
    unit = accounting.curve.predictor_unit or accounting.curve.max_slope
    strong = L2_PER_SIGMA * target.radius * flat / unit
    least = accounting.least_l2(target.epsilon)
    if least is not None:
        return max(strong, least)

    # By the first certificate where a gradient has one direction: a sharper one then lowers the noise, and
    # the default regularisation stays as it was.
    certificate = accounting.profile if accounting.curve.outputs == 1 else accounting.sharpest

    def profile(weight: float) -> CertifiedProfile:
        return certificate(weight, NoiseScales(NOISE_INFLATION * flat), target.rounding)

    # Nearly always the second term is the larger one, and one look shows it.
    if profile(strong).certifies(target.epsilon, target.delta):
        return strong
    return target.smallest(profile, strong)


def kifer(target: Target, l2: float | None, split: Any) -> tuple[float, NoiseScales]:
    """The classical recipe, with one ε per part and equal parts of δ; everything adds up."""
    accounting = target.accounting
    if not accounting.classical:
        raise CalibrationError(
            "calibration='kifer2012' needs a gradient of fixed direction and a Hessian of rank one, "
            f"which {accounting.curve.outputs + 1} classes do not have. Use calibration='tight'."
        )
    model, *others = _epsilons(target, split)
    delta = target.delta / (1 + len(others))
    floor = 2.0 * accounting.curvature / model
    if l2 is not None and l2 < floor:
        raise CalibrationError(
            f"calibration='kifer2012' needs l2 >= {floor:.6g} at epsilon={model:g}; got l2={l2:g}. "
            f"Raise `l2` to {floor:.6g} or the model's epsilon to {2.0 * accounting.curvature / l2:.6g}."
        )
    sigma = accounting.slope * math.sqrt(8.0 * math.log(2.0 / delta) + 4.0 * model) / model
    scales = {
        f"sigma_{name}": gaussian.sigma(epsilon, delta, sensitivity=accounting.sensitivity(STATISTICS[name]))
        for name, epsilon in zip(target.kind.releases, others, strict=True)
    }
    return floor if l2 is None else l2, NoiseScales(sigma, **scales)


def _check_floor(target: Target, l2: float | None) -> None:
    """Refuse a regularisation at which no noise scale is certified."""
    accounting = target.accounting
    floor = accounting.floor(target.epsilon)
    # What the solver's radius and the discrete noise cost is not there for the log-determinant.
    spent = 2.0 * target.rounding.law(target.epsilon)
    if target.rounding.solver > 0.0:
        spent += 1.001 * float(gaussian.epsilon(target.delta, sensitivity=target.rounding.solver, sigma=1.0))
    if spent >= target.epsilon:
        raise CalibrationError(
            f"epsilon={target.epsilon:g} at delta={target.delta:g} is less than printed numbers cost. Raise "
            f"`epsilon` above {spent:.2g}."
        )
    needed = accounting.floor(target.epsilon - spent)
    if l2 is not None and l2 <= needed and not _certified_by_divergences(target, l2, spent):
        # Six digits, rounded up: what is suggested works as it is printed.
        enough = (1.0 + 1e-5) * (accounting.log_determinant(l2) + spent)
        reason = (
            f"its floor is l2 > {floor:.6g}" if l2 <= floor else f"printed numbers need l2 > {needed:.8g}"
        )
        # The default cap follows epsilon, and the floor follows the cap: no epsilon can be named then.
        capped = getattr(target.loss, "cap", 1.0) < 1.0
        raise CalibrationError(
            f"this certificate has no noise scale for epsilon={target.epsilon:g} with l2={l2:g} and "
            f"{type(target.loss).__name__}: {reason}. Raise `l2` above it"
            + ("." if capped else f", or `epsilon` to {enough:.6g} or more.")
        )


def _certified_by_divergences(target: Target, l2: float, spent: float) -> bool:
    """Whether noise without end is enough by the Rényi divergences: for Hessians of high rank it may be."""
    profile = target.accounting.profile(l2, NoiseScales(_ENDLESS * target.accounting.slope))
    left = np.array(target.epsilon - spent)
    found = profile.divergences(renyi.ORDERS).values()
    return max(float(renyi.delta(renyi.ORDERS, one, left)) for one in found) < target.delta


def _epsilons(target: Target, split: Any) -> Sequence[float]:
    parts = 1 + len(target.kind.releases)
    if parts == 1 and split is None:
        return [target.epsilon]
    valid = isinstance(split, Sequence) and len(split) == parts
    if not valid or not all(isinstance(share, float | int) and share > 0 for share in split):
        raise parameter_error("split", f"{parts} positive epsilons, one for each part", split)
    if not math.isclose(sum(split), target.epsilon, rel_tol=1e-9):
        raise parameter_error("split", f"epsilons that add up to epsilon={target.epsilon:g}", split)
    return tuple(split)
