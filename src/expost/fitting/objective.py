"""The perturbed objective and its derivatives, each in one pass over the rows."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import DTypeLike

from expost._common.typing import FloatArray
from expost.data.blocks import Block
from expost.data.encoded import Encoded
from expost.engines.base import Pass
from expost.fitting.derivatives import CurvatureProduct, Curvatures, Derivatives, ProductAt, Sums, total
from expost.losses import AnyLoss, Loss, predictors
from expost.losses.regularizers import Regularizer

_EPS = np.finfo(np.float64).eps


@dataclass(frozen=True)
class Evaluation:
    """What one pass over the rows found at one point; private."""

    gradient: FloatArray
    """Gradient of the objective without its linear term."""
    tilted_gradient: FloatArray
    """Gradient of the whole perturbed objective; zero at its minimum."""
    norm: float
    """Euclidean norm of ``tilted_gradient``."""
    floor: float
    """How far rounding alone may have moved ``tilted_gradient``."""
    hessian: FloatArray | None
    """Hessian, where it was asked for."""
    rows_hessian: FloatArray | None
    """The part of it that the rows have."""
    precise: bool
    """Whether there is a Hessian and it is in double precision throughout."""
    of_fewer_rows: bool = False
    """Whether some rows stand for all of them."""


class Objective:
    r"""The objective of objective perturbation, a sum and never a mean.

    .. math:: J(\theta; D) + b^\top\theta, \qquad
              J(\theta; D) = \sum_i \omega_i f(\tilde x_i^\top\theta; y_i) + r(\theta)
              + \frac{\lambda}{2}\|\theta\|^2

    The weights :math:`\omega_i` are 1 where none are given. This is the only place where the scaling of the
    terms is decided (Redberg and Wang 2021, Section "Objective Perturbation").

    Privacy
    -------
    Everything computed here is private, the number of passes included.
    """

    def __init__(
        self,
        records: Encoded,
        loss: AnyLoss,
        *,
        l2: float,
        regularizer: Regularizer | None = None,
        tilt: FloatArray | None = None,
    ) -> None:
        self.dimension = records.design.dimension * predictors(loss)
        self.columns = records.design.dimension
        self._records = records
        self._loss = loss
        self._l2 = l2
        self._regularizer = regularizer
        self._tilt = np.zeros(self.dimension) if tilt is None else tilt
        self._stand_for: int | None = None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self._records.n_rows

    @property
    def product_width(self) -> int:
        """How many numbers a row has in a product with a vector."""
        return self._records.product_width

    def thinned(self, every: int) -> Self:
        """The objective of each ``every``-th block of rows, which stand for all of them: for warm starts."""
        thin = copy(self)
        thin._records = self._records.thinned(every)
        thin._stand_for = self.n_rows
        return thin

    def evaluate(self, theta: FloatArray, *, hessian: DTypeLike | None = None) -> Evaluation:
        """Gradient at ``theta`` and, in the given precision, the Hessian, in one pass.

        The products of a single-precision Hessian are summed in single precision within a group of
        rows and in double precision across groups (:class:`~expost.fitting.gram.Gram`).
        """
        # Warm starts take the same blocks in every pass, whatever the pass is for.
        products = hessian is None and self._stand_for is None
        width = self._records.product_width if products else self.dimension
        sums = total(
            self._records.sweep(self._derivatives(theta, hessian), width=width, products=hessian is None)
        )
        if self._stand_for is not None:
            sums.rescale_to(self._stand_for)
        gradient = sums.gradient + self._l2 * theta
        square = None if sums.hessian is None else sums.hessian.copy()
        if square is not None:
            square.flat[:: self.dimension + 1] += self._l2
        if self._regularizer is not None:
            gradient += self._regularizer.gradient(theta)
            if square is not None:
                square += self._regularizer.hessian(theta)
        tilted = gradient + self._tilt
        return Evaluation(
            gradient=gradient,
            tilted_gradient=tilted,
            norm=float(np.linalg.norm(tilted)),
            floor=self._rounding_floor(theta, sums),
            hessian=square,
            rows_hessian=sums.hessian,
            precise=hessian == np.float64,
            of_fewer_rows=self._stand_for is not None,
        )

    def curvature_product(self, theta: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """The Hessian at ``theta`` as a function that multiplies a vector, one pass over the rows a time."""
        assert isinstance(self._loss, Loss)
        loss, records = self._loss, self._records
        curvatures = None  # found again in every pass, unless the rows are held too
        if records.in_memory:
            curvatures = list(records.sweep(Curvatures(loss, theta), products=True))

        def product(direction: FloatArray) -> FloatArray:
            work = CurvatureProduct(direction) if curvatures else ProductAt(loss, theta, direction)
            result = self._l2 * direction
            for part in records.sweep(work, products=True, beside=curvatures):
                result += part
            if self._regularizer is not None:
                result += self._regularizer.hessian_product(theta, direction)
            return result

        return product

    def _derivatives(self, theta: FloatArray, precision: DTypeLike | None) -> Pass[Block, Sums]:
        assert isinstance(self._loss, Loss)
        return Derivatives(self._loss, theta, precision)

    def _rounding_floor(self, theta: FloatArray, sums: Sums) -> float:
        """How far rounding may move the gradient: each summand by a few units of itself and its predictor."""
        radius, length = self._records.design.radius, float(np.linalg.norm(theta))
        size = radius * (sums.slopes + sums.curvatures * radius * length) + self._l2 * length
        return 4.0 * float(_EPS) * (size + float(np.linalg.norm(self._tilt)))
