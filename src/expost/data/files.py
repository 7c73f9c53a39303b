"""Tables in files: CSV and Parquet, one file or many, their names and types, and their pieces."""

import csv
import errno
import glob
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from expost.data.dialect import PLAIN, Dialect, delimiter_advice, line_to_add
from expost.data.file_blocks import CSV_BYTES, LONGEST_RECORD, read_csv, read_parquet, unclosed_quote
from expost.data.lazy import EMPTY, LazyTable, Piece, Run, changed_error, kind_of
from expost.data.values import attempted
from expost.engines.base import LOCAL, Engine, LocalEngine
from expost.exceptions import ExpostError, FileError

# Row groups of a Parquet file are read together until they have this many rows.
_PART_ROWS = 1 << 17


@dataclass(frozen=True, kw_only=True)
class TableFiles(LazyTable):
    """A table in files of one kind, in the order of their names; the columns are those of the first file."""

    @classmethod
    def found(cls, path: str, engine: Engine = LOCAL, dialect: Dialect = PLAIN) -> "TableFiles":
        """The files at a path, in a folder or of a pattern."""
        paths = _found(path)
        if len({_is_parquet(one) for one in paths}) > 1:
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
                    lacking = f"{path.name!r} lacks the column {name!r}"
                    raise FileError(f"{lacking}, which other files of the table have. Add or rename it.")
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
class FilePiece(Piece):
    """A CSV file, or some row groups of a Parquet file; opened where it is read."""

    path: Path
    row_groups: tuple[int, ...] | None = None
    bytes: int = 0
    stamp: tuple[int, ...] | None = None
    """The file's size and the time when it was last written to; None where workers may have copies of it."""
    dialect: Dialect = PLAIN
    rows: int | None = None

    def runs(self, columns: list[str], length: int, *, lenient: bool = False) -> Iterator[Run]:
        """The columns of the rows as the file has them; CSV cells as texts."""
        with open(self.path, "rb"):  # for a missing file or a folder, raise the system's error, not Arrow's
            pass
        self._check_stamp()
        if self.row_groups is None:
            runs = read_csv(self.path, self.dialect, columns, lenient=lenient)
        else:
            runs = read_parquet(self.path, self.row_groups, columns, length)
        while True:
            found = self._following(runs)
            # Raised here and not in the handler: Arrow's errors, of whatever kind, quote whole lines.
            if not isinstance(found, Run):
                self._check_stamp()
            if isinstance(found, ExpostError):
                raise found
            if found is None:
                return
            yield found
            if lenient and found.left_out and found.quote is not None:  # nobody knows which cells follow it
                raise unclosed_quote(self.path, found.quote)

    def _following(self, runs: Iterator[Run]) -> Run | ExpostError | None:
        try:
            return next(runs, None)
        except MemoryError:
            raise
        except Exception as error:
            return error if isinstance(error, ExpostError) else _invalid_file(self.path, self.dialect)

    def share_of(self, batch: Any) -> float:
        """About which share of the piece a batch is; one of CSV is a block of text."""
        return super().share_of(batch) if self.rows else CSV_BYTES / max(self.bytes, CSV_BYTES)

    def _check_stamp(self) -> None:
        if self.stamp is not None and self.stamp != _stamp(self.path):
            raise changed_error()


def _in_folder(folder: Path) -> list[Path]:
    files = [one for one in sorted(folder.iterdir()) if not one.name.startswith((".", "_"))]
    below = next((one for one in files if one.is_dir()), None)
    if below is not None:
        raise FileError(
            f"the folder {folder.name!r} has a folder in it, {below.name!r}, which would be left "
            "out. Name all files of the table by a pattern, such as 'folder/*/*.parquet'."
        )
    if not files:
        raise FileError(f"the folder {folder.name!r} has no file of a table in it.")
    return files


def _found(path: str) -> list[Path]:
    if os.path.isdir(path):
        return _in_folder(Path(path))
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
    if not _is_parquet(path):
        return [FilePiece(path, bytes=os.stat(path).st_size, stamp=_stamp(path), dialect=dialect)]
    pieces = attempted(lambda: list(_row_groups(path, dialect)))
    if pieces is None:
        raise _invalid_file(path)
    return pieces


def _row_groups(path: Path, dialect: Dialect) -> Iterator[FilePiece]:
    """Runs of row groups that have enough rows together, and the rest."""
    from pyarrow import parquet

    stamp, metadata = _stamp(path), parquet.read_metadata(path)
    first = rows = size = 0
    for place in range(metadata.num_row_groups):
        group = metadata.row_group(place)
        rows, size, last = rows + group.num_rows, size + group.total_byte_size, place + 1
        if rows >= _PART_ROWS or last == metadata.num_row_groups:
            yield FilePiece(path, tuple(range(first, last)), size, stamp, dialect, rows)
            first, rows, size = last, 0, 0


PARQUET = (".parquet", ".pq")


def read_kinds(path: Path, dialect: Dialect = PLAIN) -> dict[str, str | None]:
    """The columns of a file and their kinds, from the schema or, without kinds, the line of names; public."""
    kinds: dict[str, str | None] | None = None
    names: list[str] = []
    advice = ""
    with open(path, "rb"):
        pass
    if _is_parquet(path):
        from pyarrow import parquet

        schema = attempted(lambda: parquet.read_schema(path))
        if schema is not None:
            names, kinds = schema.names, {field.name: kind_of(field.type) for field in schema}
    else:
        with suppress(UnicodeError, csv.Error):
            names = _names_in_csv(path, dialect)
            advice = delimiter_advice(names, dialect)  # both at once, where the encoding is another one too
            "".join(names).encode()
            kinds = dict.fromkeys(names)
    if kinds is None:
        raise _invalid_file(path, dialect, advice)
    _check_names(path, names)
    return kinds


def _check_names(path: Path, names: list[str]) -> None:
    if not names:
        raise FileError(f"the first line of {path.name!r} must name the columns; it is empty. Add the names.")
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None or not all(names):
        got = f"none of them empty; got {'an empty one' if twice is None else f'{twice!r} twice'}"
        raise FileError(f"the columns of {path.name!r} must have different names, {got}.")


def _is_parquet(path: Path) -> bool:
    """Whether a file is Parquet by its name, and not CSV; FileError where it is neither."""
    suffix = path.suffix.lower()
    if suffix not in (".csv", *PARQUET):
        raise FileError(
            f"a table must be a .csv or .parquet file; got {path.name!r}. Save a spreadsheet as CSV, call "
            "a text file .csv, and of a folder with other files name those of the table by a pattern, as in "
            "'folder/*.parquet'."
        )
    return suffix in PARQUET


def _names_in_csv(path: Path, dialect: Dialect) -> list[str]:
    # Python reads ahead of the first line. Bytes there that are not text must not cause an error.
    with open(path, encoding=dialect.codec, errors="surrogateescape", newline="") as file:
        lines = iter(partial(file.readline, LONGEST_RECORD), "")
        first = next(lines, "")
        try:
            return next(csv.reader(chain([first], lines), strict=True, delimiter=dialect.delimiter), [])
        except csv.Error:
            if '"' not in first:
                raise
    raise unclosed_quote(path, 1)


def _invalid_file(path: Path, dialect: Dialect = PLAIN, advice: str = "") -> FileError:
    if _is_parquet(path):
        return FileError(f"{path.name!r} is not valid Parquet; save it again as Parquet or CSV.")
    utf8 = dialect.codec == PLAIN.codec
    other = 'encoding = "cp1252"' if utf8 else 'encoding = "utf-8"'
    source = "Excel on Windows" if utf8 else "other programs"
    return FileError(
        f"{path.name!r} is not valid CSV in {'UTF-8' if utf8 else dialect.encoding}. If {source} wrote it, "
        f"{line_to_add(other)}; otherwise save it again as CSV or Parquet." + f" {advice}." * bool(advice)
    )
