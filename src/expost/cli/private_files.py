"""Files of figures that are written as they come; exact losses are marked PRIVATE in name and content."""

from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expost._common.files import atomic_write_bytes, check_output
from expost._common.typing import FloatArray
from expost.data.file_schema import PARQUET
from expost.exceptions import FileError

if TYPE_CHECKING:
    import pyarrow

MARK = "PRIVATE: exact privacy losses, computed from everyone's records. Never publish."
COLUMN = "ex_post_loss"


def check_private(path: Path, *, inputs: Iterable[Path] = (), overwrite: bool = False) -> None:
    """Check the name and the place of a private file, before anything is computed for it.

    "private" must be in the file's name or in that of its folder, so that nobody publishes it by mistake.
    """
    if "private" not in path.name.lower() and "private" not in path.parent.name.lower():
        raise FileError(
            f"a file of exact losses must have 'private' in its name or its folder's; got {path.name!r}. "
            f"Call it {'private-' + path.name!r}."
        )
    check_table_name(path, "exact losses")
    check_output(path, inputs=inputs, overwrite=overwrite)


def write_losses(path: Path, losses: Iterable[FloatArray], *, overwrite: bool = False) -> None:
    """Write a file of exact losses atomically, marked PRIVATE, with rows in the table's order.

    The losses come part by part and are written as they come.

    Privacy
    -------
    The file is private.
    """
    columns = ({COLUMN: part} for part in losses)
    write_columns(path, columns, mark=MARK, overwrite=overwrite)


def check_table_name(path: Path, what: str) -> None:
    """Refuse a file of figures that is neither CSV nor Parquet by its name."""
    if path.suffix.lower() not in (".csv", *PARQUET):
        raise FileError(f"a file of {what} must be .csv or .parquet; got {path.name!r}.")


def write_columns(
    path: Path,
    parts: Iterable[Mapping[str, FloatArray]],
    *,
    mark: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write columns of numbers as they come, part by part, after a column ``row`` that counts from 0.

    The file appears whole or not at all, and only its owner may read it.

    Parameters
    ----------
    path
        A ``.csv`` or ``.parquet`` file.
    parts
        Runs of rows, as columns of one length and always the same names; there is one run at least.
    mark
        A line on top of the file, or in its metadata.
    """
    import pyarrow
    from pyarrow import csv as arrow_csv, parquet

    runs = iter(parts)
    run = next(runs)
    names = list(run)
    fields = [("row", pyarrow.int64()), *((name, pyarrow.float64()) for name in names)]
    schema = pyarrow.schema(fields)
    writer: Any
    with atomic_write_bytes(path, private=True, overwrite=overwrite) as file:
        if path.suffix.lower() in PARQUET:
            marked = schema if mark is None else schema.with_metadata({"PRIVATE": mark})
            writer = parquet.ParquetWriter(file, marked)
        else:
            head = "" if mark is None else f"# {mark}\n"
            file.write((head + ",".join(["row", *names]) + "\n").encode())
            options = arrow_csv.WriteOptions(include_header=False)
            writer = arrow_csv.CSVWriter(file, schema, write_options=options)
        with writer:
            start = 0
            for part in chain([run], runs):
                columns = [part[name] for name in names]
                stop = start + len(columns[0])
                arrays = [_as_arrow(np.arange(start, stop)), *map(_as_arrow, columns)]
                writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
                start = stop


def _as_arrow(column: NDArray[Any]) -> "pyarrow.Array":
    """A column of Arrow's in the same memory; its own way would import pandas first."""
    import pyarrow

    kind = pyarrow.int64() if column.dtype.kind == "i" else pyarrow.float64()
    buffer = pyarrow.py_buffer(np.ascontiguousarray(column))
    return pyarrow.Array.from_buffers(kind, len(column), [None, buffer])
