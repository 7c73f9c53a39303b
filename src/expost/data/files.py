"""Tables in files: CSV and Parquet, one file or many, read block by block through Arrow."""

import csv
import glob
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost.data.values import untold
from expost.exceptions import FileError

if TYPE_CHECKING:
    import pyarrow

PARQUET = (".parquet", ".pq")
# Bytes of a CSV file that are parsed at a time, and of a column of Parquet that are read at a time.
_CSV_BYTES, _COLUMN_BYTES = 1 << 19, 1 << 18
# Row groups of a Parquet file are read together until they have this many rows.
_PART_ROWS = 1 << 17


@dataclass(frozen=True)
class TableFiles:
    """A table in one file or several, of which names and types of columns were read and no value.

    Parameters
    ----------
    paths
        The files, in the order of their rows: that of their names.
    kinds
        Each column of the first file and its kind, ``"number"``, ``"category"`` or ``"yes_no"``; None in CSV,
        which has no types.

    Privacy
    -------
    Public. The rows, which are read when they are needed, are private.
    """

    paths: tuple[Path, ...]
    kinds: dict[str, str | None]

    @property
    def is_csv(self) -> bool:
        """Whether cells are texts, whose types only a domain knows."""
        return not _is_parquet(self.paths[0])

    def check_columns(self, names: Iterable[str]) -> None:
        """Refuse a file that lacks one of the columns, or has another type in it than the first file."""
        wanted = list(names)
        for path in self.paths[1:]:
            kinds = read_kinds(path)
            for name in wanted:
                if name not in kinds:
                    raise FileError(
                        f"{path.name!r} lacks the column {name!r}, which other files of the table have. Add "
                        "or rename it."
                    )
                if kinds[name] != self.kinds[name]:
                    raise FileError(
                        f"the column {name!r} has one type in {self.paths[0].name!r} and another in "
                        f"{path.name!r}. Write all files of a table with one type."
                    )

    def pieces(self) -> "list[FilePiece]":
        """The table in pieces that are read apart: runs of row groups, or whole CSV files."""
        return [piece for path in self.paths for piece in _pieces(path)]


@dataclass(frozen=True)
class FilePiece:
    """A CSV file, or some row groups of a Parquet file; opened where it is read."""

    path: Path
    row_groups: tuple[int, ...] | None = None

    def batches(self, columns: list[str], length: int) -> "Iterator[pyarrow.RecordBatch]":
        """The columns of the rows, as batches of at most ``length``; CSV cells as texts.

        Raises
        ------
        FileError
            If the file is not what its name says. The error quotes nothing of it.
        """
        with open(self.path, "rb"):  # for a missing file or a folder, raise the system's error, not Arrow's
            pass
        batches: Any = None
        uneven = False
        try:
            batches = self._open_csv(columns) if self.row_groups is None else self._open(columns, length)
            batch = next(batches, None)
            while batch is not None:
                for start in range(0, len(batch), length):
                    yield batch.slice(start, length)
                batch = next(batches, None)
            return
        except MemoryError:
            raise
        except (ValueError, OSError, TypeError, LookupError, NotImplementedError) as error:  # Arrow's
            uneven = " columns, got " in str(error)
        # Raised here and not in the handler: Arrow's errors quote whole lines.
        if uneven:
            raise FileError(
                f"{self.path.name!r} is not valid CSV: every line must have as many cells as the line of "
                "names. Quote cells that contain commas."
            )
        raise _invalid(self.path)

    def _open(self, columns: list[str], length: int) -> "Iterator[pyarrow.RecordBatch]":
        from pyarrow.parquet import ParquetFile

        # Columns are decoded a few pages at a time: a row group may be larger than memory.
        file = ParquetFile(self.path, buffer_size=_COLUMN_BYTES, pre_buffer=False)
        batches: Iterator[pyarrow.RecordBatch] = file.iter_batches(
            batch_size=length, row_groups=list(self.row_groups or ()), columns=columns, use_threads=False
        )
        return batches

    def _open_csv(self, columns: list[str]) -> "Iterator[pyarrow.RecordBatch]":
        from pyarrow import csv as arrow_csv, string

        reader: Iterator[pyarrow.RecordBatch] = arrow_csv.open_csv(
            self.path,
            read_options=arrow_csv.ReadOptions(use_threads=False, block_size=_CSV_BYTES),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(columns, string()),
                strings_can_be_null=False,
                include_columns=columns,
            ),
        )
        return reader


def scan(path: str | os.PathLike[str]) -> TableFiles:
    """Find a table in files without reading any of its rows.

    Parameters
    ----------
    path
        A ``.csv`` or ``.parquet`` file; a folder of such files, of one kind; or a pattern such as
        ``"folder/*.parquet"``. Files are taken in the order of their names, and files in a folder whose name
        starts with a dot or an underscore are left out.

    Returns
    -------
    TableFiles
        For ``fit``, ``ex_post_losses``, ``predict`` and ``bounds``, which also take the path itself.

    Privacy
    -------
    Public: names of files and of columns, and types. Nothing of a row is in an error.
    """
    paths = _found(os.fspath(path))
    kinds = {_is_parquet(one) for one in paths}
    if len(kinds) > 1:
        raise FileError("the files of a table must all be CSV or all be Parquet; got both.")
    return TableFiles(tuple(paths), read_kinds(paths[0]))


def as_files(X: Any) -> TableFiles | None:
    """The files that ``X`` names, or None where it is a table itself."""
    if isinstance(X, TableFiles):
        return X
    return scan(X) if isinstance(X, str | os.PathLike) else None


def read_kinds(path: Path) -> dict[str, str | None]:
    """The columns of a file and their kinds, from the line of names or the schema; public.

    A CSV file has no schema, so its kinds are None. No value is read.
    """
    kinds: dict[str, str | None] | None = None
    with open(path, "rb"):
        pass
    if _is_parquet(path):
        with untold():
            from pyarrow import parquet

            schema = parquet.read_schema(path)
            kinds = {field.name: _kind(field.type) for field in schema}
        if kinds is not None:
            _check_names(schema.names)
    else:
        with suppress(UnicodeError, csv.Error):
            # Python reads ahead of the first line. Bytes there that are not UTF-8 must not cause an error.
            with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
                names = next(csv.reader(file, strict=True), [])
            "".join(names).encode()
            kinds = dict.fromkeys(names)
        if kinds is not None:
            if not names:
                raise FileError(f"{path.name!r} is empty: its first line must name the columns.")
            _check_names(names)
    if kinds is None:
        raise _invalid(path)
    return kinds


def release_unused() -> None:
    """Give memory that Arrow holds for later back to the system."""
    import pyarrow

    pyarrow.default_memory_pool().release_unused()


def _found(path: str) -> list[Path]:
    if os.path.isdir(path):
        inside = sorted(Path(path).iterdir())
        files = [one for one in inside if one.is_file() and not one.name.startswith((".", "_"))]
        if not files:
            raise FileError(f"the folder {Path(path).name!r} has no file of a table in it.")
        return files
    if os.path.exists(path) or not glob.has_magic(path):
        return [Path(path)]
    matching = sorted(Path(one) for one in glob.glob(path, recursive=True) if os.path.isfile(one))
    if not matching:
        raise FileError(f"there is no file that matches {path!r}.")
    return matching


def _pieces(path: Path) -> list[FilePiece]:
    if not _is_parquet(path):
        return [FilePiece(path)]
    pieces: list[FilePiece] | None = None
    with untold():
        from pyarrow import parquet

        metadata = parquet.read_metadata(path)
        sizes = [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)]
        pieces = [FilePiece(path, groups) for groups in _runs(sizes)]
    if pieces is None:
        raise _invalid(path)
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


def _is_parquet(path: Path) -> bool:
    suffix = path.suffix.lower()
    if suffix not in (".csv", *PARQUET):
        raise FileError(f"a table must be a .csv or .parquet file; got {path.name!r}.")
    return suffix in PARQUET


def _check_names(names: list[str]) -> None:
    if len(set(names)) < len(names) or not all(names):
        raise FileError("the columns of the table must have different names, none of them empty.")


def _invalid(path: Path) -> FileError:
    kind = "Parquet; save it again as Parquet or CSV."
    if not _is_parquet(path):
        kind = "CSV in UTF-8; save it again as CSV or Parquet."
    return FileError(f"{path.name!r} is not valid {kind}")


def _kind(kind: Any) -> str:
    from pyarrow import types

    if types.is_boolean(kind):
        return "yes_no"
    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return "number" if numeric else "category"
