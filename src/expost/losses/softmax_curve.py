"""What accounting needs to know of the softmax loss."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class SoftmaxCurve:
    r"""The attainable gradients and Hessians of the softmax loss, with or without a cap.

    .. math:: v = q(\pi - e_y), \qquad A = qA(\pi) + \kappa(q)(\pi - e_y)(\pi - e_y)^\top, \qquad
              0 \le q \le c

    with :math:`\pi` a distribution over the classes other than :math:`y` and :math:`\kappa` the curvature of
    the logistic loss with the same cap and corner.
    """

    classes: int
    cap: float = 1.0
    corner: float | None = None

    @property
    def max_slope(self) -> float:
        r"""The largest length of a gradient: :math:`\|v\| \le \sqrt2 c`."""
        return math.sqrt(2.0) * self.cap

    @property
    def max_curvature(self) -> float:
        r"""The largest eigenvalue of a Hessian, attained at two classes with probability one half.

        A cap only lowers it: :math:`\kappa(q) \le q(1 - q)`.
        """
        return 0.5

    @property
    def outputs(self) -> int:
        """The number of linear predictors, in centred coordinates."""
        return self.classes - 1

    @property
    def rank(self) -> int:
        """The largest rank of a Hessian."""
        return self.classes - 1
