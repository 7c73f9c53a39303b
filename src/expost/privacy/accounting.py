"""How a loss is accounted for: its certified profiles, and the limits of its records."""

import math
from dataclasses import dataclass
from typing import ClassVar

from expost.losses.base import DerivativeCurve
from expost.privacy import gaussian
from expost.privacy.certified_profile import CertifiedProfile
from expost.privacy.precision import REAL, Rounding
from expost.privacy.profile import PrivacyProfile
from expost.privacy.scales import NoiseScales, Statistic
from expost.privacy.sharpest import SharpestProfile


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
