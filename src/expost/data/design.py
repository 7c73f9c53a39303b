"""The design matrix: finite rows inside the declared ball, with the intercept."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._common.parallel import map_spans
from expost._common.typing import FloatArray
from expost.data.blocks import SparseRows, SparseTable, Table
from expost.exceptions import DomainError
from expost.privacy.plan import row_radius

# More than the roundings in a row's norm and its product with a scale, not counting those of the sum.
ROUNDINGS = 8
# A scale this small has lost digits to underflow; the row becomes zero.
SMALLEST_SCALE = 1e-290
_EPS = np.finfo(np.float64).eps


class Design:
    r"""Rows scaled into the ball of radius ``norm``, with a constant 1 appended for the intercept.

    .. math:: \tilde x = \bigl(x \cdot \min(1, R/\|x\|),\; 1\bigr), \qquad
              \|\tilde x\|^2 \le R^2 + 1

    Blocks of rows are encoded as they are read, and no copy of the table is ever made. The same class
    encodes the curator's table and a reader's single record.

    Privacy
    -------
    Scaling is part of the mechanism: it prints nothing and never depends on other rows. The rows are private;
    ``dimension`` and ``radius`` are public. Scales are rounded down, so that no encoded row is longer than
    ``radius`` whatever the rounding of its norm.
    """

    def __init__(self, table: Table, *, norm: float, fit_intercept: bool) -> None:
        self.n_rows = table.n_rows
        self.dimension = table.n_features + fit_intercept
        self.radius = row_radius(norm, fit_intercept=fit_intercept)
        self.norm = norm
        self.intercept = fit_intercept
        self._table = table

    def scan(self) -> None:
        """Read every row once and raise DomainError for NaN or infinity, before the table is used."""

        def work(slices: list[slice]) -> None:
            for block in slices:
                _lengths(self._table.rows(block.start, block.stop))

        map_spans(self.n_rows, self._table.n_features, work)

    def blocks(self, slices: list[slice]) -> Iterator[tuple[slice, FloatArray]]:
        """Encoded rows, block by block, in a buffer that the next block overwrites.

        Every pass checks and scales what it reads: the caller can change the table in memory, and rows that
        changed since the last pass must stay inside the ball.
        """
        longest = max((block.stop - block.start for block in slices), default=0)
        buffer = np.ones((longest, self.dimension))
        for block in slices:
            raw = self._table.rows(block.start, block.stop)
            rows = buffer[: len(raw)]
            features = rows[:, :-1] if self.intercept else rows
            # Copied before it is measured: what is measured is then what is used, whoever writes to the
            # table.
            np.copyto(features, raw)
            scales = self._scales(_lengths(features))
            if np.any(scales < 1.0):
                features *= scales[:, None]
            yield block, rows

    @property
    def product_width(self) -> int:
        """How many numbers a row of :meth:`products` has, to cut the table into blocks by."""
        return self._table.stored_width + self.intercept

    def products(self, slices: list[slice]) -> Iterator[tuple[slice, FloatArray | SparseRows]]:
        """Encoded rows, block by block, for products with vectors only: sparse where the table is.

        They are those of :meth:`blocks` up to rounding.
        """
        if not isinstance(self._table, SparseTable):
            yield from self.blocks(slices)
            return
        for block in slices:
            features = self._table.sparse_rows(block.start, block.stop)
            scales = self._scales(_sparse_lengths(features))
            if np.any(scales < 1.0):
                features.data *= np.repeat(scales, np.diff(features.indptr))
            yield block, SparseRows(features, self.intercept)

    def _scales(self, lengths: FloatArray) -> FloatArray:
        # Larger than the rounding errors of norm and product, so that scaled rows stay inside the ball.
        margin = 1.0 + (self.dimension + ROUNDINGS) * _EPS
        with np.errstate(divide="ignore", over="ignore"):
            ratios: FloatArray = self.norm / (lengths * margin)
        ratios[ratios < SMALLEST_SCALE] = 0.0
        return np.minimum(1.0, ratios)


_NOT_FINITE = (
    "`X` must be finite; it contains NaN or infinity. Fill missing values with public constants, "
    "or leave such rows out, before fitting."
)


def _lengths(rows: NDArray[Any]) -> FloatArray:
    rows = np.asarray(rows, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        lengths: FloatArray = np.sqrt(np.vecdot(rows, rows))
    if np.all(np.isfinite(lengths)):
        return lengths
    if not np.all(np.isfinite(rows)):
        raise DomainError(_NOT_FINITE)
    # The squares overflowed: factor the largest entry out.
    largest: FloatArray = np.maximum(np.max(np.abs(rows), axis=1), 1.0)
    scaled = rows / largest[:, None]
    share: FloatArray = np.sqrt(np.vecdot(scaled, scaled))
    with np.errstate(over="ignore"):  # a row that is still too long is scaled to zero
        return largest * share


def _sparse_lengths(rows: Any) -> FloatArray:
    """The same for sparse rows, from the entries that are stored."""
    count = rows.shape[0]
    owner = np.repeat(np.arange(count), np.diff(rows.indptr))
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.bincount(owner, weights=rows.data * rows.data, minlength=count).astype(np.float64)
    if np.all(np.isfinite(squares)):
        return np.sqrt(squares)
    if not np.all(np.isfinite(rows.data)):
        raise DomainError(_NOT_FINITE)
    largest = np.ones(count)
    np.maximum.at(largest, owner, np.abs(rows.data))
    scaled = rows.data / largest[owner]
    share: FloatArray = np.sqrt(np.bincount(owner, weights=scaled * scaled, minlength=count))
    with np.errstate(over="ignore"):
        return largest * share
