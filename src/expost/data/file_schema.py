"""The names and types of the columns of a file, of which no value is read."""

import csv
from contextlib import suppress
from pathlib import Path
from typing import Any

from expost.data.values import untold
from expost.exceptions import FileError

PARQUET = (".parquet", ".pq")
EMPTY = "empty"
"""The kind of a column that has no value in a file, and so no type."""


def read_kinds(path: Path) -> dict[str, str | None]:
    """The columns of a file and their kinds, from the line of names or the schema; public.

    A CSV file has no schema, so its kinds are None. No value is read.
    """
    kinds: dict[str, str | None] | None = None
    with open(path, "rb"):
        pass
    if is_parquet(path):
        with untold():
            from pyarrow import parquet

            schema = parquet.read_schema(path)
            kinds = {field.name: _kind(field.type) for field in schema}
        if kinds is not None:
            _check_names(path, schema.names)
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
            _check_names(path, names)
    if kinds is None:
        raise invalid_file(path)
    return kinds


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet by its name, and not CSV; FileError where it is neither."""
    suffix = path.suffix.lower()
    if suffix not in (".csv", *PARQUET):
        raise FileError(
            f"a table must be a .csv or .parquet file; got {path.name!r}. Of a folder with other files, name "
            "those of the table by a pattern, such as 'folder/*.parquet'."
        )
    return suffix in PARQUET


def _check_names(path: Path, names: list[str]) -> None:
    twice = [name for name in names if names.count(name) > 1]
    if twice or not all(names):
        got = f"{twice[0]!r} twice" if twice else "an empty one"
        raise FileError(
            f"the columns of {path.name!r} must have different names, none of them empty; got {got}."
        )


def invalid_file(path: Path) -> FileError:
    """The error for a file that is not what its name says; the caller raises it."""
    kind = "Parquet; save it again as Parquet or CSV."
    if not is_parquet(path):
        kind = "CSV in UTF-8; save it again as CSV or Parquet."
    return FileError(f"{path.name!r} is not valid {kind}")


def _kind(kind: Any) -> str:
    from pyarrow import types

    if types.is_null(kind):
        return EMPTY
    if types.is_boolean(kind):
        return "yes_no"
    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return "number" if numeric else "category"
