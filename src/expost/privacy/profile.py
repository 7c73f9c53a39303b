r"""The privacy profile of a whole publication of one linear predictor, as a certified upper bound.

For the largest curvature on a cell of slopes and its steepest slope together, the privacy loss and the
statistics' shift (:mod:`expost.privacy.profile` has both) are at least those of every slope in the cell. So
branch and bound over cells ends with certified upper bounds. It needs no more than is declared in
:class:`~expost.losses.base.DerivativeCurve`.

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

:mod:`expost.privacy.profile` bounds the values over :math:`m`, :mod:`expost.privacy.expectation` those over
:math:`N`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from expost._common.typing import FloatArray
from expost._common.validation import check_positive
from expost.exceptions import CalibrationError
from expost.losses.base import DerivativeCurve
from expost.privacy import gaussian
from expost.privacy.certified_profile import CertifiedProfile
from expost.privacy.expectation import NEGLIGIBLE, Bracket, Noise, certified, expectation
from expost.privacy.precision import REAL, Rounding
from expost.privacy.scales import NoiseScales

# Cells of slopes alive at once: what needs more gets a wider bracket, not more time.
_CELL_LIMIT = 200_000

Bound = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class Slopes:
    """The slopes of one record that is added, or removed where ``l2`` is infinite, at one epsilon.

    As a function of the noise the largest value over all slopes rises, and it is convex in ``v``
    (:mod:`expost.privacy.expectation`).
    """

    curve: DerivativeCurve
    norm: float
    l2: float
    scales: NoiseScales
    rounding: Rounding
    epsilon: float

    @property
    def cheap(self) -> bool:
        """Whether no Gaussian profile has to be evaluated."""
        return not self.scales.releases_statistics

    @property
    def grid(self) -> FloatArray:
        """A first partition of the slopes; the peak of the curvature splits it, so that few cells survive."""
        rising = np.linspace(0.0, self.curve.peak, 9)
        return np.unique(np.concatenate([rising, np.linspace(self.curve.peak, self.curve.max_slope, 25)]))

    def terms(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Upper bounds on the log-determinant and on the statistics' shift for slopes in ``[low, high]``."""
        curvature = self.curve.max_curvature_between(low, high) * self.norm**2
        logarithm = self.curve.rank * np.log1p(curvature / self.l2)
        shift = self.scales.shift(high * self.norm, curvature, rank=self.curve.rank, rounding=self.rounding)
        return logarithm, shift

    def left(self, noise: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What is left of epsilon at this noise, at least, and the shift, at most, for slopes in a cell."""
        logarithm, shift = self.terms(low, high)
        unit = self.norm / self.scales.sigma
        loss = logarithm + 0.5 * (unit * high) ** 2 + unit * np.where(noise >= 0.0, high, low) * noise
        return self.epsilon - loss, shift

    def rates(self, noise: FloatArray) -> FloatArray:
        r"""A rate in ``v`` for all values below this noise.

        With :math:`a = mR/\sigma`, the values at one slope have the derivatives :math:`aB` and
        :math:`-a^2B(1 - r(y)/\Delta)` in the noise, where :math:`B > 0`, :math:`y = \Delta/2 + e/\Delta` and
        :math:`r(y) \ge \max(y, 0)` is the inverse Mills ratio. So they are convex in :math:`e^{-\rho N}` for
        every :math:`\rho \ge a(1/2 - e/\Delta^2)` if :math:`e \ge 0`, and for :math:`\rho \ge a` always.
        """
        low, high = self.grid[:-1], self.grid[1:]
        left, shift = self.left(noise[:, None], low, high)
        with np.errstate(divide="ignore", over="ignore"):
            part = np.where(left > 0.0, np.clip(0.5 - left / shift**2, 0.0, 1.0), 1.0)
        steepest = np.asarray((part * high).max(axis=1))
        return np.maximum(steepest * self.norm / self.scales.sigma, 1e-9)

    def bound(self, noise: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """An upper bound on the values at this noise for slopes in a cell; exact where its ends agree."""
        left, shift = self.left(noise, low, high)
        if self.scales.releases_statistics:
            return gaussian.delta(left, sensitivity=shift, sigma=1.0)
        value: FloatArray = -np.expm1(np.minimum(left, 0.0))
        solver = self.rounding.solver
        if solver > 0.0:
            # Farther than this from zero the solver's part is below e^-800, which no double holds.
            near = np.abs(left) <= 40.0 * solver
            value[near] = gaussian.delta(left[near], sensitivity=solver, sigma=1.0)
        return value

    def fixed_bound(self, noise: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """An upper bound on the expectation over the noise at one fixed slope in a cell, in closed form.

        The model and the statistics are then Gaussian together, and ``noise`` does not count.
        """
        logarithm, shift = self.terms(low, high)
        together = np.hypot(high * self.norm / self.scales.sigma, shift)
        return gaussian.delta(self.epsilon - logarithm, sensitivity=together, sigma=1.0)

    def fixed_slope(self) -> float:
        """The largest expectation at a few fixed slopes: a lower bound on that of the largest value."""
        return float(np.max(self.fixed_bound(np.zeros(1), self.grid, self.grid)))

    def worst_fixed(self, rtol: float) -> Bracket:
        """Bracket the largest expectation at one fixed slope."""
        upper, _, lower = self._branch(self.fixed_bound, np.zeros(1), rtol, np.array([NEGLIGIBLE]))
        return certified(float(lower[0]), float(upper[0]))

    def steepest(self) -> Bracket:
        r"""The expectation of the largest value for a removed record, without statistics.

        The privacy loss is convex in the slope, so it is largest at slope 0, where it is 0, or at the
        largest slope. With :math:`a = m_{\max}R/\sigma`, and without the solver's :math:`\eta`, that gives

        .. math:: \delta_G(\epsilon; a) \text{ or, where the sign is free, }
                  \begin{cases} 2\delta_G(\epsilon; a) & \text{if } \epsilon \ge a^2/2 \\
                  1 - 2e^\epsilon\Phi(-a) & \text{otherwise.} \end{cases}

        The solver adds at most :math:`\delta_G(\epsilon; \sqrt{a^2 + \eta^2}) - \delta_G(\epsilon; a)` for
        each sign, and :math:`\delta_G(\epsilon; \eta)` at slope 0 where the sign is fixed.
        """
        steep = self.curve.max_slope * self.norm / self.scales.sigma
        solver = self.rounding.solver
        shifts = np.array([steep, math.hypot(steep, solver), solver])
        alone, both, apart = gaussian.delta(self.epsilon, sensitivity=shifts, sigma=1.0).tolist()
        if self.curve.sign_fixed:
            return certified(alone, both + apart)
        value = 2.0 * alone
        if self.epsilon < 0.5 * steep**2:
            value = -math.expm1(self.epsilon + math.log(2.0) + float(log_ndtr(-steep)))
        return certified(value, value + 2.0 * (both - alone))

    def sample(self, noise: FloatArray) -> FloatArray:
        """The largest value over a few slopes: a good lower bound, at a fixed cost."""
        return np.asarray(self.bound(noise[:, None], self.grid, self.grid).max(axis=1))

    def supremum(self, noise: FloatArray, rtol: float, floor: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Upper bounds on the suprema, and slopes that nearly attain them.

        They differ by at most ``rtol``, as a share of the supremum or of ``floor`` if that is larger.
        """
        upper, best, _ = self._branch(self.bound, noise, rtol, floor)
        return upper, best

    def _branch(
        self, bound: Bound, noise: FloatArray, rtol: float, floor: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Branch and bound, for all values of the noise at once: upper bounds, slopes, lower bounds.

        Cells of slopes that cannot beat the best slope known by more than the tolerance are dropped, the
        others are cut in four.
        """
        grid = self.grid
        known = np.broadcast_to(bound(noise[:, None], grid, grid), (len(noise), len(grid)))
        best = grid[known.argmax(axis=1)]
        lower = known.max(axis=1)
        upper = lower.copy()
        owner = np.repeat(np.arange(len(noise)), len(grid) - 1)
        low, high = np.tile(grid[:-1], len(noise)), np.tile(grid[1:], len(noise))
        while len(owner):
            value = bound(noise[owner], low, high)
            alive = value > (lower + rtol * np.maximum(lower, floor))[owner]
            if len(owner) > _CELL_LIMIT:
                alive[:] = False
            np.maximum.at(upper, owner[~alive], value[~alive])
            owner, low, high = owner[alive], low[alive], high[alive]
            cuts = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, 5)
            cuts[:, -1] = high
            middle = bound(noise[owner], cuts[:, 2], cuts[:, 2])
            np.maximum.at(lower, owner, middle)
            improved = middle == lower[owner]
            best[owner[improved]] = cuts[improved, 2]
            owner, low, high = np.repeat(owner, 4), cuts[:, :-1].ravel(), cuts[:, 1:].ravel()
        return np.maximum(upper, lower), best, lower


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
