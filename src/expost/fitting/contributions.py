"""What each row adds to the numbers that recalibrate a model, and what these numbers cost it."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from expost._common.namespaces import namespace_of, on_host, placed_like
from expost._common.typing import FloatArray
from expost.data.blocks import Block
from expost.data.design import Design
from expost.data.encoding import Encoded
from expost.data.people import People
from expost.fitting.certified.pairs import Dyadic
from expost.fitting.release import Release
from expost.privacy.plan import Plan
from expost.privacy.precision import statistic_grid
from expost.privacy.recalibration import HISTOGRAM, MOMENT_WEIGHTS, cell_ends, recalibration_of

Integers = NDArray[np.int64]
Found = TypeVar("Found")
# Moments are whole multiples of this, or of their grid where that is coarser: sums of 2**33 rows are exact.
_FINEST = 2.0**-30


class Added(NamedTuple):
    """What some rows add: in row ``i`` so many ``steps[i, j]`` to the number with the place ``places[i, j]``.

    Privacy
    -------
    As private as the rows.
    """

    places: Integers
    steps: Integers


@dataclass(frozen=True, eq=False)
class Contributions:
    r"""From rows and labels to what each adds, a vector :math:`v` of length at most 1, in whole steps.

    Two classes have a cell for each range of scores :math:`x \cdot \tilde\theta` and each label: those of the
    first class by rising scores, then the other's. A number has

    .. math:: v = \frac{1}{0.995}\left(0.3,\; 0.3q,\; 0.3q^2,\; 0.6r,\; 0.6qr\right), \qquad
              q = \frac{x \cdot \tilde\theta - b}{s}, \quad s = R_0\|\tilde\theta_{-b}\|

    with :math:`r` the residual cut to [-1, 1], :math:`b` the intercept, and :math:`R_0` the largest norm of a
    row without it. It is rounded towards zero, which makes no vector longer.

    A row is scaled and its score summed up in an order that the number of columns decides. So what a row
    adds does not depend on the rows around it or on where they lie, sums are exact, and one row more or less
    changes them by its vector.
    """

    coefficients: FloatArray
    """As they are printed."""
    plan: Plan

    @property
    def noise(self) -> float:
        """The standard deviation of each number's noise."""
        noise = self.plan.sigma_recalibration
        assert noise is not None
        return noise

    @property
    def counts(self) -> bool:
        """Whether the numbers are those of a histogram."""
        return recalibration_of(self.plan.loss) is HISTOGRAM

    @property
    def step(self) -> float:
        """What vectors are whole multiples of: a power of two, and whole steps of the numbers' grid."""
        return 1.0 if self.counts else max(_FINEST, statistic_grid(self.noise))

    @cached_property
    def slopes(self) -> FloatArray:
        """The coefficients without the intercept."""
        return self.coefficients[:-1] if self.plan.fit_intercept else self.coefficients

    @property
    def intercept(self) -> float:
        """The intercept, or zero."""
        return float(self.coefficients[-1]) if self.plan.fit_intercept else 0.0

    @cached_property
    def reach(self) -> float:
        """How far a prediction can be from the intercept, :math:`s`."""
        return self.plan.norm * math.hypot(*self.slopes.tolist())

    def of(self, rows: FloatArray, y: FloatArray) -> Added:
        """What these encoded rows add."""
        products = np.ascontiguousarray(rows) * self.coefficients
        if self.counts:
            ends = np.array(cell_ends(self.noise))
            scores = np.add.reduce(products, axis=1)
            places = np.searchsorted(ends, scores, side="right") + (len(ends) + 1) * (y > 0.5)
            return Added(places[:, None], np.ones((len(places), 1), dtype=np.int64))
        away = np.add.reduce(np.ascontiguousarray(products[:, : len(self.slopes)]), axis=1)
        vectors = np.stack(self.moments(away, y), axis=1)
        steps = np.trunc(vectors / self.step).astype(np.int64)
        return Added(np.broadcast_to(np.arange(steps.shape[1]), steps.shape), steps)

    def moments(self, away: Any, y: Any) -> tuple[Any, ...]:
        """The entries of the vector of a number, from how far predictions are from the intercept."""
        xp = namespace_of(away)
        q = xp.clip(away / self.reach if self.reach > 0.0 else 0.0 * away, -1.0, 1.0)
        r = xp.clip(y - (away + self.intercept), -1.0, 1.0)
        entries = (xp.ones_like(q), q, q * q, r, q * r)
        return tuple(weight * entry for weight, entry in zip(MOMENT_WEIGHTS, entries, strict=True))

    def lengths(self, block: Block) -> Any:
        """How long the vector of each row is, where the rows lie; at least what it is in whole steps."""
        xp = namespace_of(block.y)
        if self.counts:
            return xp.ones_like(block.y)
        away = block.X @ placed_like(self.coefficients, block.y) - self.intercept
        return xp.sqrt(sum(entry * entry for entry in self.moments(away, block.y)))

    def sweep(
        self, records: Encoded, work: Callable[["Contributions", Added], Found]
    ) -> Iterator[list[Found]]:
        """What is made of the vectors of every block, one part of the rows after the other; private."""
        return records.sweep_raw(_OfBlocks(self, records.design, work))


@dataclass(frozen=True, eq=False)
class _OfBlocks:
    """The pass that makes something of what the rows of each block add."""

    contributions: Contributions
    design: Design
    work: Callable[[Contributions, Added], Any]

    def __call__(self, blocks: Iterator[Block]) -> list[Any]:
        """What is made of the part's blocks, whose rows are as they lie in the table, in their order."""
        return [self._made(rows, on_host(y)) for rows, y, *_ in blocks]

    def _made(self, rows: Any, y: FloatArray) -> Any:
        return self.work(self.contributions, self.contributions.of(self.design.alone(rows), y))


def _summed(contributions: Contributions, added: Added) -> Integers:
    total = np.zeros(contributions.plan.recalibration_entries, dtype=np.int64)
    np.add.at(total, added.places, added.steps)
    return total


def _as_they_are(contributions: Contributions, added: Added) -> Added:
    return added


def _against(drawn: FloatArray, contributions: Contributions, added: Added) -> FloatArray:
    r""":math:`\|v\|^2` of each row, and :math:`v` times the noise."""
    vectors = contributions.step * added.steps
    return np.array([np.sum(vectors**2, axis=1), np.sum(vectors * drawn[added.places], axis=1)])


@dataclass(frozen=True, eq=False, repr=False)
class Totals:
    r"""What all rows of a table add together, and the noisy numbers that were published.

    Privacy
    -------
    Private: the sums are without noise.
    """

    contributions: Contributions
    steps: tuple[int, ...]
    """The sums, in whole steps."""
    noisy: FloatArray | None = None

    @classmethod
    def of(cls, plan: Plan, records: Encoded, coefficients: FloatArray) -> "Totals":
        """The sums over a table, in which each row counts once whatever its weight."""
        contributions = Contributions(coefficients, plan)
        parts = contributions.sweep(records, _summed)
        found = np.zeros(plan.recalibration_entries, dtype=object)  # whole numbers of any size
        for part in parts:
            found += sum(part, start=np.zeros_like(found))
        return cls(contributions, tuple(map(int, found)))

    def beside(self, release: Release) -> "Totals":
        """The sums with what a release has of them."""
        return Totals(self.contributions, self.steps, release.recalibration)

    @property
    def exact(self) -> Dyadic:
        """The sums without rounding."""
        return Dyadic(list(self.steps), math.frexp(self.contributions.step)[1] - 1)

    def losses(self, records: Encoded, sides: FloatArray | float) -> FloatArray:
        r"""The log ratio of the published numbers' laws, this table's over a neighbour's, for each record.

        .. math:: \log\frac{p(\tilde S \mid S)}{p(\tilde S \mid S + d)}
                  = \frac{\|d\|^2 - 2d^\top(\tilde S - S)}{2\sigma_h^2}

        with :math:`d = \pm v` for a row: minus for one that is in the table. All rows of a person come or
        leave together. Exact, for the discrete noise too: vectors are whole steps of its grid.
        """
        if records.people is not None:
            squares, along = self._of_people(records, records.people, sides)
        else:
            work = partial(_against, self._drawn)
            found = [one for part in self.contributions.sweep(records, work) for one in part]
            squares, along = np.concatenate([np.empty((2, 0)), *found], axis=1)
            along = sides * along
        return np.asarray((squares - 2.0 * along) / (2.0 * self.contributions.noise**2))

    def _of_people(
        self, records: Encoded, people: People, sides: FloatArray | float
    ) -> tuple[FloatArray, FloatArray]:
        found = [one for part in self.contributions.sweep(records, _as_they_are) for one in part]
        places, steps = (np.concatenate(parts) for parts in zip(*found, strict=True))
        moved = np.zeros((len(people), len(self.steps)))
        signed = np.broadcast_to(sides, len(steps))[:, None] * (self.contributions.step * steps)
        np.add.at(moved, (people.codes[:, None], places), signed)
        return np.sum(moved**2, axis=1), moved @ self._drawn

    @property
    def _drawn(self) -> FloatArray:
        """The noise that was drawn."""
        assert self.noisy is not None
        return (Dyadic.of(self.noisy) - self.exact).doubles()

    def __repr__(self) -> str:
        return "Totals(withheld)"
