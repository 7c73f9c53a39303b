"""Read tables from files: CSV with the standard library, Parquet if pyarrow is installed."""

import csv
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from expost.data.records import Columns
from expost.exceptions import FileError

PARQUET = (".parquet", ".pq")
_NOT_CSV = "the table is not valid CSV in UTF-8; save it again as CSV or Parquet."


def read_columns(path: Path) -> Columns:
    """Read a table by its suffix: CSV as texts, Parquet with the types of its schema.

    A CSV file is in UTF-8, starts with a line of names and has as many cells in every line. Its cells stay
    texts; the domain says which of them are numbers, so that no type is ever guessed from values.

    Privacy
    -------
    The result is private. An error names no row, value or count.
    """
    if _is_parquet(path):
        table = _read_parquet("table", path)
        _check_names(table.column_names)
        return {name: table[name].to_numpy() for name in table.column_names}
    complete = False
    # Raised below and not in a handler: the error of the decoder holds a part of the table.
    with suppress(UnicodeDecodeError, csv.Error), open(path, encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, strict=True)
        names = _header(lines)
        rows = [line for line in lines if line]
        complete = True
    if not complete:
        raise FileError(_NOT_CSV)
    if any(len(row) != len(names) for row in rows):
        raise FileError(
            "the table is not valid CSV: every line must have as many cells as the line of names. "
            "Quote cells that contain commas."
        )
    cells = zip(*rows, strict=True) if rows else [()] * len(names)
    return {name: np.array(column, dtype=object) for name, column in zip(names, cells, strict=True)}


def read_kinds(path: Path) -> dict[str, str | None]:
    """The columns of a table and their kinds, from the line of names or the schema; public.

    A CSV file has no schema, so its kinds are None. No value is read.
    """
    if _is_parquet(path):
        schema = _read_parquet("schema", path)
        _check_names(schema.names)
        return {field.name: _kind(field.type) for field in schema}
    with suppress(UnicodeError, csv.Error):
        # Python reads ahead of the first line. Bytes there that are not UTF-8 must not cause an error.
        with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            names = _header(csv.reader(file, strict=True))
        "".join(names).encode()
        return dict.fromkeys(names)
    raise FileError(_NOT_CSV)


def _is_parquet(path: Path) -> bool:
    suffix = path.suffix.lower()
    if suffix not in (".csv", *PARQUET):
        raise FileError(f"a table must be a .csv or .parquet file; got {path.name!r}.")
    with open(path, "rb"):  # for a missing file or a folder, raise the system's error and not pyarrow's
        return suffix in PARQUET


def _header(lines: Any) -> list[str]:
    names: list[str] = next(lines, [])
    if not names:
        raise FileError("the table is empty: its first line must name the columns.")
    _check_names(names)
    return names


def _check_names(names: list[str]) -> None:
    if len(set(names)) < len(names) or not all(names):
        raise FileError("the columns of the table must have different names, none of them empty.")


def _read_parquet(what: str, path: Path) -> Any:
    """The table or the schema of a Parquet file; an error quotes nothing of the file."""
    parquet = pyarrow_parquet()
    with suppress(ValueError, OSError):
        return getattr(parquet, f"read_{what}")(path)
    raise FileError("the table is not valid Parquet; save it again as Parquet or CSV.")


def pyarrow_parquet() -> Any:
    """The module that reads and writes Parquet; if it is missing, the error says how to install it."""
    with suppress(ImportError):
        from pyarrow import parquet

        return parquet
    raise FileError(
        "Parquet needs pyarrow, which is not installed: pip install 'expost[parquet]', or use CSV."
    )


def _kind(kind: Any) -> str:
    from pyarrow import types

    if types.is_boolean(kind):
        return "yes_no"
    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return "number" if numeric else "category"
