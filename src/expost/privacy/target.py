"""What the noise scales have to meet, and the smallest scale that meets it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from scipy.optimize import brentq

from expost._common.caller import warn_caller
from expost._common.validation import check_positive
from expost.exceptions import CalibrationError, LargeDeltaWarning
from expost.losses import AnyLoss, ConvexLoss, DerivativeCurve
from expost.losses.softmax_curve import SoftmaxCurve
from expost.privacy.certified_profile import CertifiedProfile
from expost.privacy.precision import REAL, Rounding
from expost.privacy.scales import NoiseScales
from expost.privacy.softmax_profile import profile_of, released_curvature
from expost.privacy.statistics import REPORT_KINDS, ReportKind

# With more, to publish one record in a thousand as it is would be within the promise.
_LARGEST_DELTA = 1e-3
# By how much the certified delta stays below the target: the last digits of another machine may differ.
_MARGIN = 1e-7
# The certificate jumps by less than its width where one more round is taken; a search ends at such a jump.
_NARROW = 1e-6


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
    """Whether the Hessian of a loss of several classes is the reduced one."""

    @property
    def kind(self) -> ReportKind:
        """The row of the table of report kinds."""
        return REPORT_KINDS[self.report]

    @property
    def curve(self) -> DerivativeCurve | SoftmaxCurve:
        """The derivative curve of the largest weight times the loss."""
        return self.loss.curve.scaled(self.max_weight)

    @property
    def slope(self) -> float:
        """The largest norm of one record's gradient, ξ."""
        return self.curve.max_slope * self.radius

    @property
    def curvature(self) -> float:
        """The largest eigenvalue of one record's Hessian, β."""
        return self.curve.max_curvature * self.radius**2

    @property
    def released_curvature(self) -> float:
        """The largest eigenvalue of one record's part in the Hessian that is released."""
        return released_curvature(self.curve, self.radius, reduced=self.reduced)

    def profile(self, l2: float, scales: NoiseScales) -> CertifiedProfile:
        """The certified profile of a publication with these scales."""
        return profile_of(
            self.curve, norm=self.radius, l2=l2, scales=scales, rounding=self.rounding, reduced=self.reduced
        )

    def smallest(self, profile: Callable[[float], CertifiedProfile], start: float) -> float:
        """The smallest scale whose profile meets the budget, on the private side and close to it.

        A coarse search finds it to about 1e-4; a few steps with the full certificate end below the target.
        """

        @cache
        def excess(logarithm: float, rtol: float | None = 1e-2) -> float:
            reached = profile(math.exp(logarithm)).delta(self.epsilon, rtol=rtol).upper
            return math.log(max(reached, 1e-300) / self.delta)

        low = high = math.log(start)
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
        root = float(brentq(excess, low, high, xtol=1e-4))
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
