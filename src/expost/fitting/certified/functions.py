"""What a certificate asks of a loss, and the functions that losses share, with proved errors.

The error of a slope has two parts, ``per_curvature`` times the second derivative plus ``absolute``. Proofs,
also of the errors in the other modules here, are in docs/mathematics.md, section 10, "Errors of the
certificate's arithmetic".
"""

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext
from functools import cache
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from expost._common.namespaces import Space, namespace_of
from expost.fitting.certified.pairs import (
    TINY,
    Dyadic,
    FloatArray,
    Pair,
    Point,
    Points,
    add_accurately,
    divide,
    fast_two_sum,
    times,
    two_prod,
    two_sum,
)
from expost.losses import LogisticLoss
from expost.losses.records import Lengths, take

OF_PRODUCT = 2.0**-102
"""More than the relative error of a pair times a double."""
RELATIVE_ERROR = 2.0**-74
"""Bound on the relative error of :func:`decay` for arguments up to :data:`LIMIT`."""
LIMIT = 640.0
"""Larger arguments are taken for this one; both exponentials are below ``2**-923``."""

_STEPS = 512  # the fine table's length
_COARSE = 8  # steps of the coarse table in one unit
_FINE = _STEPS * _COARSE
_BITS = 256  # of the integers from which the tables are made


def decay(high: FloatArray, low: FloatArray) -> Pair:
    """``exp(-(high + low))`` as a pair, within ``2**-74`` of it; for ``high >= 0``, ``|low| <= 2**-40``."""
    xp = namespace_of(high)
    coarse_high, coarse_low, fine_high, fine_low, fine = exponential_tables(Space.of(high))
    inside = high <= LIMIT
    if xp is not np or not inside.all():
        high, low = xp.where(inside, high, LIMIT), xp.where(inside, low, 0.0)
    nearest = xp.round(high * _FINE)
    index = xp.astype(nearest, xp.int64)
    r, rest = two_sum(high - nearest * (1.0 / _FINE), low)
    q = r * r * (0.5 - r * (1.0 / 6.0 - r * (1.0 / 24.0 - r * (1.0 / 120.0))))
    q += rest * (r - 1.0)
    upper, lower = index >> 9, index & (_STEPS - 1)
    a_high, a_low = xp.take(coarse_high, upper), xp.take(coarse_low, upper)
    b_high, b_low = xp.take(fine_high, lower), xp.take(fine_low, lower)
    product = a_high * b_high
    cross = a_high * b_low + a_low * xp.take(fine, lower)
    shift, shift_low = two_prod(product, r)
    main, main_low = fast_two_sum(product, -shift)
    return fast_two_sum(main, main_low + ((product * q - shift_low) + cross * (1.0 - r + q)))


@cache
def exponential_tables(space: Space) -> tuple[FloatArray, ...]:
    """The tables of :func:`decay`: coarse ones, high and low parts, then fine ones, and these as doubles."""
    coarse_high, coarse_low = _powers(_COARSE, int(LIMIT) * _COARSE + 1)
    fine_high, fine_low = _powers(_FINE, _STEPS)
    tables = coarse_high, coarse_low, fine_high, fine_low, fine_high + fine_low
    return tuple(map(space.put, tables))


def _powers(steps: int, length: int) -> Pair:
    """``exp(-k / steps)`` for ``k < length``, each as 26 bits and 53 more, by integer arithmetic."""
    ratio = term = 1 << _BITS
    count = 0
    while term:
        count += 1
        term //= steps * count
        ratio += -term if count % 2 else term
    high, low = np.empty(length), np.empty(length)
    mantissa, exponent = 1 << _BITS, -_BITS
    for k in range(length):
        cut = mantissa.bit_length() - 26
        top = (mantissa + (1 << (cut - 1))) >> cut
        high[k] = np.ldexp(float(top), exponent + cut)
        rest = mantissa - (top << cut)
        # The conversion of an integer rounds once, to nearest; keep it in the range of doubles.
        low[k] = np.ldexp(float(rest >> 64), exponent + 64)
        mantissa = mantissa * ratio >> _BITS
        lost = _BITS + 1 - mantissa.bit_length()
        mantissa, exponent = mantissa << lost, exponent - lost
    return high, low


DecimalArray: TypeAlias = NDArray[Any]
"""An array of objects, all of them decimals."""


def smaller_probability(high: FloatArray, low: FloatArray) -> tuple[Pair, FloatArray, FloatArray]:
    """``s = e^-|t| / (1 + e^-|t|)`` as a pair, the curvature ``s(1-s)``, and the sign of ``t``."""
    xp = namespace_of(high)
    sign = xp.copysign(xp.ones_like(high), high)
    small, curvature = smaller_of(decay(xp.abs(high), sign * low))
    return small, curvature, sign


def exponential(high: FloatArray, low: FloatArray) -> Pair:
    """``e^t`` of either sign as a pair: :func:`decay`, or one divided by it."""
    xp = namespace_of(high)
    sign = xp.copysign(xp.ones_like(high), high)
    power = decay(xp.abs(high), sign * low)
    rising = divide((xp.ones_like(high), xp.zeros_like(high)), power)
    return xp.where(sign > 0.0, rising[0], power[0]), xp.where(sign > 0.0, rising[1], power[1])


def smaller_of(power: Pair) -> tuple[Pair, FloatArray]:
    """``a / (1 + a)`` as a pair, and the curvature that belongs to it."""
    small = divide(power, one_plus(power))
    return small, small[0] * (1.0 - small[0])


def one_plus(a: Pair) -> Pair:
    """``1 + a`` for a pair between 0 and 1, within ``u**2``."""
    high = 1.0 + a[0]
    low = a[0] - (high - 1.0)
    return fast_two_sum(high, low + a[1])


def probability(small: Pair, sign: FloatArray) -> Pair:
    """``1/(1 + e^-t)`` from the smaller probability and the sign of ``t``."""
    p, p_low = fast_two_sum(0.5 + 0.5 * sign, -sign * small[0])
    return fast_two_sum(p, p_low - sign * small[1])


def decimal_probability(t: Decimal, digits: int) -> Decimal:
    """``1/(1 + e^|t|)``; below the last digit of anything it is zero."""
    if abs(t) > 3 * digits:
        return Decimal(0)
    power = (-abs(t)).exp()
    return power / (1 + power)


def context(digits: int) -> Context:
    """Correct rounding to this many digits, and exponents without practical limit."""
    return Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


# Farther beyond the corner, in units of 1/r, decays are the same number: see `LIMIT`.
_FAR = 700.0
# The corner of what has no cap: no linear predictor is as large.
_NOWHERE = 2.0**1000


@dataclass(frozen=True)
class Corner:
    """The constants of a cap: as pairs within ``u**2`` of themselves, the gap without error.

    With ``c`` the cap and ``m0`` the slope at the corner, the slope at a distance ``t > 0`` beyond it is
    ``c - (c - m0) exp(-rt)``, ``r = m0 (1 - m0)/(c - m0)``; see :class:`expost.LogisticLoss`. Arrays have an
    entry for each row, or one for all of them.
    """

    cap: FloatArray
    steep: FloatArray
    """The slope at the corner, infinite without a cap."""
    place: Pair
    """The linear predictor ``g0 = log(m0 / (1 - m0))`` against the label."""
    rate: Pair
    gap: Pair
    """``c - m0``."""

    @classmethod
    def of(cls, loss: LogisticLoss, level: Any) -> "Corner":
        """The corners of rows of these levels, where these numbers lie; a loss with one cap has level 0."""
        cap, steep, *parts = (take(constants, level) for constants in corners(loss))
        return cls(cap, steep, *zip(parts[::2], parts[1::2], strict=True))

    def beyond(self, wrong: Pair) -> Pair:
        """How far linear predictors lie beyond the corner; negative before it."""
        return add_accurately(wrong, (-self.place[0], -self.place[1]))

    def exponent(self, beyond: Pair) -> Pair:
        """``r t`` for ``t = beyond``, between 0 and 700."""
        xp, limit = namespace_of(beyond[0]), _FAR / self.rate[0]
        inside = (beyond[0] > 0.0) & (beyond[0] <= limit)
        return times(self.rate, (xp.clip(beyond[0], 0.0, limit), xp.where(inside, beyond[1], 0.0)))

    def slopes(self, power: Pair) -> tuple[Pair, FloatArray]:
        """``c - (c - m0) exp(-rt)`` as a pair, and ``r(c - m0) exp(-rt)``, from the exponential.

        The slope is off by at most :math:`2^{-73.9}/r` of the curvature and :math:`2^{-100}`.
        """
        lost = times(self.gap, power)
        high, low = two_sum(self.cap + namespace_of(lost[0]).zeros_like(lost[0]), -lost[0])
        return fast_two_sum(high, low - lost[1]), self.rate[0] * lost[0]


@cache
def corners(loss: LogisticLoss) -> FloatArray:
    """Cap, slope at the corner, place, rate and gap, these as two doubles; those of a level in a column."""
    factors = [1.0] if loss.levels is None else loss.levels.factors.tolist()
    found = []
    for one in map(loss.at_level, factors):
        if one.corner is None:
            found.append([1.0, np.inf, _NOWHERE, 0.0, 1.0, 0.0, 0.0, 0.0])
            continue
        steep = one.corner_slope
        gap, gap_low = two_sum(np.array([one.cap]), np.array([-steep]))
        place, rate = map(_pair, in_decimals(one, 60))
        found.append([one.cap, steep, *place, *rate, float(gap[0]), float(gap_low[0])])
    return np.array(found).T


def smallest_rate(loss: LogisticLoss) -> float:
    """The smallest rate of the corners of a loss."""
    return float(np.min(corners(loss)[4]))


@cache
def in_decimals(loss: LogisticLoss, digits: int) -> tuple[Decimal, Decimal]:
    """``g0`` and ``r`` with this many digits; Python's decimals round the logarithm correctly."""
    with localcontext(context(digits)):
        cap, steep = Decimal(loss.cap), Decimal(loss.corner_slope)
        return (steep / (1 - steep)).ln(), steep * (1 - steep) / (cap - steep)


def beyond_corner(loss: LogisticLoss, wrong: Decimal, digits: int) -> tuple[Decimal, Decimal] | None:
    """Slope and curvature so far on the wrong side, or None before the corner or without a cap."""
    if loss.corner is None:
        return None
    place, rate = in_decimals(loss, digits)
    if wrong <= place:
        return None
    cap, exponent = Decimal(loss.cap), rate * (wrong - place)
    # Below the last digit of anything the exponential is zero.
    left = (cap - Decimal(loss.corner_slope)) * (Decimal(0) if exponent > 3 * digits else (-exponent).exp())
    return cap - left, rate * left


def _pair(number: Decimal) -> tuple[float, float]:
    """The nearest double and the double nearest to the rest."""
    with localcontext(context(60)):
        high = float(number)
        return high, float(number - Decimal(high))


class ProvedSlopes(NamedTuple):
    """First and second derivatives of a block of rows in their scores, with bounds on errors of the first."""

    first: Pair
    """Scores by rows."""
    weights: FloatArray
    """Rows by the sums of squares that make the Hessian."""
    smallest: FloatArray
    """The weight of each row in a reduced Hessian."""
    per_curvature: float
    """The error is at most this in the norm of the Hessian, times the root of its trace ..."""
    absolute: FloatArray | float
    """... plus this (Euclidean), for each row."""

    def times(self, weights: FloatArray) -> "ProvedSlopes":
        """Multiply each row by a weight, a double that is not negative; section 10 has the errors."""
        xp = namespace_of(weights)
        first = times(self.first, (weights, xp.zeros_like(weights)))
        underflow = 2.0**12 * TINY * (first[0].shape[0] + self.weights.shape[1])
        absolute = weights * self.absolute + OF_PRODUCT * xp.sum(xp.abs(first[0]), axis=0) + underflow
        bends = weights[:, None] * self.weights
        return ProvedSlopes(first, bends, weights * self.smallest, self.per_curvature, absolute)


class ProvedLoss(ABC):
    """A loss of the library's as a function of scores, with derivatives whose errors are theorems.

    A score is the inner product of a row with a vector that is linear in the coefficients. Here there is one
    score, and its vector is the coefficients. Another loss overrides what is different.
    """

    outputs: int = 1
    sums: int = 1
    """How many linear predictors there are, and how many sums of squares make the Hessian."""
    trace: float = 1.0
    """The trace of a record's Hessian in the scores for each unit of its weights."""
    score_error: float = 1.0
    """How often the error of a score counts, times the root of the curvature and in the Hessian's norm."""
    weight_roundings: float = 0.0
    hessian_roundings: int = 0
    """How much more often than for a scalar loss a weight, or a term of the Hessian, is rounded at most."""
    numbers_held: int = 0
    """How many numbers a device holds for each row, besides those of one score."""
    decimal_factor: int = 1
    """How much larger errors of decimals are, because predictors are turned into scores and slopes back."""

    def __init__(self, loss: Any) -> None:
        self.loss = loss
        self.level: Any = np.zeros(1, dtype=np.intp)
        """The level of each row, where the loss depends on its length."""

    def for_rows(self, rows: Any) -> Self:
        """The loss of these rows, for :meth:`slopes`."""
        levels, space, bound = self.loss.levels, rows.space, copy(self)
        first = space.xp.zeros(1, dtype=space.xp.int64, device=space.device)
        bound.level = first if levels is None else levels.of(rows)
        return bound

    def for_row(self, row: FloatArray) -> "ProvedLoss":
        """The loss of a single row of NumPy's, for :meth:`in_decimals`."""
        levels = self.loss.levels
        if levels is None:
            return self
        (factor,) = levels.factors[levels.of(Lengths.of(row[None, :]))]
        return type(self)(self.loss.at_level(factor))

    @property
    @abstractmethod
    def third_order(self) -> float:
        r"""The constant :math:`\zeta` of :math:`|f'''| \le \zeta f''`."""

    @property
    def slope_unit(self) -> float:
        """Slopes in decimals are off by a few roundings of this or of themselves."""
        return 1.0

    @abstractmethod
    def slopes(self, scores: list[Pair], y: FloatArray) -> ProvedSlopes:
        """Derivatives at the scores ``high + low``, each with ``|low| <= UNIT * |high|``."""

    @abstractmethod
    def in_decimals(
        self, point: DecimalArray, row: DecimalArray, label: Decimal, digits: int
    ) -> tuple[DecimalArray, DecimalArray, Decimal]:
        """Gradient and Hessian of a record in its linear predictors, and its weight in a reduced Hessian.

        A gradient is off by fifteen roundings of itself or of ``slope_unit``, times ``decimal_factor``, at
        most; a weight rounds it once more.
        """

    def points(self, where: Dyadic, slices: int) -> Points:
        """The point that this many slices can hold, and the vector of each score there."""
        point = Point.near(where, slices)
        return Points(point.exact, [point])

    def gradient(self, sums: Pair) -> tuple[Pair, float]:
        """The gradient in the coefficients from that in the vectors of the scores, and its error."""
        return (sums[0][0], sums[1][0]), 0.0

    def hessian(self, sums: FloatArray) -> FloatArray:
        """The Hessian in the coefficients from sums of squares."""
        matrix: FloatArray = sums[0]
        return matrix

    def exact_hessian(self, sums: Pair) -> FloatArray:
        """The Hessian in the coefficients from sums of squares that are pairs, rounded once."""
        matrix: FloatArray = sums[0][0] + sums[1][0]
        return matrix
