"""The pseudo-Huber loss: squared near zero, absolute far away."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from expost._common.namespaces import namespace_of
from expost._common.typing import FloatArray
from expost._common.validation import check_positive
from expost.losses.base import DerivativeCurve, LabelSet, Loss


@dataclass(frozen=True)
class PseudoHuber(Loss):
    r"""A smooth robust regression loss whose slope never exceeds ``threshold`` (:math:`c`).

    .. math:: f(\eta; y) = c^2\left(\sqrt{1 + (r/c)^2} - 1\right), \quad r = \eta - y, \quad
              f' = r/\sqrt{1 + (r/c)^2}, \quad f'' = (1 + (r/c)^2)^{-3/2}

    Its slope is bounded, so that regression has a worst-case guarantee; with the squared loss it has none.
    """

    threshold: float = 1.0
    name: ClassVar[str] = "pseudo_huber"
    in_any_namespace: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("threshold", self.threshold)

    @property
    def labels(self) -> LabelSet:
        """Every real number."""
        return LabelSet()

    @property
    def curve(self) -> DerivativeCurve:
        """``(1 - (m/threshold)^2)^(3/2)``; the label does not fix the sign."""
        threshold = self.threshold

        def curvature(slope: FloatArray) -> FloatArray:
            share = slope / threshold
            # (1 - s)(1 + s) keeps its digits near s = 1; a slope rounded above the limit counts as the limit.
            return np.maximum((1.0 - share) * (1.0 + share), 0.0) ** 1.5

        return DerivativeCurve(max_slope=threshold, curvature=curvature, peak=0.0, sign_fixed=False)

    def value(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        """Written as ``r² / (1 + sqrt(1 + (r/c)²))``, which does not cancel at small residuals."""
        residual = eta - y
        return residual * (residual / (1.0 + np.hypot(1.0, residual / self.threshold)))

    def derivatives(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``r / sqrt(1 + (r/c)²)`` and ``(1 + (r/c)²)^(-3/2)``."""
        # A residual beyond double precision has the limiting slope.
        with np.errstate(over="ignore", invalid="ignore"):
            xp, residual = namespace_of(eta), eta - y
            stretch = xp.hypot(xp.ones_like(residual), residual / self.threshold)
            slope = xp.where(xp.isinf(stretch), self.threshold * xp.sign(residual), residual / stretch)
        return slope, stretch**-3.0
