r"""First derivatives of the losses and regularisers as pairs, each with a bound on its error.

The bound for a slope has two parts, ``per_curvature`` times the second derivative plus ``absolute``. The
first kind hardly costs anything: :math:`H \succeq X^\top D X` gives :math:`\|X^\top\epsilon\|_{H^{-1}} \le
\sqrt{\sum_i \epsilon_i^2/\kappa_i}`, so that errors of :math:`c\,\kappa_i` add up to
:math:`c\sqrt{\sum\kappa_i}` only.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from expost._common.namespaces import namespace_of
from expost.fitting.certified.functions import RELATIVE_ERROR, Corner, decay
from expost.fitting.certified.pairs import (
    TINY,
    FloatArray,
    Pair,
    add_accurately,
    divide,
    fast_two_sum,
    square_root,
    times,
    two_prod,
    two_sum,
)
from expost.losses import AnyLoss, LogisticLoss, Loss, PseudoHuber, SmoothedHinge, SoftmaxLoss, SquaredLoss
from expost.losses.registry import Regularizer, SmoothedL1

_NEAR_ONE = 2.0**-100
OF_PRODUCT = 2.0**-102
"""More than the relative error of a pair times a double."""
_FAR = 2.0**400  # beyond this many thresholds a slope is its limit to 2**-800


class Slopes(NamedTuple):
    """First derivatives ``high + low`` and second derivatives of one block of rows."""

    high: FloatArray
    low: FloatArray
    curvature: FloatArray
    per_curvature: float
    """The error of each slope is at most this times its curvature ..."""
    absolute: float | FloatArray
    """... plus this."""


SlopeRule: TypeAlias = Callable[[FloatArray, FloatArray, FloatArray], Slopes]


def third_order(loss: AnyLoss) -> float:
    r"""The constant :math:`\zeta` of :math:`|f'''| \le \zeta f''`, for a loss of the library's."""
    if type(loss) is LogisticLoss:
        # Beyond the corner of a cap the curvature falls at a rate of its own; four roundings are in it.
        return max(1.0, loss.corner_rate * (1.0 + 2.0**-48))
    if type(loss) is SmoothedHinge:
        return float(np.nextafter(1.0 / loss.scale, np.inf))
    if type(loss) is PseudoHuber:
        return float(np.nextafter(1.5 / loss.threshold, np.inf))
    if type(loss) is SquaredLoss:
        return 0.0
    assert type(loss) is SoftmaxLoss, "no other loss is certified"
    return _softmax_third_order(loss)


def _softmax_third_order(loss: SoftmaxLoss) -> float:
    r""":math:`\zeta = \sqrt2\max\{1, (r + (1-m_0)^2)/m_0\}`: :math:`|D^3f[h,u,u]| \le \zeta\|h\|D^2f[u,u]`.

    With :math:`a_u = E_\pi u - u_y`, :math:`s = F''/F' \le 1 - q`, :math:`\rho = F'''/F''` and
    :math:`w = u - E_\pi u + sa_u`, division by :math:`F'` gives :math:`D^2 = E_\pi w^2 + s(1-s)a_u^2` and
    :math:`D^3 = E_\pi[(h - E_\pi h + sa_h)w^2] + s(1-s)a_u^2\,a_h(\rho - s^2)/(1-s)`. The first factor and
    :math:`a_h` are at most the range of the scores' change, which is at most :math:`\sqrt2\|h\|`. Without a
    cap :math:`\rho - s^2 = -q^2` and :math:`1 - s = q`. Beyond a corner :math:`\rho = -r`, and :math:`s`
    falls from :math:`1 - m_0`.
    """
    if loss.corner is None:
        return float(np.nextafter(np.sqrt(2.0), 2.0))
    steep = loss.link.corner_slope
    bend = (loss.link.corner_rate + (1.0 - steep) ** 2) / steep
    return float(np.sqrt(2.0)) * max(1.0, bend) * (1.0 + 2.0**-40)


def proved(loss: AnyLoss, regularizer: Regularizer | None) -> bool:
    """Whether loss and regulariser are the library's: only of these the errors of the slopes are theorems.

    A class derived from one of them may have changed its formulas: it counts as unknown.
    """
    exactly = (LogisticLoss, SmoothedHinge, PseudoHuber, SquaredLoss, SoftmaxLoss)
    return type(loss) in exactly and (regularizer is None or type(regularizer) is SmoothedL1)


def slope_pair(
    loss: Loss, high: FloatArray, low: FloatArray, y: FloatArray, weights: FloatArray | None = None
) -> Slopes:
    """Slopes at the linear predictors ``high + low``, with ``|low| <= UNIT * |high|``, times the weights."""
    rules: dict[type[Loss], Callable[..., Slopes]] = {
        LogisticLoss: _logistic,
        SmoothedHinge: _hinge,
        PseudoHuber: _pseudo_huber,
        SquaredLoss: _squared,
    }
    slopes = rules[type(loss)](loss, high, low, y)
    return slopes if weights is None else _weighted(slopes, weights)


def _weighted(slopes: Slopes, weights: FloatArray) -> Slopes:
    r"""Slopes and curvatures times weights, which are doubles and not negative.

    The product of a pair and a double is off by :math:`8u^2` of itself, which is less than :math:`2^{-102}`
    of its high part, and by :data:`TINY`. The error of a slope is multiplied by its weight: the first part of
    it stays the same share of the curvature. A weighted curvature is rounded once more, and where it
    underflows it is off by less than :data:`TINY`: the second part pays for what the first may have
    lost there, with room for predictors that are off by up to :math:`2^{10}`.
    """
    xp = namespace_of(weights)
    high, low = times((slopes.high, slopes.low), (weights, xp.zeros_like(weights)))
    absolute = weights * slopes.absolute + OF_PRODUCT * xp.abs(high) + 2.0**12 * TINY
    return Slopes(high, low, weights * slopes.curvature, slopes.per_curvature, absolute)


def gradient_pair(regularizer: SmoothedL1, high: FloatArray, low: FloatArray) -> tuple[Pair, float]:
    """The regulariser's gradient as a pair, and a bound on the Euclidean norm of its error."""
    root = float(np.sqrt(len(high)))
    share, _ = _saturating(high, low, regularizer.scale)
    gradient_high, gradient_low = times(share, _number(regularizer.weight, high))
    return (gradient_high, gradient_low), _NEAR_ONE * root * regularizer.weight


def _smaller_probability(high: FloatArray, low: FloatArray) -> tuple[Pair, FloatArray, FloatArray]:
    r"""``e^-|t| / (1 + e^-|t|)`` as a pair, the curvature ``p(1-p)``, and the sign of ``t``.

    With :math:`s` the smaller of :math:`p` and :math:`1-p`, a relative error :math:`\epsilon` of
    :math:`e^{-|t|}` is one of at most :math:`\epsilon` in :math:`s`, and :math:`s \le 2p(1-p)`. Sum
    and quotient of pairs add at most :math:`20u^2 < 2^{-100}`.
    """
    xp = namespace_of(high)
    sign = xp.copysign(xp.ones_like(high), high)
    small, curvature = _small(decay(xp.abs(high), sign * low))
    return small, curvature, sign


def _small(power: Pair) -> tuple[Pair, FloatArray]:
    """``a / (1 + a)`` as a pair, and the curvature that belongs to it."""
    small = divide(power, _one_plus(power))
    return small, small[0] * (1.0 - small[0])


def _one_plus(a: Pair) -> Pair:
    """``1 + a`` for a pair between 0 and 1, within ``u**2``."""
    high = 1.0 + a[0]
    low = a[0] - (high - 1.0)
    return fast_two_sum(high, low + a[1])


def _logistic(loss: LogisticLoss, high: FloatArray, low: FloatArray, y: FloatArray) -> Slopes:
    """``(1 - y) - s`` or ``s - y``; ``1 - y`` may need a pair, and the last sum is off by ``2 u**2``."""
    if loss.corner is not None:
        return _capped(loss, high, low, y)
    small, curvature, sign = _smaller_probability(high, low)
    base = 0.5 + 0.5 * sign  # one or zero
    if loss.soft:
        base, base_low = two_sum(base, -y)
        rest = base_low - sign * small[1]
    else:
        base -= y
        rest = -sign * small[1]
    slope, slope_low = two_sum(base, -sign * small[0])
    return Slopes(*fast_two_sum(slope, slope_low + rest), curvature, 2.01 * RELATIVE_ERROR, _NEAR_ONE)


def _capped(loss: LogisticLoss, high: FloatArray, low: FloatArray, y: FloatArray) -> Slopes:
    """``p`` before the corner and :meth:`Corner.slopes` beyond it, with the sign that the label fixes."""
    xp, corner = namespace_of(high), Corner.of(loss).placed(high)
    side = xp.where(y > 0.5, -xp.ones_like(y), xp.ones_like(y))
    wrong, wrong_low = side * high, side * low
    beyond = corner.beyond((wrong, wrong_low))
    outside = beyond[0] > 0.0
    turn, turn_low = corner.turn(beyond)
    sign = xp.copysign(xp.ones_like(wrong), wrong)
    # One exponential serves both sides of the corner.
    power = decay(xp.where(outside, turn, xp.abs(wrong)), xp.where(outside, turn_low, sign * wrong_low))
    small, curvature = _small(power)
    p, p_low = fast_two_sum(0.5 + 0.5 * sign, -sign * small[0])
    p, p_low = fast_two_sum(p, p_low - sign * small[1])
    (steep, steep_low), bent = corner.slopes(power)
    p, p_low = xp.where(outside, steep, p), xp.where(outside, steep_low, p_low)
    curvature = xp.where(outside, bent, curvature)
    per_curvature = max(2.01, 1.1 / float(corner.rate[0][0])) * RELATIVE_ERROR
    return Slopes(side * p, side * p_low, curvature, per_curvature, _NEAR_ONE)


def _hinge(loss: SmoothedHinge, high: FloatArray, low: FloatArray, y: FloatArray) -> Slopes:
    """Minus the label times ``p`` at ``t = (1 - y eta)/a``.

    The pair for ``t`` is off by ``32 u**2 |t|``, and ``|t| p(1-p) <= 1``. A margin of more than 700 scales
    has the slope of its limit, up to ``2**-900``; taking it for 700 avoids an overflow.
    """
    xp, scale, limit = namespace_of(high), loss.scale, 700.0 * min(loss.scale, 1e300)
    margin, margin_low = add_accurately((xp.ones_like(high), xp.zeros_like(high)), (-y * high, -y * low))
    far = xp.abs(margin) > limit
    if xp is not np or far.any():
        margin_low = xp.where(far, 0.0, margin_low)
        margin = xp.clip(margin, -limit, limit)
    t, t_low = divide((margin, margin_low), _number(scale, high))
    small, curvature, sign = _smaller_probability(t, t_low)
    p, p_low = fast_two_sum(0.5 + 0.5 * sign, -sign * small[0])
    p, p_low = fast_two_sum(p, p_low - sign * small[1])
    return Slopes(-y * p, -y * p_low, curvature / scale, 2.01 * RELATIVE_ERROR * scale, 2.0 * _NEAR_ONE)


def _pseudo_huber(loss: PseudoHuber, high: FloatArray, low: FloatArray, y: FloatArray) -> Slopes:
    """The threshold times ``v/sqrt(1 + v**2)`` at ``v = (eta - y)/threshold``."""
    residual = add_accurately((high, low), (-y, namespace_of(y).zeros_like(y)))
    share, curvature = _saturating(residual[0], residual[1], loss.threshold)
    slope = times(share, _number(loss.threshold, high))
    return Slopes(*slope, curvature, 0.0, _NEAR_ONE * loss.threshold)


def _squared(loss: SquaredLoss, high: FloatArray, low: FloatArray, y: FloatArray) -> Slopes:
    """The residual; a sum of pairs, off by ``4 u**2`` relative."""
    xp = namespace_of(y)
    residual, residual_low = add_accurately((high, low), (-y, xp.zeros_like(y)))
    return Slopes(residual, residual_low, xp.ones_like(residual), 0.0, _NEAR_ONE * xp.abs(residual))


def _saturating(high: FloatArray, low: FloatArray, scale: float) -> tuple[Pair, FloatArray]:
    r"""``r/sqrt(r^2 + c^2)`` as a pair and ``(1 + (r/c)^2)^(-3/2)``, for ``r = high + low``, ``c = scale``.

    With :math:`q` the smaller of :math:`|r|/c` and :math:`c/|r|`, the share is :math:`q/S` or :math:`1/S`,
    :math:`S = \sqrt{1 + q^2}` between 1 and :math:`\sqrt2`. Quotient (:math:`16u^2`), square, sum, root
    and quotient are off by less than :math:`60u^2 < 2^{-100}` together. Both lengths are first divided
    by the power of two of the scale, so that neither squares nor quotients leave the range of doubles.
    """
    xp = namespace_of(high)
    fraction, exponent = math.frexp(scale)
    size, negative = xp.abs(high), xp.signbit(high)
    size_low = xp.where(negative, -low, low)
    if xp is np:
        with np.errstate(over="ignore"):
            size, size_low = np.ldexp(size, -exponent), np.ldexp(size_low, -exponent)
    else:  # or OverflowError
        size, size_low = size * math.ldexp(1.0, -exponent), size_low * math.ldexp(1.0, -exponent)
    far = size > _FAR
    size, size_low = xp.where(far, _FAR, size), xp.where(far, 0.0, size_low)
    inner = size <= fraction
    c, zero = xp.full_like(size, fraction), xp.zeros_like(size)
    over = (xp.where(inner, size, c), xp.where(inner, size_low, zero))
    under = (xp.where(inner, c, size), xp.where(inner, zero, size_low))
    quotient = divide(over, under)
    square, square_low = two_prod(quotient[0], quotient[0])
    root = square_root(_one_plus((square, square_low + 2.0 * quotient[0] * quotient[1])))
    one = xp.ones_like(size)
    share = divide((xp.where(inner, quotient[0], one), xp.where(inner, quotient[1], zero)), root)
    # Products only: no power function promises its error.
    cosine = xp.where(inner, 1.0, quotient[0]) / root[0]
    curvature = cosine * cosine * cosine
    return (xp.where(negative, -share[0], share[0]), xp.where(negative, -share[1], share[1])), curvature


def _number(value: float, beside: FloatArray) -> Pair:
    """A double as a pair, where an array lies."""
    one = namespace_of(beside).zeros_like(beside[:1])
    return one + value, one
