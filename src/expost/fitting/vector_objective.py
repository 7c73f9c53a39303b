"""The perturbed objective of a loss of several linear predictors, and which objective a loss has."""

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from expost._common.parallel import map_spans
from expost._common.typing import FloatArray
from expost.data.design import Design
from expost.fitting.objective import Objective, Sums
from expost.losses import AnyLoss, SoftmaxLoss, VectorLoss, predictors, weighted_factors
from expost.losses.regularizers import Regularizer


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
        design: Design,
        y: FloatArray,
        loss: VectorLoss,
        *,
        l2: float,
        regularizer: Regularizer | None = None,
        tilt: FloatArray | None = None,
        weights: FloatArray | None = None,
    ) -> None:
        super().__init__(design, y, loss, l2=l2, regularizer=regularizer, tilt=tilt, weights=weights)
        self._vector_loss = loss
        self._shape = (loss.outputs, design.dimension)

    def curvature_product(self, theta: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Hessian at ``theta`` as a function that multiplies a vector, one pass over the rows a time."""
        coefficients = theta.reshape(self._shape)

        def product(direction: FloatArray) -> FloatArray:
            along = direction.reshape(self._shape)

            def work(slices: list[slice]) -> FloatArray:
                total = np.zeros(self._shape)
                for block, rows in self._design.products(slices):
                    _, factor = self._factors(rows @ coefficients.T, block)
                    moved = rows @ along.T
                    bent = factor @ (np.swapaxes(factor, 1, 2) @ moved[:, :, None])
                    total += bent[:, :, 0].T @ rows
                return total

            result = self._l2 * direction
            for part in map_spans(self.n_rows, self.dimension, work):
                result += part.ravel()
            if self._regularizer is not None:
                result += self._regularizer.hessian_product(theta, direction)
            return result

        return product

    def reduced_hessian(self, theta: FloatArray) -> FloatArray:
        r""":math:`\sum_i\omega_iP_ix_ix_i^\top` of the softmax loss, of the smallest masses."""
        loss, coefficients = self._vector_loss, theta.reshape(self._shape)
        assert isinstance(loss, SoftmaxLoss)

        def work(slices: list[slice]) -> FloatArray:
            total = np.zeros((self.columns, self.columns))
            for block, rows in self._design.blocks(slices):
                mass = loss.smallest_mass(rows @ coefficients.T, self._y[block])
                if self._weights is not None:
                    mass = self._weights[block] * mass
                total += (rows * mass[:, None]).T @ rows
            return total

        total: FloatArray = np.sum(map_spans(self.n_rows, self.columns, work), axis=0)
        return total

    def _factors(self, eta: FloatArray, block: slice) -> tuple[FloatArray, FloatArray]:
        weights = None if self._weights is None else self._weights[block]
        return weighted_factors(self._vector_loss, eta, self._y[block], weights)

    def _pass(self, theta: FloatArray, slices: list[slice], precision: DTypeLike | None) -> Sums:
        outputs, columns = self._shape
        square = None if precision is None else np.zeros((self.dimension, self.dimension))
        sums = Sums(np.zeros(self.dimension), square)
        coefficients, total = theta.reshape(self._shape), np.zeros(self._shape)
        longest = max((block.stop - block.start for block in slices), default=0)
        buffer = np.empty(0 if square is None else longest * self.dimension, dtype=precision or np.float64)
        read = self._design.products if precision is None else self._design.blocks
        for block, rows in read(slices):
            gradient, factor = self._factors(rows @ coefficients.T, block)
            total += gradient.T @ rows
            sums.slopes += float(np.sum(np.sqrt(np.vecdot(gradient, gradient))))
            sums.curvatures += float(np.sum(factor**2))  # the traces
            sums.rows += len(rows)
            if sums.hessian is not None:
                assert isinstance(rows, np.ndarray)
                bend = (factor @ np.swapaxes(factor, 1, 2)).astype(precision)
                narrow = rows.astype(precision, copy=False)
                for a in range(outputs):
                    # The blocks to the right of the diagonal in one product; those below it are their mirror.
                    part = buffer[: len(rows) * (outputs - a) * columns]
                    part = part.reshape(len(rows), outputs - a, columns)
                    np.multiply(bend[:, a, a:, None], narrow[:, None, :], out=part)
                    here = slice(a * columns, (a + 1) * columns)
                    sums.hessian[here, a * columns :] += narrow.T @ part.reshape(len(rows), -1)
        sums.gradient += total.ravel()
        if sums.hessian is not None:
            upper = np.triu(sums.hessian)
            sums.hessian[:] = upper + np.triu(upper, 1).T
        return sums


def coefficient_count(design: Design, loss: AnyLoss) -> int:
    """How many coefficients a model has: one per feature, intercept included, and per linear predictor."""
    return design.dimension * predictors(loss)


def objective_of(
    design: Design,
    y: FloatArray,
    loss: AnyLoss,
    *,
    l2: float,
    regularizer: Regularizer | None = None,
    tilt: FloatArray | None = None,
    weights: FloatArray | None = None,
) -> Objective:
    """The objective of a loss of one linear predictor or of several."""
    if isinstance(loss, VectorLoss):
        return VectorObjective(design, y, loss, l2=l2, regularizer=regularizer, tilt=tilt, weights=weights)
    return Objective(design, y, loss, l2=l2, regularizer=regularizer, tilt=tilt, weights=weights)
