"""What accounting needs to know of the softmax loss of several classes, capped or not."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np
from scipy.linalg import helmert

from expost._common.typing import BoolArray, FloatArray
from expost._common.validation import check_count, parameter_error
from expost.losses.base import SLACK
from expost.losses.binary import LogisticLoss

MOST_CLASSES = 1000
"""More classes are refused: matrices of classes by classes would take much memory."""


@cache
def centring(classes: int) -> FloatArray:
    r"""The Helmert matrix :math:`Q`: one row per class, orthonormal columns that each sum to zero.

    Class scores are :math:`Q` times the linear predictors, and :math:`Qw` are the coefficients of the
    classes, which sum to zero over the classes.

    Examples
    --------
    >>> centring(3).round(3)
    array([[ 0.707,  0.408],
           [-0.707,  0.408],
           [ 0.   , -0.816]])
    """
    matrix: FloatArray = np.ascontiguousarray(helmert(classes).T)
    matrix.flags.writeable = False
    return matrix


@dataclass(frozen=True)
class SoftmaxCurve:
    r"""The gradients and Hessians that a record can have under the softmax loss, capped or not.

    Gradients :math:`v`, Hessians :math:`A`, slopes :math:`q` and curvatures :math:`\kappa(q)` are those of
    :class:`expost.SoftmaxLoss`, in the scores of the classes (docs/mathematics.md, section 11), times
    ``weight``, the largest weight of a record.

    Examples
    --------
    >>> curve = SoftmaxCurve(3, cap=0.5)
    >>> curve.corner, round(curve.max_slope, 4), curve.rank
    (0.8, 0.7071, 2)
    """

    classes: int
    cap: float = 1.0
    corner: float | None = None
    weight: float = 1.0
    sign_fixed: ClassVar[bool] = False
    ratio_falls: ClassVar[bool] = True
    """The curve covers every smaller weight (:meth:`scaled`)."""
    predictor_unit: ClassVar[float] = math.sqrt(0.5)
    r"""Scores one apart are :math:`\sqrt2` linear predictors in centred coordinates, so that two classes have
    the default regularisation of the logistic loss."""

    def __post_init__(self) -> None:
        if not 2 <= check_count("classes", self.classes) <= MOST_CLASSES:
            raise parameter_error("classes", f"between 2 and {MOST_CLASSES}", self.classes)
        link = self.link  # refuses a cap or a corner out of range, and fills in the usual corner
        object.__setattr__(self, "cap", link.cap)
        object.__setattr__(self, "corner", link.corner)

    @property
    def link(self) -> LogisticLoss:
        """The logistic loss of which this is the form for several classes."""
        return LogisticLoss(cap=self.cap, corner=self.corner)

    @property
    def max_slope(self) -> float:
        r"""The largest norm of a gradient, :math:`\|v\| \le \sqrt2\,q`, times the weight."""
        return self.weight * math.sqrt(2.0) * self.cap

    @property
    def max_curvature(self) -> float:
        r"""The largest eigenvalue of :math:`A` times the weight: a half, which a cap only lowers."""
        return 0.5 * self.weight

    @property
    def rank(self) -> int:
        """The largest rank of a Hessian: that of centred coordinates."""
        return self.classes - 1

    outputs = rank

    def scaled(self, weight: float) -> "SoftmaxCurve":
        r"""The curve of the loss times a weight :math:`\omega`, which covers every smaller weight too.

        For :math:`t \le 1` the record :math:`tv, tA` is dominated by the one of the slope :math:`tq`: the
        gradient is the same, and :math:`\kappa(tq) \ge t\kappa(q)` makes the Hessian no smaller.
        """
        return replace(self, weight=weight * self.weight)

    def curvature(self, slope: FloatArray) -> FloatArray:
        r""":math:`\kappa(q)`, the curvature along :math:`\pi - e_y`; concave, at most :math:`q(1 - q)`."""
        return self.link.curve.curvature(slope)

    def mass(self, slope: FloatArray) -> FloatArray:
        r"""The sum :math:`M(q) = q^2/(q - \kappa(q))` of the masses: 1 up to the corner, then convex.

        .. math:: A = \mathrm{diag}(P) - PP^\top/M, \quad P_j = q\pi_j \; (j \ne y), \quad P_y = M - q
        """
        steep = self.link.corner_slope
        beyond = np.maximum(slope, steep)
        bent = beyond**2 / (beyond - self.curvature(beyond))
        return np.where(slope <= steep, 1.0, bent)

    def shape_problems(self) -> Iterator[str]:
        """None: the shape is proved."""
        return iter(())

    def record_problems(
        self, gradient: FloatArray, hessian: FloatArray, y: FloatArray
    ) -> Iterator[tuple[str, BoolArray]]:
        r"""What the curve does not cover of records in centred coordinates, and of which of them.

        In the scores of the classes a gradient is :math:`q(\pi - e)` and the Hessian no larger than declared.
        """
        basis = centring(self.classes)
        scores = gradient @ basis.T / self.weight
        slope, true = -np.min(scores, axis=1), np.argmin(scores, axis=1)
        away = scores / np.maximum(slope, 1e-300)[:, None]
        others = away.copy()
        np.put_along_axis(others, true[:, None], 0.0, axis=1)
        beyond = (slope > self.cap * (1.0 + SLACK)) | np.any(others < -SLACK, axis=1)
        if np.any(beyond):
            yield "the gradient is none of the declared softmax curve", beyond
            return
        for label in np.unique(y):
            steep = (slope > SLACK) & (y == label)
            if len(np.unique(true[steep])) > 1:
                yield f"the gradients of the label y={label:g} do not point away from one class", steep
                return
        within = others[:, :, None] * (np.eye(self.classes) - others[:, None, :])
        bend = self.curvature(np.minimum(slope, self.cap))
        allowed = slope[:, None, None] * within + bend[:, None, None] * (away[:, :, None] * away[:, None, :])
        above = np.linalg.eigvalsh(basis @ hessian @ basis.T / self.weight - allowed)[:, -1] > SLACK
        if np.any(above):
            yield "the Hessian exceeds that of the declared softmax curve", above
