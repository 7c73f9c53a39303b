"""Intervals for the two terms of a loss that a reader does not know: the gradient's and the determinant's."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.special import ndtri

from expost._common.namespaces import namespace_of
from expost._common.typing import FloatArray
from expost.fitting.release import Release
from expost.losses import RecordLoss
from expost.privacy.plan import Plan
from expost.reports.base import Interval, Scope, Shares, form_quantile, goe_quantile
from expost.reports.laws import (
    NO_DRIFT,
    NORMAL,
    SHARE,
    Across,
    Chi,
    Drift,
    NoiseLaw,
    chi_quantile,
    conditional_quantile,
    every_quantile,
    noise_law,
)
from expost.reports.records import DEFINITE, FEW_WEIGHTS, WEIGHTS, Pencil, ReadRecords, mixtures


class Factors(NamedTuple):
    """How far the noise reaches per unit of a row's Euclidean norm and, where given, of its entries' sum.

    With corners also per unit of the gradient, and whatever it is, because it is the gradient at the exact
    minimiser that counts.
    """

    norm: float
    norm1: float | None
    slope: float = 0.0
    rest: float = 0.0

    def reach(self, records: ReadRecords) -> Any:
        """How far noise along each row reaches (docs/mathematics.md, sections 4 and 11)."""
        straight = records.norm * self.norm
        if self.norm1 is None:
            return straight
        assert records.norm1 is not None
        return namespace_of(straight).minimum(straight, records.norm1 * self.norm1)


def reach_factors(
    scope: Scope,
    failure: float,
    dimension: int,
    drift: Drift,
    loss: RecordLoss,
    unit: float = 1.0,
    law: NoiseLaw | None = None,
) -> Factors:
    """How far noise reaches, public; ``unit`` is the objective's noise in units of the noise bounded.

    ``law`` is that of people with several rows.
    """
    # A small share of the failure probability pays for the output's noise, where there is any.
    share = SHARE * failure if drift.tilt > 0.0 else 0.0
    moved = replace(drift, tilt=unit * drift.tilt)
    left = failure - share
    if not scope.every:
        law = law or noise_law(loss)
        rest = law.quantile(scope.each(share)) if share else 0.0
        return Factors(moved.widened(law.quantile(scope.each(left)), rest), None)
    rest = chi_quantile(dimension, share) if share else 0.0
    if law is not None:
        return Factors(moved.widened(chi_quantile(dimension, left), rest), None)
    if not loss.along_row:
        return Factors(moved.widened(every_quantile(dimension, loss.outputs, left), rest), None)
    # (1 + p^(1/d))/2 is one minus this; computed so that it keeps its digits.
    tail = -0.5 * math.expm1(math.log1p(-0.5 * left) / dimension)
    # The Euclidean norm of a row is at most the sum of its entries.
    return Factors(
        moved.widened(chi_quantile(dimension, 0.5 * left), rest), moved.widened(float(-ndtri(tail)), rest)
    )


def noise_factors(
    release: Release,
    scope: Scope,
    failure: float,
    drift: Drift,
    law: NoiseLaw | None = None,
    weight: int = 1,
    parts: float = 1.0,
) -> Factors:
    r"""How far the noise of the objective reaches along records of this ``weight``; public.

    With corners :math:`\zeta a + \delta a' + r`, where :math:`a` is the record's steepness and :math:`a'` the
    length of its gradient, both in units of the noise, and :math:`r` is for what printing changes (section
    19). The noise is bounded by an exponential moment there; each of ``parts`` equal parts has that of all.
    """
    plan, dimension, corners = release.plan, len(release.coefficients), release.corners
    if corners is None:
        return reach_factors(scope, failure, dimension, drift, plan.loss, law=law)
    largest = largest_reach(plan, law, weight)
    known: NoiseLaw = Chi(dimension) if scope.every else law or NORMAL
    solver = plan.rounding.solver
    share = SHARE * failure if solver > 0.0 else 0.0
    reach = conditional_quantile(known, scope.each(failure - share), parts * largest / (1.0 - SHARE))
    slope, rest = drift.slope * _stretch(law), 0.0
    if share > 0.0:
        other: NoiseLaw = Chi(dimension) if scope.every else NORMAL
        rest = solver * conditional_quantile(other, scope.each(share), parts * solver / SHARE)
    rest += reach * slope + 0.5 * (slope**2 + solver**2)
    # Curvatures change too: no determinant is larger than that of the largest curvature.
    rest += 2.0 * drift.curvature * weight * plan.accounting.curvature / plan.l2
    return Factors(reach, None, slope, rest)


def weight_of(plan: Plan, rows: int, *, mixed: bool = False) -> int:
    """The weight of so many rows together at most, in units of the largest of the plan's unit.

    A person's rows weigh 1 together. Where some leave and others enter (``mixed``), both do.
    """
    return 1 + mixed if plan.unit == "person" else rows


def largest_reach(plan: Plan, law: NoiseLaw | None, weight: int) -> float:
    """The largest steepness of a record of this weight, in units of the objective's noise."""
    return _stretch(law) * weight * plan.accounting.slope / plan.sigma


def _stretch(law: NoiseLaw | None) -> float:
    return law.stretch if isinstance(law, Across) else 1.0


def gradient_factors(
    scope: Scope, failure: float, dimension: int, drift: Drift, plan: Plan, law: NoiseLaw | None = None
) -> Factors:
    """How far the error of a noisy gradient reaches, in units of its noise."""
    assert plan.sigma_gradient is not None
    unit = math.hypot(plan.sigma, plan.sigma_gradient) / plan.sigma_gradient
    return reach_factors(scope, failure, dimension, drift, plan.loss, unit, law)


def inner_product(
    release: Release,
    records: ReadRecords,
    shares: Shares,
    scope: Scope,
    drift: Drift,
    *,
    member: bool,
    law: NoiseLaw | None = None,
    weight: int = 1,
    parts: float = 1.0,
) -> Interval:
    r"""An interval for :math:`t_3 = \mp\nabla J \cdot \nabla\ell/\sigma^2` (section 7, "Inner product").

    :math:`\pm m\,\mathrm{reach}/\sigma` with the steepness :math:`m`, intersected with the interval around
    the noisy gradient where that is released; each has its share of the confidence.
    """
    plan, dimension = release.plan, len(release.coefficients)
    steepness = records.steepness
    factors = noise_factors(release, scope, shares.tilt, drift, law, weight, parts)
    width = steepness * factors.reach(records) / plan.sigma
    if release.corners is not None:
        width = width + (factors.slope * records.gradient_norm / plan.sigma + factors.rest)
    if plan.sigma_gradient is None:
        return Interval(-width, width)
    assert records.along is not None
    together = math.hypot(plan.sigma, plan.sigma_gradient)
    sign = -1.0 if member else 1.0
    centre = sign * records.along / together**2  # s/σ² = 1/(σ² + σ₂²)
    factors = gradient_factors(scope, shares.gradient, dimension, drift, plan, law)
    narrow = steepness * factors.reach(records)
    narrow *= plan.sigma_gradient / (plan.sigma * together)
    xp = namespace_of(width)
    low, high = xp.maximum(centre - narrow, -width), xp.minimum(centre + narrow, width)
    # Only off the good event can the two intervals miss each other; then say the wider thing.
    apart = low > high
    return Interval(
        xp.where(apart, xp.minimum(centre - narrow, -width), low),
        xp.where(apart, xp.maximum(centre + narrow, width), high),
    )


@dataclass(frozen=True)
class Determinant:
    r"""Bounds on :math:`t_1` that hold for the records in scope with probability one minus the shares.

    With :math:`M_w = w(\hat H - \tau\sigma_3 I) + (1 - w)\lambda I` and
    :math:`\mu_w = x^\top M_w^{-1}x`, for every :math:`w` in [0, 1] at once

    .. math:: 0 \le t_1 \le \min_w \log\frac{1 + (1-w)\kappa\mu_w}{1 - w\kappa\mu_w}\ \text{(member)}, \qquad
              0 \ge t_1 \ge -\min_w \log(1 + \kappa\mu_w)\ \text{(outsider)};

    docs/mathematics.md, theorem 7.1, and theorem 11.2 for several linear predictors; without a Hessian, lemma
    3.1. Where some rows of a person leave and others enter, both ends are those without data (section 15).
    """

    release: Release
    shares: Shares
    scope: Scope
    drift: Drift = NO_DRIFT
    law: Across | None = None
    """That of people with several rows, whose Hessians reach as many directions."""

    def bound(self, records: ReadRecords, *, member: bool) -> Interval:
        """The interval of each record."""
        xp = namespace_of(records.norm)
        if records.at.signs is not None:
            enter, leave = records.at.sided_determinants(self.release.plan.l2)
            return Interval(-enter, leave)
        if self.release.hessian is None:
            largest = records.at.log_determinant(self.release.plan.l2)
            nothing = xp.zeros_like(largest)
            return Interval(nothing, largest) if member else Interval(-largest, nothing)
        largest = records.above(self.public, self.public.weights if member else 0.0)
        if self.adaptive is not None:
            other = records.above(self.adaptive, 1.0 if member else 0.0)
            largest = xp.minimum(largest, other)
        smallest = xp.zeros_like(largest)
        if self.upper is not None:
            smallest = records.below(self.upper, member=member)
            smallest = xp.minimum(smallest, largest)  # off the good event the ends can cross
        return Interval(smallest, largest) if member else Interval(-largest, -smallest)

    @property
    def _matrices(self) -> bool:
        """Whether a record has a small matrix for each mixture."""
        rows = self.release.plan.loss.along_row or self.release.plan.reduced
        return self.law is not None or not rows

    @cached_property
    def margin(self) -> float:
        """How far noise and rounding can have raised the Hessian where an upper end depends on it."""
        assert self.release.hessian is not None
        outputs = self.release.plan.loss.outputs if self._matrices else 1
        dimension = len(self.release.hessian)
        if self.law is not None:
            outputs = self.law.freedom
        return self._moved(form_quantile(dimension, self.shares.hessian_below, self.scope, outputs))

    def _moved(self, quantile: float) -> float:
        plan = self.release.plan
        assert plan.sigma_hessian is not None
        return (quantile + plan.rounding.error("hessian", plan.sigma_hessian)) * plan.sigma_hessian

    @cached_property
    def spectrum(self) -> tuple[FloatArray, FloatArray]:
        """The noisy Hessian's eigenvalues, in ascending order, and its eigenvectors."""
        assert self.release.hessian is not None
        values, vectors = eigh(self.release.hessian)
        return values, vectors

    @cached_property
    def _free_spectrum(self) -> tuple[FloatArray, FloatArray]:
        """Of the free coefficients' block, whose determinant is the smallest that there may have been."""
        release = self.release
        assert release.hessian is not None
        assert release.corners is not None
        free = np.flatnonzero(~release.corners.active(release.coefficients))
        values, vectors = eigh(release.hessian[np.ix_(free, free)])
        basis = np.zeros((len(release.hessian), len(free)))
        basis[free] = vectors
        return values, basis

    def _lowered(self, values: FloatArray) -> FloatArray:
        """Lower bounds of the Hessian's eigenvalues at the printed coefficients."""
        lowered = values - self.margin
        return lowered - self.drift.curvature * np.abs(lowered)

    @cached_property
    def public(self) -> Pencil:
        """Mixtures of the noisy Hessian's lower bound with the penalty's curvature."""
        values, vectors = self.spectrum
        return self._mixed(vectors, self._lowered(values), self.release.plan.l2, self.margin)

    @cached_property
    def adaptive(self) -> Pencil | None:
        """Mixtures with the bound that the noisy smallest eigenvalue gives; no record may be added to it."""
        plan = self.release.plan
        if self.release.eigenvalue is None or plan.sigma_eigenvalue is None:
            return None
        quantile = float(ndtri(self.shares.eigenvalue))
        error = plan.rounding.error("eigenvalue", plan.sigma_eigenvalue)
        floor = self.release.eigenvalue + (quantile - error) * plan.sigma_eigenvalue
        values, vectors = self.spectrum
        floor *= 1.0 - self.drift.curvature
        return self._mixed(vectors, self._lowered(values), max(plan.l2, floor), self.margin)

    @cached_property
    def upper_margin(self) -> float:
        """How far noise and rounding can have lowered the Hessian in any direction."""
        assert self.release.hessian is not None
        return self._moved(goe_quantile(len(self.release.hessian), self.shares.hessian_above))

    @cached_property
    def upper(self) -> Pencil | None:
        """The upper bound of the Hessian, where it is positive definite."""
        if self.release.hessian is None or self.release.plan.reduced:
            return None
        values, vectors = self.spectrum if self.release.corners is None else self._free_spectrum
        if not len(values):
            return None
        margin = self.upper_margin
        raised = (values + margin) + self.drift.curvature * np.abs(values + margin)
        if raised[0] <= DEFINITE * raised[-1]:
            return None
        return Pencil.single(vectors, raised)

    def _mixed(self, basis: FloatArray, lower: FloatArray, floor: float, margin: float) -> Pencil:
        return mixtures(basis, lower, floor, margin, FEW_WEIGHTS if self._matrices else WEIGHTS)
