"""The smoothed hinge loss, for a differentiable support vector machine."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from expost._common.namespaces import is_foreign
from expost._common.typing import FloatArray
from expost._common.validation import check_positive
from expost.losses.base import DerivativeCurve, LabelSet, Loss
from expost.losses.logistic import probabilities


@dataclass(frozen=True)
class SmoothedHinge(Loss):
    r"""The hinge loss with its corner rounded over a width ``scale`` (:math:`a`).

    .. math:: f(\eta; y) = a \log(1 + e^t), \quad t = (1 - y\eta)/a, \quad
              f' = -y\,p, \quad f'' = p(1 - p)/a, \quad p = 1/(1 + e^{-t})

    It tends to ``max(0, 1 - y eta)`` as ``scale`` falls to zero, while its curvature, and with it the
    regularisation that privacy needs, grows as ``1 / (4 scale)``.
    """

    scale: float = 0.5
    name: ClassVar[str] = "smoothed_hinge"
    in_any_namespace: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("scale", self.scale)

    @property
    def labels(self) -> LabelSet:
        """Minus one and one."""
        return LabelSet(-1.0, 1.0, values=(-1.0, 1.0))

    @property
    def curve(self) -> DerivativeCurve:
        """``m(1 - m) / scale``; the label fixes the sign."""
        scale = self.scale
        return DerivativeCurve(
            max_slope=1.0, curvature=lambda slope: slope * (1.0 - slope) / scale, peak=0.5, sign_fixed=True
        )

    def value(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        """``scale * log(1 + e^t)``."""
        return self.scale * np.logaddexp(0.0, (1.0 - y * eta) / self.scale)

    def derivatives(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``-y p`` and ``p (1 - p) / scale``."""
        with np.errstate(over="ignore"):  # a margin beyond double precision has the limiting derivatives
            t = (1.0 - y * eta) / self.scale
        p, q = probabilities(t)[:2] if is_foreign(t) else (expit(t), expit(-t))
        return -y * p, p * q / self.scale
