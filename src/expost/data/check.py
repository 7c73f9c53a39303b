"""Find every problem of a table at once, in one pass and in little memory."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from expost._common.machine import block_length
from expost._common.progress import Watch
from expost._common.validation import LibraryName
from expost.data.blocks import check_at_hand
from expost.data.dialect import Dialect
from expost.data.features import Feature
from expost.data.file_blocks import returning_memory
from expost.data.files import TableFiles, read_kinds
from expost.data.frame_tables import FrameKind, columns_of, plain_column
from expost.data.labels import Label
from expost.data.lazy import EMPTY, UNREADABLE, DaskTable, LazyTable, Piece, PieceShares, Run, Seen, kind_of
from expost.data.people import as_compared
from expost.data.problems import Problem, problems_in, without_ids, wrong_weights
from expost.data.values import as_texts, distinct_cells, plain_cells
from expost.engines.base import LOCAL
from expost.exceptions import DomainError, ExpostError

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
    person: str | None = None,
    identifier: str | None = None,
    watch: Watch | None = None,
) -> Iterator[Finding]:
    """Every problem that a table has with a domain, as the rows are read.

    All of them are found that a fit would refuse, and numbers beyond their bounds, which a fit clips. Lines
    that cannot be read are found too, and left out. Where rows belong to a ``person``, the last finding says
    how many people and rows there are.

    Privacy
    -------
    Private, row by row. That a column has a kind of problem is what a refusal says too.
    """
    every = table.pieces()
    shares = None if watch is None else PieceShares(every, watch)
    searches: list[_Search] = []
    people: set[Any] = set()
    for path, pieces in groupby(every, lambda piece: piece.path):
        search = _Search(table, path, declared, weight, max_weight, identifier, person, people)
        searches.append(search)
        yield from search.in_columns()
        yield from search.in_pieces(pieces, shares)
    if all(search.empty for search in searches):
        yield Finding(table.paths[0].name if table.paths else "", LINE, Problem.EMPTY)
    if person is not None:
        rows = sum(search.last for search in searches)
        yield Finding("", person, Problem.COUNTED, values=[f"{len(people)} people, {rows} rows"])


def problem_table(
    table: Any,
    declared: Sequence[Feature | Label],
    dialect: Dialect,
    identifier: str | None,
    library: LibraryName | None,
    **columns: Any,
) -> Any:
    """Every problem of a table of any kind, as a frame; see :meth:`expost.Domain.check`. Private."""
    opened = _opened(table, dialect)
    kind = replace(FrameKind.of(table), index=None).in_library(library)
    if identifier is not None and identifier not in opened.kinds:
        raise DomainError(f"the table lacks the column {identifier!r} that `identifier` names.")
    findings = find_problems(opened, declared, identifier=identifier, **columns)
    rows = [row for one in findings if one.problem is not Problem.COUNTED for row in one.rows()]
    # Without a row there is nothing to tell the type of a column from.
    none = [np.empty(0, dtype=str)] * 6
    files, records, ids, names, problems, values = zip(*rows, strict=True) if rows else none
    numbers = np.array([record or 0 for record in records], dtype=np.int64)
    listed: dict[str, Any] = {f"{MARK}file": files, "record": numbers}
    listed |= {} if identifier is None else {identifier: ids}
    return kind.frame(listed | {"column": names, "problem": problems, "value": values})


def _opened(table: Any, dialect: Dialect) -> LazyTable:
    if isinstance(table, LazyTable):
        return table
    if isinstance(table, str | os.PathLike):
        return TableFiles.found(os.fspath(table), dialect=dialect)
    if nw.dependencies.is_dask_dataframe(table):
        return DaskTable.of(table, LOCAL)
    return _MemoryTable.of(table)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _MemoryTable(LazyTable, Piece):
    """A frame, or a mapping of columns, in memory: its own only piece, cut as Arrow's batches are."""

    cells: Mapping[str, Any]
    has_types = True

    @classmethod
    def of(cls, table: Any) -> Self:
        if not isinstance(table, Mapping):
            check_at_hand(table)
        columns = columns_of(table)
        if columns is None:
            raise DomainError(
                "the table must be files, a data frame with named columns, or a mapping of them."
            )
        if not all(isinstance(name, str) for name in columns):
            raise DomainError(
                "the columns of the table must be named by texts; got other names. Rename them."
            )
        cells = {name: plain_column(name, column) for name, column in columns.items()}
        if len({len(column) for column in cells.values()}) > 1:
            raise DomainError("the columns of the table must have one length.")
        kinds = {name: kind_of(one.type) if hasattr(one, "type") else None for name, one in cells.items()}
        return cls(kinds=kinds, cells=cells)

    def pieces(self) -> list[Self]:
        return [self]

    @property
    def rows(self) -> int:  # type: ignore[override]  # an attribute of the base
        return max(map(len, self.cells.values()), default=0)

    def runs(self, columns: list[str], length: int, *, lenient: bool = False) -> Iterator[Run]:
        yield Run(self)

    def __len__(self) -> int:
        return self.rows

    def column(self, name: str) -> Any:
        return self.cells[name]

    def slice(self, start: int, length: int) -> Self:
        here = slice(start, start + length)
        return replace(self, cells={name: cells[here] for name, cells in self.cells.items()})


@dataclass(eq=False, repr=False)
class _Search:
    """What is looked for in one file or frame, whose records are counted from 1."""

    table: LazyTable
    path: Path | None
    declared: Sequence[Feature | Label]
    weight: str | None
    max_weight: float
    identifier: str | None
    person: str | None
    people: set[Any]
    """Everybody who was found so far, in all files."""
    last: int = 0
    """The last record that was read, those that were left out included."""
    broken: str = ""
    """Why something could not be read, and what follows it in the file neither; a public sentence."""

    def __post_init__(self) -> None:
        self.file, self.kinds = "", self.table.kinds
        if self.path is not None:
            self.file, self.kinds = self.path.name, read_kinds(self.path, self.table.dialect)
        self.wanted = [part.name for part in self.declared]
        self.wanted += [name for name in (self.person, self.weight) if name is not None]
        readable = {name for name, kind in self.kinds.items() if kind != UNREADABLE}
        self.columns = [name for name in dict.fromkeys([*self.wanted, self.identifier]) if name in readable]

    @property
    def empty(self) -> bool:
        """Whether no record was found; without a column to read, none can be in a file."""
        return not (self.last or self.broken) if self.columns else self.path is not None

    def in_columns(self) -> Iterator[Finding]:
        """What is wrong with whole columns, by their kinds here and in the first file."""
        for name in self.wanted:
            if name not in self.kinds:
                yield Finding(self.file, name, Problem.LACKING)
            elif self.kinds[name] == UNREADABLE:
                yield Finding(self.file, name, Problem.TYPE)
            elif len({self.kinds[name], self.table.kinds.get(name, self.kinds[name])} - {EMPTY}) > 1:
                yield Finding(self.file, name, Problem.MIXED)

    def in_pieces(self, pieces: Iterable[Piece], shares: PieceShares | None) -> Iterator[Finding]:
        """What is wrong with cells and lines, and with a file that cannot be read to its end."""
        for piece in pieces if self.columns else ():
            yield from self._in_piece(piece, None if shares is None else shares.of(piece))
        if self.broken:
            yield Finding(self.file, LINE, Problem.BROKEN, values=[self.broken])

    def _in_piece(self, piece: Piece, seen: Seen | None) -> Iterator[Finding]:
        """What is wrong with the cells of a piece, and with lines that were left out."""
        share, length = 0.0, block_length(len(self.columns))
        if piece.path is None:  # findings of what is in memory are not cut
            length = max(length, piece.rows or 0)
        with returning_memory():
            for run in self._read(piece.runs(self.columns, length, lenient=True)):
                share += piece.share_of(run.batch)
                records, uneven = self._numbered(run)
                for start in range(0, max(len(records), 1), length):
                    some = run.batch.slice(start, length)
                    yield from self._in_cells(records[start : start + length], some)
                    yield from uneven
                    uneven = []
                    if seen is not None:
                        seen(len(some), share)

    def _read(self, runs: Iterator[Run]) -> Iterator[Run]:
        if self.broken:
            return
        try:
            yield from runs
        except ExpostError as error:  # its sentence quotes nothing
            self.broken = str(error)

    def _numbered(self, run: Run) -> tuple[NDArray[np.int64], list[Finding]]:
        """The numbers of the records in a run, and what is wrong with the lines that were left out."""
        first, places = self.last + 1, [place for place, _ in run.left_out]
        self.last += len(run.batch) + len(places)
        records = np.delete(np.arange(first, self.last + 1), np.array(places, dtype=np.int64) - 1)
        if not places:
            return records, []
        ids = [""] * len(places) if self.identifier is not None else []
        lines, texts = [first + place - 1 for place in places], [text for _, text in run.left_out]
        return records, [Finding(self.file, LINE, Problem.UNEVEN, lines, texts, ids)]

    def _in_cells(self, records: NDArray[np.int64], batch: Any) -> Iterator[Finding]:
        if not len(records):
            return
        dialect, typed = self.table.dialect, self.table.has_types
        for part in self.declared:
            if part.name in self.columns:
                found = problems_in(part, batch.column(part.name), dialect, typed=typed)
                for problem, cells in found.items():
                    yield self._finding(part.name, problem, cells, records, batch)
        if self.person in self.columns:
            places, ids = distinct_cells(dialect.plain(batch.column(self.person), "category"))
            none = without_ids(ids)
            self.people.update(map(as_compared, ids[~none].tolist()))
            if none.any():
                yield self._finding(self.person, Problem.PERSON, none[places], records, batch)
        if self.weight in self.columns:
            wrong = wrong_weights(batch.column(self.weight), self.weight, self.max_weight, dialect)
            if wrong.any():
                yield self._finding(self.weight, Problem.WEIGHT, wrong, records, batch)

    def _finding(
        self, name: str, problem: Problem, cells: NDArray[np.bool_], records: NDArray[np.int64], batch: Any
    ) -> Finding:
        def texts(column: str) -> list[str]:
            chosen = plain_cells(batch.column(column))[cells]
            return [text[:_LONGEST_VALUE] for text in as_texts(chosen, column)]

        ids: Sequence[str] = ()
        if self.identifier is not None:  # a file of several may lack it
            ids = texts(self.identifier) if self.identifier in self.columns else [""] * int(cells.sum())
        return Finding(self.file, name, problem, records[cells].tolist(), texts(name), ids)
