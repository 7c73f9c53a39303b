"""How a loss is accounted for: the smallest of several certificates, and the limits of its records."""

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq

from expost._common.typing import FloatArray
from expost.losses.base import DerivativeCurve
from expost.privacy import gaussian, renyi
from expost.privacy.certified_profile import NEGLIGIBLE, ROUNDING, Bracket, CertifiedProfile, Direction
from expost.privacy.precision import REAL, Rounding
from expost.privacy.profile import PrivacyProfile
from expost.privacy.scales import NoiseScales, Statistic

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


@dataclass(frozen=True)
class Accounting:
    """How a loss is accounted for on rows of at most one norm: its profiles, and the limits of its records.

    For one linear predictor, and for several whose gradients are bounded by their length alone.
    """

    curve: DerivativeCurve
    norm: float
    reduced: bool = False
    unit: str = "row"

    classical: ClassVar[bool] = True  # whether the classical theorem for objective perturbation holds
    can_be_reduced: ClassVar[bool] = False  # whether there is a reduced Hessian

    @property
    def slope(self) -> float:
        """The largest norm of one record's gradient, ξ."""
        return self.curve.max_slope * self.norm

    @property
    def curvature(self) -> float:
        """The largest eigenvalue of one record's Hessian, β."""
        return self.curve.max_curvature * self.norm**2

    @property
    def released_curvature(self) -> float:
        """The largest eigenvalue of one record's part in the Hessian that is released."""
        return self.curvature

    def sensitivity(self, statistic: Statistic) -> float:
        """How far one record can move a statistic."""
        return float(statistic.sensitivity(self.slope, self.released_curvature, self.curve.rank))

    def profile(self, l2: float, scales: NoiseScales, rounding: Rounding = REAL) -> CertifiedProfile:
        """The certified profile of a publication with this regularisation and this noise."""
        return PrivacyProfile(self.curve, self.norm, l2, scales, rounding, self.unit)

    def sharpest(self, l2: float, scales: NoiseScales, rounding: Rounding = REAL) -> SharpestProfile:
        """That profile, or less where another theorem says so: what a plan promises."""
        first = self.profile(l2, scales, rounding)
        return SharpestProfile(first, first.rounding)

    def log_determinant(self, l2: float) -> float:
        """The largest log-determinant: k log(1 + β/λ) for a row's Hessian of rank k, a person's is kβ/λ."""
        trace = self.curvature / l2
        return self.curve.rank * (trace if self.unit == "person" else math.log1p(trace))

    def floor(self, epsilon: float) -> float:
        """The regularisation at which that is ε, such as β/(e^{ε/k} − 1); below it no noise is enough."""
        share = epsilon / self.curve.rank
        if self.unit == "person":
            return self.curvature / share
        return self.curvature * math.exp(-share) / -math.expm1(-share)

    def flat_sigma(self, epsilon: float, delta: float) -> float | None:
        """The noise at an infinite regularisation, or None where only a search of the profile finds it."""
        if self.curve.sign_fixed and self.curve.outputs == 1:
            return gaussian.sigma(epsilon, delta, sensitivity=self.slope)
        return None

    def least_l2(self, epsilon: float) -> float | None:
        """The least default regularisation; None where it is found by what it costs in noise."""
        return None
