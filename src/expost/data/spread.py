"""A record as several weighted rows of one person: the one device of ordered classes and of times."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from expost._common.machine import whole_chunks
from expost._common.progress import Watch
from expost.data.blocks import Block
from expost.data.design import Design
from expost.data.labels import RowsLabel
from expost.data.people import shares_of
from expost.data.sources import RecordCheck, Source
from expost.engines.base import Engine, Part, Pass

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False, repr=False)
class SpreadSource(Source):
    r"""Records, each of which becomes as many rows as its outcome has places; private.

    .. math:: z = (x, y) \;\mapsto\; \bigl\{(\tilde x, e_k), s_k, \omega_k\bigr\}_{k=1}^{m}, \qquad
              \omega_k \le \frac{\omega}{m}

    :math:`\tilde x` is inside the ball already. Rows depend on their own record and on what is declared, and
    their weights add up to that of the record at most: what the theorem about people asks for.
    """

    records: Source
    ball: Design
    """How a record is scaled into the ball, without an intercept."""
    label: RowsLabel

    in_memory = False

    @property
    def n_features(self) -> int:
        """The features, and an indicator of each place."""
        return self.records.n_features + self.label.places

    @property
    def n_rows(self) -> int | None:
        """The rows of all records, where their number is known."""
        count = self.records.n_rows
        return None if count is None else count * self.label.places

    def parts(self, width: int) -> "list[_SpreadPart]":
        """Those of the records."""
        return [_SpreadPart(part, self) for part in self.records.parts(width * self.label.places)]

    def raw_length(self, length: int) -> int:
        """As many whole records as there is room for."""
        return whole_chunks(length)

    def run(
        self, engine: Engine, work: Pass[Block, Result], parts: Sequence[Part[Block]], length: int
    ) -> Iterator[Result]:
        """As passes over the records are run."""
        return self.records.run(engine, work, parts, length)

    def thinned(self, every: int) -> "SpreadSource":
        """All rows of fewer records."""
        return replace(self, records=self.records.thinned(every))

    def checked(self, check: RecordCheck, engine: Engine, watch: Watch | None = None) -> "SpreadSource":
        """Check the records, whose outcomes are codes."""
        return replace(self, records=self.records.checked(check, engine, watch))

    def spread(self, block: Block) -> Block:
        """The rows of encoded records, record by record."""
        count, width = block.X.shape
        places = np.arange(self.label.places)
        rows = np.zeros((count, len(places), width + len(places)))
        rows[:, :, :width] = block.X[:, None, :]
        rows[:, places, width + places] = 1.0
        answers, counted = self.label.answers(block.y)
        weights = counted * shares_of(np.array(len(places)))
        if block.weights is not None:
            weights *= block.weights[:, None]
        people = None if block.people is None else np.repeat(block.people, len(places))
        return Block(rows.reshape(-1, rows.shape[2]), answers.ravel(), weights.ravel(), people)


@dataclass(frozen=True, eq=False, repr=False)
class _SpreadPart:
    """The rows of the records of a part."""

    part: Part[Block]
    source: SpreadSource

    def blocks(self, length: int) -> Iterator[Any]:
        """Whole records, about ``length`` rows at a time."""
        records = self.part.blocks(max(1, length // self.source.label.places))
        return map(self.source.spread, self.source.ball.dense(records))
