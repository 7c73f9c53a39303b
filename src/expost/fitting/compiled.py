"""Passes in compiled code, for losses of linear predictors: what goes there and comes back."""

import ctypes
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from expost._common import kernels
from expost._common.kernels import LANES, UNSOUND
from expost._common.namespaces import HERE
from expost._common.typing import FloatArray
from expost.data.blocks import RawBlock
from expost.fitting.certified.functions import (
    OF_PRODUCT,
    ProvedLoss,
    ProvedSlopes,
    corners,
    exponential_tables,
)
from expost.fitting.certified.pairs import TINY, Pair
from expost.fitting.certified.slopes import proved_loss
from expost.losses import (
    BoundedGamma,
    BoundedPoisson,
    LogisticLoss,
    Loss,
    PseudoHuber,
    RecordLoss,
    SmoothedHinge,
    SmoothedPinball,
    SoftmaxLoss,
    SquaredLoss,
    VectorLoss,
)
from expost.losses.binary import Bend
from expost.losses.softmax import centring

_GIVEN, _LOGISTIC, _CAPPED, _HINGE, _PSEUDO_HUBER, _SQUARED, _PINBALL, _POISSON, _GAMMA = range(-1, 8)
_SOFTMAX, _CAPPED_SOFTMAX = range(8, kernels.KINDS)
# By their very type: a class derived from one of them may have changed its formulas.
_SCALAR: dict[type[RecordLoss], int] = {
    LogisticLoss: _LOGISTIC,
    SmoothedHinge: _HINGE,
    PseudoHuber: _PSEUDO_HUBER,
    SquaredLoss: _SQUARED,
    SmoothedPinball: _PINBALL,
    BoundedPoisson: _POISSON,
    BoundedGamma: _GAMMA,
}
CHUNK, CHAIN = 256, 64
"""Rows of a chunk at least, and of those that one lane of it adds up at most."""
MOST_ROWS = CHUNK // LANES
"""Rows of a person at most: as many people as there are lanes fit into a chunk."""
MOST_OF_SEVERAL = 1_200
"""Coefficients of several predictors at most: every thread adds up a square for each pair of classes."""
# The columns of a tile, in which squares are added up.
_TILE = 4


def compiles(loss: RecordLoss, *, several: bool = True, own: bool = False) -> bool:
    """Whether kernels know a loss; with ``several`` one of several linear predictors, too.

    With ``own`` also a loss that they do not know, of which NumPy finds the derivatives: see :class:`_Own`.
    """
    if type(loss) in _SCALAR or type(loss) is SoftmaxLoss:
        return several or type(loss) in _SCALAR
    plain = type(loss).at in (Loss.at, VectorLoss.at) and getattr(loss, "levels", None) is None
    return own and plain and (several or loss.along_row)


def _described(loss: Any) -> kernels.Loss:
    """A loss as kernels read it."""
    names = ("coarse_high", "coarse_low", "fine_high", "fine_low", "fine")
    tables = dict(zip(names, exponential_tables(HERE), strict=True))
    capped = getattr(loss, "corner", None) is not None
    if isinstance(loss, SoftmaxLoss):
        kind = _CAPPED_SOFTMAX if capped else _SOFTMAX
    else:
        kind = _CAPPED if capped else _SCALAR[type(loss)]
    shapes, limits = _levels(loss, capped=capped)
    described = kernels.Loss(
        kind=kind,
        classes=loss.outputs + 1,
        half=(len(limits) + 1) // 2,
        limits=limits.ctypes.data,
        shapes=shapes.ctypes.data,
        absolute=_errors(loss)[1],
        **{name: table.ctypes.data for name, table in tables.items()},
    )
    # As long as kernels can read them. Of two threads that make tables at once a cache keeps those of one.
    described.kept = limits, shapes, tables
    return described


def _levels(loss: Any, *, capped: bool) -> tuple[FloatArray, FloatArray]:
    """The constants of each level, one after the other, and the limits between levels."""
    factors = np.ones(1) if loss.levels is None else loss.levels.factors
    shapes = np.array([_shape(loss.at_level(factor)) for factor in factors.tolist()])
    if capped:
        shapes[:, 8:] = corners(getattr(loss, "link", loss))[2:].T
    # Halving needs as many limits as a power of two has, less one: no row is below those that are added.
    limits = np.full(2 ** (len(shapes) - 1).bit_length() - 1, -1.0)
    limits[: len(shapes) - 1] = [] if loss.levels is None else loss.levels.limits
    return shapes, limits


def _shape(loss: Any) -> list[float]:
    """The constants of the rows of one level, but for those of a corner that are pairs."""
    scale = getattr(loss, "scale", getattr(loss, "threshold", 1.0))
    fraction, exponent = math.frexp(scale)
    # In two steps: the power of a denormal scale, or of a huge one, is no double.
    shrink, again = math.ldexp(1.0, -(exponent // 2)), math.ldexp(1.0, exponent // 2 - exponent)
    link = loss.link if isinstance(loss, SoftmaxLoss) else loss
    bend = Bend.of(link if isinstance(link, LogisticLoss) else LogisticLoss())
    cap = getattr(loss, "level", bend.cap)
    return [scale, fraction, shrink, again, cap, bend.steep, bend.turn, bend.rate, *[0.0] * 6]


def _errors(loss: Any) -> tuple[float, float]:
    """Both parts of a slope's error; the absolute one, where it is relative, at a residual of one."""
    scores = [(np.array([2.0]), np.array([0.0]))] * (loss.classes if isinstance(loss, SoftmaxLoss) else 1)
    found: ProvedSlopes = proved_loss(loss).slopes(scores, np.array([1.0]))
    return found.per_curvature, float(np.max(found.absolute))


@dataclass(frozen=True)
class _Squares:
    """How sums of squares, one for each pair of predictors, make a Hessian."""

    outputs: int
    trace: float = 1.0

    @property
    def sums(self) -> int:
        """How many there are."""
        return self.outputs * (self.outputs + 1) // 2

    def hessian(self, sums: FloatArray) -> FloatArray:
        """The Hessian in the coefficients, predictor by predictor."""
        blocks = np.empty((self.outputs, self.outputs, *sums.shape[1:]))
        first, second = np.triu_indices(self.outputs)
        blocks[first, second] = blocks[second, first] = sums
        size = self.outputs * sums.shape[1]
        return np.ascontiguousarray(blocks.transpose(0, 2, 1, 3).reshape(size, size))


@dataclass(frozen=True)
class Known:
    """A loss that kernels know: as they read it, and what is proved of it."""

    described: kernels.Loss
    proved: ProvedLoss | _Squares
    scores: int
    per_curvature: float

    @classmethod
    def of(cls, loss: Any) -> "Known":
        """What is known of a loss."""
        return _known(loss) if compiles(loss) else _Own.of(loss)

    def at(self, block: RawBlock, point: FloatArray) -> kernels.Loss:
        """The loss as kernels read it, at vectors of the scores."""
        return self.described


@cache
def _known(loss: Any) -> Known:
    """What is known of a library's loss; kept, because to find it takes longer than a pass over few rows."""
    scores = loss.classes if isinstance(loss, SoftmaxLoss) else 1
    return Known(_described(loss), proved_loss(loss), scores, _errors(loss)[0])


@dataclass(frozen=True)
class _Own(Known):
    """A loss of one's own: kernels find predictors and add up rows, NumPy finds derivatives between them."""

    loss: Any

    @classmethod
    def of(cls, loss: Any) -> "_Own":
        """The loss, of which no error is known."""
        return cls(kernels.Loss(), _Squares(loss.outputs), loss.outputs, math.inf, loss)

    def at(self, block: RawBlock, point: FloatArray) -> kernels.Loss:
        """The derivatives at the predictors of the block's rows."""
        eta = np.empty((self.scores, block.count))
        block.run(_kernel("find_predictors"), point, self.scores, eta)
        # What leaves the range of doubles is found by the solver.
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.loss.derivatives(eta[0] if self.loss.along_row else eta.T, block.labels)
            if not self.loss.along_row:
                first, second = np.triu_indices(self.scores)
                found = found[0], (found[1] @ found[1].swapaxes(1, 2))[:, first, second]
        slopes, bends = (np.ascontiguousarray(np.transpose(part), dtype=np.float64) for part in found)
        given = kernels.Loss(
            kind=_GIVEN, classes=self.scores, slopes=slopes.ctypes.data, bends=bends.ctypes.data
        )
        given.kept = slopes, bends
        return given


@dataclass(frozen=True, eq=False, repr=False)
class Added:
    """What a kernel added up over the blocks of a part; private."""

    total: Pair
    """The sum of slope times row, one for each score."""
    sizes: FloatArray
    """The sums of slopes, of weights of squares and, in certificates, of the slopes' absolute errors."""
    squares: FloatArray | None
    """The sums of squares, one for each weight."""
    rows: int
    chunks: int
    """How many sums of rows were added to each other, in every lane."""
    sound: bool


def add_derivatives(blocks: Iterator[RawBlock], loss: Any, point: FloatArray, *, hessian: bool) -> Added:
    """Gradients and Hessians in doubles, at the vectors of the scores."""
    return _added(blocks, "add_derivatives", loss, (point,), hessian=hessian)


def add_residual(blocks: Iterator[RawBlock], loss: Any, point: Pair, *, hessian: bool) -> Added:
    """Gradients as pairs, at vectors of normalised pairs, and Hessians in doubles."""
    proved = Known.of(loss).proved
    underflow = 2.0**12 * TINY * (Known.of(loss).scores + proved.sums)
    return _added(blocks, "add_residual", loss, point, OF_PRODUCT, underflow, hessian=hessian)


def _added(
    blocks: Iterator[RawBlock],
    name: str,
    loss: Any,
    point: tuple[FloatArray, ...],
    *more: float,
    hessian: bool,
) -> Added:
    kernel, known = _kernel(name), Known.of(loss)
    point = tuple(np.ascontiguousarray(part) for part in point)
    scores, columns = point[0].shape
    order = -(-columns // _TILE) * _TILE
    lanes, sizes = [np.zeros((scores, columns, LANES)) for _ in point], np.zeros(3)
    squares = np.zeros((known.proved.sums, order, order)) if hessian else None
    rows, chunks, sound = 0, 0, True
    for block in blocks:
        described = known.at(block, point[0])
        answer = block.run(kernel, ctypes.byref(described), *point, *lanes, sizes, squares, *more)
        sound = sound and answer != UNSOUND
        rows += block.count
        chunks += -(-block.count // CHUNK)
    inner = None if squares is None else squares[:, :columns, :columns]
    return Added(_together(lanes), sizes, inner, rows, chunks, sound)


def _together(lanes: list[FloatArray]) -> Pair:
    """The sums of all lanes, of doubles or of pairs of them; compiled, so that threads do not wait for it."""
    high, low = np.empty((2, *lanes[0].shape[:2]))
    where = [one.ctypes.data for one in (*lanes, high, low)]
    _kernel("add_lanes")(where[0], where[1] if len(lanes) > 1 else None, high.size, *where[-2:])
    return high, low


def in_tiles(root: FloatArray) -> FloatArray:
    """The lower triangle of a matrix with zeros around it, up to whole tiles."""
    columns = len(root)
    order = -(-columns // _TILE) * _TILE
    matrix = np.zeros((order, order))
    matrix[:columns, :columns] = np.tril(root)
    return matrix


def find_terms(
    blocks: Iterator[RawBlock], loss: Any, theta: FloatArray, direction: FloatArray, root: FloatArray
) -> tuple[FloatArray, ...]:
    r"""For each record its leverage, the square of its gradient's length, and its product with a direction.

    ``root`` is :math:`U` with :math:`H^{-1} = U^\top U`, lower triangular, :func:`in_tiles`. For one linear
    predictor.
    """
    return _terms(blocks, "find_terms", loss, (theta, direction, root))


def find_person_terms(
    blocks: Iterator[RawBlock],
    loss: Any,
    theta: FloatArray,
    direction: FloatArray,
    root: FloatArray,
    each: int,
    sign: float,
) -> tuple[FloatArray, ...]:
    r"""For each person :math:`\log\det(I + sN)`, and her gradient's square and product with a direction.

    :math:`N = F^\top H^{-1}F` is that of all her rows, and ``root`` as in :func:`find_terms`. A block has the
    rows of whole people, ``each`` of them one after the other, at most :data:`MOST_ROWS`.
    """
    basis = centring(loss.classes) if isinstance(loss, SoftmaxLoss) else None
    by_score = map(loss.by_predictor, (theta, direction))
    return _terms(blocks, "find_person_terms", loss, (*by_score, root), basis, each, sign, each=each)


def _terms(
    blocks: Iterator[RawBlock], name: str, loss: Any, point: tuple[FloatArray, ...], *more: Any, each: int = 1
) -> tuple[FloatArray, ...]:
    kernel, known, found = _kernel(name), Known.of(loss), []
    given = tuple(map(np.ascontiguousarray, point))
    for block in blocks:
        found.append(tuple(np.empty(block.count // each) for _ in range(3)))
        described = known.at(block, given[0])
        block.run(kernel, ctypes.byref(described), *given, *more, *found[-1])
    if len(found) == 1:
        return found[0]
    return tuple(np.concatenate([np.empty(0), *(one[place] for one in found)]) for place in range(3))


def _kernel(name: str) -> Any:
    library = kernels.library()
    assert library is not None
    return getattr(library.kernels, name)
