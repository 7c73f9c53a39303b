"""The perturbed objective and its derivatives, each in one pass over the rows."""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import reduce
from operator import add, iadd
from typing import Self

import numpy as np
from numpy.typing import DTypeLike

from expost._common.namespaces import HERE, Space, on_host
from expost._common.typing import FloatArray
from expost.data.blocks import Block
from expost.data.encoding import Encoded
from expost.data.rows import row_blocks
from expost.engines.base import Kernel
from expost.fitting.gram import Gram
from expost.losses import Loss, RecordLoss, Regularizer
from expost.losses.base import LinearRecords

_EPS = np.finfo(np.float64).eps


@dataclass
class Sums:
    """What a pass adds up over its records."""

    gradient: FloatArray
    hessian: FloatArray | None
    size: float
    """What rounding moves the gradient by, in units of the last place."""
    rows: int

    def __iadd__(self, other: Self) -> Self:
        self.gradient += other.gradient
        if self.hessian is not None and other.hessian is not None:
            self.hessian += other.hessian
        self.size += other.size
        self.rows += other.rows
        return self

    def rescale_to(self, rows: int) -> None:
        """Let the records that were seen stand for all of them."""
        weight = rows / self.rows
        self.gradient *= weight
        if self.hessian is not None:
            self.hessian *= weight
        self.size *= weight


@dataclass(frozen=True, eq=False)
class Derivatives(Kernel[Sums]):
    """The pass that adds up gradients and, in a given precision, Hessians at ``theta``."""

    loss: RecordLoss
    theta: FloatArray
    columns: int
    radius: float
    precision: DTypeLike | None = None

    def __call__(self, blocks: Iterator[Block], space: Space = HERE) -> Sums:
        """The sums over the blocks, which stay where the rows are until the end."""
        theta, length = space.put(self.theta), float(np.linalg.norm(self.theta))
        gradient, size, rows = space.zeros(len(self.theta)), space.zeros(1), 0
        gram = None if self.precision is None else Gram(len(self.theta), self.precision, space)
        held = self.loss.numbers_held(self.columns, hessian=gram is not None)
        # What leaves the range of a precision is found by the solver, which then takes another.
        with np.errstate(over="ignore", invalid="ignore"):
            for block in row_blocks(blocks, held):
                records = self.loss.at(theta, block)
                gradient += records.total()
                size += records.size(self.radius, length)
                rows += len(records)
                if gram is not None:
                    records.add_hessian(gram)
        square = None if gram is None else gram.matrix()
        return Sums(on_host(gradient), square, float(on_host(size)[0]), rows)


@dataclass(frozen=True, eq=False)
class Curvatures(Kernel[FloatArray]):
    """The pass that finds the second derivative of every record at ``theta``, for one linear predictor."""

    loss: Loss
    theta: FloatArray

    def __call__(self, blocks: Iterator[Block], space: Space = HERE) -> FloatArray:
        """The curvatures of the part's records, in their order."""
        theta = space.put(self.theta)
        found = [self.loss.at(theta, block).curvature for block in row_blocks(blocks)]
        return on_host(space.xp.concat([space.zeros(0), *found]))


@dataclass(frozen=True, eq=False)
class CurvatureProduct(Kernel[FloatArray]):
    """The pass that multiplies the Hessian of the records at ``theta`` by a direction."""

    loss: RecordLoss
    theta: FloatArray
    columns: int
    direction: FloatArray
    known: bool = False
    """Whether the curvatures of the records are in the place of their labels."""

    def __call__(self, blocks: Iterator[Block], space: Space = HERE) -> FloatArray:
        """The sum over the blocks."""
        theta, direction, total = *map(space.put, (self.theta, self.direction)), space.zeros(len(self.theta))
        for block in row_blocks(blocks, self.loss.numbers_held(self.columns)):
            at = LinearRecords(block.X, block.y, block.y) if self.known else self.loss.at(theta, block)
            total += at.product(direction)
        return on_host(total)


@dataclass(frozen=True, eq=False)
class ReducedHessian(Kernel[FloatArray]):
    """The pass that adds up the squares of the rows, each times its weight in a reduced Hessian."""

    loss: RecordLoss
    theta: FloatArray
    columns: int

    def __call__(self, blocks: Iterator[Block], space: Space = HERE) -> FloatArray:
        """The sum over the blocks."""
        theta, gram = space.put(self.theta), Gram(self.columns, space=space)
        for block in row_blocks(blocks, self.loss.numbers_held(self.columns)):
            gram.add(block.X, self.loss.at(theta, block).reduced_weights)
        return gram.matrix()


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
              J(\theta; D) = \sum_i \omega_i\ell(\theta; z_i) + r(\theta) + \frac{\lambda}{2}\|\theta\|^2

    The weights :math:`\omega_i` are 1 where none are given. This is the only place where the scaling of the
    terms is decided (Redberg and Wang 2021, Section "Objective Perturbation"). Coefficients of several linear
    predictors are one vector, predictor by predictor.

    Privacy
    -------
    Everything computed here is private, the number of passes included.
    """

    def __init__(
        self,
        records: Encoded,
        loss: RecordLoss,
        *,
        l2: float,
        regularizer: Regularizer | None = None,
        tilt: FloatArray | None = None,
    ) -> None:
        self.columns = records.design.dimension
        self.dimension = loss.coefficient_count(self.columns)
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
        work = Derivatives(self._loss, theta, self.columns, self._records.design.radius, hessian)
        sums = reduce(iadd, self._records.sweep(work, width=width, products=hessian is None))
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
            floor=self._rounding_floor(theta, sums.size),
            hessian=square,
            rows_hessian=sums.hessian,
            precise=hessian == np.float64,
            of_fewer_rows=self._stand_for is not None,
        )

    def curvature_product(self, theta: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """The Hessian at ``theta`` as a function that multiplies a vector, one pass over the rows a time."""
        loss, records = self._loss, self._records
        known = False
        if isinstance(loss, Loss) and records.in_memory:  # one number a record, found once for all products
            known = True
            found = list(records.sweep(Curvatures(loss, theta), products=True))
            records = records.labelled(np.concatenate(found))

        def product(direction: FloatArray) -> FloatArray:
            work = CurvatureProduct(loss, theta, self.columns, direction, known)
            result = self._l2 * direction
            for part in records.sweep(work, products=True):
                result += part
            if self._regularizer is not None:
                result += self._regularizer.hessian_product(theta, direction)
            return result

        return product

    def reduced_hessian(self, theta: FloatArray) -> FloatArray:
        """The squares of the rows, each times its weight in a reduced Hessian, added up."""
        return reduce(add, self._records.sweep(ReducedHessian(self._loss, theta, self.columns)))

    def _rounding_floor(self, theta: FloatArray, size: float) -> float:
        """How far rounding may move the gradient: each summand by a few units of itself and its predictor."""
        penalty = self._l2 * float(np.linalg.norm(theta))
        return 4.0 * float(_EPS) * (size + penalty + float(np.linalg.norm(self._tilt)))
