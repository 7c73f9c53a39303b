"""Find tables that are read piece by piece: in files, and in Dask's frames."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import narwhals.stable.v1 as nw

from expost._common.namespaces import Space
from expost.data.dask_frames import DaskTable, beside, is_dask_frame, is_dask_series
from expost.data.dialect import PLAIN, Dialect
from expost.data.domain import Domain
from expost.data.files import TableFiles
from expost.data.frame_tables import check_at_hand, open_frame
from expost.data.lazy import LazyTable
from expost.data.placed import StreamedTable, table_of
from expost.engines.cluster import engine_of
from expost.exceptions import DomainError

if TYPE_CHECKING:
    from distributed import Client


@overload
def scan(
    table: "str | os.PathLike[str]",
    *,
    client: "Client | None" = None,
    device: Any = None,
    dialect: Dialect = PLAIN,
) -> LazyTable: ...
@overload
def scan(
    table: Any, *, client: "Client | None" = None, device: Any = None, dialect: Dialect = PLAIN
) -> LazyTable | StreamedTable: ...
def scan(
    table: Any, *, client: "Client | None" = None, device: Any = None, dialect: Dialect = PLAIN
) -> LazyTable | StreamedTable:
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
    dialect
        How files, or texts in a frame, are written: ``domain.table`` of a domain, whose file says it in
        ``[table]``.

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
        return _on_device(table, client, Space.named(device), dialect)
    if is_dask_frame(table):
        return replace(DaskTable.of(table, engine_of(client, current=True)), dialect=dialect)
    if not isinstance(table, str | os.PathLike):
        raise DomainError(
            "`table` must be the path of files or a Dask DataFrame; with `device`, it may be in memory too."
        )
    return TableFiles.found(os.fspath(table), engine_of(client), dialect)


def _on_device(table: Any, client: Any, space: Space, dialect: Dialect) -> LazyTable | StreamedTable:
    if client is not None or is_dask_frame(table):
        raise DomainError(
            "`device` is for rows that this process reads, not for a Dask cluster. Leave out one of them."
        )
    if isinstance(table, str | os.PathLike):
        return replace(TableFiles.found(os.fspath(table), dialect=dialect), device=space)
    return StreamedTable.of(table, space)


def as_lazy(X: Any, domain: Domain | None = None) -> LazyTable | None:
    """The table that ``X`` names or stands for, if it is read piece by piece; None where it is in memory.

    A domain says how the files of a path are written.
    """
    if isinstance(X, LazyTable):
        return X
    check_at_hand(table_of(X))
    if not isinstance(X, str | os.PathLike) and not is_dask_frame(X):
        return None
    found = scan(X, dialect=PLAIN if domain is None else domain.table)
    assert isinstance(found, LazyTable)
    return found


def with_columns(X: Any, y: Any, sample_weight: Any, domain: Domain | None) -> tuple[Any, Any, Any]:
    """Labels of a frame from the column that the domain declares, where none are given.

    A Dask frame gets labels and weights that are Dask Series as columns of it, and their names are returned.
    Rows are paired by their places, as everywhere else, and never by an index. Labels get the name that the
    domain has for them. Everything else is returned as it is.
    """
    if not is_dask_frame(X):
        if domain is not None and (y is None or (isinstance(y, str) and y == domain.label.name)):
            y = _column(table_of(X), domain.label.name, y)
        return X, y, sample_weight
    if is_dask_series(y):
        X, y = beside(X, y, "y", "y (expost)" if domain is None else domain.label.name)
    if is_dask_series(sample_weight):
        X, sample_weight = beside(X, sample_weight, "sample_weight", "sample_weight (expost)")
    return X, y, sample_weight


def _column(X: Any, name: str, otherwise: Any) -> Any:
    """A column of a frame, or of a mapping of columns, in memory; else ``otherwise``."""
    if isinstance(X, Mapping):
        return X.get(name, otherwise)
    if not nw.dependencies.is_into_dataframe(X):
        return otherwise
    frame = open_frame(X)
    return frame[name].to_numpy() if name in frame.columns else otherwise
