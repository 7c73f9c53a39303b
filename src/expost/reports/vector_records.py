"""What a report reads of a record with several linear predictors, and which records a release has."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from expost._common.namespaces import beside
from expost._common.typing import FloatArray
from expost.fitting.loss_terms import log_determinants
from expost.fitting.release import Release
from expost.losses import SoftmaxLoss, VectorLoss, weighted_derivatives, weighted_factors
from expost.reports.base import Scope
from expost.reports.pencil import Pencil, squares
from expost.reports.records import Records, ScalarRecords, by_mixtures, smallest_ratio


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
        """The Frobenius norm of each record's Hessian."""
        return self.weighted(self.loss.curvature_norm(self.eta, self.y)) * self.norm**2

    def log_determinant(self, l2: float) -> FloatArray:
        """The largest determinant term that needs no data, by the loss's own formula."""
        return self.loss.log_determinant(self.eta, self.y, self.weighted(self.norm**2 / l2))

    def rotated(self, basis: FloatArray) -> FloatArray:
        r"""Of :math:`F \otimes x`: records by columns of the factor by coordinates."""
        outputs, columns = self.loss.outputs, self.rows.shape[1]
        factor = weighted_factors(self.loss, self.eta, self.y, self.weights)[1]
        rows = self.rows @ basis.reshape(outputs, columns, -1)
        return np.swapaxes(factor, 1, 2) @ rows.transpose(1, 0, 2)

    def above(self, pencil: Pencil, weights: FloatArray | float) -> FloatArray:
        r""":math:`\log\det(I + (1-w)C) - \log\det(I - wC)`."""
        coordinates = self.coordinates(pencil.basis)
        largest = np.full(len(coordinates), np.inf)
        shares = np.broadcast_to(weights, pencil.reciprocals.shape[1])
        for share, scale in zip(shares, pencil.reciprocals.T, strict=True):
            forms = _forms(coordinates, scale)
            size = log_determinants((1.0 - share) * forms, 1.0)
            if share > 0.0:
                size -= log_determinants(share * forms, -1.0)
            np.minimum(largest, size, out=largest)
        return largest

    def below(self, pencil: Pencil, *, member: bool) -> FloatArray:
        """The least size of the determinant term, by elimination."""
        forms = _forms(self.coordinates(pencil.basis), pencil.reciprocals[:, 0])
        if not member:
            return log_determinants(forms, 1.0)
        size = -log_determinants(forms, -1.0)
        return np.where(np.isfinite(size), size, 0.0)

    def weighted(self, values: FloatArray) -> FloatArray:
        """Values times the weights of the records."""
        return values if self.weights is None else self.weights * values


@dataclass(frozen=True)
class ReducedRecords(VectorRecords):
    r"""Records of the softmax loss with a reduced Hessian, :math:`\lambda I + \sum_iP_ix_ix_i^\top`.

    The whole Hessian is at least this matrix for every predictor. So with :math:`\mu` the form of a row under
    the inverse of this matrix without the record, the determinant term is at most
    :math:`\log\det(I + \mu A)`; an upper bound of the whole Hessian is not known.
    """

    @cached_property
    def mass(self) -> FloatArray:
        """The smallest mass of each record, times its weight."""
        assert isinstance(self.loss, SoftmaxLoss)
        return self.weighted(self.loss.smallest_mass(self.eta, self.y))

    @cached_property
    def released_norm(self) -> FloatArray:
        """The only eigenvalue of the record's part."""
        return self.mass * self.norm**2

    def rotated(self, basis: FloatArray) -> FloatArray:
        """The squares of the row's coordinates."""
        return squares(self.rows, basis)

    def above(self, pencil: Pencil, weights: FloatArray | float) -> FloatArray:
        r""":math:`\log\det(I + A\mu/(1 - wP\mu))`."""
        forms = pencil.forms(self.coordinates(pencil.basis))
        scale = smallest_ratio(forms, by_mixtures(weights) * self.mass)
        known = np.isfinite(scale)
        largest = self.loss.log_determinant(self.eta, self.y, self.weighted(np.where(known, scale, 0.0)))
        return np.where(known, largest, np.inf)

    def below(self, pencil: Pencil, *, member: bool) -> FloatArray:
        """Zero: no upper bound of the whole Hessian is known."""
        return np.zeros(len(self.norm))


def _forms(coordinates: FloatArray, scale: FloatArray) -> FloatArray:
    """The small matrices of one member of a pencil, positive semi-definite by construction."""
    half = coordinates * np.sqrt(scale)
    return half @ np.swapaxes(half, 1, 2)


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
        kind = ReducedRecords if release.plan.reduced and release.hessian is not None else VectorRecords
        return kind.of(
            loss,
            rows,
            release.coefficients.reshape(shape),
            y,
            weights,
            gradient=None if gradient is None else gradient.reshape(shape),
            every=scope.every,
        )
    slope, curvature = weighted_derivatives(loss, rows @ beside(release.coefficients, rows), y, weights)
    return ScalarRecords.of(rows, slope, curvature, gradient=gradient, every=scope.every)
