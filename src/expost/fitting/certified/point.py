"""A point to evaluate at, cut into slices on grids that make products with rows exact."""

import math
from dataclasses import dataclass
from typing import Self

from expost.fitting.certified.dyadic import Dyadic
from expost.fitting.certified.pairs import FloatArray, length, power_above

NEXT_BITS = 20
"""How much finer the grid of each further slice is, of coefficients, rows and slopes alike, in bits."""


@dataclass(frozen=True)
class Point:
    """Coefficients as an exact sum of slices, the first with at most 29 bits beside their norm."""

    slices: tuple[FloatArray, ...]
    exact: Dyadic
    norm: float
    """At least the Euclidean norm."""
    unit: float
    """The grid of the first slice."""

    @classmethod
    def near(cls, values: Dyadic, slices: int) -> Self:
        """The point closest to ``values`` that this many slices can hold; off by ``2**-70`` of its norm."""
        size, root = length(values.doubles()), math.sqrt(len(values.counts))
        bits = min(29, 33 - math.ceil(math.log2(root)))
        first = exponent = math.frexp(max(power_above(size), 2.0**-500))[1] - 1 - bits
        parts, exact, left = [], Dyadic([0] * len(values.counts), exponent), values
        for index in range(slices):
            if index:
                exponent -= NEXT_BITS if index < slices - 1 else 52
            part = left.rounded(exponent)
            parts.append(part.doubles())
            exact, left = exact + part, left - part
        unit = math.ldexp(1.0, first)
        return cls(tuple(parts), exact, size + root * unit * 2.0**-50, unit)

    def tails(self) -> list[FloatArray]:
        """For each slice, the sum of it and all after it, rounded once."""
        tails = [self.slices[-1]]
        for part in self.slices[-2::-1]:
            tails.insert(0, part + tails[0])
        return tails
