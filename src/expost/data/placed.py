"""Tables that stay on their device, and rows that are sent to one block by block."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import chain
from typing import Any, Generic, Self, TypeVar

import numpy as np

from expost._common.namespaces import Space, is_foreign, namespace_of, on_host
from expost._common.progress import Watch
from expost._common.typing import FloatArray
from expost.data.blocks import ArrayTable, Block, check_shape, not_matrix_error, part_of
from expost.data.design import NO_LABELS, Design
from expost.data.people import People, times_shares
from expost.data.rows import LONG, DenseRows, without_truths
from expost.data.sources import ArraySource, RecordCheck, Source
from expost.engines.base import Engine, Kernel
from expost.exceptions import DomainError

# What kernels may hold in addition to the table: this share of it, within these numbers of numbers. To start
# a kernel takes as long as to add up ten thousand numbers or so: blocks are as long as they can be.
_SHARE, _LEAST_NUMBERS, _MOST_NUMBERS = 7, 1 << 22, 1 << 30
# Numbers that a pass of products holds for each row, and the row itself where that is not in doubles.
_PER_ROW = 16
# Norms of the rows are kept from the first pass on where a row has more numbers than this.
_WORTH_KEEPING = 16
# Numbers that are copied to the host at a time.
_COPIED = 1 << 22


@dataclass(frozen=True, eq=False, repr=False)
class PlacedSource(Source):
    """A table of another library's, which stays where it is, with its labels and weights.

    Kernels get its encoded rows there (``encoded`` of its parts), other passes on the host.
    """

    matrix: Any
    space: Space
    labels: Any = None
    weights: Any = None
    people: Any = None
    room: int = _LEAST_NUMBERS
    """How many numbers kernels may hold in addition to the table."""
    lengths: Any = None
    """The norms of the rows, where they were measured and are worth keeping."""
    longest: float = math.inf

    @classmethod
    def of(cls, X: Any) -> Self:
        """Check what is public of a table: its shape, its type and its device."""
        if X.ndim != 2:
            raise not_matrix_error()
        matrix = X.detach() if hasattr(X, "detach") else X
        xp = namespace_of(matrix)
        if not xp.isdtype(matrix.dtype, ("bool", "integral", "real floating")):
            raise DomainError(f"`X` must hold real numbers; got dtype {matrix.dtype}.")
        check_shape(*matrix.shape)
        dtype = without_truths(matrix[:0, :], xp).dtype
        limits = (xp.finfo if xp.isdtype(dtype, "real floating") else xp.iinfo)(dtype)
        numbers = matrix.shape[0] * matrix.shape[1] * int(limits.bits) // (64 * _SHARE)
        return cls(matrix, Space.of(matrix), room=min(max(numbers, _LEAST_NUMBERS), _MOST_NUMBERS))

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.matrix.shape[1])

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.matrix.shape[0])

    def labelled(self, labels: Any, weights: Any) -> Self:
        """The rows with labels and weights, which are copied to the device once."""
        put = self.space.put
        return replace(self, labels=put(labels), weights=None if weights is None else put(weights))

    def with_people(self, people: People, shares: FloatArray | None) -> Self:
        """The rows with the numbers of their people, and other weights."""
        put = None if shares is None else self.space.put(shares)
        return replace(self, people=people.codes, weights=times_shares(self.weights, put))

    def thinned(self, every: int) -> Self:
        """Each ``every``-th row, as a view."""
        others = ("labels", "weights", "people", "lengths")
        views = {name: value[::every] for name in others if (value := getattr(self, name)) is not None}
        return replace(self, matrix=self.matrix[::every, :], **views)

    def checked(self, check: RecordCheck, engine: Engine, watch: Watch | None = None) -> Self:
        """Check all rows where they lie, and measure them, once for all passes that follow."""
        xp, unit, found = self.space.xp, Design(self.n_features, 1.0, False), []
        with np.errstate(all="ignore"):
            for part in self.parts(self.n_features):
                raw, y, weights, _ = self.block(part.start, part.stop)
                wide = xp.astype(without_truths(raw, xp), xp.float64, copy=False)
                found.append(xp.linalg.vector_norm(wide, axis=1))
                if not float(xp.max(found[-1])) <= LONG:
                    DenseRows.of(raw, unit, self.space, room=self.room)  # refuses what is not finite
                check.check_labels(y, weights)
        lengths = xp.concat(found)
        longest = float(xp.max(lengths))
        kept = lengths if longest <= LONG and self.n_features > _WORTH_KEEPING else None
        return replace(self, lengths=kept, longest=longest if kept is not None else math.inf)

    def parts(self, width: int) -> "list[_PlacedPart]":
        """Large blocks, the same for every pass.

        A row's norm can depend on how many are reduced together. With blocks that are always the same, every
        pass sees the same encoded rows to the last bit, whether it is run on the device or on the host.
        """
        numbers = _PER_ROW + (0 if self.matrix.dtype == self.space.xp.float64 else self.n_features)
        length = max(min(self.room // numbers, _MOST_NUMBERS // self.n_features), 1)
        starts = range(0, self.n_rows, length)
        return [_PlacedPart(self, low, min(low + length, self.n_rows)) for low in starts]

    def encoded_parts(self, design: Design, width: int, *, products: bool) -> "list[_HostPart]":
        """The blocks encoded on the device, then copied to the host as they are read."""
        return [_HostPart(part, design) for part in self.parts(width)]

    def block(self, start: int, stop: int) -> Block:
        """Some rows as they lie in the table."""
        here = slice(start, stop)
        labels = NO_LABELS if self.labels is None else self.labels[here]
        return Block(self.matrix[here, :], labels, part_of(self.weights, here), part_of(self.people, here))


@dataclass(frozen=True, eq=False, repr=False)
class _PlacedPart:
    """Rows ``start`` to ``stop`` of a table on a device, as they lie there."""

    source: PlacedSource
    start: int
    stop: int

    def blocks(self, length: int) -> Iterator[Block]:
        for low in range(self.start, self.stop, length):
            yield self.source.block(low, min(low + length, self.stop))

    def encoded(self, design: Design) -> Block:
        """All rows of the part, encoded, in one block."""
        source, block = self.source, self.source.block(self.start, self.stop)
        if design.holds(source.longest):
            raw = without_truths(block.X, source.space.xp)
            return block._replace(X=DenseRows(source.space, raw, None, design.intercept, source.room))
        lengths = part_of(source.lengths, slice(self.start, self.stop))
        return block._replace(
            X=DenseRows.of(block.X, design, source.space, room=source.room, lengths=lengths)
        )


@dataclass(frozen=True, eq=False, repr=False)
class _HostPart:
    """Rows that are encoded on their device and copied to the host, many blocks at a time."""

    part: _PlacedPart
    design: Design

    def blocks(self, length: int) -> Iterator[Block]:
        with np.errstate(all="ignore"):
            encoded, y, w, people = self.part.encoded(self.design)
            matrix = encoded.encoded()
        labels, weights = on_host(y), None if w is None else on_host(w)
        together = max(1, _COPIED // (length * self.design.dimension)) * length
        count = int(matrix.shape[0])
        for low in range(0, count, together):
            rows = np.ascontiguousarray(on_host(matrix[low : min(low + together, count), :]))
            for first in range(0, len(rows), length):
                here = slice(low + first, low + first + length)
                some = rows[first : first + length], labels[here], part_of(weights, here)
                yield Block(*some, part_of(people, here))


Result = TypeVar("Result")

# Numbers of a block that is sent, and those that a kernel may hold in addition.
_SENT, _ROOM = 1 << 23, 1 << 26
# Types that all libraries have.
_KNOWN = {np.dtype(name) for name in ("f8", "f4", "i8", "i4", "i2", "i1", "u1", "bool")}


def sent_length(width: int) -> int:
    """The rows of a block that is sent, for a pass that takes ``width`` numbers of each."""
    return max(1, _SENT // width)


@dataclass(frozen=True, eq=False, repr=False)
class OnDevice(Generic[Result]):
    """The pass that sends rows to a device and runs a kernel there; what it finds comes back.

    The device works on a block while this thread, or another one, reads the next.
    """

    kernel: Kernel[Result]
    space: Space
    design: Design | None = None
    """How rows are encoded on the device; None where they come encoded."""

    def __call__(self, blocks: Iterator[Block]) -> Result:
        """What the kernel finds, as NumPy's."""
        first = next(blocks, None)
        if first is None:
            return self.kernel(iter(()))
        with np.errstate(all="ignore"):
            found: Result = _landed(self.kernel(map(self._sent, chain([first], blocks)), self.space))
        return found

    def _sent(self, block: Block) -> Block:
        space, (rows, y, weights, _) = self.space, block
        if self.design is None:
            placed = DenseRows(space, space.put(rows), None, intercept=False, room=_ROOM)
        else:
            placed = DenseRows.of(space.copy_of(rows), self.design, space, room=_ROOM)
        return Block(placed, space.put(y), None if weights is None else space.put(weights))


def sent_as_it_is(source: Source) -> bool:
    """Whether rows are sent in the type in which they lie: a matrix of numbers that every device knows."""
    table = source.table if isinstance(source, ArraySource) else None
    return isinstance(table, ArrayTable) and table.dtype in _KNOWN


def _landed(found: Any) -> Any:
    """Numbers of one array or of several, as NumPy's."""
    if is_foreign(found):
        return on_host(found)
    if isinstance(found, tuple) and hasattr(found, "_fields"):
        return type(found)(*map(_landed, found))
    if is_dataclass(found) and not isinstance(found, type):
        return replace(found, **{field.name: _landed(getattr(found, field.name)) for field in fields(found)})
    return found
