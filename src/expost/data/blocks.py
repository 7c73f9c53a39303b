"""Rows of numbers, dense or sparse, that are read one block at a time."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from expost._common.typing import FloatArray
from expost.data.values import untold
from expost.exceptions import DomainError


class Block(NamedTuple):
    """Some rows with their labels and weights, which travel together; private."""

    X: Any
    """Rows of numbers of any real type and order, as columns, or in SciPy's compressed form."""
    y: FloatArray
    """Their labels; empty where only rows were asked for."""
    weights: FloatArray | None
    """Their weights; None where every weight is one."""


class Table(ABC):
    """Rows of numbers that are read in blocks; the table is never copied as a whole.

    Privacy
    -------
    A table is private. Its number of features is public; its number of rows is not.
    """

    n_rows: int
    n_features: int

    @property
    def stored_width(self) -> int:
        """How many numbers are stored of a row, on average; at least one."""
        return self.n_features

    @abstractmethod
    def rows(self, start: int, stop: int) -> Any:
        """Rows ``start`` to ``stop`` of any real dtype: a matrix, columns, or sparse; a view if possible."""


class ArrayTable(Table):
    """A NumPy matrix of any real dtype and memory order; its blocks are views."""

    def __init__(self, matrix: NDArray[Any]) -> None:
        self._matrix, self.dtype = matrix, matrix.dtype
        self.n_rows, self.n_features = matrix.shape

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """A view of the rows."""
        return self._matrix[start:stop]


class SparseTable(Table):
    """A SciPy matrix or array of any sparse format; its blocks are sparse.

    Compressed rows are read where they lie. Other formats cannot be cut by rows and are compressed once, in
    as many numbers as they store. Entries that are stored twice add up, as SciPy has it, and explicit zeros
    are zeros.
    """

    def __init__(self, matrix: Any) -> None:
        if matrix.ndim != 2:
            raise DomainError("`X` must be two-dimensional, one row per record; got a sparse vector.")
        if matrix.dtype.kind not in "fiub":
            raise DomainError(
                f"a sparse `X` must hold real numbers; got dtype {matrix.dtype}. Convert it with "
                "X.astype(float)."
            )
        self.n_rows, self.n_features = matrix.shape
        compressed: Any = None
        with untold():
            compressed = matrix if matrix.format == "csr" else matrix.tocsr()
        if compressed is None:
            raise _broken_error()
        self._matrix = compressed

    @property
    def stored_width(self) -> int:
        """How many entries a row has on average."""
        return max(1, min(int(self._matrix.nnz) // max(self.n_rows, 1), self.n_features))

    def rows(self, start: int, stop: int) -> Any:
        """A sparse copy of the rows, in doubles and with every entry stored once.

        What SciPy remembers about the whole matrix is not relied on: the caller can change its parts.
        """
        block: Any = None
        with untold():
            edges = self._matrix.indptr[start : stop + 1]
            stored = slice(int(edges[0]), int(edges[-1]))
            parts = (
                self._matrix.data[stored].astype(np.float64),
                self._matrix.indices[stored].copy(),
                edges - edges[0],
            )
            made = csr_array(parts, shape=(stop - start, self.n_features))
            made.check_format(full_check=True)
            with np.errstate(over="ignore", invalid="ignore"):
                made.sum_duplicates()
            block = made
        if block is None:
            raise _broken_error()
        return block


@dataclass(frozen=True, eq=False)
class ColumnRows:
    """A block of rows that lie column by column, each column in a type of its own; private."""

    columns: Sequence[NDArray[Any]]

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        return len(self), len(self.columns)

    def __len__(self) -> int:
        return len(self.columns[0])

    def copy_to(self, out: FloatArray) -> None:
        """Write the rows into a matrix; fast where its columns are contiguous."""
        for place, column in enumerate(self.columns):
            np.copyto(out[:, place], column)


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A block of encoded sparse rows, for products with vectors and matrices from both sides; private."""

    features: Any
    """The rows without the intercept, in SciPy's compressed form."""
    intercept: bool
    """Whether each row ends in a constant 1, which is not stored."""

    def __len__(self) -> int:
        return int(self.features.shape[0])

    def __matmul__(self, right: FloatArray) -> FloatArray:
        """The inner product of each row with a vector, or with each column of a matrix."""
        if not self.intercept:
            return np.asarray(self.features @ right)
        return np.asarray(self.features @ right[:-1] + right[-1])

    def summed(self, weights: FloatArray) -> FloatArray:
        """The sum of the rows, each times its weight; with a matrix of weights, one sum for each column."""
        total = np.asarray((self.features.T @ weights).T)
        if not self.intercept:
            return total
        return np.concatenate([total, np.sum(weights, axis=0)[..., None]], axis=-1)


def is_sparse(rows: Any) -> bool:
    """Whether rows are in SciPy's compressed form."""
    return issparse(rows)


def lie_by_columns(rows: Any) -> bool:
    """Whether the rows of a block are columns, or a matrix that is closer packed along them."""
    return isinstance(rows, ColumnRows) or (
        isinstance(rows, np.ndarray) and abs(rows.strides[0]) < abs(rows.strides[1])
    )


def as_dense(rows: Any) -> NDArray[Any]:
    """Rows as a matrix."""
    if isinstance(rows, ColumnRows):
        matrix = np.empty(rows.shape, order="F")
        rows.copy_to(matrix)
        return matrix
    dense: NDArray[Any] = rows.toarray() if is_sparse(rows) else rows
    return dense


def _broken_error() -> DomainError:
    """The error for a sparse matrix whose parts do not belong together; the caller raises it."""
    return DomainError(
        "`X` must be a valid sparse matrix; its indices do not fit its shape. Make it anew from its entries."
    )
