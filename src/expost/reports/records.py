"""What a report reads of a record at the released coefficients."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from expost._common.namespaces import beside, namespace_of
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
    _coordinates: list[tuple[FloatArray, FloatArray]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )
    """Each basis that was asked for, and the coordinates in it."""

    @property
    @abstractmethod
    def released_norm(self) -> FloatArray:
        """The Frobenius norm of each record's part in the Hessian that is released."""

    @abstractmethod
    def log_determinant(self, l2: float) -> FloatArray:
        r"""The largest determinant term that needs no data, :math:`\log\det(I + \nabla^2\ell/\lambda)`."""

    def coordinates(self, basis: FloatArray) -> FloatArray:
        """What the forms of a record take from the basis of a pencil.

        Both ends of an interval, both sides of membership and all pencils with one basis share it.
        """
        for known, found in self._coordinates:
            if known is basis:
                return found
        made = self.rotated(basis)
        self._coordinates.append((basis, made))
        return made

    @abstractmethod
    def rotated(self, basis: FloatArray) -> FloatArray:
        """Compute :meth:`coordinates`."""

    @abstractmethod
    def above(self, pencil: Pencil, weights: FloatArray | float) -> FloatArray:
        r"""The smallest :math:`\log\det(I + C(I - wC)^{-1})`, :math:`C` a record's form of each mixture.

        Of lower bounds of the Hessian, hence an upper bound of the determinant term's size. A weight
        :math:`w` says how much of the record is in the mixture, and is zero for records that are in none.
        """

    @abstractmethod
    def below(self, pencil: Pencil, *, member: bool) -> FloatArray:
        r""":math:`-\log\det(I - C)` for members, or zero where there is none; :math:`\log\det(I + C)` else.

        Of an upper bound of the Hessian, hence a lower bound of the determinant term's size.
        """


@dataclass(frozen=True)
class ScalarRecords(Records):
    """Records of a loss of one linear predictor."""

    curvature: FloatArray
    """The second derivative of the weighted loss."""
    _known: list[tuple[Pencil, FloatArray]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )
    """Each pencil that was asked for, and the leverages under it."""

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
        xp = namespace_of(rows)
        norm = np.sqrt(np.vecdot(rows, rows)) if xp is np else xp.linalg.vector_norm(rows, axis=1)
        steepness = xp.abs(slope)
        return cls(
            rows=rows,
            norm=norm,
            norm1=xp.sum(xp.abs(rows), axis=1) if every else None,
            steepness=steepness,
            gradient_norm=steepness * norm,
            along=None if gradient is None else slope * (rows @ beside(gradient, rows)),
            curvature=curvature,
        )

    @property
    def released_norm(self) -> FloatArray:
        """The only eigenvalue of the record's Hessian."""
        return self.curvature * self.norm**2

    def log_determinant(self, l2: float) -> FloatArray:
        r""":math:`\log(1 + \kappa\|x\|^2/\lambda)`."""
        logarithm: FloatArray = namespace_of(self.norm).log1p(self.released_norm / l2)
        return logarithm

    def rotated(self, basis: FloatArray) -> FloatArray:
        """The squares of the row's coordinates."""
        return squares(self.rows, basis)

    def above(self, pencil: Pencil, weights: FloatArray | float) -> FloatArray:
        r""":math:`\log(1 + \kappa\mu/(1 - w\kappa\mu))`."""
        # (1 + (1-w)a)/(1 - wa) is one more than a/(1 - wa), and 1 + a one more than a: with that, small
        # terms keep their digits.
        ratio = smallest_ratio(self._leverages(pencil), by_mixtures(weights))
        largest: FloatArray = namespace_of(ratio).log1p(ratio)
        return largest

    def below(self, pencil: Pencil, *, member: bool) -> FloatArray:
        r""":math:`-\log(1 - \kappa\mu)` or :math:`\log(1 + \kappa\mu)`."""
        leverage = self._leverages(pencil)[0, :]
        xp = namespace_of(leverage)
        smallest: FloatArray = xp.log1p(leverage)
        if member:
            smallest = -xp.log1p(-xp.where(leverage < 1.0, leverage, 0.0))
        return smallest

    def _leverages(self, pencil: Pencil) -> FloatArray:
        """Mixtures by records: reductions over the mixtures then run along the records."""
        for known, found in self._known:
            if known is pencil:
                return found
        made = pencil.forms(self.coordinates(pencil.basis))
        made *= self.curvature
        self._known.append((pencil, made))
        return made


def by_mixtures(weights: FloatArray | float) -> FloatArray:
    """Weights as one column, a row for each mixture, or one for all."""
    return np.atleast_1d(np.asarray(weights, dtype=float))[:, None]


def smallest_ratio(forms: FloatArray, weights: FloatArray) -> FloatArray:
    r"""The smallest :math:`f/(1 - wf)` over the mixtures :math:`f`, which come first, where :math:`wf < 1`.

    As :math:`1/\max(1/f - w)`, which takes one division for each.
    """
    xp = namespace_of(forms)
    smallest: FloatArray
    if not np.any(weights):
        smallest = xp.min(forms, axis=0)
        return smallest
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        left = 1.0 / forms
        left -= beside(weights, forms)
        best = xp.max(left, axis=0)
        smallest = xp.where(best > 0.0, 1.0 / best, math.inf)
    return smallest
