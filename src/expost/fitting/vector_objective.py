"""The perturbed objective of a loss of several linear predictors, and which objective a loss has."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from expost._common.namespaces import Space, on_host
from expost._common.typing import FloatArray
from expost.data.blocks import Block
from expost.data.design import Design
from expost.data.encoded import Encoded
from expost.data.placed import short_blocks
from expost.engines.base import Pass
from expost.fitting.derivatives import Sums
from expost.fitting.gram import Gram
from expost.fitting.objective import Objective
from expost.losses import AnyLoss, SoftmaxLoss, VectorLoss, predictors, weighted_factors
from expost.losses.regularizers import Regularizer

# Matrices of the size of a record's Hessian that a kernel holds for each row.
_FACTORS = 8


@dataclass(frozen=True, eq=False)
class VectorDerivatives:
    """The pass that adds up gradients and, in a given precision, Hessians at coefficients of this shape."""

    loss: VectorLoss
    coefficients: FloatArray
    """One row for each linear predictor."""
    precision: DTypeLike | None = None

    def __call__(self, blocks: Iterator[Block]) -> Sums:
        """The sums over the blocks."""
        dimension = self.coefficients.size
        square = None if self.precision is None else np.zeros((dimension, dimension))
        sums, total = Sums(np.zeros(dimension), square), np.zeros(self.coefficients.shape)
        buffer: NDArray[Any] = np.empty(0, dtype=self.precision)
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, y, weights in blocks:
                gradient, factor = weighted_factors(self.loss, rows @ self.coefficients.T, y, weights)
                total += gradient.T @ rows
                sums.slopes += float(np.sum(np.sqrt(np.vecdot(gradient, gradient))))
                sums.curvatures += float(np.sum(factor**2))  # the traces
                sums.rows += len(rows)
                if sums.hessian is not None:
                    if len(buffer) < len(rows) * dimension:
                        buffer = np.empty(len(rows) * dimension, dtype=self.precision)
                    self._add_upper(sums.hessian, factor, rows, buffer)
        sums.gradient += total.ravel()
        if sums.hessian is not None:
            upper = np.triu(sums.hessian)
            sums.hessian[:] = upper + np.triu(upper, 1).T
        return sums

    def in_place(self, blocks: Iterator[Block], space: Space) -> Sums:
        """The same where the rows lie; sums stay there until the end."""
        xp, (outputs, columns), count = space.xp, self.coefficients.shape, 0
        theta, total, sizes = space.put(self.coefficients.T), space.zeros(outputs, columns), space.zeros(2)
        # The blocks on and to the right of the diagonal, one row of them after the other.
        upper = [space.zeros(columns, (outputs - a) * columns) for a in range(outputs)]
        precision = None if self.precision is None else getattr(xp, np.dtype(self.precision).name)
        # With a Hessian, a row times all weights of a row of blocks, twice; without, a few of its factors.
        width = _FACTORS * outputs**2 + (0 if precision is None else 2 * (outputs + 1) * columns)
        for placed, y, weights in short_blocks(blocks, width):
            gradient, factor = weighted_factors(self.loss, placed @ theta, y, weights)
            total += placed.summed(gradient)
            lengths = xp.linalg.vector_norm(gradient, axis=1)
            sizes += xp.stack([xp.sum(lengths), xp.sum(factor * factor)])
            count += int(gradient.shape[0])
            if precision is None:
                continue
            bend = xp.astype(factor @ xp.matrix_transpose(factor), precision, copy=False)
            narrow = xp.astype(placed.encoded(), precision, copy=False)
            for a in range(outputs):
                part = bend[:, a, a:][:, :, None] * narrow[:, None, :]
                square = narrow.T @ xp.reshape(part, (-1, (outputs - a) * columns))
                upper[a] += xp.astype(square, xp.float64, copy=False)
        hessian = None
        if precision is not None:
            hessian = np.zeros((self.coefficients.size, self.coefficients.size))
            for a, block in enumerate(upper):
                hessian[a * columns : (a + 1) * columns, a * columns :] = on_host(block)
            hessian = np.triu(hessian) + np.triu(hessian, 1).T
        slopes, curvatures = on_host(sizes).tolist()
        return Sums(on_host(total).ravel().copy(), hessian, slopes, curvatures, count)

    def _add_upper(
        self, hessian: FloatArray, factor: FloatArray, rows: FloatArray, buffer: NDArray[Any]
    ) -> None:
        """Add the blocks on and to the right of the diagonal; those below it are their mirror."""
        outputs, columns = self.coefficients.shape
        bend = (factor @ np.swapaxes(factor, 1, 2)).astype(self.precision)
        narrow = rows.astype(self.precision, copy=False)
        for a in range(outputs):
            part = buffer[: len(rows) * (outputs - a) * columns].reshape(len(rows), outputs - a, columns)
            np.multiply(bend[:, a, a:, None], narrow[:, None, :], out=part)
            here = slice(a * columns, (a + 1) * columns)
            hessian[here, a * columns :] += narrow.T @ part.reshape(len(rows), -1)


@dataclass(frozen=True, eq=False)
class VectorCurvatureProduct:
    """The pass that multiplies the Hessian of the rows at the coefficients by a direction of their shape."""

    loss: VectorLoss
    coefficients: FloatArray
    direction: FloatArray

    def __call__(self, blocks: Iterator[Block]) -> FloatArray:
        """The sum over the blocks, in the shape of the coefficients."""
        total = np.zeros(self.coefficients.shape)
        for rows, y, weights in blocks:
            _, factor = weighted_factors(self.loss, rows @ self.coefficients.T, y, weights)
            moved = rows @ self.direction.T
            bent = factor @ (np.swapaxes(factor, 1, 2) @ moved[:, :, None])
            total += bent[:, :, 0].T @ rows
        return total

    def in_place(self, blocks: Iterator[Block], space: Space) -> FloatArray:
        """The same where the rows lie."""
        theta, along = space.put(self.coefficients.T), space.put(self.direction.T)
        total, transposed = space.zeros(*self.coefficients.shape), space.xp.matrix_transpose
        for placed, y, weights in short_blocks(blocks, _FACTORS * self.loss.outputs**2):
            _, factor = weighted_factors(self.loss, placed @ theta, y, weights)
            bent = factor @ (transposed(factor) @ (placed @ along)[:, :, None])
            total += placed.summed(bent[:, :, 0])
        return on_host(total)


@dataclass(frozen=True, eq=False)
class ReducedHessian:
    r"""The pass that adds up :math:`\omega_iP_ix_ix_i^\top` of the softmax loss, of the smallest masses."""

    loss: SoftmaxLoss
    coefficients: FloatArray

    def __call__(self, blocks: Iterator[Block]) -> FloatArray:
        """The sum over the blocks."""
        gram = Gram(self.coefficients.shape[1])
        for rows, y, weights in blocks:
            mass = self.loss.smallest_mass(rows @ self.coefficients.T, y)
            if weights is not None:
                mass = weights * mass
            gram.add(rows * np.sqrt(mass)[:, None])
        return gram.matrix()


class VectorObjective(Objective):
    r"""The objective of objective perturbation for :math:`k` linear predictors.

    .. math:: J(w; D) = \sum_i \omega_i f(w\tilde x_i; y_i) + r(w) + \frac{\lambda}{2}\|w\|^2

    .. math:: \nabla^2 J = \sum_i \omega_iF_iF_i^\top \otimes \tilde x_i\tilde x_i^\top + \nabla^2 r
              + \lambda I

    The coefficients are one vector of :math:`kd` numbers, predictor by predictor. A block of rows needs
    memory for its rows times :math:`kd` numbers, and a Hessian :math:`nd^2k(k+1)/2` products.

    Privacy
    -------
    Everything computed here is private, the number of passes included.
    """

    def __init__(
        self,
        records: Encoded,
        loss: VectorLoss,
        *,
        l2: float,
        regularizer: Regularizer | None = None,
        tilt: FloatArray | None = None,
    ) -> None:
        super().__init__(records, loss, l2=l2, regularizer=regularizer, tilt=tilt)
        self._vector_loss = loss
        self._shape = (loss.outputs, self.columns)

    def curvature_product(self, theta: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Hessian at ``theta`` as a function that multiplies a vector, one pass over the rows a time."""
        coefficients = theta.reshape(self._shape)

        def product(direction: FloatArray) -> FloatArray:
            along = direction.reshape(self._shape)
            work = VectorCurvatureProduct(self._vector_loss, coefficients, along)
            result = self._l2 * direction
            for part in self._records.sweep(work, width=self.dimension, products=True):
                result += part.ravel()
            if self._regularizer is not None:
                result += self._regularizer.hessian_product(theta, direction)
            return result

        return product

    def reduced_hessian(self, theta: FloatArray) -> FloatArray:
        r""":math:`\sum_i\omega_iP_ix_ix_i^\top` of the softmax loss, of the smallest masses."""
        assert isinstance(self._vector_loss, SoftmaxLoss)
        total = np.zeros((self.columns, self.columns))
        for part in self._records.sweep(ReducedHessian(self._vector_loss, theta.reshape(self._shape))):
            total += part
        return total

    def _derivatives(self, theta: FloatArray, precision: DTypeLike | None) -> Pass[Block, Sums]:
        return VectorDerivatives(self._vector_loss, theta.reshape(self._shape), precision)


def coefficient_count(design: Design, loss: AnyLoss) -> int:
    """How many coefficients a model has: one per feature, intercept included, and per linear predictor."""
    return design.dimension * predictors(loss)


def objective_of(
    records: Encoded,
    loss: AnyLoss,
    *,
    l2: float,
    regularizer: Regularizer | None = None,
    tilt: FloatArray | None = None,
) -> Objective:
    """The objective of a loss of one linear predictor or of several."""
    if isinstance(loss, VectorLoss):
        return VectorObjective(records, loss, l2=l2, regularizer=regularizer, tilt=tilt)
    return Objective(records, loss, l2=l2, regularizer=regularizer, tilt=tilt)
