"""Blocks of rows as compiled kernels read them: where their cells lie, in which layout and of which type."""

import ctypes
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from expost._common.kernels import NO_MEMORY, NOT_FINITE, Rows
from expost._common.typing import FloatArray
from expost.data.blocks import Block, ColumnRows, not_finite_error

_BY_ROWS, _BY_COLUMNS, _SPARSE = range(3)
# The types of cells that kernels read where they lie, by their codes there; truth values are whole numbers.
_CODES = {
    np.dtype(name): code
    for code, name in enumerate(("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"))
}
_CODES[np.dtype(bool)] = _CODES[np.dtype("u1")]


class RawBlock:
    """A block of rows as it lies in memory, for compiled kernels; private.

    A kernel copies some rows at a time, measures and scales what it copied, and uses that: what was measured
    is what is used, whoever writes to the table meanwhile.

    Privacy
    -------
    As private as the rows. An error names none of them.
    """

    def __init__(
        self, block: Block, *, norm: float, margin: float, smallest_scale: float, intercept: bool
    ) -> None:
        X, y, weights, *_ = block
        self.count, features = X.shape
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
        )
        if issparse(X):
            rows.kind, sparse = _SPARSE, cast(Any, X)
            rows.starts, rows.places = map(self._address, map(_whole, (sparse.indptr, sparse.indices)))
            rows.values = self._address(_doubles(sparse.data))
        elif isinstance(X, ColumnRows):
            self._set_columns([_readable(column) for column in X.columns])
        else:
            X = _readable(np.asarray(X))
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
    if cells.dtype in _CODES and cells.flags.aligned:
        return cells
    with np.errstate(over="ignore"):  # what is beyond doubles is infinite, and refused
        return np.asarray(cells, dtype=np.float64, order="C")
