"""Parquet files, read a few rows at a time, in memory that does not grow with what they unpack to."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost.data.csv_blocks import Run
from expost.exceptions import FileError

if TYPE_CHECKING:
    import pyarrow

# Bytes that are read at a time of a column and of all together, and of texts that are spelt out at a time.
_COLUMN_BYTES, _ALL_BYTES, _TEXT_BYTES = 1 << 18, 1 << 26, 1 << 26
# A column that unpacks to more bytes than this, and to so many times what it takes, is not read.
_UNPACKED, _RATIO = 1 << 26, 256
# An encoding in which a text starts as the one before it, and the rows that are read of it at a time.
_PREFIXES, _FEW_ROWS = "DELTA_BYTE_ARRAY", 256


def read_parquet(path: Path, row_groups: tuple[int, ...], columns: list[str], length: int) -> Iterator[Run]:
    """The columns of some row groups, in batches of at most ``length`` rows.

    A text that is repeated is stored once, and is held once: a kilobyte of file can stand for gigabytes.

    Raises
    ------
    FileError
        If a column is packed so densely that nobody's table is.
    Exception
        Arrow's, if the file is not valid. It may quote cells.
    """
    from pyarrow import types
    from pyarrow.parquet import ParquetFile, read_schema

    texts = [
        field.name
        for field in read_schema(path)
        if any(
            is_text(field.type)
            for is_text in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
        )
    ]
    # Columns are decoded a few pages at a time: a row group may be larger than memory.
    buffer = max(1 << 12, min(_COLUMN_BYTES, _ALL_BYTES // max(len(columns), 1)))
    with ParquetFile(path, buffer_size=buffer, pre_buffer=False, read_dictionary=texts) as file:
        chunks = list(_chunks(file.metadata, row_groups, set(columns)))
        if any(
            one.total_uncompressed_size > max(_UNPACKED, _RATIO * one.total_compressed_size) for one in chunks
        ):
            raise FileError(
                f"{path.name!r} has a column that unpacks to more than {_RATIO} times its size in the file. "
                "Save it again with pages of the usual size, or as CSV."
            )
        if any(_PREFIXES in one.encodings for one in chunks):
            length = min(length, _FEW_ROWS)
        for batch in file.iter_batches(
            batch_size=length, row_groups=list(row_groups), columns=columns, use_threads=False
        ):
            for some in _spelt_out(batch):
                yield Run(some, [])


def _chunks(metadata: Any, row_groups: tuple[int, ...], columns: set[str]) -> Iterator[Any]:
    """The metadata of the columns in each row group."""
    schema = metadata.schema
    places = [place for place in range(len(schema.names)) if schema.column(place).path in columns]
    for group in row_groups:
        of_group = metadata.row_group(group)
        yield from map(of_group.column, places)


def _spelt_out(batch: "pyarrow.RecordBatch") -> "Iterator[pyarrow.RecordBatch]":
    """The same rows with every text in its cell, a few at a time where texts are long."""
    import pyarrow
    from pyarrow import compute, types

    coded = [column for column in batch.columns if types.is_dictionary(column.type)]
    longest = 0
    for column in coded:
        column.dictionary.validate(full=True)  # texts may have bytes that are no text
        if not types.is_primitive(column.dictionary.type):
            longest += compute.max(compute.binary_length(column.dictionary)).as_py() or 0
    rows = max(1, _TEXT_BYTES // max(longest, 1))
    for start in range(0, len(batch), rows):
        some = batch.slice(start, rows)
        yield pyarrow.RecordBatch.from_arrays(
            [one.dictionary_decode() if types.is_dictionary(one.type) else one for one in some.columns],
            names=batch.schema.names,
        )
