"""Figures of each record as they come, as counts, tables and bars for a terminal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rich.bar import Bar
from rich.console import Group
from rich.table import Table

from expost._common.progress import Watch
from expost._common.typing import FloatArray
from expost._common.validation import Simultaneous
from expost.cli.base import legible
from expost.cli.tables import Columns
from expost.data.lazy import LazyTable
from expost.publication import Publication
from expost.publication.readings import encoded_for
from expost.reports import Bounds
from expost.reports.base import Figures
from expost.reports.evaluate import streamed_figures
from expost.reports.several import streamed_totals

# Bins are so narrow that a quantile is rounded up by less than a thousandth of itself.
_PER_OCTAVE = 1024
_SMALLEST, _LARGEST = -40, 14
# The most exposed people, as shares of everyone in the table.
QUANTILES = (0.5, 0.9, 0.95, 0.99, 1.0)


class Tally:
    """Counts of losses in narrow bins, so that any number of them takes the same memory; private."""

    def __init__(self) -> None:
        octaves = np.arange(_SMALLEST * _PER_OCTAVE, _LARGEST * _PER_OCTAVE + 1) / _PER_OCTAVE
        # Each bin ends with its edge; the last has no end.
        self._edges = np.concatenate([[0.0], np.exp2(octaves), [np.inf]])
        self._counts = np.zeros(len(self._edges), dtype=np.int64)
        self.largest = 0.0

    def add(self, losses: FloatArray) -> None:
        """Count more losses."""
        places = np.searchsorted(self._edges, losses)
        self._counts += np.bincount(places, minlength=len(self._edges))
        self.largest = max(self.largest, float(np.max(losses, initial=0.0)))

    def counted(self, parts: Iterable[FloatArray]) -> Iterator[FloatArray]:
        """Count each part as it passes."""
        for part in parts:
            self.add(part)
            yield part

    def quantile(self, share: float) -> float:
        """What this share of the people lost at most; rounded up by less than a thousandth."""
        wanted = share * int(self._counts.sum())
        place = int(np.searchsorted(np.cumsum(self._counts), wanted))
        return min(float(self._edges[min(place, len(self._edges) - 1)]), self.largest)

    def quantiles(self) -> dict[float, float]:
        """What the shares of the people lost at most of which a curator wants to know."""
        return {share: self.quantile(share) for share in QUANTILES}

    def histogram(self, bins: int) -> tuple[FloatArray, FloatArray]:
        """Counts in bins of one width up to the largest loss, and their edges."""
        top = min(self.largest, float(self._edges[-2])) or 1.0
        edges = np.linspace(0.0, top, bins + 1)
        upper = np.minimum(self._edges, top)
        places = np.clip(np.searchsorted(edges, upper) - 1, 0, bins - 1)
        counts: FloatArray = np.bincount(places, weights=self._counts, minlength=bins).astype(np.float64)
        return counts, edges


def figure_names(publications: int) -> list[list[str]]:
    """The names of the figures from each publication, which are numbered where there are several."""
    ends = [f"_{number}" for number in range(1, publications + 1)] if publications > 1 else [""]
    return [[name + end for name in Figures._fields] for end in ends]


def figures_of(
    publications: Sequence[Publication],
    table: LazyTable,
    weight: str | None,
    *,
    confidence: float,
    member: bool | None,
    simultaneous: Simultaneous,
    watch: Watch,
) -> Iterator[Columns]:
    """What each publication says of each record of a table, and all of them together, in runs of records.

    The column of weights is used by publications that have weights. ``total`` is what all publications
    together cost at most; the other figures have the names of :func:`figure_names`.
    """
    asked: Any = {"member": member, "simultaneous": simultaneous}
    records = [replace(encoded_for(one, table, None, weight), watch=watch) for one in publications]
    releases = [one.release for one in publications]
    # Each gets an equal share of the failure probability, so that all hold with the chosen confidence.
    share = 1.0 - (1.0 - confidence) / len(publications)
    streams: list[Iterator[Any]] = [
        streamed_figures(release, rows, confidence=share, **asked)
        for release, rows in zip(releases, records, strict=True)
    ]
    names = list(chain.from_iterable(figure_names(len(publications))))
    if len(publications) > 1:
        names.append("total")
        totals = streamed_totals(releases, records, confidence=confidence, **asked)
        streams.append((total,) for total in totals)
    for run in zip(*streams, strict=True):
        yield dict(zip(names, chain.from_iterable(run), strict=True))


class FirstRecords:
    """Keeps the columns of the first runs of records that pass, or of all, and counts the records."""

    def __init__(self, most: int | None) -> None:
        self.records = 0
        self._most = most
        self._kept: list[Columns] = []

    def passing(self, runs: Iterable[Columns]) -> Iterator[Columns]:
        """Keep and count runs as they pass."""
        for run in runs:
            if self._most is None or self.records < self._most:
                self._kept.append(run)
            self.records += len(next(iter(run.values())))
            yield run

    def columns(self) -> dict[str, list[Any]]:
        """The columns that were kept, joined."""
        return {name: [one for run in self._kept for one in run[name]] for name in self._kept[0]}


# More records than this do not fit on a screen.
MOST_RECORDS = 40


def show_losses(losses: Tally, worst: float) -> Group:
    """The exact losses as bars, and the largest ones compared with the worst case; private."""
    return Group(_histogram(losses), "", _exposure(losses, worst))


def _histogram(losses: Tally, bins: int = 12) -> Table:
    counts, edges = losses.histogram(bins)
    title = "Exact privacy losses of the people in the data (private)"
    table = Table(title=title, title_justify="left", box=None)
    for heading in ("loss", "people"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for (low, high), count in zip(pairwise(edges), counts, strict=True):
        bar = Bar(size=float(counts.max()), begin=0.0, end=float(count), width=36, color="cyan")
        table.add_row(f"{low:.4f} to {high:.4f}", f"{count:,.0f}", bar)
    return table


def _exposure(losses: Tally, worst: float) -> Table:
    table = Table(title="The most exposed (private)", title_justify="left", box=None)
    table.add_column("people")
    for heading in ("lost at most", "of the promise"):
        table.add_column(heading, justify="right")
    for share, loss in losses.quantiles().items():
        who = {0.5: "half of them (median)", 1.0: "everyone"}.get(share, f"{share:.0%} of them")
        part = f"{loss / worst:.1%}" if np.isfinite(worst) else "no promise"
        table.add_row(who, f"{loss:.4f}", part)
    return table


def show_bounds(
    paths: Sequence[Path], columns: Mapping[str, Sequence[float]], records: int, promise: float, where: str
) -> Table:
    """Each record's interval, report cost and total, and the sum where there are several publications.

    ``columns`` has the figures of the first records at least; ``where`` says where the others are.
    """
    several = len(paths) > 1
    table = Table(title="What was released about each record", title_justify="left")
    table.add_column("record", justify="right")
    if several:
        table.add_column("publication", overflow="fold")
    for heading in Bounds.HEADINGS:
        table.add_column(heading, justify="right")
    for record, total in enumerate(columns["total"][:MOST_RECORDS]):
        place = str(record + 1)
        for path, names in zip(paths, figure_names(len(paths)), strict=True):
            which = [legible(path)] if several else []
            table.add_row(place, *which, *(f"{columns[name][record]:.4f}" for name in names))
        if several:
            table.add_row(place, "[bold]all[/bold]", "", "", "", f"[bold]{total:.4f}[/bold]")
            table.add_section()
    left = records - MOST_RECORDS
    more = f"\n{left:,} more records: {where}" if left > 0 else ""
    table.caption = f"for comparison, the worst case promised to everyone: {promise:.4g}{more}"
    table.caption_justify = "left"
    return table
