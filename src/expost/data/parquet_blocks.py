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
# Row groups may unpack to so many times what the file takes, or to as many bytes as texts may.
_RATIO = 256
# How Arrow says that texts have an encoding in which it cannot hold them once.
_NOT_SHARED = "DictAccumulator"


def read_parquet(path: Path, row_groups: tuple[int, ...], columns: list[str], length: int) -> Iterator[Run]:
    """The columns of some row groups, in batches of at most ``length`` rows.

    Raises
    ------
    FileError
        If the file is packed more densely than tables are.
    Exception
        Arrow's, of any kind, if the file is not valid. It may quote cells.
    """
    from pyarrow.parquet import read_metadata

    metadata = read_metadata(path)
    # Nothing is asked about single columns: Arrow ends the process where a file is wrong about one.
    unpacked = max((metadata.row_group(group).total_byte_size for group in row_groups), default=0)
    most = max(_TEXT_BYTES, _RATIO * path.stat().st_size)
    if unpacked > most:
        raise FileError(
            f"{path.name!r} unpacks to more than {_RATIO} times its size. Save it again as Parquet with "
            "smaller pages, or as CSV."
        )
    done = 0
    try:
        # A text that is repeated is stored once, and is then held once: a kilobyte can stand for gigabytes.
        for batch in _batches(path, metadata, row_groups, columns, length, shared=True):
            for some in _spelt_out(batch):
                yield Run(some, [])
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
        for some in _spelt_out(batch.slice(known)):
            yield Run(some, [])


def _batches(
    path: Path, metadata: Any, row_groups: tuple[int, ...], columns: list[str], length: int, *, shared: bool
) -> "Iterator[pyarrow.RecordBatch]":
    from pyarrow import types
    from pyarrow.parquet import ParquetFile

    kinds = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    schema = metadata.schema.to_arrow_schema()
    texts = [field.name for field in schema if any(is_kind(field.type) for is_kind in kinds)]
    # Columns are decoded a few pages at a time: a row group may be larger than memory.
    buffer = max(1 << 12, min(_COLUMN_BYTES, _ALL_BYTES // max(len(columns), 1)))
    with ParquetFile(
        path,
        metadata=metadata,
        buffer_size=buffer,
        pre_buffer=False,
        read_dictionary=texts if shared else [],
    ) as file:
        yield from file.iter_batches(
            batch_size=length, row_groups=list(row_groups), columns=columns, use_threads=False
        )


def _spelt_out(batch: "pyarrow.RecordBatch") -> "Iterator[pyarrow.RecordBatch]":
    """The same rows with every text in its own cell, a few at a time where texts are long."""
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
