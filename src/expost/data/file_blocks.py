"""CSV and Parquet files in blocks of whole records, in memory that does not grow with what they unpack to.

Arrow's own reader of streams reads ahead in a thread that nobody can wait for. If the stream is Python's, or
one of its codecs decodes it, that thread may still run when the file is closed or the interpreter ends. Then
the process aborts or hangs. So the file is read and decoded here, and Arrow gets memory of its own.
"""

import codecs
import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost._common.machine import Shared
from expost.data.dialect import PLAIN, Dialect
from expost.data.lazy import Run
from expost.exceptions import FileError

if TYPE_CHECKING:
    import pyarrow


@Shared
@contextmanager
def returning_memory() -> Iterator[None]:
    """Let Arrow return memory to the system at once while files are read.

    Its own pool keeps for later as much again as a reader of many columns uses, and reserves far more.
    """
    import pyarrow

    usual = pyarrow.default_memory_pool()
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    try:
        yield
    finally:
        pyarrow.set_memory_pool(usual)


def release_memory() -> None:
    """Return memory to the system that glibc keeps for threads that read; other C libraries do nothing."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


# Bytes of a file that are read at a time, and that a record may have; characters that are kept of a bad one.
CSV_BYTES, LONGEST_RECORD, _LONGEST_TEXT = 1 << 19, 1 << 24, 200


def read_csv(path: Path, dialect: Dialect, columns: list[str], *, lenient: bool = False) -> Iterator[Run]:
    """The columns of a CSV file, as texts; see :meth:`~expost.data.lazy.Piece.runs`.

    FileError quotes nothing of the file. Any other error is Arrow's or a codec's, and may quote cells.
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
            if text.quote is not None:
                raise unclosed_quote(path, text.quote)
            raise FileError(
                f"{path.name!r} is not valid CSV: every line must have as many cells as the line of names. "
                "Quote cells that contain the delimiter."
            )
        arrays = [column.chunk(0) for column in found.columns]  # one block, one chunk
        yield Run(pyarrow.record_batch(arrays, schema=found.schema), left_out, text.quote)
        left_out = []


def unclosed_quote(path: Path, line: int) -> FileError:
    """The error for a quote that is not closed: the number of its line and nothing of what is there."""
    return FileError(
        f"{path.name!r} is not valid CSV: in line {line} a quote is opened that is not closed. Close it, or "
        "write it twice within quotes if it belongs to the text."
    )


@cache
def _syntax(delimiter: str) -> tuple[re.Pattern[bytes], ...]:
    """Patterns of a delimiter, as Arrow reads them: a quote counts at the start of a cell.

    They are for a record; for some, where what follows a closing quote in its cell is a group; and for some
    cells whose quotes, if any, are around the whole cell. Some, and again some: a repeat of groups remembers
    each of them, and one that does not, ``*+``, is wrong before Python 3.11.5.
    """
    mark = re.escape(delimiter)
    quoted, plain = r'"[^"]*+(?:""[^"]*+)*"(?!")', rf'[^"\r\n{mark}][^\r\n{mark}]*+'
    cell = rf"(?:{quoted}([^\r\n{mark}]++)?|{plain})?"
    record = rf"(?:{cell}{mark})*{cell}[\r\n]++"
    cells = rf"(?:(?:{quoted}(?=[\r\n{mark}])|{plain})?(?:{mark}|[\r\n]++))"
    return tuple(re.compile(one.encode()) for one in (record, f"(?:{record}){{1,64}}", f"{cells}{{1,256}}"))


class _Text:
    """The text of a file as UTF-8, and how many lines of it were read."""

    def __init__(self, path: Path, dialect: Dialect, *, lenient: bool) -> None:
        self._path, (self._record, self._records, self._cells) = path, _syntax(dialect.delimiter)
        self._decoder: codecs.IncrementalDecoder | None = None
        if lenient or dialect.codec != PLAIN.codec:  # otherwise Arrow looks at the columns that are used
            decoder = codecs.getincrementaldecoder(dialect.codec)
            self._decoder = decoder("replace" if lenient else "strict")
        self._lines = 0
        self.quote: int | None = None
        """The first line with a quote that is closed in the middle of a cell, if there is one so far."""

    def blocks(self) -> Iterator[bytes]:
        """Whole records; the first block is the line of names. FileError for one without an end."""
        rest, named, raw = b"", False, b"to be read"
        with open(self._path, "rb") as file:
            if self._decoder is None and file.read(3) != codecs.BOM_UTF8:
                file.seek(0)
            while raw:
                # As much again as there is, so that a long record is looked through only a few times.
                raw = file.read(max(CSV_BYTES, len(rest)))
                text = self._followed(rest, raw)
                end = self._end_of_records(text)
                start = 0
                if end and not named:
                    start, named = self._record.match(text).end(), True  # type: ignore[union-attr]
                    yield text[:start]
                if start < end:
                    yield text[start:end]
                self._lines += _line_ends(text[:end])
                rest = text[end:]
                if len(rest) > (LONGEST_RECORD if raw else 0):
                    raise self._endless_error(rest)

    def _followed(self, rest: bytes, raw: bytes) -> bytes:
        """What was left, and what was read after it; the last line may lack its end."""
        text = rest + (raw if self._decoder is None else self._decoder.decode(raw, not raw).encode())
        return text + b"\n" if text and not raw else text

    def _endless_error(self, rest: bytes) -> FileError:
        """Build the error for a record without an end; the caller raises it."""
        if b'"' in rest:
            return unclosed_quote(self._path, self.quote or self._line(rest))
        return FileError(
            f"{self._path.name!r} is not valid CSV: it has a line of more than {LONGEST_RECORD >> 20}"
            " MiB. Save it again as CSV or Parquet, with a line for each record."
        )

    def _end_of_records(self, text: bytes) -> int:
        """Where the last whole record ends."""
        if b'"' not in text:
            return max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        end = 0
        while found := self._records.match(text, end):
            if self.quote is None and any(found.groups()):
                self.quote = self._line(text)
            end = found.end()
        return end

    def _line(self, text: bytes) -> int:
        """The line of the first cell whose quotes are not around all of it."""
        end = 0
        while whole := self._cells.match(text, end):
            end = whole.end()
        return self._lines + _line_ends(text[:end]) + 1


def _line_ends(text: bytes) -> int:
    return text.count(b"\n") or text.count(b"\r")


# Bytes that are read at a time of a column and of all together, and of texts that are spelt out at a time.
_COLUMN_BYTES, _ALL_BYTES, _TEXT_BYTES = 1 << 18, 1 << 26, 1 << 26
# Row groups may unpack to so many times what the file takes, or to as many bytes as texts may.
_RATIO = 256
# How Arrow says that texts have an encoding in which it cannot hold them once.
_NOT_SHARED = "DictAccumulator"


def read_parquet(path: Path, row_groups: tuple[int, ...], columns: list[str], length: int) -> Iterator[Run]:
    """The columns of some row groups; FileError if they are packed more densely than tables are.

    Arrow's own errors may quote cells.
    """
    from pyarrow.parquet import read_metadata

    metadata = read_metadata(path)
    # Nothing is asked about single columns: Arrow ends the process where a file is wrong about one.
    unpacked = max((metadata.row_group(group).total_byte_size for group in row_groups), default=0)
    most = max(_TEXT_BYTES, _RATIO * path.stat().st_size)
    if unpacked > most:
        advice = "Save it again as Parquet with smaller pages, or as CSV."
        raise FileError(f"{path.name!r} unpacks to more than {_RATIO} times its size. {advice}")
    done = 0
    try:
        # A text that is repeated is stored once, and is then held once: a kilobyte can stand for gigabytes.
        for batch in _batches(path, metadata, row_groups, columns, length, shared=True):
            yield from map(Run, _spelt_out(batch))
            done += len(batch)
        return
    except (OSError, NotImplementedError) as error:
        if _NOT_SHARED not in str(error):
            raise
    # Each text starts as the one before it, and may be as long as all that is stored.
    few = min(length, max(1, most // max(unpacked, 1)))
    for batch in _batches(path, metadata, row_groups, columns, few, shared=False):
        known = min(done, len(batch))
        done -= known
        yield from map(Run, _spelt_out(batch.slice(known)))


def _batches(
    path: Path, metadata: Any, row_groups: tuple[int, ...], columns: list[str], length: int, *, shared: bool
) -> "Iterator[pyarrow.RecordBatch]":
    from pyarrow import types
    from pyarrow.parquet import ParquetFile

    kinds = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    schema = metadata.schema.to_arrow_schema() if shared else ()
    texts = [field.name for field in schema if any(is_kind(field.type) for is_kind in kinds)]
    # Columns are decoded a few pages at a time: a row group may be larger than memory.
    buffer = max(1 << 12, min(_COLUMN_BYTES, _ALL_BYTES // max(len(columns), 1)))
    with ParquetFile(
        path, metadata=metadata, buffer_size=buffer, pre_buffer=False, read_dictionary=texts
    ) as file:
        yield from file.iter_batches(
            batch_size=length, row_groups=list(row_groups), columns=columns, use_threads=False
        )


def _spelt_out(batch: "pyarrow.RecordBatch") -> "Iterator[pyarrow.RecordBatch]":
    """Rows with every text in its own cell, a few at a time where texts are long."""
    import pyarrow
    from pyarrow import compute, types

    longest = 0
    for column in batch.columns:
        shared = types.is_dictionary(column.type)
        texts = column.dictionary if shared else column
        if not types.is_primitive(texts.type):
            texts.validate(full=True)  # Arrow reads bytes that are no text too
            longest += (compute.max(compute.binary_length(texts)).as_py() or 0) if shared else 0
    rows = max(1, _TEXT_BYTES // max(longest, 1))
    for start in range(0, len(batch), rows):
        columns = [
            one.dictionary_decode() if types.is_dictionary(one.type) else one
            for one in batch.slice(start, rows).columns
        ]
        yield pyarrow.RecordBatch.from_arrays(columns, names=batch.schema.names)
