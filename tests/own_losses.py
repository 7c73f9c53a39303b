"""Losses that a user could write: of one linear predictor, and of two."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from expost import DerivativeCurve, LabelSet, Loss, VectorLoss


@dataclass(frozen=True)
class LogCosh(Loss):
    """``c² log cosh((η − y)/c)``: quadratic near the label, with a slope of at most ``c``."""

    width: float = 1.0
    name: ClassVar[str] = "log_cosh"

    @property
    def labels(self):
        return LabelSet()

    @property
    def curve(self):
        c = self.width
        return DerivativeCurve(
            max_slope=c, curvature=lambda m: 1.0 - np.minimum(m / c, 1.0) ** 2, peak=0.0, sign_fixed=False
        )

    def value(self, eta, y):
        r = np.abs(eta - y) / self.width
        return self.width**2 * (r + np.log1p(np.exp(-2.0 * r)) - np.log(2.0))

    def derivatives(self, eta, y):
        slope = np.tanh((eta - y) / self.width)
        return self.width * slope, 1.0 - slope**2


@dataclass(frozen=True)
class Direction(VectorLoss):
    """``√(1 + ‖η − (cos y, sin y)‖²) − 1``: how far two predictors are from an angle on the circle."""

    longest: float = 1.0
    factor_scale: float = 1.0
    name: ClassVar[str] = "direction"

    @property
    def outputs(self):
        return 2

    @property
    def labels(self):
        return LabelSet(-3.0, 3.0)

    @property
    def curve(self):
        return DerivativeCurve(
            max_slope=self.longest,
            curvature=lambda m: np.sqrt(np.maximum(1.0 - m**2, 0.0)),
            peak=0.0,
            sign_fixed=False,
            outputs=2,
            rank=2,
        )

    def _residual(self, eta, y):
        return eta - np.column_stack([np.cos(y), np.sin(y)])

    def value(self, eta, y):
        r = self._residual(eta, y)
        return np.sqrt(1.0 + np.sum(r**2, axis=1)) - 1.0

    def derivatives(self, eta, y):
        r = self._residual(eta, y)
        s = np.sqrt(1.0 + np.sum(r**2, axis=1))
        # (I - rr'/s²)/s is the square of what follows, up to its scale.
        share = (1.0 - 1.0 / s) / np.maximum(np.sum(r**2, axis=1), 1e-300)
        root = np.eye(2) - share[:, None, None] * r[:, :, None] * r[:, None, :]
        return r / s[:, None], self.factor_scale * root / np.sqrt(s)[:, None, None]
