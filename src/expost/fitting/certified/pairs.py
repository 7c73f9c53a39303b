"""Numbers of about 106 bits as unevaluated sums of two doubles, and vectors on grids for exact products.

A *pair* ``(high, low)`` stands for the real number ``high + low``. Every function works element by element on
arrays. Errors hold while no result overflows, with :math:`u = 2^{-53}` and up to :data:`TINY`; proofs are in
docs/mathematics.md, section 10. No fused multiply-adds may be formed: NumPy's element-wise functions never
do, and of other libraries :func:`exact_in` asks.
"""

import math
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from expost._common.namespaces import Space, is_foreign, namespace_of, on_host

FloatArray: TypeAlias = NDArray[np.float64]
Pair: TypeAlias = tuple[FloatArray, FloatArray]

UNIT = 2.0**-53
"""Half the distance from one to the next double: the relative error of one rounded operation."""
TINY = 2.0**-1072
"""What underflow may add to the error of one product of doubles, and four times that to a pair's."""
# Products of two slices have 46 bits, which leaves seven for a sum of 128 of them.
BITS, SUB_BLOCK = 23, 128

_HALF_STEP = np.int64(1 << 26)
_HIGH_BITS = np.int64(-(1 << 27))


def two_sum(a: FloatArray, b: FloatArray) -> Pair:
    """The rounded sum and what was rounded away: ``high + low == a + b`` exactly."""
    high = a + b
    shadow = high - a
    return high, (a - (high - shadow)) + (b - shadow)


def fast_two_sum(a: FloatArray, b: FloatArray) -> Pair:
    """The rounded sum and what was rounded away, for ``|a| >= |b|`` or ``a == 0``."""
    high = a + b
    return high, b - (high - a)


def halves(a: FloatArray) -> Pair:
    """Two parts of at most 26 bits each (sign apart) with ``high + low == a`` exactly.

    A rounded bit pattern cannot overflow. Other libraries have none and multiply: what overflows is NaN.
    """
    if is_foreign(a):
        stretched = 134217729.0 * a
        upper = stretched - (stretched - a)
        return upper, a - upper
    high = ((np.ascontiguousarray(a).view(np.int64) + _HALF_STEP) & _HIGH_BITS).view(np.float64)
    return high, a - high


def two_prod(a: FloatArray, b: FloatArray) -> Pair:
    """The rounded product and what was rounded away: ``high + low == a * b`` within :data:`TINY` (Dekker)."""
    high = a * b
    a_high, a_low = halves(a)
    b_high, b_low = halves(b)
    low = a_low * b_low - (((high - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return high, low


def add(a: Pair, b: Pair) -> Pair:
    """The sum of two pairs, within ``3 u**2`` of ``|a| + |b|``."""
    high, low = two_sum(a[0], b[0])
    return fast_two_sum(high, low + (a[1] + b[1]))


def add_accurately(a: Pair, b: Pair) -> Pair:
    """The sum of two pairs within ``4 u**2`` relative, however much cancels between the high parts."""
    high, low = two_sum(a[0], b[0])
    next_high, next_low = two_sum(a[1], b[1])
    high, low = fast_two_sum(high, low + next_high)
    return fast_two_sum(high, low + next_low)


def divide(a: Pair, b: Pair) -> Pair:
    """The quotient of two normalised pairs, within ``16 u**2`` relative (and :data:`TINY` of ``a``)."""
    quotient = a[0] / b[0]
    high, low = two_prod(quotient, b[0])
    left = (a[0] - high) - low + (a[1] - quotient * b[1])
    return fast_two_sum(quotient, left / b[0])


def square_root(a: Pair) -> Pair:
    """The square root of a normalised pair between 1 and 2, within ``16 u**2`` relative."""
    root = namespace_of(a[0]).sqrt(a[0])
    high, low = two_prod(root, root)
    left = (a[0] - high) - low + a[1]
    return fast_two_sum(root, left / (2.0 * root))


def times(a: Pair, b: Pair) -> Pair:
    """The product of two normalised pairs, within ``8 u**2`` relative and ``2 TINY``."""
    high, low = two_prod(a[0], b[0])
    return fast_two_sum(high, low + (a[0] * b[1] + a[1] * b[0]))


def round_to(a: FloatArray, unit: float, out: FloatArray | None = None) -> FloatArray:
    """The multiple of ``unit`` (a power of two) nearest to each entry, for entries below ``2**51 unit``."""
    shift = 1.5 * 2.0**52 * unit
    result: FloatArray = a + shift if is_foreign(a) else np.add(a, shift, out=out)
    result -= shift
    return result


def power_above(value: float) -> float:
    """The smallest power of two that is at least ``value``; one for zero."""
    if value <= 0.0:
        return 1.0
    fraction, exponent = np.frexp(value)
    return float(np.ldexp(1.0, int(exponent) - (fraction == 0.5)))


def length(vector: FloatArray) -> float:
    """An upper bound on the Euclidean norm, safe from overflow and underflow of squares."""
    array = np.abs(vector)
    top = float(array.max(initial=0.0))
    if top == 0.0 or not np.isfinite(top):
        return top
    shares = array / top
    return top * float(np.sqrt(shares @ shares)) * (1.0 + (array.size + 16) * 2.0**-51)


@dataclass(frozen=True)
class Dyadic:
    """The vector ``counts * 2**exponent``."""

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

    def on_grid(self, grid: float) -> "Dyadic":
        """The nearest vector of whole multiples of ``grid``, a power of two."""
        return self.rounded(math.frexp(grid)[1] - 1)

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


def as_pair(vector: Dyadic) -> Pair:
    """The nearest pair of doubles, off by ``2**-106`` of each entry."""
    high = vector.doubles()
    return high, (vector - Dyadic.of(high)).doubles()


NEXT_BITS = 20
"""How much finer the grid of each further slice is, of coefficients, rows and slopes alike, in bits."""


@dataclass(frozen=True)
class Point:
    """Coefficients as an exact sum of slices, the first with at most 29 bits below their norm."""

    slices: tuple[FloatArray, ...]
    exact: Dyadic
    norm: float
    unit: float
    """The grid of the first slice; ``norm`` is at least the Euclidean norm."""

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
        return list(accumulate(reversed(self.slices)))[::-1]


class Points(NamedTuple):
    """Where a pass is taken: a point, and the vectors of its scores as slices can hold them."""

    exact: Dyadic
    by_score: list[Point]
    offset: float = 0.0
    """No score's vector is farther from its point than this."""


def exact_sum(values: FloatArray, unit: float) -> Pair:
    """The column sums of up to ``2**26`` multiples of ``unit`` of 53 bits, as a pair without error."""
    upper = round_to(values, math.ldexp(unit, 27))
    xp = namespace_of(values)
    return two_sum(xp.sum(upper, axis=0), xp.sum(values - upper, axis=0))


@cache
def exact_in(space: Space) -> bool:
    """Whether arithmetic there does what slices and pairs rely on; asked once of each library and device.

    Section 10 of docs/mathematics.md says what that is.
    """
    random = np.random.default_rng(0)
    rows = random.integers(-(2**23), 2**23 + 1, size=(6, SUB_BLOCK, 40))
    vectors = random.integers(-(2**23), 2**23 + 1, size=(6, 2, SUB_BLOCK))
    vectors[:, 0], rows[:, :, 0] = 2**23, 2**23  # the largest sum that occurs
    product = on_host(space.put(vectors) @ space.put(rows))
    across = random.integers(-(2**24), 2**24 + 1, size=(3, 40))
    across[0], long = 2**24, rows.reshape(-1, 40)
    predicted = on_host(space.put(across) @ space.put(long).T)
    a, b = (np.exp(3.0 * random.normal(size=4096)) * random.normal(size=4096) for _ in range(2))
    there = space.put(a), space.put(b)
    pairs = [(two_sum(a, b), two_sum(*there)), (two_prod(a, b), two_prod(*there))]
    same = [np.array_equal(on_host(x), y) for one, two in pairs for x, y in zip(two, one, strict=True)]
    same.append(np.array_equal(on_host(there[0] / there[1]), a / b))
    root, rooted = np.sqrt(np.abs(a)), on_host(space.xp.sqrt(space.xp.abs(there[0])))
    same.append(bool(np.all(np.abs(rooted - root) <= np.spacing(root))))
    same.append(np.array_equal(product.astype(np.int64), vectors @ rows))
    same.append(np.array_equal(predicted.astype(np.int64), across @ long.T))
    return all(same)
