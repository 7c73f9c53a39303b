"""Rows from lazy tables: read once and held as codes where they are few, otherwise read in every pass."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, groupby, pairwise
from typing import Any, Generic, Self, TypeVar

import numpy as np

from expost._common.machine import SPAN, ahead, block_length
from expost._common.progress import Watch
from expost._common.typing import FloatArray
from expost.data.blocks import Block, part_of
from expost.data.columns import Coded, CodedTable, RecordReader, Trace, joined, recut, together
from expost.data.dialect import Dialect
from expost.data.file_blocks import release_memory, returning_memory
from expost.data.lazy import Piece, PieceShares, changed_error, empty_error
from expost.data.people import FindPeople, People, times_shares
from expost.data.sources import ArraySource, RecordCheck, Source
from expost.engines.base import Engine, LocalEngine, Part, Pass

Result = TypeVar("Result")

CHUNK_ROWS = SPAN
"""Sums are taken over this many rows of a piece, and then over these sums, wherever the rows are."""
# Tables whose coded columns take no more bytes than this are held in memory.
MOST_KEPT = 1 << 28
# Blocks that are read from a piece at once: to read columns takes a while, however short they are.
_BATCH_BLOCKS = 2
# Numbers, and rows of a block, in the sample that a warm start uses.
_MOST_SAMPLED, _SAMPLE_ROWS = 1 << 20, 1024


@dataclass(frozen=True, eq=False, repr=False)
class LazySource(Source):
    """The records of a lazy table, a part for every piece; private.

    Once they were all read, those that fit into memory are held there as coded columns: texts are converted
    once. Others are read again in every pass, which refuses those that have changed since.

    Sums have the same bits whether records are held, read in every pass, or read by a cluster: rows are cut
    in the same way, into chunks of a piece and blocks of a chunk, and results are added in the same order.
    """

    reader: RecordReader
    pieces: tuple[Piece, ...]
    traces: tuple[Trace, ...] | None = None
    """What the first pass saw of each piece."""
    sample: ArraySource | None = None
    """Some records of all pieces, for warm starts."""
    people: tuple[tuple[Any, Any], ...] | None = None
    """For each piece the numbers of its records' people, and what their weights are multiplied with."""

    in_memory = False

    @property
    def n_features(self) -> int:
        """The number of columns of a row."""
        return self.reader.n_features

    @property
    def n_rows(self) -> int | None:
        """Known once all rows were read."""
        return None if self.traces is None else sum(trace.rows for trace in self.traces)

    def parts(self, width: int) -> "list[_RowPart]":
        """A part for every piece, whatever the pass."""
        traces = self.traces or (None,) * len(self.pieces)
        return [_RowPart(part, trace) for part, trace in zip(self._coded_parts(), traces, strict=True)]

    def _coded_parts(self, shares: PieceShares | None = None) -> "list[_CodedPart]":
        people = self.people or (None,) * len(self.pieces)
        pairs = zip(self.pieces, people, strict=True)
        return [_CodedPart(self.reader, piece, shares, whose) for piece, whose in pairs]

    def find_people(self, column: str | None, engine: Engine) -> People:
        """Whose the records are, from one pass over the column of ids; without one, all are one person's."""
        read = self.reader.names[0] if column is None else column
        parts = [_IdPart(piece, read, self.reader.dialect) for piece in self.pieces]
        return People.joined(list(engine.map(FindPeople(column), parts, CHUNK_ROWS)))

    def with_people(self, people: People, shares: FloatArray | None) -> Self:
        """The records with the numbers of their people, and weights that are multiplied with ``shares``."""
        cuts = np.cumsum(people.parts)[:-1]
        codes = np.split(people.codes, cuts)
        weights = [None] * len(codes) if shares is None else np.split(shares, cuts)
        return replace(self, people=tuple(zip(codes, weights, strict=True)))

    def run(
        self, engine: Engine, work: Pass[Block, Result], parts: Sequence[Part[Block]], length: int
    ) -> Iterator[Result]:
        """A result for every chunk of every part."""
        if isinstance(engine, LocalEngine):
            engine = replace(engine, threads_per_part=2)  # one of them reads
        empty = True
        for result in chain.from_iterable(engine.map(_PerChunk(work), parts, length)):
            empty = False
            yield result
        if empty:
            raise empty_error()

    def thinned(self, every: int) -> ArraySource:
        """Fewer records of the sample that the first pass took."""
        assert self.sample is not None
        assert self.n_rows is not None
        return self.sample.standing_for(self.n_rows, every)

    def checked(self, check: RecordCheck, engine: Engine, watch: Watch | None = None) -> Source:
        """Check every record; the records themselves come back where they are few enough to be held."""
        most, shares = 0, None
        if isinstance(engine, LocalEngine):  # elsewhere rows are not held, and nobody watches
            engine = replace(engine, threads_per_part=2)  # one of them reads
            few = sum(piece.bytes for piece in self.pieces) <= 2 * MOST_KEPT
            most = MOST_KEPT * few
            shares = None if watch is None else PieceShares(self.pieces, watch)
        sampled = max(16, _MOST_SAMPLED // (self.n_features * max(len(self.pieces), 1)))
        parts = self._coded_parts(shares)
        summed = any(piece.stamp is None for piece in self.pieces)
        work = _FirstReading(self.reader, check, most, sampled, summed)
        traces: list[Trace] = []
        samples: list[Coded] = []
        kept: list[Coded] | None = []
        for trace, sample, held in engine.map(work, parts, block_length(self.n_features)):
            traces.append(trace)
            samples += sample
            kept = _within(most, kept, held)
        if not any(trace.rows for trace in traces):
            raise empty_error()
        thin = _held(self.reader, samples, [sum(map(len, samples))])
        if kept is None:
            return replace(self, traces=tuple(traces), sample=thin)
        source = replace(_held(self.reader, kept, [trace.rows for trace in traces]), sample=thin)
        release_memory()  # nothing more is read
        return source


def _within(most: int, kept: list[Coded] | None, more: list[Coded] | None) -> list[Coded] | None:
    """Records that are held, with more of them; None where some are not, or all take too many bytes."""
    if kept is None or more is None or sum(map(_bytes, kept + more)) > most:
        return None
    return kept + more


def _held(reader: RecordReader, records: list[Coded], rows: Sequence[int]) -> ArraySource:
    """Records in memory, cut into chunks as pieces of these numbers of rows are."""
    ends = list(accumulate(rows, initial=0))
    edges = [start for first, end in pairwise(ends) for start in range(first, end, CHUNK_ROWS)]
    return ArraySource(
        CodedTable(reader, [one.columns for one in records]),
        np.concatenate([one.labels for one in records]),
        together([one.weights for one in records]),
        together([one.people for one in records]),
        edges=(*edges, ends[-1]),
    )


def _bytes(records: Coded) -> int:
    return sum(array.nbytes for array in records.arrays)


@dataclass(frozen=True, eq=False, repr=False)
class _CodedPart:
    """The records of one piece as coded columns; some are read while others are used."""

    reader: RecordReader
    piece: Piece
    shares: PieceShares | None = None
    whose: tuple[Any, Any] | None = None

    def blocks(self, length: int) -> Iterator[Coded]:
        seen = None if self.shares is None else self.shares.of(self.piece)
        with returning_memory():
            batches = self.piece.batches(self.reader.names, _BATCH_BLOCKS * length, seen)
            yield from ahead(self._with_people(self.reader.coded(batch) for batch in batches))

    def _with_people(self, records: Iterator[Coded]) -> Iterator[Coded]:
        if self.whose is None:
            yield from records
            return
        codes, shares = self.whose
        place = 0
        for coded in records:
            here = slice(place, place + len(coded))
            if place + len(coded) > len(codes):
                raise changed_error()
            weights = times_shares(coded.weights, part_of(shares, here))
            yield replace(coded, weights=weights, people=codes[here])
            place = here.stop


@dataclass(frozen=True, eq=False, repr=False)
class _IdPart:
    """The ids of the records of one piece."""

    piece: Piece
    column: str
    dialect: Dialect

    def blocks(self, length: int) -> Iterator[Any]:
        with returning_memory():
            for batch in self.piece.batches([self.column], length):
                yield self.dialect.plain(batch.column(self.column), "category")


@dataclass(frozen=True, eq=False, repr=False)
class _RowPart:
    """The records of one piece as blocks of rows; a block ends where a chunk does."""

    part: _CodedPart
    trace: Trace | None
    """What the piece was when it was first read; None before that."""

    def blocks(self, length: int) -> Iterator[Block]:
        yield from map(self.part.reader.block, recut(self._records(length), length, CHUNK_ROWS))

    def _records(self, length: int) -> Iterator[Coded]:
        seen = Trace(summed=self.part.piece.stamp is None)
        for coded in self.part.blocks(length):
            if self.trace is not None:
                seen = seen.after(coded)
            yield coded
        if self.trace is not None and seen != self.trace:
            raise changed_error()


@dataclass(frozen=True, eq=False)
class _FirstReading:
    """The pass that checks records: their trace, some for warm starts, and all if they take few bytes."""

    reader: RecordReader
    check: RecordCheck
    most: int
    sampled: int
    summed: bool

    def __call__(self, blocks: Iterator[Coded]) -> tuple[Trace, list[Coded], list[Coded] | None]:
        trace, size, every = Trace(self.summed), 0, 1
        sample: list[Coded] = []
        kept: list[Coded] = []

        def few() -> Iterator[Coded]:
            nonlocal trace, size, every, sample
            for place, coded in enumerate(blocks):
                self.reader.check(coded)
                self.check.check_labels(coded.labels, coded.weights)
                trace = trace.after(coded)
                if place % every == 0:
                    sample.append(joined([coded.rows(0, min(_SAMPLE_ROWS, self.sampled))]))
                if sum(map(len, sample)) > self.sampled:
                    sample, every = sample[::2], 2 * every
                size += _bytes(coded)
                if size <= self.most:
                    yield coded
                else:  # the rest is only checked
                    kept.clear()

        for runs in recut(few(), CHUNK_ROWS, CHUNK_ROWS):
            kept.append(joined(runs))
        return trace, sample, kept if size <= self.most else None


@dataclass(frozen=True, eq=False)
class _PerChunk(Generic[Result]):
    """The pass that runs another on every chunk of a part."""

    work: Pass[Block, Result]

    def __call__(self, blocks: Iterator[Block]) -> list[Result]:
        rows = 0

        def chunk(block: Block) -> int:
            nonlocal rows
            rows += len(block.X)
            return (rows - 1) // CHUNK_ROWS

        return [self.work(some) for _, some in groupby(blocks, chunk)]
