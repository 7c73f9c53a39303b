"""The histogram of scores and labels that recalibrates a model: its counts, and what it cost each record."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._common.namespaces import on_host
from expost._common.typing import FloatArray
from expost.data.blocks import Block
from expost.data.design import Design
from expost.data.encoding import Encoded
from expost.data.people import People
from expost.fitting.release import Release
from expost.privacy.histogram import cell_count, cell_ends
from expost.privacy.plan import Plan

Places = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Cells:
    """The pass that finds the cell of every row: those of the first class by rising scores, then the other's.

    A row is scaled and its score summed up in an order that the number of columns decides. So the cell of a
    row does not depend on the rows around it, and one row more or less changes one count by one.
    """

    design: Design
    coefficients: FloatArray
    """As they are printed."""
    noise: float

    def __call__(self, blocks: Iterator[Block]) -> Places:
        """The cells of the part's rows, which are as they lie in the table, in their order."""
        ends = np.array(cell_ends(self.noise))
        found = [np.empty(0, dtype=np.uint8)]
        for rows, y, *_ in blocks:
            scores = np.add.reduce(self.design.alone(rows) * self.coefficients, axis=1)
            places = np.searchsorted(ends, scores, side="right") + (len(ends) + 1) * (on_host(y) > 0.5)
            found.append(places.astype(np.uint8))
        return np.concatenate(found)


def cells_of(records: Encoded, coefficients: FloatArray, noise: float) -> Iterator[Places]:
    """The cell of each row, one part of the rows after the other; as private as they are."""
    return records.sweep_raw(Cells(records.design, coefficients, noise))


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    r"""How many rows each cell has, and how many were published.

    Privacy
    -------
    Private: the counts are without noise.
    """

    exact: NDArray[np.int64]
    noisy: FloatArray
    noise: float

    @classmethod
    def beside(cls, exact: NDArray[np.int64], release: Release) -> "Counts":
        """The counts of a table beside those that a release has of it."""
        noise = release.plan.sigma_histogram
        assert release.histogram is not None
        assert noise is not None
        return cls(exact, release.histogram, noise)

    def losses(self, cells: Places, sides: FloatArray | float) -> FloatArray:
        r"""The log ratio of the published counts' laws, this table's over a neighbour's, row by row.

        .. math:: \log\frac{p(\tilde N \mid N)}{p(\tilde N \mid N + d)}
                  = \frac{\|d\|^2 - 2d^\top(\tilde N - N)}{2\sigma_h^2}

        with :math:`d = \pm e_k` for a row in cell :math:`k`: minus for one that is in the table. Exact, for
        the discrete noise too: counts are whole steps of its grid.
        """
        return np.asarray((1.0 - 2.0 * sides * self._drawn[cells]) / (2.0 * self.noise**2))

    def losses_of_people(self, cells: Places, sides: FloatArray | float, people: People) -> FloatArray:
        """The same for all rows of each person, who come or leave together."""
        moved = np.zeros((len(people), len(self.exact)))
        np.add.at(moved, (people.codes, cells), sides)
        return np.asarray((np.sum(moved**2, axis=1) - 2.0 * moved @ self._drawn) / (2.0 * self.noise**2))

    @property
    def _drawn(self) -> FloatArray:
        """The noise that was drawn."""
        return np.asarray(self.noisy - self.exact)

    def __repr__(self) -> str:
        return "Counts(withheld)"


def counted(plan: Plan, records: Encoded, coefficients: FloatArray) -> NDArray[np.int64]:
    """How many rows are in each cell, each counted once whatever its weight; private."""
    noise = plan.sigma_histogram
    assert noise is not None
    size = cell_count(noise)
    found = [np.bincount(part, minlength=size) for part in cells_of(records, coefficients, noise)]
    return np.asarray(np.sum([np.zeros(size, dtype=np.int64), *found], axis=0, dtype=np.int64))
