"""Find every problem of a table at once, in one pass and in little memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from expost._common.parallel import block_length
from expost._common.progress import Watch
from expost.data.domain import Domain
from expost.data.features import Feature, Label
from expost.data.file_schema import EMPTY, UNREADABLE, read_kinds
from expost.data.files import FilePiece, TableFiles
from expost.data.lenient import LenientReader
from expost.data.piece_shares import PieceShares
from expost.data.problems import Problem, problems_in, wrong_weights
from expost.data.values import as_texts, plain_cells

if TYPE_CHECKING:
    import pyarrow

# Longer cells are cut in the list of problems.
_LONGEST_VALUE = 200
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
        places = zip_longest(self.records or [None], self.ids or [""], self.values or [""], fillvalue="")
        for record, known, value in places:
            yield self.file, record, known, self.column, self.problem.title, value


def find_problems(
    table: TableFiles,
    domain: Domain,
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
        The files.
    domain
        What is declared about a record.
    weight, max_weight
        The column of weights, where there is one, and the largest weight.
    identifier
        A column by which the curator knows the records.
    watch
        Is told how far the pass has come.

    Privacy
    -------
    Private, row by row. That a column has a kind of problem is what a refusal says too.
    """
    declared: tuple[Feature | Label, ...] = (*domain.features, domain.label)
    empty = True
    every = table.pieces()
    shares = None if watch is None else PieceShares(every, watch)
    for path, pieces in groupby(every, lambda piece: piece.path):
        kinds = read_kinds(path, table.dialect)
        readable = {name for name, kind in kinds.items() if kind != UNREADABLE}
        parts = {part.name: part for part in declared if part.name in readable}
        wanted = [*(part.name for part in declared), *([] if weight is None else [weight])]
        for name in wanted:
            if name not in kinds:
                yield Finding(path.name, name, Problem.LACKING)
            elif kinds[name] == UNREADABLE:
                yield Finding(path.name, name, Problem.TYPE)
            elif len({kinds[name], table.kinds.get(name, kinds[name])} - {EMPTY}) > 1:
                yield Finding(path.name, name, Problem.MIXED)
        reader = LenientReader(path, table.dialect)
        asked = [*wanted, *([] if identifier is None else [identifier])]
        present = [name for name in dict.fromkeys(asked) if name in readable]
        if not present:
            continue
        known = weight if weight in readable else None
        walk = _Walk(parts, known, max_weight, identifier, reader, present, shares, table.has_types)
        yield from walk.findings(pieces)
        empty = empty and reader.last == 0 and not reader.broken
    if empty:
        yield Finding(table.paths[0].name, LINE, Problem.EMPTY)


@dataclass(frozen=True, eq=False, repr=False)
class _Walk:
    """The way through one file."""

    parts: dict[str, Feature | Label]
    weight: str | None
    max_weight: float
    identifier: str | None
    reader: LenientReader
    columns: list[str]
    shares: PieceShares | None
    typed: bool

    def findings(self, pieces: Iterator[FilePiece]) -> Iterator[Finding]:
        for piece in pieces:
            seen = None if self.shares is None else self.shares.of(piece)
            for records, batch in self.reader.batches(
                piece, self.columns, block_length(len(self.columns)), seen
            ):
                if len(records):
                    yield from self._of_batch(records, batch)
                yield from self._uneven()
        yield from self._uneven()
        if self.reader.broken:
            yield Finding(self.reader.path.name, LINE, Problem.BROKEN, values=[self.reader.broken])

    def _uneven(self) -> Iterator[Finding]:
        found = self.reader.taken()
        if found:
            records, texts = zip(*found, strict=True)
            ids = [""] * len(found) if self.identifier is not None else []
            yield Finding(self.reader.path.name, LINE, Problem.UNEVEN, records, texts, ids)

    def _of_batch(self, records: NDArray[np.int64], batch: "pyarrow.RecordBatch") -> Iterator[Finding]:
        for name, part in self.parts.items():
            column = batch.column(name)
            for problem, cells in problems_in(part, column, self.reader.dialect, typed=self.typed).items():
                yield self._finding(name, problem, cells, records, batch)
        if self.weight is not None:
            wrong = wrong_weights(
                batch.column(self.weight), self.weight, self.max_weight, self.reader.dialect
            )
            if wrong.any():
                yield self._finding(self.weight, Problem.WEIGHT, wrong, records, batch)

    def _finding(
        self,
        name: str,
        problem: Problem,
        cells: NDArray[np.bool_],
        records: NDArray[np.int64],
        batch: "pyarrow.RecordBatch",
    ) -> Finding:
        def texts(column: str) -> list[str]:
            chosen = plain_cells(batch.column(column))[cells]
            return [text[:_LONGEST_VALUE] for text in as_texts(chosen, column)]

        ids: Sequence[str] = ()
        if self.identifier is not None:  # a file of several may lack it
            ids = texts(self.identifier) if self.identifier in self.columns else [""] * int(cells.sum())
        return Finding(self.reader.path.name, name, problem, records[cells].tolist(), texts(name), ids)
