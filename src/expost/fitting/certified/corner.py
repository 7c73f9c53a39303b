r"""The corner of the capped logistic loss, in decimals and in pairs.

With :math:`c` the cap, :math:`m_0` the slope at the corner (both doubles),
:math:`g_0 = \log(m_0/(1 - m_0))` and :math:`r = m_0(1 - m_0)/(c - m_0)`, the slope at a distance
:math:`t > 0` beyond the corner is :math:`c - (c - m_0)e^{-rt}`; see :class:`expost.LogisticLoss`.
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache

import numpy as np

from expost._common.namespaces import Space, is_foreign, namespace_of
from expost.fitting.certified.decimal_algebra import context
from expost.fitting.certified.pairs import (
    FloatArray,
    Pair,
    add_accurately,
    fast_two_sum,
    times,
    two_sum,
)
from expost.losses import LogisticLoss

# Farther beyond the corner, in units of 1/r, decays are the same number: see `exponential.LIMIT`.
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
        """The same constants where values lie."""
        if not is_foreign(values):
            return self
        put = Space.of(values).put
        place, rate, gap = ((put(a), put(b)) for a, b in (self.place, self.rate, self.gap))
        return Corner(self.cap, place, rate, gap)

    def beyond(self, wrong: Pair) -> Pair:
        """How far linear predictors lie beyond the corner; negative before it."""
        return add_accurately(wrong, (-self.place[0], -self.place[1]))

    def turn(self, beyond: Pair) -> Pair:
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

        - *Exponential* (:mod:`expost.fitting.certified.exponential`): :math:`2^{-74}` of :math:`De^{-x}`,
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
    """``g0`` and ``r`` with so many digits; Python's decimals round the logarithm correctly."""
    with localcontext(context(digits)):
        cap, steep = Decimal(loss.cap), Decimal(loss.corner_slope)
        return (steep / (1 - steep)).ln(), steep * (1 - steep) / (cap - steep)


def decimal_derivatives(
    loss: LogisticLoss, eta: Decimal, y: Decimal, digits: int
) -> tuple[Decimal, Decimal] | None:
    """Slope and curvature beyond the corner, or None before it."""
    place, rate = in_decimals(loss, digits)
    beyond = (-eta if y > 0 else eta) - place
    if beyond <= 0:
        return None
    cap, turn = Decimal(loss.cap), rate * beyond
    # Below the last digit of anything the exponential is zero.
    left = (cap - Decimal(loss.corner_slope)) * (Decimal(0) if turn > 3 * digits else (-turn).exp())
    return (left - cap if y > 0 else cap - left), rate * left


def _pair(number: Decimal) -> Pair:
    """The nearest double and the double nearest to the rest."""
    with localcontext(context(60)):
        high = float(number)
        return np.array([high]), np.array([float(number - Decimal(high))])
