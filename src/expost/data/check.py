"""Find every problem of a table at once, in one pass and in little memory."""

import os
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._common.machine import block_length
from expost._common.progress import Watch
from expost._common.validation import LibraryName
from expost.data.dask_frames import DaskTable, is_dask_frame
from expost.data.dialect import PLAIN, Dialect
from expost.data.features import Feature, Label
from expost.data.file_schema import EMPTY, UNREADABLE, kind_of, read_kinds
from expost.data.files import LenientReader, PieceShares, TableFiles
from expost.data.frame_tables import FrameKind, check_at_hand, columns_of
from expost.data.lazy import LazyTable
from expost.data.problems import Problem, problems_in, wrong_weights
from expost.data.values import as_texts, plain_cells
from expost.engines.base import LOCAL
from expost.exceptions import DomainError

# Longer cells are cut in the list of problems.
_LONGEST_VALUE = 200
MARK = "PRIVATE_"
"""Starts the first name in a private table: whoever opens it sees the word, and every program can read it."""
LINE = "(line)"
"""In the place of a column, for what is wrong with a whole line or file."""


@dataclass(frozen=True, eq=False, repr=False)
class Finding:
    """One kind of problem in one column, and the records of a file that have it; private."""

    file: str
    column: str
    problem: Problem
    records: Sequence[int] = ()
    """By their numbers in the file, from 1; none where the whole file has the problem."""
    values: Sequence[str] = ()
    """What the cells hold; of a file that cannot be read, why."""
    ids: Sequence[str] = ()
    """What the column of identifiers holds, where one was named."""

    def rows(self) -> Iterator[tuple[str, int | None, str, str, str, str]]:
        """File, record, identifier, column, problem and value of each cell, or once for the whole file."""
        for place in range(max(len(self.records), 1)):
            record = self.records[place] if self.records else None
            known, value = (texts[place] if texts else "" for texts in (self.ids, self.values))
            yield self.file, record, known, self.column, self.problem.title, value


def find_problems(
    table: LazyTable,
    declared: Sequence[Feature | Label],
    *,
    weight: str | None = None,
    max_weight: float = 1.0,
    identifier: str | None = None,
    watch: Watch | None = None,
) -> Iterator[Finding]:
    """Every problem that a table has with a domain, as the rows are read.

    All of them are found that a fit would refuse, and numbers beyond their bounds, which a fit clips. Lines
    that cannot be read are found too, and left out.

    Parameters
    ----------
    table
        The files, or a Dask frame.
    declared
        What is declared about a record: the features and the outcome.
    weight, max_weight
        The column of weights, where there is one, and the largest weight.
    identifier
        A column by which the curator knows the records.
    watch
        Is told how far the pass through files has come.

    Privacy
    -------
    Private, row by row. That a column has a kind of problem is what a refusal says too.
    """
    empty = True
    every = table.pieces()
    shares = None if watch is None else PieceShares(every, watch)
    for path, pieces in groupby(every, lambda piece: getattr(piece, "path", None)):
        kinds = table.kinds if path is None else read_kinds(path, table.dialect)
        name = "" if path is None else path.name
        readable = {column for column, kind in kinds.items() if kind != UNREADABLE}
        search = _Search(
            name, table.dialect, declared, weight, max_weight, identifier, readable, typed=table.has_types
        )
        yield from search.in_columns(kinds, table.kinds)
        if not search.columns:
            continue
        reader, length = LenientReader(), block_length(len(search.columns))
        for piece in pieces:
            seen = None if shares is None else shares.of(piece)
            for records, batch in reader.batches(piece, search.columns, length, seen):
                yield from search.in_cells(records, batch)
                yield from search.in_lines(reader.taken())
        yield from search.in_lines(reader.taken())
        if reader.broken:
            yield Finding(name, LINE, Problem.BROKEN, values=[reader.broken])
        empty = empty and reader.last == 0 and not reader.broken
    if empty:
        yield Finding(table.paths[0].name if table.paths else "", LINE, Problem.EMPTY)


def problem_table(
    table: Any,
    declared: Sequence[Feature | Label],
    dialect: Dialect,
    *,
    weight: str | None,
    max_weight: float,
    identifier: str | None,
    library: LibraryName | None,
) -> Any:
    """Every problem of a table of any kind, as a frame; see :meth:`expost.Domain.check`. Private."""
    given = table
    if isinstance(table, str | os.PathLike):
        table = TableFiles.found(os.fspath(table), dialect=dialect)
    elif is_dask_frame(table):
        table = DaskTable.of(table, LOCAL)
    elif not isinstance(table, LazyTable | Mapping):
        check_at_hand(table)
    columns = table.kinds if isinstance(table, LazyTable) else columns_of(table)
    kind = replace(FrameKind.of(given), index=None).in_library(library)
    if identifier is not None and identifier not in columns:
        raise DomainError(f"the table lacks the column {identifier!r} that `identifier` names.")
    options: Any = {"weight": weight, "max_weight": max_weight, "identifier": identifier}
    if isinstance(table, LazyTable):
        findings = find_problems(table, declared, **options)
    else:
        findings = _in_memory(columns, declared, **options)
    rows = [row for one in findings for row in one.rows()]
    # Without a row there is nothing to tell the type of a column from.
    none = [np.empty(0, dtype=str)] * 6
    files, records, ids, names, problems, values = zip(*rows, strict=True) if rows else none
    listed: dict[str, Any] = {
        f"{MARK}file": files,
        "record": np.array([record or 0 for record in records], dtype=np.int64),
    }
    listed |= {} if identifier is None else {identifier: ids}
    return kind.frame(listed | {"column": names, "problem": problems, "value": values})


def _in_memory(
    columns: Mapping[str, Any],
    declared: Sequence[Feature | Label],
    *,
    weight: str | None,
    max_weight: float,
    identifier: str | None,
) -> Iterator[Finding]:
    """Every problem of columns that lie in memory, whose texts are written as the library reads them."""
    kinds = {
        name: kind_of(column.type) if hasattr(column, "type") else None for name, column in columns.items()
    }
    readable = {name for name, kind in kinds.items() if kind != UNREADABLE}
    search = _Search("", PLAIN, declared, weight, max_weight, identifier, readable, typed=True)
    yield from search.in_columns(kinds, {})
    rows = max(map(len, columns.values()), default=0)
    yield from search.in_cells(np.arange(1, 1 + rows), _Columns(columns))
    if rows == 0:
        yield Finding("", LINE, Problem.EMPTY)


class _Columns(dict[str, Any]):
    """Columns by their names, as Arrow's batches have them."""

    column = dict.__getitem__


class _Search:
    """What is looked for in one file or frame."""

    def __init__(
        self,
        file: str,
        dialect: Dialect,
        declared: Sequence[Feature | Label],
        weight: str | None,
        max_weight: float,
        identifier: str | None,
        readable: Container[str],
        *,
        typed: bool,
    ) -> None:
        self._file, self._dialect, self._max_weight, self._identifier = file, dialect, max_weight, identifier
        self._typed = typed
        self._wanted = [*(part.name for part in declared), *([] if weight is None else [weight])]
        self._parts = [part for part in declared if part.name in readable]
        self._weight = weight if weight in readable else None
        asked = [*self._wanted, *([] if identifier is None else [identifier])]
        self.columns = [name for name in dict.fromkeys(asked) if name in readable]
        """The columns that are read."""

    def in_columns(
        self, kinds: Mapping[str, str | None], usual: Mapping[str, str | None]
    ) -> Iterator[Finding]:
        """What is wrong with whole columns, by their kinds here and in the first file."""
        for name in self._wanted:
            if name not in kinds:
                yield Finding(self._file, name, Problem.LACKING)
            elif kinds[name] == UNREADABLE:
                yield Finding(self._file, name, Problem.TYPE)
            elif len({kinds[name], usual.get(name, kinds[name])} - {EMPTY}) > 1:
                yield Finding(self._file, name, Problem.MIXED)

    def in_lines(self, uneven: Sequence[tuple[int, str]]) -> Iterator[Finding]:
        """What is wrong with the lines of a file that were left out."""
        if uneven:
            records, texts = zip(*uneven, strict=True)
            ids = [""] * len(uneven) if self._identifier is not None else []
            yield Finding(self._file, LINE, Problem.UNEVEN, records, texts, ids)

    def in_cells(self, records: NDArray[np.int64], batch: Any) -> Iterator[Finding]:
        """What is wrong with the cells of some records."""
        if not len(records):
            return
        for part in self._parts:
            column = batch.column(part.name)
            for problem, cells in problems_in(part, column, self._dialect, typed=self._typed).items():
                yield self._finding(part.name, problem, cells, records, batch)
        if self._weight is not None:
            column = batch.column(self._weight)
            wrong = wrong_weights(column, self._weight, self._max_weight, self._dialect)
            if wrong.any():
                yield self._finding(self._weight, Problem.WEIGHT, wrong, records, batch)

    def _finding(
        self, name: str, problem: Problem, cells: NDArray[np.bool_], records: NDArray[np.int64], batch: Any
    ) -> Finding:
        def texts(column: str) -> list[str]:
            chosen = plain_cells(batch.column(column))[cells]
            return [text[:_LONGEST_VALUE] for text in as_texts(chosen, column)]

        ids: Sequence[str] = ()
        if self._identifier is not None:  # a file of several may lack it
            ids = texts(self._identifier) if self._identifier in self.columns else [""] * int(cells.sum())
        return Finding(self._file, name, problem, records[cells].tolist(), texts(name), ids)
