"""The perturbed objective and its derivatives, each in one pass over the rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from expost._common.parallel import map_spans
from expost._common.typing import FloatArray
from expost.data.design import Design
from expost.losses import AnyLoss, Loss, predictors, weighted_derivatives
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


@dataclass
class Sums:
    """What a pass adds up over its rows."""

    gradient: FloatArray
    hessian: FloatArray | None
    slopes: float = 0.0
    curvatures: float = 0.0
    rows: int = 0

    def __iadd__(self, other: Self) -> Self:
        self.gradient += other.gradient
        if self.hessian is not None and other.hessian is not None:
            self.hessian += other.hessian
        self.slopes += other.slopes
        self.curvatures += other.curvatures
        self.rows += other.rows
        return self

    def rescale_to(self, rows: int) -> None:
        """Let the rows that were seen stand for all of them."""
        weight = rows / self.rows
        self.gradient *= weight
        if self.hessian is not None:
            self.hessian *= weight
        self.slopes *= weight
        self.curvatures *= weight


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
        design: Design,
        y: FloatArray,
        loss: AnyLoss,
        *,
        l2: float,
        regularizer: Regularizer | None = None,
        tilt: FloatArray | None = None,
        weights: FloatArray | None = None,
    ) -> None:
        self.dimension, self.columns = design.dimension * predictors(loss), design.dimension
        self.n_rows = design.n_rows
        self._design = design
        self._y = y
        self._weights = weights
        self._loss = loss
        self._l2 = l2
        self._regularizer = regularizer
        self._tilt = np.zeros(self.dimension) if tilt is None else tilt

    def evaluate(self, theta: FloatArray, *, hessian: DTypeLike | None = None, every: int = 1) -> Evaluation:
        """Gradient at ``theta`` and, in the given precision, the Hessian, in one pass.

        The products of a single-precision Hessian are summed in single precision within a block of
        rows and in double precision across blocks. ``every`` keeps only each ``every``-th block of rows,
        weighted up, for warm starts.
        """

        def work(slices: list[slice]) -> Sums:
            # What leaves the range of a precision is found by the solver, which then takes another.
            with np.errstate(over="ignore", invalid="ignore"):
                return self._pass(theta, slices[::every], hessian)

        # Warm starts take the same blocks in every pass, whatever the pass is for.
        width = self._design.product_width if hessian is None and every == 1 else self.dimension
        sums, *others = map_spans(self.n_rows, width, work)
        for other in others:
            sums += other
        sums.rescale_to(self.n_rows)
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
        )

    def curvature_product(self, theta: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """The Hessian at ``theta`` as a function that multiplies a vector, one pass over the rows a time."""
        curvatures = np.empty(self.n_rows)

        def weigh(slices: list[slice]) -> None:
            for block, rows in self._design.products(slices):
                curvatures[block] = self._derivatives(rows @ theta, block)[1]

        map_spans(self.n_rows, self._design.product_width, weigh)

        def product(direction: FloatArray) -> FloatArray:
            def work(slices: list[slice]) -> FloatArray:
                total = np.zeros(self.dimension)
                for block, rows in self._design.products(slices):
                    total += (curvatures[block] * (rows @ direction)) @ rows
                return total

            result = self._l2 * direction
            for part in map_spans(self.n_rows, self._design.product_width, work):
                result += part
            if self._regularizer is not None:
                result += self._regularizer.hessian_product(theta, direction)
            return result

        return product

    def _derivatives(self, eta: FloatArray, block: slice) -> tuple[FloatArray, FloatArray]:
        assert isinstance(self._loss, Loss)
        weights = None if self._weights is None else self._weights[block]
        return weighted_derivatives(self._loss, eta, self._y[block], weights)

    def _rounding_floor(self, theta: FloatArray, sums: Sums) -> float:
        """How far rounding may move the gradient: each summand by a few units of itself and its predictor."""
        radius, length = self._design.radius, float(np.linalg.norm(theta))
        size = radius * (sums.slopes + sums.curvatures * radius * length) + self._l2 * length
        return 4.0 * float(_EPS) * (size + float(np.linalg.norm(self._tilt)))

    def _pass(self, theta: FloatArray, slices: list[slice], precision: DTypeLike | None) -> Sums:
        square = None if precision is None else np.zeros((self.dimension, self.dimension))
        sums = Sums(np.zeros(self.dimension), square)
        scaled: NDArray[Any] | None = None
        read = self._design.products if precision is None else self._design.blocks
        for block, rows in read(slices):
            slope, curvature = self._derivatives(rows @ theta, block)
            sums.gradient += slope @ rows
            sums.slopes += float(np.sum(np.abs(slope)))
            sums.curvatures += float(np.sum(curvature))
            sums.rows += len(slope)
            if sums.hessian is not None:
                assert isinstance(rows, np.ndarray)
                if scaled is None:  # the first block is the longest
                    scaled = np.empty(rows.shape, dtype=precision)
                part = scaled[: len(rows)]
                np.copyto(part, rows, casting="same_kind")
                part *= np.sqrt(curvature).astype(precision)[:, None]
                sums.hessian += part.T @ part  # BLAS sees the symmetry and does half the work
        return sums
