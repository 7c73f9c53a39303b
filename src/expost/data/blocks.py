"""Rows of numbers, dense or sparse, that are read one block at a time, also as compiled kernels read them."""

import ctypes
import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, cast

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, hstack, issparse

from expost._common.kernels import NO_MEMORY, NOT_FINITE, Rows
from expost._common.typing import FloatArray
from expost.data.values import converted
from expost.exceptions import DomainError


def part_of(values: Any, here: Any) -> Any:
    """Some of the values that rows have, where they have any."""
    return None if values is None else values[here]


class Block(NamedTuple):
    """Some rows with their labels and weights, which travel together; private."""

    X: Any
    """Rows of numbers of any real type and order, as columns, or in SciPy's compressed form."""
    y: FloatArray
    """Empty where only rows were asked for."""
    weights: FloatArray | None
    """None where every weight is one."""
    people: Any = None
    """The number of each row's person, where rows are to be brought together."""

    def taken(self, here: Any) -> "Block":
        """Copies of some of the rows, by their places or by a mask."""
        labels = self.y[here] if len(self.y) else self.y  # some losses have none
        return Block(self.X[here], labels, part_of(self.weights, here), part_of(self.people, here))


class Table(ABC):
    """Rows of numbers that are read in blocks; private, but for the number of features."""

    n_rows: int
    n_features: int
    in_any_order: ClassVar[bool] = False
    """Whether rows can be read from anywhere as fast as one after the other."""

    @property
    def stored_width(self) -> int:
        """How many numbers are stored of a row, on average; at least one."""
        return self.n_features

    @abstractmethod
    def rows(self, start: int, stop: int) -> Any:
        """Rows ``start`` to ``stop`` of any real dtype: a matrix, columns, or sparse; a view if possible."""

    def at(self, places: NDArray[Any]) -> Any:
        """Copies of the rows at these places, in their order; only where :attr:`in_any_order`."""
        raise TypeError("these rows are read one after the other")


class ArrayTable(Table):
    """A NumPy matrix of any real dtype and memory order; its blocks are views."""

    in_any_order = True

    def __init__(self, matrix: NDArray[Any]) -> None:
        self._matrix, self.dtype = matrix, matrix.dtype
        self.n_rows, self.n_features = matrix.shape

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """A view of the rows."""
        return self._matrix[start:stop]

    def at(self, places: NDArray[Any]) -> NDArray[Any]:
        """Copies of the rows."""
        return np.asarray(np.take(self._matrix, places, axis=0))


_BROKEN = (
    "`X` must be a valid sparse matrix; its indices do not fit its shape. Make it anew from its entries."
)


class SparseTable(Table):
    """A SciPy matrix or array of any sparse format, as compressed rows; its blocks are sparse.

    Entries that are stored twice add up, as SciPy has it, and explicit zeros are zeros.
    """

    def __init__(self, matrix: Any) -> None:
        if matrix.ndim != 2:
            raise DomainError("`X` must be two-dimensional, one row per record; got a sparse vector.")
        if matrix.dtype.kind not in "fiub":
            wanted = "a sparse `X` must hold real numbers"
            raise DomainError(f"{wanted}; got dtype {matrix.dtype}. Convert it with X.astype(float).")
        self.n_rows, self.n_features = matrix.shape
        self._matrix = converted(lambda: matrix if matrix.format == "csr" else matrix.tocsr(), _BROKEN)

    @property
    def stored_width(self) -> int:
        """How many entries a row has on average."""
        return max(1, min(int(self._matrix.nnz) // max(self.n_rows, 1), self.n_features))

    def rows(self, start: int, stop: int) -> Any:
        """A sparse copy of the rows, in doubles and with every entry stored once."""
        # What SciPy remembers about the whole matrix is not relied on: the caller can change its parts.
        return converted(lambda: self._cut(start, stop), _BROKEN)

    def _cut(self, start: int, stop: int) -> Any:
        edges = self._matrix.indptr[start : stop + 1]
        stored = slice(int(edges[0]), int(edges[-1]))
        entries = self._matrix.data[stored].astype(np.float64), self._matrix.indices[stored].copy()
        block = csr_array((*entries, edges - edges[0]), shape=(stop - start, self.n_features))
        block.check_format(full_check=True)
        with np.errstate(over="ignore", invalid="ignore"):
            block.sum_duplicates()
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
    """The rows without the intercept, whose constant 1 is not stored, in SciPy's compressed form."""
    intercept: bool

    def __len__(self) -> int:
        return int(self.features.shape[0])

    def __matmul__(self, right: FloatArray) -> FloatArray:
        """The inner product of each row with a vector, or with each column of a matrix."""
        one = self.intercept
        return np.asarray(self.features @ right[:-1] + right[-1] if one else self.features @ right)

    @property
    def columns(self) -> int:
        """How many numbers an encoded row has."""
        return int(self.features.shape[1]) + self.intercept

    @property
    def squares(self) -> FloatArray:
        """The squared norm of each encoded row."""
        owner = np.repeat(np.arange(len(self)), np.diff(self.features.indptr))
        sums = np.bincount(owner, weights=self.features.data**2, minlength=len(self))
        return np.asarray(sums + float(self.intercept))

    def scaled(self, weights: FloatArray) -> Any:
        """The encoded rows, each times its weight, in SciPy's compressed form."""
        ones = [csr_array(np.ones((len(self), 1)))] if self.intercept else []
        return diags_array(weights).tocsr() @ hstack([self.features, *ones], format="csr")

    def summed(self, weights: FloatArray) -> FloatArray:
        """The sum of the rows, each times its weight; with a matrix of weights, one sum for each column."""
        total = np.asarray((self.features.T @ weights).T)
        ones = [np.sum(weights, axis=0)[..., None]] if self.intercept else []
        return np.concatenate([total, *ones], axis=-1)


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
    sparse: bool = issparse(rows)
    return np.asarray(rows.toarray() if sparse else rows)


# What gives the rows of a LazyFrame, of a reader or of a set of files; a table in memory has none of them.
_LATER = ("collect", "read_all", "to_table", "read")


def check_at_hand(X: Any) -> None:
    """Refuse what has rows but gives them later, once or one by one; the error names the type and the way."""
    records = _kind_of_records(X)
    way = _way_to_give(X) if records is None else "Make a frame of it first: pandas.DataFrame(X)"
    if way is not None:
        got = records or type(X).__name__
        raise DomainError(f"`X` must be a table in memory or in files; got a {got}. {way}.")


def _kind_of_records(X: Any) -> str | None:
    """What a table of records is called, where it is one and no table of columns."""
    if isinstance(X, np.ndarray):
        return None if X.dtype.names is None else "structured array"
    return "list of records" if isinstance(X, Sequence) and len(X) and isinstance(X[0], Mapping) else None


def _way_to_give(X: Any) -> str | None:
    """How to give rows at once that are given later; None where they are here."""
    if type(X).__name__ == "RecordBatch":
        return "Make a table of it first: pyarrow.Table.from_batches([X])"
    if isinstance(X, io.IOBase):
        return "Give its path"
    if nw.dependencies.is_into_dataframe(X) or nw.dependencies.is_dask_dataframe(X):
        return None
    for name in filter(partial(hasattr, X), _LATER):
        return f"Call {name}() first, or give the path of its file"
    return "Read all of it into a frame first, or give the path of its file" * isinstance(X, Iterator) or None


def check_shape(rows: int, columns: int) -> None:
    """Refuse a table without rows or columns, as scikit-learn's conventions want it."""
    if columns == 0:
        raise DomainError("`X` has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    if rows == 0:
        raise DomainError("`X` must have at least one row; got an empty table.")


def not_matrix_error() -> DomainError:
    """The error for a table that has not two dimensions; the caller raises it."""
    return DomainError(
        "`X` must be two-dimensional, one row per record. Reshape your data: X.reshape(1, -1) is one row."
    )


def not_finite_error() -> DomainError:
    """The error for rows with NaN or infinity; the caller raises it."""
    return DomainError(
        "`X` must be finite; it contains NaN or infinity. Fill missing values with public constants, "
        "or leave such rows out, before fitting."
    )


_BY_ROWS, _BY_COLUMNS, _SPARSE = range(3)
# The types of cells that kernels read where they lie, by their codes there.
_CODES = {
    np.dtype(name): code
    for code, name in enumerate(("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"))
}


class RawBlock:
    """A block of rows as it lies in memory, for compiled kernels; private.

    A kernel copies some rows at a time, measures and scales what it copied, and uses that: what was measured
    is what is used, whoever writes to the table meanwhile.

    Privacy
    -------
    As private as the rows. An error names none of them.
    """

    def __init__(
        self,
        block: Block,
        *,
        norm: float,
        margin: float,
        smallest_scale: float,
        intercept: bool,
        order: NDArray[np.integer[Any]] | None = None,
    ) -> None:
        X, y, weights, *_ = block
        count, features = X.shape
        self.count: int = count if order is None else len(order)
        self.labels: FloatArray = y
        self._kept: list[Any] = []
        """What the kernel reads, which must not be given back before."""
        self._rows = rows = Rows(
            rows=self.count,
            features=features,
            intercept=intercept,
            norm=norm,
            margin=margin,
            smallest_scale=smallest_scale,
            labels=self._address(_doubles(y)) if len(y) else None,
            weights=None if weights is None else self._address(_doubles(weights)),
            order=None if order is None else self._address(_whole(order)),
        )
        if issparse(X):
            rows.kind, sparse = _SPARSE, cast(Any, X)
            rows.starts, rows.places = map(self._address, map(_whole, (sparse.indptr, sparse.indices)))
            rows.values = self._address(_doubles(sparse.data))
        elif isinstance(X, ColumnRows):
            self._set_columns([_readable(column) for column in X.columns])
        else:
            self._set_matrix(_readable(np.asarray(X)))

    def _set_matrix(self, X: NDArray[Any]) -> None:
        rows, features = self._rows, X.shape[1]
        if _CODES[X.dtype] <= 1 and (X.strides[1] == X.itemsize or features == 1):
            rows.kind, rows.code, rows.row_stride = _BY_ROWS, _CODES[X.dtype], X.strides[0]
            rows.cells = self._address(X)
        else:
            self._set_columns([X[:, place] for place in range(features)])

    def _set_columns(self, columns: list[NDArray[Any]]) -> None:
        self._rows.kind = _BY_COLUMNS
        numbers = (
            [self._address(column) for column in columns],
            [column.strides[0] for column in columns],
            [_CODES[column.dtype] for column in columns],
        )
        arrays = [self._address(_whole(some)) for some in numbers]
        self._rows.columns, self._rows.strides, self._rows.codes = arrays

    def _address(self, array: NDArray[Any]) -> int:
        self._kept.append(array)
        return array.ctypes.data

    def run(self, kernel: Any, *arguments: Any) -> int:
        """Run a kernel on the block, with other arguments; DomainError where some cell is not finite."""
        given = (a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments)
        answer: int = kernel(ctypes.byref(self._rows), *given)
        if answer == NOT_FINITE:
            raise not_finite_error()
        if answer == NO_MEMORY:
            raise MemoryError
        return answer


def _whole(numbers: Any) -> NDArray[np.int64]:
    return np.ascontiguousarray(numbers, dtype=np.int64)


def _doubles(values: Any) -> FloatArray:
    return np.ascontiguousarray(values, dtype=np.float64)


def _readable(cells: NDArray[Any]) -> NDArray[Any]:
    """Cells of a type that kernels read, where they lie as they do in C."""
    if cells.dtype == bool:  # any byte but zero is true
        return np.not_equal(cells.view(np.uint8), 0).view(np.uint8)
    if cells.dtype in _CODES and cells.flags.aligned:
        return cells
    with np.errstate(over="ignore"):  # what is beyond doubles is infinite, and refused
        return np.require(cells, np.float64, ["C", "A"])
