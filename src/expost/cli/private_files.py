"""Files of exact losses, marked PRIVATE in name and content."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from expost._common.files import atomic_write_bytes, check_output
from expost._common.typing import FloatArray
from expost.data.file_schema import PARQUET
from expost.exceptions import FileError

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
    if path.suffix.lower() not in (".csv", *PARQUET):
        raise FileError(f"a file of exact losses must be .csv or .parquet; got {path.name!r}.")
    check_output(path, inputs=inputs, overwrite=overwrite)


def write_losses(path: Path, losses: Iterable[FloatArray], *, overwrite: bool = False) -> None:
    """Write a file of exact losses atomically, marked PRIVATE, with rows in the table's order.

    The losses come part by part and are written as they come.

    Privacy
    -------
    The file is private.
    """
    import pyarrow
    from pyarrow import csv as arrow_csv, parquet

    schema = pyarrow.schema([("row", pyarrow.int64()), (COLUMN, pyarrow.float64())])
    writer: Any
    with atomic_write_bytes(path, private=True, overwrite=overwrite) as file:
        if path.suffix.lower() in PARQUET:
            writer = parquet.ParquetWriter(file, schema.with_metadata({"PRIVATE": MARK}))
        else:
            file.write(f"# {MARK}\nrow,{COLUMN}\n".encode())
            writer = arrow_csv.CSVWriter(
                file, schema, write_options=arrow_csv.WriteOptions(include_header=False)
            )
        with writer:
            start = 0
            for part in losses:
                stop = start + len(part)
                writer.write_table(pyarrow.table([np.arange(start, stop), part], schema=schema))
                start = stop
