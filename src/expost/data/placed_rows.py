"""Encoded rows on the device where they lie, for products."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from expost._common.namespaces import Space
from expost.data.design import SMALLEST_SCALE, Design, not_finite_error

# Rows longer than this are scaled before they are multiplied, not after: their products can overflow.
_LONG = 1e15


@dataclass(frozen=True, eq=False)
class PlacedRows:
    r"""A block of encoded rows on its device, :math:`\tilde x = (s x, 1)`, for products; private.

    Neither the scaled rows nor the column of ones is stored: a product with the rows as they lie is scaled.
    """

    space: Space
    stored: Any
    """The rows without the intercept, in the type in which the table has them."""
    wide: Any
    """The same as doubles."""
    lengths: Any
    """Their Euclidean norms."""
    scales: Any
    """What each row is multiplied with; None where that is one for all of them."""
    intercept: bool

    @classmethod
    def of(cls, raw: Any, design: Design, space: Space) -> Self:
        """Rows of a table as the mechanism sees them, or DomainError where some are not finite.

        No encoded row is longer than the design's norm: scales are rounded down, as :class:`Design` has them.
        """
        xp = space.xp
        if xp.isdtype(raw.dtype, "bool"):
            raw = xp.astype(raw, xp.uint8)
        wide = xp.astype(raw, xp.float64, copy=False)
        lengths = xp.linalg.vector_norm(wide, axis=1)
        longest = float(xp.max(lengths))
        if longest * design.margin <= design.norm:
            return cls(space, raw, wide, lengths, None, design.intercept)
        if longest <= _LONG:
            return cls(space, raw, wide, lengths, _scales(lengths, design, xp), design.intercept)
        if not bool(xp.all(xp.isfinite(wide))):
            raise not_finite_error()
        # The squares may have overflowed: factor the largest entry out.
        largest = xp.max(xp.abs(wide), axis=1)
        largest = xp.where(largest > 1.0, largest, xp.ones_like(largest))
        lengths = largest * xp.linalg.vector_norm(wide / largest[:, None], axis=1)
        wide = wide * _scales(lengths, design, xp)[:, None]
        return cls(space, wide, wide, xp.linalg.vector_norm(wide, axis=1), None, design.intercept)

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
        """The sum of the rows, each times its weight."""
        xp = self.space.xp
        total = self._scaled(weights) @ self.wide
        return xp.concat([total, xp.reshape(xp.sum(weights), (1,))]) if self.intercept else total

    def gram(self, weights: Any, precision: Any) -> Any:
        """The sum of the squares of the rows, each times its weight, with products of the given precision."""
        xp = self.space.xp
        root = xp.sqrt(weights)
        narrow = xp.astype(self._scaled(root), precision, copy=False)
        square = xp.astype(self.stored, precision, copy=False) * narrow[:, None]
        total = xp.astype(square.T @ square, xp.float64, copy=False)
        if not self.intercept:
            return total
        border = xp.astype(xp.astype(root, precision, copy=False) @ square, xp.float64, copy=False)
        return bordered(total, border, xp.sum(weights), xp)

    def lengths_under(self, matrix: Any) -> Any:
        """The length of each row's image under a matrix, whose columns are those without the intercept."""
        return self._scaled(self.space.xp.linalg.vector_norm(self.wide @ matrix.T, axis=1))

    @cached_property
    def squares(self) -> Any:
        """The squared norm of each encoded row."""
        length = self._scaled(self.lengths)
        return length * length + float(self.intercept)

    def cut(self, length: int) -> Iterator[tuple[slice, Self]]:
        """The same rows in shorter blocks, each with its place among them, for kernels that need memory."""
        count = int(self.wide.shape[0])
        for low in range(0, count, length):
            here = slice(low, min(low + length, count))
            scales = None if self.scales is None else self.scales[here]
            yield (
                here,
                replace(
                    self,
                    stored=self.stored[here, :],
                    wide=self.wide[here, :],
                    lengths=self.lengths[here],
                    scales=scales,
                ),
            )

    def features(self) -> Any:
        """The scaled rows as doubles, without the intercept."""
        return self.wide if self.scales is None else self.wide * self.scales[:, None]

    def encoded(self) -> Any:
        """The rows themselves, scaled and with the column of ones."""
        xp, rows = self.space.xp, self.features()
        return xp.concat([rows, xp.ones_like(rows[:, :1])], axis=1) if self.intercept else rows

    def _scaled(self, values: Any) -> Any:
        return values if self.scales is None else values * self.scales


def bordered(square: Any, border: Any, corner: Any, xp: Any) -> Any:
    """A symmetric matrix with one more row and column."""
    top = xp.concat([square, border[:, None]], axis=1)
    return xp.concat([top, xp.concat([border, xp.reshape(corner, (1,))])[None, :]])


def _scales(lengths: Any, design: Design, xp: Any) -> Any:
    """As :class:`Design` has them."""
    ratios = design.norm / (lengths * design.margin)
    ratios = xp.where(ratios < SMALLEST_SCALE, xp.zeros_like(ratios), ratios)
    return xp.where(ratios < 1.0, ratios, xp.ones_like(ratios))
