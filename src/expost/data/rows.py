"""Encoded rows where they lie, in NumPy or on a device: what kernels multiply and add up."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from expost._common.namespaces import HERE, Space
from expost._common.typing import FloatArray
from expost.data.blocks import Block, SparseRows, not_finite_error, part_of
from expost.data.design import Design, long_lengths

# Rows longer than this are scaled before they are multiplied, not after: their products can overflow.
LONG = 1e15
LONGEST_SUM = 8192
"""Rows whose squares are added up before their sum is added to that of the others, at most."""
# Rows that keep a device busy, or how many times more than there are columns, so that the sums of groups
# take little memory.
_GROUP_ROWS, _ROWS_PER_COLUMN = 2048, 8
# From how many columns on a triangular matrix is cut into how many strips, most of its zeros left out.
_WIDE, _STRIPS = 512, 4
# Numbers that a kernel may hold for a block of NumPy's rows, and those of a product that fits the cache.
_ROOM, _TILE_NUMBERS = 1 << 22, 65_536
# From how many columns on NumPy's product with a triangular matrix is cut into panels, and their rows.
_PANELLED, _PANEL = 200, 48


@dataclass(frozen=True, eq=False)
class DenseRows:
    r"""A block of encoded rows where they lie, :math:`\tilde x = (s x, 1)`, for products; private.

    On a device neither the scaled rows nor the column of ones is stored: a product with the rows as they lie
    is scaled. NumPy's are copied, scaled and completed before any kernel sees them
    (:meth:`~expost.data.design.Design.dense`).
    """

    space: Space
    stored: Any
    """The rows without the intercept, in the type in which the table has them."""
    scales: Any
    """What each row is multiplied with; None where that is one for all of them."""
    intercept: bool
    room: int
    """How many numbers a kernel may hold in addition to the table."""
    lengths: Any = None
    """The norms of the rows as they are stored, where they were measured."""
    together: int | None = None
    """How many rows are multiplied at a time, where a product may not depend on the rows beside them."""

    @classmethod
    def of(cls, raw: Any, design: Design, space: Space, *, room: int, lengths: Any = None) -> Self:
        """Rows of a table as the mechanism sees them, or DomainError where some are not finite.

        No encoded row is longer than the design's norm: scales are rounded down, as :class:`Design` has them.
        ``lengths`` are the rows' norms where they are known, none of them beyond ``LONG``.
        """
        xp = space.xp
        raw = without_truths(raw, xp)
        if lengths is None:
            wide = xp.astype(raw, xp.float64, copy=False)
            lengths = xp.linalg.vector_norm(wide, axis=1)
            longest = float(xp.max(lengths))
            if design.holds(longest):
                return cls(space, raw, None, design.intercept, room, lengths)
            if not longest <= LONG:
                if not bool(xp.all(xp.isfinite(wide))):
                    raise not_finite_error()
                scaled = wide * design.scales(long_lengths(wide))[:, None]
                return cls(space, scaled, None, design.intercept, room)
        return cls(space, raw, design.scales(lengths), design.intercept, room, lengths)

    @classmethod
    def here(cls, matrix: FloatArray, together: int | None = None) -> Self:
        """NumPy's rows, which come encoded."""
        return cls(HERE, matrix, None, intercept=False, room=_ROOM, together=together)

    def __len__(self) -> int:
        return int(self.stored.shape[0])

    @property
    def columns(self) -> int:
        """How many numbers an encoded row has."""
        return int(self.stored.shape[1]) + self.intercept

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
        """The inner products without the intercept, with vectors and matrices that have none either."""
        if self.together is not None:  # BLAS rounds a row by its place in a product
            found = np.reshape(self.wide, (-1, self.together, self.columns)) @ right
            return np.reshape(found, (-1, *right.shape[1:]))
        return self._scaled(self.wide @ right)

    def summed(self, weights: Any) -> Any:
        """The sum of the rows, each times its weight; with a matrix of weights, one sum for each column."""
        xp = self.space.xp
        scaled = self._scaled(weights)
        total = (scaled if weights.ndim == 1 else scaled.T) @ self.wide
        return xp.concat([total, xp.sum(weights, axis=0)[..., None]], axis=-1) if self.intercept else total

    def gram(self, weights: Any, precision: Any) -> tuple[Any, int]:
        """The sum of the squares of the rows, each times its weight, with products of the given precision.

        Rows are added up in groups of at most ``LONGEST_SUM``, and the groups in double precision. The second
        result is how many groups these are, their own sums included.
        """
        xp, columns = self.space.xp, self.stored.shape[1]
        total, groups = self.space.zeros(self.columns, self.columns), 0
        length = min(max(_GROUP_ROWS, _ROWS_PER_COLUMN * columns), LONGEST_SUM)
        root = xp.sqrt(weights)
        for here, rows in self.cut(max(1, self.room // (2 * columns))):
            narrow = xp.astype(rows._scaled(root[here]), precision, copy=False)
            square = xp.astype(rows.stored, precision, copy=False) * narrow[:, None]
            ones = xp.astype(root[here], precision, copy=False)[:, None] if self.intercept else None
            total += _sum_of_squares(square, ones, length, xp)
            groups += len(rows) // length + 2
        return total, groups

    def squares_under(self, triangle: Any) -> Any:
        """The squared length of each row's image under a lower triangular matrix, or what stands for one."""
        if hasattr(triangle, "squares_under"):
            return triangle.squares_under(self.encoded())
        xp, size = self.space.xp, int(self.stored.shape[1])
        if xp is np:
            return _host_squares_under(self.wide, triangle)
        edges = [size * i // _STRIPS for i in range(_STRIPS + 1)] if size >= _WIDE else [0, size]
        parts = []
        for _, rows in self.cut(max(1, self.room // (2 * size))):
            total = 0.0
            for low, high in pairwise(edges):
                image = xp.linalg.vector_norm(rows.wide[:, :high] @ triangle[low:high, :high].T, axis=1)
                total = total + image * image
            parts.append(total if rows.scales is None else total * rows.scales**2)
        total = xp.concat(parts)
        if self.intercept:  # whose one meets the last row of the matrix alone
            last = self @ triangle[-1, :]
            total = total + last * last
        return total

    def forms_under(self, triangle: Any, outputs: int) -> Any:
        r"""The matrix of :math:`x^\top(U^\top U)_{ab}x` of each row :math:`x`, :math:`U` lower triangular.

        :math:`U` has ``outputs`` blocks of columns. Block :math:`a` needs its rows from :math:`a` on alone:
        :math:`Z_a = U_{a:,a}x`, and :math:`Z_a\cdot Z_b` over their common rows. That is
        :math:`nd^2k(k+1)/2` products and positive semi-definite by construction.
        """
        xp, columns = self.space.xp, self.columns
        if xp is np:
            return _host_forms_under(self.wide, triangle, outputs)
        parts = []
        # On a device strip by strip: each adds its part to the predictors that it has.
        for _, rows in self.cut(max(1, self.room // (5 * outputs * columns))):
            forms = self.space.zeros(len(rows), outputs, outputs)
            for c in range(outputs):
                strip = triangle[c * columns : (c + 1) * columns, : (c + 1) * columns]
                blocks = xp.permute_dims(xp.reshape(strip, (columns, c + 1, columns)), (2, 1, 0))
                image = rows @ xp.reshape(blocks, (columns, (c + 1) * columns))
                image = xp.reshape(image, (-1, c + 1, columns))
                forms[:, : c + 1, : c + 1] += image @ xp.matrix_transpose(image)
            parts.append(forms)
        return xp.concat(parts)

    @cached_property
    def squares(self) -> Any:
        """The squared norm of each encoded row."""
        if self.space.xp is np:
            return np.vecdot(self.wide, self.wide)
        lengths = self.lengths
        if lengths is None:
            lengths = self.space.xp.linalg.vector_norm(self.wide, axis=1)
        return self._scaled(lengths) ** 2 + float(self.intercept)

    def cut(self, length: int) -> Iterator[tuple[slice, Self]]:
        """The rows in shorter blocks, each with its place among them, for kernels that need memory."""
        count = len(self)
        if count <= length:
            yield slice(0, count), self
            return
        for low in range(0, count, length):
            here = slice(low, min(low + length, count))
            scales, lengths = part_of(self.scales, here), part_of(self.lengths, here)
            some = replace(self, stored=self.stored[here, :], scales=scales, lengths=lengths)
            if "wide" in self.__dict__:  # not to be converted again
                some.__dict__["wide"] = self.wide[here, :]
            yield here, some

    def features(self) -> Any:
        """The scaled rows as doubles, without the intercept."""
        if self.scales is None:
            return self.wide
        # Single precision is converted on the way.
        single = self.space.xp.isdtype(self.stored.dtype, "real floating")
        return (self.stored if single else self.wide) * self.scales[:, None]

    def encoded(self) -> Any:
        """The rows themselves, scaled and with the column of ones."""
        xp, rows = self.space.xp, self.features()
        return xp.concat([rows, xp.ones_like(rows[:, :1])], axis=1) if self.intercept else rows

    def _scaled(self, values: Any) -> Any:
        if self.scales is None:
            return values
        return values * (self.scales if values.ndim == 1 else self.scales[:, None])


def row_blocks(
    blocks: Iterator[Block], width: int = 1, longest: int | None = None, *, each: int | None = None
) -> Iterator[Block]:
    """Blocks of at most ``longest`` rows, for a kernel that holds ``width`` numbers for each of them.

    ``each`` rows that make one person stay together, however many they are, and are multiplied together.
    """
    for X, y, weights, *_ in blocks:
        if isinstance(X, SparseRows):
            yield Block(X, y, weights)
            continue
        rows = DenseRows.here(X, each) if isinstance(X, np.ndarray) else X
        most, whole = min(max(1, rows.room // width), longest or max(1, len(rows))), each or 1
        for here, some in rows.cut(max(most // whole, 1) * whole):
            labels = y[here] if y.shape[0] else y  # there are none where only rows were asked for
            yield Block(some, labels, part_of(weights, here))


def _host_squares_under(rows: FloatArray, triangle: FloatArray) -> FloatArray:
    """Records along the second axis, over which sums of squares are fast; most of the zeros left out."""
    size = len(triangle)
    first = size // 32 * 8  # in steps in which BLAS is fast
    edges = [0, first, size] if size < _PANELLED else [*range(0, size, _PANEL), size]
    total = np.zeros(len(rows))
    tile = max(_TILE_NUMBERS // size, 512)
    for start in range(0, len(rows), tile):
        some = rows[start : start + tile]
        for low, high in pairwise(edges):
            image = triangle[low:high, :high] @ some[:, :high].T
            total[start : start + tile] += np.einsum("ij,ij->j", image, image)
    return total


def _host_forms_under(rows: FloatArray, triangle: FloatArray, outputs: int) -> FloatArray:
    """In pairs of predictors: NumPy is slow in many small products."""
    columns = rows.shape[1]
    images = [rows @ triangle[a * columns :, a * columns : (a + 1) * columns].T for a in range(outputs)]
    forms = np.empty((len(rows), outputs, outputs))
    for a in range(outputs):
        for b in range(a, outputs):
            forms[:, a, b] = forms[:, b, a] = np.vecdot(images[a][:, (b - a) * columns :], images[b])
    return forms


def without_truths(raw: Any, xp: Any) -> Any:
    """Cells that can be multiplied: truth values become whole numbers."""
    return xp.astype(raw, xp.uint8) if xp.isdtype(raw.dtype, "bool") else raw


def _sum_of_squares(rows: Any, ones: Any, length: int, xp: Any) -> Any:
    """The sum of the squares of rows, in groups of ``length`` whose sums are added up in double precision.

    ``ones`` is what the intercept's column, which is not stored, would be, or None.
    """
    count, columns = rows.shape
    whole = count // length * length

    def square(some: Any, last: Any) -> Any:
        transposed = xp.matrix_transpose(some)
        product = transposed @ some
        if last is None:
            return product
        border, corner = transposed @ last, xp.matrix_transpose(last) @ last
        top = xp.concat([product, border], axis=-1)
        return xp.concat([top, xp.concat([xp.matrix_transpose(border), corner], axis=-1)], axis=-2)

    total = xp.astype(
        square(rows[whole:, :], None if ones is None else ones[whole:, :]), xp.float64, copy=False
    )
    if whole:
        cut = xp.reshape(rows[:whole, :], (-1, length, columns))
        last = None if ones is None else xp.reshape(ones[:whole, :], (-1, length, 1))
        total = total + xp.sum(square(cut, last), axis=0, dtype=xp.float64)
    return total
