"""A Poisson regression whose residuals pull with a bounded force."""

import math
from dataclasses import dataclass

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import check_count
from expost.losses.base import DerivativeCurve, LabelSet
from expost.losses.convex import ConvexLoss, RecordBall, check_scale

# Beyond this a linear predictor's exponential is taken to be without end.
_FAR = 300.0


@dataclass(frozen=True)
class LipschitzPoisson(ConvexLoss):
    r"""A Poisson regression whose residuals pull with at most ``threshold``, with an intercept.

    With :math:`\eta = x^\top\beta + \alpha` and :math:`\mu = e^\eta` the loss has the slope

    .. math:: \frac{d\ell}{d\eta} = \psi(\mu - y), \qquad \psi(r) = \frac{r}{\sqrt{1 + (r/c)^2}},

    that of the Poisson likelihood for small residuals :math:`\mu - y`, and never beyond :math:`\pm c`. It
    rises with :math:`\eta`, so the loss is convex: :math:`\ell'' = \mu(1 + ((\mu - y)/c)^2)^{-3/2}`, at most
    :math:`y + 2c/\sqrt{27}`. With :math:`b^2 = y^2 + c^2` and :math:`Q = (\mu - y)^2 + c^2`

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

    def __post_init__(self) -> None:
        check_count("features", self.features)
        for name in ("largest", "radius", "threshold"):
            check_scale(name, getattr(self, name))

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
    def gradient_dimension(self) -> int:
        """One: all gradients of a record are multiples of its row."""
        return 1

    @property
    def parameter_scale(self) -> float:
        """A linear predictor of one changes a mean by a factor of e."""
        return 1.0 / math.hypot(self.radius, 1.0)

    @property
    def curve(self) -> DerivativeCurve:
        r"""The curvature at each slope of the largest count, which bounds that of the others.

        .. math:: \kappa(m) = y_{\max}(1 - t^2)^{3/2} + m(1 - t^2), \qquad t = m/c

        for rows of norm 1; its peak is at :math:`t = \sin\varphi`,
        :math:`\cos(2\varphi + \arctan a) = 1/3\sqrt{1 + a^2}`, :math:`a = y_{\max}/c`.
        """
        length, most, threshold = math.hypot(self.radius, 1.0), self.largest, self.threshold

        def curvature(slope: FloatArray) -> FloatArray:
            steep = slope / length
            left = np.maximum(1.0 - (steep / threshold) ** 2, 0.0)
            return np.asarray((most * left**1.5 + steep * left) * length**2)

        ratio = most / threshold
        angle = 0.5 * (math.acos(1.0 / (3.0 * math.hypot(1.0, ratio))) - math.atan(ratio))
        return DerivativeCurve(
            max_slope=self.max_gradient,
            curvature=curvature,
            peak=length * threshold * math.sin(angle),
            sign_fixed=False,
            predictor_unit=self.parameter_scale,
        )

    def _parts(self, theta: FloatArray, records: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rows with the intercept's one, linear predictors and counts."""
        rows = records.copy()
        rows[:, -1] = 1.0
        return rows, rows @ theta, records[:, -1]

    def _residual(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        residual: FloatArray = (np.exp(np.minimum(eta, _FAR)) - y) / self.threshold
        return residual

    def value(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        """The loss of each count."""
        _, eta, y = self._parts(theta, records)
        c = self.threshold
        b = np.hypot(y, c)
        near, far = np.minimum(eta, _FAR), np.maximum(eta - _FAR, 0.0)
        small = np.exp(-np.clip(eta, -_FAR, None))  # 1/μ
        # (2b√Q − 2yμ + 2b²)/μ where μ is large; times μ where it is small. Where the last two terms are
        # negative together, multiplied out: b²Q − (yμ − b²)² = c²μ².
        root, rest = b * np.hypot(1.0 - y * small, c * small), b * b * small - y
        large = 2.0 * np.where(rest < 0.0, c * c / np.where(rest < 0.0, root - rest, 1.0), root + rest)
        mean = np.exp(np.minimum(eta, 0.0))
        little = 2.0 * b * np.hypot(mean - y, c) - 2.0 * y * mean + 2.0 * b * b
        logarithm = np.where(eta > 0.0, np.log(large), np.log(little) - eta)
        value: FloatArray = c * (np.arcsinh(self._residual(near, y)) + far) + y * c / b * logarithm
        return value

    def gradient(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        """The squashed residual of each count, times its row."""
        rows, eta, y = self._parts(theta, records)
        residual = self._residual(eta, y)
        slope = self.threshold * residual / np.hypot(1.0, residual)
        gradient: FloatArray = slope[:, None] * rows
        return gradient

    def factor(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        """One column: the root of the curvature times the row."""
        rows, eta, y = self._parts(theta, records)
        residual = self._residual(eta, y)
        # exp(η/2)(1 + r²)^(-3/4), which falls as exp(-η) for large η.
        root = np.exp(0.5 * np.minimum(eta, _FAR)) / np.hypot(1.0, residual) ** 1.5
        factor: FloatArray = (root[:, None] * rows)[:, :, None]
        return factor
