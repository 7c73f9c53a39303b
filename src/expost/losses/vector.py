"""The interface of a loss of several linear predictors."""

from abc import ABC, abstractmethod
from typing import ClassVar, TypeAlias

import numpy as np

from expost._common.namespaces import Space, is_foreign, namespace_of, on_host
from expost._common.typing import FloatArray
from expost.losses.base import DerivativeCurve, LabelSet, Loss
from expost.losses.softmax_curve import SoftmaxCurve


class VectorLoss(ABC):
    r"""A convex, twice differentiable loss of :math:`k` linear predictors.

    .. math:: \ell(w; x, y) = f(wx; y), \qquad w \in R^{k\times d}, \qquad
              \nabla\ell = v \otimes x, \quad \nabla^2\ell = FF^\top \otimes xx^\top

    with :math:`v = \nabla f` and a factor :math:`F` of the Hessian of :math:`f`, :math:`k` rows and as many
    columns as the loss likes. The coefficients are one vector, predictor by predictor: the :math:`d`
    coefficients of the first, then those of the second.

    To add one, write a frozen dataclass that sets ``name`` and defines what is abstract below, then run
    :func:`expost.losses.vector_check.check_vector_loss` on it. ``eta`` has one row per record and one column
    per predictor; everything must stay finite for entries up to 1e4.
    """

    name: ClassVar[str]
    in_any_namespace: ClassVar[bool] = False
    """As :attr:`expost.Loss.in_any_namespace`."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """The number :math:`k` of linear predictors."""

    @property
    @abstractmethod
    def labels(self) -> LabelSet:
        """The labels this loss accepts."""

    @property
    @abstractmethod
    def curve(self) -> DerivativeCurve | SoftmaxCurve:
        r"""What gradients and Hessians are attainable: all that accounting needs.

        A loss of one's own bounds the length of the gradient and, at each length, the largest eigenvalue of
        the Hessian (:class:`~expost.losses.base.DerivativeCurve` with ``outputs`` and ``rank``).
        """

    @abstractmethod
    def value(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        """The loss :math:`f` of each record."""

    @abstractmethod
    def derivatives(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The gradients, records by predictors, and the factors, records by predictors by columns."""

    def log_determinant(self, eta: FloatArray, y: FloatArray, scale: FloatArray) -> FloatArray:
        r""":math:`\log\det(I + s\nabla^2 f)` of each record, with a scale :math:`s \ge 0` of its own."""
        factor = self.derivatives(eta, y)[1]
        grams = np.swapaxes(factor, 1, 2) @ factor
        eigenvalues = np.maximum(np.linalg.eigvalsh(grams), 0.0)
        total: FloatArray = np.sum(np.log1p(scale[:, None] * eigenvalues), axis=1)
        return total

    def curvature_norm(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        r"""The Frobenius norm of :math:`\nabla^2 f` of each record."""
        factor = self.derivatives(eta, y)[1]
        norms: FloatArray = np.linalg.norm(np.swapaxes(factor, 1, 2) @ factor, axis=(1, 2))
        return norms


def weighted_factors(
    loss: VectorLoss, eta: FloatArray, y: FloatArray, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Gradients and factors of the loss times the weight of each record; ``None`` for weights of one."""
    if is_foreign(eta) and not loss.in_any_namespace:
        gradient, factor = map(Space.of(eta).put, loss.derivatives(on_host(eta), on_host(y)))
    else:
        gradient, factor = loss.derivatives(eta, y)
    if weights is None:
        return gradient, factor
    return weights[:, None] * gradient, namespace_of(weights).sqrt(weights)[:, None, None] * factor


AnyLoss: TypeAlias = Loss | VectorLoss
"""A loss of one linear predictor or of several."""


def predictors(loss: AnyLoss) -> int:
    """How many linear predictors a loss has."""
    return loss.outputs if isinstance(loss, VectorLoss) else 1
