"""The figures of each record, from one or several publications, as they come."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from expost._common.choices import Simultaneous
from expost._common.progress import Watch
from expost._common.typing import FloatArray
from expost.data.lazy import LazyTable
from expost.publication import Publication
from expost.publication.together import encoded_for
from expost.reports.bounds import Figures
from expost.reports.evaluate import streamed_figures
from expost.reports.several import streamed_totals


class Run(NamedTuple):
    """What is known about a run of records."""

    figures: Sequence[Figures]
    """From each publication, at its share of the confidence."""
    total: FloatArray
    """What all publications together cost at most."""


def figures_of(
    publications: Sequence[Publication],
    table: LazyTable,
    weight: str | None,
    *,
    confidence: float,
    member: bool | None,
    simultaneous: Simultaneous,
    watch: Watch | None = None,
) -> Iterator[Run]:
    """Read each publication for each record of a table, and all of them together, in runs of records.

    The column of weights is used by publications that have weights.
    """
    records = [replace(encoded_for(one, table, None, weight), watch=watch) for one in publications]
    releases = [one.release for one in publications]
    totals = streamed_totals(
        releases, records, confidence=confidence, member=member, simultaneous=simultaneous
    )
    # Each gets an equal share of the failure probability, so that all hold with the chosen confidence.
    share = 1.0 - (1.0 - confidence) / len(publications)
    streams = [
        streamed_figures(release, rows, confidence=share, member=member, simultaneous=simultaneous)
        for release, rows in zip(releases, records, strict=True)
    ]
    return map(Run, zip(*streams, strict=True), totals)


def columns_of(run: Run) -> dict[str, FloatArray]:
    """The figures by name; those of several publications are numbered, and the total is that of all."""
    if len(run.figures) == 1:
        return run.figures[0]._asdict()
    numbered = {
        f"{name}_{number}": figure
        for number, figures in enumerate(run.figures, start=1)
        for name, figure in figures._asdict().items()
    }
    return {**numbered, "total": run.total}


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
            self.records += len(run.total)
            yield run

    @property
    def run(self) -> Run:
        """What was kept."""
        figures = zip(*(run.figures for run in self._kept), strict=True)
        total = np.concatenate([run.total for run in self._kept])
        return Run([Figures.joined(parts) for parts in figures], total)
