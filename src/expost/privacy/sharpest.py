"""The smallest of several certificates: a profile, and what another theorem says of the same publication."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import brentq

from expost._common.typing import FloatArray
from expost.privacy import gaussian, renyi
from expost.privacy.certified_profile import NEGLIGIBLE, ROUNDING, Bracket, CertifiedProfile, Direction
from expost.privacy.precision import Rounding

# How near the Gaussian mechanism's delta a bound is exact: by itself, and as a share of its width.
_EXACT, _OF_WIDTH = 1e-5, 0.02
_DIRECTIONS: tuple[Direction, Direction] = ("adding", "removing")


@dataclass(frozen=True)
class SharpestProfile(CertifiedProfile):
    r"""In each direction the smaller bound of the ``first`` certificate and of the other theorem for it.

    No certificate is below the Gaussian mechanism of the largest gradient, so where the first one is that,
    the other is not asked.
    """

    first: CertifiedProfile
    rounding: Rounding

    @property
    def width(self) -> float:
        """The default width of a bracket of the first certificate."""
        return self.first.width

    @property
    def rise(self) -> float:
        """The largest norm of a record's gradient, in units of the noise."""
        return self.first.rise

    @property
    def covers_removing(self) -> bool:
        """No: each direction may be sharpened by itself."""
        return False

    def adding(self, at: float, width: float) -> Bracket:
        """The bracket for continuous noise when a record is added."""
        return self._sharpest("adding", at, width, self.first.adding(at, width))

    def removing(self, at: float, width: float, *, scale: float = 0.0) -> Bracket:
        """The bracket when a record is removed, resolved no further than a value of ``scale`` needs."""
        return self._sharpest("removing", at, width, self.first.removing(at, width, scale=scale))

    def divergences(self, orders: FloatArray) -> dict[Direction, FloatArray]:
        """Upper bounds on the Rényi divergences of these orders."""
        return self.first.divergences(orders)

    def continuous(self, at: float, width: float) -> Bracket:
        """The larger bracket of the two directions."""
        own = self.first.adding(at, width)
        added = self._sharpest("adding", at, width, own)
        if self.first.covers_removing and added is own:
            return own
        removed = self.removing(at, width, scale=added.lower)
        return Bracket(max(added.lower, removed.lower), max(added.upper, removed.upper))

    def certifies(self, epsilon: float, delta: float) -> bool:
        """Whether ``self.delta(epsilon).upper <= delta``, with no more work than the answer takes."""
        return self.first.certifies(epsilon, delta) or self.delta(epsilon).upper <= delta

    def _sharpest(self, direction: Direction, at: float, width: float, own: Bracket) -> Bracket:
        upper = float(self._smaller(direction, np.array([at]), np.array([own.upper]), width)[0])
        if upper == own.upper:
            return own
        return Bracket(min(own.lower, upper, float(self._least(np.array(at)))), upper)

    def _least(self, at: FloatArray) -> FloatArray:
        together = math.hypot(self.rise, self.rounding.solver)
        return (1.0 - ROUNDING) * gaussian.delta(at, sensitivity=together, sigma=1.0)

    def _smaller(self, direction: Direction, at: FloatArray, own: FloatArray, width: float) -> FloatArray:
        """The smaller of these bounds and those of the other theorem."""
        found = own.copy()
        asked = own > self._least(at) * (1.0 + _EXACT + _OF_WIDTH * width)
        if np.any(asked):
            other = self.first.other(direction, at[asked], width)
            found[asked] = np.minimum(own[asked], other * (1.0 + ROUNDING) + NEGLIGIBLE)
        return found

    def sharpened(self, epsilons: FloatArray, own: FloatArray, *, rtol: float) -> FloatArray:
        """What the first certificate's ``directed`` found at these epsilons, one row each, or less.

        The other theorem is asked for all of them at once, which takes little longer than for one.
        """
        law = np.array([self.rounding.law(at) for at in epsilons.tolist()])
        before, excess = np.maximum(epsilons - 2.0 * law, 0.0), np.where(epsilons < 2.0 * law, 2.0 * law, 0.0)
        found = own.copy()
        for column, direction in enumerate(_DIRECTIONS):
            other = self._smaller(direction, before, own[:, column], rtol)
            printed = np.exp(law) * (other + excess) + self.rounding.tail
            # What was not sharpened is printed already.
            found[:, column] = np.minimum(own[:, column], printed)
        return found

    def kept(self, last: float) -> tuple[renyi.Orders, renyi.Orders]:
        """Rényi divergences of what is printed, added and removed, for epsilons up to ``last``."""
        law = self.rounding.law(last)
        price = law * (2.0 * renyi.ORDERS - 1.0) / (renyi.ORDERS - 1.0) if law <= 1.0 else math.inf
        bounds = self.divergences(renyi.ORDERS)
        adding, removing = (
            tuple(
                (number, divergence)
                for number, divergence in zip(
                    renyi.NUMBERS, (bounds[direction] + price).tolist(), strict=True
                )
                if divergence < math.inf
            )
            for direction in _DIRECTIONS
        )
        return adding, removing

    def epsilon(self, delta: float) -> float:
        """The smallest ε that :meth:`delta` certifies for this ``delta``; see the first certificate."""
        alone = self.first.epsilon(delta)
        # The other theorem costs more time, and is asked only where it is sharper.
        if alone == 0.0 or math.isinf(alone):
            return alone
        if self.delta(alone).upper == self.first.delta(alone).upper:
            return alone

        @cache
        def excess(epsilon: float) -> float:
            return math.log(self.delta(epsilon).upper / delta)

        low = float(gaussian.epsilon(delta, sensitivity=self.rise, sigma=1.0))
        if excess(low) <= 0.0 or excess(alone) > 0.0:
            return low if excess(low) <= 0.0 else alone
        root = float(brentq(excess, low, alone, xtol=1e-7 * alone, rtol=1e-6))
        while excess(root) > 0.0:
            root *= 1.0 + 1e-6
        return min(root, alone)
