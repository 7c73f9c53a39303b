r"""The part of a privacy loss above epsilon, on average: for neighbours that differ by a row, or by a person.

:class:`Excess` is :math:`h(s) = (1 - e^{\epsilon - s})_+` itself. A person with several rows is accounted for
with a convex function above it, a :class:`Tangent` (docs/mathematics.md, theorem 15.1).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import erfcx, log_ndtr, ndtr

from expost._common.typing import FloatArray
from expost.privacy import gaussian

# How far below the largest one a place of tangency is looked for, and how closely, both as logarithms: the
# bound is flat around its minimum, and every place gives a valid one.
_DEEPEST, _NEAR = 23.0, 1e-3


@dataclass(frozen=True)
class Excess:
    r"""The function :math:`h` of losses of one row, and its mean where a loss is normal.

    ``left`` is :math:`\epsilon - u`, and the loss :math:`u + \Delta^2/2 + \Delta z` with a standard normal
    :math:`z`, so that :meth:`mean` is :math:`\delta_G(\epsilon - u; \Delta)`.
    """

    @property
    def room(self) -> float:
        """How far below epsilon the function begins to rise."""
        return 0.0

    def determinant(self, trace: FloatArray | float) -> FloatArray:
        """The largest log-determinant of a Hessian of rank one with this trace, in units of λ."""
        return np.log1p(trace)

    def mean(self, left: FloatArray, shift: FloatArray) -> FloatArray:
        """The mean of the function."""
        return gaussian.delta(left, sensitivity=shift, sigma=1.0)

    def mean_at_shift(self, left: FloatArray, shift: float) -> FloatArray:
        """The expected excess for one shift, far from zero without special functions."""
        return gaussian.delta_at_shift(left, shift)

    def folded(self, epsilon: float, shift: float) -> float:
        r"""The mean at the loss :math:`\Delta^2/2 + \Delta|N|`, for slopes of either sign."""
        if epsilon < 0.5 * shift**2:
            return -math.expm1(epsilon + math.log(2.0) + float(log_ndtr(-shift)))
        return 2.0 * float(gaussian.delta(epsilon, sensitivity=shift, sigma=1.0))

    def bend(self, left: FloatArray, shift: FloatArray) -> FloatArray:
        r"""A :math:`\rho`, as a share of the slope, with which means are convex in :math:`e^{-\rho N}`."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.where(left > 0.0, np.clip(0.5 - left / shift**2, 0.0, 1.0), 1.0)

    def beyond(self, mass: float, last: float, overshoot: float) -> float:
        """A bound on what lies beyond the last noise: its mass, the value there, the mean rise from there."""
        return mass


@dataclass(frozen=True)
class Tangent(Excess):
    r"""The tangent of :math:`1 - e^{\epsilon - s}` at :math:`s = \epsilon + \tau`, where it is positive.

    .. math:: \psi_\tau(s) = e^{-\tau}(s - s_0)_+, \qquad s_0 = \epsilon - (e^\tau - 1 - \tau)

    It lies above :math:`h`, and it is convex: a person's loss is at most an average of losses of single rows,
    so her mean is at most the average of theirs, of which one is the worst. The log-determinant of an average
    is at most the average of the traces. Assumes :math:`s_0 \ge 0`.

    Examples
    --------
    >>> loss = np.array([0.9, 1.05, 1.5])
    >>> -np.expm1(np.minimum(1.0 - loss, 0.0)) <= Tangent(0.05).mean(1.0 - loss, np.zeros(3))
    array([ True,  True,  True])
    """

    tau: float = 0.0

    @property
    def room(self) -> float:
        """How far the zero of the tangent lies below epsilon."""
        return math.expm1(self.tau) - self.tau

    def determinant(self, trace: FloatArray | float) -> FloatArray:
        """The trace itself: the bound for any number of rows."""
        return np.asarray(trace)

    def mean(self, left: FloatArray, shift: FloatArray) -> FloatArray:
        r"""The mean :math:`e^{-\tau}\Delta(\varphi(y) + y\Phi(y))`, :math:`\Delta y = \Delta^2/2+u-s_0`."""
        above, width = np.broadcast_arrays(self.room - left + 0.5 * np.square(shift), shift)
        spread = width > 0.0
        y = np.divide(above, width, out=np.zeros(above.shape), where=spread)
        low = np.minimum(y, 0.0)
        # Below zero its factor is 1 - |y| times the Mills ratio, so that no digits are lost in the tail.
        mills = math.sqrt(0.5 * math.pi) * erfcx(-low / math.sqrt(2.0))
        tail = np.exp(-0.5 * y * y) / math.sqrt(2.0 * math.pi) * (1.0 + low * mills)
        risen = width * (tail + np.maximum(y, 0.0) * ndtr(y))
        return np.asarray(math.exp(-self.tau) * np.where(spread, risen, np.maximum(above, 0.0)))[()]

    def mean_at_shift(self, left: FloatArray, shift: float) -> FloatArray:
        """The expected excess for one shift."""
        return self.mean(left, np.asarray(shift))

    def folded(self, epsilon: float, shift: float) -> float:
        r"""The mean at the loss :math:`\Delta^2/2 + \Delta|N|`."""
        above = 0.5 * shift**2 + self.room - epsilon
        if above > 0.0:
            return math.exp(-self.tau) * (above + shift * math.sqrt(2.0 / math.pi))
        return 2.0 * float(self.mean(np.asarray(epsilon), np.asarray(shift)))

    def bend(self, left: FloatArray, shift: FloatArray) -> FloatArray:
        """Zero: means are convex in the noise itself."""
        return np.zeros(np.broadcast_shapes(left.shape, shift.shape))

    def beyond(self, mass: float, last: float, overshoot: float) -> float:
        """The value at the last noise, and the steepest rise from there; it is not bounded by one."""
        return mass * last + overshoot


ROW = Excess()
UNITS = {"row": ROW, "person": Tangent()}
"""What neighbouring tables differ by, one row or all rows of a person, and the kind of excess of each."""


def best_tangent(epsilon: float, bound: Callable[[Tangent], float]) -> Tangent:
    r"""The tangent with the smallest bound, about; any one with :math:`s_0 \ge 0` serves.

    :math:`\tau \le \log(1 + \sqrt{2\epsilon})` is enough for that, as :math:`x - \log(1 + x) \le x^2/2`.
    """
    if epsilon == 0.0:
        return Tangent(0.0)
    top = math.log(math.log1p(math.sqrt(2.0 * epsilon)))
    found = minimize_scalar(
        lambda logarithm: bound(Tangent(math.exp(logarithm))),
        bounds=(top - _DEEPEST, top),
        method="bounded",
        options={"xatol": _NEAR},
    )
    return Tangent(math.exp(float(found.x)))
