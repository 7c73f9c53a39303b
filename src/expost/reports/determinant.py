"""Bounds on the determinant term, which is a record's leverage."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.special import ndtri

from expost._common.typing import FloatArray
from expost.fitting.release import Release
from expost.reports.base import Interval, Scope, Shares, form_quantile, goe_quantile
from expost.reports.drift import NO_DRIFT, Drift
from expost.reports.records import Records, ScalarRecords

# Weights to try between the noisy Hessian (1) and the lower bound that needs no data (0): any of them is
# valid, so a grid loses a little sharpness and no soundness.
_WEIGHTS = np.array(
    [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.997, 0.999, 0.9999, 1.0]
)
# Below this share of the largest eigenvalue, positive definiteness is a matter of rounding.
_DEFINITE = 1e-12


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
        reciprocals: FloatArray = 1.0 / mixed
        return reciprocals

    def squares(self, rows: FloatArray) -> FloatArray:
        """The squared coordinates of each row in the basis; pencils with one basis share them."""
        coordinates: FloatArray = rows @ self.basis
        return np.multiply(coordinates, coordinates, out=coordinates)

    def forms(self, rows: FloatArray) -> FloatArray:
        """The quadratic form of each inverse matrix at each row, rows by matrices."""
        return self.squares(rows) @ self.reciprocals


@dataclass(frozen=True)
class Determinant:
    r"""Bounds on :math:`t_1` that hold for the records in scope with probability one minus the shares.

    Let :math:`M_w = w(\hat H - \tau\sigma_3 I) + (1 - w)B` with the public
    :math:`B = \lambda I + \nabla^2 r`, and :math:`\mu_w = x^\top M_w^{-1}x` where that is positive definite.
    Except with the probability ``hessian_below``, for every :math:`w` in [0, 1] at once

    .. math:: 0 \le t_1 \le \min_w \log\frac{1 + (1-w)\kappa\mu_w}{1 - w\kappa\mu_w}\ \text{(member)}, \qquad
              0 \ge t_1 \ge -\min_w \log(1 + \kappa\mu_w)\ \text{(outsider)}.

    For all records :math:`\tau` is the quantile of the GOE's largest eigenvalue, so that
    :math:`M_w \preceq H`. For a record that was fixed before the Hessian's noise was drawn
    :math:`\sqrt2\,\Phi^{-1}(1 - \rho)` is enough: what counts is the noise along :math:`H^{-1}x`
    (docs/mathematics.md, section 7). The other ends use :math:`H \preceq \hat H + \tau\sigma_3 I` with the
    GOE's quantile in every scope, for there the direction that counts depends on the noise.

    At :math:`w = 0` this is :math:`\log(1 + \kappa\|x\|^2/\lambda)`, which needs no statistics, holds for
    every :math:`\lambda > 0` and is smaller than the :math:`-\log(1 - \kappa\|x\|^2/\lambda)` of [RW21]_. At
    :math:`w = \lambda/(\lambda + \tau\sigma_3)` it contains that paper's estimator, without its condition on
    :math:`\lambda`.

    References
    ----------
    .. [RW21] R. Redberg and Y.-X. Wang. Privately publishable per-instance privacy. NeurIPS 2021.
    """

    release: Release
    shares: Shares
    scope: Scope
    drift: Drift = NO_DRIFT

    def bound(self, records: Records, *, member: bool) -> Interval:
        """The interval of each record."""
        if self.release.hessian is None and self.release.regularizer is None:
            largest = records.log_determinant(self.release.plan.l2)
            nothing = np.zeros_like(largest)
            return Interval(nothing, largest) if member else Interval(-largest, nothing)
        assert isinstance(records, ScalarRecords)
        kappa = records.curvature[:, None]
        # (1 + (1-w)a)/(1 - wa) is one more than a/(1 - wa), and 1 + a one more than a: with that, small
        # terms keep their digits.
        public, adaptive = self.public, self.adaptive
        squares = public.squares(records.rows)
        excess = _smallest(kappa * (squares @ public.reciprocals), public.weights if member else 0.0)
        if self.release.regularizer is not None and self.release.hessian is not None:
            squares = np.square(records.rows @ self._spectrum[1])
        if adaptive is not None:
            other = _smallest(kappa * (squares @ adaptive.reciprocals), 1.0 if member else 0.0)
            excess = np.minimum(excess, other)
        largest = np.log1p(excess)
        smallest = np.zeros_like(largest)
        if self.upper is not None:
            leverage = (kappa * (squares @ self.upper.reciprocals))[:, 0]
            smallest = -np.log1p(-np.where(leverage < 1.0, leverage, 0.0)) if member else np.log1p(leverage)
            smallest = np.minimum(smallest, largest)  # off the good event the ends can cross
        return Interval(smallest, largest) if member else Interval(-largest, -smallest)

    @cached_property
    def _floor(self) -> FloatArray:
        """The public lower bound of the Hessian: the regularisers' curvature."""
        plan, theta = self.release.plan, self.release.coefficients
        floor = plan.l2 * np.eye(len(theta))
        if self.release.regularizer is not None:
            floor += self.release.regularizer.hessian(theta)
        return floor

    @cached_property
    def _margin(self) -> float:
        """How far noise and rounding can have raised the Hessian where an upper end depends on it."""
        dimension = len(self.release.coefficients)
        return self._moved(form_quantile(dimension, self.shares.hessian_below, self.scope))

    def _moved(self, quantile: float) -> float:
        plan = self.release.plan
        assert plan.sigma_hessian is not None
        return (quantile + plan.rounding.error("hessian", plan.sigma_hessian)) * plan.sigma_hessian

    @cached_property
    def _spectrum(self) -> tuple[FloatArray, FloatArray]:
        assert self.release.hessian is not None
        values, vectors = eigh(self.release.hessian)
        return values, vectors

    def _lowered(self, values: FloatArray) -> FloatArray:
        """Lower bounds of the Hessian's eigenvalues at the printed coefficients."""
        lowered = values - self._margin
        return lowered - self.drift.curvature * np.abs(lowered)

    @cached_property
    def public(self) -> Pencil:
        """Mixtures of the noisy Hessian's lower bound with the regularisers' curvature."""
        if self.release.hessian is not None and self.release.regularizer is None:
            values, vectors = self._spectrum
            return _mixtures(vectors, self._lowered(values), self.release.plan.l2, self._margin)
        # Whitened by the floor, the mixtures are diagonal in one basis again.
        identity = np.eye(len(self._floor))
        whiten = solve_triangular(cholesky(self._floor, lower=True), identity, lower=True)
        if self.release.hessian is None:
            return Pencil.single(whiten.T, np.ones(len(identity)))
        values, vectors = eigh(whiten @ (self.release.hessian - self._margin * identity) @ whiten.T)
        return _mixtures(whiten.T @ vectors, values - self.drift.curvature * np.abs(values), 1.0, 0.0)

    @cached_property
    def adaptive(self) -> Pencil | None:
        """Mixtures with the bound that the noisy smallest eigenvalue gives; no record may be added to it."""
        plan = self.release.plan
        if self.release.eigenvalue is None or plan.sigma_eigenvalue is None:
            return None
        quantile = float(ndtri(self.shares.eigenvalue))
        error = plan.rounding.error("eigenvalue", plan.sigma_eigenvalue)
        floor = self.release.eigenvalue + (quantile - error) * plan.sigma_eigenvalue
        values, vectors = self._spectrum
        floor *= 1.0 - self.drift.curvature
        return _mixtures(vectors, self._lowered(values), max(plan.l2, floor), self._margin)

    @cached_property
    def upper(self) -> Pencil | None:
        """The upper bound of the Hessian, where it is positive definite."""
        if self.release.hessian is None:
            return None
        values, vectors = self._spectrum
        margin = self._moved(goe_quantile(len(values), self.shares.hessian_above))
        raised = (values + margin) + self.drift.curvature * np.abs(values + margin)
        if raised[0] <= _DEFINITE * raised[-1]:
            return None
        return Pencil.single(vectors, raised)


def _mixtures(basis: FloatArray, lower: FloatArray, floor: float, margin: float) -> Pencil:
    """The mixtures of two diagonal lower bounds that are positive definite."""
    # Beyond the largest weight the mixture is indefinite.
    largest = floor / (floor - lower[0]) if lower[0] < 0.0 else 1.0
    # The last weight makes the mixture proportional to the noisy Hessian itself.
    weights = np.append(largest * _WEIGHTS, floor / (floor + margin))
    values = np.outer(lower, weights) + floor * (1.0 - weights)
    definite = values.min(axis=0) > _DEFINITE * values.max(axis=0)
    return Pencil(basis, weights[definite], lower, floor)


def _smallest(leverages: FloatArray, weights: FloatArray | float) -> FloatArray:
    """The smallest ``a / (1 - wa)`` along each row, over the weights with ``wa < 1``."""
    below = 1.0 - weights * leverages
    with np.errstate(divide="ignore", invalid="ignore"):
        excess: FloatArray = np.min(np.where(below > 0.0, leverages / below, np.inf), axis=1)
    return excess
