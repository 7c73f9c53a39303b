"""Records as a convex loss sees them: finite rows inside the declared set, with their labels."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from expost._common.machine import block_length
from expost.data.blocks import Block, as_dense
from expost.data.design import Design, check_finite
from expost.data.encoding import Encoded
from expost.data.frame_tables import check_at_hand
from expost.data.labels import one_label_per_row
from expost.data.lazy import LazyTable
from expost.data.source import ArraySource
from expost.data.tables import open_table
from expost.data.values import as_numbers
from expost.exceptions import DomainError
from expost.losses.convex import ConvexLoss

# Numbers in the Hessians of one block of records.
_BLOCK_NUMBERS = 500_000


@dataclass(frozen=True)
class RecordDesign(Design):
    """Records brought into the set that a convex loss declares, with the label as the last column.

    Privacy
    -------
    Public. How a record is brought into the set depends on no other record.
    """

    loss: ConvexLoss

    @classmethod
    def of(cls, loss: ConvexLoss) -> Self:
        """The design of a loss, which declares everything."""
        return cls(loss.record_set.dimension, 1.0, False, loss)

    @property
    def dimension(self) -> int:
        """How many numbers a pass takes of a record: as many as there are parameters."""
        return self.loss.n_parameters

    def block_length(self, width: int) -> int:
        """So short that the Hessians of a block's records fit into half a million numbers."""
        most = max(16, _BLOCK_NUMBERS // self.loss.n_parameters**2)
        return min(block_length(width + self.n_features), most)

    def block_numbers(self, width: int) -> int:
        """How many numbers the Hessians of a block's records have."""
        return self.block_length(width) * self.loss.n_parameters**2

    def dense(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Records inside the set, block by block.

        Every pass copies, checks and encloses what it reads: the caller can change the table in memory.
        """
        for X, labels, weights in blocks:
            rows = np.array(as_dense(X), dtype=np.float64, order="C")
            check_finite(rows)
            rows = self.loss.record_set.enclose(rows)
            yield Block(np.column_stack([rows, labels]) if len(labels) else rows, labels, weights)

    products = dense


def open_records(X: Any, y: Any, loss: ConvexLoss) -> Encoded:
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
        return Encoded(ArraySource(table), RecordDesign.of(loss))
    labels = as_numbers(one_label_per_row(y), "y")
    if len(labels) != table.n_rows:
        raise DomainError("`X` and `y` must have one label per row; they have different numbers of rows.")
    if not np.all(loss.labels.contains(labels)):
        raise DomainError(
            f"`y` has labels outside {loss.labels}, the set that {type(loss).__name__} accepts. Clip or "
            "recode them by public constants."
        )
    return Encoded(ArraySource(table, labels), RecordDesign.of(loss))
