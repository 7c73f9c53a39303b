"""What a report reads of a record at the released coefficients, and bounds of the Hessian it is read in."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from expost._common.namespaces import namespace_of, placed_like
from expost._common.typing import FloatArray
from expost.data.blocks import Block
from expost.fitting.contributions import Contributions
from expost.fitting.release import Release
from expost.losses import Records
from expost.losses.persons import PersonLoss
from expost.losses.records import log_determinants
from expost.reports.base import Scope

# Any weight between the noisy Hessian (1) and the lower bound that needs no data (0) is valid, so a grid
# loses a little sharpness and no soundness.
WEIGHTS = np.array(
    [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.997, 0.999, 0.9999, 1.0]
)
# Where a record has a small matrix for each.
FEW_WEIGHTS = np.array([0.0, 0.25, 0.5, 0.75, 0.9, 0.98, 1.0])
# Below this share of the largest eigenvalue, positive definiteness is a matter of rounding.
DEFINITE = 1e-12


@dataclass(frozen=True, eq=False)
class Pencil:
    """Mixtures of two matrices, diagonal in one basis: ``values`` with the weights and ``floor``."""

    basis: FloatArray
    weights: FloatArray
    values: FloatArray
    floor: float

    @classmethod
    def single(cls, basis: FloatArray, values: FloatArray) -> "Pencil":
        """One matrix, by its eigenvalues in the basis."""
        return cls(basis, np.ones(1), values, 0.0)

    @cached_property
    def reciprocals(self) -> FloatArray:
        """The reciprocals of each mixture's eigenvalues, eigenvalues by mixtures."""
        mixed = np.outer(self.values, self.weights) + self.floor * (1.0 - self.weights)
        return np.asarray(1.0 / mixed)

    def forms(self, coordinates: FloatArray) -> FloatArray:
        """The quadratic form of each inverse matrix at rows of squared coordinates, matrices by rows."""
        return placed_like(self.reciprocals.T, coordinates) @ coordinates.T


def mixtures(
    basis: FloatArray, lower: FloatArray, floor: float, margin: float, weights: FloatArray
) -> Pencil:
    """The mixtures of two diagonal lower bounds that are positive definite."""
    # Beyond the largest weight the mixture is indefinite.
    largest = floor / (floor - lower[0]) if lower[0] < 0.0 else 1.0
    # The last weight makes the mixture proportional to the noisy Hessian itself.
    tried = np.append(largest * weights, floor / (floor + margin))
    values = np.outer(lower, tried) + floor * (1.0 - tried)
    definite = values.min(axis=0) > DEFINITE * values.max(axis=0)
    return Pencil(basis, tried[definite], lower, floor)


@dataclass(frozen=True)
class ReadRecords:
    """What the terms of a report ask of a block of records, ``at`` the released coefficients."""

    at: Any
    norm: FloatArray
    norm1: FloatArray | None  # where every record is covered with one linear predictor
    steepness: FloatArray  # what the noise along a row of norm 1 is multiplied with
    gradient_norm: FloatArray
    along: FloatArray | None  # the inner product of each gradient with the noisy one, if that is released
    added: Any = 1.0  # at most the length of what the record adds to the numbers that recalibrate the model
    # Each basis or pencil that was asked for, and what was found of it.
    _known: list[tuple[Any, FloatArray]] = field(default_factory=list, init=False, repr=False, compare=False)

    @classmethod
    def of(
        cls, at: Records, *, gradient: FloatArray | None = None, every: bool = False, added: Any = 1.0
    ) -> Self:
        """From the records, and the noisy gradient where it is released."""
        return cls(
            at=at,
            norm=at.norm,
            norm1=at.norm1 if every else None,
            steepness=at.slope if every else at.steepness,
            gradient_norm=at.slope * at.norm,
            along=None if gradient is None else at.along(placed_like(gradient, at.norm)),
            added=added,
        )

    @property
    def released_norm(self) -> Any:
        """The Frobenius norm of each record's part in the Hessian that is released."""
        return self.at.hessian_norm

    def coordinates(self, basis: FloatArray) -> FloatArray:
        """What the forms of a record take from the basis of a pencil, made once for all that share it."""
        return self._once(basis, self.rotated)

    def rotated(self, basis: FloatArray) -> Any:
        """Compute :meth:`coordinates`: those of the columns of each factor."""
        return self.at.coordinates(placed_like(basis, self.norm))

    def above(self, pencil: Pencil, weights: FloatArray | float) -> FloatArray:
        r"""The smallest :math:`\log\det(I + (1-w)C) - \log\det(I - wC)`, :math:`C` the form of each mixture.

        Of lower bounds of the Hessian, hence an upper bound of the determinant term's size.
        """
        coordinates = self.coordinates(pencil.basis)
        xp = namespace_of(coordinates)
        largest: FloatArray = xp.zeros_like(self.norm) + math.inf
        shares = np.broadcast_to(weights, pencil.reciprocals.shape[1])
        for share, scale in zip(shares.tolist(), pencil.reciprocals.T, strict=True):
            forms = _forms(coordinates, scale)
            size = log_determinants((1.0 - share) * forms, 1.0)
            if share > 0.0:
                size -= log_determinants(share * forms, -1.0)
            largest = xp.minimum(largest, size)
        return largest

    def below(self, pencil: Pencil, *, member: bool) -> Any:
        """−log det(I − C) for members, or zero where there is none; log det(I + C) for others."""
        forms = _forms(self.coordinates(pencil.basis), pencil.reciprocals[:, 0])
        if not member:
            return log_determinants(forms, 1.0)
        size, xp = -log_determinants(forms, -1.0), namespace_of(forms)
        return xp.where(xp.isfinite(size), size, 0.0)

    def _once(self, key: Any, make: Callable[[Any], FloatArray]) -> FloatArray:
        """What was made of an object, which is made once."""
        for known, found in self._known:
            if known is key:
                return found
        made = make(key)
        self._known.append((key, made))
        return made


class ScalarRecords(ReadRecords):
    """Records whose factor has one column: their forms are numbers, all mixtures in one product."""

    def rotated(self, basis: FloatArray) -> FloatArray:
        """The squares of the row's coordinates."""
        rows = self.at.rows.encoded()
        # Records along the second axis: BLAS is faster, and so is the product with reciprocals.
        coordinates: FloatArray = placed_like(basis.T, rows) @ rows.T
        coordinates *= coordinates
        return coordinates.T

    def above(self, pencil: Pencil, weights: FloatArray | float) -> Any:
        """log(1 + κμ/(1 − wκμ)), which keeps the digits of small terms."""
        ratio = smallest_ratio(self._once(pencil, self._leverages), by_mixtures(weights))
        return namespace_of(ratio).log1p(ratio)

    def below(self, pencil: Pencil, *, member: bool) -> Any:
        r""":math:`-\log(1 - \kappa\mu)` or :math:`\log(1 + \kappa\mu)`."""
        leverage = self._once(pencil, self._leverages)[0, :]
        xp = namespace_of(leverage)
        return -xp.log1p(-xp.where(leverage < 1.0, leverage, 0.0)) if member else xp.log1p(leverage)

    def _leverages(self, pencil: Pencil) -> FloatArray:
        """Mixtures by records: reductions over the mixtures then run along the records."""
        made = pencil.forms(self.coordinates(pencil.basis))
        made *= self.at.curvature
        return made


class ReducedRecords(ScalarRecords):
    """Records of the softmax loss with a reduced Hessian (docs/mathematics.md, section 11)."""

    @property
    def released_norm(self) -> Any:
        """The only eigenvalue of the record's part."""
        return self.at.reduced_weights * self.norm**2

    def above(self, pencil: Pencil, weights: FloatArray | float) -> Any:
        r""":math:`\log\det(I + A\mu/(1 - wP\mu))`."""
        forms = pencil.forms(self.coordinates(pencil.basis))
        xp = namespace_of(forms)
        scale = smallest_ratio(forms, placed_like(by_mixtures(weights), forms) * self.at.reduced_weights)
        known = xp.isfinite(scale)
        return xp.where(known, self.at.scaled_determinant(xp.where(known, scale, 0.0)), math.inf)

    def below(self, pencil: Pencil, *, member: bool) -> Any:
        """Zero: no upper bound of the whole Hessian is known."""
        return namespace_of(self.norm).zeros_like(self.norm)


class ReducedPeople(ReadRecords):
    """People of several rows with a reduced Hessian, of which only the smallest eigenvalue serves."""

    @property
    def released_norm(self) -> Any:
        """The Frobenius norm of the person's part."""
        return self.at.reduced_norm

    def above(self, pencil: Pencil, weights: FloatArray | float) -> Any:
        r""":math:`\log\det(I + FF^\top/\lambda)`; nothing is known where the Hessian has the record."""
        if np.ndim(weights) == 0 and weights == 1.0:
            return np.full(len(self.norm), math.inf)
        return self.at.log_determinant(pencil.floor)

    def below(self, pencil: Pencil, *, member: bool) -> Any:
        """Zero: no upper bound of the whole Hessian is known."""
        return np.zeros(len(self.norm))


def by_mixtures(weights: FloatArray | float) -> FloatArray:
    """Weights as one column, a row for each mixture, or one for all."""
    return np.atleast_1d(np.asarray(weights, dtype=float))[:, None]


def smallest_ratio(forms: FloatArray, weights: FloatArray) -> Any:
    """The smallest f/(1 − wf) over the mixtures f, which come first, where wf < 1: 1/max(1/f − w)."""
    xp = namespace_of(forms)
    if not bool(namespace_of(weights).any(weights != 0.0)):
        return xp.min(forms, axis=0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        left = 1.0 / forms
        left -= placed_like(weights, forms)
        best = xp.max(left, axis=0)
        return xp.where(best > 0.0, 1.0 / best, math.inf)


def _forms(coordinates: FloatArray, scale: FloatArray) -> Any:
    """The small matrices of one member of a pencil, positive semi-definite by construction."""
    half = coordinates * placed_like(np.sqrt(scale), coordinates)
    return half @ namespace_of(half).matrix_transpose(half)


def records_of(release: Release, block: Block, scope: Scope, each: int | None = None) -> ReadRecords:
    """What a release's report reads of a block of encoded rows, their labels and their weights.

    With ``each`` the rows are those of people, so many of each one after the other.
    """
    plan = release.plan
    loss = plan.loss if each is None else PersonLoss(plan.loss, each)
    at = loss.at(placed_like(release.coefficients, block.y), block)
    kind = ScalarRecords if loss.along_row else ReadRecords
    if plan.reduced and release.hessian is not None:
        kind = ReducedRecords if each is None else ReducedPeople
    return kind.of(at, gradient=release.gradient, every=scope.every, added=_added(release, block, each or 1))


def _added(release: Release, block: Block, each: int) -> Any:
    """At most the length of what each record adds: the sum of its rows' lengths, whoever comes or leaves."""
    if release.recalibration is None:
        return 1.0
    lengths = Contributions(release.coefficients, release.plan).lengths(block)
    return lengths if each == 1 else np.sum(lengths.reshape(-1, each), axis=1)
