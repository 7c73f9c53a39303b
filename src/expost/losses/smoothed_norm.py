"""The smoothed distance from a location, whose sum is smallest near the geometric median."""

from dataclasses import dataclass

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import check_count
from expost.losses.base import DerivativeCurve
from expost.losses.convex import ConvexLoss
from expost.losses.record_sets import RecordBall, check_scale


@dataclass(frozen=True)
class SmoothedNorm(ConvexLoss):
    r"""The smoothed distance of a record from a location: its sum is smallest near the geometric median.

    .. math:: \ell(\theta; z) = \sqrt{c^2 + \|\theta - z\|^2} - c

    With :math:`u = \theta - z` and :math:`s = \sqrt{c^2 + \|u\|^2}` the gradient is :math:`u/s`, shorter
    than 1, and the Hessian :math:`(I - uu^\top/s^2)/s` has the eigenvalues :math:`1/s`, :math:`d - 1` times,
    and :math:`c^2/s^3`. Where the gradient has the norm :math:`m`, :math:`s = c/\sqrt{1 - m^2}`.

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

    def __post_init__(self) -> None:
        check_count("dimension", self.dimension)
        check_scale("radius", self.radius)
        check_scale("smoothing", self.smoothing)

    @property
    def n_parameters(self) -> int:
        """One for each number of a record."""
        return self.dimension

    @property
    def record_set(self) -> RecordBall:
        """A ball."""
        return RecordBall(self.dimension, self.radius)

    @property
    def max_gradient(self) -> float:
        """One."""
        return 1.0

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
        """

        def mean(slope: FloatArray) -> FloatArray:
            left = np.maximum(1.0 - slope**2, 0.0)
            total: FloatArray = np.sqrt(left) * (self.dimension - 1 + left)
            return total / (self.smoothing * self.dimension)

        return DerivativeCurve(
            max_slope=1.0,
            curvature=mean,
            peak=0.0,
            sign_fixed=False,
            outputs=self.dimension,
            rank=self.dimension,
            predictor_unit=self.parameter_scale,
        )

    def _parts(self, theta: FloatArray, records: FloatArray) -> tuple[FloatArray, FloatArray]:
        apart = theta - records
        size: FloatArray = np.hypot(self.smoothing, np.linalg.norm(apart, axis=1))
        return apart, size

    def value(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        """The smoothed distance of each record."""
        apart, size = self._parts(theta, records)
        distance: FloatArray = np.vecdot(apart, apart) / (size + self.smoothing)
        return distance

    def gradient(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        """A vector towards the location, shorter than one."""
        apart, size = self._parts(theta, records)
        gradient: FloatArray = apart / size[:, None]
        return gradient

    def factor(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        r"""The root :math:`s^{-1/2}(I - vv^\top/(1 + c/s))`, :math:`v = u/s`, of each Hessian."""
        apart, size = self._parts(theta, records)
        ratio = apart / size[:, None]
        along = ratio[:, :, None] * ratio[:, None, :] / (1.0 + self.smoothing / size)[:, None, None]
        factor: FloatArray = (np.eye(self.dimension) - along) / np.sqrt(size)[:, None, None]
        return factor
