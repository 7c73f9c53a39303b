"""Tables that stay on their device, and their encoded rows there."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from expost._common.namespaces import Space, namespace_of, on_host
from expost.data.blocks import Block
from expost.data.design import Design
from expost.data.placed_rows import PlacedRows
from expost.data.scan import Scan
from expost.data.source import NO_LABELS, Source
from expost.engines.base import Engine
from expost.exceptions import DomainError

R_co = TypeVar("R_co", covariant=True)

# A block on a device: enough numbers to keep it busy, at most this share of the table, so that what kernels
# hold beside the table stays below a quarter of it.
_NUMBERS, _SHARE, _LEAST_ROWS = 1 << 26, 32, 1 << 13
# Numbers that are copied to the host at a time.
_COPIED = 1 << 22


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
        unit = Design(self.n_features, 1.0, False)
        with np.errstate(all="ignore"):
            for part in self.parts(self.n_features):
                block = part.encoded(unit)  # measures the rows, which finds what is not finite
                scan.check_labels(block.y, block.weights)
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


def short_blocks(blocks: Iterator[Block], width: int) -> Iterator[Block]:
    """Blocks of encoded rows on a device, cut for a kernel that holds ``width`` numbers for each row."""
    for rows, y, weights in blocks:
        for here, some in rows.cut(max(1, _NUMBERS // width)):
            yield Block(some, y[here], None if weights is None else weights[here])


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
        return block._replace(X=PlacedRows.of(block.X, design, self.source.space))


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
