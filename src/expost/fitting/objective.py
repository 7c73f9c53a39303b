"""The perturbed objective and its derivatives, each in one pass over the rows, and their sums of squares."""

import ctypes
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, reduce
from operator import iadd
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import cython_blas

from expost._common.namespaces import HERE, Space, on_host
from expost._common.typing import FloatArray
from expost.data.blocks import Block, RawBlock
from expost.data.encoding import Encoded
from expost.data.rows import LONGEST_SUM, row_blocks
from expost.engines.base import Kernel
from expost.fitting import compiled
from expost.losses import RecordLoss, SoftmaxLoss
from expost.losses.base import LinearRecords
from expost.losses.corners import Corners
from expost.losses.softmax import centring

_EPS = np.finfo(np.float64).eps
_TILE = 256
# In single precision, a row whose weight is smaller than the largest of its block by the square of this is
# left out.
_NEGLIGIBLE = 1e-16
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

    to which :math:`\rho(\theta)` is added where there are corners. The weights :math:`\omega_i` are 1 where
    none are given. This is the only place where the scaling of the terms is decided (Redberg and Wang 2021,
    Section "Objective Perturbation"). Coefficients of several linear predictors are one vector, predictor by
    predictor.

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


class Gram:
    r"""The sum of :math:`R^\top R` over blocks :math:`R` of rows; private.

    Blocks follow each other in groups of at most ``LONGEST_SUM`` rows, or of one block that is longer. BLAS
    adds the rows of a group to one matrix, in the given precision and in an order of its own; the groups are
    added in double precision and in their order: no chain of additions is longer than a group has rows or
    than there are groups. On a device the rows add up their own squares, in groups of theirs.
    """

    def __init__(self, dimension: int, precision: DTypeLike = np.float64, space: Space = HERE) -> None:
        self.precision: Any = getattr(space.xp, np.dtype(precision).name)
        """The library's type for the products."""
        self.additions = 0
        """How many sums of groups were added to each other."""
        self._space, self._dimension = space, dimension
        self._rows = 0
        self._packed: FloatArray | None = None
        self._group: NDArray[Any] | None = None
        self._total: Any = None if space is HERE else space.zeros(dimension, dimension)
        self._scaled: NDArray[Any] = np.empty((0, dimension), dtype=precision)

    def add(self, rows: Any, weights: FloatArray) -> None:
        """Add the squares of a block of rows, each times its weight."""
        if self._space is not HERE:
            square, groups = rows.gram(weights, self.precision)
            self._total += square
            self.additions += groups
            return
        root, matrix = np.sqrt(weights), rows.encoded()
        if self.precision != np.float64:
            # Far beyond the digits of the sum; their products would underflow, which is slow.
            root[root < _NEGLIGIBLE * np.max(root, initial=0.0)] = 0.0
        if len(self._scaled) < len(matrix):
            self._scaled = np.empty(matrix.shape, dtype=self.precision)
        part = self._scaled[: len(matrix)]
        np.copyto(part, matrix, casting="same_kind")
        part *= root.astype(self.precision)[:, None]
        self.add_rows(part)

    def add_rows(self, rows: NDArray[Any]) -> None:
        """Add a block of NumPy's rows of the precision, with rows or columns that are contiguous."""
        if self._rows and self._rows + len(rows) > LONGEST_SUM:
            self._close()
        self._rows += len(rows)
        if len(rows):
            _add_square(rows, self._open_group)

    def add_strip(self, place: int, strip: Any) -> None:
        """Add to the rows from ``place`` on, right of the diagonal; what is left of it is a mirror."""
        if self._total is None:
            self._total = np.zeros((self._dimension, self._dimension), order="F")
        stop = place + int(strip.shape[0])
        self._total[place:stop, place:] += self._space.xp.astype(strip, self._space.xp.float64, copy=False)

    def add_products(self, weights: NDArray[Any], rows: NDArray[Any]) -> None:
        r"""Add :math:`\sum_iB_i \otimes x_ix_i^\top` by one product of matrices.

        Both factors of each term are symmetric: the upper entries of :math:`B_i`, which are the weights, meet
        the products of two entries of a row, each pair once.
        """
        count, columns = rows.shape
        products, place = np.empty((count, columns * (columns + 1) // 2), dtype=rows.dtype), 0
        for j in range(columns):
            np.multiply(rows[:, j, None], rows[:, j:], out=products[:, place : place + columns - j])
            place += columns - j
        if self._packed is None:
            self._packed = np.zeros((weights.shape[1], products.shape[1]))
        self._packed += weights.T @ products

    def _unpack(self, packed: FloatArray) -> None:
        """Turn sums of products into rows of blocks, from the diagonal on."""
        columns = math.isqrt(2 * packed.shape[1])
        above, blocks = np.triu_indices(columns), np.empty((len(packed), columns, columns))
        blocks[:, above[0], above[1]] = blocks[:, above[1], above[0]] = packed
        owner = np.triu_indices(self._dimension // columns)[0]
        for a in range(self._dimension // columns):
            self.add_strip(a * columns, np.concatenate(blocks[owner == a], axis=1))

    def matrix(self) -> FloatArray:
        """The sum, both halves of it, in double precision; no block can be added any more."""
        if self._space is not HERE:
            upper: FloatArray = np.triu(on_host(self._total))
            return upper + np.triu(upper, 1).T
        if self._packed is not None:
            self._unpack(self._packed)
        if self._total is not None or self._open_group.dtype != np.float64:
            self._close()
        total: FloatArray = self._open_group if self._total is None else self._total
        mirror(total)
        return total.T  # the same matrix, with contiguous rows

    @property
    def _open_group(self) -> NDArray[Any]:
        if self._group is None:
            self._group = np.zeros((self._dimension, self._dimension), dtype=self.precision, order="F")
        return self._group

    def _close(self) -> None:
        """Add the group to the others, and begin a new one."""
        self.additions += 1
        if self._group is not None:
            if self._total is None:
                self._total = self._group.astype(np.float64)
            else:
                self._total += self._group
            self._group[...] = 0.0
        self._rows = 0


def mirror(square: FloatArray) -> None:
    """Copy the upper half to the lower one, tile by tile so that both stay in the cache."""
    for start in range(0, len(square), _TILE):
        stop = min(start + _TILE, len(square))
        corner = square[start:stop, start:stop]
        corner[...] = np.triu(corner) + np.triu(corner, 1).T
        for low in range(stop, len(square), _TILE):
            square[low : low + _TILE, start:stop] = square[start:stop, low : low + _TILE].T


def _add_square(rows: NDArray[Any], square: NDArray[Any]) -> None:
    """Add ``rows.T @ rows`` to the upper half of a matrix with contiguous columns.

    SciPy's own wrapper keeps the interpreter's lock, so that threads would wait for each other.
    """
    length, dimension = rows.shape
    size = rows.itemsize
    by_rows = rows.strides[1] == size
    stride = rows.strides[0] if by_rows else rows.strides[1]
    assert rows.dtype == square.dtype
    assert square.flags.f_contiguous
    assert by_rows or rows.strides[0] == size
    one = (ctypes.c_double if size == 8 else ctypes.c_float)(1.0)
    # Read in 32 bits or in 64, as the library was built: the numbers are small, and the first half counts.
    count, inner, leading, columns = (
        ctypes.byref(ctypes.c_int64(value))
        for value in (dimension, length, max(stride // size, dimension if by_rows else length, 1), dimension)
    )
    unit = ctypes.byref(one)
    where = rows.ctypes.data_as(ctypes.c_void_p), square.ctypes.data_as(ctypes.c_void_p)
    syrk = _function("dsyrk" if size == 8 else "ssyrk")
    syrk(b"U", b"N" if by_rows else b"T", count, inner, unit, where[0], leading, unit, where[1], columns)


@cache
def _function(name: str) -> Any:
    """A function of the BLAS that SciPy brings, called without the interpreter's lock."""
    functions: Mapping[str, Any] = vars(cython_blas)["__pyx_capi__"]
    capsule = functions[name]
    api = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    return ctypes.CFUNCTYPE(None, *[ctypes.c_char_p] * 2, *[ctypes.c_void_p] * 8)(
        pointer_of(capsule, name_of(capsule))
    )
