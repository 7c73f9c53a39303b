"""Files of figures that are written as they come; private ones are marked PRIVATE in name and content."""

import csv
import io
import re
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv, parquet

from expost._common.files import atomic_write_bytes, check_output
from expost._common.typing import FloatArray
from expost.cli.plan import TABLES
from expost.cli.tables import Columns, OutputError, with_identifiers
from expost.data.check import MARK, Finding
from expost.data.dialect import DELIMITERS, PLAIN, Dialect
from expost.data.files import PARQUET
from expost.data.lazy import LazyTable
from expost.data.people import People
from expost.data.values import attempted
from expost.exceptions import FileError

# What starts a formula, also in wide and small letters, and after blanks, quotes and what cannot be seen. The
# sign of a number starts none.
_UNSEEN = r"\s\"\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff"
_FORMULA = re.compile(rf"[{_UNSEEN}]*(?:[=@＝＠﹦﹫]|[+\-＋－﹢﹣](?![\d.,]+(?:[eE][+-]?\d+)?\s*\Z))")
# Where a spreadsheet may start another cell, whatever the quotes say.
_BORDER = re.compile(r"([;\t\r\n])")


def inert(text: str) -> str:
    """A cell that stays a text: an apostrophe stands before whatever a spreadsheet would compute.

    For every text in every CSV file: identifiers and other cells, names of columns and of files. Whoever can
    write a cell of a table could otherwise have everyone's losses sent to her when the file is opened.
    """
    if _BORDER.search(text) is None:
        return f"'{text}" if _FORMULA.match(text) else text
    safe = "".join(part if _BORDER.match(part) else inert(part) for part in _BORDER.split(text))
    return f"'{safe}" if _BORDER.match(safe) and not safe.startswith(";") else safe


def inert_row(cells: Iterable[object]) -> list[object]:
    """The cells of a row; numbers stay as they are."""
    return [inert(cell) if isinstance(cell, str) else cell for cell in cells]


LOSSES_MARK = "PRIVATE: exact privacy losses, computed from everyone's records. Never publish."
COLUMN = "ex_post_loss"


def check_figures(
    path: Path | None,
    what: str,
    *,
    private: bool = False,
    kinds: Sequence[str] = TABLES,
    inputs: Iterable[Path] = (),
    overwrite: bool = False,
) -> None:
    """Check the name and the place of a file of figures, where there is one, before anything is computed.

    "private" must be in the name of a private file or of its folder, so that nobody publishes it by mistake.
    """
    if path is None:
        return
    if private and "private" not in path.name.lower() and "private" not in path.parent.name.lower():
        raise OutputError(
            f"a file of {what} must have 'private' in its name or its folder's; got {path.name!r}. "
            f"Call it {'private-' + path.name!r}."
        )
    if path.suffix.lower() not in kinds:
        named = " or ".join(kind for kind in kinds if kind != ".pq")
        raise OutputError(f"a file of {what} must be {named}; got {path.name!r}.")
    try:
        check_output(path, inputs=inputs, overwrite=overwrite)
    except FileError as error:
        raise OutputError(str(error)) from None


def check_public(path: Path, *, inputs: Iterable[Path] = (), overwrite: bool = False) -> None:
    """Check the name and the place of a file that is made public, before anything is computed for it.

    A name with "private" in it is that of a private file, and a file that is marked PRIVATE is never
    replaced by a public one.
    """
    check_output(path, inputs=inputs, overwrite=overwrite)
    if "private" in path.name.lower() or _is_marked(path):
        raise FileError(f"{path} is the name of a private file, and what goes there is public. Name another.")


def _is_marked(path: Path) -> bool:
    """Whether a file exists and is marked PRIVATE."""
    if path.suffix.lower() in PARQUET and path.is_file():
        named = attempted(lambda: str(parquet.read_schema(path).names[0]).startswith(MARK))
        if named is not None:
            return named
    return _starts_with(path, MARK, "# PRIVA")


def _starts_with(path: Path, *marks: str) -> bool:
    """Whether a file begins so, but for a byte order mark; to open a pipe would wait for who writes to it."""

    def begins() -> bool:
        with open(path, "rb") as file:
            start = file.read(len(BOM_UTF8) + max(map(len, marks))).removeprefix(BOM_UTF8)
            return start.startswith(tuple(mark.encode() for mark in marks))

    return path.is_file() and bool(attempted(begins))


def write_losses(
    path: Path,
    losses: Iterable[FloatArray],
    table: LazyTable | None = None,
    identifier: str | None = None,
    people: People | None = None,
    *,
    overwrite: bool,
    dialect: Dialect = PLAIN,
) -> None:
    """Write exact losses as they come, atomically, marked PRIVATE and in the table's order.

    Those of ``people`` have a line for each of them, with her id from the column ``identifier``.
    """
    columns = with_identifiers(({COLUMN: part} for part in losses), table, identifier, people)
    options: Any = {"private": True, "overwrite": overwrite, "dialect": dialect}
    write_columns(path, columns, counted=unit_of(people), **options)


def unit_of(people: People | None) -> str:
    """What a line of figures is about."""
    return "record" if people is None else "person"


def listed_ids(people: People | None, person: str | None, output: Path | None) -> list[Any] | None:
    """The ids of the column of people, where no file has them."""
    return None if people is None or person is None or output is not None else people.ids.tolist()


def write_problems(
    path: Path | None,
    findings: Iterable[Finding],
    *,
    identifier: str | None,
    overwrite: bool,
    dialect: Dialect = PLAIN,
) -> None:
    """Write a table's problems as they are found, atomically, marked PRIVATE; without a file, find them."""
    if path is None:
        deque(findings, maxlen=0)
        return
    with atomic_write_bytes(path, private=True, overwrite=overwrite) as raw, _spelling(raw, dialect) as file:
        writer = csv.writer(file, delimiter=dialect.delimiter)
        ids = [] if identifier is None else [identifier]
        writer.writerow(inert_row([f"{MARK}file", "record", *ids, "column", "problem", "value"]))
        for one in findings:
            for file_name, record, known, *found, value in one.rows():
                writer.writerow(inert_row([file_name, record, *([known] if ids else []), *found, value]))


def is_list_of_problems(path: Path | None) -> bool:
    """Whether a file is one that :func:`write_problems` wrote, which a new one may replace."""
    return path is not None and any(_starts_with(path, f"{MARK}file{mark}record") for mark in DELIMITERS)


def is_publication(path: Path) -> bool:
    """Whether a file begins as :meth:`Publication.save` writes it."""
    return _starts_with(path, '{\n  "format": "expost-publication/')


@contextmanager
def _spelling(file: IO[bytes], dialect: Dialect) -> Iterator[io.TextIOWrapper]:
    """A file for texts as a dialect writes them; what its encoding does not have is spelt out."""
    text = io.TextIOWrapper(file, dialect.encoding, errors="backslashreplace", newline="")
    yield text
    text.detach()  # which flushes it, and leaves the file open


class _SpeltWriter:
    """Writes tables of Arrow's as CSV in a dialect, with the methods of its own writers."""

    def __init__(self, file: IO[bytes], dialect: Dialect) -> None:
        self._mark = dialect.decimal
        self._files = ExitStack()
        text = self._files.enter_context(_spelling(file, dialect))
        self.rows = csv.writer(text, delimiter=dialect.delimiter)

    def write_table(self, table: pyarrow.Table) -> None:
        """Write all rows."""
        columns = (map(self._spelt, column.to_pylist()) for column in table.columns)
        self.rows.writerows(zip(*columns, strict=True))

    def _spelt(self, cell: object) -> object:
        return repr(cell).replace(".", self._mark) if isinstance(cell, float) else cell

    def __enter__(self) -> "_SpeltWriter":
        return self

    def __exit__(self, *problem: object) -> None:
        self._files.close()


def write_columns(
    path: Path | None,
    parts: Iterable[Columns],
    *,
    counted: str = "record",
    private: bool = False,
    overwrite: bool = False,
    dialect: Dialect = PLAIN,
) -> None:
    """Write columns part by part as they come, after one that counts records; without a file, drop them.

    There is one part at least, and all have the same names. The file appears whole or not at all, and only
    its owner may read it. No text of a CSV file is a formula; Parquet has texts as they are. CSV is written
    as ``dialect`` says, so that whoever wrote the table can open it. A private file is marked in the name of
    its first column.
    """
    runs = iter(parts)
    if path is None:
        deque(runs, maxlen=0)
        return
    run = next(runs)
    first = f"{MARK}{counted}" if private else counted
    fields = [(first, pyarrow.int64()), *((name, _as_arrow(column).type) for name, column in run.items())]
    schema = pyarrow.schema(fields)
    writer: Any
    text: Callable[[str], str] = str
    with atomic_write_bytes(path, private=True, overwrite=overwrite) as file:
        if path.suffix.lower() in PARQUET:
            marked = schema.with_metadata({"PRIVATE": "Never publish."}) if private else schema
            writer = parquet.ParquetWriter(file, marked)
        elif dialect.changed(missing_words=(), dates=PLAIN.dates) != PLAIN:
            text, writer = inert, _SpeltWriter(file, dialect)
            writer.rows.writerow(inert_row(schema.names))
        else:
            text, names = inert, io.StringIO()
            csv.writer(names, lineterminator="\n").writerow(inert_row(schema.names))
            file.write(names.getvalue().encode())
            options = arrow_csv.WriteOptions(include_header=False)
            writer = arrow_csv.CSVWriter(file, schema, write_options=options)
        with writer:
            start = 0
            for part in chain([run], runs):
                columns = [_as_arrow(part[name], text) for name in run]
                stop = start + len(columns[0])
                arrays = [_as_arrow(np.arange(start, stop) + 1), *columns]
                writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
                start = stop


def _as_arrow(column: NDArray[Any] | Sequence[str], text: Callable[[str], str] = str) -> pyarrow.Array:
    """A column of Arrow's; numbers stay in the same memory: its own way would import pandas first."""
    if not isinstance(column, np.ndarray):
        return pyarrow.array(list(map(text, column)), pyarrow.string())
    kind = pyarrow.int64() if column.dtype.kind == "i" else pyarrow.float64()
    buffer = pyarrow.py_buffer(np.ascontiguousarray(column))
    return pyarrow.Array.from_buffers(kind, len(column), [None, buffer])
