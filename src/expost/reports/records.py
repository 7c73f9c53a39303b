"""What a report reads of a record at the released coefficients, for one linear predictor and for several."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from expost._common.typing import FloatArray
from expost.fitting.release import Release
from expost.losses import SoftmaxLoss, VectorLoss, weighted_derivatives
from expost.reports.base import Scope


@dataclass(frozen=True)
class Records(ABC):
    """What the terms of a report ask of a block of records."""

    rows: FloatArray
    norm: FloatArray
    """The Euclidean norm of each encoded row."""
    norm1: FloatArray | None
    """The sum of absolute entries, where every record is covered with one linear predictor."""
    steepness: FloatArray
    """What the noise along a row of norm one is multiplied with (:mod:`expost.reports.laws`)."""
    gradient_norm: FloatArray
    """The Euclidean norm of each record's gradient."""
    along: FloatArray | None
    """The inner product of each gradient with the noisy one, where that is released."""

    @property
    @abstractmethod
    def released_norm(self) -> FloatArray:
        """The Frobenius norm of each record's part in the Hessian that is released."""

    @abstractmethod
    def log_determinant(self, l2: float) -> FloatArray:
        r"""The largest determinant term that needs no data, :math:`\log\det(I + \nabla^2\ell/\lambda)`."""


@dataclass(frozen=True)
class ScalarRecords(Records):
    """Records of a loss of one linear predictor."""

    curvature: FloatArray
    """The second derivative of the weighted loss."""

    @classmethod
    def of(
        cls,
        rows: FloatArray,
        slope: FloatArray,
        curvature: FloatArray,
        *,
        gradient: FloatArray | None = None,
        every: bool = False,
    ) -> Self:
        """From the derivatives of the weighted loss, and the noisy gradient where it is released."""
        norm, steepness = np.sqrt(np.vecdot(rows, rows)), np.abs(slope)
        return cls(
            rows=rows,
            norm=norm,
            norm1=np.sum(np.abs(rows), axis=1) if every else None,
            steepness=steepness,
            gradient_norm=steepness * norm,
            along=None if gradient is None else slope * (rows @ gradient),
            curvature=curvature,
        )

    @property
    def released_norm(self) -> FloatArray:
        """The only eigenvalue of the record's Hessian."""
        return self.curvature * self.norm**2

    def log_determinant(self, l2: float) -> FloatArray:
        r""":math:`\log(1 + \kappa\|x\|^2/\lambda)`."""
        logarithm: FloatArray = np.log1p(self.released_norm / l2)
        return logarithm


@dataclass(frozen=True)
class VectorRecords(Records):
    """Records of a loss of several linear predictors."""

    loss: VectorLoss
    eta: FloatArray
    y: FloatArray
    weights: FloatArray | None

    @classmethod
    def of(
        cls,
        loss: VectorLoss,
        rows: FloatArray,
        coefficients: FloatArray,
        y: FloatArray,
        weights: FloatArray | None,
        *,
        gradient: FloatArray | None = None,
        every: bool = False,
    ) -> Self:
        r"""At coefficients, one row for each linear predictor; the noisy gradient has their shape.

        For softmax the steepness is :math:`\sqrt2q`, unless every record is covered; for any other loss, and
        then, it is the length of the gradient in the predictors.
        """
        eta = rows @ coefficients.T
        slopes = loss.derivatives(eta, y)[0]
        if weights is not None:
            slopes = weights[:, None] * slopes
        norm, steepness = np.sqrt(np.vecdot(rows, rows)), np.sqrt(np.vecdot(slopes, slopes))
        length = steepness * norm
        if isinstance(loss, SoftmaxLoss) and not every:
            steepness = math.sqrt(2.0) * loss.slope(eta, y)
            if weights is not None:
                steepness = weights * steepness
        along = None if gradient is None else np.vecdot(slopes, rows @ gradient.T)
        return cls(rows, norm, None, steepness, length, along, loss, eta, y, weights)

    @cached_property
    def released_norm(self) -> FloatArray:
        """Of the whole Hessian."""
        return self.weighed(self.loss.curvature_norm(self.eta, self.y)) * self.norm**2

    def log_determinant(self, l2: float) -> FloatArray:
        """By the loss's own formula."""
        return self.loss.log_determinant(self.eta, self.y, self.weighed(self.norm**2 / l2))

    def weighed(self, values: FloatArray) -> FloatArray:
        """Values times the weights of the records."""
        return values if self.weights is None else self.weights * values


def records_of(
    release: Release,
    rows: FloatArray,
    y: FloatArray,
    scope: Scope,
    weights: FloatArray | None = None,
) -> Records:
    """What a release's report reads of encoded rows, their labels and their weights."""
    loss, gradient = release.plan.loss, release.gradient
    if isinstance(loss, VectorLoss):
        shape = loss.outputs, rows.shape[1]
        return VectorRecords.of(
            loss,
            rows,
            release.coefficients.reshape(shape),
            y,
            weights,
            gradient=None if gradient is None else gradient.reshape(shape),
            every=scope.every,
        )
    slope, curvature = weighted_derivatives(loss, rows @ release.coefficients, y, weights)
    return ScalarRecords.of(rows, slope, curvature, gradient=gradient, every=scope.every)
