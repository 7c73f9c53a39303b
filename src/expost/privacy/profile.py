r"""The privacy profile of a whole publication: a certified upper bound on :math:`\delta(\epsilon)`.

A publication is the coefficients of objective perturbation and, optionally, noisy statistics at them.
Adding a record of slope :math:`m = |f'|` and curvature :math:`\kappa(m)` on a row of norm :math:`R`
makes the coefficients more likely by at most :math:`e^u`,

.. math:: u(m, N) = \log(1 + \kappa(m) R^2/\lambda) + \frac{m^2R^2}{2\sigma^2} + \frac{mR}{\sigma} N,

where :math:`N` is the noise along the row in units of :math:`\sigma`, a standard normal: :math:`f'`
depends on it, but the sign of :math:`f'` does not where the label alone decides it. Given the
coefficients, the statistics are one Gaussian mechanism of shift

.. math:: \Delta(m)^2 = \frac{m^2R^2}{\sigma_2^2} + \frac{\kappa^2R^4}{2\sigma_3^2}
          + \frac{\kappa^2R^4}{\sigma_4^2}.

With :math:`\delta_G` the profile of that mechanism (:func:`expost.gaussian.delta`), all of it satisfies

.. math:: \delta(\epsilon) \le \max_m \delta_G(\epsilon - \log(1 + \kappa(m) R^2/\lambda); S(m)), \quad
          S(m)^2 = m^2R^2/\sigma^2 + \Delta(m)^2

when the record is added, if :math:`\kappa(m)/m` does not rise with :math:`m`, as for every loss of this
library, or if there are no statistics. For a record that is removed, and for other curves,

.. math:: \delta(\epsilon) \le \mathbb{E}\, G(N), \quad
          G(N) = \sup_m \delta_G(\epsilon - u(m, N); \Delta(m)),

without the logarithm when the record is removed. Where the label does not fix the sign of :math:`f'`,
removing has :math:`|N|` for :math:`N`. The profile is the larger of the two directions. Shorter rows are
covered where :math:`\kappa(m)/m^2` does not rise with :math:`m`; a curve without that property is out of
scope. docs/mathematics.md, section 6, has the proofs.

**Several outputs.** The gradient then has no fixed direction: :math:`N` becomes a chi variable with as many
degrees of freedom as outputs and the logarithm counts once for every dimension of the Hessian's rank.

:mod:`expost.privacy.slopes` bounds the values over :math:`m`, :mod:`expost.privacy.expectation` those over
:math:`N`.
"""

import math
from dataclasses import dataclass

from expost._common.validation import check_positive
from expost.exceptions import CalibrationError
from expost.losses.base import DerivativeCurve
from expost.privacy.certified_profile import CertifiedProfile
from expost.privacy.expectation import Bracket, Noise, expectation
from expost.privacy.precision import REAL, Rounding
from expost.privacy.scales import NoiseScales
from expost.privacy.slopes import Slopes

# Widths of the bracket, as a share of its upper end: values without statistics cost less, so they get more.
_RTOL_MODEL = 2e-4
_RTOL = 9e-4
# The largest value at one slope is one number, so it is resolved this much further.
_FIXED = 1e-2


@dataclass(frozen=True)
class PrivacyProfile(CertifiedProfile):
    r"""What a publication costs at worst, for every :math:`\epsilon`.

    The module's docstring has the formula and its proof. It replaces the classical calibration of
    objective perturbation (Kifer, Smith and Thakurta, COLT 2012), which bounds the steepest slope and the
    largest curvature apart although no record has both, and needs two to three times the noise.
    Neighbours differ by adding or removing one record.

    Parameters
    ----------
    curve
        The derivative curve of the loss, :attr:`expost.Loss.curve`.
    norm
        The declared bound :math:`R` on the Euclidean norm of a row, the intercept's column included.
    l2
        The weight :math:`\lambda` of the penalty :math:`\lambda\|\theta\|^2/2` on the summed loss; with
        ``math.inf`` the determinant costs nothing.
    scales
        The noise :math:`\sigma` of objective perturbation and that of each statistic.
    rounding
        What is paid for the difference between real numbers and printed ones; nothing by default.

    Examples
    --------
    >>> from expost import LogisticLoss
    >>> scales = NoiseScales(4.309, sigma_hessian=0.9703)
    >>> profile = PrivacyProfile(LogisticLoss().curve, norm=1.0, l2=5.0, scales=scales)
    >>> f"{profile.delta(1.0).upper:.1e}", round(profile.epsilon(1e-6), 2)
    ('1.0e-06', 1.0)
    """

    curve: DerivativeCurve
    norm: float
    l2: float
    scales: NoiseScales
    rounding: Rounding = REAL

    def __post_init__(self) -> None:
        check_positive("norm", self.norm)
        check_positive("l2", self.l2, infinite=True)
        if not math.isfinite(self.curve.max_slope):
            raise CalibrationError(
                "no worst-case guarantee exists for a loss of unbounded slope; got max_slope=inf. "
                "Use a loss with a bounded slope, such as PseudoHuber, or state per-person losses only."
            )

    @property
    def width(self) -> float:
        """The default width of a bracket, as a share of its upper end."""
        return _RTOL if self.scales.releases_statistics else _RTOL_MODEL

    def continuous(self, at: float, width: float) -> Bracket:
        """The bracket for continuous noise."""
        first = self.adding(at, width)
        if self._contains_removing:
            return first
        # Only the maximum is returned, so the smaller of the two need not be resolved further.
        second = self.removing(at, width, scale=first.lower)
        return Bracket(max(first.lower, second.lower), max(first.upper, second.upper))

    def adding(self, at: float, width: float) -> Bracket:
        """The bracket for continuous noise when a record is added."""
        slopes = Slopes(self.curve, self.norm, self.l2, self.scales, self.rounding, at)
        if not self._along_its_row:
            return expectation(slopes, Noise(self.curve.outputs, signed=False), width)
        if self.scales.releases_statistics and not self.curve.ratio_falls:
            return expectation(slopes, Noise(1, signed=True), width)
        return slopes.worst_fixed(_FIXED * width)

    def removing(self, at: float, width: float, *, scale: float = 0.0) -> Bracket:
        """The bracket when a record is removed, resolved no further than a value of ``scale`` needs."""
        slopes = Slopes(self.curve, self.norm, math.inf, self.scales, self.rounding, at)
        if not self._along_its_row:
            return expectation(slopes, Noise(self.curve.outputs, signed=False), width, scale=scale)
        if self.scales.releases_statistics:
            return expectation(slopes, Noise(1, signed=self.curve.sign_fixed), width, scale=scale)
        return slopes.steepest()

    @property
    def _along_its_row(self) -> bool:
        """Whether a record's gradients all lie along its row."""
        return self.curve.outputs == self.curve.rank == 1

    @property
    def _contains_removing(self) -> bool:
        """Whether the bound for an added record is by its form at least that for a removed one."""
        if not self._along_its_row:
            return True
        inside = self.scales.releases_statistics and not self.curve.ratio_falls
        return inside and self.curve.sign_fixed
