"""The gradient in more than double precision where the rows lie: the same slices, in larger chunks."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from expost._common.namespaces import Space, on_host
from expost.data.blocks import Block
from expost.data.placed import short_blocks
from expost.data.placed_rows import bordered, sum_of_squares
from expost.fitting.certified.pairs import (
    TINY,
    UNIT,
    Pair,
    add_accurately,
    power_above,
    round_to,
    two_prod,
    two_sum,
)
from expost.fitting.certified.point import NEXT_BITS
from expost.fitting.certified.residual import BITS, SUB_BLOCK, Partial, ResidualPass, exact_sum
from expost.fitting.certified.slopes import slope_pair
from expost.fitting.gram import LONGEST_SUM

Sliced: TypeAlias = tuple[Any, float | None]
"""A slice of the rows, and the same slice of the intercept's one where there is an intercept."""
# Numbers that are held for each row: so many vectors, and beside the slices so many copies of the row.
_VECTORS, _COPIES = 48, 2
# Rows whose squares are added up together, on which a device is fastest.
GROUP = LONGEST_SUM // 4


@dataclass(frozen=True, eq=False, repr=False)
class PlacedResidual(ResidualPass):
    """A :class:`ResidualPass` that is also run where the rows lie, if sums are exact there.

    What is proved of the slices holds in any order of summation. Chains of additions that are not exact have
    the lengths that :class:`Partial` and the certificate count: sub-blocks are added up in groups, and
    Hessians in groups of ``GROUP`` rows, which is less than ``LONGEST_SUM``.
    """

    def in_place(self, blocks: Iterator[Block], space: Space) -> Partial:
        """Add up over the blocks; the sums stay on the device until the end."""
        xp, cut, dimension = space.xp, Slicing([self], space), self._dimension
        sums = Partial((np.zeros(dimension), np.zeros(dimension)))
        total: Pair = (space.zeros(1, dimension), space.zeros(1, dimension))
        hessian = space.zeros(dimension, dimension) if self.hessian else None
        for placed, labels, weights in short_blocks(blocks, cut.numbers):
            rows, parts = cut.sliced(placed)
            ((eta, rest),) = cut.predictors(parts)
            found = slope_pair(self.loss, eta, rest, labels, weights)
            slopes = found.high[None, :], found.low[None, :]
            total = cut.collect(sums, total, slopes, parts, (found.curvature, found.absolute))
            sums.per_curvature = max(sums.per_curvature, found.per_curvature)
            del parts
            if hessian is not None:
                hessian += squares(rows, found.curvature, xp, intercept=placed.intercept)
                sums.additions += group_count(rows)
        sums.total = on_host(total[0])[0], on_host(total[1])[0]
        if hessian is not None:
            square = on_host(hessian)
            sums.hessian = 0.5 * (square + square.T)
        return sums


class Slicing:
    """How rows on a device are cut and multiplied, for the points of one pass or of several.

    The passes differ in their points only.
    """

    def __init__(self, passes: list[ResidualPass], space: Space) -> None:
        self._work, self._xp, self._points = passes[0], space.xp, len(passes)
        self._count, self._grid = passes[0]._count, passes[0]._grid
        # For each slice of the rows the slices of the coefficients that it meets, one row for each: the first
        # of every point, then the second.
        matrices = [np.stack([work._columns[i].T for work in passes], axis=1) for i in range(self._count)]
        self._columns = [space.put(matrix.reshape(-1, matrix.shape[2])) for matrix in matrices]
        self.numbers = _VECTORS + (self._count + _COPIES) * passes[0]._dimension

    def sliced(self, placed: Any) -> tuple[Any, list[Sliced]]:
        """Encoded rows without the intercept, and their slices; the intercept's ones are not stored."""
        rows = placed.features()
        ones: list[float | None] = [None] * self._count
        if placed.intercept:
            ones = [float(part[0]) for part in self._cut(np.ones(1))]
        return rows, list(zip(self._cut(rows), ones, strict=True))

    def _cut(self, rows: Any) -> list[Any]:
        parts, left = [], rows
        for i in range(self._count - 1):
            parts.append(round_to(left, math.ldexp(self._grid, -NEXT_BITS * i)))
            left = left - parts[-1]
        return [*parts, left]

    def predictors(self, parts: list[Sliced]) -> list[Pair]:
        """The linear predictors, at every point, of rows that are cut; see :meth:`ResidualPass.multiply`."""
        # Predictors along the second axis, in one piece: half as fast again as the other way round.
        products = [
            matrix @ part.T if one is None else matrix[:, :-1] @ part.T + one * matrix[:, -1:]
            for (part, one), matrix in zip(parts, self._columns, strict=True)
        ]
        cut = [self._xp.reshape(one, (-1, self._points, one.shape[1])) for one in products]
        total, rest = cut[0][0, :, :], cut[0][-1, :, :]
        for i, product in enumerate(cut):
            for j in range(self._count - 1 - i):
                if i or j:
                    total, lost = two_sum(total, product[j, :, :])
                    rest = rest + lost
            if i:
                rest = rest + product[-1, :, :]
        high, low = two_sum(total, rest)
        return [(high[k, :], low[k, :]) for k in range(self._points)]

    def collect(
        self, sums: Partial, total: Pair, slopes: Pair, parts: list[Sliced], sizes: tuple[Any, Any]
    ) -> Pair:
        """Add a block to the sums, and to the total on the device, which is returned.

        ``sizes`` are the curvatures of its rows, and the absolute errors of their slopes.
        """
        xp, steep = self._xp, self._xp.abs(slopes[0])
        curvatures, absolute = sizes
        lost = xp.sum(xp.zeros_like(slopes[0][0, :]) + absolute)
        numbers = xp.stack([xp.max(steep), xp.sum(steep), xp.sum(curvatures), lost])
        top, steepness, curvature, error = on_host(numbers).tolist()
        total, rounding = self.weigh(total, slopes, parts, (top, steepness))
        sums.error += rounding
        sums.steepness += steepness
        sums.curvature += curvature
        sums.absolute += 1.01 * error
        sums.rows += int(slopes[0].shape[1])
        sums.additions += self._count**2
        return total

    def weigh(
        self, total: Pair, slopes: Pair, parts: list[Sliced], sizes: tuple[float, float]
    ) -> tuple[Pair, float]:
        """As :meth:`ResidualPass.weigh`, for several vectors of slopes and with sub-blocks in groups.

        ``sizes`` are the largest slope of all vectors and the sum of the sizes of all slopes. The bound is on
        the sum of the errors of all vectors.
        """
        if not math.isfinite(sizes[1]):  # beyond the range of doubles, as the caller will see
            return (total[0] + math.nan, total[1]), math.nan
        xp, (vectors, rows) = self._xp, slopes[0].shape
        top = max(power_above(sizes[0]), 2.0**-600)
        steps = [math.ldexp(top, -BITS - NEXT_BITS * i) for i in range(self._count - 1)]
        whole, tails, left = [], [slopes[0]], slopes[0]
        for step in steps:
            whole.append(round_to(left, step))
            left = left - whole[-1]
            tails.append(left + slopes[1])
        plain, chain = xp.zeros_like(total[0]), 0
        for i, part in enumerate(parts):
            sliced = self._count - 1 - i
            products = _by_sub_blocks(xp.concat([*whole[:sliced], tails[sliced]]), part, xp)
            for j in range(sliced):
                unit = math.ldexp(self._grid * steps[0], -NEXT_BITS * (i + j))
                here = products[:, j * vectors : (j + 1) * vectors, :]
                total = add_accurately(total, exact_sum(here, unit))
            rest, chain = _in_groups(products[:, sliced * vectors :, :], xp)
            plain += rest
        total = add_accurately(total, (plain, xp.zeros_like(plain)))
        lost = [sizes[1], *(0.5 * step * rows * vectors for step in steps)]
        plainly = sum(rho * size for rho, size in zip(self._work._lengths, reversed(lost), strict=True))
        underflow = 16.0 * self._count**2 * rows * vectors * self._work._dimension * TINY
        return total, 1.01 * (SUB_BLOCK + chain + 16) * UNIT * plainly + underflow


def _by_sub_blocks(vectors: Any, part: Sliced, xp: Any) -> Any:
    """Each vector times the rows, for every sub-block of 128 rows: sub-blocks by vectors by columns."""
    rows, one = part
    count, columns = rows.shape
    full = count // SUB_BLOCK
    whole = full * SUB_BLOCK
    cut = xp.permute_dims(xp.reshape(vectors[:, :whole], (vectors.shape[0], full, SUB_BLOCK)), (1, 0, 2))
    products = cut @ xp.reshape(rows[:whole, :], (full, SUB_BLOCK, columns))
    sums = xp.sum(cut, axis=2)
    if whole < count:
        rest = vectors[:, whole:]
        products = xp.concat([products, (rest @ rows[whole:, :])[None, :, :]])
        sums = xp.concat([sums, xp.sum(rest, axis=1)[None, :]])
    return products if one is None else xp.concat([products, (one * sums)[:, :, None]], axis=2)


def _in_groups(values: Any, xp: Any) -> tuple[Any, int]:
    """Sums over the first axis, in groups as long as there are groups; and the chain of additions."""
    count, shape = values.shape[0], values.shape[1:]
    size = max(1, math.isqrt(count))
    whole = count // size * size
    groups = xp.sum(xp.reshape(values[:whole, ...], (-1, size, *shape)), axis=1)
    total = xp.sum(groups, axis=0) + xp.sum(values[whole:, ...], axis=0)
    return total, size + count // size + size + 1


def squares(rows: Any, curvature: Any, xp: Any, *, intercept: bool) -> Any:
    """The sum of the squares of the rows, each times its curvature, in groups of at most ``GROUP``."""
    root = xp.sqrt(curvature)
    scaled = rows * root[:, None]
    total = sum_of_squares(scaled, GROUP, xp)
    if not intercept:
        return total
    whole = int(rows.shape[0]) // GROUP * GROUP
    border, corner = root[whole:] @ scaled[whole:, :], xp.sum(root[whole:] * root[whole:])
    if whole:
        groups = xp.reshape(root[:whole], (-1, 1, GROUP))
        cut = xp.reshape(scaled[:whole, :], (-1, GROUP, rows.shape[1]))
        border = border + xp.sum(groups @ cut, axis=0)[0, :]
        corner = corner + xp.sum(xp.sum(groups * groups, axis=2))
    return bordered(total, border, corner, xp)


def group_count(rows: Any) -> int:
    """How many sums of groups :func:`squares` adds up, the last of them and the total included."""
    return int(rows.shape[0]) // GROUP + 2


@cache
def exact_in(space: Space) -> bool:
    """Whether arithmetic there does what slices and pairs rely on; asked once of each library and device.

    Sums of integers below ``2**53`` are exact in matrix products, the four operations are rounded to nearest
    one at a time, no product is fused with a sum, and a root is off by at most one unit in its last place.
    """
    random = np.random.default_rng(0)
    rows = random.integers(-(2**23), 2**23 + 1, size=(6, SUB_BLOCK, 40))
    vectors = random.integers(-(2**23), 2**23 + 1, size=(6, 2, SUB_BLOCK))
    vectors[:, 0], rows[:, :, 0] = 2**23, 2**23  # the largest sum that occurs
    product = on_host(space.put(vectors) @ space.put(rows))
    across = random.integers(-(2**24), 2**24 + 1, size=(3, 40))
    across[0], long = 2**24, rows.reshape(-1, 40)
    predicted = on_host(space.put(across) @ space.put(long).T)
    a, b = (np.exp(3.0 * random.normal(size=4096)) * random.normal(size=4096) for _ in range(2))
    there = space.put(a), space.put(b)
    pairs = [(two_sum(a, b), two_sum(*there)), (two_prod(a, b), two_prod(*there))]
    same = [np.array_equal(on_host(x), y) for one, two in pairs for x, y in zip(two, one, strict=True)]
    same.append(np.array_equal(on_host(there[0] / there[1]), a / b))
    root = np.sqrt(np.abs(a))
    same.append(
        bool(np.all(np.abs(on_host(space.xp.sqrt(space.xp.abs(there[0]))) - root) <= np.spacing(root)))
    )
    same += [bool(np.all(product.astype(np.int64) == vectors @ rows))]
    same += [bool(np.all(predicted.astype(np.int64) == across @ long.T))]
    return all(same)
