"""First derivatives of the losses as pairs and in decimals, with bounds on their errors."""

from abc import abstractmethod
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from expost._common.namespaces import namespace_of
from expost.fitting.certified.functions import (
    RELATIVE_ERROR,
    Corner,
    DecimalArray,
    ProvedLoss,
    ProvedSlopes,
    beyond_corner,
    decay,
    decimal_probability,
    exponential,
    one_plus,
    probability,
    smaller_of,
    smaller_probability,
    smallest_rate,
)
from expost.fitting.certified.pairs import (
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
from expost.fitting.certified.softmax_slopes import ClassScores
from expost.losses import (
    AnyLoss,
    BoundedGamma,
    BoundedPoisson,
    LogisticLoss,
    PseudoHuber,
    SmoothedHinge,
    SmoothedPinball,
    SoftmaxLoss,
    SquaredLoss,
)
from expost.losses.records import take

_NEAR_ONE = 2.0**-100
_FAR = 2.0**400  # beyond this many thresholds a slope is its limit to 2**-800

_Slopes: TypeAlias = tuple[Pair, FloatArray, float, FloatArray | float]
"""Slopes, curvatures and the two parts of the slopes' errors, as :class:`ProvedSlopes` has them."""


class _OneScore(ProvedLoss):
    """A loss of one linear predictor, from its derivatives there."""

    @abstractmethod
    def at(self, predictor: Pair, y: FloatArray) -> _Slopes: ...

    @abstractmethod
    def decimals(self, predictor: Decimal, y: Decimal, digits: int) -> tuple[Decimal, Decimal]: ...

    def slopes(self, scores: list[Pair], y: FloatArray) -> ProvedSlopes:
        (high, low), curvature, per_curvature, absolute = self.at(scores[0], y)
        first = high[None, :], low[None, :]
        return ProvedSlopes(first, curvature[:, None], curvature, per_curvature, absolute)

    def in_decimals(
        self, point: DecimalArray, row: DecimalArray, label: Decimal, digits: int
    ) -> tuple[DecimalArray, DecimalArray, Decimal]:
        predictor: Decimal = row.dot(point)
        slope, curvature = self.decimals(predictor, label, digits)
        return np.array([slope]), np.array([[curvature]]), curvature


class _Logistic(_OneScore):
    """The slope is ``(1 - y) - s`` or ``s - y``, ``s`` the smaller probability, up to the corner of a cap."""

    loss: LogisticLoss

    @property
    def third_order(self) -> float:
        # Beyond the corner of a cap the curvature falls at a rate of its own; four roundings are in it.
        return max(1.0, self.loss.corner_rate * (1.0 + 2.0**-48))

    def at(self, predictor: Pair, y: FloatArray) -> _Slopes:
        if self.loss.corner is not None:
            return self._capped(predictor, y)
        small, curvature, sign = smaller_probability(*predictor)
        base = 0.5 + 0.5 * sign  # one or zero
        if self.loss.soft:
            base, base_low = two_sum(base, -y)
            rest = base_low - sign * small[1]
        else:
            base -= y
            rest = -sign * small[1]
        slope, slope_low = two_sum(base, -sign * small[0])
        return fast_two_sum(slope, slope_low + rest), curvature, 2.01 * RELATIVE_ERROR, _NEAR_ONE

    def _capped(self, predictor: Pair, y: FloatArray) -> _Slopes:
        """``p`` before the corner and :meth:`Corner.slopes` beyond it, with the sign that the label fixes."""
        xp, corner = namespace_of(y), Corner.of(self.loss, self.level)
        side = xp.where(y > 0.5, -xp.ones_like(y), xp.ones_like(y))
        wrong, wrong_low = side * predictor[0], side * predictor[1]
        beyond = corner.beyond((wrong, wrong_low))
        outside = beyond[0] > 0.0
        exponent, exponent_low = corner.exponent(beyond)
        sign = xp.copysign(xp.ones_like(wrong), wrong)
        # One exponential serves both sides of the corner.
        high = xp.where(outside, exponent, xp.abs(wrong))
        power = decay(high, xp.where(outside, exponent_low, sign * wrong_low))
        small, curvature = smaller_of(power)
        p, p_low = probability(small, sign)
        (steep, steep_low), bent = corner.slopes(power)
        p, p_low = xp.where(outside, steep, p), xp.where(outside, steep_low, p_low)
        curvature = xp.where(outside, bent, curvature)
        per_curvature = max(2.01, 1.1 / smallest_rate(self.loss)) * RELATIVE_ERROR
        return (side * p, side * p_low), curvature, per_curvature, _NEAR_ONE

    def decimals(self, predictor: Decimal, y: Decimal, digits: int) -> tuple[Decimal, Decimal]:
        bent = beyond_corner(self.loss, -predictor if y > 0 else predictor, digits)
        if bent is not None:
            return (-bent[0] if y > 0 else bent[0]), bent[1]
        small = decimal_probability(predictor, digits)
        return ((1 - y) - small if predictor >= 0 else small - y), small * (1 - small)


class _Scaled(_OneScore):
    """A loss whose slope is linear in ``p = 1/(1 + e^-t)`` at a distance divided by a scale, ``t = d/a``."""

    loss: SmoothedHinge | SmoothedPinball

    @property
    def third_order(self) -> float:
        return float(np.nextafter(1.0 / self.loss.scale, np.inf))

    def _at_distance(self, distance: Pair) -> tuple[Pair, FloatArray, float]:
        """``p`` as a pair, the curvature ``p(1 - p)/a``, and the error of ``p`` per curvature."""
        (high, low), scale = distance, self.loss.scale
        xp, limit = namespace_of(high), 700.0 * min(scale, 1e300)
        far = xp.abs(high) > limit  # taken for 700 scales, which avoids an overflow
        if xp is not np or far.any():
            low, high = xp.where(far, 0.0, low), xp.clip(high, -limit, limit)
        small, curvature, sign = smaller_probability(*divide((high, low), _number(scale, high)))
        return probability(small, sign), curvature / scale, 2.01 * RELATIVE_ERROR * scale


class _Hinge(_Scaled):
    """The slope is minus the label times ``p`` at ``t = (1 - y eta)/a``."""

    loss: SmoothedHinge

    def at(self, predictor: Pair, y: FloatArray) -> _Slopes:
        (high, low), xp = predictor, namespace_of(y)
        margin = add_accurately((xp.ones_like(high), xp.zeros_like(high)), (-y * high, -y * low))
        (p, p_low), curvature, per_curvature = self._at_distance(margin)
        return (-y * p, -y * p_low), curvature, per_curvature, 2.0 * _NEAR_ONE

    def decimals(self, predictor: Decimal, y: Decimal, digits: int) -> tuple[Decimal, Decimal]:
        scale = Decimal(self.loss.scale)
        t = (1 - y * predictor) / scale
        small = decimal_probability(t, digits)
        return -y * (1 - small if t >= 0 else small), small * (1 - small) / scale


class _PseudoHuber(_OneScore):
    """The slope is the threshold times ``v/sqrt(1 + v**2)`` at ``v = (eta - y)/threshold``."""

    loss: PseudoHuber

    @property
    def third_order(self) -> float:
        return float(np.nextafter(1.5 / self.loss.threshold, np.inf))

    @property
    def thresholds(self) -> FloatArray:
        """Those of the levels; one without them."""
        levels = self.loss.levels
        return self.loss.threshold * (np.ones(1) if levels is None else levels.factors)

    @property
    def slope_unit(self) -> float:
        return float(self.thresholds[-1])

    def at(self, predictor: Pair, y: FloatArray) -> _Slopes:
        residual = add_accurately(predictor, (-y, namespace_of(y).zeros_like(y)))
        share, cosine = _saturating(*residual, self.thresholds, self.level)
        scale = take(self.thresholds, self.level)
        slope = times(share, (scale, namespace_of(y).zeros_like(scale)))
        # Products only: no power function promises its error.
        return slope, cosine * cosine * cosine, 0.0, _NEAR_ONE * self.slope_unit

    def decimals(self, predictor: Decimal, y: Decimal, digits: int) -> tuple[Decimal, Decimal]:
        residual, threshold = predictor - y, Decimal(self.loss.threshold)
        cosine = threshold / (threshold * threshold + residual * residual).sqrt()
        return residual * cosine, cosine**3


class _Pinball(_Scaled):
    """The slope is ``p`` less the level, at ``t = (eta - y)/a``."""

    loss: SmoothedPinball

    def at(self, predictor: Pair, y: FloatArray) -> _Slopes:
        xp = namespace_of(y)
        residual = add_accurately(predictor, (-y, xp.zeros_like(y)))
        p, curvature, per_curvature = self._at_distance(residual)
        level = xp.zeros_like(p[0]) + self.loss.level, xp.zeros_like(p[0])
        return add_accurately(p, (-level[0], level[1])), curvature, per_curvature, 2.0 * _NEAR_ONE

    def decimals(self, predictor: Decimal, y: Decimal, digits: int) -> tuple[Decimal, Decimal]:
        scale = Decimal(self.loss.scale)
        t = (predictor - y) / scale
        small = decimal_probability(t, digits)
        p = 1 - small if t >= 0 else small
        return p - Decimal(self.loss.level), small * (1 - small) / scale


class _Squashed(_OneScore):
    """A residual with an exponential in it, whose size is squashed below the threshold.

    The derivative of the residual in the linear predictor is the exponential, so that a relative error of the
    exponential is one of the predictor, and costs as much times the curvature.
    """

    loss: BoundedPoisson | BoundedGamma
    weight_roundings = 4.0
    hessian_roundings = 4

    @property
    def slope_unit(self) -> float:
        # A rounding of the exponential changes the slope by up to the curvature.
        return self.largest + self.loss.threshold

    @property
    @abstractmethod
    def largest(self) -> float:
        """The exponential at a residual of zero, at most."""

    @property
    def third_order(self) -> float:
        return float((2.0 + 1.5 * self.largest / self.loss.threshold) * (1.0 + 2.0**-50))

    def _at_residual(self, residual: Pair, power: FloatArray) -> _Slopes:
        xp, threshold = namespace_of(power), self.loss.threshold
        share, cosine = _saturating(*residual, np.array([threshold]), self.level)
        slope = times(share, (xp.zeros_like(power) + threshold, xp.zeros_like(power)))
        curvature = xp.clip(power, None, _FAR * threshold) * cosine * cosine * cosine
        return slope, curvature, 1.01 * RELATIVE_ERROR, 2.0 * _NEAR_ONE * threshold

    def _power(self, exponent: Decimal, digits: int) -> Decimal:
        """The exponential; beyond where one changes no digit of a slope it is that there."""
        far = Decimal(3 * digits + 800)
        return min(max(exponent, -far), far).exp()

    def _in_decimals(self, residual: Decimal, power: Decimal) -> tuple[Decimal, Decimal]:
        threshold = Decimal(self.loss.threshold)
        cosine = threshold / (threshold * threshold + residual * residual).sqrt()
        return residual * cosine, power * cosine**3


class _Poisson(_Squashed):
    """The residual is the mean ``e^eta`` less the count."""

    loss: BoundedPoisson

    @property
    def largest(self) -> float:
        return self.loss.largest

    def at(self, predictor: Pair, y: FloatArray) -> _Slopes:
        mean = exponential(*predictor)
        return self._at_residual(add_accurately(mean, (-y, namespace_of(y).zeros_like(y))), mean[0])

    def decimals(self, predictor: Decimal, y: Decimal, digits: int) -> tuple[Decimal, Decimal]:
        mean = self._power(predictor, digits)
        return self._in_decimals(mean - y, mean)


class _Gamma(_Squashed):
    """The residual is one less the amount's ratio ``y e^-eta`` to the mean."""

    loss: BoundedGamma
    largest = 1.0

    def at(self, predictor: Pair, y: FloatArray) -> _Slopes:
        xp = namespace_of(y)
        ratio = times(exponential(-predictor[0], -predictor[1]), (y, xp.zeros_like(y)))
        residual = add_accurately((xp.ones_like(y), xp.zeros_like(y)), (-ratio[0], -ratio[1]))
        return self._at_residual(residual, ratio[0])

    def decimals(self, predictor: Decimal, y: Decimal, digits: int) -> tuple[Decimal, Decimal]:
        ratio = y * self._power(-predictor, digits)
        return self._in_decimals(1 - ratio, ratio)


class _Squared(_OneScore):
    """The slope is the residual; a sum of pairs, off by ``4 u**2`` relative."""

    third_order = 0.0

    def at(self, predictor: Pair, y: FloatArray) -> _Slopes:
        xp = namespace_of(y)
        residual = add_accurately(predictor, (-y, xp.zeros_like(y)))
        return residual, xp.ones_like(residual[0]), 0.0, _NEAR_ONE * xp.abs(residual[0])

    def decimals(self, predictor: Decimal, y: Decimal, digits: int) -> tuple[Decimal, Decimal]:
        return predictor - y, Decimal(1)


_PROVED: dict[type[AnyLoss], type[ProvedLoss]] = {
    LogisticLoss: _Logistic,
    SmoothedHinge: _Hinge,
    PseudoHuber: _PseudoHuber,
    SquaredLoss: _Squared,
    SmoothedPinball: _Pinball,
    BoundedPoisson: _Poisson,
    BoundedGamma: _Gamma,
    SoftmaxLoss: ClassScores,
}


def proved_loss(loss: AnyLoss) -> ProvedLoss:
    """What the certificate knows of a loss for which :func:`proved` holds."""
    return _PROVED[type(loss)](loss)


def proved(loss: AnyLoss) -> bool:
    """Whether a loss is the library's: only of these the errors of the slopes are theorems.

    A class derived from one of them may have changed its formulas: it counts as unknown.
    """
    return type(loss) in _PROVED


def third_order(loss: AnyLoss) -> float:
    r"""The constant :math:`\zeta` of :math:`|f'''| \le \zeta f''`, for a loss of the library's."""
    return proved_loss(loss).third_order


def _saturating(high: FloatArray, low: FloatArray, scales: FloatArray, level: Any) -> tuple[Pair, FloatArray]:
    """``r/sqrt(r^2 + c^2)`` as a pair and ``(1 + (r/c)^2)^(-1/2)``, for ``r = high + low``.

    ``c`` is the scale of each number's level. Within :math:`60u^2`. Both are first divided by the scale's
    power of two, so that squares stay in range.
    """
    xp = namespace_of(high)
    fractions, exponents = np.frexp(scales)
    size, negative = xp.abs(high), xp.signbit(high)
    size_low = xp.where(negative, -low, low)
    if xp is np:
        with np.errstate(over="ignore"):
            size, size_low = np.ldexp(size, -exponents[level]), np.ldexp(size_low, -exponents[level])
    else:
        shrink = take(np.ldexp(1.0, -exponents), level)
        size, size_low = size * shrink, size_low * shrink
    far = size > _FAR
    size, size_low = xp.where(far, _FAR, size), xp.where(far, 0.0, size_low)
    zero = xp.zeros_like(size)
    c = take(fractions, level) + zero
    inner = size <= c
    over = (xp.where(inner, size, c), xp.where(inner, size_low, zero))
    under = (xp.where(inner, c, size), xp.where(inner, zero, size_low))
    quotient = divide(over, under)
    square, square_low = two_prod(quotient[0], quotient[0])
    root = square_root(one_plus((square, square_low + 2.0 * quotient[0] * quotient[1])))
    one = xp.ones_like(size)
    share = divide((xp.where(inner, quotient[0], one), xp.where(inner, quotient[1], zero)), root)
    cosine = xp.where(inner, 1.0, quotient[0]) / root[0]
    return (xp.where(negative, -share[0], share[0]), xp.where(negative, -share[1], share[1])), cosine


def _number(value: float, where: FloatArray) -> Pair:
    """A double as a pair, where an array lies."""
    zero = namespace_of(where).zeros_like(where[:1])
    return zero + value, zero
