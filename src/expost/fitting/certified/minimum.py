"""What the certificate is about: a point on a grid, and how far from it the minimiser can be."""

import math
from dataclasses import dataclass

from expost.fitting.certified.bound import Curvature
from expost.fitting.certified.dyadic import Dyadic
from expost.fitting.certified.pairs import length


@dataclass(frozen=True, repr=False)
class Minimum:
    """A point on the grid, and how far from it the minimiser can be.

    Privacy
    -------
    Private, ``radius`` included: only noise added to ``integers`` makes it public.
    """

    integers: list[int]
    """The point is these times the grid, exactly."""
    radius: float
    """The exact minimiser is no farther away than this (Euclidean)."""
    curvature: Curvature | None = None
    """The last Hessian that was taken, where doubles sufficed."""


def on_grid(point: Dyadic, grid: float) -> tuple[list[int], float]:
    """The nearest integers on the grid, a power of two, and a bound on how far the point is from them."""
    nearest = point.rounded(math.frexp(grid)[1] - 1)
    return nearest.counts, length((point - nearest).doubles())
