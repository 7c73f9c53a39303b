"""Any convex loss: a record's gradient and Hessian in all parameters, their bounds, and declared records."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import check_count, check_positive, parameter_error
from expost.exceptions import LossError
from expost.losses.base import DerivativeCurve, LabelSet
from expost.losses.records import RecordLoss, Records

# More than the rounding of a norm and of a product with a scale, in units of the last place.
_ROUNDINGS = 8
_EPS = float(np.finfo(np.float64).eps)
LARGEST_NUMBER = 1e50
"""Bounds and scales beyond this would leave the range of doubles in squares and cubes."""


def check_scales(**named: float) -> None:
    """Raise ParameterError unless these are positive numbers whose powers doubles can hold."""
    for name, value in named.items():
        if not 1.0 / LARGEST_NUMBER <= check_positive(name, value) <= LARGEST_NUMBER:
            limits = f"between {1.0 / LARGEST_NUMBER:g} and {LARGEST_NUMBER:g}"
            raise parameter_error(name, limits, value, "Scale the data by a constant.")


class RecordSet(ABC):
    """A set of rows of numbers, declared without looking at any table.

    Every row of a table is brought into it by :meth:`enclose` before a loss sees it. So bounds that hold on
    the set hold for every record that can occur. A set that is none of the library's can be had inside the
    loss: take a ball or a box around it, and let the loss map each row.
    """

    dimension: int

    @abstractmethod
    def enclose(self, rows: FloatArray) -> FloatArray:
        """Each row brought into the set, by itself; rows of the set stay as they are."""

    @abstractmethod
    def draw(self, random: np.random.Generator, count: int) -> FloatArray:
        """Rows across the whole set, its centre and its boundary included, to check a loss at."""

    @abstractmethod
    def __str__(self) -> str:
        """The set in words."""


@dataclass(frozen=True)
class RecordBall(RecordSet):
    r"""Rows of Euclidean norm at most ``radius``; longer ones are scaled down to it.

    .. math:: x \mapsto x\min(1, R/\|x\|)

    Examples
    --------
    >>> RecordBall(2, radius=1.0).enclose(np.array([[3.0, 4.0], [0.1, 0.0]])).round(6).tolist()
    [[0.6, 0.8], [0.1, 0.0]]
    """

    dimension: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        check_count("dimension", self.dimension)
        check_scales(radius=self.radius)

    def enclose(self, rows: FloatArray) -> FloatArray:
        """Each row, scaled down where it is longer than the radius."""
        # The largest entry is factored out, so that no square overflows.
        largest: FloatArray = np.maximum(np.max(np.abs(rows), axis=1), self.radius)
        shares = rows / largest[:, None]
        margin = 1.0 + (self.dimension + _ROUNDINGS) * _EPS
        lengths: FloatArray = np.sqrt(np.vecdot(shares, shares)) * margin
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            short = largest * lengths <= self.radius * margin
            scaled = shares * (self.radius / lengths)[:, None]
        return np.asarray(np.where(short[:, None], rows, scaled))

    def draw(self, random: np.random.Generator, count: int) -> FloatArray:
        """The centre, the ends of the first axes, and directions at every distance from the centre."""
        directions = random.normal(size=(count, self.dimension))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        lengths = self.radius * np.where(np.arange(count) % 2 == 0, 1.0, random.random(count))
        axes = np.eye(self.dimension)[: max(1, count // 4)]
        ends = self.radius * np.concatenate([axes, -axes])
        return np.concatenate([np.zeros((1, self.dimension)), ends, lengths[:, None] * directions])

    def __str__(self) -> str:
        return f"rows of {self.dimension} numbers of norm at most {self.radius:g}"


@dataclass(frozen=True)
class RecordBox(RecordSet):
    """Rows whose numbers lie between declared bounds; others are moved to the nearest bound.

    Examples
    --------
    >>> RecordBox(low=(0.0, -1.0), high=(10.0, 1.0)).enclose(np.array([[12.0, 0.5]])).tolist()
    [[10.0, 0.5]]
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        ends = [*self.low, *self.high]
        if not ends or len(self.low) != len(self.high) or not all(math.isfinite(end) for end in ends):
            raise parameter_error("low", "finite numbers, one for each of `high`", self.low)
        if any(low >= high for low, high in zip(self.low, self.high, strict=True)):
            raise parameter_error("low", f"below high={self.high!r}", self.low)

    @property
    def dimension(self) -> int:  # type: ignore[override]  # an attribute of the base that is computed here
        """How many numbers a row has."""
        return len(self.low)

    def enclose(self, rows: FloatArray) -> FloatArray:
        """Each number, moved to the nearest bound where it is outside."""
        return np.clip(rows, self.low, self.high)

    def draw(self, random: np.random.Generator, count: int) -> FloatArray:
        """The centre, corners, and rows in between."""
        low, high = np.array(self.low), np.array(self.high)
        inside = random.random((count, len(low)))
        corners = random.random((count, len(low))) >= 0.5
        shares = np.concatenate([np.full((1, len(low)), 0.5), corners, inside])
        return np.asarray(low + (high - low) * shares)

    def __str__(self) -> str:
        intervals = ", ".join(f"[{low:g}, {high:g}]" for low, high in zip(self.low, self.high, strict=True))
        return f"rows of {len(self.low)} numbers in {intervals}"


NO_LABEL = LabelSet(values=())
"""The labels of records that have none."""
# Of a record's largest eigenvalue: what is dropped as zero, and what cannot be rounding.
_ZERO, _NEGATIVE = 1e-14, 1e-8


class ConvexLoss(RecordLoss):
    r"""A convex, twice continuously differentiable loss :math:`\ell(\theta; z)` of a record :math:`z`.

    For losses that are no function of a few linear predictors; one that is, is better served by
    :class:`expost.Loss` or :class:`expost.losses.VectorLoss`.

    To add one, write a frozen dataclass that sets ``name``, defines what is abstract below and one of
    :meth:`factor` and :meth:`hessian`, then run :func:`expost.check_convex_loss` on it. Everything is
    computed for a block of records at once: ``records`` has one row for each, all of them in
    :attr:`record_set`, with the label as a last column where :attr:`labels` is not empty. A record's results
    may depend on no other record.

    **Declared bounds.** For every :math:`\theta \in R^d` and every record of the set

    .. math:: \|\nabla\ell\| \le \xi, \quad \nabla^2\ell \preceq \beta I, \quad
              \mathrm{rank}\,\nabla^2\ell \le k, \quad \mathrm{tr}\,\nabla^2\ell \le \kappa_{tr}, \quad
              \nabla\ell(\theta; z) \in V_z \text{ with } \dim V_z \le r_g

    where the subspace :math:`V_z` depends on the record alone. The guarantee is as good as these bounds:
    prove them. :func:`expost.check_convex_loss` finds many mistakes, and cannot find all.
    """

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """The number :math:`d` of parameters."""

    @property
    @abstractmethod
    def record_set(self) -> RecordSet:
        """Which rows of numbers a record may have, and how others are brought among them."""

    @property
    def labels(self) -> LabelSet:
        """The labels that a record may have; empty where records have none."""
        return NO_LABEL

    @property
    @abstractmethod
    def max_gradient(self) -> float:
        r"""The largest norm :math:`\xi` of a record's gradient."""

    @property
    @abstractmethod
    def max_curvature(self) -> float:
        r"""The largest eigenvalue :math:`\beta` of a record's Hessian."""

    @property
    def rank(self) -> int:
        """The largest rank :math:`k` of a record's Hessian, at most :attr:`gradient_dimension`."""
        return self.gradient_dimension

    @property
    def max_trace(self) -> float | None:
        r"""The largest trace :math:`\kappa_{tr}` of a record's Hessian, where it is below :math:`k\beta`."""
        return None

    @property
    def gradient_dimension(self) -> int:
        """The dimension :math:`r_g` of a subspace that holds all gradients of one record."""
        return self.n_parameters

    @property
    def parameter_scale(self) -> float:
        r"""The norm of parameters that counts as large; the default regularisation is made for twice as much.

        By default :math:`\xi/\beta`: over this distance a gradient can change by all of its size.
        """
        return self.max_gradient / self.max_curvature

    @property
    def curve(self) -> DerivativeCurve:
        r"""The gradient norms :math:`m` and the largest curvature at each: all that accounting needs.

        The determinant of a record whose gradient has the norm :math:`m` must satisfy

        .. math:: \log\det(I + \nabla^2\ell/\lambda) \le k\log(1 + \kappa(m)/\lambda), \quad \lambda > 0.

        By default :math:`\kappa = \min(\beta, \kappa_{tr}/k)` for every :math:`m`. A loss whose curvature is
        small where its gradient is long can say so with a curve of its own, and needs less noise. Where
        :math:`\kappa(m)` is below the largest eigenvalue at :math:`m`, as a mean of all of them is, the curve
        must have an ``eigenvalue`` too, here :math:`\beta`.
        """
        trace = self.max_trace
        ceiling = self.max_curvature if trace is None else min(self.max_curvature, trace / self.rank)
        return DerivativeCurve(
            max_slope=self.max_gradient,
            curvature=lambda slope: np.full_like(slope, ceiling),
            peak=0.0,
            sign_fixed=False,
            outputs=self.gradient_dimension,
            rank=self.rank,
            predictor_unit=self.parameter_scale,
            eigenvalue=lambda slope: np.full_like(slope, self.max_curvature),
        )

    @abstractmethod
    def value(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        """The loss of each record."""

    @abstractmethod
    def gradient(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        """The gradient of each record, records by parameters."""

    def factor(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        r"""A factor :math:`F` of each record's Hessian :math:`FF^\top`, records by parameters by columns.

        By default from :meth:`hessian`, by its eigenvectors. Eigenvalues of at most 1e-14 of the largest are
        dropped. One below minus 1e-8 of it is refused: the loss is not convex.
        """
        if not self.has_hessian:
            raise LossError(f"{type(self).__name__} must define `factor` or `hessian`.")
        values, vectors = np.linalg.eigh(self.hessian(theta, records))
        largest = np.max(np.abs(values), axis=1, initial=0.0)[:, None]
        if np.any(values < -_NEGATIVE * largest):
            raise LossError(f"{type(self).__name__} is not convex: a Hessian has a negative eigenvalue.")
        kept = np.where(values > _ZERO * largest, values, 0.0)
        return np.asarray(vectors * np.sqrt(kept)[:, None, :])

    def hessian(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        """The Hessian of each record, records by parameters by parameters; by default from :meth:`factor`."""
        factor = self.factor(theta, records)
        return np.asarray(factor @ np.swapaxes(factor, 1, 2))

    @property
    def has_hessian(self) -> bool:
        """Whether the loss defines Hessians itself."""
        return type(self).hessian is not ConvexLoss.hessian

    def total_hessian(self, theta: FloatArray, records: FloatArray) -> FloatArray:
        """The sum of the records' Hessians."""
        if self.has_hessian:
            return np.asarray(np.sum(self.hessian(theta, records), axis=0))
        stacked = np.swapaxes(self.factor(theta, records), 1, 2).reshape(-1, self.n_parameters)
        return np.asarray(stacked.T @ stacked)

    def at(self, theta: FloatArray, block: Any) -> Records:
        """The records of a block at parameters."""
        return _ConvexRecords(self, theta, block.X.encoded(), block.weights)

    def coefficient_count(self, columns: int) -> int:
        """One coefficient for each parameter."""
        return self.n_parameters

    @property
    def outputs(self) -> int:
        """As many as there are parameters, as if a record had one column with the constant 1."""
        return self.n_parameters


@dataclass(frozen=True, eq=False)
class _ConvexRecords(Records):
    """Records of any convex loss at parameters: gradients and factors written out."""

    loss: ConvexLoss
    theta: FloatArray
    records: FloatArray
    weights: FloatArray | None

    def __len__(self) -> int:
        return len(self.records)

    @cached_property
    def gradient(self) -> FloatArray:
        gradient = self.loss.gradient(self.theta, self.records)
        return gradient if self.weights is None else self.weights[:, None] * gradient

    @cached_property
    def factor(self) -> FloatArray:
        factor = self.loss.factor(self.theta, self.records)
        return factor if self.weights is None else np.sqrt(self.weights)[:, None, None] * factor

    def size(self, reach: float, length: float) -> float:
        """Gradients, and what rounding the parameters and the record can move them by."""
        reaches = length + np.sqrt(np.vecdot(self.records, self.records))
        return float(np.sum(self.slope) + self.loss.max_curvature * np.sum(reaches))

    def add_hessian(self, squares: Any) -> None:
        """Add the sum of the Hessians, in double precision whatever is asked for."""
        if self.weights is None:
            total = self.loss.total_hessian(self.theta, self.records)
        else:
            stacked = np.swapaxes(self.factor, 1, 2).reshape(-1, len(self.theta))
            total = stacked.T @ stacked
        squares.add_strip(0, total)
