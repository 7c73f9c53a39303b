"""Encoded rows on the device where they lie, for products."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

from expost._common.namespaces import Space
from expost.data.design import SMALLEST_SCALE, Design, not_finite_error

# Rows longer than this are scaled before they are multiplied, not after: their products can overflow.
LONG = 1e15
# Rows whose squares are added up at a time: so many products keep a device busy, and their sums are added up
# in double precision. There are so many times more rows than columns that the sums take little memory.
_GROUP_ROWS, _ROWS_PER_COLUMN = 2048, 8
# From so many columns on a triangular matrix is multiplied in so many strips, most of its zeros left out.
_WIDE, _STRIPS = 512, 4


@dataclass(frozen=True, eq=False)
class PlacedRows:
    r"""A block of encoded rows on its device, :math:`\tilde x = (s x, 1)`, for products; private.

    Neither the scaled rows nor the column of ones is stored: a product with the rows as they lie is scaled.
    """

    space: Space
    stored: Any
    """The rows without the intercept, in the type in which the table has them."""
    scales: Any
    """What each row is multiplied with; None where that is one for all of them."""
    intercept: bool
    room: int
    """How many numbers a kernel may hold beside the table."""
    lengths: Any = None
    """The norms of the rows as they are stored, where they were measured."""

    @classmethod
    def of(cls, raw: Any, design: Design, space: Space, *, room: int, lengths: Any = None) -> Self:
        """Rows of a table as the mechanism sees them, or DomainError where some are not finite.

        No encoded row is longer than the design's norm: scales are rounded down, as :class:`Design` has them.
        ``lengths`` are the rows' norms where they are known, none of them beyond ``LONG``.
        """
        xp = space.xp
        raw = as_numbers(raw, xp)
        if lengths is None:
            wide = xp.astype(raw, xp.float64, copy=False)
            lengths = xp.linalg.vector_norm(wide, axis=1)
            longest = float(xp.max(lengths))
            if design.holds(longest):
                return cls(space, raw, None, design.intercept, room, lengths)
            if not longest <= LONG:
                if not bool(xp.all(xp.isfinite(wide))):
                    raise not_finite_error()
                return cls(space, _scaled_first(wide, design, xp), None, design.intercept, room)
        return cls(space, raw, _scales(lengths, design, xp), design.intercept, room, lengths)

    @cached_property
    def wide(self) -> Any:
        """The rows as doubles, not yet scaled."""
        return self.space.xp.astype(self.stored, self.space.xp.float64, copy=False)

    def __matmul__(self, right: Any) -> Any:
        """The inner product of each row with a vector, or with each column of a matrix."""
        if not self.intercept:
            return self.times(right)
        return self.times(right[:-1, ...]) + right[-1, ...]

    def times(self, right: Any) -> Any:
        """The same without the intercept, for vectors and matrices that have none either."""
        product = self.wide @ right
        if self.scales is None:
            return product
        return (self.scales if product.ndim == 1 else self.scales[:, None]) * product

    def summed(self, weights: Any) -> Any:
        """The sum of the rows, each times its weight; with a matrix of weights, one sum for each column."""
        xp = self.space.xp
        scaled = self._scaled(weights)
        total = (scaled if weights.ndim == 1 else scaled.T) @ self.wide
        return xp.concat([total, xp.sum(weights, axis=0)[..., None]], axis=-1) if self.intercept else total

    def gram(self, weights: Any, precision: Any) -> Any:
        """The sum of the squares of the rows, each times its weight, with products of the given precision."""
        xp, columns = self.space.xp, self.stored.shape[1]
        total, border = self.space.zeros(columns, columns), self.space.zeros(columns)
        root = xp.sqrt(weights)
        for here, rows in self.cut(max(1, self.room // (2 * columns))):
            narrow = xp.astype(rows._scaled(root[here]), precision, copy=False)
            square = xp.astype(rows.stored, precision, copy=False) * narrow[:, None]
            total += sum_of_squares(square, max(_GROUP_ROWS, _ROWS_PER_COLUMN * columns), xp)
            if self.intercept:
                beside = xp.astype(root[here], precision, copy=False) @ square
                border += xp.astype(beside, xp.float64, copy=False)
        return bordered(total, border, xp.sum(weights), xp) if self.intercept else total

    def squares_under(self, triangle: Any) -> Any:
        """The squared length of each row's image under a lower triangular matrix, intercepts left out."""
        xp, size = self.space.xp, triangle.shape[0]
        edges = [size * i // _STRIPS for i in range(_STRIPS + 1)] if size >= _WIDE else [0, size]
        parts = []
        for here, rows in self.cut(max(1, self.room // (2 * size))):
            total = 0.0
            for low, high in pairwise(edges):
                strip = triangle[low:high, :high] if high < size else triangle[low:, :]
                image = xp.linalg.vector_norm(rows.wide[:, : strip.shape[1]] @ strip.T, axis=1)
                total = total + image * image
            parts.append(total if self.scales is None else total * self.scales[here] ** 2)
        return xp.concat(parts)

    @cached_property
    def squares(self) -> Any:
        """The squared norm of each encoded row."""
        lengths = self.lengths
        if lengths is None:
            lengths = self.space.xp.linalg.vector_norm(self.wide, axis=1)
        return self._scaled(lengths) ** 2 + float(self.intercept)

    def cut(self, length: int) -> Iterator[tuple[slice, Self]]:
        """The same rows in shorter blocks, each with its place among them, for kernels that need memory."""
        count = int(self.stored.shape[0])
        if count <= length:
            yield slice(0, count), self
            return
        for low in range(0, count, length):
            here = slice(low, min(low + length, count))
            scales, lengths = (
                None if values is None else values[here] for values in (self.scales, self.lengths)
            )
            some = replace(self, stored=self.stored[here, :], scales=scales, lengths=lengths)
            if "wide" in self.__dict__:  # not to be converted again
                some.__dict__["wide"] = self.wide[here, :]
            yield here, some

    def features(self) -> Any:
        """The scaled rows as doubles, without the intercept."""
        if self.scales is None:
            return self.wide
        xp = self.space.xp
        # Single precision is converted on the way.
        rows = self.stored if xp.isdtype(self.stored.dtype, "real floating") else self.wide
        return rows * self.scales[:, None]

    def encoded(self) -> Any:
        """The rows themselves, scaled and with the column of ones."""
        xp, rows = self.space.xp, self.features()
        return xp.concat([rows, xp.ones_like(rows[:, :1])], axis=1) if self.intercept else rows

    def _scaled(self, values: Any) -> Any:
        if self.scales is None:
            return values
        return values * (self.scales if values.ndim == 1 else self.scales[:, None])


def as_numbers(raw: Any, xp: Any) -> Any:
    """Cells that can be multiplied: truth values become whole numbers."""
    return xp.astype(raw, xp.uint8) if xp.isdtype(raw.dtype, "bool") else raw


def sum_of_squares(rows: Any, length: int, xp: Any) -> Any:
    """The sum of the squares of rows, in groups of ``length`` whose sums are added up in double precision."""
    count, columns = rows.shape
    whole = count // length * length
    rest = rows[whole:, :]
    total = xp.astype(rest.T @ rest, xp.float64, copy=False)
    if whole:
        groups = xp.reshape(rows[:whole, :], (-1, length, columns))
        total = total + xp.sum(xp.matrix_transpose(groups) @ groups, axis=0, dtype=xp.float64)
    return total


def bordered(square: Any, border: Any, corner: Any, xp: Any) -> Any:
    """A symmetric matrix with one more row and column."""
    top = xp.concat([square, border[:, None]], axis=1)
    return xp.concat([top, xp.concat([border, xp.reshape(corner, (1,))])[None, :]])


def _scales(lengths: Any, design: Design, xp: Any) -> Any:
    """As :class:`Design` has them."""
    ratios = design.norm / (lengths * design.margin)
    ratios = xp.where(ratios < SMALLEST_SCALE, xp.zeros_like(ratios), ratios)
    return xp.where(ratios < 1.0, ratios, xp.ones_like(ratios))


def _scaled_first(wide: Any, design: Design, xp: Any) -> Any:
    """Scaled rows of which the squares may have overflowed: the largest entry is factored out."""
    largest = xp.max(xp.abs(wide), axis=1)
    largest = xp.where(largest > 1.0, largest, xp.ones_like(largest))
    lengths = largest * xp.linalg.vector_norm(wide / largest[:, None], axis=1)
    return wide * _scales(lengths, design, xp)[:, None]
