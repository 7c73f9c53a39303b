"""Corners of the objective: an L1 penalty, and bounds of the coefficients."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, Self

import numpy as np

from expost._common.typing import BoolArray, FloatArray
from expost._common.validation import check_positive, parameter_error

_AUTO = "0 is none, and 'auto' half of the noise of the objective."


@dataclass(frozen=True, eq=False)
class Corners:
    r"""A penalty that is linear between finitely many kinks, for each coefficient.

    .. math:: \rho_j(\theta) = l_j|\theta| \text{ for } a_j \le \theta \le b_j, \qquad \infty \text{ else}

    Its subdifferential at :math:`\theta` is :math:`[r^-, r^+]`: one number between kinks, an interval at a
    kink, unbounded at a bound. An intercept has none.

    Privacy
    -------
    Public: it is chosen without data, and changes neither noise nor guarantee (docs/mathematics.md,
    theorem 19.2).
    """

    l1: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, l1: float, low: Any, high: Any, *, intercept: int) -> Self | None:
        """The corners of a model with these bounds of its features' coefficients; None without any kink.

        ``intercept`` is how many intercepts come last: one or none, or one for each row of a record.
        """
        low, high = (np.array(ends, dtype=np.float64) for ends in np.broadcast_arrays(low, high))
        if l1 == 0.0 and np.all(np.isinf(low)) and np.all(np.isinf(high)):
            return None
        sizes = np.full(len(low), float(l1))
        free = [np.full(int(intercept), end) for end in (0.0, -math.inf, math.inf)]
        return cls(*map(np.append, (sizes, low, high), free))

    def described(self, columns: int) -> dict[str, Any]:
        """The penalty and the bounds of the features' coefficients, as a file has them."""
        finite = {
            name: [end if math.isfinite(end) else None for end in ends[:columns].tolist()]
            for name, ends in (("low", self.low), ("high", self.high))
        }
        return {"l1": float(np.max(self.l1))} | {
            name: None if all(end is None for end in ends) else ends for name, ends in finite.items()
        }

    @cached_property
    def middle(self) -> FloatArray:
        """Where the slope turns from −l1 to l1; a lower bound where there is no slope, or none inside."""
        zero = self.l1 * 0
        return np.where(self.l1 > 0, np.minimum(np.maximum(zero, self.low), self.high), self.low)

    @property
    def kinks(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of each coefficient up to three, in ascending order; infinite or equal where there are fewer."""
        return self.low, self.middle, self.high

    def slopes(self, theta: FloatArray, offset: Any = 0) -> tuple[FloatArray, FloatArray]:
        """The ends of the subdifferential at coefficients inside their bounds, less an offset."""
        below = np.where(theta <= self.middle, -self.l1, self.l1) - offset
        above = np.where(theta >= self.middle, self.l1, -self.l1) - offset
        infinite: Any = math.inf if self.low.dtype != object else Decimal("Infinity")
        return np.where(theta == self.low, -infinite, below), np.where(theta == self.high, infinite, above)

    def offset(self, theta: FloatArray) -> FloatArray:
        """The slope at each coefficient between kinks, and zero at a kink."""
        below, above = self.slopes(theta)
        return np.where(below < above, self.l1 * 0, below)

    def active(self, theta: FloatArray) -> BoolArray:
        """Whether each coefficient is at a kink."""
        below, above = self.slopes(theta)
        return np.asarray(below < above, dtype=bool)

    def states(self, theta: FloatArray) -> tuple[str, ...]:
        """What each coefficient is, in words: nothing to say of a free one."""
        words = np.where(theta == self.low, "at its lower bound", "")
        words = np.where(theta == self.high, "at its upper bound", words)
        return tuple(np.where(self.active(theta) & (theta == 0.0), "not used", words).tolist())

    def residual(self, gradient: FloatArray, theta: FloatArray, offset: Any = 0) -> FloatArray:
        """The shortest sum of a gradient of the rest and an element of the subdifferential at ``theta``.

        An offset is a part of the slopes that the gradient has in it.
        """
        below, above = self.slopes(theta, offset)
        return np.asarray(gradient + np.minimum(np.maximum(-gradient, below), above))

    def rate(
        self, gradient: FloatArray, theta: FloatArray, step: FloatArray, *, arriving: bool = False
    ) -> Any:
        """The directional derivative along a step that leaves a point, or arrives there."""
        below, above = self.slopes(theta)
        slopes = np.where((step > 0) != arriving, above, below)
        moved = np.asarray(step != 0, dtype=bool)
        return (gradient[moved] + slopes[moved]) @ step[moved]

    def inside(self, theta: FloatArray) -> FloatArray:
        """The nearest coefficients inside the bounds."""
        return np.minimum(np.maximum(theta, self.low), self.high)

    def snapped(self, theta: FloatArray, window: Any) -> FloatArray:
        """Coefficients inside their bounds, and on a kink if they are no farther than a window from it."""
        found = self.inside(theta)
        for kink in self.kinks:
            found = np.where(np.abs(found - kink) <= window, kink, found)
        return np.asarray(found + 0)  # no negative zero

    @property
    def narrowest(self) -> float:
        """The smallest distance between two kinks of one coefficient."""
        with np.errstate(invalid="ignore"):
            gaps = np.concatenate([self.middle - self.low, self.high - self.middle, self.high - self.low])
        return float(np.min(gaps[gaps > 0.0], initial=math.inf))

    def in_decimals(self) -> Self:
        """The same numbers as decimals, which are exact."""
        exactly: Callable[..., Any] = np.frompyfunc(Decimal, 1, 1)
        return replace(self, l1=exactly(self.l1), low=exactly(self.low), high=exactly(self.high))

    @property
    def digits(self) -> int:
        """How many decimal digits the longest of the kinks has."""
        finite = (Decimal(kink) for kink in np.concatenate(self.kinks).tolist() if math.isfinite(kink))
        return max((len(kink.as_tuple().digits) for kink in finite), default=0)


def l1_of(l1: Any, sigma: float) -> float:
    """An L1 penalty on the scale of ``l2``, half of the objective's noise for "auto"; or ParameterError."""
    if isinstance(l1, str) and l1 == "auto":
        return 0.5 * sigma
    return 0.0 if l1 == 0.0 and not isinstance(l1, bool) else check_positive("l1", l1, way_out=_AUTO)


def bounds_of(coef_bounds: Any, columns: int) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds of each coefficient from a pair of numbers or vectors, or ParameterError."""
    wanted = f"None or a pair (low, high) of numbers or of {columns} numbers each, with low < high"
    if coef_bounds is None:
        return np.full(columns, -math.inf), np.full(columns, math.inf)
    if not isinstance(coef_bounds, Sequence) or len(coef_bounds) != 2:
        raise parameter_error("coef_bounds", wanted, coef_bounds)
    try:
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), columns) for end in coef_bounds)
    except (TypeError, ValueError):
        raise parameter_error("coef_bounds", wanted, coef_bounds) from None
    if not np.all(low < high):  # neither NaN
        raise parameter_error("coef_bounds", wanted, coef_bounds)
    return low, high
