"""Rows inside the declared ball, and the sources that they are read from, block by block."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

import numpy as np
from scipy.sparse import issparse

from expost._common import kernels
from expost._common.machine import SPAN, block_length, spans, whole_chunks
from expost._common.namespaces import Space, is_foreign, namespace_of, on_host
from expost._common.progress import Watch
from expost._common.typing import FloatArray
from expost.data.blocks import (
    ArrayTable,
    Block,
    ColumnRows,
    RawBlock,
    SparseRows,
    Table,
    as_dense,
    lie_by_columns,
    not_finite_error,
    part_of,
)
from expost.data.labels import Label, RowsLabel
from expost.data.people import IntArray, People, times_shares
from expost.engines.base import Engine, Kernel, Part, Pass
from expost.exceptions import DomainError
from expost.losses import AnyLoss, LabelSet
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


Result = TypeVar("Result")


@dataclass(frozen=True, eq=False, repr=False)
class OnRawRows(Generic[Result]):
    """The pass that runs the compiled twin of a kernel on rows as they lie.

    Where a worker of a cluster has no compiled kernels, it encodes the rows for the kernel itself.
    """

    kernel: Kernel[Result]
    design: Design

    def __call__(self, blocks: Iterator[Block]) -> Result:
        """What the kernel finds."""
        if kernels.library() is None:
            return self.kernel(self.design.dense(blocks))
        return self.kernel.compiled(self.design.raw(blocks))


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


@dataclass(frozen=True)
class RecordCheck:
    """The pass that counts rows and refuses NaN, infinity, and labels and weights outside of their sets."""

    loss: AnyLoss
    max_weight: float
    labels: LabelSet | None = None
    """Those that records have, where they are not the loss's own."""

    def __call__(self, blocks: Iterator[Block]) -> int:
        """The number of rows."""
        rows = 0
        for block in blocks:
            check_finite(block.X)
            self.check_labels(block.y, block.weights)
            rows += block.X.shape[0]
        return rows

    def check_labels(self, y: FloatArray, weights: FloatArray | None) -> None:
        """Raise DomainError for labels or weights that are refused."""
        xp = namespace_of(y)
        if not bool(xp.all((self.labels or self.loss.labels).contains(y))):
            raise labels_error(self.loss, "Recode them.")
        if weights is not None and not bool(xp.all((weights >= 0.0) & (weights <= self.max_weight))):
            raise DomainError(f"weights must be from 0 to the plan's max_weight={self.max_weight:g}.")


class Source(ABC):
    """Where rows come from, with their labels and weights; private, but for the number of features."""

    in_memory: ClassVar[bool] = True
    """Whether numbers that belong to the rows can be held as the rows are."""
    space: Space | None = None
    """Where the rows lie, if that is another library or device than NumPy's."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number of columns; public."""

    @property
    @abstractmethod
    def n_rows(self) -> int | None:
        """The number of rows; None where it is known only once all of them were read."""

    @property
    def stored_width(self) -> int:
        """How many numbers are stored of a row, on average; at least one."""
        return self.n_features

    def labelled(self, labels: Any, weights: Any) -> "Source":
        """The rows with labels and weights, where they are in memory."""
        raise TypeError("rows that are read in every pass have their own labels")

    def with_people(self, people: People, shares: FloatArray | None) -> "Source":
        """The rows with the numbers of their people, and weights that are multiplied with ``shares``."""
        raise TypeError("these rows belong to nobody")

    def raw_length(self, length: int) -> int:
        """The rows of a block that is read as it lies, where one that is encoded has ``length``."""
        return whole_chunks(length)

    @abstractmethod
    def parts(self, width: int) -> Sequence[Part[Block]]:
        """The parts, one at least, for a pass that takes ``width`` numbers of each row; summed in order."""

    def encoded_parts(self, design: Design, width: int, *, products: bool) -> Sequence[Part[Block]]:
        """Parts whose rows are encoded as they are read, on the host; see :meth:`Design.products`."""
        return [DesignPart(part, design, products) for part in self.parts(width)]

    def run(
        self, engine: Engine, work: Pass[Block, Result], parts: Sequence[Part[Block]], length: int
    ) -> Iterator[Result]:
        """Run a pass on parts of this source, with blocks of at most ``length`` rows; results in order."""
        return engine.map(work, parts, length)

    @abstractmethod
    def thinned(self, every: int) -> "Source":
        """About each ``every``-th row, or fewer, for warm starts; the same ones in every pass."""

    @abstractmethod
    def checked(self, check: RecordCheck, engine: Engine, watch: Watch | None = None) -> "Source":
        """Check labels and weights, and rows that are not in memory, of which every pass checks its own.

        The result is the source to read from then on, whose number of rows is known.
        """


@dataclass(frozen=True, eq=False, repr=False)
class ArraySource(Source):
    """A table in memory, with one label and one weight per row where there are any."""

    table: Table
    labels: FloatArray | None = None
    weights: FloatArray | None = None
    people: Any = None
    """The number of each row's person, where that is known."""
    every: int = 1
    """Only each block of a span is read whose number is a multiple of it."""
    edges: tuple[int, ...] | None = None
    """Where spans begin and end, where that is not as :func:`~expost._common.machine.spans` has it."""
    sample: "ArraySource | None" = None
    """Some of the rows, for warm starts; by default some blocks of each span."""

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return self.table.n_features

    @property
    def n_rows(self) -> int:
        """The number of rows, those that are left out included."""
        return self.table.n_rows

    @property
    def stored_width(self) -> int:
        """As the table has it."""
        return self.table.stored_width

    def labelled(self, labels: Any, weights: Any) -> Self:
        """The rows with labels and weights."""
        return replace(self, labels=labels, weights=weights)

    def with_people(self, people: People, shares: FloatArray | None) -> Self:
        """The rows with the numbers of their people, and other weights."""
        return replace(self, people=people.codes, weights=times_shares(self.weights, shares))

    def raw_length(self, length: int) -> int:
        """All rows of a span that are read, where they are a view."""
        return SPAN if isinstance(self.table, ArrayTable) else whole_chunks(length)

    def parts(self, width: int) -> list["_Span"]:
        """The spans."""
        pairs = spans(self.n_rows, width, self.every) if self.edges is None else pairwise(self.edges)
        return [_Span(self, start, stop) for start, stop in pairs]

    def thinned(self, every: int) -> "ArraySource":
        """Steps over blocks of the table: what is left out is not read."""
        if self.sample is not None:
            return self.sample.standing_for(self.n_rows, every)
        return replace(self, every=every)

    def standing_for(self, rows: int, every: int) -> Self:
        """A sample of a table with ``rows`` rows, as if each ``every``-th of all of them were read."""
        return replace(self, every=max(1, every * self.n_rows // rows))

    def checked(self, check: RecordCheck, engine: Engine, watch: Watch | None = None) -> Self:
        """Check labels and weights, in this thread: several would wait for each other for longer."""
        labels = NO_LABELS if self.labels is None else self.labels
        for start in range(0, self.n_rows, SPAN):
            some = slice(start, start + SPAN)
            check.check_labels(labels[some], part_of(self.weights, some))
        return self


@dataclass(frozen=True, eq=False, repr=False)
class _Span:
    """Rows ``start`` to ``stop`` of a table in memory."""

    source: ArraySource
    start: int
    stop: int

    def blocks(self, length: int) -> Iterator[Block]:
        table, labels, weights = self.source.table, self.source.labels, self.source.weights
        every = self.source.every
        length = min(length, whole_chunks(-(-(self.stop - self.start) // every)))
        for low in range(self.start, self.stop, length * every):
            here = slice(low, min(low + length, self.stop))
            y = NO_LABELS if labels is None else labels[here]
            people = part_of(self.source.people, here)
            yield Block(table.rows(low, here.stop), y, part_of(weights, here), people)


@dataclass(frozen=True, eq=False, repr=False)
class Watched:
    """A part whose rows are counted as they are read, in this process."""

    part: Part[Block]
    watch: Watch

    def blocks(self, length: int) -> Iterator[Block]:
        """The rows as they are."""
        for block in self.part.blocks(length):
            yield block
            self.watch.seen(block.X.shape[0] if hasattr(block.X, "shape") else len(block.X))
