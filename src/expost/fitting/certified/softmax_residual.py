r"""The gradient of the softmax objective's rows in more than double precision, in one pass.

Everything is done in the scores of the :math:`K` classes: each class has its own coefficients
:math:`\theta_j`, rows of :math:`Qw`, cut into slices as a scalar loss's are, and its own sum of slope times
row. Only the sums are turned into centred coordinates, in integers.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from expost._common.namespaces import namespace_of
from expost.fitting.certified.centred import (
    as_pair,
    centred_hessian,
    centred_pair,
    from_classes,
    to_classes,
)
from expost.fitting.certified.dyadic import Dyadic
from expost.fitting.certified.pairs import FloatArray, Pair, length
from expost.fitting.certified.point import Point
from expost.fitting.certified.residual import Found, Partial, SlicedPass, Slicing
from expost.fitting.certified.softmax_slopes import softmax_slopes, weight_roundings
from expost.losses import SoftmaxLoss
from expost.losses.softmax import centring

# Numbers that are held for each row on a device, for every class and for every pair of classes.
_PER_CLASS, _PER_PAIR = 40, 6


@dataclass(frozen=True)
class ClassPoints:
    """A point in centred coordinates, and for each class the nearest point that slices can hold."""

    exact: Dyadic
    points: list[Point]
    offset: float
    """No class's coefficients are farther from its point than this."""

    @classmethod
    def near(cls, values: Dyadic, slices: int, classes: int) -> Self:
        """The point itself, and the points of its classes."""
        parts = to_classes(values, classes)
        points = [Point.near(part, slices) for part in parts]
        away = [length((part - point.exact).doubles()) for part, point in zip(parts, points, strict=True)]
        return cls(values, points, max(away) + 2.0**-150 * length(values.doubles()))


@dataclass(frozen=True, eq=False, repr=False)
class SoftmaxPass(SlicedPass):
    r"""The pass that finds :math:`\sum_i \omega_iv_{ij}x_i` for every class :math:`j`, as pairs.

    Parameters
    ----------
    loss
        The softmax loss.
    point
        Where to evaluate.
    radius
        No row is longer than this.
    hessian
        Whether to add up :math:`\sum_i B_{i,ab}x_ix_i^\top` for every pair of classes as well, in doubles.

    Notes
    -----
    Errors of the classes are added, which is more than their Euclidean sum.
    """

    loss: SoftmaxLoss
    point: ClassPoints
    radius: float
    hessian: bool = False
    trace = 2.0  # the trace of a pair of classes is twice its weight

    @property
    def sums(self) -> int:  # type: ignore[override]  # an attribute of the base that is computed here
        """One sum of squares for each pair of classes."""
        return self.loss.classes * (self.loss.classes - 1) // 2

    @cached_property
    def slicing(self) -> Slicing:
        """The slices of the points of all classes."""
        return Slicing(self.point.points, self.radius)

    @property
    def numbers_held(self) -> int:
        """How many numbers are held for each row, every class and pair of classes included."""
        return super().numbers_held + _PER_CLASS * self.loss.classes + _PER_PAIR * self.sums

    def found(self, predictors: list[Pair], y: FloatArray, weights: FloatArray | None) -> Found:
        """One slope for each class, and one weight for each pair of classes."""
        one, xp = softmax_slopes(self.loss, predictors, y, weights), namespace_of(y)
        high, low = (xp.stack([pair[i] for pair in one.gradient]) for i in (0, 1))
        return Found((high, low), one.weights, one.smallest, one.per_curvature, one.absolute)

    def predictor_error(self) -> float:
        """Twice a bound on the error of every score.

        Scores off by ``e`` each move a gradient by at most ``2e`` times the root of the Hessian's trace, in
        the Hessian's norm: what :mod:`expost.fitting.certified.bound` takes ``e`` times the root of the
        curvature for.
        """
        return 2.02 * (self.slicing.predictor_error() + self.radius * self.point.offset)

    @property
    def weight_roundings(self) -> float:  # type: ignore[override]  # as above
        """How often the weight of a pair of classes is rounded."""
        return weight_roundings(self.loss)

    def roundings(self) -> int:
        """How many more roundings are in a term of the Hessian than a scalar loss has."""
        return math.ceil(self.weight_roundings + 2.0 * self.loss.classes**2)

    def assembled(self, total: Pair) -> FloatArray:
        """The Hessian in centred coordinates, rounded once."""
        return centred_pair(total, self.loss.classes)

    def at(self) -> FloatArray:
        """The point in centred coordinates, rounded once."""
        return self.point.exact.doubles()

    def finished(self, sums: Partial) -> Partial:
        """The sums of all rows in centred coordinates."""
        classes = self.loss.classes
        high, low = (part.ravel() for part in sums.total)
        if not (np.all(np.isfinite(high)) and np.all(np.isfinite(low))):
            raise OverflowError("the gradient is beyond the range of doubles")
        total = from_classes(Dyadic.of(high) + Dyadic.of(low), classes)
        hessian = sums.hessian
        if hessian is not None:
            hessian = centred_hessian(hessian, centring(classes))
        return replace(
            sums, total=as_pair(total), error=sums.error + 2.0**-100 * length(high), hessian=hessian
        )
