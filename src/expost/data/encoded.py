"""Encoded records: a source of rows, how they are scaled, and where passes over them are run."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np

from expost._common.namespaces import Space
from expost._common.progress import Watch
from expost._common.typing import FloatArray
from expost.data.blocks import Block
from expost.data.design import Design
from expost.data.placed import PlacedSource
from expost.data.scan import Scan
from expost.data.source import ArraySource, Source, Watched
from expost.data.streamed import Sent, sent_as_it_is, sent_length
from expost.engines.base import Engine, Kernel, Pass
from expost.engines.local import LOCAL, LocalEngine
from expost.losses import AnyLoss

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False, repr=False)
class Encoded:
    """Encoded rows with labels that the loss accepts, and their weights; as private as the records."""

    source: Source
    design: Design
    engine: Engine = LOCAL
    device: Space | None = None
    """Where rows are sent to be worked on, if they are."""
    on_host: bool = False
    """Whether kernels are run on the host, wherever the rows lie."""
    checked: bool = False
    """Whether all rows were read and found good."""
    weights_at_most: bool = False
    """Whether records may have had any weight up to the one that stands here, because nobody knows it."""
    watch: Watch | None = None
    """Is told how far each pass has come."""

    @property
    def n_rows(self) -> int:
        """The number of rows; private."""
        assert self.source.n_rows is not None, "rows are counted when they are checked"
        return self.source.n_rows

    @property
    def in_memory(self) -> bool:
        """Whether numbers beside the rows can be held as the rows are."""
        return isinstance(self.source, ArraySource | PlacedSource)

    @property
    def space(self) -> Space | None:
        """Where the rows lie, if that is another library or device than NumPy's."""
        return self.source.space if isinstance(self.source, PlacedSource) else None

    @property
    def kernels_in(self) -> Space | None:
        """Where kernels are run, if that is not here: where the rows lie, or where they are sent."""
        return None if self.on_host else self.space or self.device

    @property
    def product_width(self) -> int:
        """How many numbers a row has in a pass of products with vectors."""
        return self.source.stored_width + self.design.intercept

    def labelled(self, labels: FloatArray, weights: FloatArray | None = None) -> Self:
        """The same rows, in memory, with labels and weights."""
        if isinstance(self.source, PlacedSource):
            return replace(self, source=self.source.labelled(labels, weights))
        assert isinstance(self.source, ArraySource)
        return replace(self, source=replace(self.source, labels=labels, weights=weights))

    def scanned(self, loss: AnyLoss, max_weight: float) -> Self:
        """Read every row once, before the table is used, or raise DomainError; see :class:`Scan`."""
        if self.checked:
            return self
        source = self.source.scanned(Scan(loss, max_weight), self.engine, self.watch)
        return replace(self, source=source, checked=True)

    def thinned(self, every: int) -> Self:
        """Each ``every``-th block of the rows, in dense blocks; :attr:`n_rows` is that of all where known."""
        return replace(self, source=self.source.thinned(every), engine=LOCAL, watch=None)

    def sweep(
        self,
        work: Pass[Block, Result],
        *,
        width: int | None = None,
        products: bool = False,
    ) -> Iterator[Result]:
        """Run a pass over the encoded rows; one result for each part, in their order.

        Parameters
        ----------
        work
            The pass. Rows are doubles, the intercept's column included, and contiguous; for products they may
            lie by columns.
        width
            How many numbers the pass takes of each row, by which parts and blocks are cut; by default those
            that the row has.
        products
            Whether rows are for products with vectors only: sparse where the source is.

        Notes
        -----
        A :class:`~expost.engines.base.Kernel` is run where the rows lie, if that is not here, with
        :class:`~expost.data.rows.DenseRows`; or where they are sent.
        """
        if width is None:
            width = self.product_width if products else self.design.dimension
        there = self.kernels_in if isinstance(work, Kernel) else None
        if isinstance(self.source, PlacedSource) and there is not None:
            return self._in_place(self.source, work)
        length, parts = self.design.block_length(width), None
        if there is not None:
            assert isinstance(work, Kernel)
            length, products = sent_length(width), False
            if sent_as_it_is(self.source):
                work, parts = Sent(work, there, self.design), self.source.parts(width)
            else:
                work = Sent(work, there)
        if parts is None:
            parts = self.source.encoded_parts(self.design, width, products=products)
        if self.watch is not None:
            self.watch.begin(self.source.n_rows)
            if isinstance(self.engine, LocalEngine):  # elsewhere rows are read where nobody watches
                parts = [Watched(part, self.watch) for part in parts]
        return self.source.run(self.engine, work, parts, length)

    def _in_place(self, source: PlacedSource, work: Any) -> Iterator[Result]:
        for part in source.parts(self.design.dimension):
            # NumPy can be beneath another library, whose warnings would name rows.
            with np.errstate(all="ignore"):
                found = work(iter((part.encoded(self.design),)), source.space)
            yield found
