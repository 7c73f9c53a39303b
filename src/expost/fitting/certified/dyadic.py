"""Vectors of dyadic rationals: integers times a common power of two, added and rounded without error."""

import math
from dataclasses import dataclass

import numpy as np

from expost.fitting.certified.pairs import FloatArray


@dataclass(frozen=True)
class Dyadic:
    """The vector ``counts * 2**exponent``.

    Examples
    --------
    >>> vector = Dyadic.of(np.array([0.75, -3.0])) + Dyadic([1, 1], -10)
    >>> vector.doubles()
    array([ 0.75097656, -2.99902344])
    >>> vector.rounded(-1)
    Dyadic(counts=[2, -6], exponent=-1)
    """

    counts: list[int]
    exponent: int

    @classmethod
    def of(cls, vector: FloatArray) -> "Dyadic":
        """A vector of finite doubles."""
        fractions, exponents = np.frexp(np.asarray(vector, dtype=np.float64))
        whole = (fractions * 2.0**53).astype(np.int64)
        exponents = np.where(whole == 0, np.max(exponents, initial=-1074), exponents)
        least = int(np.min(exponents, initial=1024))
        shifts = (exponents - least).tolist()
        return cls([count << shift for count, shift in zip(whole.tolist(), shifts, strict=True)], least - 53)

    def __add__(self, other: "Dyadic") -> "Dyadic":
        least = min(self.exponent, other.exponent)
        mine, theirs = self.exponent - least, other.exponent - least
        both = zip(self.counts, other.counts, strict=True)
        return Dyadic([(a << mine) + (b << theirs) for a, b in both], least)

    def __sub__(self, other: "Dyadic") -> "Dyadic":
        return self + Dyadic([-count for count in other.counts], other.exponent)

    def times(self, factor: float) -> "Dyadic":
        """The vector times a double."""
        fraction, exponent = math.frexp(factor)
        whole = int(math.ldexp(fraction, 53))
        return Dyadic([count * whole for count in self.counts], self.exponent + exponent - 53)

    def rounded(self, exponent: int) -> "Dyadic":
        """The nearest vector on the grid ``2**exponent``; halves go up."""
        shift = exponent - self.exponent
        if shift <= 0:
            return Dyadic([count << -shift for count in self.counts], exponent)
        half = 1 << (shift - 1)
        return Dyadic([(count + half) >> shift for count in self.counts], exponent)

    def doubles(self) -> FloatArray:
        """The nearest doubles; raises OverflowError beyond their range."""
        return np.array([_double(count, self.exponent) for count in self.counts])


def _double(count: int, exponent: int) -> float:
    """Round an integer of any length once: what is cut off leaves a mark in the last of 64 bits."""
    cut = abs(count).bit_length() - 64
    if cut > 0:
        kept = count >> cut
        count, exponent = kept | (kept << cut != count), exponent + cut
    return math.ldexp(float(count), exponent)
