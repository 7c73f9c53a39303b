r"""What a certificate asks of a loss, and the functions that losses share, with proved errors.

No mathematical library promises how exact its ``exp`` is, so this one is built from a table and a polynomial.

The error of a slope has two parts, ``per_curvature`` times the second derivative plus ``absolute``. The first
kind hardly costs anything: :math:`H \succeq X^\top D X` gives :math:`\|X^\top\epsilon\|_{H^{-1}} \le
\sqrt{\sum_i \epsilon_i^2/\kappa_i}`, so that errors of :math:`c\,\kappa_i` add up to
:math:`c\sqrt{\sum\kappa_i}` only.

A loss may have a cap. With :math:`c` the cap, :math:`m_0` the slope at the corner (both doubles),
:math:`g_0 = \log(m_0/(1 - m_0))` and :math:`r = m_0(1 - m_0)/(c - m_0)`, the slope at a distance
:math:`t > 0` beyond the corner is :math:`c - (c - m_0)e^{-rt}`; see :class:`expost.LogisticLoss`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from expost._common.namespaces import Space, is_foreign, namespace_of
from expost.fitting.certified.pairs import (
    TINY,
    Dyadic,
    FloatArray,
    Pair,
    Point,
    Points,
    add_accurately,
    fast_two_sum,
    times,
    two_prod,
    two_sum,
)
from expost.losses import LogisticLoss

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
    r"""``exp(-(high + low))`` as a pair, for ``high >= 0`` and ``|low| <= 2**-40``.

    Write :math:`t = i_1/8 + i_0/4096 + r` with :math:`0 \le i_0 < 512` and, because :math:`i` is the integer
    nearest to :math:`4096\,t_h`, :math:`|r| \le 2^{-13} + 2^{-40}`. Then :math:`e^{-t} = A B e^{-r}` with
    :math:`A = e^{-i_1/8}` and :math:`B = e^{-i_0/4096}` from tables.

    Notes
    -----
    The error, relative to :math:`e^{-t}`, with :math:`u = 2^{-53}`:

    - *Reduction*: :math:`t_h - i/4096` is exact (both are multiples of the last bit of :math:`t_h`, and the
      difference is smaller than either or is :math:`t_h` itself); the sum with :math:`t_l` is a pair
      :math:`r + \rho` without error, :math:`|\rho| \le 2^{-66}`. Below :math:`t_h = 2^{-40}` nothing changes.
    - *Tables*: high parts have 26 bits, low parts are rounded to 53 bits below them: each entry is off by
      at most :math:`2^{-26}u = 2^{-79}` of itself, two of them by :math:`2^{-78}`.
    - *Product* :math:`AB`: :math:`P = A_hB_h` is exact. The rest, :math:`C = A_hB_l + A_l(B_h + B_l)`, is at
      most :math:`2^{-24.9}` of it; of the four roundings each is at most :math:`2^{-25.9}u` of it
      (the products, the sum :math:`B_h + B_l`) or :math:`2^{-24.9}u` (the last sum): together
      :math:`5 \cdot 2^{-78.9} < 2^{-76.5}`.
    - *Polynomial*: :math:`e^{-r} = 1 - r + q`, :math:`q = r^2(1/2 - r/6 + r^2/24 - r^3/120)` with a remainder
      of :math:`|r|^6/720 < 2^{-87}`; :math:`q \le 2^{-26.9}` is computed with a relative error below
      :math:`4u` (square, Horner's last sum and the product round once each, the steps before it contribute
      less than :math:`2^{-13}u`, the constant 1/6 is off by :math:`u`): :math:`2^{-77.9}`. The term
      :math:`-\rho e^{-r}` enters as :math:`\rho(r - 1)`; what is left of it is below :math:`2^{-90}`.
    - *Assembly*: :math:`Pr` is a product without error, :math:`P - (Pr)_h` a sum without error. The rest,
      :math:`(Pq' - (Pr)_l) + C(1 - r + q')` with :math:`q' = q + \rho(r-1)`, is below :math:`2^{-24.6}` of
      :math:`P`. Of its seven roundings two are at the size :math:`2^{-27}` of :math:`Pq'`, three at the size
      :math:`2^{-25}` of :math:`C`, two at its own: together :math:`6.2 \cdot 2^{-78} < 2^{-75.3}`.

    The sum of :math:`2^{-78} + 2^{-76.5} + 2^{-77.9} + 2^{-75.3}` and what is smaller is below
    :math:`2^{-74.4}`. For arguments up to 640 no part underflows: the smallest, a low part, is above
    :math:`2^{-1022}`, or is off by at most :math:`2^{-1072}`, which is :math:`2^{-149}` of the result.
    """
    xp = namespace_of(high)
    coarse_high, coarse_low, fine_high, fine_low, fine = (
        _tables() if xp is np else _placed_tables(Space.of(high))
    )
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
def _tables() -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    coarse_high, coarse_low = _powers(_COARSE, int(LIMIT) * _COARSE + 1)
    fine_high, fine_low = _powers(_FINE, _STEPS)
    return coarse_high, coarse_low, fine_high, fine_low, fine_high + fine_low


@cache
def _placed_tables(space: Space) -> Any:
    """The tables on a device, copied there once."""
    return tuple(map(space.put, _tables()))


def _powers(steps: int, length: int) -> Pair:
    """``exp(-k / steps)`` for ``k < length``, each as 26 bits and 53 more, by integer arithmetic.

    The series alternates, so that its remainder is below the first term left out; each of the 256-bit
    products loses at most one unit, so that after 5120 of them 240 bits are right.
    """
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


def context(digits: int) -> Context:
    """Correct rounding to this many digits, and exponents without practical limit."""
    return Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


# Farther beyond the corner, in units of 1/r, decays are the same number: see `LIMIT`.
_FAR = 700.0


@dataclass(frozen=True)
class Corner:
    """The constants of a cap: as pairs within ``u**2`` of themselves, the gap without error."""

    cap: float
    place: Pair
    """Where the corner is, the linear predictor ``g0`` against the label."""
    rate: Pair
    gap: Pair
    """``c - m0``."""

    @classmethod
    def of(cls, loss: LogisticLoss) -> "Corner":
        """The corner of a loss that has a cap."""
        place, rate = in_decimals(loss, 60)
        gap = two_sum(np.array([loss.cap]), np.array([-loss.corner_slope]))
        return cls(loss.cap, _pair(place), _pair(rate), gap)

    def placed(self, values: FloatArray) -> "Corner":
        """The constants where values lie."""
        if not is_foreign(values):
            return self
        put = Space.of(values).put
        place, rate, gap = ((put(a), put(b)) for a, b in (self.place, self.rate, self.gap))
        return Corner(self.cap, place, rate, gap)

    def beyond(self, wrong: Pair) -> Pair:
        """How far linear predictors lie beyond the corner; negative before it."""
        return add_accurately(wrong, (-self.place[0], -self.place[1]))

    def exponent(self, beyond: Pair) -> Pair:
        """``r t`` for ``t = beyond``, between 0 and 700."""
        xp, limit = namespace_of(beyond[0]), _FAR / float(self.rate[0][0])
        inside = (beyond[0] > 0.0) & (beyond[0] <= limit)
        return times(self.rate, (xp.clip(beyond[0], 0.0, limit), xp.where(inside, beyond[1], 0.0)))

    def slopes(self, power: Pair) -> tuple[Pair, FloatArray]:
        r"""``c - (c - m0) exp(-rt)`` as a pair, and ``r(c - m0) exp(-rt)``, from the exponential.

        Notes
        -----
        The slope is off by at most :math:`2^{-73.9}/r` of the curvature and :math:`2^{-100}`. With
        :math:`u = 2^{-53}`, :math:`x = rt`, :math:`D = c - m_0 < 1`:

        - *Exponential* (:mod:`expost.fitting.certified.functions`): :math:`2^{-74}` of :math:`De^{-x}`,
          which is the curvature divided by :math:`r`; the other errors move it by less than :math:`2^{-90}`.
        - *Its argument*: :math:`t` is off by :math:`4u^2t` and by the error :math:`u^2|g_0|` of the constant,
          with :math:`|g_0| < 28`; :math:`r` by :math:`u^2` of itself, and the product by :math:`8u^2`. So
          :math:`x` is off by :math:`14u^2x + 28u^2r`. As :math:`xe^{-x} < 0.4` and
          :math:`De^{-x}r \le \kappa_0 \le 1/4`, that is :math:`13u^2` in the slope.
        - *Product and sum*: :math:`8u^2` and :math:`6u^2`.
        - *Far away*: beyond :math:`x = 640` both slopes are within :math:`2^{-923}` of the cap.

        Together :math:`27u^2 < 2^{-101}`. On which side of the corner a point within :math:`2^{-100}` of it
        is counted changes its slope by less than :math:`2^{-170}`: slopes and curvatures of both sides
        agree there, and the third derivative is at most :math:`2^{20}`.
        """
        lost = times(self.gap, power)
        high, low = two_sum(namespace_of(lost[0]).full_like(lost[0], self.cap), -lost[0])
        return fast_two_sum(high, low - lost[1]), self.rate[0] * lost[0]


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


def _pair(number: Decimal) -> Pair:
    """The nearest double and the double nearest to the rest."""
    with localcontext(context(60)):
        high = float(number)
        return np.array([high]), np.array([float(number - Decimal(high))])


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
        r"""Multiply each row by a weight, a double that is not negative.

        The product of a pair and a double is off by :math:`8u^2` of itself, which is less than
        :math:`2^{-102}` of its high part, and by :data:`TINY`. The error of a slope is multiplied by its
        weight: the first part of it stays the same share of the curvature. A weighted curvature is rounded
        once more, and where it underflows it is off by less than :data:`TINY`: the second part pays for what
        the first may have lost there, with room for scores that are off by up to :math:`2^{10}`.
        """
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
    """How many linear predictors there are."""
    sums: int = 1
    """How many sums of squares make the Hessian."""
    trace: float = 1.0
    """The trace of a record's Hessian in the scores for each unit of its weights."""
    score_error: float = 1.0
    """How often the error of a score counts, times the root of the curvature and in the Hessian's norm."""
    weight_roundings: float = 0.0
    """How often a weight is rounded more than the one of a scalar loss, at most."""
    hessian_roundings: int = 0
    """How many more roundings are in a term of the Hessian than a scalar loss has."""
    numbers_held: int = 0
    """How many numbers a device holds for each row, besides those of one score."""
    decimal_factor: int = 1
    """How much larger errors of decimals are, because predictors are turned into scores and slopes back."""

    def __init__(self, loss: Any) -> None:
        self.loss = loss

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
