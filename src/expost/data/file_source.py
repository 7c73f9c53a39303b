"""Rows from files: read once and held as codes where they are few, and otherwise read in every pass."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from expost._common.parallel import block_length
from expost.data.blocks import ArrayTable, Block, as_dense
from expost.data.columns import Coded, CodedTable, RecordReader
from expost.data.files import FilePiece, release_unused
from expost.data.scan import Scan
from expost.data.source import ArraySource, Source, check_rows
from expost.engines.base import Engine
from expost.engines.local import LocalEngine

# Files whose coded columns take no more bytes than this are held in memory.
MOST_KEPT = 1 << 28
# Numbers in the sample of rows that a warm start uses.
_MOST_SAMPLED = 1 << 22


@dataclass(frozen=True, eq=False, repr=False)
class FileSource(Source):
    """The records of files, a part for every piece; private.

    Once they were all read, those that fit into memory are held there as coded columns: texts are
    converted once. Others are read again in every pass.
    """

    reader: RecordReader
    pieces: tuple[FilePiece, ...]

    @property
    def n_features(self) -> int:
        """The number of columns of a row."""
        return self.reader.n_features

    @property
    def n_rows(self) -> None:
        """Not known before all rows were read."""
        return None

    def parts(self, width: int) -> "list[FilePart]":
        """A part for every piece, whatever the pass."""
        return [FilePart(self.reader, piece) for piece in self.pieces]

    def thinned(self, every: int, width: int, engine: Engine, rows: int) -> ArraySource:
        """A sample of the blocks, held in memory: no more numbers than a few million."""
        every = max(every, math.ceil(rows * width / _MOST_SAMPLED))
        blocks = [block for part in engine.map(Sample(every), self.parts(width), 1024) for block in part]
        weights = [block.weights for block in blocks if block.weights is not None]
        return ArraySource(
            ArrayTable(np.concatenate([block.X for block in blocks])),
            np.concatenate([block.y for block in blocks]),
            np.concatenate(weights) if weights else None,
        )

    def scanned(self, scan: Scan, engine: Engine) -> tuple[Source, tuple[int, ...]]:
        """Check every record; the records themselves come back where they are few enough to be held."""
        most = MOST_KEPT // max(len(self.pieces), 1) if isinstance(engine, LocalEngine) else 0
        parts = [CodedPart(self.reader, piece) for piece in self.pieces]
        counts: list[int] = []
        kept: list[Coded] = []
        whole = True
        for count, held in engine.map(Keep(self.reader, scan, most), parts, block_length(self.n_features)):
            counts.append(count)
            whole = whole and held is not None
            kept = [*kept, *(held or [])] if whole else []
        check_rows(sum(counts))
        if not whole:
            return self, tuple(counts)
        labels = np.concatenate([run.labels for run in kept])
        weights = [run.weights for run in kept if run.weights is not None]
        table = CodedTable(self.reader, kept)
        release_unused()
        return ArraySource(table, labels, np.concatenate(weights) if weights else None), (sum(counts),)


@dataclass(frozen=True, eq=False, repr=False)
class FilePart:
    """The records of one piece as blocks of rows."""

    reader: RecordReader
    piece: FilePiece

    def blocks(self, length: int) -> Iterator[Block]:
        """The rows with their labels and weights."""
        for batch in self.piece.batches(self.reader.names, length):
            yield self.reader.block(self.reader.coded(batch))


@dataclass(frozen=True, eq=False, repr=False)
class CodedPart:
    """The records of one piece as coded columns."""

    reader: RecordReader
    piece: FilePiece

    def blocks(self, length: int) -> Iterator[Coded]:
        """The records, so many at a time."""
        for batch in self.piece.batches(self.reader.names, length):
            yield self.reader.coded(batch)


@dataclass(frozen=True, eq=False)
class Keep:
    """The pass that checks records, counts them, and returns them where they take few enough bytes."""

    reader: RecordReader
    scan: Scan
    most: int

    def __call__(self, blocks: Iterator[Coded]) -> tuple[int, list[Coded] | None]:
        """The number of records, and the records or None."""
        rows = size = 0
        kept: list[Coded] | None = []
        for coded in blocks:
            block = self.reader.block(coded)
            self.scan.check(block)
            rows += len(block.X)
            size += coded.bytes
            if size > self.most:
                kept = None
            if kept is not None:
                kept.append(coded)
        return rows, kept


@dataclass(frozen=True)
class Sample:
    """The pass that takes each ``every``-th block."""

    every: int

    def __call__(self, blocks: Iterator[Block]) -> Sequence[Block]:
        """The blocks that were taken."""
        return [block._replace(X=as_dense(block.X)) for k, block in enumerate(blocks) if k % self.every == 0]
