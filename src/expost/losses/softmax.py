"""The softmax loss of several classes, in centred coordinates, with a cap on its slope if wanted."""

import math
from copy import copy
from dataclasses import InitVar, dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost._common.namespaces import Space, namespace_of
from expost._common.typing import FloatArray
from expost.losses.base import ADDED, LabelSet
from expost.losses.binary import LogisticLoss
from expost.losses.records import Levels
from expost.losses.softmax_curve import SoftmaxCurve, centring as centring
from expost.losses.vector import VectorLoss


@dataclass(frozen=True)
class SoftmaxLoss(VectorLoss):
    r"""The negative log-likelihood of one of :math:`K` classes, its slope capped if wanted.

    With scores :math:`s = Qu` of the linear predictors :math:`u \in R^{K-1}` (:func:`centring`), the true
    class :math:`y`, :math:`\pi` the softmax of the scores of the other classes, :math:`h = \pi - e_y` and
    :math:`g = \log\sum_{j\ne y}e^{s_j} - s_y`, how far the prediction is on the wrong side,

    .. math:: f(u; y) = F(g), \quad \nabla f = Q^\top v, \quad v = qh, \quad
              \nabla^2 f = Q^\top AQ, \quad A = qA(\pi) + \kappa hh^\top, \quad
              A(\pi) = \mathrm{diag}(\pi) - \pi\pi^\top

    where :math:`F(g) = \log(1 + e^g)` is the logistic loss, :math:`q = F'(g) = 1 - p_y` and
    :math:`\kappa = F''(g) = q(1 - q)`. With a cap :math:`F` is the capped logistic loss
    (:class:`expost.LogisticLoss`) with the same cap and corner. It stays convex: :math:`F` is convex and
    increasing, :math:`g` is convex. Two classes are the logistic loss at :math:`\sqrt2u`.

    Centred coordinates lose nothing against :math:`K` free score vectors: every gradient sums to zero over
    the classes, so that the mean score is noise alone.

    Parameters
    ----------
    classes
        The number :math:`K` of classes, at least 2, also as ``n_classes``; labels are 0, ..., K - 1.
    cap
        The largest :math:`q`, between 1e-6 and 1; 1 for none. The gradient is then no longer than
        :math:`\sqrt2` times the cap.
    corner, gradient_cap
        As in :class:`expost.LogisticLoss`; a gradient is then no longer than :math:`\sqrt2` times
        ``gradient_cap``.

    Examples
    --------
    >>> loss = SoftmaxLoss(3)
    >>> gradient, factor = loss.derivatives(np.zeros((1, 2)), np.array([2.0]))
    >>> (gradient @ centring(3).T).round(3)  # p - e_y
    array([[ 0.333,  0.333, -0.667]])
    """

    classes: int = field(default=0, metadata={"needed": True})
    cap: float = field(default=1.0, metadata=ADDED)
    corner: float | None = field(default=None, metadata=ADDED)
    gradient_cap: float | None = field(default=None, metadata=ADDED)
    n_classes: InitVar[int | None] = field(default=None, kw_only=True)
    name: ClassVar[str] = "softmax"
    is_likelihood: ClassVar[bool] = True
    in_any_namespace: ClassVar[bool] = True
    class_scores: ClassVar[bool] = True

    def __post_init__(self, n_classes: int | None) -> None:
        if n_classes is not None:
            object.__setattr__(self, "classes", n_classes)
        curve = SoftmaxCurve(self.classes, self.cap, self.corner)  # refuses what is out of range
        object.__setattr__(self, "cap", curve.cap)
        object.__setattr__(self, "corner", curve.corner)
        object.__setattr__(self, "gradient_cap", self.link.gradient_cap)

    def __str__(self) -> str:
        capped = "" if self.corner is None else f", cap={self.cap:.6g}, corner={self.corner:.6g}"
        if self.gradient_cap is not None:
            capped += f", gradient_cap={self.gradient_cap:.6g}"
        return f"SoftmaxLoss(classes={self.classes}{capped})"

    @cached_property
    def link(self) -> LogisticLoss:
        """The scalar loss :math:`F`, at the label 0."""
        return LogisticLoss(cap=self.cap, corner=self.corner, gradient_cap=self.gradient_cap)

    @property
    def levels(self) -> Levels | None:
        """Those of the scalar loss."""
        return self.link.levels

    def at_level(self, factor: float) -> "SoftmaxLoss":
        """The loss of rows whose cap is so many times that of the longest rows."""
        link = self.link.at_level(factor)
        return SoftmaxLoss(self.classes, link.cap, link.corner)

    def for_rows(self, rows: Any) -> Any:
        """The loss with the cap that each of these rows has."""
        if self.levels is None:
            return self
        bound = copy(self)
        bound.__dict__["link"] = self.link.for_rows(rows)
        return bound

    @property
    def outputs(self) -> int:
        """One fewer than there are classes."""
        return self.classes - 1

    @property
    def noise_classes(self) -> int:  # type: ignore[override]  # an attribute of the base
        """All of them: the steepness goes with the noise between any two."""
        return self.classes

    @property
    def labels(self) -> LabelSet:
        """The whole numbers from zero to one below the number of classes."""
        return LabelSet(0.0, self.classes - 1.0, values=tuple(map(float, range(self.classes))))

    @property
    def curve(self) -> SoftmaxCurve:
        """The classes, the cap and its corner."""
        return SoftmaxCurve(self.classes, self.cap, self.corner)

    def by_predictor(self, coefficients: FloatArray) -> FloatArray:
        """:math:`Qw`: the coefficients of each class."""
        table: FloatArray = centring(self.classes) @ coefficients.reshape(self.outputs, -1)
        return table

    def value(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        """``F(g)``."""
        wrong = self._others(eta, TrueClass(y, self.classes))[0]
        return self.link.value(wrong, np.zeros_like(wrong))

    def derivatives(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        r"""Return :math:`Q^\top v` and a factor with one column per class.

        .. math:: A = \sum_{j\ne y}q\pi_j(e_j - \pi)(e_j - \pi)^\top + \kappa(e_y - \pi)(e_y - \pi)^\top

        Sums and products of positive weights: what is tiny keeps its digits.
        """
        true = TrueClass(y, self.classes)
        slope, curvature, others = self._parts(eta, true)
        mean = others @ true.basis
        gradient = slope[:, None] * (mean - true.rows(true.basis))
        weights = true.replaced(slope[:, None] * others, curvature[:, None])
        return gradient, (true.basis.T - mean[:, :, None]) * namespace_of(eta).sqrt(weights)[:, None, :]

    def upper_hessians(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        r"""From the weights of pairs of classes, in one product.

        .. math:: A = \sum_{a<b}B_{ab}(e_a - e_b)(e_a - e_b)^\top, \quad
                  B_{ab} = (q - \kappa)\pi_a\pi_b + \kappa(1_{a=y}\pi_b + 1_{b=y}\pi_a)
        """
        true = TrueClass(y, self.classes)
        slope, curvature, others = self._parts(eta, true)
        # Up to the corner of a cap q - κ is the square of q, without a difference of nearly equal numbers.
        mixed = np.where(slope > self.link.corner_slope, slope - curvature, slope * slope)
        first, second, squares = _pairs_of_classes(self.classes)
        weights = (mixed[:, None] * others)[:, first] * others[:, second]
        own = true.replaced(np.zeros_like(others), curvature[:, None])
        weights += own[:, first] * others[:, second] + own[:, second] * others[:, first]
        entries: FloatArray = weights @ squares
        return entries

    def slope(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        r""":math:`q`: how much of the mass is on the wrong classes; at most the cap."""
        return self._parts(eta, TrueClass(y, self.classes))[0]

    def steepness(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        r""":math:`\sqrt2q`, which goes with the spread of the classes' noise."""
        return math.sqrt(2.0) * self.slope(eta, y)

    def smallest_mass(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        r"""The smallest mass, at most :math:`u^\top Au` for every unit vector :math:`u` that sums to zero.

        See :meth:`~expost.losses.softmax_curve.SoftmaxCurve.mass`; without a cap they are the probabilities.
        """
        xp, true = namespace_of(eta), TrueClass(y, self.classes)
        slope, curvature, others = self._parts(eta, true)
        bent = slope > self.link.corner_slope
        # That of the true class is κ/q up to the corner of a cap and qκ/(q - κ) beyond it: neither is a
        # difference of nearly equal numbers.
        ratio = curvature / xp.where(slope > 0.0, slope, 1.0)
        own = xp.where(bent, curvature / xp.where(bent, 1.0 - ratio, 1.0), xp.where(slope > 0.0, ratio, 1.0))
        smallest: FloatArray = xp.minimum(own, slope * xp.min(true.replaced(others, np.inf), axis=1))
        return smallest

    def log_determinant(self, eta: FloatArray, y: FloatArray, scale: FloatArray) -> FloatArray:
        r""":math:`\log\det(I + sA)` in closed form.

        With :math:`t = sq`, :math:`b = \sum\pi_j^2/(1 + t\pi_j)` and :math:`e = 1 - tb`,

        .. math:: \log\det(I + tA(\pi)) + \log\bigl(1 + s\kappa(1 + b/e)\bigr), \qquad
                  \log\det(I + tA(\pi)) = \sum_j\log(1 + t\pi_j) + \log e

        The largest :math:`\pi_j` is taken out of both sums, so that only positive numbers are added.
        """
        xp = namespace_of(eta)
        slope, curvature, others = self._parts(eta, TrueClass(y, self.classes))
        top, rest = _largest_apart(others)
        t = (scale * slope)[:, None]
        spread = t * rest * (top[:, None] - rest) / (1.0 + t * rest)
        lifted = xp.sum(spread, axis=1)
        within = xp.sum(xp.log1p(t * rest), axis=1) + xp.log1p(lifted)
        squares = xp.sum(others**2 / (1.0 + t * others), axis=1)
        # e (1 + t top) = 1 + lifted, by the same reordering.
        ratio = squares * (1.0 + t[:, 0] * top) / (1.0 + lifted)
        total: FloatArray = within + xp.log1p(scale * curvature * (1.0 + ratio))
        return total

    def curvature_norm(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        r""":math:`\|A\|_F` in closed form.

        .. math:: \|A\|_F^2 = q^2\|A(\pi)\|_F^2 + 2q\kappa\,\pi^\top A(\pi)\pi + \kappa^2(1 + \|\pi\|^2)^2
        """
        xp = namespace_of(eta)
        slope, curvature, others = self._parts(eta, TrueClass(y, self.classes))
        top, rest = _largest_apart(others)
        gap, rest_squares = xp.sum(rest, axis=1), xp.sum(rest**2, axis=1)
        diagonal = (top * gap) ** 2 + xp.sum((rest * (1.0 - rest)) ** 2, axis=1)
        between = xp.clip(rest_squares**2 - xp.sum(rest**4, axis=1), 0.0, None)
        within = diagonal + 2.0 * top**2 * rest_squares + between
        squares = top**2 + rest_squares
        # The variance of π under π itself; the largest one's distance from the mean without a difference of
        # nearly equal numbers.
        along = top * (top * gap - rest_squares) ** 2 + xp.sum(rest * (rest - squares[:, None]) ** 2, axis=1)
        # Squares of tiny slopes would underflow; a curvature is never larger than its slope.
        share = curvature / xp.clip(slope, np.finfo(np.float64).tiny, None)
        norms: FloatArray = slope * xp.hypot(xp.sqrt(within + 2.0 * share * along), share * (1.0 + squares))
        return norms

    def _parts(self, eta: FloatArray, true: "TrueClass") -> tuple[FloatArray, FloatArray, FloatArray]:
        r""":math:`q`, :math:`\kappa` and :math:`\pi`."""
        wrong, others = self._others(eta, true)
        return *self.link.derivatives(wrong, namespace_of(eta).zeros_like(wrong)), others

    def _others(self, eta: FloatArray, true: "TrueClass") -> tuple[FloatArray, FloatArray]:
        """How far the prediction is on the wrong side, and the softmax of the other classes."""
        xp = namespace_of(eta)
        scores = eta @ true.basis.T
        scores -= true.entries(scores)
        scores = true.replaced(scores, -np.inf)
        top = xp.max(scores, axis=1)
        powers = xp.exp(scores - top[:, None])
        total = xp.sum(powers, axis=1)
        return top + xp.log(total), powers / total[:, None]


class TrueClass:
    """The place of each record's true class: an index in NumPy, a mask in any other library."""

    def __init__(self, y: FloatArray, classes: int) -> None:
        self._xp = namespace_of(y)
        self.basis = centring(classes)
        """The Helmert matrix, where the labels lie."""
        if self._xp is np:
            self._place: Any = y.astype(np.intp)[:, None]
        else:
            numbers, self.basis = _placed_constants(Space.of(y), classes)
            self._place = y[:, None] == numbers[None, :]

    def entries(self, values: FloatArray) -> Any:
        """The entry of each row at its class, as a column."""
        if self._xp is np:
            return np.take_along_axis(values, self._place, axis=1)
        return self._xp.sum(self._xp.where(self._place, values, 0.0), axis=1, keepdims=True)

    def rows(self, matrix: FloatArray) -> Any:
        """The row of a matrix, one for each class, that each record has."""
        if self._xp is np:
            return matrix[self._place[:, 0]]
        return self._xp.astype(self._place, self._xp.float64) @ matrix

    def replaced(self, values: FloatArray, by: FloatArray | float) -> Any:
        """The values with others at each row's class; NumPy's are changed in place."""
        if self._xp is np:
            np.put_along_axis(values, self._place, by, axis=1)
            return values
        return self._xp.where(self._place, by, values)


@cache
def _pairs_of_classes(classes: int) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]:
    """Both classes of each pair, and the upper entries of the square of their distance in the predictors."""
    first, second = np.triu_indices(classes, 1)
    distance = centring(classes)[first] - centring(classes)[second]
    a, b = np.triu_indices(classes - 1)
    return first, second, distance[:, a] * distance[:, b]


@cache
def _placed_constants(space: Space, classes: int) -> tuple[Any, Any]:
    """The numbers of the classes and the Helmert matrix on a device, copied there once."""
    return space.put(np.arange(float(classes))), space.put(centring(classes))


def _largest_apart(others: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The largest entry of each row, and the row with a zero in its place."""
    xp = namespace_of(others)
    place = xp.argmax(others, axis=1)[:, None]
    if xp is np:
        rest = others.copy()
        np.put_along_axis(rest, place, 0.0, axis=1)
    else:
        numbers = xp.arange(others.shape[1], device=Space.of(others).device)
        rest = xp.where(numbers[None, :] == place, 0.0, others)
    return xp.max(others, axis=1), rest
