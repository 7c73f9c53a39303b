"""Half the squared error, which has exact per-person losses but no worst case."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from expost._common.namespaces import namespace_of
from expost._common.typing import FloatArray
from expost.losses.base import DerivativeCurve, LabelSet, Loss


@dataclass(frozen=True)
class SquaredLoss(Loss):
    r"""Half the squared error.

    .. math:: f(\eta; y) = (\eta - y)^2/2, \quad f' = \eta - y, \quad f'' = 1

    Its slope is unbounded, so no noise scale gives a worst-case guarantee, and the user must give ``sigma``
    and ``l2``. Exact losses after the fact still exist, and so do bounds on them.
    """

    name: ClassVar[str] = "squared"
    in_any_namespace: ClassVar[bool] = True

    @property
    def labels(self) -> LabelSet:
        """Every real number."""
        return LabelSet()

    @property
    def curve(self) -> DerivativeCurve:
        """Curvature one at every slope, and no largest slope."""
        return DerivativeCurve(max_slope=math.inf, curvature=np.ones_like, peak=0.0, sign_fixed=False)

    def value(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        """``(eta - y)² / 2``."""
        return 0.5 * (eta - y) ** 2

    def derivatives(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the residual, and one."""
        residual = eta - y
        return residual, namespace_of(residual).ones_like(residual)
