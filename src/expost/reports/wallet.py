"""How far publications that were chosen on the way can have raised the odds that a record is in the table."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import Simultaneous, parameter_error
from expost.data.blocks import Block
from expost.data.encoding import Encoded
from expost.data.rows import row_blocks
from expost.fitting.release import Release
from expost.privacy.plan import Plan
from expost.reports.base import Scope, check_confidence
from expost.reports.evaluate import SLACK, row_width, spent_on_choices
from expost.reports.laws import Drift
from expost.reports.records import records_of
from expost.reports.several import together
from expost.reports.total import largest_shifts, whole_parts


class Charges(NamedTuple):
    """What one publication adds to the account of each record; as private as the records are."""

    squared: FloatArray  # how far the record moved what was published, in units of the noise, squared
    determinant: FloatArray  # what its determinant adds, if it is charged as it is
    curved: FloatArray  # what it adds to the squares instead, as one more Gaussian coordinate


@dataclass(frozen=True, eq=False, repr=False)
class ChargeReading:
    """The pass that reads the charges of every record at what was published."""

    release: Release
    scope: Scope

    def __call__(self, blocks: Iterator[Block]) -> Charges:
        """The charges of the part's records, in their order."""
        found, drift = [Charges(*(np.empty(0) for _ in Charges._fields))], Drift.of(self.release)
        l2 = self.release.plan.l2
        for block in row_blocks(blocks):
            with np.errstate(over="ignore", invalid="ignore"):
                records = records_of(self.release, block, self.scope)
                parts, grown = whole_parts(self.release, records, drift), 1.0 + 2.0 * drift.curvature
                determinant = records.at.log_determinant(l2) * grown
                curved = (records.at.hessian_norm / l2 * grown) ** 2
                found.append(Charges(parts.moved**2 + parts.curved**2, determinant, curved))
        return Charges(*map(np.concatenate, zip(*found, strict=True)))


# The scale of a wallet as a share of the square of the largest shift: four charges of an eighth of it.
# Records that are charged more lose little by a small scale, and others lose a lot by a large one.
_SHARE = 4.0 / 8.0**2


def first_scale(plan: Plan) -> float:
    """The scale of a wallet from its first plan, before anything is published."""
    return _SHARE * math.hypot(*(plan.max_weight * largest for largest in largest_shifts(plan))) ** 2


def wallet_bound(
    squared: FloatArray, determinant: FloatArray, curved: FloatArray, *, scale: float, failure: float
) -> FloatArray:
    r"""The bound of :func:`expost.wallet` from charges, publications by records.

    The determinant of each publication is charged as it is or as one more coordinate, whichever makes the sum
    smaller: one event covers all choices, so the reader may choose afterwards. Those whose squares are
    cheapest come first.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(np.where(determinant > 0.0, curved / determinant, math.inf), axis=0)
    sorted_curved, sorted_determinant = (
        np.take_along_axis(part, order, axis=0) for part in (curved, determinant)
    )
    none = np.zeros((1, squared.shape[1]))
    moved = squared.sum(axis=0) + np.concatenate([none, np.cumsum(sorted_curved, axis=0)])
    left = determinant.sum(axis=0) - np.concatenate([none, np.cumsum(sorted_determinant, axis=0)])
    reach = np.sqrt((moved + scale) * (2.0 * math.log(1.0 / failure) + np.log1p(moved / scale)))
    return np.asarray((np.maximum(left, 0.0) + 0.5 * moved + reach).min(axis=0))


def streamed_wallet(
    releases: Sequence[Release], records: Sequence[Encoded], *, confidence: float, simultaneous: Simultaneous
) -> Iterator[FloatArray]:
    """The bounds of :func:`evaluate_wallet`, one part of the records after the other."""
    failure, scope = check_confidence(confidence), Scope.of(simultaneous)
    if scope.every:
        wanted = "None or a number of records: no wallet covers every record there could be"
        raise parameter_error("simultaneous", wanted, simultaneous)
    if any(release.plan.unit != "row" for release in releases) or any(rows.people for rows in records):
        wanted = "ones that promise to rows, read for single records: there is no wallet for people"
        raise parameter_error("publications", wanted, "people", "`expost.total` is for them.")
    scale = first_scale(releases[0].plan)
    if not math.isfinite(scale):
        raise parameter_error("publications", "ones whose first has a bounded slope", "an unbounded one")
    charges = [
        rows.sweep(ChargeReading(release, scope), width=row_width(release, rows))
        for release, rows in zip(releases, records, strict=True)
    ]
    return _bounded(charges, scope, scale, failure, spent_on_choices(releases))


def _bounded(
    charges: Sequence[Iterator[Charges]], scope: Scope, scale: float, failure: float, chosen: float
) -> Iterator[FloatArray]:
    count = 0
    for run in together(charges):
        parts = (np.stack(part) for part in zip(*run, strict=True))
        found = wallet_bound(*parts, scale=scale, failure=scope.each(failure)) * (1.0 + SLACK) + chosen
        count += len(found)
        scope.check_records(count)
        yield found


def evaluate_wallet(
    releases: Sequence[Release], records: Sequence[Encoded], *, confidence: float, simultaneous: Simultaneous
) -> FloatArray:
    """The bound of :func:`expost.wallet` for records as each release encodes them."""
    parts = streamed_wallet(releases, records, confidence=confidence, simultaneous=simultaneous)
    return np.concatenate([np.empty(0), *parts])
