"""Tables in files: CSV and Parquet, one file or many, read block by block, broken lines told apart."""

import errno
import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from expost._common.progress import Watch
from expost.data.dialect import PLAIN, Dialect
from expost.data.file_blocks import CSV_BYTES, Run, read_csv, read_parquet, returning_memory
from expost.data.file_schema import EMPTY, invalid_file, is_parquet, read_kinds, unclosed_quote
from expost.data.lazy import LazyTable, Piece, changed_error
from expost.data.values import untold
from expost.engines.base import LOCAL, Engine, LocalEngine
from expost.exceptions import ExpostError, FileError

if TYPE_CHECKING:
    import pyarrow


# Row groups of a Parquet file are read together until they have this many rows.
_PART_ROWS = 1 << 17


@dataclass(frozen=True, kw_only=True)
class TableFiles(LazyTable):
    """A table in one file or several, of one kind.

    Parameters
    ----------
    kinds, engine
        As in :class:`LazyTable`; the columns are those of the first file.
    paths
        The files, in the order of their rows: that of their names.
    """

    @classmethod
    def found(cls, path: str, engine: Engine = LOCAL, dialect: Dialect = PLAIN) -> "TableFiles":
        """The files at a path, in a folder or of a pattern."""
        paths = _found(path)
        if len({is_parquet(one) for one in paths}) > 1:
            raise FileError(
                "the files of a table must all be CSV or all be Parquet; got both. Name some of them by a "
                "pattern, such as 'folder/*.csv'."
            )
        kinds = read_kinds(paths[0], dialect)
        return cls(paths=tuple(paths), kinds=kinds, engine=engine, dialect=dialect)

    def check_columns(self, names: Iterable[str]) -> None:
        """Refuse a file that lacks one of the columns, or has another type in it than the first file."""
        wanted = list(names)
        for path in self.paths[1:]:
            kinds = read_kinds(path, self.dialect)
            for name in wanted:
                if name not in kinds:
                    raise FileError(
                        f"{path.name!r} lacks the column {name!r}, which other files of the table have. Add "
                        "or rename it."
                    )
                both = {kinds[name], self.kinds[name]} - {EMPTY}
                if len(both) > 1:
                    raise FileError(
                        f"the column {name!r} has one type in {self.paths[0].name!r} ({self.kinds[name]}) "
                        f"and another in {path.name!r} ({kinds[name]}). Write all files with one type."
                    )

    def pieces(self) -> "list[FilePiece]":
        """The table in pieces that are read apart: runs of row groups, or whole CSV files."""
        # Where the work is done, the folder may be another, and so may the time when a copy was written.
        found = [piece for path in self.paths for piece in _pieces(path.absolute(), self.dialect)]
        if isinstance(self.engine, LocalEngine):
            return found
        return [replace(piece, stamp=None) for piece in found]


@dataclass(frozen=True)
class FilePiece:
    """A CSV file, or some row groups of a Parquet file; opened where it is read."""

    path: Path
    row_groups: tuple[int, ...] | None = None
    bytes: int = 0
    stamp: tuple[int, ...] | None = None
    """The file's size and the time when it was last written to; None where workers may have copies of it."""
    dialect: Dialect = PLAIN
    rows: int | None = None
    """How many rows there are, where the file says so."""

    def batches(
        self, columns: list[str], length: int, seen: Callable[[int, float], None] | None = None
    ) -> "Iterator[pyarrow.RecordBatch]":
        """The columns of the rows, as batches of at most ``length``; CSV cells as texts.

        ``seen`` is told how many rows were read more, and which share of the piece was read by then.

        Raises
        ------
        FileError
            If the file is not what its name says. The error quotes nothing of it.
        """
        share = 0.0
        for batch, *_ in self.runs(columns, length):
            share += self.share_of(batch)
            for start in range(0, len(batch), length):
                some = batch.slice(start, length)
                yield some
                if seen is not None:
                    seen(len(some), share)

    def runs(self, columns: list[str], length: int, *, lenient: bool = False) -> Iterator[Run]:
        """The columns of the rows as the file has them, with the lines that had to be left out.

        With ``lenient``, lines of CSV with too many or too few cells are left out and not refused, and
        characters that the encoding does not have are replaced.

        Raises
        ------
        FileError
            If the file is not what its name says. The error quotes nothing of it.
        """
        with open(self.path, "rb"):  # for a missing file or a folder, raise the system's error, not Arrow's
            pass
        self._check_stamp()
        runs = (
            read_csv(self.path, self.dialect, columns, lenient=lenient)
            if self.row_groups is None
            else read_parquet(self.path, self.row_groups, columns, length)
        )
        run: Run | None = None
        while True:
            failure: ExpostError | None = None
            try:
                run = next(runs, None)
            except MemoryError:
                raise
            except ExpostError as error:
                failure = error
            except Exception:
                failure = invalid_file(self.path, self.dialect)
            # Raised here and not in the handler: Arrow's errors, of whatever kind, quote whole lines.
            if run is None or failure is not None:
                self._check_stamp()
            if failure is not None:
                raise failure
            if run is None:
                return
            yield run

    def share_of(self, batch: "pyarrow.RecordBatch") -> float:
        """About which share of the piece a batch is; one of CSV is a block of text."""
        return len(batch) / self.rows if self.rows else CSV_BYTES / max(self.bytes, CSV_BYTES)

    def _check_stamp(self) -> None:
        if self.stamp is not None and self.stamp != _stamp(self.path):
            raise changed_error()


def _found(path: str) -> list[Path]:
    if os.path.isdir(path):
        files = [one for one in sorted(Path(path).iterdir()) if not one.name.startswith((".", "_"))]
        below = [one for one in files if one.is_dir()]
        if below:
            raise FileError(
                f"the folder {Path(path).name!r} has a folder in it, {below[0].name!r}, which would be left "
                "out. Name all files of the table by a pattern, such as 'folder/*/*.parquet'."
            )
        if not files:
            raise FileError(f"the folder {Path(path).name!r} has no file of a table in it.")
        return files
    if os.path.exists(path):
        return [Path(path)]
    if not glob.has_magic(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    matching = sorted(Path(one) for one in glob.glob(path, recursive=True) if os.path.isfile(one))
    if not matching:
        raise FileError(f"there is no file that matches {path!r}.")
    return matching


def _stamp(path: Path) -> tuple[int, ...]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def _pieces(path: Path, dialect: Dialect) -> list[FilePiece]:
    if not is_parquet(path):
        return [FilePiece(path, bytes=os.stat(path).st_size, stamp=_stamp(path), dialect=dialect)]
    pieces: list[FilePiece] | None = None
    with untold():
        from pyarrow import parquet

        stamp = _stamp(path)
        metadata = parquet.read_metadata(path)
        groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
        pieces = [
            FilePiece(
                path,
                run,
                sum(groups[place].total_byte_size for place in run),
                stamp,
                dialect,
                sum(groups[place].num_rows for place in run),
            )
            for run in _runs([group.num_rows for group in groups])
        ]
    if pieces is None:
        raise invalid_file(path)
    return pieces


def _runs(sizes: list[int]) -> Iterator[tuple[int, ...]]:
    """Consecutive places whose sizes add up to enough rows, and the rest."""
    run: list[int] = []
    rows = 0
    for place, size in enumerate(sizes):
        run.append(place)
        rows += size
        if rows >= _PART_ROWS:
            yield tuple(run)
            run, rows = [], 0
    if run:
        yield tuple(run)


class PieceShares:
    """The shares of pieces that were read, as one share of all of them.

    Privacy
    -------
    Private, as what a watch counts is.
    """

    def __init__(self, pieces: Sequence[Piece], watch: Watch) -> None:
        self._watch = watch
        self._lock = Lock()
        self._done = 0.0
        self._whole = sum(piece.bytes for piece in pieces) or 1
        rows = [piece.rows for piece in pieces if isinstance(piece, FilePiece) and piece.rows is not None]
        watch.begin(sum(rows) if len(rows) == len(pieces) else None)

    def of(self, piece: Piece) -> Callable[[int, float], None]:
        """What is told how many more rows of a piece were read, and which share of it was read by then."""
        before = 0.0

        def seen(rows: int, share: float) -> None:
            nonlocal before
            share = min(share, 1.0)
            with self._lock:
                self._done += (share - before) * piece.bytes / self._whole
            before = share
            self._watch.seen(rows, None if self._watch.total else self._done)

        return seen


NOT_TEXT = "\ufffd"
"""What stands for bytes that are no text in the declared encoding."""


@dataclass
class LenientReader:
    """Reads columns of the pieces of one file or frame, and remembers lines that it left out; private.

    Records are counted from 1 through the file, those that are left out included.
    """

    last: int = 0
    """The last record that was read."""
    uneven: list[tuple[int, str]] = field(default_factory=list)
    """Records whose lines have another number of cells than there are names, with their texts."""
    broken: str = ""
    """Why something could not be read, and what follows it in the file neither; a public sentence."""

    def batches(
        self,
        piece: Piece,
        columns: list[str],
        length: int,
        seen: Callable[[int, float], None] | None = None,
    ) -> "Iterator[tuple[NDArray[np.int64], pyarrow.RecordBatch]]":
        """The records that are read, by their numbers, and their columns; a few at a time.

        ``seen`` is told how many rows were read more, and which share of the piece was read by then.
        """
        share = 0.0
        with returning_memory():
            runs = _runs_of(piece, columns, length)
            while not self.broken and (run := self._following(runs)) is not None:
                share += piece.share_of(run.batch) if isinstance(piece, FilePiece) else 0.0
                records = self._numbered(run)
                for start in range(0, max(len(records), 1), length):
                    some = run.batch.slice(start, length)
                    yield records[start : start + length], some
                    if seen is not None:
                        seen(len(some), share)

    def taken(self) -> list[tuple[int, str]]:
        """The uneven lines that were found since this was last asked."""
        found, self.uneven = self.uneven, []
        return found

    def _following(self, runs: Iterator[Run]) -> Run | None:
        try:
            return next(runs, None)
        except ExpostError as error:  # its sentence quotes nothing
            self.broken = str(error)
        return None

    def _numbered(self, run: Run) -> NDArray[np.int64]:
        """The numbers of the records in a run."""
        first, places = self.last + 1, [place for place, _ in run.left_out]
        self.last += len(run.batch) + len(places)
        self.uneven += [(first + place - 1, text) for place, text in run.left_out]
        return np.delete(np.arange(first, self.last + 1), np.array(places, dtype=np.int64) - 1)


def _runs_of(piece: Piece, columns: list[str], length: int) -> Iterator[Run]:
    if not isinstance(piece, FilePiece):
        yield from (Run(batch, []) for batch in piece.batches(columns, length))
        return
    for run in piece.runs(columns, length, lenient=True):
        yield run
        if run.left_out and run.quote is not None:  # nobody knows which cells follow it
            raise unclosed_quote(piece.path, run.quote)
