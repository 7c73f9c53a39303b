"""Encoded records: rows scaled into the ball, labels that the loss accepts, and where passes are run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from expost._common.namespaces import Space, is_foreign, on_host
from expost._common.progress import Watch
from expost._common.typing import FloatArray
from expost.data.blocks import Block
from expost.data.columns import RecordReader, reader_of
from expost.data.design import Design
from expost.data.domain import Domain
from expost.data.features import NumberLabel
from expost.data.labels import encode_labels
from expost.data.lazy import LazyTable
from expost.data.lazy_source import LazySource
from expost.data.open_lazy import as_lazy
from expost.data.placed import PlacedSource, Sent, sent_as_it_is, sent_length, space_of, table_of
from expost.data.source import ArraySource, Scan, Source, Watched
from expost.data.tables import open_table
from expost.data.weights import UNWEIGHTED, Weighting
from expost.engines.base import LOCAL, Engine, Kernel, LocalEngine, Pass
from expost.exceptions import DomainError
from expost.losses import AnyLoss
from expost.privacy.plan import Plan

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


def encode_records(
    X: Any,
    y: Any,
    plan: Plan,
    *,
    classes: Sequence[Any] | NDArray[Any] | None,
    domain: Domain | None = None,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    weighting: Weighting = UNWEIGHTED,
    sample_weight: Any = None,
    outcome: NumberLabel | None = None,
) -> Encoded:
    """Open a table, scale its rows into the ball and encode its labels and weights.

    Parameters
    ----------
    X, y
        Records and labels, in the units of the fit. Or files (:func:`expost.scan`), which have the labels in
        a column: the one that the domain declares, or the one that ``y`` names, or the last.
    plan
        What the fit was planned for: its loss, the norm of its rows, its intercept.
    classes
        The declared classes in the order of the loss's labels; None where labels are numbers.
    domain
        What is publicly known about a record, where it was declared.
    n_features, feature_names
        The columns of the fit, to be checked, where there is no domain.
    weighting, sample_weight
        What was declared about weights, and the sample weight of each record where there are any; of files
        the name of its column.
    outcome
        The declared bounds of a numeric outcome, where there is no domain.

    Privacy
    -------
    The result is as private as the records. An error names declared values only: never a row, a value
    or a count.
    """
    lazy = as_lazy(X, domain)
    if lazy is not None:
        return encode_lazy(
            lazy,
            y,
            plan,
            classes=classes,
            domain=domain,
            n_features=n_features,
            feature_names=feature_names,
            weighting=weighting,
            sample_weight=sample_weight,
            outcome=outcome,
        )
    rows = encode_rows(X, plan, domain=domain, n_features=n_features, feature_names=feature_names)
    return with_labels(
        rows,
        y,
        plan,
        classes=classes,
        domain=domain,
        weighting=weighting,
        sample_weight=sample_weight,
        outcome=outcome,
    )


def encode_rows(
    X: Any,
    plan: Plan,
    *,
    domain: Domain | None = None,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
) -> Encoded:
    """Open a table and scale its rows into the ball, as :func:`encode_records` does, without labels."""
    lazy = as_lazy(X, domain)
    if lazy is not None:
        names = feature_names if domain is None else None
        reader = reader_of(
            lazy, domain=domain, loss=plan.loss, classes=None, labelled=False, feature_names=names
        )
        return _from_lazy(lazy, reader, plan, n_features)
    source = open_source(X, domain)
    if domain is None and n_features is not None and source.n_features != n_features:
        raise DomainError(f"`X` must have {n_features} features, as in the fit; got {source.n_features}.")
    table = table_of(X)
    named = domain is None and feature_names is not None and nw.dependencies.is_into_dataframe(table)
    if named and nw.from_native(table, eager_only=True).columns != list(feature_names or ()):
        raise DomainError("`X` must have the columns `feature_names`, in that order; rename or reorder them.")
    design = Design(source.n_features, plan.norm, plan.fit_intercept)
    return Encoded(source, design, device=space_of(X))


def open_source(X: Any, domain: Domain | None) -> Source:
    """A table in memory, here or on a device, as a source of rows; see :func:`open_table`."""
    if domain is None and is_foreign(X):
        return PlacedSource.of(X)
    return ArraySource(open_table(table_of(X), domain))


def with_labels(
    rows: Encoded,
    y: Any,
    plan: Plan,
    *,
    classes: Sequence[Any] | NDArray[Any] | None,
    domain: Domain | None = None,
    weighting: Weighting = UNWEIGHTED,
    sample_weight: Any = None,
    outcome: NumberLabel | None = None,
) -> Encoded:
    """Add labels, encoded for the plan's loss, and weights to encoded rows."""
    label = outcome if domain is None else domain.label
    labels = encode_labels(y, loss=plan.loss, classes=classes, rows=rows.n_rows, label=label)
    if domain is not None:
        labels = on_host(labels)  # where the rows that it encodes are
    return rows.labelled(labels, weighting.of(sample_weight, labels, plan.loss))


def encode_lazy(
    table: LazyTable,
    y: Any,
    plan: Plan,
    *,
    classes: Sequence[Any] | NDArray[Any] | None,
    domain: Domain | None = None,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    weighting: Weighting = UNWEIGHTED,
    sample_weight: Any = None,
    outcome: NumberLabel | None = None,
) -> Encoded:
    """Encode the records of a lazy table, block by block as they are read; see :func:`encode_records`."""
    check_column_names(y, sample_weight)
    if domain is not None and y is not None and y != domain.label.name:
        raise DomainError(
            f"with a domain, `y` must be None or the name of its outcome, {domain.label.name!r}; got {y!r}."
        )
    reader = reader_of(
        table,
        domain=domain,
        loss=plan.loss,
        classes=classes,
        labelled=True,
        label=y,
        feature_names=feature_names if domain is None else None,
        weight=sample_weight,
        weighting=weighting,
        outcome=outcome,
    )
    return _from_lazy(table, reader, plan, n_features)


def check_column_names(y: Any, sample_weight: Any) -> None:
    """Refuse labels or weights of a lazy table that are not names of its columns."""
    for name, given in (("y", y), ("sample_weight", sample_weight)):
        if given is not None and not isinstance(given, str):
            raise DomainError(
                f"with files or a Dask frame, `{name}` must be the name of a column or None; got something "
                "else. (With a Dask frame it may be a Dask Series.)"
            )


def _from_lazy(table: LazyTable, reader: RecordReader, plan: Plan, n_features: int | None) -> Encoded:
    if n_features is not None and reader.n_features != n_features:
        raise DomainError(f"`X` must have {n_features} features, as in the fit; got {reader.n_features}.")
    source = LazySource(reader, tuple(table.pieces()))
    design = Design(source.n_features, plan.norm, plan.fit_intercept)
    return Encoded(source, design, table.engine, table.device)
