r"""The privacy profile of a softmax model of several classes: a certified upper bound on delta.

With :math:`W \sim N(0, I_K)`, :math:`a = \sigma/R`, and :math:`v, A` the gradient and the Hessian of a
record of the class :math:`y` in its scores (:class:`~expost.losses.softmax_curve.SoftmaxCurve`), the whole
publication satisfies

.. math:: \delta(\epsilon) \le \mathbb{E}_W \sup_{q, \pi} \delta_G(\epsilon - u; \Delta), \qquad
          u = \log\det(I + A R^2/\lambda) + \frac{\|v\|^2}{2a^2} + \frac{v\cdot W}{a},

with the shift :math:`\Delta` of the statistics as for one predictor. Of :math:`W` only the two largest of
:math:`W_j - W_y` count, and of the masses of the wrong classes their sum and the largest one's share.
docs/mathematics.md, section 11, has theorem, proof and evaluation.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from expost._common.validation import check_positive, parameter_error
from expost.losses.base import DerivativeCurve
from expost.losses.softmax_curve import SoftmaxCurve
from expost.privacy import gaussian
from expost.privacy.certified_profile import CertifiedProfile
from expost.privacy.expectation import NEGLIGIBLE, Bracket, certified
from expost.privacy.order_statistics import LargestTwo, flat_delta
from expost.privacy.precision import REAL, Rounding
from expost.privacy.profile import PrivacyProfile
from expost.privacy.scales import NoiseScales
from expost.privacy.softmax_cells import SoftmaxCells, SoftmaxValues, softmax_cells

# What lies outside the grid of the noise adds at most about twice this share of the result.
_OUTSIDE = 1e-5
# How far the upper end may move with the grid, as a share of itself.
_WIDTH = 2e-3
# Cells of the largest difference and of the gap. Statistics smooth the kink, and cost more per value.
_GRID_MODEL, _GRID = (160, 60), (100, 48)
# A search begins with fewer.
_COARSE = 1e-2
_GRID_COARSE = (60, 30)
# Ends of the grid are whole multiples of this, so that nearby questions share one grid.
_SNAP = 0.25


@dataclass(frozen=True)
class SoftmaxProfile(CertifiedProfile):
    r"""What a softmax model of several classes costs at worst, for every :math:`\epsilon`.

    The module's docstring has the formula. Neighbours differ by adding or removing one record. Two classes
    are the logistic loss on rows of norm :math:`\sqrt2R`, and go through
    :class:`~expost.privacy.profile.PrivacyProfile`.

    Parameters
    ----------
    curve
        The number of classes, the cap and its corner.
    norm
        The declared bound :math:`R` on the Euclidean norm of a row, the intercept's column included.
    l2
        The weight :math:`\lambda` of the penalty :math:`\lambda\|w\|^2/2` in centred coordinates; with
        ``math.inf`` the determinant costs nothing.
    scales
        The noise :math:`\sigma` of objective perturbation and that of each statistic.
    rounding
        What is paid for the difference between real numbers and printed ones; nothing by default.
    reduced
        Whether the released Hessian is the reduced one, :math:`\sum_i\min_jP_{ij}\,x_ix_i^\top` with the
        masses of :meth:`~expost.losses.softmax_curve.SoftmaxCurve.mass`, and the eigenvalue its smallest; by
        default they are those of the whole Hessian.

    Examples
    --------
    >>> profile = SoftmaxProfile(SoftmaxCurve(3), norm=1.0, l2=5.0, scales=NoiseScales(6.205))
    >>> profile.delta(1.0).upper < 1e-6, round(profile.epsilon(1e-6), 2)
    (True, 1.0)
    """

    curve: SoftmaxCurve
    norm: float
    l2: float
    scales: NoiseScales
    rounding: Rounding = REAL
    reduced: bool = False

    def __post_init__(self) -> None:
        check_positive("norm", self.norm)
        if self.curve.weight != 1.0:
            raise parameter_error("curve", "one of weight 1", self.curve.weight, way_out="Use `profile_of`.")
        check_positive("l2", self.l2, infinite=True)
        if self.reduced and self.curve.classes == 2:
            raise parameter_error("reduced", "False with two classes", self.reduced)

    @property
    def width(self) -> float:
        """The default width of a bracket for two classes; with more, how well its upper end is resolved."""
        return self._two.width if self.curve.classes == 2 else _WIDTH

    @property
    def _two(self) -> PrivacyProfile:
        """The profile of two classes: scores one apart are √2 centred coordinates."""
        norm = math.sqrt(2.0) * self.norm
        return PrivacyProfile(self.curve.link.curve, norm, self.l2, self.scales, self.rounding)

    @property
    def _cells(self) -> SoftmaxCells:
        return softmax_cells(self.curve)

    @cached_property
    def _values(self) -> SoftmaxValues:
        return SoftmaxValues.of(
            self._cells,
            norm=self.norm,
            l2=self.l2,
            scales=self.scales,
            rounding=self.rounding,
            reduced=self.reduced,
        )

    def fixed_record(self, epsilon: float) -> float:
        """The largest delta of a record whose class masses do not depend on the noise: a lower bound."""
        record = self._cells.records(self.norm**2 / self.l2)
        curvature = (record.reduced if self.reduced else record.hessian) * self.norm**2
        shift = self.scales.shift(record.gradient * self.norm, curvature, rank=1, rounding=self.rounding)
        together = np.hypot(record.gradient * self.norm / self.scales.sigma, shift)
        value = gaussian.delta(epsilon - record.log_determinant, sensitivity=together, sigma=1.0)
        return float(value.max())

    def continuous(self, at: float, width: float) -> Bracket:
        """The bracket for continuous noise; the lower end is that of masses fixed in advance."""
        if self.curve.classes == 2:
            return self._two.continuous(at, width)
        lower = self.fixed_record(at)
        if not self.scales.releases_statistics:
            lower = max(lower, flat_delta(self.curve.classes, at, self.curve.cap * self._values.unit))
            if math.isinf(self.l2) and self.rounding.solver == 0.0:
                return certified(lower, lower)
        law = LargestTwo(self.curve.classes)
        outside = _OUTSIDE * max(lower, NEGLIGIBLE)
        high = _SNAP * math.ceil(law.reach(math.log(outside)) / _SNAP)
        # Below the first edge the value is at most the one there. The gap counts most where it is zero.
        ends = np.arange(-high, high + 0.5 * _SNAP, _SNAP)
        values = self._values.at(at, ends, np.zeros(1))[:, 0]
        first = int(np.clip(np.searchsorted(values, outside, side="right") - 1, 0, len(ends) - 2))
        low = float(ends[first])
        cells, gap_cells = _GRID if self.scales.releases_statistics else _GRID_MODEL
        if width >= _COARSE:
            cells, gap_cells = _GRID_COARSE
        # The density falls by no more than a factor e over a cell, so that its quadrature stays exact.
        grid = law.grid(low, high, max(cells, math.ceil(0.5 * high * (high - low))), gap_cells)
        inside = np.vdot(grid.weights(*self._values.rates), self._values.at(at, grid.edges, grid.gaps))
        return certified(lower, float(inside) + float(values[first]) * law.below(low) + law.above(high))

    def adding(self, at: float, width: float) -> Bracket:
        """The bracket when a record is added: the larger of the two directions."""
        return self._two.adding(at, width) if self.curve.classes == 2 else self.continuous(at, width)

    def removing(self, at: float, width: float) -> Bracket:
        """The bracket when a record is removed: its determinant costs nothing."""
        return self._two.removing(at, width) if self.curve.classes == 2 else self._flat.continuous(at, width)

    @cached_property
    def _flat(self) -> "SoftmaxProfile":
        return replace(self, l2=math.inf)

    def certifies(self, epsilon: float, delta: float) -> bool:
        """Whether ``self.delta(epsilon).upper <= delta``.

        Privacy
        -------
        A function of public parameters only.
        """
        return self.delta(epsilon).upper <= check_positive("delta", delta, below=1.0)


def profile_of(
    curve: DerivativeCurve | SoftmaxCurve,
    *,
    norm: float,
    l2: float,
    scales: NoiseScales,
    rounding: Rounding = REAL,
    reduced: bool = False,
) -> CertifiedProfile:
    """The certified profile of a loss of one linear predictor or of several classes."""
    if isinstance(curve, SoftmaxCurve):
        # An objective and all noise may be divided by the largest weight.
        weight, plain = curve.weight, replace(curve, weight=1.0)
        return SoftmaxProfile(plain, norm, l2 / weight, scales.over(weight), rounding.over(weight), reduced)
    return PrivacyProfile(curve, norm, l2, scales, rounding)


def released_curvature(curve: DerivativeCurve | SoftmaxCurve, norm: float, *, reduced: bool) -> float:
    """The largest eigenvalue of one record's part in the Hessian that is released."""
    if reduced and isinstance(curve, SoftmaxCurve):
        return curve.max_reduced * norm**2
    return curve.max_curvature * norm**2
