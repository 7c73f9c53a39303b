"""Tables that stay on their device, and their encoded rows there."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from expost._common.namespaces import Space, namespace_of, on_host
from expost.data.blocks import Block
from expost.data.design import SMALLEST_SCALE, Design, not_finite_error
from expost.data.scan import Scan
from expost.data.source import NO_LABELS, Source
from expost.engines.base import Engine
from expost.exceptions import DomainError

R_co = TypeVar("R_co", covariant=True)

# A block on a device: enough numbers to keep it busy, at most this share of the table, so that what kernels
# hold beside the table stays below a quarter of it.
_NUMBERS, _SHARE, _LEAST_ROWS = 1 << 26, 32, 1 << 13
# Rows longer than this are scaled before they are multiplied, not after.
_LONG = 1e15
# Numbers that are copied to the host at a time.
_COPIED = 1 << 22


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
    """What each row is multiplied with."""
    intercept: bool

    def __matmul__(self, right: Any) -> Any:
        """The inner product of each row with a vector, or with each column of a matrix."""
        scales = self.scales if right.ndim == 1 else self.scales[:, None]
        if not self.intercept:
            return scales * (self.wide @ right)
        return scales * (self.wide @ right[:-1, ...]) + right[-1, ...]

    def summed(self, weights: Any) -> Any:
        """The sum of the rows, each times its weight."""
        xp = self.space.xp
        total = (weights * self.scales) @ self.wide
        if not self.intercept:
            return total
        return xp.concat([total, xp.reshape(xp.sum(weights), (1,))])

    def gram(self, weights: Any, precision: Any) -> Any:
        """The sum of the squares of the rows, each times its weight, with products of the given precision."""
        xp = self.space.xp
        root = xp.sqrt(weights)
        square = xp.astype(self.stored, precision, copy=True)
        square *= xp.astype(root * self.scales, precision, copy=False)[:, None]
        total = xp.astype(square.T @ square, xp.float64, copy=False)
        if not self.intercept:
            return total
        border = xp.astype(xp.astype(root, precision, copy=False) @ square, xp.float64, copy=False)
        corner = xp.reshape(xp.sum(weights), (1, 1))
        return xp.concat(
            [xp.concat([total, border[:, None]], axis=1), xp.concat([border[None, :], corner], axis=1)]
        )

    def encoded(self) -> Any:
        """The rows themselves, scaled and with the column of ones: a copy in doubles."""
        xp = self.space.xp
        rows = self.wide * self.scales[:, None]
        return xp.concat([rows, xp.ones_like(rows[:, :1])], axis=1) if self.intercept else rows

    @cached_property
    def squares(self) -> Any:
        """The squared norm of each encoded row."""
        length = self.scales * self.lengths
        return length * length + float(self.intercept)


@runtime_checkable
class Kernel(Protocol[R_co]):
    """A pass that can be run where the rows lie; any other gets them block by block on the host."""

    def in_place(self, blocks: Iterator[Block], space: Space) -> R_co:
        """What is found in the blocks, whose rows are :class:`PlacedRows`; sums come back as NumPy's."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class PlacedSource(Source):
    """A table of another library's, which stays where it is, with labels and weights beside it.

    :meth:`placed` has its encoded rows there, for kernels; other passes get them on the host.
    """

    matrix: Any
    space: Space
    labels: Any = None
    weights: Any = None

    @classmethod
    def of(cls, X: Any) -> Self:
        """Check what is public of a table: its shape, its type and its device."""
        if X.ndim != 2:
            raise DomainError(
                "`X` must be two-dimensional, one row per record. Reshape your data: X.reshape(1, -1) is one "
                "row."
            )
        matrix = X.detach() if hasattr(X, "detach") else X
        xp = namespace_of(matrix)
        if not xp.isdtype(matrix.dtype, ("bool", "integral", "real floating")):
            raise DomainError(f"`X` must hold real numbers; got dtype {matrix.dtype}.")
        if matrix.shape[1] == 0:
            raise DomainError("`X` has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
        if matrix.shape[0] == 0:
            raise DomainError("`X` must have at least one row; got an empty table.")
        return cls(matrix, Space.of(matrix))

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.matrix.shape[1])

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.matrix.shape[0])

    def labelled(self, labels: Any, weights: Any) -> Self:
        """The same rows with labels and weights, which are copied to the device once."""
        put = self.space.put
        return replace(self, labels=put(labels), weights=None if weights is None else put(weights))

    def thinned(self, every: int) -> Self:
        """Each ``every``-th row, as a view."""
        labels, weights = self.labels, self.weights
        return replace(
            self,
            matrix=self.matrix[::every, :],
            labels=None if labels is None else labels[::every],
            weights=None if weights is None else weights[::every],
        )

    def scanned(self, scan: Scan, engine: Engine) -> Self:
        """Check all rows where they lie."""
        with np.errstate(all="ignore"):
            for part in self.parts(self.n_features):
                scan(part.blocks(part.stop - part.start))
        return self

    def parts(self, width: int) -> "list[PlacedPart]":
        """Large blocks, the same for every pass.

        A row's norm can depend on how many are reduced together. With blocks that are always the same, every
        pass sees the same encoded rows to the last bit, whether it is run on the device or on the host.
        """
        most = min(_NUMBERS // self.n_features, -(-self.n_rows // _SHARE))
        length = max(_LEAST_ROWS, most // _LEAST_ROWS * _LEAST_ROWS)
        return [
            PlacedPart(self, low, min(low + length, self.n_rows)) for low in range(0, self.n_rows, length)
        ]

    def encoded_parts(self, design: Design, width: int, *, products: bool) -> "list[HostPart]":
        """The blocks encoded on the device, then copied to the host as they are read."""
        return [HostPart(part, design) for part in self.parts(width)]

    def placed(self, design: Design, beside: Any = None) -> Iterator[Block]:
        """Encoded rows on the device, in large blocks; ``beside`` takes the place of labels and weights.

        Every pass checks and scales what it reads, as :meth:`Design.dense` does.
        """
        for part in self.parts(self.n_features):
            block = part.encoded(design)
            yield block if beside is None else Block(block.X, beside[part.start : part.stop], None)

    def block(self, start: int, stop: int) -> Block:
        """Some rows as they lie in the table."""
        labels = NO_LABELS if self.labels is None else self.labels[start:stop]
        weights = None if self.weights is None else self.weights[start:stop]
        return Block(self.matrix[start:stop, :], labels, weights)

    def encode(self, raw: Any, design: Design) -> PlacedRows:
        """Rows as the mechanism sees them, or DomainError."""
        xp = self.space.xp
        if xp.isdtype(raw.dtype, "bool"):
            raw = xp.astype(raw, xp.uint8)
        wide = xp.astype(raw, xp.float64, copy=False)
        lengths = xp.linalg.vector_norm(wide, axis=1)
        if bool(xp.all(lengths <= _LONG)):
            scales = _scales(lengths, design, xp)
            return PlacedRows(self.space, raw, wide, lengths, scales, design.intercept)
        if not bool(xp.all(xp.isfinite(wide))):
            raise not_finite_error()
        # Squares or products of such rows can overflow: factor the largest entry out, and scale the rows
        # themselves.
        largest = xp.max(xp.abs(wide), axis=1)
        largest = xp.where(largest > 1.0, largest, xp.ones_like(largest))
        lengths = largest * xp.linalg.vector_norm(wide / largest[:, None], axis=1)
        wide = wide * _scales(lengths, design, xp)[:, None]
        lengths = xp.linalg.vector_norm(wide, axis=1)
        return PlacedRows(self.space, wide, wide, lengths, xp.ones_like(lengths), design.intercept)


def _scales(lengths: Any, design: Design, xp: Any) -> Any:
    """As :class:`Design` has them."""
    ratios = design.norm / (lengths * design.margin)
    ratios = xp.where(ratios < SMALLEST_SCALE, xp.zeros_like(ratios), ratios)
    return xp.where(ratios < 1.0, ratios, xp.ones_like(ratios))


@dataclass(frozen=True, eq=False, repr=False)
class PlacedPart:
    """Rows ``start`` to ``stop`` of a table on a device."""

    source: PlacedSource
    start: int
    stop: int

    def blocks(self, length: int) -> Iterator[Block]:
        """The rows as they lie in the table."""
        for low in range(self.start, self.stop, length):
            yield self.source.block(low, min(low + length, self.stop))

    def encoded(self, design: Design) -> Block:
        """All rows of the part, encoded, in one block."""
        block = self.source.block(self.start, self.stop)
        return block._replace(X=self.source.encode(block.X, design))


@dataclass(frozen=True, eq=False, repr=False)
class HostPart:
    """Rows that are encoded on their device and copied to the host."""

    part: PlacedPart
    design: Design

    def blocks(self, length: int) -> Iterator[Block]:
        """The encoded rows block by block, many of them copied at a time."""
        with np.errstate(all="ignore"):
            encoded, y, w = self.part.encoded(self.design)
            matrix = encoded.encoded()
        labels, weights = on_host(y), None if w is None else on_host(w)
        together = max(1, _COPIED // (length * self.design.dimension)) * length
        count = int(matrix.shape[0])
        for low in range(0, count, together):
            rows = np.ascontiguousarray(on_host(matrix[low : min(low + together, count), :]))
            for first in range(0, len(rows), length):
                here = slice(low + first, low + first + length)
                yield Block(
                    rows[first : first + length], labels[here], None if weights is None else weights[here]
                )
