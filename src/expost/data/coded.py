"""Records as coded columns, which take less memory than rows and are converted only once."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from expost._common.typing import FloatArray
from expost.data.blocks import ColumnRows, Table


@dataclass(frozen=True, eq=False, repr=False)
class Coded:
    """Some records: a column of numbers or codes for each feature, labels and weights; private."""

    columns: list[NDArray[Any]]
    labels: FloatArray
    """Empty where only rows were asked for."""
    weights: FloatArray | None

    @property
    def n_rows(self) -> int:
        """How many records there are."""
        return len(self.columns[0])

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """Everything that there is of the records."""
        return [*self.columns, self.labels, *([] if self.weights is None else [self.weights])]

    @property
    def bytes(self) -> int:
        """How much memory they take."""
        return sum(array.nbytes for array in self.arrays)

    def rows(self, start: int, stop: int) -> "Coded":
        """Some of the records; nothing is copied."""
        weights = None if self.weights is None else self.weights[start:stop]
        return Coded([column[start:stop] for column in self.columns], self.labels[start:stop], weights)

    def copy(self) -> "Coded":
        """The records in memory of their own, so that those around them can be forgotten."""
        weights = None if self.weights is None else self.weights.copy()
        return Coded([column.copy() for column in self.columns], self.labels.copy(), weights)


def joined(runs: list[Coded]) -> Coded:
    """Several runs of records, one after the other; the list is emptied."""
    if len(runs) == 1:
        return runs.pop()
    weights = [run.weights for run in runs if run.weights is not None]
    labels = np.concatenate([run.labels for run in runs])
    parts = [list(run.columns) for run in runs]
    runs.clear()
    # Column by column, each forgotten once it is joined: no more than one is in memory twice.
    columns = [np.concatenate([part.pop(0) for part in parts]) for _ in range(len(parts[0]))]
    return Coded(columns, labels, np.concatenate(weights) if weights else None)


def recut(records: Iterator[Coded], length: int, chunk: int) -> Iterator[Coded]:
    """The same records in runs of ``length``, except that a run ends after every ``chunk`` records too."""
    pending: list[Coded] = []
    have, left = 0, chunk
    for coded in records:
        start = 0
        while start < coded.n_rows:
            wanted = min(length, left)
            some = coded.rows(start, start + wanted - have)
            pending.append(some)
            start += some.n_rows
            have += some.n_rows
            if have == wanted:
                yield joined(pending)
                left = left - have or chunk
                pending, have = [], 0
    if pending:
        yield joined(pending)


@dataclass(frozen=True)
class Trace:
    """What was seen of a piece in a pass: its records' number, and its stamp or their checksums; private.

    There is a checksum for each column where a piece has no stamp. They do not depend on how the records were
    cut into batches.
    """

    stamp: tuple[int, ...] | None
    rows: int = 0
    sums: tuple[int, ...] = ()

    def after(self, coded: Coded) -> "Trace":
        """The trace of these records after those that were seen before."""
        if self.stamp is not None:
            return replace(self, rows=self.rows + coded.n_rows)
        arrays = coded.arrays
        sums = self.sums or (0,) * len(arrays)
        found = [
            zlib.crc32(np.ascontiguousarray(array).data, before)
            for array, before in zip(arrays, sums, strict=True)
        ]
        return Trace(None, self.rows + coded.n_rows, tuple(found))


class Reader(Protocol):
    """What makes rows of coded columns."""

    @property
    def n_features(self) -> int:
        """The number of columns of a row."""

    def rows(self, columns: Sequence[NDArray[Any]]) -> ColumnRows:
        """The coded columns as columns of numbers."""


class CodedTable(Table):
    """Records held in memory as coded columns, which become rows block by block; private."""

    def __init__(self, reader: Reader, columns: Sequence[NDArray[Any]]) -> None:
        self._reader = reader
        self._columns = columns
        self.n_rows, self.n_features = len(columns[0]), reader.n_features

    def rows(self, start: int, stop: int) -> ColumnRows:
        """The rows of the block, column by column."""
        return self._reader.rows([column[start:stop] for column in self._columns])
