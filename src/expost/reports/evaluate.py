"""Every record's interval, cost and total, from a release and the record alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np

from expost._common.choices import Simultaneous
from expost._common.namespaces import Space, namespace_of
from expost._common.typing import FloatArray
from expost.data.blocks import Block
from expost.data.encoded import Encoded
from expost.data.placed import short_blocks
from expost.fitting.release import Release
from expost.losses import Loss, VectorLoss
from expost.reports.base import CONFIDENCE, Scope, check_confidence, sides_of
from expost.reports.bounds import NO_FIGURES, Bounds, Figures
from expost.reports.tight import TightReader
from expost.reports.total import report_cost
from expost.reports.vector_records import records_of

# Rows, their coordinates in up to three bases, and their squares.
_NUMBERS_PER_COLUMN = 8


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """The pass that reads a release for every record."""

    release: Release
    reader: TightReader
    scope: Scope
    failure: float
    sides: tuple[bool, ...]
    """Whether the records were in the table: one answer, or both."""

    def __call__(self, blocks: Iterator[Block]) -> Figures:
        """The figures of the part's records, in their order."""
        # The squared loss has no largest slope: a label may be so far away that its bounds are infinite.
        with np.errstate(over="ignore", invalid="ignore"):
            return Figures.joined([NO_FIGURES, *(self.figures(*block) for block in blocks)])

    def figures(self, rows: FloatArray, y: FloatArray, weights: FloatArray | None) -> Figures:
        """The figures of a block of records; where membership is unknown they hold on both sides."""
        records = records_of(self.release, rows, y, self.scope, weights)
        lower, upper, total = zip(
            *(self.reader.read(records, member=side) for side in self.sides), strict=True
        )
        xp = namespace_of(records.norm)
        return Figures(
            reduce(xp.minimum, lower),
            reduce(xp.maximum, upper),
            report_cost(self.release, records, self.scope, self.failure),
            reduce(xp.maximum, total),
        )


class PlacedReading(Reading):
    """The pass that reads a release where the rows lie, for one linear predictor."""

    def in_place(self, blocks: Iterator[Block], space: Space) -> Figures:
        """The figures of all records, in their order, left where they are."""
        short = short_blocks(blocks, _NUMBERS_PER_COLUMN * len(self.release.coefficients))
        found = [self.figures(placed.encoded(), y, weights) for placed, y, weights in short]
        return Figures(*map(space.xp.concat, zip(*found, strict=True)))


def streamed_figures(
    release: Release,
    records: Encoded,
    *,
    confidence: float = CONFIDENCE,
    member: bool | None = None,
    simultaneous: Simultaneous = None,
) -> Iterator[Figures]:
    """The figures of :func:`evaluate`, one part of the records after the other.

    That there are no more records than are to hold at once is known only at the end, and refused there.
    """
    failure = check_confidence(confidence)
    scope = Scope.of(simultaneous)
    if records.source.n_rows is not None:
        scope.check_records(records.source.n_rows)
    in_place = records.kernels_in is not None and isinstance(release.plan.loss, Loss)
    work = (PlacedReading if in_place else Reading)(
        release=release,
        reader=TightReader(release, failure, scope, weights_at_most=records.weights_at_most),
        scope=scope,
        failure=failure,
        sides=sides_of(member),
    )
    return _counted(records.sweep(work, width=row_width(release, records)), scope)


def _counted(parts: Iterator[Figures], scope: Scope) -> Iterator[Figures]:
    rows = 0
    for figures in parts:
        rows += int(figures.total.shape[0])
        scope.check_records(rows)
        yield figures


def evaluate(
    release: Release,
    records: Encoded,
    *,
    confidence: float = CONFIDENCE,
    member: bool | None = None,
    simultaneous: Simultaneous = None,
) -> Bounds:
    """Read a release for each record, in one pass over the records.

    Parameters
    ----------
    release
        What was published.
    records
        The records as the mechanism would see them, with their labels and weights. Where these are the
        largest that the records may have had, the figures hold for every smaller weight as well.
    confidence
        How sure to be; chosen by the reader, not by the curator, and before looking at any figure. The
        interval, the report's cost and the total each hold with it on their own, not jointly.
    member
        Whether the records were in the table; ``None`` where that is unknown, which gives the union of both.
    simultaneous
        ``None`` for each record on its own, fixed before the release; a number for that many such records
        at once, at least as many as are asked about; ``"all"`` for every record there could be, chosen
        after seeing the release included.

    Privacy
    -------
    Public values and the record itself in; the result concerns only that record. Answering for any number
    of records, by any coalition, reveals nothing beyond the release.
    """
    parts = streamed_figures(
        release, records, confidence=confidence, member=member, simultaneous=simultaneous
    )
    return Bounds.of(parts, confidence=1.0 - check_confidence(confidence), scope=Scope.of(simultaneous))


def row_width(release: Release, records: Encoded) -> int:
    """How many numbers a report needs for each record: one of several predictors has matrices of its own."""
    width = records.design.dimension
    if isinstance(release.plan.loss, VectorLoss):
        size = width if release.plan.reduced else len(release.coefficients)
        width = max(size, release.plan.loss.outputs + 1) * (release.plan.loss.outputs + 1)
    return width
