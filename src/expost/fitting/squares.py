"""Sums of squares of rows, in groups that keep their digits: by BLAS, or where the rows lie."""

import ctypes
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import cython_blas

from expost._common.namespaces import HERE, Space, on_host
from expost._common.typing import FloatArray
from expost.data.rows import LONGEST_SUM

_TILE = 256
# In single precision, a row whose weight is smaller than the largest of its block by the square of this is
# left out.
_NEGLIGIBLE = 1e-16


class Gram:
    r"""The sum of :math:`R^\top R` over blocks :math:`R` of rows; private.

    Blocks follow each other in groups of at most ``LONGEST_SUM`` rows, or of one block that is longer. BLAS
    adds the rows of a group to one matrix, in the given precision and in an order of its own; the groups are
    added in double precision and in their order: no chain of additions is longer than a group has rows or
    than there are groups. On a device the rows add up their own squares, in groups of theirs.
    """

    def __init__(self, dimension: int, precision: DTypeLike = np.float64, space: Space = HERE) -> None:
        self.precision: Any = getattr(space.xp, np.dtype(precision).name)
        """The library's type for the products."""
        self.additions = 0
        """How many sums of groups were added to each other."""
        self._space, self._dimension = space, dimension
        self._rows = 0
        self._packed: FloatArray | None = None
        self._group: NDArray[Any] | None = None
        self._total: Any = None if space is HERE else space.zeros(dimension, dimension)
        self._scaled: NDArray[Any] = np.empty((0, dimension), dtype=precision)

    def add(self, rows: Any, weights: FloatArray) -> None:
        """Add the squares of a block of rows, each times its weight."""
        if self._space is not HERE:
            square, groups = rows.gram(weights, self.precision)
            self._total += square
            self.additions += groups
            return
        root, matrix = np.sqrt(weights), rows.encoded()
        if self.precision != np.float64:
            # Far beyond the digits of the sum; their products would underflow, which is slow.
            root[root < _NEGLIGIBLE * np.max(root, initial=0.0)] = 0.0
        if len(self._scaled) < len(matrix):
            self._scaled = np.empty(matrix.shape, dtype=self.precision)
        part = self._scaled[: len(matrix)]
        np.copyto(part, matrix, casting="same_kind")
        part *= root.astype(self.precision)[:, None]
        self.add_rows(part)

    def add_rows(self, rows: NDArray[Any]) -> None:
        """Add a block of NumPy's rows of the precision, with rows or columns that are contiguous."""
        if self._rows and self._rows + len(rows) > LONGEST_SUM:
            self._close()
        self._rows += len(rows)
        if len(rows):
            _add_square(rows, self._open_group)

    def add_strip(self, place: int, strip: Any) -> None:
        """Add to the rows from ``place`` on, right of the diagonal; what is left of it is a mirror."""
        if self._total is None:
            self._total = np.zeros((self._dimension, self._dimension), order="F")
        stop = place + int(strip.shape[0])
        self._total[place:stop, place:] += self._space.xp.astype(strip, self._space.xp.float64, copy=False)

    def add_products(self, weights: NDArray[Any], rows: NDArray[Any]) -> None:
        r"""Add :math:`\sum_iB_i \otimes x_ix_i^\top` by one product of matrices.

        Both factors of each term are symmetric: the upper entries of :math:`B_i`, which are the weights, meet
        the products of two entries of a row, each pair once.
        """
        count, columns = rows.shape
        products, place = np.empty((count, columns * (columns + 1) // 2), dtype=rows.dtype), 0
        for j in range(columns):
            np.multiply(rows[:, j, None], rows[:, j:], out=products[:, place : place + columns - j])
            place += columns - j
        if self._packed is None:
            self._packed = np.zeros((weights.shape[1], products.shape[1]))
        self._packed += weights.T @ products

    def _unpack(self, packed: FloatArray) -> None:
        """Turn sums of products into rows of blocks, from the diagonal on."""
        columns = math.isqrt(2 * packed.shape[1])
        above, blocks = np.triu_indices(columns), np.empty((len(packed), columns, columns))
        blocks[:, above[0], above[1]] = blocks[:, above[1], above[0]] = packed
        owner = np.triu_indices(self._dimension // columns)[0]
        for a in range(self._dimension // columns):
            self.add_strip(a * columns, np.concatenate(blocks[owner == a], axis=1))

    def matrix(self) -> FloatArray:
        """The sum, both halves of it, in double precision; no block can be added any more."""
        if self._space is not HERE:
            upper: FloatArray = np.triu(on_host(self._total))
            return upper + np.triu(upper, 1).T
        if self._packed is not None:
            self._unpack(self._packed)
        if self._total is not None or self._open_group.dtype != np.float64:
            self._close()
        total: FloatArray = self._open_group if self._total is None else self._total
        mirror(total)
        return total.T  # the same matrix, with contiguous rows

    @property
    def _open_group(self) -> NDArray[Any]:
        if self._group is None:
            self._group = np.zeros((self._dimension, self._dimension), dtype=self.precision, order="F")
        return self._group

    def _close(self) -> None:
        """Add the group to the others, and begin a new one."""
        self.additions += 1
        if self._group is not None:
            if self._total is None:
                self._total = self._group.astype(np.float64)
            else:
                self._total += self._group
            self._group[...] = 0.0
        self._rows = 0


def mirror(square: FloatArray) -> None:
    """Copy the upper half to the lower one, tile by tile so that both stay in the cache."""
    for start in range(0, len(square), _TILE):
        stop = min(start + _TILE, len(square))
        corner = square[start:stop, start:stop]
        corner[...] = np.triu(corner) + np.triu(corner, 1).T
        for low in range(stop, len(square), _TILE):
            square[low : low + _TILE, start:stop] = square[start:stop, low : low + _TILE].T


def _add_square(rows: NDArray[Any], square: NDArray[Any]) -> None:
    """Add ``rows.T @ rows`` to the upper half of a matrix with contiguous columns.

    SciPy's own wrapper keeps the interpreter's lock, so that threads would wait for each other.
    """
    length, dimension = rows.shape
    size = rows.itemsize
    by_rows = rows.strides[1] == size
    stride = rows.strides[0] if by_rows else rows.strides[1]
    assert rows.dtype == square.dtype
    assert square.flags.f_contiguous
    assert by_rows or rows.strides[0] == size
    one = (ctypes.c_double if size == 8 else ctypes.c_float)(1.0)
    # Read in 32 bits or in 64, as the library was built: the numbers are small, and the first half counts.
    count, inner, leading, columns = (
        ctypes.byref(ctypes.c_int64(value))
        for value in (dimension, length, max(stride // size, dimension if by_rows else length, 1), dimension)
    )
    unit = ctypes.byref(one)
    where = rows.ctypes.data_as(ctypes.c_void_p), square.ctypes.data_as(ctypes.c_void_p)
    syrk = _function("dsyrk" if size == 8 else "ssyrk")
    syrk(b"U", b"N" if by_rows else b"T", count, inner, unit, where[0], leading, unit, where[1], columns)


@cache
def _function(name: str) -> Any:
    """A function of the BLAS that SciPy brings, called without the interpreter's lock."""
    functions: Mapping[str, Any] = vars(cython_blas)["__pyx_capi__"]
    capsule = functions[name]
    api = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    return ctypes.CFUNCTYPE(None, *[ctypes.c_char_p] * 2, *[ctypes.c_void_p] * 8)(
        pointer_of(capsule, name_of(capsule))
    )
