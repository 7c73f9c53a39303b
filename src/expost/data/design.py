"""Rows inside the declared ball: measured, scaled, and with a constant for the intercept."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.sparse import issparse

from expost._common import kernels
from expost._common.machine import block_length
from expost._common.namespaces import is_foreign, namespace_of, on_host
from expost._common.typing import FloatArray
from expost.data.blocks import (
    Block,
    ColumnRows,
    RawBlock,
    SparseRows,
    as_dense,
    lie_by_columns,
    not_finite_error,
)
from expost.data.labels import Label, RowsLabel
from expost.data.people import IntArray
from expost.exceptions import DomainError
from expost.privacy.plan import row_radius

# More than the roundings in a row's norm and its product with a scale, not counting those of the sum.
ROUNDINGS = 8
# A scale this small has lost digits to underflow; the row becomes zero.
SMALLEST_SCALE = 1e-290
_EPS = np.finfo(np.float64).eps
NO_LABELS: FloatArray = np.empty(0)


def intercept_count(label: Label | None, *, fit_intercept: bool) -> int:
    """How many coefficients of a model are intercepts, which come last: one for each row of a record."""
    return label.places if isinstance(label, RowsLabel) else int(fit_intercept)


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
    indicators: int = field(default=0, kw_only=True)
    """How many of the columns are indicators, one of which is 1 in every row in the place of an intercept."""
    in_ball: ClassVar[bool] = True
    """Whether rows are scaled into a ball; others are brought into another set."""

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

    def numbers_held(self, width: int) -> int:
        """How many numbers such a pass holds for each row."""
        return width

    def dense(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Encoded rows, block by block, in a buffer with contiguous rows that the next block overwrites.

        Every pass checks and scales what it reads: the caller can change the table in memory.
        """
        return self._copied(blocks, "C")

    def alone(self, rows: Any) -> FloatArray:
        """Encoded rows in which nothing depends on the rows around one, nor on where they lie.

        Those of :meth:`dense` up to rounding. A device can measure a row by how many are beside it.
        """
        here = on_host(rows) if is_foreign(rows) else as_dense(rows)
        features = np.array(here, dtype=np.float64, order="C")
        features *= self.scales(long_lengths(features))[:, None]
        return np.column_stack([features, np.ones(len(features))]) if self.intercept else features

    def raw(self, blocks: Iterator[Block]) -> Iterator[RawBlock]:
        """Rows as they lie in the table, which compiled kernels copy, check and scale by themselves."""
        return map(self.as_it_lies, blocks)

    def as_it_lies(self, block: Block, order: IntArray | None = None) -> RawBlock:
        """A block of a table for compiled kernels, or its rows at some places."""
        return RawBlock(
            block,
            order=order,
            norm=self.norm,
            margin=self.margin,
            smallest_scale=SMALLEST_SCALE,
            intercept=self.intercept,
        )

    def products(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Encoded rows, block by block, for products with vectors only, in the source's layout.

        Sparse where the source is, with contiguous columns where it has them; :meth:`dense` up to rounding.
        """
        for block in blocks:
            features, sparse = block.X, issparse(block.X)
            if not sparse:
                yield from self._copied(chain([block], blocks), "F" if lie_by_columns(features) else "C")
                return
            scales = self.scales(_sparse_lengths(features))
            if np.any(scales < 1.0):
                features.data *= np.repeat(scales, np.diff(features.indptr))
            yield block._replace(X=SparseRows(features, self.intercept))

    def _copied(self, blocks: Iterator[Block], order: Literal["C", "F"]) -> Iterator[Block]:
        buffer = np.empty((0, self.dimension))
        compiled = kernels.library() if order == "C" else None
        for block in blocks:
            raw = block.X
            count = raw.shape[0]
            if len(buffer) < count:
                buffer = np.ones((count, self.dimension), order=order)
            rows = buffer[:count]
            if compiled is not None:  # so that every pass sees the same numbers, compiled or not
                self.as_it_lies(block).run(compiled.kernels.encode, rows)
                yield block._replace(X=rows)
                continue
            features = rows[:, :-1] if self.intercept else rows
            # Copied before it is measured: what is measured is used, whoever writes to the table. Columns go
            # into rows all at once: one by one takes longer.
            if isinstance(raw, ColumnRows) and order == "F":
                raw.copy_to(features)
            else:
                np.copyto(features, as_dense(raw))
            scales = self.scales(_lengths(features))
            if np.any(scales < 1.0):
                # The whole rows, which lie in one piece: twice as fast as all columns but the last.
                rows *= scales[:, None]
                if self.intercept:
                    rows[:, -1] = 1.0
            yield block._replace(X=rows)

    @property
    def margin(self) -> float:
        """Larger than the rounding errors of norm and product, so that scaled rows stay inside the ball."""
        return 1.0 + (self.dimension + ROUNDINGS) * float(_EPS)

    def holds(self, length: float) -> bool:
        """Whether rows of this norm, as computed, are not scaled."""
        return length * self.margin <= self.norm

    def scales(self, lengths: Any) -> Any:
        """What rows of these norms, as computed, are multiplied with."""
        xp = namespace_of(lengths)
        with np.errstate(divide="ignore", over="ignore"):
            ratios = self.norm / (lengths * self.margin)
        ratios = xp.where(ratios < SMALLEST_SCALE, xp.zeros_like(ratios), ratios)
        return xp.where(ratios < 1.0, ratios, xp.ones_like(ratios))


def check_finite(rows: Any) -> None:
    """Raise DomainError for NaN or infinity in rows as a source has them."""
    compiled = kernels.library()
    if compiled is not None:
        Design(rows.shape[1], 1.0, False).as_it_lies(Block(rows, NO_LABELS, None)).run(compiled.kernels.scan)
        return
    if issparse(rows):
        _sparse_lengths(rows)
        return
    for cells in rows.columns if isinstance(rows, ColumnRows) else (rows,):
        if cells.dtype.kind == "f" and not np.all(np.isfinite(cells)):
            raise not_finite_error()


def _lengths(rows: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        # Each is the faster one in its layout; the margin of the scales is above any order of summation.
        squares = np.einsum("ij,ij->i", rows, rows) if lie_by_columns(rows) else np.vecdot(rows, rows)
        lengths: FloatArray = np.sqrt(squares)
    if np.all(np.isfinite(lengths)):
        return lengths
    if not np.all(np.isfinite(rows)):
        raise not_finite_error()
    return np.asarray(long_lengths(rows))


def long_lengths(rows: Any) -> Any:
    """The norms of rows whose squares can overflow: the largest entry is factored out."""
    xp = namespace_of(rows)
    largest = xp.max(xp.abs(rows), axis=1)
    largest = xp.where(largest > 1.0, largest, xp.ones_like(largest))
    scaled = rows / largest[:, None]
    with np.errstate(over="ignore"):  # a row that is still too long is scaled to zero
        return largest * xp.sqrt(xp.sum(scaled * scaled, axis=1))


def _sparse_lengths(rows: Any) -> FloatArray:
    """The norms of sparse rows, from the entries that are stored."""
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
    with np.errstate(over="ignore"):
        return largest * np.sqrt(np.bincount(owner, weights=scaled * scaled, minlength=count))


def labels_error(loss: Any, advice: str = "") -> DomainError:
    """The error for labels that a loss does not accept; the caller raises it."""
    refusal = f"`y` has labels outside {loss.labels}, the set that {type(loss).__name__} accepts."
    return DomainError(f"{refusal} {advice}".rstrip())
