"""From a table to encoded records: rows inside the ball, labels that the loss accepts, weights."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import narwhals.stable.v1 as nw
import numpy as np

from expost._common import kernels, namespaces
from expost._common.namespaces import Space, is_foreign
from expost._common.progress import Watch
from expost._common.typing import FloatArray
from expost.data.blocks import ArrayTable, Block
from expost.data.columns import reader_of
from expost.data.design import Design
from expost.data.domain import Domain
from expost.data.labels import RowsLabel
from expost.data.lazy import LazyTable
from expost.data.lazy_source import LazySource
from expost.data.people import ONE_PERSON, IntArray, People
from expost.data.placed import OnDevice, PlacedSource, sent_as_it_is, sent_length
from expost.data.sources import ArraySource, OnRawRows, RecordCheck, Source, Watched
from expost.data.spread import SpreadSource
from expost.data.tables import StreamedTable, as_lazy, open_table, table_of, with_columns
from expost.data.together import batches, by_person
from expost.data.values import attempted
from expost.data.weights import Declared, check_weights_covered
from expost.engines.base import LOCAL, Engine, Kernel, LocalEngine, Part, Pass
from expost.exceptions import DomainError, ParameterError
from expost.losses import AnyLoss, LabelSet

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
    weights_at_most: bool = False
    """Whether records may have had any weight up to the one that stands here, because nobody knows it."""
    watch: Watch | None = None
    people: People | None = None
    """Whose each row is, where figures are for people and not for rows."""
    accepted: LabelSet | None = None
    """The labels that records have, where they are not the loss's own."""

    @property
    def n_rows(self) -> int:
        """The number of rows; private."""
        assert self.source.n_rows is not None, "rows are counted when they are checked"
        return self.source.n_rows

    @property
    def in_memory(self) -> bool:
        """Whether numbers that belong to the rows can be held as the rows are."""
        return self.source.in_memory

    @property
    def whose(self) -> People | None:
        """Whose each row is, where that was said: not where each record is a person of her own."""
        return self.people if self.people is not None and self.people.named else None

    @property
    def kernels_in(self) -> Space | None:
        """Where kernels are run, if that is not here: where the rows lie, or where they are sent."""
        return None if self.on_host else self.source.space or self.device

    @property
    def product_width(self) -> int:
        """How many numbers a row has in a pass of products with vectors."""
        return self.source.stored_width + self.design.intercept

    def labelled(self, labels: FloatArray, weights: FloatArray | None = None) -> Self:
        """The rows, in memory, with labels and weights."""
        return replace(self, source=self.source.labelled(labels, weights))

    def checked_for(self, loss: AnyLoss, max_weight: float) -> Self:
        """Read every row once, before the table is used, or raise DomainError; see :class:`RecordCheck`."""
        if self.checked:
            return self
        check = RecordCheck(loss, max_weight, self.accepted)
        source = self.source.checked(check, self.engine, self.watch)
        return replace(self, source=source, checked=True)

    def thinned(self, every: int) -> Self:
        """Each ``every``-th block of the rows, in dense blocks; :attr:`n_rows` is that of all where known."""
        return replace(self, source=self.source.thinned(every), engine=LOCAL, watch=None)

    def sweep(
        self, work: Pass[Block, Result], *, width: int | None = None, products: bool = False
    ) -> Iterator[Result]:
        """Run a pass over the encoded rows; one result for each part, in their order.

        Rows are doubles, the intercept's column included, and contiguous. For ``products`` with vectors only
        they may lie by columns, or be sparse where the source is. Parts and blocks are cut by ``width``, the
        numbers that the pass takes of each row. A :class:`~expost.engines.base.Kernel` is run where the rows
        lie, if that is not here, with :class:`~expost.data.rows.DenseRows`; or where they are sent. Here its
        compiled twin is run instead, where it has one, on rows as they lie in the table.
        """
        if width is None:
            width = self.product_width if products else self.design.dimension
        space = self.kernels_in if isinstance(work, Kernel) else None
        if space is not None:
            return self._elsewhere(work, space, width)
        length = self.design.block_length(width)
        if isinstance(work, Kernel) and self._compiles(work, products=products):
            compiled = OnRawRows(work, self.design)
            return self._run(compiled, self.source.parts(width), self.source.raw_length(length))
        return self._run(work, self.source.encoded_parts(self.design, width, products=products), length)

    def sweep_raw(self, work: Pass[Block, Result]) -> Iterator[Result]:
        """Run a pass over the rows as they lie in the table; one result for each part, in their order."""
        width = self.design.dimension
        return self._run(work, self.source.parts(width), self.design.block_length(width))

    def _elsewhere(self, work: Any, space: Space, width: int) -> Iterator[Any]:
        """Run a kernel where the rows lie, or where they are sent."""
        source, design = self.source, self.design
        if isinstance(source, PlacedSource):
            return self._in_place(source, work)
        if sent_as_it_is(source):
            return self._run(OnDevice(work, space, design), source.parts(width), sent_length(width))
        parts = source.encoded_parts(design, width, products=False)
        return self._run(OnDevice(work, space, None), parts, sent_length(width))

    def _run(self, work: Pass[Block, Result], parts: Sequence[Part[Block]], length: int) -> Iterator[Result]:
        if self.watch is not None:
            self.watch.begin(self.source.n_rows)
            if isinstance(self.engine, LocalEngine):  # elsewhere rows are read where nobody watches
                parts = [Watched(part, self.watch) for part in parts]
        return self.source.run(self.engine, work, parts, length)

    def changed(self, member: Any) -> Self:
        """The rows of people of whom some leave the table, where ``member`` is true, and others enter it."""
        leaves = attempted(lambda: np.asarray(namespaces.on_host(member)))
        if leaves is None or leaves.dtype != bool or leaves.ndim != 1:
            raise ParameterError("`member` must be a truth value, or one for each row; got something else.")
        if self.people is None or self.people.forgotten or not self.in_memory:
            raise ParameterError(
                "`member` must be one truth value for all rows, but for a table in memory whose `groups` say "
                "who changes together, and of whom no row is `forgotten`."
            )
        if len(leaves) != self.n_rows:
            raise DomainError(
                "`member` must have one truth value for each row of `X`; it has another length."
            )
        people = replace(self.people, mixed=True)
        source = self.source.with_people(people, people.signed_shares(leaves))
        return replace(self, source=source, people=people)

    def by_person(
        self, work: Callable[[int], Pass[Block, Result]], width: int
    ) -> Iterator[tuple[IntArray, Result]]:
        """Run passes on the encoded rows of people, brought together in memory, some people at a time.

        ``work`` makes the pass for people with so many rows each, which takes ``width`` numbers of each row.
        The numbers of the people come with what was found for them.
        """
        assert self.people is not None
        for some in batches(self.source, self.design, self.people, self.sweep):
            yield from by_person(some, work, width)

    def _compiles(self, work: Kernel[Any], *, products: bool) -> bool:
        """Whether the compiled twin of a kernel is run; products with sparse rows are faster without."""
        sparse = products and self.product_width < self.design.dimension
        here = self.source.space is None and self.design.in_ball
        return here and not sparse and work.compiles and kernels.library() is not None

    def _in_place(self, source: PlacedSource, work: Any) -> Iterator[Result]:
        for part in source.parts(self.design.dimension):
            # NumPy can be beneath another library, whose warnings would name rows.
            with np.errstate(all="ignore"):
                found = work(iter((part.encoded(self.design),)), source.space)
            yield found


@dataclass(frozen=True, eq=False, repr=False)
class Opened:
    """A table in memory, of which the number of columns and their names are public."""

    source: Source
    columns: list[str] | None
    """Their names, where it is a frame."""
    device: Space | None


def opened(X: Any, domain: Domain | None) -> LazyTable | Opened:
    """A table of any kind, found and opened; one that is open already is returned as it is."""
    if isinstance(X, Opened):
        return X
    lazy = as_lazy(X, domain)
    if lazy is not None:
        return lazy
    table = table_of(X)
    foreign = domain is None and is_foreign(X)
    source = PlacedSource.of(X) if foreign else ArraySource(open_table(table, domain))
    frame = domain is None and nw.dependencies.is_into_dataframe(table)
    columns = nw.from_native(table, eager_only=True).columns if frame else None
    return Opened(source, columns, X.space if isinstance(X, StreamedTable) else None)


def encode_records(
    X: Any,
    y: Any,
    declared: Declared,
    sample_weight: Any = None,
    groups: Any = None,
    forgotten: int = 0,
) -> Encoded:
    """Open a table, scale its rows into the ball and encode its labels and weights.

    Files (:func:`expost.scan`) have the labels in a column: the one that the domain declares, or the one that
    ``y`` names, or the last; ``sample_weight`` and ``groups`` are then names of columns too. With ``groups``
    rows belong to people; where they are what is promised to, a row weighs its share of its person, who has
    ``forgotten`` more rows. With ``ONE_PERSON`` all rows are one person's.

    Privacy
    -------
    The result is as private as the records. An error names declared values only: never a row, a value
    or a count.
    """
    X, y, sample_weight, groups = with_columns(X, y, sample_weight, groups, declared.domain)
    table = opened(X, declared.domain)
    if isinstance(table, LazyTable):
        person = None if groups is ONE_PERSON else groups
        check_column_names(y, sample_weight, person)
        label = None if declared.domain is None else declared.domain.label.name
        if label is not None and y not in (None, label):
            raise DomainError(
                f"with a domain, `y` must be None or the name of its outcome, {label!r}; got {y!r}."
            )
        rows = _from_lazy(table, declared, labelled=True, label=y, weight=sample_weight, person=person)
    else:
        rows = with_labels(encode_rows(table, declared), y, declared, sample_weight)
    return _with_people(rows, groups, declared, forgotten)


def _with_people(rows: Encoded, groups: Any, declared: Declared, forgotten: int) -> Encoded:
    """Records with the people that they belong to, or that each of them is."""
    if declared.unit == "person" and (groups is not None or declared.in_rows is not None):
        check_weights_covered(declared.loss)
    if declared.unit == "person" and declared.in_rows is not None:
        return _spread(rows, groups, declared.in_rows)
    return grouped(rows, groups, declared.unit, declared.weighting.rows_per_person, forgotten)


def encode_rows(X: Any, declared: Declared) -> Encoded:
    """Open a table and scale its rows into the ball, as :func:`encode_records` does, without labels."""
    table = opened(X, declared.domain)
    if isinstance(table, LazyTable):
        return _from_lazy(table, declared, labelled=False)
    design = declared.design(table.source.n_features)
    wanted = None if declared.domain is not None else declared.feature_names
    if wanted is not None and table.columns not in (None, list(wanted)):
        raise DomainError("`X` must have the columns `feature_names`, in that order; rename or reorder them.")
    return Encoded(table.source, design, device=table.device)


def with_labels(rows: Encoded, y: Any, declared: Declared, sample_weight: Any = None) -> Encoded:
    """Encoded rows, in memory, with their labels and weights."""
    labels = declared.labels(y, rows.n_rows)
    weights = declared.weighting.of(sample_weight, labels, declared.loss)
    return replace(rows.labelled(labels, weights), accepted=declared.accepted)


def check_column_names(y: Any, sample_weight: Any, groups: Any) -> None:
    """Refuse labels, weights or people of a lazy table that are not names of its columns."""
    for name, given in (("y", y), ("sample_weight", sample_weight), ("groups", groups)):
        if given is not None and not isinstance(given, str):
            raise DomainError(
                f"with files or a Dask frame, `{name}` must be the name of a column or None; got something "
                "else. (With a Dask frame it may be a Dask Series.)"
            )


def _from_lazy(table: LazyTable, declared: Declared, **columns: Any) -> Encoded:
    """The records of a lazy table, encoded block by block as they are read."""
    reader = reader_of(table, declared, **columns)
    design = declared.design(reader.n_features)
    source = LazySource(reader, tuple(table.pieces()))
    return Encoded(source, design, table.engine, table.device, accepted=declared.accepted)


def grouped(
    records: Encoded, groups: Any, unit: str, rows_per_person: int | None, forgotten: int = 0
) -> Encoded:
    """Rows with their people, and in the unit of people with weights that are shares of them."""
    if groups is None:
        return records
    source = records.source
    if isinstance(source, LazySource):
        people = source.find_people(None if groups is ONE_PERSON else groups, records.engine)
    else:
        people = People.of(groups, records.n_rows)
    least = (rows_per_person or 1) if unit == "person" else None
    people = replace(people, forgotten=forgotten, shared_by=least)
    shares = people.shares(rows_per_person) if unit == "person" else None
    return replace(records, source=source.with_people(people, shares), people=people)


def _spread(records: Encoded, groups: Any, label: RowsLabel) -> Encoded:
    """Records as the rows of people, one record each."""
    if groups is not None:
        raise DomainError(
            f"`groups` must be left out of a model whose outcome has kind={label.kind!r}: each record is a "
            "person of her own, and its rows are hers. Keep one record of each person."
        )
    source, ball = _here(records.source), replace(records.design, intercept=False)
    parts: tuple[int, ...] = ()
    if isinstance(source, LazySource):
        parts = source.find_people(None, records.engine).parts
        count = sum(parts)
    else:
        count = records.n_rows
    held = source.with_people(People.each_alone(count, 1, parts), None)
    width, norm = ball.n_features + label.places, records.design.radius
    return replace(
        records,
        source=SpreadSource(held, ball, label),
        design=Design(width, norm, False, indicators=label.places),
        people=People.each_alone(count, label.places),
        device=None,
    )


def _here(source: Source) -> Source:
    """A table of another library in NumPy's memory."""
    if not isinstance(source, PlacedSource):
        return source
    labels, weights = (
        None if one is None else namespaces.on_host(one) for one in (source.labels, source.weights)
    )
    return ArraySource(ArrayTable(namespaces.on_host(source.matrix)), labels, weights)
