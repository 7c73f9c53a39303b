"""One door for every kind of table."""

from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from sklearn.utils import check_array

from expost.data.domain import Domain
from expost.data.tables.array import ArrayTable
from expost.data.tables.base import Table
from expost.data.tables.encoded import EncodedTable
from expost.data.tables.frame import FrameTable
from expost.exceptions import DomainError


def open_table(X: Any, domain: Domain | None = None) -> Table:
    """Read a matrix, a nested list or a data frame as a table, without copying numeric data.

    With a domain, ``X`` is a frame of raw records that the domain encodes.

    Raises
    ------
    DomainError
        If there are no rows or columns, or something that is not a number. The message names neither row
        nor value nor count.
    """
    table: Table
    if domain is not None:
        table = EncodedTable(X, domain)
    else:
        table = FrameTable(X) if nw.dependencies.is_into_dataframe(X) else ArrayTable(_as_matrix(X))
    if table.n_features == 0:
        raise DomainError("`X` has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    if table.n_rows == 0:
        raise DomainError("`X` must have at least one row; got an empty table.")
    return table


def _as_matrix(X: Any) -> np.ndarray[Any, Any]:
    if isinstance(X, np.ma.MaskedArray):
        raise DomainError("`X` must not be masked; fill the masked cells with public constants.")
    matrix: np.ndarray[Any, Any] | None = None
    reason = ""
    try:
        matrix = check_array(
            X, dtype="numeric", ensure_all_finite=False, ensure_min_samples=0, ensure_min_features=0
        )
    except (ValueError, OverflowError) as error:
        # The checker quotes cells, whole arrays and their shapes: private values must not reach a log.
        reason = _public_reason(str(error))
    if matrix is None:  # raised here, so that the checker's error does not hang on to ours
        raise DomainError(reason)
    if matrix.dtype.kind not in "fiub":
        raise DomainError(f"`X` must hold real numbers; got dtype {matrix.dtype}.")
    return matrix


def _public_reason(message: str) -> str:
    if message.startswith("Expected 2D array"):
        return (
            "`X` must be two-dimensional, one row per record. Reshape your data: X.reshape(1, -1) is one row."
        )
    if message.startswith("Complex data"):
        return "`X` must hold real numbers: Complex data not supported."
    return "`X` must be a matrix of numbers; got text or rows of unequal length. Encode columns as numbers."
