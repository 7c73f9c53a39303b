"""The names and types of the columns of a file, of which no value is read."""

import csv
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from expost.data.dialect import DELIMITERS, PLAIN, Dialect
from expost.data.values import untold
from expost.exceptions import FileError

PARQUET = (".parquet", ".pq")
# How delimiters are written in TOML and called in sentences.
_QUOTED = {"\t": '"\\t"'}
_SPOKEN = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
LONGEST_RECORD = 1 << 24
"""The most bytes that a record of a CSV file may have."""
EMPTY = "empty"
"""The kind of a column that has no value in a file, and so no type."""
UNREADABLE = "unreadable"
"""The kind of a column whose cells are lists or other parts, which are never read."""


def read_kinds(path: Path, dialect: Dialect = PLAIN) -> dict[str, str | None]:
    """The columns of a file and their kinds, from the line of names or the schema; public.

    A CSV file has no schema, so its kinds are None. No value is read.
    """
    kinds: dict[str, str | None] | None = None
    advice = ""
    with open(path, "rb"):
        pass
    names: list[str] = []
    if is_parquet(path):
        with untold():
            from pyarrow import parquet

            schema = parquet.read_schema(path)
            names = schema.names
            kinds = {field.name: kind_of(field.type) for field in schema}
    else:
        with suppress(UnicodeError, csv.Error):
            names = _names_in_csv(path, dialect)
            advice = delimiter_advice(names, dialect)  # both at once, where the encoding is another one too
            "".join(names).encode()
            kinds = dict.fromkeys(names)
    if kinds is None:
        raise invalid_file(path, dialect, advice)
    if not names:
        raise FileError(f"the first line of {path.name!r} must name the columns; it is empty. Add the names.")
    _check_names(path, names)
    return kinds


def delimiter_advice(names: Iterable[str], dialect: Dialect) -> str:
    """What to declare where the line of names looks like one of another dialect; else nothing. Public."""
    found = list(names)
    for delimiter in (",", *DELIMITERS):
        if len(found) == 1 and delimiter != dialect.delimiter and delimiter in found[0]:
            written = _QUOTED.get(delimiter, f'"{delimiter}"')
            return f"Its line of names has one name, with {_SPOKEN[delimiter]} in it: " + line_to_add(
                f"delimiter = {written}"
            )
    return ""


def line_to_add(line: str) -> str:
    """Where to declare what a file is written with. Public."""
    key, value = line.split(" = ", 1)
    option = f"--{key.replace('_', '-')} {value.strip('[]')}"
    return f"use  {option}, or add the line  {line}  under [table] in the domain file"


def is_parquet(path: Path) -> bool:
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


def _check_names(path: Path, names: list[str]) -> None:
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None or not all(names):
        got = "an empty one" if twice is None else f"{twice!r} twice"
        raise FileError(
            f"the columns of {path.name!r} must have different names, none of them empty; got {got}."
        )


def unclosed_quote(path: Path, line: int) -> FileError:
    """The error for a CSV file with a quote that is not closed; the caller raises it.

    Privacy
    -------
    It tells a line's number, by which the curator finds it, and nothing of what is there.
    """
    return FileError(
        f"{path.name!r} is not valid CSV: in line {line} a quote is opened that is not closed. Close it, or "
        "write it twice within quotes if it belongs to the text."
    )


def invalid_file(path: Path, dialect: Dialect = PLAIN, advice: str = "") -> FileError:
    """The error for a file that is not what its name says, with advice; the caller raises it."""
    if is_parquet(path):
        return FileError(f"{path.name!r} is not valid Parquet; save it again as Parquet or CSV.")
    utf8 = dialect.codec == PLAIN.codec
    other = 'encoding = "cp1252"' if utf8 else 'encoding = "utf-8"'
    source = "Excel on Windows" if utf8 else "other programs"
    return FileError(
        f"{path.name!r} is not valid CSV in {'UTF-8' if utf8 else dialect.encoding}. If {source} wrote it, "
        f"{line_to_add(other)}; otherwise save it again as CSV or Parquet." + f" {advice}." * bool(advice)
    )


def kind_of(kind: Any) -> str:
    """What a column of a type of Arrow's can be in a domain."""
    from pyarrow import types

    if types.is_null(kind):
        return EMPTY
    if types.is_boolean(kind):
        return "yes_no"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date"
    if types.is_nested(kind) or types.is_fixed_size_binary(kind):
        return UNREADABLE
    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return "number" if numeric else "category"
