"""Tables as blocks of rows: arrays, sparse matrices, frames, and raw records encoded by their domain."""

from collections.abc import Mapping
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from expost.data.blocks import ArrayTable, ColumnRows, SparseTable, Table
from expost.data.domain import Domain
from expost.data.features import Feature, Number
from expost.data.frame_tables import frame_table, open_frame
from expost.data.values import as_numbers, untold
from expost.exceptions import DomainError


class EncodedTable(Table):
    """Raw records, encoded by their domain one block at a time.

    A frame, or a mapping from names to columns of one length, with a column for every feature of the
    domain. The order does not matter, and other columns are ignored. Texts become codes once; numbers are
    read where they lie.
    """

    def __init__(self, frame: Any, domain: Domain) -> None:
        columns: Mapping[str, Any]
        if isinstance(frame, Mapping):
            columns = {name: _as_column(name, column) for name, column in frame.items()}
        elif nw.dependencies.is_into_dataframe(frame):
            opened = open_frame(frame)
            columns = {name: opened[name] for name in opened.columns}
        else:
            raise DomainError("with a domain, `X` must be a data frame with named columns.")
        missing = [feature.name for feature in domain.features if feature.name not in columns]
        if missing:
            raise DomainError(
                f"`X` lacks the column {missing[0]!r} that the domain declares. Add or rename it."
            )
        chosen = {feature.name: columns[feature.name] for feature in domain.features}
        for name, column in chosen.items():
            if getattr(column, "ndim", 1) != 1:  # a frame has no others
                raise DomainError(f"`{name}` must be one column with one value per record.")
        lengths = {len(column) for column in chosen.values()}
        if len(lengths) > 1:
            raise DomainError("the columns of `X` must have one length.")
        self._domain = domain
        self._codes = [_codes(feature, chosen[feature.name]) for feature in domain.features]
        self.n_rows = lengths.pop()
        self.n_features = len(domain.column_names)

    def rows(self, start: int, stop: int) -> ColumnRows:
        """The encoded rows of the block."""
        codes = [column[start:stop] for column in self._codes]
        for place, feature in enumerate(self._domain.features):
            if isinstance(feature, Number):  # where they lie they may have changed, or be missing
                codes[place] = feature.coded(codes[place])
        return ColumnRows(self._domain.expanded(codes))


def _codes(feature: Feature, column: Any) -> NDArray[Any]:
    """The codes of a column; one of numbers, for a feature that is one, stays as it is."""
    cells: Any = None
    with untold():
        cells = column if isinstance(column, np.ndarray) else column.to_numpy()
    if isinstance(feature, Number) and cells is not None and cells.dtype.kind in "fiub":
        return np.asarray(cells)
    if not isinstance(column, np.ndarray):
        with untold():  # libraries differ in what they can give to Arrow
            cells = column.to_arrow()
    if cells is None:
        raise DomainError(f"`{feature.name}` must be one column with one value per record.")
    return as_numbers(cells, feature.name) if isinstance(feature, Number) else feature.coded(cells)


def _as_column(name: Any, column: Any) -> NDArray[Any]:
    values: NDArray[Any] | None = None
    with untold():
        values = np.asarray(column)
    if values is None:
        raise DomainError(f"`{name}` must be one column with one value per record.")
    return values


def open_table(X: Any, domain: Domain | None = None) -> Table:
    """Read a matrix, dense or sparse, a nested list or a data frame as a table, without copying its numbers.

    With a domain, ``X`` is a frame of raw records that the domain encodes.

    Raises
    ------
    DomainError
        If there are no rows or columns, or something that is not a number. The message names no row, value
        or count.
    """
    table: Table
    if domain is not None:
        table = EncodedTable(X, domain)
    elif nw.dependencies.is_into_dataframe(X):
        table = frame_table(X)
    else:
        table = _matrix_table(X)
    if table.n_features == 0:
        raise DomainError("`X` has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    if table.n_rows == 0:
        raise DomainError("`X` must have at least one row; got an empty table.")
    return table


class _NotNumbersError(DomainError, TypeError):
    """Cells that cannot be numbers; scikit-learn's conventions want a TypeError here."""


def _matrix_table(X: Any) -> Table:
    from scipy.sparse import issparse

    return SparseTable(X) if issparse(X) else ArrayTable(_as_matrix(X))


def _as_matrix(X: Any) -> NDArray[Any]:
    from sklearn.utils import check_array  # slow to import, and not needed where a domain encodes

    if isinstance(X, np.ma.MaskedArray):
        raise DomainError("`X` must not be masked; fill the masked cells with public constants.")
    if isinstance(X, np.matrix):
        raise DomainError("`X` must be an array; np.matrix is not supported. Convert it with np.asarray(X).")
    matrix: NDArray[Any] | None = None
    refusal = DomainError("`X` must be a matrix of numbers.")
    try:
        matrix = check_array(
            X, dtype="numeric", ensure_all_finite=False, ensure_min_samples=0, ensure_min_features=0
        )
    except MemoryError:
        raise
    except Exception as error:
        # scikit-learn's errors quote cells, whole arrays and their shapes: private values must not be logged.
        refusal = _public_error(error)
    if matrix is None:  # raised here, so that scikit-learn's error is not attached to ours
        raise refusal
    if matrix.dtype.kind not in "fiub":
        raise DomainError(f"`X` must hold real numbers; got dtype {matrix.dtype}.")
    return matrix


def _public_error(error: Exception) -> DomainError:
    """The error to raise for one of scikit-learn's, without what that one quotes."""
    if isinstance(error, TypeError):
        return _NotNumbersError(
            "`X` must be a matrix of numbers: the argument must be no string and no object, only numbers."
        )
    message = str(error) if isinstance(error, ValueError) else ""  # a cell's own error can be anything
    if message.startswith("Expected 2D array"):
        return DomainError(
            "`X` must be two-dimensional, one row per record. Reshape your data: X.reshape(1, -1) is one row."
        )
    if message.startswith("Complex data"):
        return DomainError("`X` must hold real numbers: Complex data not supported.")
    return DomainError(
        "`X` must be a matrix of numbers; got text or rows of unequal length. Encode columns as numbers."
    )
