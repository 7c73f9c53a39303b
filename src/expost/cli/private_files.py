"""Files of exact losses, marked PRIVATE in name and content."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from expost._common.files import atomic_write, atomic_write_bytes, check_output
from expost.data.files import PARQUET, pyarrow_parquet
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
    if path.suffix.lower() in PARQUET:
        pyarrow_parquet()
    check_output(path, inputs=inputs, overwrite=overwrite)


def write_losses(path: Path, losses: Sequence[float], *, overwrite: bool = False) -> None:
    """Write a file of exact losses atomically, marked PRIVATE, with rows in the table's order.

    Privacy
    -------
    The file is private.
    """
    if path.suffix.lower() in PARQUET:
        _write_parquet(path, losses, overwrite=overwrite)
        return
    with atomic_write(path, private=True, overwrite=overwrite) as file:
        file.write(f"# {MARK}\n")
        writer = csv.writer(file)
        writer.writerow(["row", COLUMN])
        writer.writerows(enumerate(losses))


def _write_parquet(path: Path, losses: Sequence[float], *, overwrite: bool) -> None:
    import pyarrow

    columns = {"row": range(len(losses)), COLUMN: losses}
    table = pyarrow.table({name: pyarrow.array(column) for name, column in columns.items()})
    with atomic_write_bytes(path, private=True, overwrite=overwrite) as file:
        pyarrow_parquet().write_table(table.replace_schema_metadata({"PRIVATE": MARK}), file)
