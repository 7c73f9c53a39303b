"""Find tables that are read piece by piece: in files, and in Dask's frames."""

import os
from typing import TYPE_CHECKING, Any

from expost.data.dask_frames import DaskTable, beside, is_dask_frame, is_dask_series
from expost.data.domain import Domain
from expost.data.files import TableFiles
from expost.data.lazy import LazyTable
from expost.engines.cluster import engine_of
from expost.exceptions import DomainError

if TYPE_CHECKING:
    from distributed import Client


def scan(table: Any, *, client: "Client | None" = None) -> LazyTable:
    """Find a table in files or in a Dask frame, without reading any of its rows.

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

    Returns
    -------
    LazyTable
        For ``fit``, ``ex_post_losses``, ``predict`` and ``bounds``, which also take the path or the frame
        itself.

    Privacy
    -------
    Public: names of files and of columns, and types. Nothing of a row is in an error.
    """
    if is_dask_frame(table):
        return DaskTable.of(table, engine_of(client, current=True))
    if not isinstance(table, str | os.PathLike):
        raise DomainError("`table` must be the path of files or a Dask DataFrame.")
    return TableFiles.found(os.fspath(table), engine_of(client))


def as_lazy(X: Any) -> LazyTable | None:
    """The table that ``X`` names or stands for, if it is read piece by piece; None where it is in memory."""
    if isinstance(X, LazyTable):
        return X
    return scan(X) if isinstance(X, str | os.PathLike) or is_dask_frame(X) else None


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
