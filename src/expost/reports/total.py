"""What the report itself cost a record, and what the whole publication cost it."""

import math
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp, ndtr

from expost._common.namespaces import namespace_of
from expost._common.typing import FloatArray
from expost.fitting.release import Release
from expost.privacy.plan import Plan, accounting_of
from expost.reports.base import Scope
from expost.reports.intervals import largest_reach
from expost.reports.laws import (
    NORMAL,
    Across,
    Chi,
    Drift,
    NoiseLaw,
    chi_quantile,
    conditional_quantile,
    every_quantile,
    noise_law,
    two_sided,
)
from expost.reports.records import ReadRecords

# A probability that no share of a failure notices, and what a normal variable exceeds less often than that.
_NEGLIGIBLE, BEYOND = 1e-15, 8.1


def statistics_shift(release: Release, records: ReadRecords, drift: Drift) -> Any:
    """How far each record moves the statistics (:meth:`NoiseScales.shift`), at the exact minimiser."""
    plan = release.plan
    rounding = replace(plan.rounding, solver=0.0)
    gradient = records.gradient_norm + drift.slope * plan.sigma
    curvature = records.released_norm * (1.0 + drift.curvature)
    return plan.scales.shift(gradient, curvature, rounding=rounding, added=records.added)


def report_cost(
    release: Release, records: ReadRecords, scope: Scope, failure: float, drift: Drift, more: float = 0.0
) -> Any:
    r"""The statistics' own ex-post loss, at most :math:`\Delta^2/2 + \Delta\,\Phi^{-1}(1 - \rho/2)`.

    ``more`` is what rows that are not known add to :math:`\Delta` at most.
    """
    if not release.plan.scales.releases_statistics:
        return namespace_of(records.norm).zeros_like(records.norm)
    shift = statistics_shift(release, records, drift) + more
    return shift * (0.5 * shift + cost_quantile(release, scope, failure))


def cost_quantile(release: Release, scope: Scope, failure: float) -> float:
    """What :func:`report_cost` allows for the statistics' noise along any record's shift, in its units."""
    if scope.every:
        return chi_quantile(release.plan.entries(len(release.coefficients)), failure)
    return two_sided(scope.each(failure))


def whole_cost(
    release: Release,
    records: ReadRecords,
    determinant: FloatArray,
    noise: "WholeNoise",
    drift: Drift,
) -> FloatArray:
    r"""The loss of the whole publication, treated as one Gaussian experiment.

    .. math:: |L| \le |t_1| + \frac{A^2 + C^2}2 + q\sqrt{A^2 + (cC)^2}, \qquad
              A^2 = \|\nabla\ell\|^2\Bigl(\frac{1}{\sigma^2} + \frac{1}{\sigma_2^2}\Bigr), \quad
              C^2 = \Delta^2 - \frac{\|\nabla\ell\|^2}{\sigma_2^2}

    ``determinant`` bounds :math:`|t_1|`, and ``noise`` is :func:`whole_noise`. For every record at once the
    last term is :math:`q_1A + q_2C` (docs/mathematics.md, theorem 7.2).
    """
    parts = whole_parts(release, records, drift)
    steep_part, curved_part = noise.model * parts.reaching, noise.statistics * parts.curved
    hypot = namespace_of(determinant).hypot
    reached = steep_part + curved_part if noise.apart else hypot(steep_part, curved_part)
    total: FloatArray = determinant + 0.5 * (parts.moved**2 + parts.curved**2) + (reached + noise.rest)
    return total


class WholeParts(NamedTuple):
    """How far each record moves what a publication releases, in units of the noise."""

    moved: FloatArray  # A: the model and the gradient
    curved: FloatArray  # C: the other statistics, and what the solver may add
    reaching: FloatArray  # A with the steepness that goes with the law of the noise


def whole_parts(release: Release, records: ReadRecords, drift: Drift) -> WholeParts:
    """What :func:`whole_cost` reads of each record, with slopes and curvatures at the exact minimiser."""
    plan, xp = release.plan, namespace_of(records.norm)

    def steep(length: FloatArray) -> FloatArray:
        gradient = length + drift.slope * plan.sigma
        moved: FloatArray = gradient / plan.sigma
        if plan.sigma_gradient is not None:
            error = plan.rounding.error("gradient", plan.sigma_gradient)
            moved = xp.hypot(moved, gradient / plan.sigma_gradient + 2.0 * error)
        return moved

    others = replace(plan.scales, sigma_gradient=None)
    curvature = records.released_norm * (1.0 + drift.curvature)
    curved = others.shift(records.gradient_norm, curvature, rounding=plan.rounding, added=records.added)
    return WholeParts(steep(records.gradient_norm), curved, steep(records.steepness * records.norm))


class WholeNoise(NamedTuple):
    """What :func:`whole_cost` allows for all the noise along a record's shift, in units of the noise."""

    model: float  # q, or q₁: for the noise of the objective and of the gradient
    statistics: float  # cq, or q₂: for all other noise
    apart: bool  # whether the two are bounded apart, not by an ellipse
    rest: float  # for errors of what was computed, which need not lie along the row


def whole_noise(
    release: Release,
    scope: Scope,
    failure: float,
    law: Across | None = None,
    weight: int = 1,
    parts: float = 1.0,
) -> WholeNoise:
    """What to allow for the noise of a whole release: public, and equal for every record.

    ``law`` is that of people with several rows: the statistics are one more direction. For ``weight`` and
    ``parts`` see :func:`~expost.reports.intervals.noise_factors`.
    """
    plan = release.plan
    if release.corners is not None:
        return _conditional_noise(release, scope, failure, law, weight, parts)
    dimension = len(release.coefficients)
    error = gradient_error(plan)
    if scope.every:
        model = every_quantile(dimension, plan.loss.outputs if law is None else 1, 0.5 * failure)
        freedom = plan.entries(dimension) - (dimension if release.gradient is not None else 0)
        others = chi_quantile(freedom, 0.5 * failure)
        # The errors of a computed gradient and of the solver lie in directions of their own.
        rest = (error + plan.rounding.solver) * chi_quantile(dimension, _NEGLIGIBLE)
        return WholeNoise(model, others, True, rest)
    if law is not None:
        quantile = replace(law, freedom=law.freedom + 1).quantile(scope.each(failure))
        return WholeNoise(quantile, law.stretch * quantile, False, error * BEYOND)
    stretch = ellipse_stretch(plan)
    quantile = ellipse_quantile(stretch, scope.each(failure), noise_law(plan.loss))
    return WholeNoise(quantile, stretch * quantile, False, error * BEYOND)


def _conditional_noise(
    release: Release, scope: Scope, failure: float, law: Across | None, weight: int, parts: float
) -> WholeNoise:
    """The same with corners: exponential moments in the place of quantiles (theorem 19.4)."""
    plan, dimension = release.plan, len(release.coefficients)
    steep, curved = largest_reach(plan, law, weight), weight * largest_curved(plan)
    if scope.every:
        # The noise of what is printed lies in directions of its own; each of the two bounds has half of all.
        others = Chi(plan.entries(dimension) + dimension)
        return WholeNoise(
            conditional_quantile(Chi(dimension), 0.5 * failure, 2.0 * parts * steep),
            conditional_quantile(others, 0.5 * failure, 2.0 * parts * curved),
            True,
            0.0,
        )
    ellipse = Across(2, ellipse_stretch(plan)) if law is None else replace(law, freedom=law.freedom + 1)
    largest = parts * math.hypot(steep, ellipse.stretch * curved)
    quantile = conditional_quantile(ellipse, scope.each(failure), largest)
    return WholeNoise(quantile, ellipse.stretch * quantile, False, 0.0)


def largest_curved(plan: Plan) -> float:
    """How far a record moves the other statistics and what is printed at most, all errors included."""
    others = replace(plan.scales, sigma_gradient=None)
    return float(others.shift(0.0, plan.released_curvature, rounding=plan.rounding))


def gradient_error(plan: Plan) -> float:
    """The largest difference that errors of two computed gradients can make, in units of their noise."""
    if plan.sigma_gradient is None:
        return 0.0
    return 2.0 * plan.rounding.error("gradient", plan.sigma_gradient)


def ellipse_stretch(plan: Plan) -> float:
    """How much longer the second axis of a total's ellipse is, from the plan alone (section 7, "Total")."""
    steep, curved = largest_shifts(plan)
    return 1.0 if math.isinf(steep) else float(np.clip((3.0 * curved / steep) ** -0.4, 1.0, 4.0))


def largest_shifts(plan: Plan) -> tuple[float, float]:
    """How far any record of weight 1 moves the model with the gradient, and the other statistics; public."""
    curve = plan.loss.curve
    if math.isinf(curve.max_slope):
        return math.inf, math.inf
    others = replace(plan.scales, sigma_gradient=None)
    accounting = accounting_of(curve, plan.radius, reduced=plan.reduced)
    curved = float(others.shift(0.0, accounting.released_curvature))
    precision = 1.0 / plan.sigma**2
    if plan.sigma_gradient is not None:
        precision += 1.0 / plan.sigma_gradient**2
    return accounting.slope * math.sqrt(precision), curved


@cache
def ellipse_quantile(stretch: float, failure: float, law: NoiseLaw = NORMAL) -> float:
    """The first half axis of the ellipse that two independent variables leave with probability ``failure``.

    The first has the given law, the second is normal, and the second axis is ``stretch`` times as long
    (docs/mathematics.md, section 7, "The ellipse").
    """
    if law != NORMAL:
        return _law_quantile(stretch, failure, law)
    if stretch == 1.0:
        return chi_quantile(2, failure)
    angles = np.linspace(0.0, 0.5 * math.pi, 1025)
    weights = np.full(len(angles), 1.0 / 1024.0)
    weights[[0, -1]] *= 0.5
    length = np.cos(angles) ** 2 + (np.sin(angles) / stretch) ** 2

    def excess(quantile: float) -> float:
        return float(logsumexp(-0.5 * quantile**2 / length, b=weights)) - math.log(failure)

    # Between the quantile of one normal and that of the disc.
    return float(brentq(excess, two_sided(failure), chi_quantile(2, failure), xtol=1e-14, rtol=1e-14))


def _law_quantile(stretch: float, failure: float, law: NoiseLaw) -> float:
    nodes, weights = np.polynomial.legendre.leggauss(200)
    angles = 0.25 * math.pi * (nodes + 1.0)
    weights = 0.5 * math.pi * weights / math.sqrt(2.0 * math.pi)

    def excess(quantile: float) -> float:
        far = stretch * quantile
        density = weights * np.exp(-0.5 * (far * np.sin(angles)) ** 2) * far * np.cos(angles)
        inside = float(density @ law.tail(quantile * np.cos(angles)))
        return math.log(inside + 2.0 * float(ndtr(-far))) - math.log(failure)

    # Between the quantile of the first variable and a rectangle that the two leave as rarely.
    high = math.hypot(law.quantile(0.5 * failure), two_sided(0.5 * failure) / stretch)
    return float(brentq(excess, law.quantile(failure), high, xtol=1e-13, rtol=1e-14))
