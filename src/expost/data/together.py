"""The rows of people brought together: where they lie in a matrix, or gathered in one as they are read."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from expost._common import kernels
from expost._common.machine import block_length, spans, threads
from expost.data.blocks import ArrayTable, Block, part_of
from expost.data.design import NO_LABELS, Design
from expost.data.people import Gather, IntArray, People, alike
from expost.data.sources import ArraySource, Source
from expost.engines.base import LOCAL, Kernel, Pass, run

Result = TypeVar("Result")

# Numbers of the rows that are gathered at a time.
_TOGETHER = 1 << 25


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """The rows of people who all have the same number of them, person by person; private.

    What is found for a person depends on her rows and their order alone, not on who else is in the batch.
    """

    people: IntArray
    """The numbers of the people."""
    each: int
    places: IntArray
    """Where the rows are in the source, whose table is read in any order."""
    source: ArraySource
    design: Design

    def blocks(self, length: int) -> Iterator[Block]:
        """The encoded rows in blocks of whole people, about ``length`` rows each."""
        return self.design.dense(self._read(length))

    def _read(self, length: int) -> Iterator[Block]:
        source, step = self.source, max(1, length // self.each) * self.each
        for low in range(0, len(self.places), step):
            here = self.places[low : low + step]
            y = NO_LABELS if source.labels is None else source.labels[here]
            yield Block(source.table.at(here), y, part_of(source.weights, here))

    def found(self, work: Pass[Block, Result], length: int) -> Result:
        """What a pass finds in all rows; by its compiled twin, where it has one, in rows where they lie."""
        compiled = self.design.in_ball and kernels.library() is not None
        if compiled and isinstance(work, Kernel) and work.compiles:
            source, labels = self.source, NO_LABELS if self.source.labels is None else self.source.labels
            table = Block(source.table.rows(0, source.n_rows), labels, source.weights)
            found: Result = work.compiled(iter([self.design.as_it_lies(table, self.places)]))
            return found
        return run(work, self, length)

    def parts(self, width: int) -> list["Batch"]:
        """The people in some batches for each thread, where a pass takes so many numbers of each row."""
        count = min(len(spans(len(self.places), width)), 4 * threads() - 3)
        step = -(-len(self.people) // count)
        return [
            replace(
                self,
                people=self.people[low : low + step],
                places=self.places[low * self.each : (low + step) * self.each],
            )
            for low in range(0, len(self.people), step)
        ]


@dataclass(frozen=True, eq=False, repr=False)
class _Job(Generic[Result]):
    """Some people and the pass for them, which is another for people with other numbers of rows."""

    batch: Batch
    work: Pass[Block, Result]

    def blocks(self, length: int) -> Iterator[Callable[[], Result]]:
        """The job itself, to be done where it is asked for."""
        yield partial(self.batch.found, self.work, length)


def _done(blocks: Iterator[Callable[[], Result]]) -> Result:
    """The pass that does one job."""
    return next(blocks)()


def by_person(
    batches: Sequence[Batch], work: Callable[[int], Pass[Block, Result]], width: int
) -> Iterator[tuple[IntArray, Result]]:
    """Run passes on batches; ``work`` makes the one for people with so many rows each.

    A pass takes ``width`` numbers of each row. The people's numbers come with what was found for them.
    """
    jobs = [_Job(part, work(batch.each)) for batch in batches for part in batch.parts(width)]
    # Half as long as a row's: a pass holds rows and their coordinates at once.
    done: Pass[Callable[[], Result], Result] = _done
    found = LOCAL.map(done, jobs, block_length(2 * width))
    return zip([job.batch.people for job in jobs], found, strict=True)


def batches(
    source: Source, design: Design, people: People, gather: Callable[[Gather], Iterator[list[Block]]]
) -> Iterator[list[Batch]]:
    """All people in batches; rows that cannot be read in any order are gathered, some people at a time."""
    if isinstance(source, ArraySource) and source.table.in_any_order:
        some = alike(people.codes, people.counts, _leaving(people, source))
        yield [Batch(n, each, at, source, design) for n, each, at in some]
        return
    for first, stop in people.ranges(max(1, _TOGETHER // design.dimension)):
        held, codes = _held(list(chain.from_iterable(gather(Gather(first, stop)))))
        # Their rows are encoded, so that they are scaled by one.
        encoded = Design(held.n_features, np.inf, False)
        some = alike(codes - first, people.counts[first:stop], _leaving(people, held))
        yield [Batch(first + n, each, at, held, encoded) for n, each, at in some]


def _leaving(people: People, source: ArraySource) -> NDArray[np.bool_] | None:
    """Which rows leave the table, where others enter it."""
    return np.signbit(source.weights) if people.mixed and source.weights is not None else None


def _held(gathered: Sequence[Block]) -> tuple[ArraySource, IntArray]:
    """Encoded rows in a matrix of their own, and whose they are."""
    columns: list[Any] = [
        None if column[0] is None else np.concatenate(column) for column in zip(*gathered, strict=True)
    ]
    rows, labels, weights, codes = columns
    return ArraySource(ArrayTable(rows), labels if len(labels) else None, weights), codes
