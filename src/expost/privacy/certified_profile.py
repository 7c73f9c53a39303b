"""What every certified privacy profile can do, whatever the loss: state, decide and invert its bound."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

from scipy.optimize import brentq

from expost._common.typing import FloatArray
from expost._common.validation import check_positive, parameter_error
from expost.privacy import renyi
from expost.privacy.precision import Rounding

# Probabilities below this are not resolved, only bounded.
NEGLIGIBLE = 1e-300
# Covers rounding: errors of 1e-12 in the Gaussian profile and, where cells are narrow, of 1e-10 in their
# probabilities and means. Directed rounding of every operation would buy nothing at a tolerance of 1e-4.
ROUNDING = 1e-9
# The narrowest bracket that can be asked for.
_FINEST = 1e-6


Direction: TypeAlias = Literal["adding", "removing"]
"""Whether the second of two neighbours has one record more, or one less."""


class Bracket(NamedTuple):
    """Two numbers with the wanted one between them."""

    lower: float
    upper: float


def certified(lower: float, upper: float) -> Bracket:
    """The bracket of two computed ends, with room for rounding and for what is too small to be a double."""
    return Bracket(min(lower, 1.0) * (1.0 - ROUNDING), min(upper * (1.0 + ROUNDING) + NEGLIGIBLE, 1.0))


class CertifiedProfile(ABC):
    r"""A certified upper bound on :math:`\delta(\epsilon)` of a whole publication, from public values alone.

    A subclass brackets its bound for continuous noise, when a record is added and when one is removed.
    """

    rounding: Rounding

    @property
    @abstractmethod
    def width(self) -> float:
        """The default width of a bracket, as a share of its upper end."""

    @property
    @abstractmethod
    def rise(self) -> float:
        """The largest norm of a record's gradient, in units of the noise."""

    @property
    @abstractmethod
    def covers_removing(self) -> bool:
        """Whether the bound for an added record is by its form at least that for a removed one."""

    @abstractmethod
    def adding(self, at: float, width: float) -> Bracket:
        """The bracket for continuous noise when a record is added."""

    @abstractmethod
    def removing(self, at: float, width: float, *, scale: float = 0.0) -> Bracket:
        """The bracket when a record is removed, resolved no further than a value of ``scale`` needs."""

    @abstractmethod
    def divergences(self, orders: FloatArray) -> dict[Direction, FloatArray]:
        """Upper bounds on the Rényi divergences of these orders, for continuous noise (section 17)."""

    def other(self, direction: Direction, at: FloatArray, width: float) -> FloatArray:
        """Bounds on delta by another theorem, for continuous noise: by Rényi divergences by default."""
        return renyi.delta(renyi.ORDERS, self._divergences[direction], at)

    @cached_property
    def _divergences(self) -> dict[Direction, FloatArray]:
        """Those of the usual orders, which no epsilon changes."""
        return self.divergences(renyi.ORDERS)

    def continuous(self, at: float, width: float) -> Bracket:
        """The larger bracket of the two directions."""
        first = self.adding(at, width)
        if self.covers_removing:
            return first
        # Only the maximum is returned, so the smaller of the two need not be resolved further.
        second = self.removing(at, width, scale=first.lower)
        return Bracket(max(first.lower, second.lower), max(first.upper, second.upper))

    def delta(self, epsilon: float, *, rtol: float | None = None) -> Bracket:
        r"""Bracket the bound on :math:`\delta(\epsilon)`; ``upper`` is the guarantee to state.

        ``rtol`` is the width of the bracket, as a share of ``upper`` or of 1e-300, whichever is larger. What
        cannot be resolved that far gets a wider bracket, still certified.
        """
        at = check_positive("epsilon", epsilon) if epsilon != 0 else 0.0
        width = self.width if rtol is None else check_positive("rtol", rtol, below=1.0)
        if width < _FINEST:
            raise parameter_error("rtol", f"at least {_FINEST:g}", rtol)
        return self._printed(at, lambda before: self.continuous(before, width))

    def directed(self, epsilon: float, *, rtol: float) -> tuple[float, float]:
        """Certified bounds on delta when a record is added, and when one is removed; see section 13."""
        adding = self._printed(epsilon, lambda at: self.adding(at, rtol))
        removing = self._printed(epsilon, lambda at: self.removing(at, rtol))
        return adding.upper, removing.upper

    def _printed(self, at: float, continuous: Callable[[float], Bracket]) -> Bracket:
        """The bracket for discrete noise: P' ≤ e^ψ(e^ε' e^ψ Q' + δ(ε')) + tail with ε' = ε − 2ψ."""
        law = self.rounding.law(at)
        if law > 1.0:
            return Bracket(0.0, 1.0)  # beyond any use: an epsilon of 1e14
        lower, upper = continuous(max(at - 2.0 * law, 0.0))
        if at < 2.0 * law:
            upper += 2.0 * law  # δ(−e) ≤ δ(0) + 1 − exp(−e)
        return Bracket(lower, min(math.exp(law) * upper + self.rounding.tail, 1.0))

    def certifies(self, epsilon: float, delta: float) -> bool:
        """Whether ``self.delta(epsilon).upper <= delta``, with no more work than the answer takes."""
        target = check_positive("delta", delta, below=1.0)
        for rtol in (0.1, 0.01):
            lower, upper = self.delta(epsilon, rtol=rtol)
            if lower > target:
                return False
            # The finer upper bound exceeds the true value by less than this margin, so it agrees.
            if upper <= (1.0 - self.width) * target:
                return True
        return self.delta(epsilon).upper <= target

    def epsilon(self, delta: float) -> float:
        """The smallest ε that :meth:`delta` certifies for this ``delta``, to about 1e-6, on the private side.

        Printed numbers are certified up to an ε of 1e14 only; beyond that it is infinite.
        """
        target = check_positive("delta", delta, below=1.0)
        if target < 10.0 * NEGLIGIBLE:
            raise parameter_error("delta", f"at least {10.0 * NEGLIGIBLE:g}", delta)

        def excess(epsilon: float) -> float:
            return math.log(self.delta(epsilon).upper / target)

        low, high = 0.0, 1.0
        if excess(low) <= 0.0:
            return low
        while excess(high) > 0.0:
            low, high = high, 2.0 * high
            if self.rounding.law(high) > 1.0:
                return math.inf
        root = float(brentq(excess, low, high, xtol=1e-9 * high, rtol=1e-6))
        while excess(root) > 0.0:
            root *= 1.0 + 1e-6
        return root
