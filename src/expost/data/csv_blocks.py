"""CSV files, read in blocks of whole records that Arrow parses one at a time.

Arrow's own reader of streams reads ahead in a thread that nobody can wait for. If the stream is Python's, or
one of its codecs decodes it, that thread may still run when the file is closed or the interpreter ends. Then
the process aborts or hangs. So the file is read and decoded here, and Arrow gets memory of its own.
"""

import codecs
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from expost.data.dialect import PLAIN, Dialect
from expost.data.file_schema import LONGEST_RECORD, unclosed_quote
from expost.exceptions import FileError

if TYPE_CHECKING:
    import pyarrow

CSV_BYTES = 1 << 19
"""Bytes of a file that are read at a time."""
_LONGEST_TEXT = 200


class Run(NamedTuple):
    """Records that follow each other in a file; private."""

    batch: "pyarrow.RecordBatch"
    left_out: list[tuple[int, str]]
    """Those with more or fewer cells than there are names: their places in it, from 1, and their texts."""
    quote: int | None = None
    """The first line up to here with a quote that is closed in the middle of a cell, if there is one."""


def read_csv(path: Path, dialect: Dialect, columns: list[str], *, lenient: bool = False) -> Iterator[Run]:
    """The columns of a CSV file, as texts.

    With ``lenient``, records with more or fewer cells than there are names are left out and not refused, and
    bytes that are no text in the declared encoding are replaced.

    Raises
    ------
    FileError
        If a quote is not closed, a record has the wrong number of cells, or a line is too long. The error
        quotes nothing of the file.
    ValueError
        Arrow's or a codec's, if something else is not valid. It may quote cells.
    """
    import pyarrow
    from pyarrow import csv as arrow_csv

    left_out: list[tuple[int, str]] = []

    def leave_out(row: Any) -> str:
        left_out.append((row.number, row.text[:_LONGEST_TEXT]))
        return "skip"

    def parsed(block: bytes, names: list[str] | None, included: list[str] | None) -> "pyarrow.Table":
        memory = pyarrow.allocate_buffer(len(block))  # Arrow's threads may drop it after the call
        memoryview(memory).cast("B")[:] = block
        return arrow_csv.read_csv(
            pyarrow.BufferReader(memory),
            read_options=arrow_csv.ReadOptions(
                use_threads=False, block_size=len(block) + 1, column_names=names
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=dialect.delimiter,
                newlines_in_values=True,
                invalid_row_handler=leave_out if lenient else None,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pyarrow.string()),
                strings_can_be_null=False,
                include_columns=included,
            ),
        )

    text = _Text(path, dialect, lenient=lenient)
    names: list[str] | None = None
    for block in text.blocks():
        if names is None:
            names = parsed(block, None, None).column_names
            continue
        found = None
        try:
            found = parsed(block, names, columns)
        except ValueError as error:
            if " columns, got " not in str(error):
                raise
        if found is None:  # raised here and not in the handler: Arrow's error quotes the line
            raise _uneven(path) if text.quote is None else unclosed_quote(path, text.quote)
        arrays = [column.chunk(0) for column in found.columns]  # one block, one chunk
        yield Run(pyarrow.record_batch(arrays, schema=found.schema), left_out, text.quote)
        left_out = []


def _uneven(path: Path) -> FileError:
    """The error for a record with the wrong number of cells; the caller raises it."""
    return FileError(
        f"{path.name!r} is not valid CSV: every line must have as many cells as the line of names. Quote "
        "cells that contain the delimiter."
    )


class _Syntax(NamedTuple):
    """Patterns of a delimiter, as Arrow reads them: a quote counts at the start of a cell."""

    record: re.Pattern[bytes]
    records: re.Pattern[bytes]
    """As many as there are. What follows a closing quote in its cell is a group."""
    cells: re.Pattern[bytes]
    """As many as there are whose quotes, if any, are around the whole cell."""


@cache
def _syntax(delimiter: str) -> _Syntax:
    mark = re.escape(delimiter)
    quoted, plain = r'"(?:[^"]++|"")*+"', rf'[^"\r\n{mark}][^\r\n{mark}]*+'
    cell = rf"(?:{quoted}([^\r\n{mark}]++)?+|{plain})?+"
    record = rf"(?:{cell}{mark})*+{cell}[\r\n]++"
    cells = rf"(?:(?:{quoted}(?=[\r\n{mark}])|{plain})?+(?:{mark}|[\r\n]++))*+"
    return _Syntax(*(re.compile(one.encode()) for one in (record, f"(?:{record})*+", cells)))


class _Text:
    """The text of a file as UTF-8, and how many lines of it were read."""

    def __init__(self, path: Path, dialect: Dialect, *, lenient: bool) -> None:
        self._path, self._syntax = path, _syntax(dialect.delimiter)
        self._decoder: codecs.IncrementalDecoder | None = None
        if lenient or dialect.codec != PLAIN.codec:  # otherwise Arrow looks at the columns that are used
            decoder = codecs.getincrementaldecoder(dialect.codec)
            self._decoder = decoder("replace" if lenient else "strict")
        self._lines = 0
        self.quote: int | None = None
        """The first line with a quote that is closed in the middle of a cell, if there is one so far."""

    def blocks(self) -> Iterator[bytes]:
        """Whole records; the first block is the line of names.

        Raises
        ------
        FileError
            If the last record has no end, or one is too long.
        """
        rest, named, raw = b"", False, b"to be read"
        with open(self._path, "rb") as file:
            if self._decoder is None and file.read(3) != codecs.BOM_UTF8:
                file.seek(0)
            while raw:
                # As much again as there is, so that a long record is looked through only a few times.
                raw = file.read(max(CSV_BYTES, len(rest)))
                text = rest + (raw if self._decoder is None else self._decoder.decode(raw, not raw).encode())
                if not raw and text:
                    text += b"\n"  # the last line may lack its end
                end = self._end_of_records(text)
                start = 0
                if end and not named:
                    start, named = self._syntax.record.match(text).end(), True  # type: ignore[union-attr]
                    yield text[:start]
                if start < end:
                    yield text[start:end]
                self._lines += _line_ends(text[:end])
                rest = text[end:]
                if rest and (not raw or len(rest) > LONGEST_RECORD):
                    raise self._unfinished(rest)

    def _end_of_records(self, text: bytes) -> int:
        """Where the last whole record ends."""
        if b'"' not in text:
            return max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        found = self._syntax.records.match(text)
        assert found is not None
        if self.quote is None and any(found.groups()):
            self.quote = self._line(text)
        return found.end()

    def _unfinished(self, rest: bytes) -> FileError:
        """The error for a record that has no end; the caller raises it."""
        if b'"' in rest:
            return unclosed_quote(self._path, self.quote or self._line(rest))
        return FileError(
            f"{self._path.name!r} is not valid CSV: it has a line of more than {LONGEST_RECORD >> 20} MiB. "
            "Save it again as CSV or Parquet, with a line for each record."
        )

    def _line(self, text: bytes) -> int:
        """The line of the first cell whose quotes are not around all of it."""
        whole = self._syntax.cells.match(text)
        assert whole is not None
        return self._lines + _line_ends(text[: whole.end()]) + 1


def _line_ends(text: bytes) -> int:
    return text.count(b"\n") or text.count(b"\r")
