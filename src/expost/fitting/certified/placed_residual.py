"""The gradient in more than double precision where the rows lie: the same slices, in larger chunks."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from expost._common.namespaces import Space, on_host
from expost.data.blocks import Block
from expost.data.placed_rows import bordered
from expost.fitting.certified.pairs import (
    TINY,
    UNIT,
    FloatArray,
    Pair,
    add_accurately,
    power_above,
    round_to,
    two_prod,
    two_sum,
)
from expost.fitting.certified.point import NEXT_BITS
from expost.fitting.certified.residual import BITS, SUB_BLOCK, Partial, ResidualPass, exact_sum
from expost.fitting.certified.slopes import Slopes, slope_pair
from expost.fitting.gram import LONGEST_SUM

Sliced: TypeAlias = tuple[Any, float | None]
"""A slice of the rows, and the same slice of the intercept's one where there is an intercept."""


@dataclass(frozen=True, eq=False, repr=False)
class PlacedResidual(ResidualPass):
    """A :class:`ResidualPass` that is also run where the rows lie, if sums are exact there.

    What is proved of the slices holds in any order of summation. Chains of additions that are not exact have
    the lengths that :class:`Partial` and the certificate count: sub-blocks are added up in groups, and
    Hessians in groups of at most ``LONGEST_SUM`` rows.
    """

    def in_place(self, blocks: Iterator[Block], space: Space) -> Partial:
        """Add up over the blocks; few numbers leave the device."""
        zero = np.zeros(self._dimension)
        sums = Partial(
            (zero, zero.copy()), hessian=np.zeros((len(zero), len(zero))) if self.hessian else None
        )
        columns = [space.put(matrix) for matrix in self._columns]
        for placed, labels, weights in blocks:
            rows = placed.features()
            # The intercept's ones are cut like all other entries, but not stored.
            parts = list(zip(self._parts(rows), self._ones(placed.intercept), strict=True))
            found = slope_pair(self.loss, *_predictors(parts, columns), labels, weights)
            self._collect(sums, found, parts, space)
            if sums.hessian is not None:
                square, groups = _gram(rows, found.curvature, space, intercept=placed.intercept)
                sums.hessian += square
                sums.additions += groups
        return sums

    def _parts(self, rows: Any) -> list[Any]:
        """The slices of the rows."""
        parts, left = [], rows
        for i in range(self._count - 1):
            parts.append(round_to(left, math.ldexp(self._grid, -NEXT_BITS * i)))
            left = left - parts[-1]
        return [*parts, left]

    def _ones(self, intercept: bool) -> list[float | None]:
        """The slices of a one; None for each where there is no intercept."""
        if not intercept:
            return [None] * self._count
        return [float(part[0]) for part in self._parts(np.ones(1))]

    def _collect(self, sums: Partial, slopes: Slopes, parts: list[Sliced], space: Space) -> None:
        xp, count = space.xp, int(slopes.high.shape[0])
        sizes = xp.abs(slopes.high)
        absolute = slopes.absolute
        lost = (
            xp.sum(absolute)
            if hasattr(absolute, "shape")
            else xp.sum(xp.zeros_like(sizes)) + absolute * count
        )
        numbers = xp.stack([xp.max(sizes), xp.sum(sizes), xp.sum(slopes.curvature), lost])
        top, steepness, curvature, error = on_host(numbers).tolist()
        sums.total, rounding = self._weigh_placed(sums.total, slopes, parts, (top, steepness), space)
        sums.error += rounding
        sums.steepness += steepness
        sums.curvature += curvature
        sums.per_curvature = max(sums.per_curvature, slopes.per_curvature)
        sums.absolute += 1.01 * error
        sums.rows += count
        sums.additions += self._count**2

    def _weigh_placed(
        self, total: Pair, slopes: Slopes, parts: list[Sliced], sizes: tuple[float, float], space: Space
    ) -> tuple[Pair, float]:
        """As :meth:`ResidualPass.weigh`, with sub-blocks that are added up in groups."""
        if not math.isfinite(sizes[1]):  # beyond the range of doubles, as the caller will see
            return (total[0] + math.nan, total[1]), math.nan
        xp, rows = space.xp, int(slopes.high.shape[0])
        top = max(power_above(sizes[0]), 2.0**-600)
        steps = [math.ldexp(top, -BITS - NEXT_BITS * i) for i in range(self._count - 1)]
        whole, tails, left = [], [slopes.high], slopes.high
        for step in steps:
            whole.append(round_to(left, step))
            left = left - whole[-1]
            tails.append(left + slopes.low)
        plain, chain = np.zeros(self._dimension), 0
        for i, part in enumerate(parts):
            sliced = self._count - 1 - i
            products = _by_sub_blocks(xp.stack([*whole[:sliced], tails[sliced]]), part, xp)
            for j in range(sliced):
                unit = math.ldexp(self._grid * steps[0], -NEXT_BITS * (i + j))
                high, low = exact_sum(products[:, j, :], unit)
                total = add_accurately(total, (on_host(high), on_host(low)))
            rest, chain = _in_groups(products[:, -1, :], xp)
            plain += on_host(rest)
        total = add_accurately(total, (plain, np.zeros_like(plain)))
        lost = [sizes[1], *(0.5 * step * rows for step in steps)]
        plainly = sum(rho * size for rho, size in zip(self._lengths, reversed(lost), strict=True))
        underflow = 16.0 * self._count**2 * rows * self._dimension * TINY
        return total, 1.01 * (SUB_BLOCK + chain + 16) * UNIT * plainly + underflow


def _predictors(parts: list[Sliced], columns: list[Any]) -> Pair:
    """The linear predictors of rows that are cut into ``parts``; see :meth:`ResidualPass.multiply`."""
    count = len(parts)
    products = [
        part @ matrix if one is None else part @ matrix[:-1, :] + one * matrix[-1, :]
        for (part, one), matrix in zip(parts, columns, strict=True)
    ]
    total, rest = products[0][:, 0], products[0][:, -1]
    for i, product in enumerate(products):
        for j in range(count - 1 - i):
            if i or j:
                total, lost = two_sum(total, product[:, j])
                rest = rest + lost
        if i:
            rest = rest + product[:, -1]
    return two_sum(total, rest)


def _by_sub_blocks(vectors: Any, part: Sliced, xp: Any) -> Any:
    """Each vector times the rows, for every sub-block of 128 rows: sub-blocks by vectors by columns."""
    rows, one = part
    count, columns = rows.shape
    full = count // SUB_BLOCK
    whole = full * SUB_BLOCK
    cut = xp.permute_dims(xp.reshape(vectors[:, :whole], (-1, full, SUB_BLOCK)), (1, 0, 2))
    products = cut @ xp.reshape(rows[:whole, :], (full, SUB_BLOCK, columns))
    sums = xp.sum(cut, axis=2)
    if whole < count:
        rest = vectors[:, whole:]
        products = xp.concat([products, (rest @ rows[whole:, :])[None, :, :]])
        sums = xp.concat([sums, xp.sum(rest, axis=1)[None, :]])
    return products if one is None else xp.concat([products, (one * sums)[:, :, None]], axis=2)


def _in_groups(values: Any, xp: Any) -> tuple[Any, int]:
    """The column sums, in groups of about as many rows as there are groups; and the chain of additions."""
    count, columns = values.shape
    size = max(1, math.isqrt(count))
    whole = count // size * size
    groups = xp.sum(xp.reshape(values[:whole, :], (-1, size, columns)), axis=1)
    total = xp.sum(groups, axis=0) + xp.sum(values[whole:, :], axis=0)
    return total, size + count // size + size + 1


def _gram(rows: Any, curvature: Any, space: Space, *, intercept: bool) -> tuple[FloatArray, int]:
    """The sum of the squares of the rows in groups of at most ``LONGEST_SUM``, and how many groups."""
    xp, (count, columns) = space.xp, rows.shape
    root = xp.sqrt(curvature)
    scaled = rows * root[:, None]
    groups = count // LONGEST_SUM
    whole = groups * LONGEST_SUM
    total = _square(scaled[whole:, :][None, :, :], root[whole:][None, :], xp, intercept)
    if groups:
        cut = xp.reshape(scaled[:whole, :], (groups, LONGEST_SUM, columns))
        total = total + _square(cut, xp.reshape(root[:whole], (groups, LONGEST_SUM)), xp, intercept)
    square = on_host(total)
    return 0.5 * (square + square.T), groups + 2


def _square(groups: Any, roots: Any, xp: Any, intercept: bool) -> Any:
    """The sum over groups of each one's sum of squares, with a column for the intercept."""
    square = xp.sum(xp.matrix_transpose(groups) @ groups, axis=0)
    if not intercept:
        return square
    border = xp.sum(roots[:, None, :] @ groups, axis=0)[0, :]
    return bordered(square, border, xp.sum(xp.sum(roots * roots, axis=1)), xp)


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
    a, b = (np.exp(3.0 * random.normal(size=4096)) * random.normal(size=4096) for _ in range(2))
    there = space.put(a), space.put(b)
    pairs = [(two_sum(a, b), two_sum(*there)), (two_prod(a, b), two_prod(*there))]
    same = [np.array_equal(on_host(x), y) for one, two in pairs for x, y in zip(two, one, strict=True)]
    same.append(np.array_equal(on_host(there[0] / there[1]), a / b))
    root = np.sqrt(np.abs(a))
    same.append(
        bool(np.all(np.abs(on_host(space.xp.sqrt(space.xp.abs(there[0]))) - root) <= np.spacing(root)))
    )
    return bool(np.all(product.astype(np.int64) == vectors @ rows)) and all(same)
