"""The perturbed objective and its derivatives, each in one pass over the rows."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import iadd
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from expost._common.namespaces import HERE, Space, on_host
from expost._common.typing import FloatArray
from expost.data.blocks import Block, RawBlock
from expost.data.encoding import Encoded
from expost.data.rows import row_blocks
from expost.engines.base import Kernel
from expost.fitting import compiled
from expost.fitting.squares import Gram
from expost.losses import RecordLoss, SoftmaxLoss
from expost.losses.base import LinearRecords
from expost.losses.corners import Corners
from expost.losses.softmax import centring

_EPS = np.finfo(np.float64).eps
# Beyond this many columns BLAS is faster in single precision, where that is enough, than kernels in double.
_MOST_IN_DOUBLES = 256


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
    reduced: bool = False
    """Whether the Hessian is the reduced one: the squares of the rows, each times one weight."""

    def __call__(self, blocks: Iterator[Block], space: Space = HERE) -> Sums:
        """The sums over the blocks."""
        theta, length = space.put(self.theta), float(np.linalg.norm(self.theta))
        gradient, size, rows = space.zeros(len(self.theta)), space.zeros(1), 0
        order = self.columns if self.reduced else len(self.theta)
        gram = None if self.precision is None else Gram(order, self.precision, space)
        held = self.loss.numbers_held(self.columns, hessian=gram is not None and not self.reduced)
        # What leaves the range of a precision is found by the solver, which then takes another.
        with np.errstate(over="ignore", invalid="ignore"):
            for block in row_blocks(blocks, held):
                records = self.loss.at(theta, block)
                gradient += records.total()
                size += records.size(self.radius, length)
                rows += len(records)
                if gram is not None and self.reduced:
                    gram.add(block.X, records.reduced_weights)
                elif gram is not None:
                    records.add_hessian(gram)
        square = None if gram is None else gram.matrix()
        return Sums(on_host(gradient), square, float(on_host(size)[0]), rows)

    @property
    def compiles(self) -> bool:
        """For losses of linear predictors, but for some wide Hessians."""
        several = self.precision is None or len(self.theta) <= compiled.MOST_OF_SEVERAL
        rough = self.precision is not None and np.dtype(self.precision) == np.float32
        slower = rough and self.columns > _MOST_IN_DOUBLES
        return compiled.compiles(self.loss, several=several, own=True) and not (self.reduced or slower)

    def compiled(self, blocks: Iterator[RawBlock]) -> Sums:
        """The sums over the blocks; Hessians are in double precision, which takes no longer there."""
        loss: Any = self.loss
        known = compiled.Known.of(loss)
        point = loss.by_predictor(self.theta)
        added = compiled.add_derivatives(blocks, loss, point, hessian=self.precision is not None)
        steepness, weights, _ = added.sizes.tolist()
        bend = self.radius * float(np.linalg.norm(self.theta)) * known.proved.trace * weights
        total = added.total[0]
        if isinstance(loss, SoftmaxLoss):
            total = centring(known.scores).T @ total
        square = None if added.squares is None else known.proved.hessian(added.squares)
        return Sums(total.ravel(), square, self.radius * (steepness + bend), added.rows)


@dataclass(frozen=True, eq=False)
class Curvatures(Kernel[FloatArray]):
    """The pass that finds the second derivative of every record at ``theta``, for one linear predictor."""

    loss: Any
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
        """The sums over the blocks."""
        theta, direction, total = *map(space.put, (self.theta, self.direction)), space.zeros(len(self.theta))
        for block in row_blocks(blocks, self.loss.numbers_held(self.columns)):
            at = LinearRecords(block.X, block.y, block.y) if self.known else self.loss.at(theta, block)
            total += at.product(direction)
        return on_host(total)


@dataclass(frozen=True)
class Evaluation:
    """What one pass over the rows found at one point; private."""

    gradient: FloatArray
    """Gradient of the objective without its linear term."""
    tilted_gradient: FloatArray
    """Gradient of the whole perturbed objective but for its corners."""
    norm: float
    """The length of that gradient, or of its shortest sum with a slope of the corners; zero at the end."""
    floor: float
    """How far rounding alone may have moved ``tilted_gradient``."""
    hessian: FloatArray | None
    rows_hessian: FloatArray | None
    """The part of the Hessian that the rows have; both where asked for."""
    precise: bool
    """Whether there is a Hessian and it is in double precision throughout."""
    of_fewer_rows: bool = False
    """Whether some rows stand for all of them."""


@dataclass(frozen=True, eq=False, repr=False)
class Objective:
    r"""The objective of objective perturbation, a sum and never a mean.

    .. math:: J(\theta; D) + b^\top\theta, \qquad
              J(\theta; D) = \sum_i \omega_i\ell(\theta; z_i) + r(\theta) + \frac{\lambda}{2}\|\theta\|^2

    to which :math:`\Lambda(\theta)` is added where there are corners. The weights :math:`\omega_i` are 1
    where none are given. This is the only place where the scaling of the terms is decided (Redberg and Wang
    2021, Section "Objective Perturbation"). Coefficients of several linear predictors are one vector,
    predictor by predictor.

    Privacy
    -------
    Everything computed here is private, the number of passes included.
    """

    records: Encoded
    loss: RecordLoss
    l2: float
    tilt: FloatArray | float = 0.0
    corners: Corners | None = None
    stand_for: int | None = None
    """How many rows these stand for, where they are a part of them."""

    @property
    def columns(self) -> int:
        """How many numbers a row has."""
        return self.records.design.dimension

    @property
    def dimension(self) -> int:
        """How many coefficients there are."""
        return self.loss.coefficient_count(self.columns)

    def thinned(self, every: int) -> Self:
        """The objective of each ``every``-th block of rows, which stand for all of them: for warm starts."""
        return replace(self, records=self.records.thinned(every), stand_for=self.records.n_rows)

    def evaluate(self, theta: FloatArray, *, hessian: DTypeLike | None = None) -> Evaluation:
        """Gradient at ``theta`` and, in the precision of :class:`Gram`, the Hessian, in one pass."""
        # Warm starts take the same blocks in every pass, whatever the pass is for.
        products = hessian is None and self.stand_for is None
        width = self.records.product_width if products else self.dimension
        work = Derivatives(self.loss, theta, self.columns, self.records.design.radius, hessian)
        sums = reduce(iadd, self.records.sweep(work, width=width, products=hessian is None))
        if self.stand_for is not None:
            sums.rescale_to(self.stand_for)
        gradient = sums.gradient + self.l2 * theta
        square = None if sums.hessian is None else sums.hessian.copy()
        if square is not None:
            square.flat[:: self.dimension + 1] += self.l2
        found = Evaluation(
            gradient=gradient,
            tilted_gradient=gradient,
            norm=math.inf,
            # Rounding moves each summand by a few units of itself and of its predictor.
            floor=4.0 * float(_EPS) * (sums.size + self.l2 * float(np.linalg.norm(theta))),
            hessian=square,
            rows_hessian=sums.hessian,
            precise=hessian == np.float64,
            of_fewer_rows=self.stand_for is not None,
        )
        return self.tilted(found, theta)

    def tilted(self, found: Evaluation, theta: FloatArray) -> Evaluation:
        """What was found at ``theta`` without the linear term, with it."""
        gradient, rounded = found.gradient + self.tilt, float(np.linalg.norm(self.tilt))
        left = gradient if self.corners is None else self.corners.residual(gradient, theta)
        return replace(
            found,
            tilted_gradient=gradient,
            norm=float(np.linalg.norm(left)),
            floor=found.floor + 4.0 * float(_EPS) * rounded,
        )

    def curvature_product(self, theta: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """The Hessian at ``theta`` as a function that multiplies a vector, one pass over the rows a time."""
        records, known = self.records, self.loss.along_row and self.records.in_memory
        if known:  # one number a record, found once for all products
            found = list(records.sweep(Curvatures(self.loss, theta), products=True))
            records = records.labelled(np.concatenate(found))

        def product(direction: FloatArray) -> FloatArray:
            work = CurvatureProduct(self.loss, theta, self.columns, direction, known)
            result = self.l2 * direction
            for part in records.sweep(work, products=True):
                result += part
            return result

        return product

    def reduced_hessian(self, theta: FloatArray) -> FloatArray:
        """The squares of the rows, each times its weight in a reduced Hessian, added up."""
        radius = self.records.design.radius
        work = Derivatives(self.loss, theta, self.columns, radius, np.float64, reduced=True)
        found = reduce(iadd, self.records.sweep(work)).hessian
        assert found is not None
        return found
