"""Robust convex losses: location as a smoothed distance, location with scale, and Poisson regression."""

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import check_count, parameter_error
from expost.losses.base import DerivativeCurve, LabelSet
from expost.losses.convex import LARGEST_NUMBER, ConvexLoss, RecordBall, RecordBox, check_scales
from expost.losses.outcomes import BoundedPoisson


@dataclass(frozen=True)
class SmoothedNorm(ConvexLoss):
    r"""The smoothed distance of a record from a location: its sum is smallest near the geometric median.

    .. math:: \ell(\theta; z) = \sqrt{c^2 + \|\theta - z\|^2} - c

    With :math:`u = \theta - z` and :math:`s = \sqrt{c^2 + \|u\|^2}` the gradient is :math:`u/s`, shorter
    than 1, and the Hessian :math:`(I - uu^\top/s^2)/s` (docs/mathematics.md, section 12).

    Parameters
    ----------
    dimension
        How many numbers a record has, and a location.
    radius
        Records are scaled into the ball of this radius.
    smoothing
        The distance :math:`c` within which the loss is nearly a square. Less is closer to the geometric
        median and costs more noise or regularisation.

    Examples
    --------
    >>> import expost
    >>> expost.check_convex_loss(SmoothedNorm(3, radius=2.0))
    """

    dimension: int
    radius: float = 1.0
    smoothing: float = 0.5
    name = "smoothed_norm"
    max_gradient = 1.0

    def __post_init__(self) -> None:
        check_count("dimension", self.dimension)
        check_scales(radius=self.radius, smoothing=self.smoothing)

    @property
    def n_parameters(self) -> int:
        """One for each number of a record."""
        return self.dimension

    @property
    def record_set(self) -> RecordBall:
        """A ball."""
        return RecordBall(self.dimension, self.radius)

    @property
    def max_curvature(self) -> float:
        """One over the smoothing, attained by a record at the location."""
        return 1.0 / self.smoothing

    @property
    def parameter_scale(self) -> float:
        """Locations are about as far out as records can be."""
        return self.radius

    @property
    def curve(self) -> DerivativeCurve:
        r"""The mean eigenvalue at each gradient norm, which bounds the determinant by concavity.

        .. math:: \kappa(m) = \frac{(d - 1)\sqrt{1 - m^2} + (1 - m^2)^{3/2}}{cd}

        The largest one is :math:`\sqrt{1 - m^2}/c`.
        """

        def largest(slope: FloatArray) -> FloatArray:
            return np.asarray(np.sqrt(np.maximum(1.0 - slope**2, 0.0)) / self.smoothing)

        def mean(slope: FloatArray) -> FloatArray:
            left = np.maximum(1.0 - slope**2, 0.0)
            total = np.sqrt(left) * (self.dimension - 1 + left) / (self.smoothing * self.dimension)
            return np.asarray(total)

        return replace(super().curve, curvature=mean, eigenvalue=largest)

    def _parts(self, theta: FloatArray, records: FloatArray) -> tuple[FloatArray, FloatArray]:
        apart = theta - records
        return apart, np.hypot(self.smoothing, np.linalg.norm(apart, axis=1))

    def value(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        """The smoothed distance of each record."""
        apart, size = self._parts(theta, records)
        return np.asarray(np.vecdot(apart, apart) / (size + self.smoothing))

    def gradient(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        """A vector towards the location, shorter than one."""
        apart, size = self._parts(theta, records)
        return apart / size[:, None]

    def factor(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        r"""The root :math:`s^{-1/2}(I - vv^\top/(1 + c/s))`, :math:`v = u/s`, of each Hessian."""
        apart, size = self._parts(theta, records)
        ratio = apart / size[:, None]
        along = ratio[:, :, None] * ratio[:, None, :] / (1.0 + self.smoothing / size)[:, None, None]
        return np.asarray((np.eye(self.dimension) - along) / np.sqrt(size)[:, None, None])


@dataclass(frozen=True)
class LocationScale(ConvexLoss):
    r"""Location and scale of numbers together, robustly: Huber's second proposal, made convex everywhere.

    With :math:`x \in [-1, 1]` the number as a share of its declared range, location :math:`\alpha/\tau` and
    scale :math:`1/\tau` of these shares, and :math:`\theta = (\alpha, \tau) \in R^2`,

    .. math:: \ell = \rho(\tau x - \alpha) - a\log\log(1 + e^\tau), \qquad
              \rho(r) = c^2\bigl(\sqrt{1 + (r/c)^2} - 1\bigr), \qquad a = E\,Z\rho'(Z).

    The normal likelihood has :math:`r^2/2` for :math:`\rho` and :math:`\log\tau` for the last term, to which
    :math:`\log\log(1 + e^\tau)` comes close where the scale is below a third of half the range. The loss is
    convex with bounded derivatives for all :math:`\theta` (docs/mathematics.md, section 12). The constant
    :math:`a` makes the scale of normal numbers that of their law (Huber 1964).

    Parameters
    ----------
    low, high
        The declared range. Numbers outside count as its ends.
    threshold
        How many scales from the location a number pulls like a square, :math:`c`.

    Examples
    --------
    >>> import expost
    >>> expost.check_convex_loss(LocationScale(low=0.0, high=120.0))
    """

    low: float = -1.0
    high: float = 1.0
    threshold: float = 1.5
    name = "location_scale"
    n_parameters = 2
    parameter_scale = 4.0
    """Numbers spread over a quarter of half their range."""

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise parameter_error("low", f"a finite number below high={self.high!r}", self.low)
        if not max(abs(self.low), abs(self.high)) <= LARGEST_NUMBER:
            raise parameter_error("low", f"between -{LARGEST_NUMBER:g} and {LARGEST_NUMBER:g}", self.low)
        check_scales(threshold=self.threshold)

    def location_and_scale(self, theta: Any) -> tuple[float, float]:
        """Location and scale in the units of the numbers; NaN where noise has made the scale negative.

        Privacy
        -------
        Public where ``theta`` is a released model's: post-processing.
        """
        alpha, tau = (float(entry) for entry in theta)
        if tau <= 0.0:
            return math.nan, math.nan
        return 0.5 * (self.low + self.high) + self._half * alpha / tau, self._half / tau

    @property
    def _half(self) -> float:
        return 0.5 * (self.high - self.low)

    @property
    def consistency(self) -> float:
        r"""The constant :math:`a = E\,Z^2/\sqrt{1 + (Z/c)^2}` for a standard normal :math:`Z`."""
        return _consistency(float(self.threshold))

    @property
    def record_set(self) -> RecordBox:
        """An interval."""
        return RecordBox((self.low,), (self.high,))

    @property
    def max_gradient(self) -> float:
        r""":math:`\sqrt{c^2 + (c + a)^2}`."""
        return math.hypot(self.threshold, self.threshold + self.consistency)

    @property
    def max_curvature(self) -> float:
        r"""The largest eigenvalue of ``[[1, 1], [1, 1 + a/4]]``."""
        eighth = 0.125 * self.consistency
        return 1.0 + eighth + math.hypot(1.0, eighth)

    @property
    def max_trace(self) -> float:
        r""":math:`2 + a/4`."""
        return 2.0 + 0.25 * self.consistency

    def _parts(self, theta: FloatArray, records: FloatArray) -> tuple[FloatArray, FloatArray]:
        # Clipped: in a range of a few roundings the quotient may leave [-1, 1], and the bounds with it.
        share = np.clip((records[:, 0] - (self.low + self._half)) / self._half, -1.0, 1.0)
        return share, theta[1] * share - theta[0]

    def value(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        """The loss of each number."""
        _, residual = self._parts(theta, records)
        ratio = residual / self.threshold
        pull = residual**2 / (1.0 + np.hypot(1.0, ratio))
        return np.asarray(pull - self.consistency * _softplus_terms(float(theta[1]))[0])

    def gradient(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        """The derivatives in location and inverse scale."""
        share, residual = self._parts(theta, records)
        pull = residual / np.hypot(1.0, residual / self.threshold)
        _, steep, _ = _softplus_terms(float(theta[1]))
        return np.stack([-pull, share * pull - self.consistency * steep], axis=1)

    def factor(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        """Two columns: one of the residual, one of the scale."""
        share, residual = self._parts(theta, records)
        root = np.hypot(1.0, residual / self.threshold) ** -1.5
        *_, bend = _softplus_terms(float(theta[1]))
        factor = np.zeros((len(share), 2, 2))
        factor[:, 0, 0], factor[:, 1, 0] = -root, share * root
        factor[:, 1, 1] = math.sqrt(self.consistency * bend)
        return factor


def _softplus_terms(tau: float) -> tuple[float, float, float]:
    r""":math:`\log s` for :math:`s = \log(1 + e^\tau)`, its first derivative, and minus the second.

    .. math:: r = \frac{1 - e^{-s}}s \in (0, 1), \qquad r(r - e^{-s}) \in (0, 1/4)
    """
    s = float(np.logaddexp(0.0, tau))
    # Far below zero it is nearly τ itself.
    logarithm = tau - 0.5 * math.exp(tau) if tau < -20.0 else math.log(s)
    if s < 1e-4:
        return logarithm, 1.0 - 0.5 * s, (1.0 - 0.5 * s) * (0.5 * s - s * s / 3.0)
    first = -math.expm1(-s) / s
    return logarithm, first, first * (first - math.exp(-s))


@cache
def _consistency(threshold: float) -> float:
    # The trapezium rule converges exponentially for analytic functions that decay.
    nodes, step = np.linspace(-12.0, 12.0, 4801, retstep=True)
    density = np.exp(-0.5 * nodes**2) / math.sqrt(2.0 * math.pi)
    return float(step * np.sum(density * nodes**2 / np.hypot(1.0, nodes / threshold)))


@dataclass(frozen=True)
class LipschitzPoisson(ConvexLoss):
    r"""A Poisson regression whose residuals pull with at most ``threshold``, with an intercept.

    With :math:`\eta = x^\top\beta + \alpha` and :math:`\mu = e^\eta` the loss has the slope

    .. math:: \frac{d\ell}{d\eta} = \psi(\mu - y), \qquad \psi(r) = \frac{r}{\sqrt{1 + (r/c)^2}},

    that of the Poisson likelihood for small residuals :math:`\mu - y`, and never beyond :math:`\pm c`. It
    rises with :math:`\eta`, so the loss is convex. With :math:`b^2 = y^2 + c^2` and
    :math:`Q = (\mu - y)^2 + c^2`

    .. math:: \ell = c\,\mathrm{asinh}\frac{\mu - y}{c}
              + \frac{yc}{b}\log\frac{2b\sqrt Q - 2y\mu + 2b^2}{\mu}.

    As with other robust losses, estimates are not exactly those of the Poisson model: large counts count for
    less. The last parameter is the intercept.

    Parameters
    ----------
    features
        How many numbers a record has, not counting its count.
    largest
        The largest count that may occur, a public bound.
    radius
        Rows of features are scaled into the ball of this radius.
    threshold
        :math:`c`.

    Examples
    --------
    >>> import expost
    >>> expost.check_convex_loss(LipschitzPoisson(features=2, largest=20.0))
    """

    features: int
    largest: float
    radius: float = 1.0
    threshold: float = 2.0
    name = "lipschitz_poisson"
    gradient_dimension = 1
    """All gradients of a record are multiples of its row."""

    def __post_init__(self) -> None:
        check_count("features", self.features)
        check_scales(largest=self.largest, radius=self.radius, threshold=self.threshold)

    @property
    def n_parameters(self) -> int:
        """One for each feature, and the intercept."""
        return self.features + 1

    @property
    def record_set(self) -> RecordBall:
        """A ball of features."""
        return RecordBall(self.features, self.radius)

    @property
    def labels(self) -> LabelSet:
        """Counts, from 0 to the largest."""
        return LabelSet(0.0, self.largest)

    @property
    def max_gradient(self) -> float:
        """The threshold times the longest row."""
        return self.threshold * math.hypot(self.radius, 1.0)

    @property
    def max_curvature(self) -> float:
        r"""The peak of :attr:`curve`, at most :math:`(y_{\max} + 2c/\sqrt{27})(R^2 + 1)`."""
        return self.curve.max_curvature

    @property
    def parameter_scale(self) -> float:
        """A linear predictor of one changes a mean by a factor of e."""
        return 1.0 / math.hypot(self.radius, 1.0)

    @property
    def curve(self) -> DerivativeCurve:
        r"""That of :class:`BoundedPoisson`, times the square of the longest row at slopes over its length."""
        length, curve = math.hypot(self.radius, 1.0), self._of_predictor.curve
        return DerivativeCurve(
            max_slope=self.max_gradient,
            curvature=lambda slope: curve.curvature(slope / length) * length**2,
            peak=length * curve.peak,
            sign_fixed=False,
            predictor_unit=self.parameter_scale,
        )

    @property
    def _of_predictor(self) -> BoundedPoisson:
        """The same loss as a function of the linear predictor."""
        return BoundedPoisson(self.largest, self.threshold)

    def _parts(self, theta: FloatArray, records: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Rows with the intercept's one, and linear predictors."""
        rows = records.copy()
        rows[:, -1] = 1.0
        return rows, rows @ theta

    def value(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        """The loss of each count."""
        return self._of_predictor.value(self._parts(theta, records)[1], records[:, -1])

    def gradient(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        """The squashed residual of each count, times its row."""
        rows, eta = self._parts(theta, records)
        return np.asarray(self._of_predictor.derivatives(eta, records[:, -1])[0][:, None] * rows)

    def factor(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        """One column: the root of the curvature times the row."""
        rows, eta = self._parts(theta, records)
        root = np.sqrt(self._of_predictor.derivatives(eta, records[:, -1])[1])
        return np.asarray((root[:, None] * rows)[:, :, None])
