"""How the columns of a table become coded columns, labels and weights, and these become rows."""

import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._common.typing import FloatArray
from expost.data.blocks import Block, ColumnRows, Table, part_of
from expost.data.design import NO_LABELS, check_finite
from expost.data.dialect import PLAIN, Dialect, delimiter_advice
from expost.data.domain import Domain
from expost.data.labels import TimeLabel
from expost.data.lazy import UNREADABLE, LazyTable
from expost.data.problems import dialect_advice
from expost.data.values import as_numbers
from expost.data.weights import Declared
from expost.exceptions import DomainError


@dataclass(frozen=True, eq=False, repr=False)
class Coded:
    """Some records: a column of numbers or codes for each feature, labels and weights; private."""

    columns: list[NDArray[Any]]
    labels: FloatArray
    weights: FloatArray | None
    people: Any = None
    """The number of each record's person, where that is known."""

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """Everything that there is of the records."""
        return [*self.columns, self.labels, *([] if self.weights is None else [self.weights])]

    def rows(self, start: int, stop: int) -> "Coded":
        """Some of the records; nothing is copied."""
        here = slice(start, stop)
        columns = [column[here] for column in self.columns]
        return Coded(columns, self.labels[here], part_of(self.weights, here), part_of(self.people, here))


def joined(runs: Sequence[Coded]) -> Coded:
    """Runs of records, one after the other, in memory of their own."""
    return Coded(
        [np.concatenate(columns) for columns in zip(*(run.columns for run in runs), strict=True)],
        np.concatenate([run.labels for run in runs]),
        together([run.weights for run in runs]),
        together([run.people for run in runs]),
    )


def together(parts: Sequence[Any]) -> Any:
    """What runs of records have, one after the other; None where none has any."""
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known else None


def recut(records: Iterator[Coded], length: int, chunk: int) -> Iterator[list[Coded]]:
    """Records ``length`` at a time, to be joined; there is a cut after every ``chunk`` records too."""
    pending: list[Coded] = []
    have, left = 0, chunk
    for coded in records:
        start = 0
        while start < len(coded):
            wanted = min(length, left)
            some = coded.rows(start, start + wanted - have)
            pending.append(some)
            start += len(some)
            have += len(some)
            if have == wanted:
                yield pending
                left = left - have or chunk
                pending, have = [], 0
    if pending:
        yield pending


@dataclass(frozen=True)
class Trace:
    """How many records were seen of a piece, and a checksum of each column if ``summed``; private."""

    summed: bool
    rows: int = 0
    sums: tuple[int, ...] = ()

    def after(self, coded: Coded) -> "Trace":
        """The trace of these records after those that were seen before."""
        rows = self.rows + len(coded)
        if not self.summed:
            return Trace(False, rows)
        pairs = zip(coded.arrays, self.sums or (0,) * len(coded.arrays), strict=True)
        sums = (zlib.crc32(np.ascontiguousarray(array).data, before) for array, before in pairs)
        return Trace(True, rows, tuple(sums))


class CodedTable(Table):
    """Records held in memory as runs of coded columns, which become rows block by block; private."""

    def __init__(self, reader: "RecordReader", runs: Sequence[Sequence[NDArray[Any]]]) -> None:
        self._reader, self._runs = reader, runs  # to join the runs would take their memory twice
        self._starts = [0, *accumulate(len(columns[0]) for columns in runs)]
        self.n_rows, self.n_features = self._starts[-1], reader.n_features

    def rows(self, start: int, stop: int) -> ColumnRows:
        """The rows of the block, column by column."""
        parts = []
        place = max(bisect_right(self._starts, start) - 1, 0)
        while place < len(self._runs) and (first := self._starts[place]) < stop:
            here = slice(max(start - first, 0), stop - first)
            parts.append([column[here] for column in self._runs[place]])
            place += 1
        one = len(parts) == 1
        columns = parts[0] if one else [np.concatenate(some) for some in zip(*parts, strict=True)]
        return self._reader.rows(columns)


@dataclass(frozen=True, eq=False)
class RecordReader:
    """How records are made from the columns of a table; public. Without a label they are rows alone."""

    declared: Declared
    features: tuple[str, ...]
    label: str | None
    weight: str | None = None
    dialect: Dialect = PLAIN
    typed: bool = True
    """Whether cells have types, so that a text is no number."""

    @property
    def names(self) -> list[str]:
        """The columns that are read."""
        others = [name for name in (*self.outcome, self.weight) if name is not None]
        return list(dict.fromkeys([*self.features, *others]))

    @property
    def outcome(self) -> tuple[str | None, ...]:
        """The columns of the outcome: that of an event comes with a time."""
        label = self.declared.label
        both = self.label is not None and isinstance(label, TimeLabel)
        return (self.label, label.event) if both else (self.label,)  # type: ignore[union-attr]

    @property
    def n_features(self) -> int:
        """The number of columns of a row."""
        domain = self.declared.domain
        return len(self.features if domain is None else domain.column_names)

    def coded(self, batch: Any) -> Coded:
        """The records of a batch, or DomainError, which names declared values only."""
        columns: list[NDArray[Any]]
        domain = self.declared.domain
        if domain is None:
            # What is not finite is refused by the first pass, and by the design in every other.
            columns = [as_numbers(batch.column(name), name, finite=False) for name in self.features]
        else:
            columns = [
                self._advised(feature, batch.column(feature.name), feature.kind, feature.coded)
                for feature in domain.features
            ]
        if self.label is None:
            return Coded(columns, NO_LABELS, None)
        labels = self._labels(batch)
        sample = None
        if self.weight is not None:
            sample = as_numbers(self.dialect.plain(batch.column(self.weight), "number"), self.weight)
        return Coded(columns, labels, self.declared.weighting.of(sample, labels, self.declared.loss))

    def _labels(self, batch: Any) -> FloatArray:
        """The labels of a batch; of a time, from two columns."""
        label, names = self.declared.label, [name for name in self.outcome if name is not None]
        if isinstance(label, TimeLabel):
            kinds = zip(names, ("number", "yes_no"), strict=True)
            return label.coded(*(self.dialect.plain(batch.column(name), kind) for name, kind in kinds))
        kind = "number" if self.declared.classes is None else "classes"
        part = None if self.declared.domain is None else label
        read = partial(self.declared.column_labels, typed=self.typed)
        return np.asarray(self._advised(part, batch.column(names[0]), kind, read))

    def check(self, coded: Coded) -> None:
        """Raise DomainError for numbers that are not finite; a domain has refused or replaced them before."""
        if self.declared.domain is None:
            for column in coded.columns:
                check_finite(column[None, :])

    def rows(self, columns: Sequence[NDArray[Any]]) -> ColumnRows:
        """The coded columns as columns of numbers."""
        domain = self.declared.domain
        return ColumnRows(columns if domain is None else domain.expanded(columns))

    def block(self, runs: Sequence[Coded]) -> Block:
        """The records as a block of rows; those of one run are not copied."""
        coded = runs[0] if len(runs) == 1 else joined(runs)
        return Block(self.rows(coded.columns), coded.labels, coded.weights, coded.people)

    def _advised(self, part: Any, column: Any, kind: str, read: Callable[[Any], Any]) -> Any:
        """What is read from a column; a refusal says what to declare where it looks like another dialect."""
        try:
            return read(self.dialect.plain(column, kind))
        except DomainError as error:
            refusal = str(error)
        raise DomainError(refusal + ("" if part is None else dialect_advice(part, column, self.dialect)))


def split_columns(
    table: LazyTable,
    domain: Domain | None,
    *,
    labelled: bool,
    label: str | None = None,
    feature_names: Sequence[str] | None = None,
    weight: str | None = None,
    person: str | None = None,
) -> tuple[tuple[str, ...], str | None]:
    """The columns of a file that are features, and the outcome's where there is to be one.

    Without a domain, features are ``feature_names``, or else all columns but the outcome, the weight and the
    person; the outcome is ``label``, or else the only other column, or else the last.
    """
    if domain is not None:
        return tuple(feature.name for feature in domain.features), domain.label.name if labelled else None
    names = _without(table.kinds, (weight, person))
    if label is None and labelled:
        rest = _without(names, names[:-1] if feature_names is None else feature_names)
        if not rest:
            raise DomainError("the records lack a column for the outcome; it must be the last.")
        label = rest[-1]
    return tuple(_without(names, (label,)) if feature_names is None else feature_names), label


def names_of_numbers(table: LazyTable, **columns: Any) -> list[str]:
    """The names of the features of a table without a domain, whose cells must be numbers."""
    if not table.has_types:
        raise DomainError("CSV files have texts only; declare what they mean with `domain`.")
    names, _ = split_columns(table, None, labelled=True, **columns)
    for name in names:
        if table.kinds.get(name) == "category":
            raise DomainError(
                f"the column {name!r} must hold numbers where no domain is declared. Encode it, leave it "
                "out, or declare a domain."
            )
    return list(names)


def _without(names: Iterable[str], others: Sequence[str | None]) -> list[str]:
    return [name for name in names if name not in others]


def reader_of(
    table: LazyTable,
    declared: Declared,
    *,
    labelled: bool,
    label: str | None = None,
    weight: str | None = None,
    person: str | None = None,
) -> RecordReader:
    """How records are read from the columns that :func:`split_columns` finds, all of which must be there."""
    domain, names = declared.domain, declared.feature_names
    features, label = split_columns(
        table, domain, labelled=labelled, label=label, feature_names=names, weight=weight, person=person
    )
    reader = RecordReader(declared, features, label, weight, table.dialect, table.has_types)
    roles: dict[str | None, str] = dict.fromkeys(features, "feature")
    roles |= dict.fromkeys(reader.outcome, "outcome") | {weight: "weight", person: "person"}
    read = reader.names + ([] if person is None else [person])
    for name in read:
        if name not in table.kinds:
            advice = delimiter_advice(table.kinds, table.dialect) or "Add or rename it"
            raise DomainError(f"the table lacks the column {name!r}, a declared {roles[name]}. {advice}.")
        if table.kinds[name] == UNREADABLE:
            raise DomainError(
                f"the column {name!r} must hold numbers, texts or dates; its cells are lists or other parts. "
                "Save it as plain columns."
            )
    table.check_columns(read)
    return reader
