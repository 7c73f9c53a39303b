"""Records at a point, each by its gradient and a factor of its Hessian; and rows by their lengths."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from expost._common.namespaces import Space, is_foreign, namespace_of, on_host
from expost._common.typing import FloatArray

_STEPS = 64  # levels in which the length of a row halves
# More than all roundings of factors and limits, and so much that a row which lies on a limit falls on the
# same side of it however its squares are added up; and what every column adds to that.
_MARGIN, _PER_COLUMN = 1.0 + 2.0**-40, 2.0**-51


class Records(ABC):
    r"""Some records at a point, each by its gradient :math:`g` and a factor :math:`F` of its Hessian.

    :math:`\nabla^2\ell = FF^\top`, and weights of records are in both. Whoever makes these two, for a block
    of records at a time, has a model: its objective, its exact losses and its reports follow. They are
    computed here for gradients and factors that are written out; records whose gradients have a form take
    shorter ways. As private as the records.
    """

    @property
    def gradient(self) -> FloatArray:
        """The gradients where they are written out, records by coefficients."""
        raise NotImplementedError

    @property
    def factor(self) -> FloatArray:
        """Factors of the Hessians where they are written out, records by coefficients by columns."""
        raise NotImplementedError

    @property
    def signs(self) -> FloatArray | None:
        """The signs of the factors' columns, where some of a record leaves the table and some enters it."""
        return None

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def size(self, reach: float, length: float) -> Any:
        r"""What rounding moves :meth:`total` by, in units of the last place, up to a small factor.

        For rows of length at most ``reach`` and coefficients of length ``length``: each gradient by its own
        size, and by that of its curvature times its predictor.
        """

    @abstractmethod
    def add_hessian(self, squares: Any) -> None:
        r"""Add :math:`\sum_iF_iF_i^\top` to a :class:`~expost.fitting.squares.Gram`."""

    def total(self) -> FloatArray:
        r""":math:`\sum_ig_i`."""
        return np.asarray(np.sum(self.gradient, axis=0))

    def product(self, direction: FloatArray) -> FloatArray:
        r""":math:`\sum_iF_i(F_i^\top d)`."""
        along = np.einsum("ijk,j->ik", self.factor, direction)
        return np.asarray(np.einsum("ijk,ik->j", self.factor, along))

    def along(self, direction: FloatArray) -> FloatArray:
        """The inner product of each gradient with a vector."""
        return self.gradient @ direction

    def leverages(self, root: FloatArray) -> FloatArray:
        r""":math:`F_i^\top H^{-1}F_i` of each record, a small matrix, for :math:`H^{-1} = U^\top U`.

        ``root`` is :math:`U`, lower triangular. Any matrix of the same determinants
        :math:`\det(I \pm N)` serves.
        """
        return small_squares(root @ self.factor)

    def coordinates(self, basis: FloatArray) -> FloatArray:
        r""":math:`F_i^\top B` of each record: columns of the factor by columns of the basis."""
        return np.asarray(np.swapaxes(self.factor, 1, 2) @ basis)

    @property
    def norm(self) -> FloatArray:
        r"""The part of :math:`\|g_i\|` that the noise has no part in: the length of an encoded row, or 1."""
        return np.ones(len(self))

    @property
    def norm1(self) -> FloatArray | None:
        """The sum of the absolute entries of an encoded row, where gradients are multiples of it."""
        return None

    @cached_property
    def slope(self) -> FloatArray:
        r"""The other part, :math:`\|g_i\|` for each unit of :attr:`norm`."""
        return np.asarray(np.linalg.norm(self.gradient, axis=1))

    @property
    def steepness(self) -> FloatArray:
        """What the noise along a row of norm one is multiplied with (:mod:`expost.reports.laws`)."""
        return self.slope

    @property
    def squares(self) -> FloatArray:
        r""":math:`\|g_i\|^2` of each record."""
        return (self.slope * self.norm) ** 2

    @property
    def hessian_norm(self) -> FloatArray:
        r"""The Frobenius norm of :math:`F_iF_i^\top`."""
        return np.asarray(np.linalg.matrix_norm(small_squares(self.factor)))

    def log_determinant(self, l2: float) -> FloatArray:
        r""":math:`\log\det(I + F_iF_i^\top/\lambda)`."""
        return log_determinants(small_squares(self.factor / math.sqrt(l2)), 1.0)

    @property
    def reduced_weights(self) -> FloatArray:
        r"""Weights :math:`P_i` with :math:`F_iF_i^\top \succeq I \otimes P_ix_ix_i^\top`: a reduced Hessian.

        Only the softmax loss has them.
        """
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class RowRecords(Records):
    """Records whose gradients are products with their rows, which may lie on a device."""

    rows: Any

    @cached_property
    def norm(self) -> Any:
        """The length of the row."""
        return namespace_of(self.rows.squares).sqrt(self.rows.squares)


class RecordLoss(ABC):
    """A loss as far as models need it: how many coefficients it has, and its records at them."""

    name: ClassVar[str]
    is_likelihood: ClassVar[bool] = False
    """Whether it is the negative log-likelihood of classes, up to a cap."""
    noise_classes: int | None = None
    """How many classes there are, where :attr:`Records.steepness` goes with the noise between them."""
    along_row: ClassVar[bool] = False
    """Whether a record's gradient is a multiple of its row: its factor has one column."""
    class_scores: ClassVar[bool] = False
    """Whether the linear predictors become one score for each class."""
    each: int | None = None
    """How many rows make a record, where it is a person."""
    factor_columns: int = 1
    """How many columns a record's factor has at most, where records are many."""

    def __str__(self) -> str:
        """As the repr, with six digits of each parameter."""
        parameters = (
            f"{name}={float(f'{value:.6g}') if isinstance(value, float) else value!r}"
            for name, value in vars(self).items()
        )
        return f"{type(self).__name__}({', '.join(parameters)})"

    @property
    @abstractmethod
    def outputs(self) -> int:
        """The number :math:`k` of linear predictors: the gradient's entries for each column of the rows."""

    @property
    @abstractmethod
    def curve(self) -> Any:
        """What gradients and Hessians are attainable: all that accounting needs."""

    @abstractmethod
    def at(self, theta: FloatArray, block: Any) -> Records:
        """The records of a block at coefficients that lie where the rows do."""

    def coefficient_count(self, columns: int) -> int:
        """How many coefficients a model has, for rows of this many columns, the intercept's included."""
        return self.outputs * columns

    def by_predictor(self, coefficients: FloatArray) -> FloatArray:
        """The coefficients as a table, one row for each linear predictor, or for each class with a score."""
        return coefficients.reshape(self.outputs, -1)

    def numbers_held(self, columns: int, *, hessian: bool = False) -> int:
        """How many numbers :class:`Records` hold for each besides the row, or while a Hessian is added."""
        return 1


def by_columns(coefficients: FloatArray, outputs: int) -> Any:
    """A vector of coefficients as a matrix, one column for each linear predictor."""
    return namespace_of(coefficients).reshape(coefficients, (outputs, -1)).T


def small_squares(factors: FloatArray) -> FloatArray:
    r"""The smaller of :math:`W^\top W` and :math:`WW^\top` of each record: their determinants agree."""
    transposed = np.swapaxes(factors, 1, 2)
    return np.asarray(transposed @ factors if factors.shape[2] <= factors.shape[1] else factors @ transposed)


def log_determinants(matrices: FloatArray, sign: float | FloatArray) -> FloatArray:
    r""":math:`\log\det(I + SN)` of positive semi-definite :math:`N`, with digits however small :math:`N` is.

    :math:`S` is one sign for all, or a diagonal matrix of signs, records by columns, each record's positive
    ones first. By elimination that keeps :math:`s_j = d_j - 1` for each pivot :math:`d_j`, never the pivot
    itself. For members (:math:`s = -1`) every update adds positive numbers. The result is minus infinity
    where :math:`I - N` is not positive definite: the record cannot have been in the table.
    """
    xp = namespace_of(matrices)
    size = matrices.shape[1]
    # Records last: a step is a few operations on long runs, and not many on short ones.
    rest = xp.empty((size, size, matrices.shape[0]), dtype=matrices.dtype, device=matrices.device)
    rest[...] = xp.permute_dims(matrices, (1, 2, 0))
    total: FloatArray = xp.zeros_like(rest[0, 0, :])
    for j in range(size):
        side = sign if isinstance(sign, float) else sign[:, j]
        # What rounding has left on the wrong side of zero is zero.
        pivot = xp.clip(xp.clip(rest[j, j, :], 0.0, None) * side, -1.0, None)
        with np.errstate(divide="ignore"):
            total += xp.log1p(pivot)
        if j + 1 == size:
            break
        column = rest[j + 1 :, j, :]
        scaled = side * column / xp.where(pivot > -1.0, 1.0 + pivot, 1.0)[None, :]
        rest[j + 1 :, j + 1 :, :] -= column[:, None, :] * scaled[None, :, :]
    return total


def derivatives_of(loss: Any, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A loss's derivatives where the predictors lie; on the host for a loss that knows NumPy only."""
    if is_foreign(eta) and not loss.in_any_namespace:
        eta, y, put = on_host(eta), on_host(y), Space.of(eta).put
        first, second = map(put, loss.derivatives(eta, y))
        return first, second
    return loss.derivatives(eta, y)  # type: ignore[no-any-return]


class Lengths(NamedTuple):
    """The lengths of rows of so many columns."""

    squares: FloatArray
    columns: int

    @classmethod
    def of(cls, matrix: FloatArray) -> "Lengths":
        """Those of the rows of a matrix."""
        return cls(np.vecdot(matrix, matrix), matrix.shape[1])


@dataclass(frozen=True, eq=False)
class Levels:
    r"""Rows by their length, and how many times as steep as for the longest rows the loss of each may be.

    Level :math:`k` has the rows :math:`x` with :math:`2^{k/64}\|x\| \le R`, and :math:`2^{k/64}` times the
    cap of the rows of length :math:`R`: no gradient is longer than theirs. Levels are finitely many, and
    their factors are doubles, so that the loss of a row is a formula without rounding, whoever computes it.
    """

    reach: float
    """The length :math:`R`; longer rows count as this long."""
    factors: FloatArray
    """:math:`2^{k/64}` for each level, from 1."""

    @classmethod
    @cache
    def up_to(cls, reach: float, most: float) -> "Levels":
        """All levels up to the first whose factor is at least ``most``."""
        factors = [1.0]
        with localcontext(Context(prec=40)):  # rounded from decimals, which every machine has alike
            while factors[-1] < most:
                factors.append(float(Decimal(2) ** (Decimal(len(factors)) / _STEPS)))
        return cls(reach, np.array(factors))

    @property
    def limits(self) -> FloatArray:
        """The square of the largest length of a row on each level, the first left out, which has no limit."""
        return np.asarray((self.reach / self.factors[1:]) ** 2)

    def of(self, rows: Any) -> Any:
        """The level of each of some rows, which say their ``squares`` and ``columns`` as :class:`Lengths`."""
        squares = rows.squares
        rising = Space.of(squares).put(self.limits[::-1].copy())
        below = namespace_of(squares).searchsorted(rising, squares * self.margin(rows.columns))
        return rising.shape[0] - below

    @staticmethod
    def margin(columns: int) -> float:
        """What squares are multiplied with, so that no row is longer than its level allows."""
        return _MARGIN + columns * _PER_COLUMN


def take(table: FloatArray, level: Any) -> Any:
    """The entry of a table that belongs to the level of each row, where the rows lie."""
    xp = namespace_of(level)
    return table[level] if xp is np else xp.take(Space.of(level).put(table), level)
