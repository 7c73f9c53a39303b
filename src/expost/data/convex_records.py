"""Records as a convex loss sees them: finite rows inside the declared set, with their labels."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from expost._common.parallel import map_spans
from expost._common.typing import FloatArray
from expost.data.blocks import Table
from expost.data.encoding import one_label_per_row
from expost.data.tables import open_table
from expost.data.values import as_numbers
from expost.exceptions import DomainError
from expost.losses.convex import ConvexLoss


class RecordRows:
    """The records of a table, each brought into the set that a loss declares, block by block.

    The label is the last column, where the loss has labels. No copy of the table is ever made. The same
    class reads the curator's table and a reader's single record.

    Privacy
    -------
    As private as the records. How a row is brought into the set depends on no other row. Errors name
    declared values only.
    """

    def __init__(self, table: Table, labels: FloatArray | None, loss: ConvexLoss) -> None:
        self.n_rows = table.n_rows
        self.n_columns = table.n_features
        self._table = table
        self._labels = labels
        self._loss = loss

    def scan(self) -> None:
        """Read every row once and raise DomainError for NaN or infinity, before the table is used."""

        def work(slices: list[slice]) -> None:
            for _ in self.blocks(slices):
                pass

        map_spans(self.n_rows, self.n_columns, work)

    def blocks(self, slices: list[slice]) -> Iterator[tuple[slice, FloatArray]]:
        """Records inside the set, block by block.

        Every pass copies, checks and encloses what it reads: the caller can change the table in memory.
        """
        for block in slices:
            rows = np.array(self._table.rows(block.start, block.stop), dtype=np.float64, order="C")
            if not np.all(np.isfinite(rows)):
                raise DomainError(
                    "`X` must be finite; it contains NaN or infinity. Fill missing values with public "
                    "constants, or leave such records out."
                )
            rows = self._loss.record_set.enclose(rows)
            if self._labels is not None:
                rows = np.column_stack([rows, self._labels[block]])
            yield block, rows


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
    table = open_table(X)
    wanted = loss.record_set.dimension
    if table.n_features != wanted:
        raise DomainError(
            f"`X` must have {wanted} columns, as {type(loss).__name__} declares; got {table.n_features}."
        )
    if loss.labels.values == ():
        if y is not None:
            raise DomainError(f"{type(loss).__name__} has no labels; leave `y` out, or make it a column.")
        return RecordRows(table, None, loss)
    labels = as_numbers(one_label_per_row(y), "y")
    if len(labels) != table.n_rows:
        raise DomainError("`X` and `y` must have one label per row; they have different numbers of rows.")
    if not np.all(loss.labels.contains(labels)):
        raise DomainError(
            f"`y` has labels outside {loss.labels}, the set that {type(loss).__name__} accepts. Clip or "
            "recode them by public constants."
        )
    return RecordRows(table, labels, loss)
