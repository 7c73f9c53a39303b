"""Regularisers other than the quadratic one: convex, twice differentiable functions of the coefficients."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import check_positive


class Regularizer(ABC):
    r"""A convex, twice differentiable function :math:`r(\theta)` added to the objective.

    It never sees the table, so it costs no privacy; its Hessian at the released coefficients is public.
    It applies to the intercept too.
    """

    @abstractmethod
    def value(self, theta: FloatArray) -> float:
        r""":math:`r(\theta)`."""

    @abstractmethod
    def gradient(self, theta: FloatArray) -> FloatArray:
        """The gradient, as long as ``theta``."""

    @abstractmethod
    def hessian(self, theta: FloatArray) -> FloatArray:
        """The Hessian, a square matrix."""

    @abstractmethod
    def hessian_product(self, theta: FloatArray, direction: FloatArray) -> FloatArray:
        """The Hessian times a vector, for dimensions where the matrix is too large."""


@dataclass(frozen=True)
class SmoothedL1(Regularizer):
    r"""The absolute value with its corner rounded, which pulls small coefficients towards zero.

    .. math:: r(\theta) = w \sum_j \left(\sqrt{\theta_j^2 + s^2} - s\right)

    Parameters
    ----------
    weight
        :math:`w`, the slope far from zero.
    scale
        :math:`s`, the width of the rounded corner; it tends to :math:`w\|\theta\|_1` as ``scale`` falls.

    Examples
    --------
    >>> SmoothedL1(weight=2.0, scale=1e-9).value(np.array([3.0, -4.0]))
    13.99999999...
    """

    weight: float
    scale: float = 0.1

    def __post_init__(self) -> None:
        check_positive("weight", self.weight)
        check_positive("scale", self.scale)

    def value(self, theta: FloatArray) -> float:
        """The sum of the rounded absolute values."""
        return float(self.weight * np.sum(np.hypot(theta, self.scale) - self.scale))

    def gradient(self, theta: FloatArray) -> FloatArray:
        """``weight * theta / sqrt(theta² + scale²)``."""
        gradient: FloatArray = self.weight * theta / np.hypot(theta, self.scale)
        return gradient

    def hessian(self, theta: FloatArray) -> FloatArray:
        """A diagonal matrix."""
        return np.diag(self._curvature(theta))

    def hessian_product(self, theta: FloatArray, direction: FloatArray) -> FloatArray:
        """The diagonal times the vector."""
        return self._curvature(theta) * direction

    def _curvature(self, theta: FloatArray) -> FloatArray:
        root = np.hypot(theta, self.scale)
        curvature: FloatArray = self.weight * (self.scale / root) ** 2 / root
        return curvature
