"""The privacy profile of a softmax model of several classes: a certified upper bound on delta."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq

from expost._common.typing import FloatArray
from expost._common.validation import check_positive, parameter_error
from expost.losses.softmax_curve import SoftmaxCurve
from expost.privacy import renyi
from expost.privacy.certified_profile import NEGLIGIBLE, Bracket, CertifiedProfile, Direction, certified
from expost.privacy.excess import ROW, UNITS, Excess, best_tangent
from expost.privacy.order_statistics import LargestTwo, flat_delta, flat_sigma, grid_of
from expost.privacy.precision import REAL, Rounding
from expost.privacy.profile import PrivacyProfile
from expost.privacy.scales import NoiseScales, Statistic
from expost.privacy.sharpest import Accounting
from expost.privacy.softmax_cells import SoftmaxValues, largest_determinant, softmax_cells

# What lies outside the grid of the noise adds at most about twice this share of the result.
_OUTSIDE = 1e-5
# Cells of the largest difference and of the gap. Statistics smooth the kink, and cost more per value.
_GRID_MODEL, _GRID = (160, 60), (100, 48)
# A search begins with fewer.
_COARSE = 1e-2
_GRID_COARSE = (60, 30)
# A tangent is convex in the differences themselves: exponentials of this rate are as good as lines.
_FLAT = 1e-9
# Ends of the grid are whole multiples of this, so that nearby questions share one grid.
_SNAP = 0.25


@dataclass(frozen=True)
class SoftmaxProfile(CertifiedProfile):
    r"""What a softmax model of several classes costs at worst, for every :math:`\epsilon`.

    .. math:: \delta(\epsilon) \le \mathbb{E}_W \sup_{q, \pi} \delta_G(\epsilon - u; \Delta), \qquad
              u = \log\det(I + A R^2/\lambda) + \frac{\|v\|^2R^2}{2\sigma^2} + \frac{v\cdot WR}{\sigma}

    (docs/mathematics.md, theorem 11.1), for at least three classes and a curve of weight 1. ``reduced`` says
    that the released Hessian is the reduced one, :math:`\sum_i\min_jP_{ij}\,x_ix_i^\top`.
    Where the ``unit`` is a person, the same with the trace for the log-determinant and a
    :class:`~expost.privacy.excess.Tangent` for the excess (section 15).
    """

    curve: SoftmaxCurve
    norm: float
    l2: float
    scales: NoiseScales
    rounding: Rounding = REAL
    reduced: bool = False
    unit: str = "row"
    covers_removing: ClassVar[bool] = True
    width: ClassVar[float] = 2e-3  # how far the upper end may move with the grid, as a share of itself

    def __post_init__(self) -> None:
        check_positive("norm", self.norm)
        if self.curve.weight != 1.0 or self.curve.classes == 2:
            raise parameter_error("curve", "one of weight 1 and at least three classes", self.curve)
        check_positive("l2", self.l2, infinite=True)

    @cached_property
    def _values(self) -> SoftmaxValues:
        cells, unit = softmax_cells(self.curve), self.norm / self.scales.sigma
        shift = self._shift(cells.gradient, cells.reduced if self.reduced else cells.hessian)
        return SoftmaxValues.of(cells, unit, shift, self.norm**2 / self.l2, UNITS[self.unit])

    def _shift(self, gradient: FloatArray, hessian: FloatArray) -> Any:
        # The norm of the Hessian is at hand, so its rank is not needed.
        return self.scales.shift(gradient * self.norm, hessian * self.norm**2, rounding=self.rounding)

    def adding(self, at: float, width: float) -> Bracket:
        """The bracket when a record is added; the lower end is that of masses fixed in advance."""
        record = softmax_cells(self.curve).records(self.norm**2 / self.l2, UNITS[self.unit])
        shift = self._shift(record.gradient, record.reduced if self.reduced else record.hessian)
        together = np.hypot(record.gradient * self.norm / self.scales.sigma, shift)

        def fixed(excess: Excess) -> float:
            return float(excess.mean(at - record.determinant, together).max())

        excess = ROW if self.unit == "row" else best_tangent(at, fixed)
        lower = fixed(excess)
        if not self.scales.releases_statistics:
            lower = max(lower, flat_delta(self.curve.classes, at, self._values.rise, excess))
            if math.isinf(self.l2) and self.rounding.solver == 0.0:
                return certified(lower, lower)
        law = LargestTwo(self.curve.classes)
        outside = _OUTSIDE * max(lower, NEGLIGIBLE)
        high = _SNAP * math.ceil(law.reach(math.log(outside)) / _SNAP)
        # Below the first edge the value is at most the one there. The gap counts most where it is zero.
        ends = np.arange(-high, high + 0.5 * _SNAP, _SNAP)
        values = self._values.at(at, ends, np.zeros(1), excess)[:, 0]
        first = int(np.clip(np.searchsorted(values, outside, side="right") - 1, 0, len(ends) - 2))
        low = float(ends[first])
        cells, gap_cells = _GRID if self.scales.releases_statistics else _GRID_MODEL
        if width >= _COARSE:
            cells, gap_cells = _GRID_COARSE
        # The density falls by no more than a factor e over a cell, so that its quadrature stays exact.
        grid = grid_of(law, low, high, max(cells, math.ceil(0.5 * high * (high - low))), gap_cells)
        rates = self._values.rates if self.unit == "row" else (_FLAT, _FLAT)
        inside = np.vdot(grid.weights(*rates), self._values.at(at, grid.edges, grid.gaps, excess))
        outer = excess.beyond(law.above(high), float(values[-1]), self._values.rise * law.overshoot(high))
        return certified(lower, float(inside) + float(values[first]) * law.below(low) + outer)

    def removing(self, at: float, width: float, *, scale: float = 0.0) -> Bracket:
        """The bracket when a record is removed: its determinant costs nothing."""
        return self._flat.adding(at, width)

    @property
    def rise(self) -> float:
        """The largest norm of a record's gradient, in units of the noise."""
        return self.curve.max_slope * self.norm / self.scales.sigma

    def divergences(self, orders: FloatArray) -> dict[Direction, FloatArray]:
        """Upper bounds on the Rényi divergences: the largest of all cells (section 17)."""
        cells, weight = softmax_cells(self.curve), self.norm**2 / self.l2
        shift = self._shift(cells.gradient, cells.reduced if self.reduced else cells.hessian)
        square = ((cells.gradient * self.norm / self.scales.sigma) ** 2 + shift**2).ravel()
        trace, norm = (weight * part.ravel() for part in (cells.trace, cells.hessian))
        order = orders[:, None]
        adding = np.max(0.5 * order * square + renyi.adding_sum(order, trace, norm), axis=1)
        removing = np.max(0.5 * order * square + renyi.removing_sum(order, trace, norm), axis=1)
        if self.unit == "person":  # whose largest eigenvalue must lie where the excess is convex
            bent = self.curve.max_curvature * weight
            adding = np.where(orders * bent**2 <= 1.0, adding, math.inf)
        return {"adding": adding, "removing": removing}

    @cached_property
    def _flat(self) -> "SoftmaxProfile":
        return replace(self, l2=math.inf)

    def certifies(self, epsilon: float, delta: float) -> bool:
        """Whether ``self.delta(epsilon).upper <= delta``."""
        return self.delta(epsilon).upper <= check_positive("delta", delta, below=1.0)


@dataclass(frozen=True)
class SoftmaxAccounting(Accounting):
    r"""Softmax losses of two classes or more.

    Two classes are the logistic loss on rows of norm :math:`\sqrt2R`: scores one apart are :math:`\sqrt2`
    centred coordinates.
    """

    curve: SoftmaxCurve  # type: ignore[assignment]  # bounds of its own

    classical: ClassVar[bool] = False

    @property
    def released_curvature(self) -> float:
        """The largest eigenvalue of one record's part in the Hessian that is released."""
        # The smallest mass is largest where all masses are equal.
        equal = self.curve.weight / self.curve.classes
        return (equal if self.reduced else self.curve.max_curvature) * self.norm**2

    def sensitivity(self, statistic: Statistic) -> float:
        """The largest Frobenius norm of a Hessian is its largest eigenvalue, attained at rank one."""
        return float(statistic.sensitivity(self.slope, self.released_curvature, 1))

    @property
    def can_be_reduced(self) -> bool:  # type: ignore[override]  # an attribute of the base
        """Whether there is a reduced Hessian: with more than two classes."""
        return self.curve.classes > 2

    def profile(self, l2: float, scales: NoiseScales, rounding: Rounding = REAL) -> CertifiedProfile:
        """The certified profile: the objective and all noise may be divided by the largest weight."""
        weight, plain = self.curve.weight, replace(self.curve, weight=1.0)
        l2, scales, rounding = l2 / weight, scales.over(weight), rounding.over(weight)
        if plain.classes == 2:
            norm = math.sqrt(2.0) * self.norm
            return PrivacyProfile(plain.link.curve, norm, l2, scales, rounding, self.unit)
        return SoftmaxProfile(plain, self.norm, l2, scales, rounding, self.reduced, self.unit)

    def log_determinant(self, l2: float) -> float:
        """The largest log-determinant of a record, or trace of a person."""
        return largest_determinant(self.curve, self.norm**2 / l2, UNITS[self.unit])

    def floor(self, epsilon: float) -> float:
        """The regularisation at which the largest log-determinant is ε (section 11, "Floor")."""
        curve, at = self.curve, check_positive("epsilon", epsilon)
        if self.unit == "person":
            return self.log_determinant(1.0) / at  # a trace falls in proportion
        share = at / (curve.classes - 1)
        # The weight R²/λ at which equal masses use up all of epsilon, without overflow. A cap lowers every
        # Hessian, so that it allows at least this weight.
        weight = curve.classes * math.expm1(min(share, 700.0)) / curve.weight

        def excess(logarithm: float) -> float:
            return largest_determinant(curve, math.exp(logarithm)) - at

        if largest_determinant(curve, weight) < (1.0 - 1e-12) * at:
            low = high = math.log(weight)
            while excess(high) < 0.0:
                low, high = high, high + 1.0
            weight = math.exp(float(brentq(excess, low, high, xtol=1e-12)))
        return self.norm**2 / weight

    def flat_sigma(self, epsilon: float, delta: float) -> float:
        """The noise at an infinite regularisation, in closed form up to an integral."""
        steepest = self.curve.weight * self.curve.cap * self.norm
        return steepest * flat_sigma(self.curve.classes, epsilon, delta)

    def least_l2(self, epsilon: float) -> float:
        """Twice the floor: a determinant of several classes may cost more than that of one predictor."""
        return 2.0 * self.floor(epsilon)
