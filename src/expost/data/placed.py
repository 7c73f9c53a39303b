"""Tables that stay on their device, and their encoded rows there."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from expost._common.namespaces import Space, namespace_of, on_host
from expost._common.parallel import spans
from expost.data.blocks import Block
from expost.data.design import SMALLEST_SCALE, Design, not_finite_error
from expost.data.scan import Scan
from expost.data.source import NO_LABELS, Source
from expost.engines.base import Engine
from expost.exceptions import DomainError

R_co = TypeVar("R_co", covariant=True)

# A block on a device: enough numbers to keep it busy, at most this share of the table, so that what kernels
# hold beside the table stays below a quarter of it.
_NUMBERS, _SHARE, _LEAST_ROWS = 1 << 26, 32, 1 << 14
# Rows longer than this are scaled before they are multiplied, not after.
_LONG = 1e15
# Numbers that are copied to the host at a time.
_COPIED = 1 << 22


@dataclass(frozen=True, eq=False)
class PlacedRows:
    r"""A block of encoded rows on its device, :math:`\tilde x = (s x, 1)`, for products; private.

    Neither the scaled rows nor the column of ones is stored: a product with the rows as they lie is scaled.
    """

    space: Space
    stored: Any
    """The rows without the intercept, in the type in which the table has them."""
    wide: Any
    """The same as doubles."""
    lengths: Any
    """Their Euclidean norms."""
    scales: Any
    """What each row is multiplied with."""
    intercept: bool

    def __matmul__(self, right: Any) -> Any:
        """The inner product of each row with a vector, or with each column of a matrix."""
        scales = self.scales if right.ndim == 1 else self.scales[:, None]
        if not self.intercept:
            return scales * (self.wide @ right)
        return scales * (self.wide @ right[:-1, ...]) + right[-1, ...]

    def summed(self, weights: Any) -> Any:
        """The sum of the rows, each times its weight."""
        xp = self.space.xp
        total = (weights * self.scales) @ self.wide
        if not self.intercept:
            return total
        return xp.concat([total, xp.reshape(xp.sum(weights), (1,))])

    def gram(self, weights: Any, precision: Any) -> Any:
        """The sum of the squares of the rows, each times its weight, with products of the given precision."""
        xp = self.space.xp
        root = xp.sqrt(weights)
        square = xp.astype(self.stored, precision, copy=True)
        square *= xp.astype(root * self.scales, precision, copy=False)[:, None]
        total = xp.astype(square.T @ square, xp.float64, copy=False)
        if not self.intercept:
            return total
        border = xp.astype(xp.astype(root, precision, copy=False) @ square, xp.float64, copy=False)
        corner = xp.reshape(xp.sum(weights), (1, 1))
        return xp.concat(
            [xp.concat([total, border[:, None]], axis=1), xp.concat([border[None, :], corner], axis=1)]
        )

    @cached_property
    def squares(self) -> Any:
        """The squared norm of each encoded row."""
        length = self.scales * self.lengths
        return length * length + float(self.intercept)


@runtime_checkable
class Kernel(Protocol[R_co]):
    """A pass that can be run where the rows lie; any other gets them block by block on the host."""

    def in_place(self, blocks: Iterator[Block], space: Space) -> R_co:
        """What is found in the blocks, whose rows are :class:`PlacedRows`; sums come back as NumPy's."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class PlacedSource(Source):
    """A table of another library's, which stays where it is, with labels and weights beside it.

    As a source it has its rows on the host, copied as they are read. :meth:`placed` has them on the device.
    """

    matrix: Any
    space: Space
    labels: Any = None
    weights: Any = None

    @classmethod
    def of(cls, X: Any) -> Self:
        """Check what is public of a table: its shape, its type and its device."""
        if X.ndim != 2:
            raise DomainError(
                "`X` must be two-dimensional, one row per record. Reshape your data: X.reshape(1, -1) is one "
                "row."
            )
        matrix = X.detach() if hasattr(X, "detach") else X
        xp = namespace_of(matrix)
        if not xp.isdtype(matrix.dtype, ("bool", "integral", "real floating")):
            raise DomainError(f"`X` must hold real numbers; got dtype {matrix.dtype}.")
        if matrix.shape[1] == 0:
            raise DomainError("`X` has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
        if matrix.shape[0] == 0:
            raise DomainError("`X` must have at least one row; got an empty table.")
        return cls(matrix, Space.of(matrix))

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.matrix.shape[1])

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.matrix.shape[0])

    def labelled(self, labels: Any, weights: Any) -> Self:
        """The same rows with labels and weights, which are copied to the device once."""
        put = self.space.put
        return replace(self, labels=put(labels), weights=None if weights is None else put(weights))

    def thinned(self, every: int) -> Self:
        """Each ``every``-th row, as a view."""
        labels, weights = self.labels, self.weights
        return replace(
            self,
            matrix=self.matrix[::every, :],
            labels=None if labels is None else labels[::every],
            weights=None if weights is None else weights[::every],
        )

    def scanned(self, scan: Scan, engine: Engine) -> Self:
        """Check all rows where they lie."""
        with np.errstate(all="ignore"):
            scan(self._blocks(self._length(self.n_features), None))
        return self

    def parts(self, width: int) -> "list[HostSpan]":
        """Spans whose rows are copied to the host as they are read."""
        return [HostSpan(self, start, stop) for start, stop in spans(self.n_rows, width)]

    def placed(self, design: Design, width: int, beside: Any = None) -> Iterator[Block]:
        """Encoded rows on the device, in large blocks; ``beside`` takes the place of labels and weights.

        Every pass checks and scales what it reads, as :meth:`Design.dense` does.
        """
        for raw, y, weights in self._blocks(self._length(width), beside):
            yield Block(self._encoded(raw, design), y, weights)

    def _length(self, width: int) -> int:
        return max(_LEAST_ROWS, min(_NUMBERS // width, -(-self.n_rows // _SHARE)))

    def _blocks(self, length: int, beside: Any) -> Iterator[Block]:
        for low in range(0, self.n_rows, length):
            here = slice(low, min(low + length, self.n_rows))
            rows = self.matrix[here, :]
            if beside is not None:
                yield Block(rows, beside[here], None)
                continue
            weights = None if self.weights is None else self.weights[here]
            yield Block(rows, NO_LABELS if self.labels is None else self.labels[here], weights)

    def _encoded(self, raw: Any, design: Design) -> PlacedRows:
        xp = self.space.xp
        if xp.isdtype(raw.dtype, "bool"):
            raw = xp.astype(raw, xp.uint8)
        wide = xp.astype(raw, xp.float64, copy=False)
        lengths = xp.linalg.vector_norm(wide, axis=1)
        if bool(xp.all(lengths <= _LONG)):
            scales = _scales(lengths, design, xp)
            return PlacedRows(self.space, raw, wide, lengths, scales, design.intercept)
        if not bool(xp.all(xp.isfinite(wide))):
            raise not_finite_error()
        # Squares or products of such rows can overflow: factor the largest entry out, and scale the rows
        # themselves.
        largest = xp.max(xp.abs(wide), axis=1)
        largest = xp.where(largest > 1.0, largest, xp.ones_like(largest))
        lengths = largest * xp.linalg.vector_norm(wide / largest[:, None], axis=1)
        wide = wide * _scales(lengths, design, xp)[:, None]
        lengths = xp.linalg.vector_norm(wide, axis=1)
        return PlacedRows(self.space, wide, wide, lengths, xp.ones_like(lengths), design.intercept)


def _scales(lengths: Any, design: Design, xp: Any) -> Any:
    """As :class:`Design` has them."""
    ratios = design.norm / (lengths * design.margin)
    ratios = xp.where(ratios < SMALLEST_SCALE, xp.zeros_like(ratios), ratios)
    return xp.where(ratios < 1.0, ratios, xp.ones_like(ratios))


@dataclass(frozen=True, eq=False, repr=False)
class HostSpan:
    """Rows ``start`` to ``stop`` of a table on a device, copied to the host as they are read."""

    source: PlacedSource
    start: int
    stop: int

    def blocks(self, length: int) -> Iterator[Block]:
        """The rows of the span, block by block, copied many blocks at a time."""
        source, xp = self.source, self.source.space.xp
        together = max(1, _COPIED // (length * source.n_features)) * length
        for low in range(self.start, self.stop, together):
            here = slice(low, min(low + together, self.stop))
            rows = on_host(xp.astype(source.matrix[here, :], xp.float64, copy=False))
            labels = NO_LABELS if source.labels is None else on_host(source.labels[here])
            weights = None if source.weights is None else on_host(source.weights[here])
            for first in range(0, len(rows), length):
                block = slice(first, first + length)
                yield Block(rows[block], labels[block], None if weights is None else weights[block])
