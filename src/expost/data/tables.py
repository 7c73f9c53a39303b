"""Tables of every kind: those in memory, and those that are found in files and in Dask's frames."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, overload

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from expost._common.namespaces import Space, is_foreign
from expost._common.validation import parameter_error
from expost.data.blocks import (
    ArrayTable,
    ColumnRows,
    SparseTable,
    Table,
    check_at_hand,
    check_shape,
    not_matrix_error,
)
from expost.data.dialect import PLAIN, Dialect
from expost.data.domain import Domain
from expost.data.features import Feature, Number
from expost.data.files import TableFiles
from expost.data.frame_tables import columns_of, frame_table, plain_column
from expost.data.labels import TimeLabel
from expost.data.lazy import DaskTable, LazyTable, with_series
from expost.data.values import as_numbers
from expost.engines.base import LOCAL
from expost.engines.cluster import engine_of
from expost.exceptions import DomainError

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True, eq=False, repr=False)
class StreamedTable:
    """A table in memory whose rows are sent to a device, in every pass; as private as the table."""

    table: Any
    space: Space

    @classmethod
    def of(cls, table: Any, space: Space) -> Self:
        """A table of this machine; one that lies on a device is refused."""
        if is_foreign(table) or isinstance(table, StreamedTable):
            wanted = "a table in this machine's memory, or in files"
            way_out = "A table on a device is fitted there as it is."
            raise parameter_error("table", wanted, type(table), way_out)
        return cls(table, space)


@overload
def scan(
    table: "str | os.PathLike[str]",
    *,
    client: "Client | None" = ...,
    device: Any = ...,
    dialect: Dialect = ...,
) -> LazyTable: ...
@overload
def scan(
    table: Any, *, client: "Client | None" = ..., device: Any = ..., dialect: Dialect = ...
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
    space = None if device is None else Space.named(device)
    dask = nw.dependencies.is_dask_dataframe(table)
    if space is not None and (dask or client is not None):
        raise DomainError(
            "`device` is for rows that this process reads, not for a Dask cluster. Leave out one of them."
        )
    if dask:
        return replace(DaskTable.of(table, engine_of(client, current=True)), dialect=dialect)
    if isinstance(table, str | os.PathLike):
        engine = LOCAL if client is None else engine_of(client)
        return replace(TableFiles.found(os.fspath(table), engine, dialect), device=space)
    if space is None:
        raise DomainError(
            "`table` must be the path of files or a Dask DataFrame; with `device`, it may be in memory too."
        )
    return StreamedTable.of(table, space)


def table_of(X: Any) -> Any:
    """The table itself, whether its rows are sent to a device or not."""
    return X.table if isinstance(X, StreamedTable) else X


def as_lazy(X: Any, domain: Domain | None = None) -> LazyTable | None:
    """The table that ``X`` names or stands for, if it is read piece by piece; None where it is in memory."""
    if isinstance(X, LazyTable):
        return X
    check_at_hand(table_of(X))
    if not isinstance(X, str | os.PathLike) and not nw.dependencies.is_dask_dataframe(X):
        return None
    found = scan(X, dialect=PLAIN if domain is None else domain.table)
    assert isinstance(found, LazyTable)
    return found


class _EncodedTable(Table):
    """A frame, or a mapping, of raw records, encoded by their domain one block at a time.

    Other columns than the domain's are ignored. Texts become codes once; numbers are read where they lie.
    """

    def __init__(self, frame: Any, domain: Domain) -> None:
        columns = columns_of(frame)
        if columns is None:
            raise DomainError("with a domain, `X` must be a data frame with named columns.")
        missing = [feature.name for feature in domain.features if feature.name not in columns]
        if missing:
            raise DomainError(
                f"`X` lacks the column {missing[0]!r} that the domain declares. Add or rename it."
            )
        chosen = [
            plain_column(one.name, columns[one.name], numbers=isinstance(one, Number))
            for one in domain.features
        ]
        if len({len(column) for column in chosen}) > 1:
            raise DomainError("the columns of `X` must have one length.")
        self._domain = domain
        self._codes = [_codes(*one) for one in zip(domain.features, chosen, strict=True)]
        self.n_rows, self.n_features = len(chosen[0]), len(domain.column_names)

    def rows(self, start: int, stop: int) -> ColumnRows:
        codes = [column[start:stop] for column in self._codes]
        for place, feature in enumerate(self._domain.features):
            if isinstance(feature, Number):  # where they lie they may have changed, or be missing
                codes[place] = feature.coded(codes[place])
        return ColumnRows(self._domain.expanded(codes))


def _codes(feature: Feature, column: Any) -> NDArray[Any]:
    """The codes of a column; one of numbers, for a feature that is one, stays as it is."""
    if not isinstance(feature, Number):
        return feature.coded(column)
    plain = isinstance(column, np.ndarray) and column.dtype.kind in "fiub"
    return column if plain else as_numbers(column, feature.name)


class _NotNumbersError(DomainError, TypeError):
    """Cells that cannot be numbers; scikit-learn's conventions want a TypeError here."""


def _matrix_table(X: Any) -> Table:
    """The table of a matrix, dense or sparse, or of a nested list; DomainError where it is none."""
    from sklearn.utils import check_array  # slow to import, and not needed where a domain encodes

    if issparse(X):
        return SparseTable(X)
    if isinstance(X, np.ma.MaskedArray):
        raise DomainError("`X` must not be masked; fill the masked cells with public constants.")
    if isinstance(X, np.matrix):
        raise DomainError("`X` must be an array; np.matrix is not supported. Convert it with np.asarray(X).")
    matrix: NDArray[Any] | DomainError
    try:
        matrix = check_array(
            X, dtype="numeric", ensure_all_finite=False, ensure_min_samples=0, ensure_min_features=0
        )
    except MemoryError:
        raise
    except Exception as error:
        # scikit-learn's errors quote cells, whole arrays and their shapes: private values must not be logged.
        matrix = _public_error(error)
    if isinstance(matrix, DomainError):  # raised here, so that scikit-learn's error is not attached to ours
        raise matrix
    if matrix.dtype.kind not in "fiub":
        raise DomainError(f"`X` must hold real numbers; got dtype {matrix.dtype}.")
    return ArrayTable(matrix)


def _public_error(error: Exception) -> DomainError:
    """The error to raise for one of scikit-learn's, without what that one quotes."""
    if isinstance(error, TypeError):
        return _NotNumbersError(
            "`X` must be a matrix of numbers: the argument must be no string and no object, only numbers."
        )
    message = str(error) if isinstance(error, ValueError) else ""  # a cell's own error can be anything
    if message.startswith("Expected 2D array"):
        return not_matrix_error()
    if message.startswith("Complex data"):
        return DomainError("`X` must hold real numbers: Complex data not supported.")
    return DomainError(
        "`X` must be a matrix of numbers; got text or rows of unequal length. Encode columns as numbers."
    )


def open_table(X: Any, domain: Domain | None = None) -> Table:
    """Read a matrix, dense or sparse, a nested list or a data frame as a table, without copying its numbers.

    With a domain, ``X`` is a frame of raw records that the domain encodes. DomainError if there are no rows
    or columns, or something that is not a number; it names no row, value or count.
    """
    if domain is not None:
        table: Table = _EncodedTable(X, domain)
    else:
        table = frame_table(X) if nw.dependencies.is_into_dataframe(X) else _matrix_table(X)
    check_shape(table.n_rows, table.n_features)
    return table


def with_columns(
    X: Any, y: Any, sample_weight: Any, groups: Any, domain: Domain | None
) -> tuple[Any, Any, Any, Any]:
    """Labels and people of a frame from the columns that the domain declares, where none are given.

    A Dask frame gets labels, weights and people that are Dask Series as columns of it, and their names are
    returned.
    """
    label, person = (None, None) if domain is None else (domain.label.name, domain.person)
    if nw.dependencies.is_dask_dataframe(X):
        frame, *given = with_series(X, {"y": y, "sample_weight": sample_weight, "groups": groups}, label)
        y, sample_weight, groups = given
        return frame, y, sample_weight, person if groups is None else groups
    table = table_of(X)
    if isinstance(table, str | os.PathLike | LazyTable):
        return X, y, sample_weight, person if groups is None else groups
    if label is not None:
        columns = columns_of(table) or {}
        y = _declared_outcome(columns, domain, y)
        groups = _declared_column(columns, person, groups)
    return X, y, sample_weight, groups


def _declared_outcome(columns: Mapping[str, Any], domain: Domain | None, given: Any) -> Any:
    """The outcome that the domain declares, where it is not given: one column, or a time and its event."""
    assert domain is not None
    label = domain.label
    if not isinstance(label, TimeLabel):
        return _declared_column(columns, label.name, given)
    names = [part.name for part in label.parts]
    if given is not None or not all(name in columns for name in names):
        return given
    return tuple(_declared_column(columns, name, None) for name in names)


def _declared_column(columns: Mapping[str, Any], name: str | None, given: Any) -> Any:
    """A column that the domain declares, where it is not given, or only by its name."""
    if name is None or not (given is None or (isinstance(given, str) and given == name)):
        return given
    if name not in columns:
        return given
    column = columns[name]
    return column.to_numpy() if isinstance(column, nw.Series) else column
