"""Every record's interval, cost and total, from a release and the record alone, in one pass."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._common.namespaces import HERE, Space, namespace_of
from expost._common.typing import FloatArray
from expost._common.validation import Simultaneous
from expost.data.blocks import Block
from expost.data.choices import chosen_cost
from expost.data.encoding import Encoded
from expost.data.people import People
from expost.data.rows import DenseRows, row_blocks
from expost.engines.base import Kernel
from expost.exceptions import DomainError
from expost.fitting.release import Release
from expost.privacy.plan import check_rows
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
from expost.reports.forgotten import Forgotten
from expost.reports.intervals import Determinant, inner_product, weight_of
from expost.reports.laws import Across, Drift, person_law
from expost.reports.records import ReadRecords, records_of
from expost.reports.total import report_cost, whole_cost, whole_noise, whole_parts

# Above every rounding error in adding up the terms, so that intervals err on the wide side.
SLACK = 1e-12


@dataclass(frozen=True, eq=False)
class TightReader:
    r"""How to read a release at one failure probability (docs/mathematics.md, section 7).

    The interval is that of :math:`|L|`, :math:`L = t_1 + t_2 + t_3`, from intervals for :math:`t_1` and
    :math:`t_3`; the total is :func:`~expost.reports.total.whole_cost`, or the upper end where nothing else is
    published. With ``weights_at_most`` a record's weight is the largest possible (section 14, "Weights").
    """

    release: Release
    failure: float
    scope: Scope
    weights_at_most: bool = False

    law: Across | None = None
    """That of people with several rows."""
    weight: int = 1
    """What they weigh together at most (:func:`~expost.reports.intervals.weight_of`)."""
    forgotten: Forgotten | None = None
    """Rows of theirs of which nothing is known."""

    @cached_property
    def shares(self) -> Shares:
        """What each event may take of the failure probability."""
        return Shares.of(self.release.plan.report, self.failure - self.left)

    @property
    def left(self) -> float:
        """What of the failure probability is for forgotten rows."""
        return 0.0 if self.forgotten is None else 0.5 * self.failure

    @property
    def parts(self) -> float:
        """How many equal parts the noise is bounded in: known rows, and forgotten ones."""
        return 1.0 if self.forgotten is None else 2.0

    @cached_property
    def drift(self) -> Drift:
        """How far the printed coefficients are from the exact minimiser."""
        return Drift.of(self.release, self.weight)

    @cached_property
    def determinant(self) -> Determinant:
        """Bounds of the determinant term."""
        return Determinant(self.release, self.shares, self.scope, self.drift, self.law)

    @cached_property
    def _of_people(self) -> "dict[int, TightReader]":
        return {}

    def for_people(self, rows: int) -> "TightReader":
        """The reader for people with so many different rows."""
        if rows not in self._of_people:
            law = person_law(self.release.plan.loss, rows, len(self.release.coefficients))
            self._of_people[rows] = replace(self, law=law)
        return self._of_people[rows]

    def read(self, records: ReadRecords, sides: tuple[bool, ...]) -> Figures:
        """The figures of records that were in the table, were not, or may have been (both ``sides``)."""
        xp = namespace_of(records.norm)
        lower, upper, total = zip(*(self._read(records, member=side) for side in sides), strict=True)
        more = 0.0 if self.forgotten is None else self.forgotten.shift(self.release.plan)
        cost = report_cost(self.release, records, self.scope, self.failure, self.drift, more)
        return Figures(reduce(xp.minimum, lower), reduce(xp.maximum, upper), cost, reduce(xp.maximum, total))

    def _read(self, records: ReadRecords, *, member: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The ends of the interval, and the total."""
        plan, determinant = self.release.plan, self.determinant.bound(records, member=member)
        product = inner_product(
            self.release,
            records,
            self.shares,
            self.scope,
            self.drift,
            member=member,
            law=self.law,
            weight=self.weight,
            parts=self.parts,
        )
        length, some = records.gradient_norm, self.forgotten
        if some is not None:
            determinant = some.determinant(plan, determinant, member=member)
            product = some.product(self.release, product, self.scope, self.left, self.drift)
            length = length + some.length(plan)
        quadratic = 0.5 * (length / plan.sigma) ** 2
        vanish = self.weights_at_most or some is not None
        model = sum_of_terms(determinant, quadratic, product, each_may_vanish=vanish)
        if not plan.scales.releases_statistics:
            return model.low, model.high, model.high
        size, failure = self.determinant_size(determinant), self.shares.whole
        noise = whole_noise(self.release, self.scope, failure, self.law, self.weight, self.parts)
        total = whole_cost(self.release, records, size, noise, self.drift)
        if some is not None:
            parts = whole_parts(self.release, records, self.drift)
            total = total + some.whole(self.release, parts, self.scope, self.left)
        return model.low, model.high, total

    def determinant_size(self, determinant: Interval) -> FloatArray:
        """How large the determinant term is at most, as a total counts it."""
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
        xp.where(known, xp.maximum(high, -low) + 0.0, math.inf),  # where nothing is left, no zero below zero
    )


# Rows, their coordinates in up to three bases, and their squares.
_NUMBERS_PER_COLUMN = 8


@dataclass(frozen=True, eq=False, repr=False)
class FiguresPass(Kernel[Figures]):
    """The pass that reads a release for every record, of which it holds ``width`` numbers each."""

    reader: TightReader
    sides: tuple[bool, ...]
    width: int

    def __call__(self, blocks: Iterator[Block], space: Space = HERE) -> Figures:
        """The figures of the part's records, in their order, left where they are."""
        found = []
        for block in row_blocks(blocks, self.width):
            # The squared loss has no largest slope: a label may be so far away that its bounds are infinite.
            with np.errstate(over="ignore", invalid="ignore"):
                records = records_of(self.reader.release, block, self.reader.scope)
                found.append(self.reader.read(records, self.sides))
        return Figures.joined(found)


@dataclass(frozen=True, eq=False, repr=False)
class PeopleFigures:
    """The pass that reads a release for people with ``each`` rows, from blocks of whole people."""

    reader: TightReader
    sides: tuple[bool, ...]
    each: int

    def __call__(self, blocks: Iterator[Block]) -> Figures:
        """The figures of the people, in their order."""
        return Figures.joined([self._read(block) for block in blocks])

    def _read(self, block: Block) -> Figures:
        rows = rows_counted(self.reader.release, block, self.each)
        found = np.empty((len(Figures._fields), len(rows)))
        for count in np.unique(rows):
            chosen = rows == count
            some = block.taken(np.repeat(chosen, self.each))
            some = some._replace(X=DenseRows.here(some.X))
            with np.errstate(over="ignore", invalid="ignore"):
                records = records_of(self.reader.release, some, self.reader.scope, self.each)
                found[:, chosen] = self.reader.for_people(int(count)).read(records, self.sides)
        return Figures(*found)


def rows_counted(release: Release, block: Block, each: int) -> NDArray[np.int64]:
    """How many rows of each person count: the different ones, or all where each weighs as much as the first.

    Without corners a quantile of the noise does not depend on their weight, but for rows of none at all,
    which count as her first.
    """
    rows = block.X
    if release.corners is not None and release.plan.unit == "row":
        return np.full(len(rows) // each, each, dtype=np.int64)
    if block.weights is not None and np.any(block.weights == 0.0):
        firsts = np.repeat(rows[::each], each, axis=0)
        rows = np.where((block.weights == 0.0)[:, None], firsts, rows)
    return distinct_rows(rows, each)


def distinct_rows(rows: FloatArray, each: int) -> NDArray[np.int64]:
    """How many different rows each person has."""
    _, codes = np.unique(rows, axis=0, return_inverse=True)
    codes = np.sort(codes.reshape(-1, each), axis=1)
    return np.asarray(1 + np.count_nonzero(np.diff(codes, axis=1), axis=1))


def _figures_of_people(
    reader: TightReader, records: Encoded, people: People, sides: tuple[bool, ...], width: int
) -> Figures:
    """The figures of everybody, from the rows of each brought together."""
    found = np.empty((len(Figures._fields), len(people)))

    def work(each: int) -> FiguresPass | PeopleFigures:
        if each == 1 and not (people.mixed or people.forgotten):
            return FiguresPass(reader, sides, width)
        weight = weight_of(reader.release.plan, each, mixed=people.mixed)
        some = Forgotten(people.forgotten, people.share(each)) if people.forgotten else None
        return PeopleFigures(replace(reader, weight=weight, forgotten=some), sides, each)

    for numbers, figures in records.by_person(work, width):
        found[:, numbers] = figures
    return Figures(*found)


def check_unit(release: Release, records: Encoded) -> None:
    """Refuse rows of a release that promises to people, and people of whom too little is known.

    A figure for some of a person's rows is none for her. With unknown weights each row's gradient is known up
    to a factor, and their sum may be longer with smaller weights; not where the factor is that of all.
    """
    check_rows(release.plan, records.people)
    if records.people is not None and records.people.named and records.weights_at_most:
        raise DomainError(
            "`sample_weight` must be given for people with several rows: a report with unknown weights is "
            "known for single rows only."
        )


def streamed_figures(
    release: Release,
    records: Encoded,
    *,
    confidence: float = CONFIDENCE,
    member: Any = None,
    simultaneous: Simultaneous = None,
) -> Iterator[Figures]:
    """The figures of :func:`evaluate`, one part of the records after the other.

    Too many records for ``simultaneous`` may be noticed, and refused, only at the end.
    """
    if not (member is None or isinstance(member, bool | np.bool_)):
        records, member = records.changed(member), False
    found = model_figures(release, records, confidence=confidence, member=member, simultaneous=simultaneous)
    if not release.choices:
        return found
    cost = spent_on_choices([release], records)
    return (figures._replace(total=figures.total + cost) for figures in found)


def spent_on_choices(releases: Sequence[Release], records: Encoded | None = None) -> Any:
    """What private choices that releases used cost at most, each once, for all rows of a person or family."""
    choices = (choice for release in releases for choice in release.choices)
    people = None if records is None else records.people
    if people is None or not people.named:  # a record, of however many rows
        return chosen_cost(choices)
    # A person some of whose rows leave while others enter is one who leaves and one who enters.
    return chosen_cost(choices, people.counts + people.forgotten, 1 + people.mixed)


def model_figures(
    release: Release, records: Encoded, *, confidence: float, member: bool | None, simultaneous: Simultaneous
) -> Iterator[Figures]:
    """The figures without what private choices cost."""
    failure = check_confidence(confidence)
    scope = Scope.of(simultaneous)
    check_unit(release, records)
    known = records.source.n_rows if records.people is None else len(records.people)
    if known is not None:
        scope.check_records(known)
    width = row_width(release, records)
    reader = TightReader(release, failure, scope, records.weights_at_most)
    if records.people is not None:
        sides = sides_of(member)
        return iter([_figures_of_people(reader, records, records.people, sides, width)])
    work = FiguresPass(reader, sides_of(member), _NUMBERS_PER_COLUMN * width)
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
    member: Any = None,
    simultaneous: Simultaneous = None,
) -> Bounds:
    """Read a release for each record, in one pass; :meth:`expost.Publication.bounds` explains the options.

    **Privacy.** Public values and the record itself in; the result concerns only that record. Answering for
    any number of records, by any coalition, reveals nothing beyond the release.
    """
    parts = streamed_figures(
        release, records, confidence=confidence, member=member, simultaneous=simultaneous
    )
    found = Bounds.of(parts, confidence=1.0 - check_confidence(confidence), scope=Scope.of(simultaneous))
    return found if records.people is None else replace(found, people=records.people.names)


def row_width(release: Release, records: Encoded) -> int:
    """How many numbers a report needs for each record: one of several predictors has matrices of its own."""
    columns = release.plan.loss.factor_columns
    size = records.design.dimension if release.plan.reduced else len(release.coefficients)
    return columns * max(size, columns)
