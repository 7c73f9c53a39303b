"""The gradient of the objective's rows in more than double precision, in one pass.

Rows, coefficients and slopes are cut into *slices* on grids so coarse that sums of their products are exact
in doubles, in any order of summation; what the slices leave over is summed in plain doubles. Proofs are in
docs/mathematics.md, section 10.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from expost._common.namespaces import HERE, Space, namespace_of, on_host
from expost.data.blocks import Block, RawBlock
from expost.data.rows import LONGEST_SUM, DenseRows, row_blocks
from expost.engines.base import Kernel
from expost.fitting import compiled
from expost.fitting.certified.functions import ProvedLoss, ProvedSlopes
from expost.fitting.certified.pairs import (
    BITS,
    NEXT_BITS,
    SUB_BLOCK,
    TINY,
    UNIT,
    FloatArray,
    Pair,
    Point,
    Points,
    add_accurately,
    as_pair,
    exact_in,
    exact_sum,
    power_above,
    round_to,
    two_sum,
)
from expost.fitting.squares import Gram

# Numbers in a chunk of NumPy's rows, few enough for the cache and enough to outweigh the interpreter.
_CHUNK_NUMBERS, _LEAST_ROWS = 131_072, 1024
# What is held for each row on a device: the number of vectors, and of copies of it besides the slices.
_VECTORS, _COPIES = 48, 2

# Linear predictors up to this one are far from overflow in every step of a sum of pairs.
_LARGEST = 2.0**900

Sliced: TypeAlias = tuple[Any, float | None]
"""A slice of the rows, and the same slice of the intercept's one where that is not stored."""


@dataclass
class Partial:
    """What a pass found on some of the rows. Adding two of them is exact to 100 bits."""

    total: Pair
    """The sum of slope times row, one for each score; or a sum of squares for each weight."""
    error: float = 0.0
    """A bound on what rounding moved that sum, slopes taken as computed."""
    steepness: float = 0.0
    curvature: float = 0.0
    per_curvature: float = 0.0
    absolute: float = 0.0
    """The sums of the slopes, the second derivatives and the slopes' absolute errors, all as sizes."""
    predictor_error: float = 0.0
    """A bound on the error of every score, as often as it counts, at least."""
    rows: int = 0
    additions: int = 0
    sliced: bool = False
    """Whether slices were taken, of which there can be more."""
    hessian: FloatArray | None = field(default=None, repr=False)

    def __add__(self, other: "Partial") -> "Partial":
        both = self.hessian is not None and other.hessian is not None
        names = ("error", "steepness", "curvature", "absolute", "rows")
        return Partial(
            total=add_accurately(self.total, other.total),
            **{name: getattr(self, name) + getattr(other, name) for name in names},
            per_curvature=max(self.per_curvature, other.per_curvature),
            predictor_error=max(self.predictor_error, other.predictor_error),
            sliced=self.sliced or other.sliced,
            additions=self.additions + other.additions + 1,
            hessian=self.hessian + other.hessian if both else None,  # type: ignore[operator]
        )


class Slicing:
    """How rows are cut into slices and multiplied by those of one point or of several."""

    def __init__(self, points: list[Point], radius: float) -> None:
        self.points, self.radius = points, radius
        self.count, self.dimension = len(points[0].slices), len(points[0].slices[0])
        self.grid = math.ldexp(power_above(radius), -BITS)
        root = math.sqrt(self.dimension)
        coarse = [math.ldexp(self.grid, -NEXT_BITS * i - 1) for i in range(self.count - 1)]
        self._lengths = [radius * 1.0001, *(root * step for step in coarse)]

    def columns(self) -> list[FloatArray]:
        """For each slice of the rows the slices of the coefficients that it meets, one row for each.

        Whole ones while the products are exact, then a tail: the first of every point, then the second.
        """
        count, found = self.count, []
        for i in range(count):
            met = [[*point.slices[: count - 1 - i], point.tails()[count - 1 - i]] for point in self.points]
            found.append(np.stack(met, axis=1).reshape(-1, self.dimension))
        return found

    def predictor_error(self, point: Point) -> float:
        """A bound on the error of every linear predictor at one of the points."""
        root, size = math.sqrt(self.dimension), point.norm
        omega = [root * math.ldexp(point.unit, -NEXT_BITS * i - 1) for i in reversed(range(self.count - 1))]
        plain = sum(rho * length for rho, length in zip(self._lengths, [*omega, size], strict=True))
        underflow = 4.0 * self.count**2 * self.dimension * TINY
        return 1.01 * ((self.dimension + 6) * UNIT * plain + 8.0 * UNIT**2 * self.radius * size) + underflow

    def sliced(self, rows: DenseRows, buffers: list[FloatArray]) -> list[Sliced]:
        """The slices of encoded rows, NumPy's written to ``buffers``, which are in the cache."""
        ones: list[float | None] = [None] * self.count
        if rows.intercept:
            ones = [float(part[0]) for part in self._cut(np.ones(1), [])]
        return list(zip(self._cut(rows.features(), buffers), ones, strict=True))

    def _cut(self, rows: Any, buffers: list[FloatArray]) -> list[Any]:
        parts, left = [], rows
        for i in range(self.count - 1):
            # What is left is in the last buffer: no slice overwrites it before it is taken off.
            out, rest = (buffers[i][: len(rows)], buffers[-1][: len(rows)]) if buffers else (None, None)
            parts.append(round_to(left, math.ldexp(self.grid, -NEXT_BITS * i), out=out))
            left = left - parts[-1] if rest is None else np.subtract(left, parts[-1], out=rest)
        return [*parts, left]

    def predictors(self, parts: list[Sliced], columns: list[Any]) -> list[Pair]:
        """The linear predictors, at every point, of rows that are cut."""
        # Predictors along the second axis, in one piece: half as fast again as the other way round.
        products = [
            matrix @ part.T if one is None else matrix[:, :-1] @ part.T + one * matrix[:, -1:]
            for (part, one), matrix in zip(parts, columns, strict=True)
        ]
        xp, points = namespace_of(products[0]), len(self.points)
        cut = [xp.reshape(one, (-1, points, one.shape[1])) for one in products]
        total, rest = cut[0][0, :, :], cut[0][-1, :, :]
        for i, product in enumerate(cut):
            for j in range(self.count - 1 - i):
                if i or j:
                    total, lost = two_sum(total, product[j, :, :])
                    rest = rest + lost
            if i:
                rest = rest + product[-1, :, :]
        high, low = two_sum(total, rest)
        return [(high[k, :], low[k, :]) for k in range(points)]

    def add_products(
        self, total: Pair, slopes: Pair, parts: list[Sliced], top: float, steepness: float
    ) -> tuple[Pair, float]:
        """Add the sums of slope times row, one for each point; and bound what is lost in all of them.

        ``top`` is the largest slope, and ``steepness`` the sum of the sizes of all slopes.
        """
        if not math.isfinite(steepness):  # beyond the range of doubles, as the caller will see
            return (total[0] + math.nan, total[1]), math.nan
        xp, (vectors, rows) = namespace_of(slopes[0]), slopes[0].shape
        top = max(power_above(top), 2.0**-600)
        steps = [math.ldexp(top, -BITS - NEXT_BITS * i) for i in range(self.count - 1)]
        whole, tails, left = [], [slopes[0]], slopes[0]
        for step in steps:
            whole.append(round_to(left, step))
            left = left - whole[-1]
            tails.append(left + slopes[1])
        plain, chain = xp.zeros_like(total[0]), 0
        for i, part in enumerate(parts):
            sliced = self.count - 1 - i
            products = _by_sub_blocks(xp.concat([*whole[:sliced], tails[sliced]]), part, xp)
            for j in range(sliced):
                unit = math.ldexp(self.grid * steps[0], -NEXT_BITS * (i + j))
                here = products[:, j * vectors : (j + 1) * vectors, :]
                total = add_accurately(total, exact_sum(here, unit))
            rest, chain = _in_groups(products[:, sliced * vectors :, :], xp)
            plain += rest
        total = add_accurately(total, (plain, xp.zeros_like(plain)))
        # The largest tail of a slope is half the grid before it; the first tail is the slope itself.
        lost = [steepness, *(0.5 * step * rows * vectors for step in steps)]
        plainly = sum(rho * size for rho, size in zip(self._lengths, reversed(lost), strict=True))
        underflow = 16.0 * self.count**2 * rows * vectors * self.dimension * TINY
        return total, 1.01 * (SUB_BLOCK + chain + 16) * UNIT * plainly + underflow


@dataclass(frozen=True, eq=False, repr=False)
class ResidualPass(Kernel[Partial]):
    r"""The pass that finds :math:`\sum_i\omega_iv_{ij}x_i`, :math:`v_{ij}` the slope in score :math:`j`.

    Results of several parts are added up in the order of the rows, which must be doubles or lie on a device.
    """

    loss: ProvedLoss
    points: Points
    radius: float
    hessian: bool = False
    """Whether to add up the squares of the rows as well, each times its weights, in plain doubles."""

    @cached_property
    def slicing(self) -> Slicing:
        """How rows are cut and multiplied."""
        return Slicing(self.points.by_score, self.radius)

    def predictor_error(self, of_point: Callable[[Point], float] | None = None) -> float:
        """What :func:`~expost.fitting.certified.bound.bound` takes for the error of a linear predictor."""
        off = max(map(of_point or self.slicing.predictor_error, self.points.by_score))
        return self.loss.score_error * (off + self.radius * self.points.offset)

    def finished(self, sums: Partial) -> Partial:
        """The finite sums of all rows as the gradient and the Hessian in the coefficients."""
        total, error = self.loss.gradient(sums.total)
        hessian = None if sums.hessian is None else self.loss.hessian(sums.hessian)
        return replace(sums, total=total, error=sums.error + error, hessian=hessian)

    def chunks(
        self, blocks: Iterator[Block], space: Space = HERE
    ) -> Iterator[tuple[ProvedSlopes, DenseRows, list[Sliced]]]:
        """Slopes and curvatures, chunk by chunk, with the rows and their slices."""
        cut, longest, buffers = self.slicing, None, []
        if space is HERE:
            longest = min(max(_CHUNK_NUMBERS // cut.dimension, _LEAST_ROWS), LONGEST_SUM)
            longest = -(-longest // SUB_BLOCK) * SUB_BLOCK
            buffers = [np.empty((longest, cut.dimension)) for _ in range(cut.count)]
        columns = [space.put(matrix) for matrix in cut.columns()]
        held = _VECTORS + (cut.count + _COPIES) * cut.dimension + self.loss.numbers_held
        for rows, y, weights, *_ in row_blocks(blocks, held, longest):
            parts = cut.sliced(rows, buffers)
            found = self.loss.for_rows(rows).slopes(cut.predictors(parts, columns), y)
            yield found if weights is None else found.times(weights), rows, parts

    def __call__(self, blocks: Iterator[Block], space: Space = HERE) -> Partial:
        """Add up over the blocks; sums stay where the rows are until the end."""
        cut, shape = self.slicing, (len(self.slicing.points), self.slicing.dimension)
        total: Pair = (space.zeros(*shape), space.zeros(*shape))
        # Asked where the pass is run: a worker of a cluster may have another library than its caller.
        sums = Partial(
            (np.zeros(shape), np.zeros(shape)),
            error=0.0 if exact_in(space) else math.inf,
            predictor_error=self.predictor_error(),
            sliced=True,
        )
        grams = [Gram(cut.dimension, space=space) for _ in range(self.loss.sums if self.hessian else 0)]
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for found, rows, parts in self.chunks(blocks, space):
                total = self._collect(sums, total, found, parts)
                del parts
                for place, gram in enumerate(grams):
                    gram.add(rows, found.weights[:, place])
        sums.total = on_host(total[0]), on_host(total[1])
        if grams:
            sums.hessian = np.stack([gram.matrix() for gram in grams])
            sums.additions += grams[0].additions
        return sums

    @property
    def compiles(self) -> bool:
        """For every loss of which errors are proved."""
        return compiled.compiles(self.loss.loss)

    def compiled(self, blocks: Iterator[RawBlock]) -> Partial:
        """The sums over raw blocks, in pairs of doubles instead of slices; lemma 10.2."""
        known, point = compiled.Known.of(self.loss.loss), self._pairs
        added = compiled.add_residual(blocks, self.loss.loss, point, hessian=self.hessian)
        steepness, weights, absolute = added.sizes.tolist()
        units = 1.02 * (compiled.CHAIN + 3) ** 2 + 4.1 * added.chunks + 13.0
        underflow = 16.0 * (added.rows + compiled.CHUNK) * point[0].size * TINY
        error = 1.01 * units * UNIT**2 * self.radius * steepness + underflow
        return Partial(
            total=added.total,
            error=error if added.sound else math.inf,
            steepness=steepness,
            curvature=known.proved.trace * weights,
            per_curvature=known.per_curvature,
            absolute=1.01 * absolute,
            predictor_error=self.predictor_error(self._pair_error),
            rows=added.rows,
            additions=added.chunks,
            hessian=added.squares,
        )

    @cached_property
    def _pairs(self) -> Pair:
        """The points as pairs, without error: slices have fewer bits than two doubles."""
        high, low = zip(*(as_pair(point.exact) for point in self.points.by_score), strict=True)
        return np.stack(high), np.stack(low)

    def _pair_error(self, point: Point) -> float:
        """A bound on the error of a linear predictor that is a sum of pairs."""
        columns, size = len(point.slices[0]), self.radius * point.norm
        if not size <= _LARGEST:
            return math.inf
        return 1.02 * ((columns + 3) * UNIT) ** 2 * size + 16.0 * columns * TINY

    def _collect(self, sums: Partial, total: Pair, found: ProvedSlopes, parts: list[Sliced]) -> Pair:
        """Add a chunk to the sums, and to the total, which is returned."""
        cut, slopes, xp = self.slicing, found.first, namespace_of(found.first[0])
        steep = xp.abs(slopes[0])
        lost = xp.sum(xp.zeros_like(slopes[0][0, :]) + found.absolute)
        numbers = xp.stack([xp.max(steep), xp.sum(steep), self.loss.trace * xp.sum(found.weights), lost])
        top, steepness, curvature, absolute = on_host(numbers).tolist()
        total, error = cut.add_products(total, slopes, parts, top, steepness)
        sums.error += error
        sums.steepness += steepness
        sums.curvature += curvature
        sums.per_curvature = max(sums.per_curvature, found.per_curvature)
        sums.absolute += 1.01 * absolute
        sums.rows += int(slopes[0].shape[1])
        sums.additions += cut.count**2
        return total


@dataclass(frozen=True, eq=False, repr=False)
class HessianPass:
    r"""The pass that finds :math:`\sum_i c_ix_ix_i^\top` for each weight :math:`c`, as pairs."""

    work: ResidualPass
    reduced: bool = False

    def __call__(self, blocks: Iterator[Block]) -> Partial:
        """The sums over the blocks."""
        count, columns = 0, self.work.slicing.dimension
        zero = np.zeros((1 if self.reduced else self.work.loss.sums, columns, columns))
        total: Pair = (zero, zero.copy())
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for found, rows, parts in self.work.chunks(blocks):
                weights = found.smallest[:, None] if self.reduced else found.weights
                slices = [part for part, _ in parts]
                for place, weight in enumerate(weights.T):
                    before = total[0][place], total[1][place]
                    after = add_accurately(before, self._product(rows.features(), weight, slices))
                    total[0][place], total[1][place] = after
                count += len(rows)
        return Partial(total, 0.0 if exact_in(HERE) else math.inf, rows=count)

    def _product(self, rows: FloatArray, curvature: FloatArray, parts: list[FloatArray]) -> Pair:
        coarse, fine = parts[0], parts[1] if len(parts) == 2 else parts[1] + parts[2]
        weighted = rows * curvature[:, None]
        step = math.ldexp(max(power_above(float(np.max(np.abs(weighted)))), 2.0**-600), -BITS)
        whole = round_to(weighted, step)
        plain = coarse.T @ (weighted - whole) + fine.T @ weighted
        spans = [slice(start, start + SUB_BLOCK) for start in range(0, len(rows), SUB_BLOCK)]
        products = np.stack([coarse[span].T @ whole[span] for span in spans])
        exact = exact_sum(products, self.work.slicing.grid * step)
        return add_accurately(exact, (plain, np.zeros_like(plain)))


def _by_sub_blocks(vectors: Any, part: Sliced, xp: Any) -> Any:
    """Each vector times the rows, for every sub-block of 128 rows: sub-blocks by vectors by columns."""
    rows, one = part
    count, columns = rows.shape
    full = count // SUB_BLOCK
    whole = full * SUB_BLOCK
    cut = xp.permute_dims(xp.reshape(vectors[:, :whole], (vectors.shape[0], full, SUB_BLOCK)), (1, 0, 2))
    products = cut @ xp.reshape(rows[:whole, :], (full, SUB_BLOCK, columns))
    if whole < count:
        products = xp.concat([products, (vectors[:, whole:] @ rows[whole:, :])[None, :, :]])
    if one is None:
        return products
    sums = xp.sum(cut, axis=2)
    if whole < count:
        sums = xp.concat([sums, xp.sum(vectors[:, whole:], axis=1)[None, :]])
    return xp.concat([products, (one * sums)[:, :, None]], axis=2)


def _in_groups(values: Any, xp: Any) -> tuple[Any, int]:
    """Sums over the first axis, in groups as long as there are groups; and the chain of additions."""
    count, shape = values.shape[0], values.shape[1:]
    size = max(1, math.isqrt(count))
    whole = count // size * size
    groups = xp.sum(xp.reshape(values[:whole, ...], (-1, size, *shape)), axis=1)
    total = xp.sum(groups, axis=0) + xp.sum(values[whole:, ...], axis=0)
    return total, size + count // size + size + 1
