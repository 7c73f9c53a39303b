"""How many people lost how much, counted as the losses come."""

from collections.abc import Iterable
from typing import Self

import numpy as np

from expost._common.typing import FloatArray

# Bins are so narrow that a quantile is rounded up by less than a thousandth of itself.
_PER_OCTAVE = 1024
_SMALLEST, _LARGEST = -40, 14


class Tally:
    """Counts of losses in narrow bins, so that any number of them takes the same memory; private."""

    def __init__(self) -> None:
        octaves = np.arange(_SMALLEST * _PER_OCTAVE, _LARGEST * _PER_OCTAVE + 1) / _PER_OCTAVE
        # Each bin ends with its edge; the last has no end.
        self._edges = np.concatenate([[0.0], np.exp2(octaves), [np.inf]])
        self._counts = np.zeros(len(self._edges), dtype=np.int64)
        self.largest = 0.0

    @classmethod
    def of(cls, losses: FloatArray) -> Self:
        """The tally of losses that are all there."""
        tally = cls()
        tally.add(losses)
        return tally

    def add(self, losses: FloatArray) -> None:
        """Count more losses."""
        places = np.searchsorted(self._edges, losses)
        self._counts += np.bincount(places, minlength=len(self._edges))
        self.largest = max(self.largest, float(np.max(losses, initial=0.0)))

    def counted(self, parts: Iterable[FloatArray]) -> Iterable[FloatArray]:
        """The same parts, each counted as it passes."""
        for part in parts:
            self.add(part)
            yield part

    def quantile(self, share: float) -> float:
        """What this share of the people lost at most; rounded up by less than a thousandth."""
        wanted = share * int(self._counts.sum())
        place = int(np.searchsorted(np.cumsum(self._counts), wanted))
        return min(float(self._edges[min(place, len(self._edges) - 1)]), self.largest)

    def histogram(self, bins: int) -> tuple[FloatArray, FloatArray]:
        """Counts in bins of one width up to the largest loss, and their edges."""
        top = min(self.largest, float(self._edges[-2])) or 1.0
        edges = np.linspace(0.0, top, bins + 1)
        upper = np.minimum(self._edges, top)
        places = np.clip(np.searchsorted(edges, upper) - 1, 0, bins - 1)
        counts: FloatArray = np.bincount(places, weights=self._counts, minlength=bins).astype(np.float64)
        return counts, edges
