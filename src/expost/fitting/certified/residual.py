r"""The gradient of the objective's rows in more than double precision, in one pass.

Rows, coefficients and slopes are cut into *slices* on grids so coarse that sums of their products are exact
in doubles, whatever the order in which a linear algebra library adds them, with or without fused operations.
What the slices leave over is smaller by :math:`2^{-23}` for each of them, and is summed in plain doubles.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from expost._common.namespaces import namespace_of
from expost.data.blocks import Block
from expost.fitting.certified.pairs import (
    TINY,
    UNIT,
    FloatArray,
    Pair,
    add_accurately,
    power_above,
    round_to,
    two_sum,
)
from expost.fitting.certified.point import NEXT_BITS, Point
from expost.fitting.certified.problem import Blocks
from expost.fitting.certified.slopes import Slopes, slope_pair
from expost.fitting.gram import LONGEST_SUM, Gram
from expost.losses import Loss

# Products of two slices have 46 bits, which leaves seven for a sum of 128 of them.
BITS, SUB_BLOCK = 23, 128
# Numbers in a chunk of rows, to outweigh the interpreter, and in a tile of it, to stay in the cache.
_CHUNK_NUMBERS, _TILE_NUMBERS, _LEAST_ROWS = 262_144, 65_536, 1024


@dataclass
class Partial:
    """What a pass found on some of the rows. Adding two of them is exact to 100 bits."""

    total: Pair
    """The sum of slope times row."""
    error: float = 0.0
    """A bound on what rounding moved that sum, slopes taken as computed."""
    steepness: float = 0.0
    """The sum of the sizes of the slopes."""
    curvature: float = 0.0
    """The sum of the second derivatives."""
    per_curvature: float = 0.0
    absolute: float = 0.0
    """The sum of the slopes' absolute errors; see :class:`~expost.fitting.certified.slopes.Slopes`."""
    rows: int = 0
    additions: int = 0
    hessian: FloatArray | None = field(default=None, repr=False)

    def __add__(self, other: "Partial") -> "Partial":
        both = self.hessian is not None and other.hessian is not None
        return Partial(
            total=add_accurately(self.total, other.total),
            error=self.error + other.error,
            steepness=self.steepness + other.steepness,
            curvature=self.curvature + other.curvature,
            per_curvature=max(self.per_curvature, other.per_curvature),
            absolute=self.absolute + other.absolute,
            rows=self.rows + other.rows,
            additions=self.additions + other.additions + 1,
            hessian=self.hessian + other.hessian if both else None,  # type: ignore[operator]
        )


@dataclass(frozen=True, eq=False, repr=False)
class ResidualPass:
    r"""A function from blocks to :math:`\sum_i \omega_if'(x_i^\top w; y_i)\,x_i` with a bound on its error.

    Parameters
    ----------
    loss
        Its slopes come from :func:`~expost.fitting.certified.slopes.slope_pair`.
    point
        Where to evaluate; it decides the number of slices.
    radius
        No row is longer than this.
    hessian
        Whether to add up :math:`\sum_i f''x_ix_i^\top` as well, in plain doubles.

    Notes
    -----
    Call it on any blocks, in as many threads as there are spans of rows, and add up the results in the
    order of the rows. Rows must be C-contiguous doubles; they are not changed.

    With :math:`X_0` the rows on a grid of :math:`2^{-23}` of the radius and :math:`w_0` the coefficients on
    one of :math:`2^{-29}` of their norm, every partial sum of :math:`X_0w_0` is a multiple of the product of
    the grids and by Cauchy and Schwarz at most :math:`2^{52.1}` of it: exact. So is a sum of 128 products of
    :math:`X_0` with slopes on a grid of :math:`2^{-23}` of the largest. :meth:`predictor_error` and
    ``Partial.error`` bound what the rest loses.
    """

    loss: Loss
    point: Point
    radius: float
    hessian: bool = False

    @property
    def _count(self) -> int:
        return len(self.point.slices)

    @property
    def _dimension(self) -> int:
        return len(self.point.slices[0])

    @cached_property
    def _grid(self) -> float:
        return math.ldexp(power_above(self.radius), -BITS)

    @cached_property
    def _columns(self) -> list[FloatArray]:
        """The slices that slice i of the rows meets: whole ones while the products are exact, then a tail."""
        slices, tails, count = self.point.slices, self.point.tails(), self._count
        return [np.stack([*slices[: count - 1 - i], tails[count - 1 - i]], axis=1) for i in range(count)]

    @cached_property
    def _lengths(self) -> list[float]:
        root = math.sqrt(self._dimension)
        coarse = [math.ldexp(self._grid, -NEXT_BITS * i - 1) for i in range(self._count - 1)]
        return [self.radius * 1.0001, *(root * step for step in coarse)]

    def predictor_error(self) -> float:
        r"""A bound on the error of every linear predictor.

        Slice :math:`i` of a row, of length at most :math:`\rho_i`, meets a tail of the coefficients of
        length at most :math:`\omega_i` in plain doubles: :math:`(d+4)u\,\rho_i\omega_i`, with the
        rounding of the tail and of the sum of these products. The exact products are added as pairs.
        """
        root, size = math.sqrt(self._dimension), self.point.norm
        steps = [math.ldexp(self.point.unit, -NEXT_BITS * i - 1) for i in range(self._count - 1)]
        omega = [*reversed([root * step for step in steps]), size]
        plain = sum(rho * length for rho, length in zip(self._lengths, omega, strict=True))
        underflow = 4.0 * self._count**2 * self._dimension * TINY
        return 1.01 * ((self._dimension + 6) * UNIT * plain + 8.0 * UNIT**2 * self.radius * size) + underflow

    def __call__(self, blocks: Blocks) -> Partial:
        """Add up over the blocks."""
        zero = np.zeros(self._dimension)
        gram = Gram(self._dimension) if self.hessian else None
        sums = Partial((zero, zero.copy()), error=error_of_process())
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for found, rows, parts in self.slopes(blocks):
                self._add(sums, found, parts)
                if gram is not None:
                    gram.add(np.multiply(rows, np.sqrt(found.curvature)[:, None], out=parts[0]))
        if gram is not None:
            sums.hessian = gram.matrix()
        return sums

    def slopes(self, blocks: Blocks) -> Iterator[tuple[Slopes, FloatArray, list[FloatArray]]]:
        """Slopes and curvatures, chunk by chunk, with the rows and their slices."""
        for (rows, labels, weights), parts in self.chunks(blocks):
            yield slope_pair(self.loss, *self.predictors(rows, parts), labels, weights), rows, parts

    def chunks(self, blocks: Blocks) -> Iterator[tuple[Block, list[FloatArray]]]:
        """The blocks in chunks that fit the cache, each with a buffer for every slice."""
        length = min(max(_CHUNK_NUMBERS // self._dimension, _LEAST_ROWS), LONGEST_SUM)
        length = -(-length // SUB_BLOCK) * SUB_BLOCK
        buffers = [np.empty((length, self._dimension)) for _ in range(self._count)]
        for rows, labels, weights in blocks:
            for start in range(0, len(rows), length):
                here = slice(start, min(start + length, len(rows)))
                weight = None if weights is None else weights[here]
                yield Block(rows[here], labels[here], weight), [b[: here.stop - start] for b in buffers]

    def _add(self, sums: Partial, slopes: Slopes, parts: list[FloatArray]) -> None:
        sums.total, error = self.weigh(sums.total, (slopes.high, slopes.low), parts)
        sums.error += error
        sums.steepness += float(np.abs(slopes.high).sum())
        sums.curvature += float(slopes.curvature.sum())
        sums.per_curvature = max(sums.per_curvature, slopes.per_curvature)
        sums.absolute += 1.01 * float(np.sum(np.broadcast_to(slopes.absolute, slopes.high.shape)))
        sums.rows += len(slopes.high)
        sums.additions += self._count**2

    def weigh(self, total: Pair, slopes: Pair, parts: list[FloatArray]) -> tuple[Pair, float]:
        """Add the sum of slope times row, for rows that are cut into ``parts``; and bound what is lost."""
        grid, high = self._grid, slopes[0]
        sizes = np.abs(high)
        top = max(power_above(float(sizes.max())), 2.0**-600)
        steps = [math.ldexp(top, -BITS - NEXT_BITS * i) for i in range(self._count - 1)]
        whole, tails, exact_left = [], [high], high
        for step in steps:
            whole.append(round_to(exact_left, step))
            exact_left = exact_left - whole[-1]
            tails.append(exact_left + slopes[1])
        plain = np.zeros(self._dimension)
        for i, part in enumerate(parts):
            sliced = self._count - 1 - i
            products = _by_sub_blocks([*whole[:sliced], tails[sliced]], part)
            for j in range(sliced):
                unit = math.ldexp(grid * steps[0], -NEXT_BITS * (i + j))
                total = add_accurately(total, exact_sum(products[:, j], unit))
            plain += products[:, -1].sum(axis=0)
        total = add_accurately(total, (plain, np.zeros_like(plain)))
        # The largest tail of a slope is half the grid before it; the first tail is the slope itself.
        lost = [float(sizes.sum()), *(0.5 * step * len(high) for step in steps)]
        plainly = sum(rho * size for rho, size in zip(self._lengths, reversed(lost), strict=True))
        chain = SUB_BLOCK + -(-len(high) // SUB_BLOCK) + 16
        underflow = 16.0 * self._count**2 * len(high) * self._dimension * TINY
        return total, 1.01 * chain * UNIT * plainly + underflow

    def predictors(self, rows: FloatArray, parts: list[FloatArray]) -> Pair:
        """Cut the rows into ``parts``, and multiply them by the coefficients while they are in the cache."""
        high, low = np.empty(len(rows)), np.empty(len(rows))
        tile = max(_TILE_NUMBERS // self._dimension, 1)
        for start in range(0, len(rows), tile):
            here = slice(start, start + tile)
            pieces = [part[here] for part in parts]
            self.cut(rows[here], pieces)
            high[here], low[here] = self.multiply(pieces)
        return high, low

    def multiply(self, pieces: list[FloatArray]) -> Pair:
        """The linear predictors of rows that are cut into ``pieces``."""
        products = [part @ columns for part, columns in zip(pieces, self._columns, strict=True)]
        total, rest = products[0][:, 0], products[0][:, -1]
        for i, product in enumerate(products):
            for j in range(self._count - 1 - i):
                if i or j:
                    total, lost = two_sum(total, product[:, j])
                    rest = rest + lost
            if i:
                rest = rest + product[:, -1]
        return two_sum(total, rest)

    def cut(self, rows: FloatArray, parts: list[FloatArray]) -> None:
        """Write the slices of the rows into ``parts``."""
        round_to(rows, self._grid, out=parts[0])
        np.subtract(rows, parts[0], out=parts[1])
        for i in range(1, self._count - 1):
            np.copyto(parts[i + 1], parts[i])
            round_to(parts[i], math.ldexp(self._grid, -NEXT_BITS * i), out=parts[i])
            parts[i + 1] -= parts[i]


def _by_sub_blocks(vectors: list[FloatArray], rows: FloatArray) -> FloatArray:
    """Each vector times the rows, for every sub-block of 128 rows: sub-blocks by vectors by columns."""
    weights = np.stack(vectors)
    length, columns = rows.shape
    whole = length // SUB_BLOCK * SUB_BLOCK
    full = whole // SUB_BLOCK
    result = np.empty((full + (whole < length), len(vectors), columns))
    np.matmul(
        weights[:, :whole].reshape(len(vectors), full, SUB_BLOCK).transpose(1, 0, 2),
        rows[:whole].reshape(full, SUB_BLOCK, columns),
        out=result[:full],
    )
    if whole < length:
        np.matmul(weights[:, whole:], rows[whole:], out=result[full])
    return result


def exact_sum(values: FloatArray, unit: float) -> Pair:
    """The column sums of multiples of ``unit`` of at most 53 bits, as a pair without error.

    Their upper and lower 26 bits are summed apart; each sum of up to ``2**26`` of them is exact.
    """
    upper = round_to(values, math.ldexp(unit, 27))
    xp = namespace_of(values)
    return two_sum(xp.sum(upper, axis=0), xp.sum(values - upper, axis=0))


@cache
def slices_are_exact() -> bool:
    """Whether matrix products here do what the slices rely on: sums of integers below ``2**53`` are exact.

    They are in every order of summation, but not where doubles are emulated by shorter numbers.
    """
    random = np.random.default_rng(0)
    rows = random.integers(-(2**23), 2**23 + 1, size=(SUB_BLOCK, 40))
    vectors = random.integers(-(2**23), 2**23 + 1, size=(2, SUB_BLOCK))
    vectors[0], rows[:, 0] = 2**23, 2**23  # the largest sum that occurs
    product = vectors.astype(np.float64) @ rows.astype(np.float64)
    return bool(np.all(product.astype(np.int64) == vectors @ rows))


def error_of_process() -> float:
    """What sums of slices may be off by because of where they are taken: nothing, or anything.

    A pass asks where it is run: a worker of a cluster need not have the library of the process that sent it.
    A sum with an infinite error is of no use, and the caller takes decimals.
    """
    return 0.0 if slices_are_exact() else math.inf
