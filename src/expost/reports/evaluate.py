"""Every record's interval, cost and total, from a release and the record alone, in one pass."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from expost._common.namespaces import HERE, Space, namespace_of
from expost._common.typing import FloatArray
from expost._common.validation import Simultaneous
from expost.data.blocks import Block
from expost.data.encoding import Encoded
from expost.data.rows import row_blocks
from expost.engines.base import Kernel
from expost.fitting.release import Release
from expost.reports.base import (
    CONFIDENCE,
    Bounds,
    Figures,
    Interval,
    Scope,
    Shares,
    check_confidence,
    sides_of,
)
from expost.reports.intervals import Determinant, inner_product
from expost.reports.laws import Drift
from expost.reports.records import ReadRecords, records_of
from expost.reports.total import report_cost, whole_cost

# Above every rounding error in adding up the terms, so that intervals err on the wide side.
SLACK = 1e-12


@dataclass(frozen=True, eq=False)
class TightReader:
    r"""How to read a release at one failure probability.

    The signed log-odds are :math:`L = t_1 + t_2 + t_3` with :math:`t_2` known and intervals for :math:`t_1`
    and :math:`t_3`; their sum is an interval for :math:`L`, and

    .. math:: \text{upper} = \max(L_{hi}, -L_{lo}), \qquad \text{lower} = \max(0, L_{lo}, -L_{hi})

    is one for :math:`|L|`. Keeping the signs is what lets terms cancel and what gives a lower end at all;
    Algorithm 2 of [RW21]_ adds up absolute values. With ``weights_at_most`` each term lies anywhere between
    zero and what it is at the record's weight, which is then the largest possible.

    The total takes the whole publication as one Gaussian experiment. It relies on fewer events than the
    interval, and the noise has what the others leave of the failure probability. Where only the model is
    published the total is the upper end.

    Privacy
    -------
    Reads public values and the record; answering for any number of records reveals nothing beyond the
    release.

    References
    ----------
    .. [RW21] R. Redberg and Y.-X. Wang. Privately publishable per-instance privacy. NeurIPS 2021.
    """

    release: Release
    failure: float
    scope: Scope
    weights_at_most: bool = False

    @cached_property
    def shares(self) -> Shares:
        """What each event may take of the failure probability."""
        return Shares.of(self.release.plan.report, self.failure)

    @cached_property
    def drift(self) -> Drift:
        """How far the printed coefficients are from the exact minimiser."""
        return Drift.of(self.release)

    @cached_property
    def determinant(self) -> Determinant:
        """Bounds of the determinant term."""
        return Determinant(self.release, self.shares, self.scope, self.drift)

    def read(self, records: ReadRecords, sides: tuple[bool, ...]) -> Figures:
        """The figures of records that were in the table, were not, or may have been (both ``sides``)."""
        xp = namespace_of(records.norm)
        lower, upper, total = zip(*(self._read(records, member=side) for side in sides), strict=True)
        cost = report_cost(self.release, records, self.scope, self.failure)
        return Figures(reduce(xp.minimum, lower), reduce(xp.maximum, upper), cost, reduce(xp.maximum, total))

    def _read(self, records: ReadRecords, *, member: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The ends of the interval, and the total."""
        plan, determinant = self.release.plan, self.determinant.bound(records, member=member)
        product = inner_product(self.release, records, self.shares, self.scope, self.drift, member=member)
        quadratic = 0.5 * (records.gradient_norm / plan.sigma) ** 2
        model = sum_of_terms(determinant, quadratic, product, each_may_vanish=self.weights_at_most)
        if not plan.scales.releases_statistics:
            return model.low, model.high, model.high
        size, failure = self._size(determinant), self.shares.whole
        total = whole_cost(self.release, records, size, self.scope, failure, self.drift)
        return model.low, model.high, total

    def determinant_size(self, records: ReadRecords, *, member: bool) -> FloatArray:
        """How large the determinant term is at most, as a total counts it."""
        return self._size(self.determinant.bound(records, member=member))

    def _size(self, determinant: Interval) -> FloatArray:
        xp = namespace_of(determinant.low)
        size: FloatArray = xp.maximum(xp.abs(determinant.low), xp.abs(determinant.high))
        return size * (1.0 + 2.0 * self.drift.curvature)


def sum_of_terms(
    determinant: Interval, quadratic: FloatArray, product: Interval, *, each_may_vanish: bool = False
) -> Interval:
    """An interval for the size of the log-odds, from intervals for two of its terms and the third itself.

    With ``each_may_vanish`` each term lies anywhere between zero and what is given for it.
    """
    xp = namespace_of(determinant.low)
    least = quadratic
    if each_may_vanish:
        least = xp.zeros_like(quadratic)
        determinant, product = (
            Interval(xp.clip(term.low, None, 0.0), xp.clip(term.high, 0.0, None))
            for term in (determinant, product)
        )
    sizes = xp.abs(determinant.low) + xp.abs(determinant.high) + quadratic
    slack = SLACK * (sizes + xp.abs(product.low) + xp.abs(product.high))
    low = determinant.low + least + product.low - slack
    high = determinant.high + quadratic + product.high + slack
    # Where a term is beyond double precision nothing is known below, and no number is above.
    known = xp.isfinite(slack)
    return Interval(
        xp.where(known, xp.clip(xp.maximum(low, -high), 0.0, None), 0.0),
        xp.where(known, xp.maximum(high, -low), math.inf),
    )


# Rows, their coordinates in up to three bases, and their squares.
_NUMBERS_PER_COLUMN = 8


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Kernel[Figures]):
    """The pass that reads a release for every record."""

    reader: TightReader
    sides: tuple[bool, ...]
    """Whether the records were in the table: one answer, or both."""
    width: int
    """How many numbers are held for each record."""

    def __call__(self, blocks: Iterator[Block], space: Space = HERE) -> Figures:
        """The figures of the part's records, in their order, left where they are."""
        found = []
        for block in row_blocks(blocks, self.width):
            # The squared loss has no largest slope: a label may be so far away that its bounds are infinite.
            with np.errstate(over="ignore", invalid="ignore"):
                records = records_of(self.reader.release, block, self.reader.scope)
                found.append(self.reader.read(records, self.sides))
        return Figures.joined(found)


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
    width = row_width(release, records)
    reader = TightReader(release, failure, scope, records.weights_at_most)
    work = Evaluation(reader, sides_of(member), _NUMBERS_PER_COLUMN * width)
    return _counted(records.sweep(work, width=width), scope)


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
    columns = release.plan.loss.factor_columns
    size = records.design.dimension if release.plan.reduced else len(release.coefficients)
    return columns * max(size, columns)
