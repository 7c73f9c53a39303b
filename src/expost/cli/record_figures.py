"""The figures of each record, from one or several publications, as they come."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from expost._common.typing import FloatArray
from expost.data.lazy import LazyTable
from expost.publication import Publication
from expost.publication.readings import encoded_records
from expost.reports.bounds import Figures
from expost.reports.evaluate import streamed_figures

Run = Sequence[Figures]
"""The figures of a run of records, from each publication."""


def figures_of(
    publications: Sequence[Publication],
    table: LazyTable,
    weight: str | None,
    *,
    confidence: float,
    member: bool | None,
    simultaneous: int | str | None,
) -> Iterator[Run]:
    """Read each publication for each record of a table, in runs of records.

    The column of weights is used by publications that have weights.
    """
    streams = []
    for publication in publications:
        column = weight if publication.weighting.max_weight is not None else None
        streams.append(
            streamed_figures(
                publication.release,
                encoded_records(publication, table, None, column),
                confidence=confidence,
                member=member,
                simultaneous=simultaneous,
            )
        )
    return zip(*streams, strict=True)


def total_of(run: Run) -> FloatArray:
    """What all publications together cost each record at most."""
    total: FloatArray = np.sum([figures.total for figures in run], axis=0)
    return total


def columns_of(run: Run) -> dict[str, FloatArray]:
    """The figures by name; those of several publications are numbered, and the total is that of all."""
    if len(run) == 1:
        return run[0]._asdict()
    numbered = {
        f"{name}_{number}": figure
        for number, figures in enumerate(run, start=1)
        for name, figure in figures._asdict().items()
    }
    return {**numbered, "total": total_of(run)}


class FirstRecords:
    """Keeps the figures of the first records that pass, or of all, and counts them."""

    def __init__(self, most: int | None) -> None:
        self.records = 0
        self._most = most
        self._kept: list[Run] = []

    def passing(self, runs: Iterable[Run]) -> Iterator[Run]:
        """The same runs."""
        for run in runs:
            if self._most is None or self.records < self._most:
                self._kept.append(run)
            self.records += len(run[0].total)
            yield run

    @property
    def run(self) -> list[Figures]:
        """What was kept, from each publication."""
        return [Figures.joined(parts) for parts in zip(*self._kept, strict=True)]
