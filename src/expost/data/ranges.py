"""Ranges of columns that are chosen privately: their columns, read whole, and the exact losses of rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from expost._common.typing import FloatArray
from expost.data.choices import NUMBERS, ONE, IntArray, RangeChoice
from expost.data.dialect import PLAIN, Dialect
from expost.data.frame_tables import columns_of, plain_column
from expost.data.lazy import LazyTable
from expost.data.people import People
from expost.data.values import as_numbers, filled
from expost.exceptions import DomainError

# Rows of a file that are read at a time.
_LENGTH = 1 << 16


@dataclass(frozen=True, eq=False, repr=False)
class Column:
    """A column of numbers with its people: as private as the table."""

    values: FloatArray
    weights: IntArray
    people: People | None

    def histogram(self, choice: RangeChoice) -> IntArray:
        """The weight of all rows in each cell."""
        found = np.zeros(len(choice.candidates) + 1, dtype=np.int64)
        np.add.at(found, choice.cells(self.values), self.weights)
        return found

    def losses(self, choice: RangeChoice) -> FloatArray:
        """The exact signed loss of each row, or of each person, in their order."""
        whole, cells, count = self.histogram(choice), choice.cells(self.values), len(choice.candidates) + 1
        if self.people is None:  # all rows of a cell lost the same
            some, by_cell = np.flatnonzero(whole), np.zeros(count)
            by_cell[some] = choice.losses_of(whole, ONE * np.eye(count, dtype=np.int64)[some])
            return by_cell[cells]
        found = np.empty(len(self.people))
        order = np.argsort(self.people.codes, kind="stable")
        for first in range(0, len(found), length := max(NUMBERS // count, 1)):
            last = min(first + length, len(found))
            some = order[slice(*np.searchsorted(self.people.codes[order], [first, last]))]
            each = np.zeros((last - first, count), dtype=np.int64)
            np.add.at(each, (self.people.codes[some] - first, cells[some]), self.weights[some])
            found[first:last] = choice.losses_of(whole, each)
        return found


def read_columns(
    table: Any,
    wanted: Mapping[str, float | None],
    *,
    dialect: Dialect = PLAIN,
    person: str | None = None,
    rows_per_person: int | None = None,
) -> dict[str, Column]:
    """Columns of numbers by their names, each with what a missing value counts as, and whose the rows are.

    Raises DomainError, which names a column and no value, for what is no number or has no default.
    """
    parts: dict[str, list[FloatArray]] = {name: [] for name in wanted}
    found: list[People] = []
    for cells in _batches(table, [*wanted, *([] if person is None else [person])]):
        for name, missing in wanted.items():
            numbers = as_numbers(dialect.plain(cells[name], "number"), name)
            parts[name].append(filled(numbers, name, missing))
        if person is not None:
            found.append(People.of(cells[person], name=person))
    people = None if person is None else People.joined(found)
    values = {name: np.concatenate(some) for name, some in parts.items()}
    return {name: Column(one, _weights(one, people, rows_per_person), people) for name, one in values.items()}


def _weights(rows: FloatArray, people: People | None, rows_per_person: int | None) -> IntArray:
    """What each row weighs, in whole numbers of which nobody has more than ``ONE``."""
    if people is None:
        return np.full(len(rows), ONE, dtype=np.int64)
    return np.asarray(ONE // np.maximum(people.counts, rows_per_person or 1)[people.codes])


def _batches(table: Any, names: list[str]) -> Iterator[Mapping[str, Any]]:
    """The cells of some columns, all at once of a frame and batch by batch of files."""
    columns = table.kinds if isinstance(table, LazyTable) else columns_of(table)
    if columns is None:
        raise DomainError("`table` must be a data frame with named columns, or files.")
    absent = set(names).difference(columns)
    if absent:
        raise DomainError(f"the table lacks the column {min(absent)!r}. Add or rename it.")
    if isinstance(table, LazyTable):
        yield from _read_batches(table, names)
    else:
        yield {name: plain_column(name, columns[name]) for name in names}


def _read_batches(table: LazyTable, names: list[str]) -> Iterator[Mapping[str, Any]]:
    table.check_columns(names)
    for piece in table.pieces():
        for batch in piece.batches(names, _LENGTH):
            yield {name: batch.column(name) for name in names}
