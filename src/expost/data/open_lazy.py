"""Find tables that are read piece by piece: in files, and in Dask's frames."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from expost._common.namespaces import Space
from expost.data.dask_frames import DaskTable, beside, is_dask_frame, is_dask_series
from expost.data.domain import Domain
from expost.data.files import TableFiles
from expost.data.lazy import LazyTable
from expost.data.streamed import StreamedTable
from expost.engines.cluster import engine_of
from expost.exceptions import DomainError

if TYPE_CHECKING:
    from distributed import Client


@overload
def scan(
    table: "str | os.PathLike[str]", *, client: "Client | None" = None, device: Any = None
) -> LazyTable: ...
@overload
def scan(table: Any, *, client: "Client | None" = None, device: Any = None) -> LazyTable | StreamedTable: ...
def scan(table: Any, *, client: "Client | None" = None, device: Any = None) -> LazyTable | StreamedTable:
    """Find a table in files or in a Dask frame, without reading any of its rows; or send rows to a device.

    Parameters
    ----------
    table
        A ``.csv`` or ``.parquet`` file; a folder of such files, of one kind; or a pattern such as
        ``"folder/*.parquet"``. Files are taken in the order of their names, and files in a folder whose name
        starts with a dot or an underscore are left out. Or a Dask DataFrame.
    client
        A client of the Dask cluster whose workers do the work. They must be able to open the files by the
        same names. By default this process does the work; for a Dask DataFrame it is the current client,
        where there is one.
    device
        A GPU that does the work: ``"cuda"`` or another device of PyTorch's, or an array of any library that
        lies there. Rows are read here and sent there block by block, in every pass, so that the table may be
        larger than the device. ``table`` is then files, or an array or a frame in memory.

    Returns
    -------
    LazyTable or StreamedTable
        For ``fit``, ``ex_post_losses``, ``predict`` and ``bounds``, which also take the path or the frame
        itself.

    Privacy
    -------
    Public: names of files and of columns, and types. Nothing of a row is in an error.
    """
    if device is not None:
        return _on_device(table, client, Space.named(device))
    if is_dask_frame(table):
        return DaskTable.of(table, engine_of(client, current=True))
    if not isinstance(table, str | os.PathLike):
        raise DomainError(
            "`table` must be the path of files or a Dask DataFrame; with `device`, it may be in memory too."
        )
    return TableFiles.found(os.fspath(table), engine_of(client))


def _on_device(table: Any, client: Any, space: Space) -> LazyTable | StreamedTable:
    if client is not None or is_dask_frame(table):
        raise DomainError(
            "`device` is for rows that this process reads, not for a Dask cluster. Leave out one of them."
        )
    if isinstance(table, str | os.PathLike):
        return replace(TableFiles.found(os.fspath(table)), device=space)
    return StreamedTable.of(table, space)


def as_lazy(X: Any) -> LazyTable | None:
    """The table that ``X`` names or stands for, if it is read piece by piece; None where it is in memory."""
    if isinstance(X, LazyTable):
        return X
    if not (isinstance(X, str | os.PathLike) or is_dask_frame(X)):
        return None
    found = scan(X)
    assert isinstance(found, LazyTable)
    return found


def with_columns(X: Any, y: Any, sample_weight: Any, domain: Domain | None) -> tuple[Any, Any, Any]:
    """A Dask frame with labels and weights that are Dask Series as columns of it, and their names.

    Rows are paired by their places, as everywhere else, and never by an index. Labels get the name that the
    domain has for them. Everything else is returned as it is.
    """
    if not is_dask_frame(X):
        return X, y, sample_weight
    if is_dask_series(y):
        X, y = beside(X, y, "y", "y (expost)" if domain is None else domain.label.name)
    if is_dask_series(sample_weight):
        X, sample_weight = beside(X, sample_weight, "sample_weight", "sample_weight (expost)")
    return X, y, sample_weight
