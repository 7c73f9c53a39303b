"""What several publications cost one record together: less than their bounds added up."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import NamedTuple, TypeVar

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import Simultaneous, parameter_error
from expost.data.blocks import Block
from expost.data.encoding import Encoded
from expost.data.people import People
from expost.data.rows import row_blocks
from expost.exceptions import ParameterError
from expost.fitting.release import Release
from expost.reports.base import Figures, Scope, Shares, check_confidence, sides_of
from expost.reports.evaluate import (
    SLACK,
    TightReader,
    check_unit,
    model_figures,
    row_width,
    spent_on_choices,
)
from expost.reports.intervals import noise_factors, weight_of
from expost.reports.laws import NO_DRIFT, Chi, chi_quantile, conditional_quantile, person_law
from expost.reports.records import records_of
from expost.reports.total import (
    BEYOND,
    gradient_error,
    largest_curved,
    largest_shifts,
    whole_noise,
    whole_parts,
)

Part = TypeVar("Part")


class Shifts(NamedTuple):
    """What a publication cost some records, before its noise is bounded; as private as they are.

    The size of the determinant term and half the square of the shift, and that square.
    """

    known: FloatArray
    squared: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class ShiftReading:
    """The pass that reads the shifts of every record."""

    reader: TightReader
    sides: tuple[bool, ...]
    each: int = 1
    """How many rows make a record: those of a person."""

    def __call__(self, blocks: Iterator[Block]) -> Shifts:
        """The shifts of the part's records, in their order."""
        found = [Shifts(np.empty(0), np.empty(0))]
        for block in row_blocks(blocks, each=self.each if self.each > 1 else None):
            with np.errstate(over="ignore", invalid="ignore"):
                records = records_of(self.reader.release, block, self.reader.scope, self.each)
                bounds = [self.reader.determinant.bound(records, member=side) for side in self.sides]
                sizes = [self.reader.determinant_size(bound) for bound in bounds]
                parts = whole_parts(self.reader.release, records, self.reader.drift)
                squared = parts.moved**2 + parts.curved**2
                found.append(Shifts(np.max(sizes, axis=0) + 0.5 * squared, squared))
        return Shifts(*map(np.concatenate, zip(*found, strict=True)))


def streamed_totals(
    releases: Sequence[Release],
    records: Sequence[Encoded],
    *,
    confidence: float,
    member: bool | None,
    simultaneous: Simultaneous,
) -> Iterator[FloatArray]:
    """The bounds of :func:`evaluate_several`, one part of the records after the other."""
    found = _model_totals(releases, records, confidence=confidence, member=member, simultaneous=simultaneous)
    if not any(release.choices for release in releases):
        return found
    cost = spent_on_choices(releases, records[0])
    return (part + cost for part in found)


def _model_totals(
    releases: Sequence[Release],
    records: Sequence[Encoded],
    *,
    confidence: float,
    member: bool | None,
    simultaneous: Simultaneous,
) -> Iterator[FloatArray]:
    """The bounds without what private choices cost."""
    failure, scope = check_confidence(confidence), Scope.of(simultaneous)
    share = failure / len(releases)
    for release, rows in zip(releases, records, strict=True):
        check_unit(release, rows)

    def streams_of() -> list[Iterator[Figures]]:
        return [
            model_figures(release, rows, confidence=1.0 - share, member=member, simultaneous=simultaneous)
            for release, rows in zip(releases, records, strict=True)
        ]

    def added() -> Iterator[FloatArray]:
        return (_added([one.total for one in run]) for run in together(streams_of()))

    sides = sides_of(member)
    readers = [TightReader(release, share, scope) for release in releases]
    people = records[0].people
    if not _alike(records):  # the noise is that of spaces with different numbers of dimensions
        return iter([_added([np.concatenate([one.total for one in run]) for run in streams_of()])])
    if people is not None:
        scope.check_records(len(people))
        shifts = _added_shifts(readers, records, sides, len(people))
        allowed = {
            each: sum_noise(releases, failure, scope, each) for each in np.unique(people.counts).tolist()
        }
        return iter([_of_people(people, shifts, allowed, added)])
    noise = sum_noise(releases, failure, scope)
    if noise is None:
        return added()
    streams = [
        rows.sweep(ShiftReading(reader, sides), width=row_width(reader.release, rows))
        for reader, rows in zip(readers, records, strict=True)
    ]
    return _bounded(together(streams), noise, scope)


def _of_people(
    people: People,
    shifts: Shifts,
    allowed: Mapping[int, "SumNoise | None"],
    added: Callable[[], Iterator[FloatArray]],
) -> FloatArray:
    """The bounds by what is ``allowed`` for each number of rows, or else totals that are ``added`` up."""
    found, left = np.empty(len(people)), []
    for each, noise in allowed.items():
        some = np.flatnonzero(people.counts == each)
        if noise is None:
            left.append(some)
        else:
            found[some] = _allowed(Shifts(*(part[some] for part in shifts)), noise)
    if left:
        others = np.concatenate(left)
        found[others] = np.concatenate(list(added()))[others]
    return found


def _alike(records: Sequence[Encoded]) -> bool:
    """Whether all releases read as many rows of each person; a record that one spreads has more there."""
    people = [one.people for one in records]
    if not any(one is not None and not one.named for one in people):
        return True
    counts = [one.counts for one in people if one is not None]
    return len(counts) == len(people) and all(np.array_equal(one, counts[0]) for one in counts)


def _added_shifts(
    readers: Sequence[TightReader], records: Sequence[Encoded], sides: tuple[bool, ...], people: int
) -> Shifts:
    """The shifts of people with all of their rows, added up over the releases."""
    known, squared = np.zeros(people), np.zeros(people)
    for reader, rows in zip(readers, records, strict=True):

        def work(each: int, reader: TightReader = reader) -> ShiftReading:
            if each == 1:
                return ShiftReading(reader, sides)
            weight = weight_of(reader.release.plan, each)
            return ShiftReading(replace(reader, weight=weight).for_people(each), sides, each)

        if rows.people is None or len(rows.people) != people:
            raise _uneven()
        for numbers, found in rows.by_person(work, row_width(reader.release, rows)):
            known[numbers] += found.known
            squared[numbers] += found.squared
    return Shifts(known, squared)


class SumNoise(NamedTuple):
    """What a sum's bound allows for the noise of all releases together; public."""

    quantile: float
    rest: float


def sum_noise(releases: Sequence[Release], failure: float, scope: Scope, rows: int = 1) -> SumNoise | None:
    """The noise of a sum's bound, the same for every record; None where bounds are added up instead.

    The plans alone decide, so the choice is public (docs/mathematics.md, theorem 13.1). The
    gradient of a person with several ``rows`` lies in a space of as many dimensions, or of that many for each
    linear predictor, and each of them has a normal of its own.
    """
    if len(releases) == 1 or scope.every:
        return None
    corners = any(release.corners is not None for release in releases)
    each = failure / len(releases)
    parts = [_part(release, each, scope, rows, corners=corners) for release in releases]
    shares, shifts, normals, apart, rest = zip(*parts, strict=True)
    longest, failing = math.hypot(*chain.from_iterable(shifts)), scope.each(sum(shares))
    quantile = chi_quantile(sum(normals), failing)
    if corners:  # the noise is known on average only
        quantile = conditional_quantile(Chi(sum(normals)), failing, longest)
    return None if sum(apart) < longest * quantile else SumNoise(quantile, sum(rest))


class _Part(NamedTuple):
    """What one release adds to the noise of a sum."""

    share: float  # what the determinant's bound does not need of its failure probability
    shifts: tuple[float, float]
    normals: int
    apart: float  # what its own bound allows
    rest: float


def _part(release: Release, failure: float, scope: Scope, rows: int, *, corners: bool) -> _Part:
    plan = release.plan
    law = None if rows == 1 else person_law(plan.loss, rows, len(release.coefficients))
    share = Shares.of(plan.report, failure).whole
    steep, curved = (plan.max_weight * largest for largest in largest_shifts(plan))
    weight = weight_of(plan, rows)
    if corners:  # an exponential moment needs the largest of all that is counted
        steep, curved = weight * steep, weight * largest_curved(plan)
    normals = plan.loss.outputs if law is None else law.freedom
    if plan.scales.releases_statistics:
        noise = whole_noise(release, scope, share, law, weight)
        apart = math.hypot(noise.model * steep, noise.statistics * curved)
        # The solver's error is counted with the statistics.
        return _Part(share, (steep, curved), normals + 1, apart, BEYOND * gradient_error(plan))
    apart = noise_factors(release, scope, share, NO_DRIFT, law, weight).norm * steep
    # At corners it is one more normal.
    rest = 0.0 if corners else BEYOND * plan.rounding.solver
    return _Part(share, (steep, curved), normals + corners, apart, rest)


def _bounded(runs: Iterator[tuple[Shifts, ...]], noise: SumNoise, scope: Scope) -> Iterator[FloatArray]:
    count = 0
    for run in runs:
        shifts = Shifts(_added([one.known for one in run]), _added([one.squared for one in run]))
        count += len(shifts.known)
        scope.check_records(count)
        yield _allowed(shifts, noise)


def _allowed(shifts: Shifts, noise: SumNoise) -> FloatArray:
    """The bound on the sum of the losses."""
    reach = np.sqrt(shifts.squared) * noise.quantile
    return np.asarray((shifts.known + reach + noise.rest) * (1.0 + SLACK))


def together(streams: Sequence[Iterator[Part]]) -> Iterator[tuple[Part, ...]]:
    """The parts of several streams side by side; all read the same records."""
    for run in zip_longest(*streams):
        if None in run:
            raise _uneven()
        yield run


def evaluate_several(
    releases: Sequence[Release],
    records: Sequence[Encoded],
    *,
    confidence: float,
    member: bool | None,
    simultaneous: Simultaneous,
) -> FloatArray:
    r"""A bound on the sum of each record's losses from several releases of one table, as each encodes it.

    .. math:: \Bigl|\sum_i L_i\Bigr| \le \sum_i |t_{1,i}| + \frac{1}{2}\sum_i S_i^2
              + \sqrt{\sum_i S_i^2}\;\chi_n(1 - \rho)

    (docs/mathematics.md, theorem 13.1), or the sum of their bounds where :func:`sum_noise` says so. Public
    values and the record itself in; the result concerns only that record.
    """
    parts = streamed_totals(
        releases, records, confidence=confidence, member=member, simultaneous=simultaneous
    )
    return np.concatenate(list(parts))


def _added(parts: Sequence[FloatArray]) -> FloatArray:
    if len({len(part) for part in parts}) > 1:
        raise _uneven()
    return np.asarray(np.sum(parts, axis=0))


def _uneven() -> ParameterError:
    """The error for publications that read different records; the caller raises it."""
    return parameter_error("publications", "ones that read the same records", "different numbers of them")
