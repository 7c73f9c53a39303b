"""The interface of a loss of several linear predictors."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from expost._common.namespaces import namespace_of
from expost._common.typing import FloatArray
from expost.losses.base import DerivativeCurve, Loss, PredictorLoss
from expost.losses.records import RowRecords, by_columns, derivatives_of
from expost.losses.softmax_curve import SoftmaxCurve

# Matrices of the size of a record's Hessian in its predictors that are held for each record.
_FACTORS = 12
# Up to how many columns a Hessian is one product with all products of two entries of a row.
_MOST_MONOMIALS = 128


@dataclass(frozen=True, eq=False)
class _PredictorRecords(RowRecords):
    r"""Records of :math:`k` linear predictors: :math:`g = v \otimes x` and :math:`F \otimes x`.

    .. math:: \sum_iF_iF_i^\top \otimes x_ix_i^\top, \qquad N = F^\top GF, \quad G_{ab} = x^\top(H^{-1})_{ab}x

    Coefficients are one vector, predictor by predictor.
    """

    loss: "VectorLoss"
    eta: FloatArray
    """The predictors of each record."""
    y: FloatArray
    weights: FloatArray | None

    @cached_property
    def _derivatives(self) -> tuple[FloatArray, FloatArray]:
        """Gradients in the predictors, and factors of the Hessians in them."""
        gradient, factor = derivatives_of(self.loss, self.eta, self.y)
        if self.weights is None:
            return gradient, factor
        root = namespace_of(self.weights).sqrt(self.weights)
        return self.weights[:, None] * gradient, root[:, None, None] * factor

    def __len__(self) -> int:
        return int(self.eta.shape[0])

    @property
    def gradient(self) -> Any:
        xp, slopes = namespace_of(self.eta), self._derivatives[0]
        return xp.reshape(slopes[:, :, None] * self.rows.encoded()[:, None, :], (len(self), -1))

    def total(self) -> Any:
        return namespace_of(self.eta).reshape(self.rows.summed(self._derivatives[0]), (-1,))

    def size(self, reach: float, length: float) -> Any:
        xp, factor = namespace_of(self.eta), self._derivatives[1]
        return reach * (xp.sum(self.slope) + reach * length * xp.sum(factor * factor))

    def add_hessian(self, squares: Any) -> None:
        """Add the blocks on and to the right of the diagonal, one row of them after the other."""
        xp, outputs, columns = namespace_of(self.eta), self.loss.outputs, self.rows.columns
        narrow = xp.astype(self.rows.encoded(), squares.precision, copy=False)
        if xp is np and columns <= _MOST_MONOMIALS:
            weights = self.loss.upper_hessians(self.eta, self.y)
            if self.weights is not None:
                weights = self.weights[:, None] * weights
            squares.add_products(weights.astype(narrow.dtype), narrow)
            return
        factor = self._derivatives[1]
        bend = xp.astype(factor @ xp.matrix_transpose(factor), squares.precision, copy=False)
        for a in range(outputs):
            part = bend[:, a, a:][:, :, None] * narrow[:, None, :]
            squares.add_strip(a * columns, narrow.T @ xp.reshape(part, (-1, (outputs - a) * columns)))

    def product(self, direction: FloatArray) -> Any:
        """The Hessian times a vector: two products with the rows, and two with each factor between them."""
        xp, factor = namespace_of(self.eta), self._derivatives[1]
        bent = factor @ (xp.matrix_transpose(factor) @ self._predictors(direction)[:, :, None])
        return xp.reshape(self.rows.summed(bent[:, :, 0]), (-1,))

    def along(self, direction: FloatArray) -> Any:
        return namespace_of(self.eta).vecdot(self._derivatives[0], self._predictors(direction))

    def leverages(self, root: FloatArray) -> Any:
        factor, forms = self._derivatives[1], self.rows.forms_under(root, self.loss.outputs)
        return namespace_of(forms).matrix_transpose(factor) @ forms @ factor

    def coordinates(self, basis: FloatArray) -> Any:
        """The factors' coordinates: each predictor's part of the basis times the row, then the factor."""
        xp, factor, outputs = namespace_of(self.eta), self._derivatives[1], self.loss.outputs
        parts = xp.permute_dims(xp.reshape(basis, (outputs, self.rows.columns, -1)), (1, 0, 2))
        rotated = self.rows @ xp.reshape(parts, (self.rows.columns, -1))
        return xp.matrix_transpose(factor) @ xp.reshape(rotated, (len(self), outputs, -1))

    def _predictors(self, vector: FloatArray) -> Any:
        return self.rows @ by_columns(vector, self.loss.outputs)

    @cached_property
    def slope(self) -> Any:
        return namespace_of(self.eta).linalg.vector_norm(self._derivatives[0], axis=1)

    @property
    def steepness(self) -> Any:
        """The loss's own steepness, or the slope where it has none."""
        own = self.loss.steepness(self.eta, self.y)
        return self.slope if own is None else self._weighted(own)

    @cached_property
    def hessian_norm(self) -> Any:
        return self._weighted(self.loss.curvature_norm(self.eta, self.y)) * self.norm**2

    def log_determinant(self, l2: float) -> FloatArray:
        return self.scaled_determinant(self.norm**2 / l2)

    def scaled_determinant(self, scale: FloatArray) -> FloatArray:
        r""":math:`\log\det(I + s\omega\nabla^2f)` of each record, with a scale :math:`s` of its own."""
        return self.loss.log_determinant(self.eta, self.y, self._weighted(scale))

    @cached_property
    def reduced_weights(self) -> FloatArray:
        return self._weighted(self.loss.smallest_mass(self.eta, self.y))

    def _weighted(self, values: FloatArray) -> FloatArray:
        return values if self.weights is None else self.weights * values


class VectorLoss(PredictorLoss):
    r"""A convex, twice differentiable loss of :math:`k` linear predictors.

    .. math:: \ell(w; x, y) = f(wx; y), \qquad w \in R^{k\times d}, \qquad
              \nabla\ell = v \otimes x, \quad \nabla^2\ell = FF^\top \otimes xx^\top

    with :math:`v = \nabla f` and a factor :math:`F` of the Hessian of :math:`f`, :math:`k` rows and as many
    columns as the loss likes. The coefficients are one vector, predictor by predictor: the :math:`d`
    coefficients of the first, then those of the second.

    To add one, write a frozen dataclass that sets ``name`` and defines what is abstract below, then run
    :func:`expost.check_loss` on it. ``eta`` has one row per record and one column per predictor. The two
    ``derivatives`` are the gradients, records by predictors, and the factors, records by predictors by
    columns. Everything must stay finite for entries up to 1e4.
    """

    @property
    @abstractmethod
    def curve(self) -> DerivativeCurve | SoftmaxCurve:
        r"""What gradients and Hessians are attainable: all that accounting needs.

        A loss of one's own bounds the length of the gradient and, at each length, the largest eigenvalue of
        the Hessian (:class:`~expost.losses.base.DerivativeCurve` with ``outputs`` and ``rank``).
        """

    def steepness(self, eta: FloatArray, y: FloatArray) -> FloatArray | None:
        """What goes with the law of the noise along each record, where that is not the gradient's length."""
        return None

    def smallest_mass(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        """A number below every eigenvalue of the Hessian, which a loss has that can be reduced."""
        raise NotImplementedError

    def log_determinant(self, eta: FloatArray, y: FloatArray, scale: FloatArray) -> FloatArray:
        r""":math:`\log\det(I + s\nabla^2 f)` of each record, with a scale :math:`s \ge 0` of its own."""
        xp = namespace_of(eta)
        eigenvalues = xp.clip(xp.linalg.eigvalsh(self._squares(eta, y)), 0.0, None)
        total: FloatArray = xp.sum(xp.log1p(scale[:, None] * eigenvalues), axis=1)
        return total

    def curvature_norm(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        r"""The Frobenius norm of :math:`\nabla^2 f` of each record."""
        norms: FloatArray = namespace_of(eta).linalg.matrix_norm(self._squares(eta, y))
        return norms

    def upper_hessians(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        """Of the Hessians in the predictors the entries on the diagonal and right of it; NumPy's only."""
        factor = self.derivatives(eta, y)[1]
        first, second = np.triu_indices(self.outputs)
        entries: FloatArray = (factor @ factor.swapaxes(1, 2))[:, first, second]
        return entries

    def _squares(self, eta: FloatArray, y: FloatArray) -> Any:
        factor = derivatives_of(self, eta, y)[1]
        return namespace_of(eta).matrix_transpose(factor) @ factor

    def at(self, theta: FloatArray, block: Any) -> _PredictorRecords:
        """The records of a block at coefficients."""
        eta = block.X @ by_columns(theta, self.outputs)
        return _PredictorRecords(block.X, self.for_rows(block.X), eta, block.y, block.weights)

    def numbers_held(self, columns: int, *, hessian: bool = False) -> int:
        """Some matrices in the predictors; with a Hessian the row's products with its weights or itself."""
        more = 2 * (self.outputs + 1) * columns
        if columns <= _MOST_MONOMIALS:
            more = max(more, columns * (columns + 1) // 2)
        return _FACTORS * self.outputs**2 + (more if hessian else 0)

    @property
    def factor_columns(self) -> int:  # type: ignore[override]  # an attribute of the base
        """The columns of a factor: at most one more than there are predictors."""
        return self.outputs + 1


AnyLoss: TypeAlias = Loss | VectorLoss
"""A loss of one linear predictor or of several."""
