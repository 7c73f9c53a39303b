"""Exact losses as they come, as counts, quantiles and bars for a terminal."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
from rich.bar import Bar
from rich.console import Group
from rich.table import Table

from expost._common.typing import FloatArray

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
