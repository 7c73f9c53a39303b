"""The design matrix: finite rows inside the declared ball, with the intercept."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np

from expost._common.machine import block_length
from expost._common.typing import FloatArray
from expost.data.blocks import Block, ColumnRows, SparseRows, as_dense, is_sparse, lie_by_columns
from expost.engines.base import Part
from expost.exceptions import DomainError
from expost.privacy.plan import row_radius

# More than the roundings in a row's norm and its product with a scale, not counting those of the sum.
ROUNDINGS = 8
# A scale this small has lost digits to underflow; the row becomes zero.
SMALLEST_SCALE = 1e-290
_EPS = np.finfo(np.float64).eps


@dataclass(frozen=True)
class Design:
    r"""Rows scaled into the ball of radius ``norm``, with a constant 1 appended for the intercept.

    .. math:: \tilde x = \bigl(x \cdot \min(1, R/\|x\|),\; 1\bigr), \qquad
              \|\tilde x\|^2 \le R^2 + 1

    Blocks of rows are encoded as they are read, and no copy of the table is ever made. The same class
    encodes the curator's table and a reader's single record.

    Privacy
    -------
    Public. Scaling is part of the mechanism: it prints nothing and never depends on other rows. Scales are
    rounded down, so that no encoded row is longer than ``radius`` whatever the rounding of its norm.
    """

    n_features: int
    norm: float
    intercept: bool

    @property
    def dimension(self) -> int:
        """The number of columns of an encoded row."""
        return self.n_features + self.intercept

    @property
    def radius(self) -> float:
        """No encoded row is longer than this."""
        return row_radius(self.norm, fit_intercept=self.intercept)

    def block_length(self, width: int) -> int:
        """The rows of a block, for a pass that takes ``width`` numbers of each."""
        return block_length(width)

    def block_numbers(self, width: int) -> int:
        """How many numbers such a pass takes of a whole block."""
        return self.block_length(width) * width

    def dense(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Encoded rows, block by block, in a buffer with contiguous rows that the next block overwrites.

        Every pass checks and scales what it reads: the caller can change the table in memory, and rows that
        changed since the last pass must stay inside the ball.
        """
        return self._copied(blocks, "C")

    def products(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Encoded rows, block by block, for products with vectors only, in the source's layout.

        Sparse where the source is, and with contiguous columns where it has them. They are those of
        :meth:`dense` up to rounding.
        """
        for block in blocks:
            if not is_sparse(block.X):
                yield from self._copied(chain([block], blocks), "F" if lie_by_columns(block.X) else "C")
                return
            features = block.X
            scales = self._scales(_sparse_lengths(features))
            if np.any(scales < 1.0):
                features.data *= np.repeat(scales, np.diff(features.indptr))
            yield block._replace(X=SparseRows(features, self.intercept))

    def _copied(self, blocks: Iterator[Block], order: Literal["C", "F"]) -> Iterator[Block]:
        buffer, aside = np.empty((0, self.dimension)), np.empty((0, self.n_features))
        for raw, y, weights in blocks:
            count = raw.shape[0]
            if len(buffer) < count:
                buffer = np.ones((count, self.dimension), order=order)
            rows = buffer[:count]
            features = rows[:, :-1] if self.intercept else rows
            # Copied before it is measured: what is measured is then what is used, whoever writes to the
            # table.
            if isinstance(raw, ColumnRows) and order == "C":
                # Column by column, then turned at once: to write columns into rows takes longer.
                if len(aside) < count:
                    aside = np.empty((count, self.n_features), order="F")
                raw.copy_to(aside[:count])
                np.copyto(features, aside[:count])
            elif isinstance(raw, ColumnRows):
                raw.copy_to(features)
            else:
                np.copyto(features, as_dense(raw))
            scales = self._scales(_lengths(features))
            if np.any(scales < 1.0):
                # The whole rows, which lie in one piece: twice as fast as all columns but the last.
                rows *= scales[:, None]
                if self.intercept:
                    rows[:, -1] = 1.0
            yield Block(rows, y, weights)

    @property
    def margin(self) -> float:
        """Larger than the rounding errors of norm and product, so that scaled rows stay inside the ball."""
        return 1.0 + (self.dimension + ROUNDINGS) * float(_EPS)

    def holds(self, length: float) -> bool:
        """Whether rows of this norm, as computed, are not scaled."""
        return length * self.margin <= self.norm

    def _scales(self, lengths: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", over="ignore"):
            ratios: FloatArray = self.norm / (lengths * self.margin)
        ratios[ratios < SMALLEST_SCALE] = 0.0
        return np.minimum(1.0, ratios)


@dataclass(frozen=True, eq=False, repr=False)
class DesignPart:
    """A part of a source whose rows are encoded as they are read; private."""

    part: Part[Block]
    design: Design
    products: bool = False
    """Whether rows are for products with vectors only."""

    def blocks(self, length: int) -> Iterator[Block]:
        """The encoded rows with their labels and weights."""
        raw = self.part.blocks(length)
        return self.design.products(raw) if self.products else self.design.dense(raw)


def check_finite(rows: Any) -> None:
    """Raise DomainError for NaN or infinity in rows as a source has them."""
    if is_sparse(rows):
        _sparse_lengths(rows)
        return
    for cells in rows.columns if isinstance(rows, ColumnRows) else (rows,):
        if cells.dtype.kind == "f" and not np.all(np.isfinite(cells)):
            raise not_finite_error()


def not_finite_error() -> DomainError:
    """The error for rows with NaN or infinity; the caller raises it."""
    return DomainError(
        "`X` must be finite; it contains NaN or infinity. Fill missing values with public constants, "
        "or leave such rows out, before fitting."
    )


def _lengths(rows: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        # Each is the faster one in its layout; the margin of the scales is above any order of summation.
        squares = np.einsum("ij,ij->i", rows, rows) if lie_by_columns(rows) else np.vecdot(rows, rows)
        lengths: FloatArray = np.sqrt(squares)
    if np.all(np.isfinite(lengths)):
        return lengths
    if not np.all(np.isfinite(rows)):
        raise not_finite_error()
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
        raise not_finite_error()
    largest = np.ones(count)
    np.maximum.at(largest, owner, np.abs(rows.data))
    scaled = rows.data / largest[owner]
    share: FloatArray = np.sqrt(np.bincount(owner, weights=scaled * scaled, minlength=count))
    with np.errstate(over="ignore"):
        return largest * share
