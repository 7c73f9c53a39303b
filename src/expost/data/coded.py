"""Records as coded columns, which take less memory than rows and are converted only once."""

import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
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


def joined(runs: Sequence[Coded]) -> Coded:
    """Several runs of records, one after the other."""
    if len(runs) == 1:
        return runs[0]
    weights = [run.weights for run in runs if run.weights is not None]
    return Coded(
        [np.concatenate(columns) for columns in zip(*(run.columns for run in runs), strict=True)],
        np.concatenate([run.labels for run in runs]),
        np.concatenate(weights) if weights else None,
    )


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
    """What was seen of a piece in a pass: the number of its records and their checksums; private.

    There is a checksum for each column, if they are asked for. They do not depend on how the records were cut
    into batches.
    """

    summed: bool
    rows: int = 0
    sums: tuple[int, ...] = ()

    def after(self, coded: Coded) -> "Trace":
        """The trace of these records after those that were seen before."""
        rows = self.rows + coded.n_rows
        if not self.summed:
            return Trace(False, rows)
        arrays = coded.arrays
        sums = self.sums or (0,) * len(arrays)
        found = [
            zlib.crc32(np.ascontiguousarray(array).data, before)
            for array, before in zip(arrays, sums, strict=True)
        ]
        return Trace(True, rows, tuple(found))


class Reader(Protocol):
    """What makes rows of coded columns."""

    @property
    def n_features(self) -> int:
        """The number of columns of a row."""

    def rows(self, columns: Sequence[NDArray[Any]]) -> ColumnRows:
        """The coded columns as columns of numbers."""


class CodedTable(Table):
    """Records held in memory as runs of coded columns, which become rows block by block; private.

    Runs are not joined as a whole: that would take their memory twice.
    """

    def __init__(self, reader: Reader, runs: Sequence[Sequence[NDArray[Any]]]) -> None:
        self._reader = reader
        self._runs = runs
        self._starts = [0, *accumulate(len(columns[0]) for columns in runs)]
        self.n_rows, self.n_features = self._starts[-1], reader.n_features

    def rows(self, start: int, stop: int) -> ColumnRows:
        """The rows of the block, column by column."""
        parts = []
        place = max(bisect_right(self._starts, start) - 1, 0)
        while place < len(self._runs) and self._starts[place] < stop:
            first = self._starts[place]
            here = slice(max(start - first, 0), stop - first)
            parts.append([column[here] for column in self._runs[place]])
            place += 1
        if len(parts) == 1:
            return self._reader.rows(parts[0])
        return self._reader.rows([np.concatenate(columns) for columns in zip(*parts, strict=True)])
