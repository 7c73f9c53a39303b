"""Rows that lie here or in files, and are worked on at a device, block by block."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import chain
from typing import Any, Generic, TypeVar

import numpy as np

from expost._common.namespaces import Space, is_foreign, on_host
from expost._common.validation import parameter_error
from expost.data.blocks import ArrayTable, Block
from expost.data.design import Design
from expost.data.rows import DenseRows
from expost.data.source import ArraySource, Source
from expost.engines.base import Kernel

Result = TypeVar("Result")

# Numbers of a block that is sent, and those that a kernel may hold beside it.
_SENT, _ROOM = 1 << 23, 1 << 26
# Types that all libraries have.
_KNOWN = {np.dtype(name) for name in ("f8", "f4", "i8", "i4", "i2", "i1", "u1", "bool")}


@dataclass(frozen=True, eq=False, repr=False)
class StreamedTable:
    """A table in this machine's memory whose rows are sent to a device, in every pass; see ``expost.scan``.

    Privacy
    -------
    As private as the table.
    """

    table: Any
    space: Space

    @classmethod
    def of(cls, table: Any, space: Space) -> "StreamedTable":
        """Refuse what lies on a device already."""
        if is_foreign(table) or isinstance(table, StreamedTable):
            raise parameter_error(
                "table",
                "a table in this machine's memory, or in files",
                type(table),
                "A table on a device is fitted there as it is.",
            )
        return cls(table, space)


def table_of(X: Any) -> Any:
    """The table itself, whether its rows are sent to a device or not."""
    return X.table if isinstance(X, StreamedTable) else X


def space_of(X: Any) -> Space | None:
    """Where its rows are sent, if they are."""
    return X.space if isinstance(X, StreamedTable) else None


def sent_length(width: int) -> int:
    """The rows of a block that is sent, for a pass that takes ``width`` numbers of each."""
    return max(1, _SENT // width)


@dataclass(frozen=True, eq=False, repr=False)
class Sent(Generic[Result]):
    """The pass that sends rows to a device and runs a kernel there; what it finds comes back.

    A block is copied before the next is asked for. The device works on it while this thread, or another one,
    reads the next.
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
            found: Result = _landed(self.kernel(self._sent(chain([first], blocks)), self.space))
        return found

    def _sent(self, blocks: Iterator[Block]) -> Iterator[Block]:
        put = self.space.put
        for rows, y, weights in blocks:
            if self.design is None:
                placed = DenseRows(self.space, put(rows), None, intercept=False, room=_ROOM)
            else:
                placed = DenseRows.of(self.space.copy_of(rows), self.design, self.space, room=_ROOM)
            yield Block(placed, put(y), None if weights is None else put(weights))


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
