"""The interface of a loss: its labels, its derivatives and its derivative curve."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from expost._common.namespaces import namespace_of
from expost._common.typing import BoolArray, FloatArray
from expost.losses.records import Levels, RecordLoss, RowRecords, derivatives_of

# Relative slack for comparisons that hold exactly on paper: far above rounding, far below any real mistake.
SLACK = 1e-9
# Slopes as shares of the largest: evenly, and closer to zero.
_SHARES = np.unique(np.concatenate([np.logspace(-9, 0, 500), np.linspace(0.0, 1.0, 1501)[1:]]))
ADDED: Mapping[str, Any] = MappingProxyType({"added": True})
"""Marks a parameter that files leave out at its default, so that files from before it read the same."""


@dataclass(frozen=True)
class LabelSet:
    """The labels a loss accepts: a closed interval, or the listed values inside it.

    Examples
    --------
    >>> LabelSet(0.0, 1.0, values=(0.0, 1.0)).contains(np.array([0.0, 0.5, 1.0]))
    array([ True, False,  True])
    >>> str(LabelSet(0.0, 1.0)), str(LabelSet())
    ('[0, 1]', 'the real numbers')
    """

    low: float = -math.inf
    high: float = math.inf
    values: tuple[float, ...] | None = None

    def contains(self, y: FloatArray) -> BoolArray:
        """Whether each label is in the set; NaN and infinities never are."""
        xp = namespace_of(y)
        if self.values is not None and xp is np:
            return np.isin(y, self.values)
        inside: BoolArray = xp.isfinite(y) & (y >= self.low) & (y <= self.high)
        if self.values is not None:
            inside = inside & reduce(or_, [y == value for value in self.values])
        return inside

    def __str__(self) -> str:
        if self.values is not None:
            return "{" + ", ".join(f"{value:g}" for value in self.values) + "}"
        return "the real numbers" if math.isinf(self.low) else f"[{self.low:g}, {self.high:g}]"


@dataclass(frozen=True, eq=False)
class DerivativeCurve:
    r"""The slopes that a loss can have and the largest curvature at each: all that accounting needs.

    With :math:`m = |f'|` and :math:`\kappa = f''`, the curve lists every attainable :math:`m` in
    ``[0, max_slope]`` together with an upper bound on :math:`\kappa` at that :math:`m`.

    Parameters
    ----------
    max_slope
        The largest attainable :math:`|f'|`; infinite where the loss has none, and then no worst-case
        guarantee exists.
    curvature
        Vectorised: the largest :math:`f''` among all linear predictors and labels with :math:`|f'| = m`.
    peak
        The slope where ``curvature`` is largest. Before the peak it must not fall and after it not rise, so
        that its largest value on an interval is known exactly, not by sampling.
    sign_fixed
        Whether the label alone decides the sign of :math:`f'`.
    predictor_unit
        The size of a linear predictor that the loss counts as large; the default regularisation is made for
        twice as much. By default ``max_slope``, right for a loss that is quadratic up to there.
    outputs, rank
        For losses of several linear predictors: how many there are, and the largest rank of the
        Hessian in them. ``max_slope`` then bounds the gradient's Euclidean norm and ``curvature`` the
        Hessian's largest eigenvalue. Both are 1 for a generalised linear model.
    eigenvalue
        Vectorised, for a ``curvature`` that bounds determinants and traces, not each of the ``rank``
        eigenvalues: the largest eigenvalue at each slope. It must not rise with the slope.

    Notes
    -----
    The accountant also covers rows shorter than the declared norm, because :math:`\kappa(m)/m^2` does not
    rise with :math:`m`; :func:`expost.check_loss` verifies that. Where :math:`\kappa(m)/m` does not rise
    either, statistics released with the model are accounted for in closed form.
    """

    max_slope: float
    curvature: Callable[[FloatArray], FloatArray]
    peak: float
    sign_fixed: bool
    outputs: int = 1
    rank: int = 1
    predictor_unit: float | None = None
    eigenvalue: Callable[[FloatArray], FloatArray] | None = None

    @property
    def max_curvature(self) -> float:
        """The largest second derivative anywhere (the smoothness of the loss)."""
        return float(self.curvature(np.array([self.peak]))[0])

    def largest_eigenvalue(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """The largest eigenvalue of a Hessian over slopes in each interval ``[low, high]``."""
        if self.eigenvalue is None:
            return self.max_curvature_between(low, high)
        return self.eigenvalue(low)

    @property
    def ratio_falls(self) -> bool:
        r"""Whether :math:`\kappa(m)/m` does not rise with :math:`m`: else no closed form is proved."""
        return self.falls_by(1)

    def falls_by(self, power: int) -> bool:
        r"""Whether :math:`\kappa(m)/m^p` does not rise with :math:`m`, seen on a grid of slopes."""
        slopes = self._top * _SHARES
        with np.errstate(divide="ignore", invalid="ignore"):  # of slopes too small for a double: not shown
            ratio = self.curvature(slopes) / slopes**power
            return bool(np.all(np.diff(ratio) <= SLACK * ratio[:-1]))

    @property
    def _top(self) -> float:
        return self.max_slope if math.isfinite(self.max_slope) else max(1e4, 10.0 * self.peak)

    def scaled(self, weight: float) -> "DerivativeCurve":
        r"""The curve of the loss times a weight :math:`\omega`: slopes and curvatures times the weight.

        .. math:: \kappa_\omega(m) = \omega\,\kappa(m/\omega)

        Where :math:`\kappa(m)/m` does not rise with :math:`m`, :math:`\kappa_\omega(m)` rises with
        :math:`\omega`. So this curve covers every smaller weight too: a record of slope :math:`m` and weight
        below :math:`\omega` has no more curvature than one of weight :math:`\omega` and the same slope.

        Examples
        --------
        >>> curve = DerivativeCurve(1.0, lambda m: m * (1.0 - m), peak=0.5, sign_fixed=True).scaled(4.0)
        >>> curve.max_slope, curve.peak, curve.max_curvature
        (4.0, 2.0, 1.0)
        """
        if weight == 1.0:
            return self
        steepest, unit = self.max_slope, self.predictor_unit
        if unit is None and math.isfinite(steepest):
            unit = steepest  # a linear predictor is as large as before

        def weighted(curvature: Callable[[FloatArray], FloatArray]) -> Callable[[FloatArray], FloatArray]:
            return lambda slope: weight * curvature(np.minimum(slope / weight, steepest))

        return replace(
            self,
            max_slope=weight * steepest,
            curvature=weighted(self.curvature),
            peak=weight * self.peak,
            predictor_unit=unit,
            eigenvalue=None if self.eigenvalue is None else weighted(self.eigenvalue),
        )

    def max_curvature_between(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """The largest curvature over slopes in each interval ``[low, high]``."""
        return self.curvature(np.clip(self.peak, low, high))

    def shape_problems(self) -> Iterator[str]:
        """What is wrong with the shape of the curve, whatever the loss is."""
        slack = SLACK * max(self.max_curvature, 1e-300)
        slopes = np.linspace(0.0, self._top, 2001)
        declared = self.curvature(slopes)
        if np.any(declared < 0.0) or not np.all(np.isfinite(declared)):
            yield "the declared curve is negative or not finite somewhere on [0, max_slope]"
            return
        rise = np.diff(declared)
        if np.any(rise[slopes[1:] <= self.peak] < -slack) or np.any(rise[slopes[:-1] >= self.peak] > slack):
            yield f"the declared curve does not rise up to peak={self.peak:g} and fall after it"
        if self.eigenvalue is not None and np.any(np.diff(self.eigenvalue(slopes)) > slack):
            yield "the declared curve's eigenvalue rises with the slope"
        if not self.falls_by(2):
            yield "curvature(m)/m² rises along the declared curve, so that short rows are not covered"

    def record_problems(
        self, gradient: FloatArray, hessian: FloatArray, y: FloatArray
    ) -> Iterator[tuple[str, BoolArray]]:
        """What the curve may not cover of records in their predictors, and of which of them it does not."""
        slopes = np.minimum(np.linalg.norm(gradient, axis=1), self.max_slope)
        room = SLACK * max(self.max_curvature, 1e-300)
        above = np.linalg.eigvalsh(hessian)[:, -1] > self.curvature(slopes) * (1.0 + SLACK) + room
        what = "the curvature" if self.outputs == 1 else "an eigenvalue of the Hessian"
        yield f"{what} exceeds the declared curve", above


@dataclass(frozen=True, eq=False)
class LinearRecords(RowRecords):
    r"""Records of one linear predictor: :math:`g = f'x` and :math:`F = \sqrt{f''}\,x`, one column."""

    signed: FloatArray
    """The first derivative of the weighted loss; ``curvature`` is the second."""
    curvature: FloatArray

    def __len__(self) -> int:
        return int(self.signed.shape[0])

    @property
    def gradient(self) -> Any:
        """The rows, each times its slope."""
        return self.signed[:, None] * self.rows.encoded()

    def total(self) -> Any:
        """The sum of the rows, each times its slope."""
        return self.rows.summed(self.signed)

    def size(self, reach: float, length: float) -> Any:
        """Slopes, and curvatures times predictors, as long as they can be."""
        xp = namespace_of(self.signed)
        return reach * (xp.sum(xp.abs(self.signed)) + reach * length * xp.sum(self.curvature))

    def add_hessian(self, squares: Any) -> None:
        """Add the squares of the rows, each times its curvature."""
        squares.add(self.rows, self.curvature)

    def product(self, direction: FloatArray) -> Any:
        """The Hessian times a vector: two products with the rows."""
        return self.rows.summed(self.curvature * (self.rows @ direction))

    def along(self, direction: FloatArray) -> Any:
        """The slope times the row's inner product."""
        return self.signed * (self.rows @ direction)

    def leverages(self, root: FloatArray) -> Any:
        r"""The leverage of each record, one number: :math:`f''\,x^\top H^{-1}x`."""
        return (self.curvature * self.rows.squares_under(root))[:, None, None]

    def coordinates(self, basis: FloatArray) -> Any:
        """The row's coordinates, times the root of the curvature."""
        root = namespace_of(self.curvature).sqrt(self.curvature)
        return (root[:, None] * (self.rows @ basis))[:, None, :]

    @property
    def norm1(self) -> Any:
        """The sum of the row's absolute entries."""
        xp = namespace_of(self.signed)
        return xp.sum(xp.abs(self.rows.encoded()), axis=1)

    @cached_property
    def slope(self) -> Any:
        """The size of the first derivative."""
        return namespace_of(self.signed).abs(self.signed)

    @property
    def hessian_norm(self) -> Any:
        """The only eigenvalue of the Hessian."""
        return self.curvature * self.norm**2

    def log_determinant(self, l2: float) -> Any:
        r""":math:`\log(1 + f''\|x\|^2/\lambda)`."""
        return namespace_of(self.norm).log1p(self.hessian_norm / l2)


class PredictorLoss(RecordLoss):
    """What losses of one linear predictor and of several have in common."""

    in_any_namespace: ClassVar[bool] = False
    """Whether ``derivatives`` takes arrays of other libraries than NumPy, under the array API standard.

    If not, linear predictors of a table on another device are copied to the host for it.
    """

    log_link: ClassVar[bool] = False
    """Whether the exponential of the linear predictor is the mean of the label."""

    @property
    def levels(self) -> Levels | None:
        """The lengths of rows that have losses of their own, where it depends on the length."""
        return None

    def at_level(self, factor: float) -> Any:
        """The loss of the rows of a level; ``factor`` is the level's."""
        return self

    def for_rows(self, rows: Any) -> Any:
        """The loss of these rows, as a function of their predictors and labels: this one, if all have it."""
        return self

    @property
    @abstractmethod
    def labels(self) -> LabelSet:
        """The labels this loss accepts."""

    @abstractmethod
    def value(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        """The loss :math:`f` of each record."""

    @abstractmethod
    def derivatives(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """First and second derivative of :math:`f` in ``eta``, together because they share their work."""


class Loss(PredictorLoss):
    r"""A convex, twice differentiable loss :math:`\ell(\theta; x, y) = f(x^\top\theta; y)`.

    To add one, write a frozen dataclass that sets ``name`` and defines the two properties and the two
    methods below, then run :func:`expost.check_loss` on it. ``eta`` is the linear predictor
    :math:`x^\top\theta`; it and ``y`` are arrays of one length, and both methods must stay finite for
    ``|eta|`` up to 1e4.
    """

    outputs: ClassVar[int] = 1
    along_row = True

    @property
    @abstractmethod
    def curve(self) -> DerivativeCurve:
        """All attainable slopes with the largest curvature at each."""

    def at(self, theta: FloatArray, block: Any) -> LinearRecords:
        """The records of a block at coefficients."""
        slope, curvature = derivatives_of(self.for_rows(block.X), block.X @ theta, block.y)
        if block.weights is not None:
            slope, curvature = block.weights * slope, block.weights * curvature
        return LinearRecords(block.X, slope, curvature)
