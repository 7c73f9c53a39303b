"""The logistic loss, for hard labels and for probabilities as labels."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from expost._common.typing import FloatArray
from expost.losses.base import DerivativeCurve, LabelSet, Loss


@dataclass(frozen=True)
class LogisticLoss(Loss):
    r"""The negative log-likelihood of a Bernoulli label with logit ``eta``.

    .. math:: f(\eta; y) = \log(1 + e^\eta) - y\eta, \quad
              f' = p - y, \quad f'' = p(1 - p), \quad p = 1/(1 + e^{-\eta})

    With hard labels in {0, 1} the label fixes the sign of :math:`f'` and
    :math:`f'' = m(1 - m)` where :math:`m = |f'|`: a record is steep or curved, never both. With
    ``soft=True`` a label may be any probability in [0, 1]; then :math:`m \le \max(p, 1 - p)`, the
    curvature may be 1/4 up to :math:`m = 1/2`, and the label does not fix the sign.
    """

    soft: bool = False
    name: ClassVar[str] = "logistic"

    @property
    def labels(self) -> LabelSet:
        """Zero and one, or everything between them for soft labels."""
        return LabelSet(0.0, 1.0, values=None if self.soft else (0.0, 1.0))

    @property
    def curve(self) -> DerivativeCurve:
        """``m(1 - m)``; with soft labels constant up to its peak at one half."""
        soft = self.soft

        def curvature(slope: FloatArray) -> FloatArray:
            steep = np.maximum(slope, 0.5) if soft else slope
            return steep * (1.0 - steep)

        return DerivativeCurve(max_slope=1.0, curvature=curvature, peak=0.5, sign_fixed=not soft)

    def value(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        """Split as ``(1 - y) log(1 + e^eta) + y log(1 + e^-eta)``, so that nothing cancels."""
        return (1.0 - y) * np.logaddexp(0.0, eta) + y * np.logaddexp(0.0, -eta)

    def derivatives(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``(1 - y) p - y (1 - p)`` and ``p (1 - p)``, both accurate even close to zero."""
        decay = np.exp(-np.abs(eta))
        large = 1.0 / (1.0 + decay)
        small = decay * large
        positive = eta >= 0.0
        p = np.where(positive, large, small)
        q = np.where(positive, small, large)
        return (1.0 - y) * p - y * q, large * small
