r"""The worst slope that a record can have: the privacy loss on cells of slopes, and its largest value.

For the largest curvature on a cell of slopes and its steepest slope together, the privacy loss and the
statistics' shift (:mod:`expost.privacy.profile` has both) are at least those of every slope in the cell. So
branch and bound over cells ends with certified upper bounds. It needs no more than is declared in
:class:`~expost.losses.base.DerivativeCurve`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from expost._common.typing import FloatArray
from expost.losses.base import DerivativeCurve
from expost.privacy import gaussian
from expost.privacy.expectation import NEGLIGIBLE, Bracket, certified
from expost.privacy.precision import Rounding
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
