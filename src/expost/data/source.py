"""Sources of rows: parts in a fixed order, each read block by block, and checked before anything is drawn."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self, TypeVar

import numpy as np

from expost._common.machine import block_length, spans
from expost._common.namespaces import namespace_of
from expost._common.progress import Watch
from expost._common.typing import FloatArray
from expost.data.blocks import Block, Table
from expost.data.design import Design, DesignPart, check_finite
from expost.engines.base import Engine, Part, Pass
from expost.exceptions import DomainError
from expost.losses import AnyLoss


@dataclass(frozen=True)
class Scan:
    """The pass that counts the rows and refuses what the mechanism was not made for.

    NaN and infinity, labels outside the loss's set, and weights outside ``[0, max_weight]``.
    """

    loss: AnyLoss
    max_weight: float

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
        if not bool(xp.all(self.loss.labels.contains(y))):
            raise DomainError(
                f"`y` has labels outside {self.loss.labels}, the set that {type(self.loss).__name__} "
                "accepts. Recode them."
            )
        if weights is not None and not bool(xp.all((weights >= 0.0) & (weights <= self.max_weight))):
            raise DomainError(f"weights must be from 0 to the plan's max_weight={self.max_weight:g}.")


Result = TypeVar("Result")

NO_LABELS: FloatArray = np.empty(0)


def check_rows(rows: int) -> None:
    """Raise DomainError where a table turned out to be empty."""
    if rows == 0:
        raise DomainError("the table must have at least one row; got an empty one.")


class Source(ABC):
    """Where rows come from, with their labels and weights.

    Privacy
    -------
    A source is private. Its number of features is public; its number of rows is not.
    """

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

    @abstractmethod
    def parts(self, width: int) -> Sequence[Part[Block]]:
        """The parts, for a pass that takes ``width`` numbers of each row; their order is that of the sums.

        There is one part at least.
        """

    def encoded_parts(self, design: Design, width: int, *, products: bool) -> Sequence[Part[Block]]:
        """The same with rows that are encoded as they are read, on the host; see :meth:`Design.products`."""
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
    def scanned(self, scan: Scan, engine: Engine, watch: Watch | None = None) -> "Source":
        """Check all rows; the source to read from then on, whose number of rows is known.

        Only rows that are not in memory take so long that ``watch`` is told of them.
        """


@dataclass(frozen=True, eq=False, repr=False)
class ArraySource(Source):
    """A table in memory, with one label and one weight per row where there are any.

    Cut into one span per thread.
    """

    table: Table
    labels: FloatArray | None = None
    weights: FloatArray | None = None
    every: int = 1
    """Only each so-manieth block of a span is read."""
    edges: tuple[int, ...] | None = None
    """Where spans begin and end; by default there is one per thread."""
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

    def parts(self, width: int) -> list["Span"]:
        """The spans."""
        pairs = spans(self.n_rows, width) if self.edges is None else pairwise(self.edges)
        return [Span(self, start, stop) for start, stop in pairs]

    def thinned(self, every: int) -> "ArraySource":
        """The same table with steps over blocks: what is left out is not read."""
        if self.sample is not None:
            return self.sample.standing_for(self.n_rows, every)
        return replace(self, every=every)

    def standing_for(self, rows: int, every: int) -> Self:
        """The same table, a sample of so many rows, as if each ``every``-th of all of them were read."""
        return replace(self, every=max(1, every * self.n_rows // rows))

    def scanned(self, scan: Scan, engine: Engine, watch: Watch | None = None) -> Self:
        """Check all rows."""
        width = self.n_features
        for _ in engine.map(scan, self.parts(width), block_length(width)):
            pass
        return self


@dataclass(frozen=True, eq=False, repr=False)
class Span:
    """Rows ``start`` to ``stop`` of a table in memory."""

    source: ArraySource
    start: int
    stop: int

    def blocks(self, length: int) -> Iterator[Block]:
        """The rows of the span, block by block, as they lie in the table."""
        table, labels, weights = self.source.table, self.source.labels, self.source.weights
        for low in range(self.start, self.stop, length * self.source.every):
            high = min(low + length, self.stop)
            yield Block(
                table.rows(low, high),
                NO_LABELS if labels is None else labels[low:high],
                None if weights is None else weights[low:high],
            )


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
