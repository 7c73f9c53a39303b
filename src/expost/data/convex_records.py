"""Records as a convex loss sees them: finite rows inside the declared set, with their labels."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np

from expost._common.parallel import block_length
from expost._common.typing import FloatArray
from expost.data.blocks import Block, as_dense
from expost.data.labels import one_label_per_row
from expost.data.lazy import LazyTable
from expost.data.source import ArraySource
from expost.data.tables import check_at_hand, open_table
from expost.data.values import as_numbers
from expost.engines.base import Engine, Part, Pass
from expost.engines.local import LOCAL
from expost.exceptions import DomainError
from expost.losses.convex import ConvexLoss

Result = TypeVar("Result")


# Numbers in the Hessians of one block of records.
_BLOCK_NUMBERS = 500_000


@dataclass(frozen=True, eq=False, repr=False)
class RecordPart:
    """A part of a source whose records are brought into the set that a loss declares; private."""

    part: Part[Block]
    loss: ConvexLoss

    def blocks(self, length: int) -> Iterator[FloatArray]:
        """Records inside the set, block by block.

        Every pass copies, checks and encloses what it reads: the caller can change the table in memory.
        """
        for X, labels, _ in self.part.blocks(length):
            rows = np.array(as_dense(X), dtype=np.float64, order="C")
            if not np.all(np.isfinite(rows)):
                raise DomainError(
                    "`X` must be finite; it contains NaN or infinity. Fill missing values with public "
                    "constants, or leave such records out."
                )
            rows = self.loss.record_set.enclose(rows)
            yield np.column_stack([rows, labels]) if len(labels) else rows


@dataclass(frozen=True)
class RecordScan:
    """The pass that reads every record, which refuses NaN and infinity, and counts them."""

    def __call__(self, blocks: Iterator[FloatArray]) -> int:
        """The number of records."""
        return sum(len(records) for records in blocks)


@dataclass(frozen=True, eq=False, repr=False)
class RecordRows:
    """The records of a table, each brought into the set that a loss declares, block by block.

    The label is the last column, where the loss has labels. No copy of the table is ever made. The same
    class reads the curator's table and a reader's single record.

    Privacy
    -------
    As private as the records. How a row is brought into the set depends on no other row. Errors name
    declared values only.
    """

    source: ArraySource
    loss: ConvexLoss
    engine: Engine = LOCAL

    @property
    def n_rows(self) -> int:
        """The number of records; private."""
        return self.source.n_rows

    def thinned(self, every: int) -> Self:
        """Each ``every``-th block of the records."""
        return replace(self, source=self.source.thinned(every))

    def sweep(self, work: Pass[FloatArray, Result]) -> Iterator[Result]:
        """Run a pass over the records; one result for each part, in their order.

        A block is so short that the Hessians of its records fit into half a million numbers.
        """
        parts = [RecordPart(part, self.loss) for part in self.source.parts(self._width)]
        return self.engine.map(work, parts, self._block_length)

    @property
    def block_numbers(self) -> int:
        """How many numbers the Hessians of the records of one block have."""
        return self._block_length * self.loss.n_parameters**2

    @property
    def _width(self) -> int:
        return self.loss.n_parameters + self.source.n_features

    @property
    def _block_length(self) -> int:
        return min(block_length(self._width), max(16, _BLOCK_NUMBERS // self.loss.n_parameters**2))

    def scan(self) -> None:
        """Read every record once and raise DomainError for NaN or infinity, before the table is used."""
        for _ in self.sweep(RecordScan()):
            pass


def open_records(X: Any, y: Any, loss: ConvexLoss) -> RecordRows:
    """Open a table of records, and their labels where the loss has labels.

    Parameters
    ----------
    X
        Rows of as many numbers as the loss declares: an array, a sparse matrix or a frame.
    y
        One label per row; None where the loss has no labels.
    loss
        What declares the records.

    Privacy
    -------
    The result is as private as the records. An error names declared values only.
    """
    if isinstance(X, str | os.PathLike | LazyTable):
        raise DomainError("a convex model takes a table in memory, not files. Read them first, as a frame.")
    check_at_hand(X)
    table = open_table(X)
    wanted = loss.record_set.dimension
    if table.n_features != wanted:
        raise DomainError(
            f"`X` must have {wanted} columns, as {type(loss).__name__} declares; got {table.n_features}."
        )
    if loss.labels.values == ():
        if y is not None:
            raise DomainError(f"{type(loss).__name__} has no labels; leave `y` out, or make it a column.")
        return RecordRows(ArraySource(table), loss)
    labels = as_numbers(one_label_per_row(y), "y")
    if len(labels) != table.n_rows:
        raise DomainError("`X` and `y` must have one label per row; they have different numbers of rows.")
    if not np.all(loss.labels.contains(labels)):
        raise DomainError(
            f"`y` has labels outside {loss.labels}, the set that {type(loss).__name__} accepts. Clip or "
            "recode them by public constants."
        )
    return RecordRows(ArraySource(table, labels), loss)
