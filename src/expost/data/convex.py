"""Records of a convex loss: brought into the set that it declares, with the label as the last column."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from expost._common.machine import block_length
from expost.data.blocks import Block, as_dense, check_at_hand
from expost.data.design import Design, check_finite, labels_error
from expost.data.encoding import Encoded, grouped
from expost.data.lazy import LazyTable
from expost.data.sources import ArraySource
from expost.data.tables import open_table
from expost.data.values import as_numbers
from expost.data.weights import one_label_per_row
from expost.exceptions import DomainError
from expost.losses.convex import ConvexLoss

# Numbers in the Hessians of one block of records.
_BLOCK_NUMBERS = 500_000


@dataclass(frozen=True)
class _RecordDesign(Design):
    """Records brought into the set that a convex loss declares, with the label as the last column; public.

    A pass takes as many numbers of a record as there are parameters, and holds those of its Hessian.
    """

    loss: ConvexLoss
    in_ball = False

    @property
    def dimension(self) -> int:
        return self.loss.n_parameters

    def numbers_held(self, width: int) -> int:
        return self.loss.n_parameters**2

    def block_length(self, width: int) -> int:
        most = max(16, _BLOCK_NUMBERS // self.numbers_held(width))
        return min(block_length(width + self.n_features), most)

    def dense(self, blocks: Iterator[Block]) -> Iterator[Block]:
        for block in blocks:
            labels = block.y
            # Copied and checked in every pass: the caller can change the table.
            rows = np.array(as_dense(block.X), dtype=np.float64, order="C")
            check_finite(rows)
            rows = self.loss.record_set.enclose(rows)
            yield block._replace(X=np.column_stack([rows, labels]) if len(labels) else rows)

    products = dense


def open_records(
    X: Any, y: Any, loss: ConvexLoss, groups: Any = None, *, unit: str = "row", rows: int | None = None
) -> Encoded:
    """Open a table of records of a convex loss, and their labels where the loss has labels.

    With ``groups`` rows belong to people; where they are the ``unit``, rows weigh their shares of them.

    Privacy
    -------
    The result is as private as the records. An error names declared values only.
    """
    if isinstance(X, str | os.PathLike | LazyTable):
        raise DomainError("a convex model takes a table in memory, not files. Read them first, as a frame.")
    check_at_hand(X)
    table = open_table(X)
    wanted = loss.record_set.dimension
    name, got = type(loss).__name__, table.n_features
    if got != wanted:
        raise DomainError(f"`X` must have {wanted} columns, as {name} declares; got {got}.")
    design = _RecordDesign(wanted, 1.0, False, loss)
    if loss.labels.values == ():
        if y is not None:
            raise DomainError(f"{name} has no labels; leave `y` out, or make it a column.")
        return grouped(Encoded(ArraySource(table), design), groups, unit, rows)
    labels = as_numbers(one_label_per_row(y), "y")
    if len(labels) != table.n_rows:
        raise DomainError("`X` and `y` must have one label per row; they have different numbers of rows.")
    if not np.all(loss.labels.contains(labels)):
        raise labels_error(loss, "Clip or recode them by public constants.")
    return grouped(Encoded(ArraySource(table, labels), design), groups, unit, rows)
