"""What a report reads of a record at the released coefficients."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np

from expost._common.typing import FloatArray
from expost.reports.pencil import Pencil, squares


@dataclass(frozen=True)
class Records(ABC):
    """What the terms of a report ask of a block of records."""

    rows: FloatArray
    norm: FloatArray
    """The Euclidean norm of each encoded row."""
    norm1: FloatArray | None
    """The sum of absolute entries, where every record is covered with one linear predictor."""
    steepness: FloatArray
    """What the noise along a row of norm one is multiplied with (:mod:`expost.reports.laws`)."""
    gradient_norm: FloatArray
    """The Euclidean norm of each record's gradient."""
    along: FloatArray | None
    """The inner product of each gradient with the noisy one, where that is released."""

    @property
    @abstractmethod
    def released_norm(self) -> FloatArray:
        """The Frobenius norm of each record's part in the Hessian that is released."""

    @abstractmethod
    def log_determinant(self, l2: float) -> FloatArray:
        r"""The largest determinant term that needs no data, :math:`\log\det(I + \nabla^2\ell/\lambda)`."""

    @abstractmethod
    def coordinates(self, basis: FloatArray) -> FloatArray:
        """What the forms of a record take from the basis of a pencil; pencils with one basis share it."""

    @abstractmethod
    def above(self, coordinates: FloatArray, pencil: Pencil, weights: FloatArray | float) -> FloatArray:
        r"""The smallest :math:`\log\det(I + C(I - wC)^{-1})`, :math:`C` a record's form of each mixture.

        Of lower bounds of the Hessian, hence an upper bound of the determinant term's size. A weight
        :math:`w` says how much of the record is in the mixture, and is zero for records that are in none.
        """

    @abstractmethod
    def below(self, coordinates: FloatArray, pencil: Pencil, *, member: bool) -> FloatArray:
        r""":math:`-\log\det(I - C)` for members, or zero where there is none; :math:`\log\det(I + C)` else.

        Of an upper bound of the Hessian, hence a lower bound of the determinant term's size.
        """


@dataclass(frozen=True)
class ScalarRecords(Records):
    """Records of a loss of one linear predictor."""

    curvature: FloatArray
    """The second derivative of the weighted loss."""

    @classmethod
    def of(
        cls,
        rows: FloatArray,
        slope: FloatArray,
        curvature: FloatArray,
        *,
        gradient: FloatArray | None = None,
        every: bool = False,
    ) -> Self:
        """From the derivatives of the weighted loss, and the noisy gradient where it is released."""
        norm, steepness = np.sqrt(np.vecdot(rows, rows)), np.abs(slope)
        return cls(
            rows=rows,
            norm=norm,
            norm1=np.sum(np.abs(rows), axis=1) if every else None,
            steepness=steepness,
            gradient_norm=steepness * norm,
            along=None if gradient is None else slope * (rows @ gradient),
            curvature=curvature,
        )

    @property
    def released_norm(self) -> FloatArray:
        """The only eigenvalue of the record's Hessian."""
        return self.curvature * self.norm**2

    def log_determinant(self, l2: float) -> FloatArray:
        r""":math:`\log(1 + \kappa\|x\|^2/\lambda)`."""
        logarithm: FloatArray = np.log1p(self.released_norm / l2)
        return logarithm

    def coordinates(self, basis: FloatArray) -> FloatArray:
        """The squares of the row's coordinates."""
        return squares(self.rows, basis)

    def above(self, coordinates: FloatArray, pencil: Pencil, weights: FloatArray | float) -> FloatArray:
        r""":math:`\log(1 + \kappa\mu/(1 - w\kappa\mu))`."""
        # (1 + (1-w)a)/(1 - wa) is one more than a/(1 - wa), and 1 + a one more than a: with that, small
        # terms keep their digits.
        leverages = self.curvature[:, None] * (coordinates @ pencil.reciprocals)
        largest: FloatArray = np.log1p(smallest_ratio(leverages, 1.0 - weights * leverages))
        return largest

    def below(self, coordinates: FloatArray, pencil: Pencil, *, member: bool) -> FloatArray:
        r""":math:`-\log(1 - \kappa\mu)` or :math:`\log(1 + \kappa\mu)`."""
        leverage = (self.curvature[:, None] * (coordinates @ pencil.reciprocals))[:, 0]
        smallest: FloatArray = np.log1p(leverage)
        if member:
            smallest = -np.log1p(-np.where(leverage < 1.0, leverage, 0.0))
        return smallest


def smallest_ratio(forms: FloatArray, left: FloatArray) -> FloatArray:
    """The smallest ``form / left`` along each row, where something is left."""
    with np.errstate(divide="ignore", invalid="ignore"):
        smallest: FloatArray = np.min(np.where(left > 0.0, forms / left, np.inf), axis=1)
    return smallest
