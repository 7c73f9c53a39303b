"""Where rows come from, block by block: tables in memory and other sources, and the check of all records."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Generic, Self, TypeVar

from expost._common import kernels
from expost._common.machine import SPAN, spans, whole_chunks
from expost._common.namespaces import Space, namespace_of
from expost._common.progress import Watch
from expost._common.typing import FloatArray
from expost.data.blocks import ArrayTable, Block, Table, part_of
from expost.data.design import NO_LABELS, Design, check_finite, labels_error
from expost.data.people import People, times_shares
from expost.engines.base import Engine, Kernel, Part, Pass
from expost.exceptions import DomainError
from expost.losses import AnyLoss, LabelSet


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
