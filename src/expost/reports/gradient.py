"""Bounds on the inner product of a record's gradient with the noise."""

import math
from dataclasses import replace
from typing import NamedTuple

from scipy.special import ndtri

from expost._common.namespaces import namespace_of
from expost._common.typing import FloatArray
from expost.fitting.release import Release
from expost.losses import RecordLoss
from expost.privacy.plan import Plan
from expost.reports.base import Interval, Scope, Shares
from expost.reports.drift import SHARE, Drift
from expost.reports.laws import chi_quantile, every_quantile, noise_law
from expost.reports.records import ReadRecords


class Factors(NamedTuple):
    """How far the noise reaches per unit of a row's Euclidean norm and, where given, of its entries' sum."""

    norm: float
    norm1: float | None


def reach(records: ReadRecords, factors: Factors) -> FloatArray:
    r"""How far :math:`x \cdot N(0, I)` reaches, with probability ``1 - failure``, for the records in scope.

    For a record fixed before the noise was drawn :math:`x \cdot b \sim N(0, \sigma^2\|x\|^2)` although the
    slope depends on :math:`b`: it factors out. For every record at once, the smaller of two dual norms:

    .. math:: \min\{\|x\|_2\,\chi_d(1 - \rho/2),\; \|x\|_1\,\Phi^{-1}((1 + (1 - \rho/2)^{1/d})/2)\}

    With several linear predictors the noise along the row is a vector, and the steepness that factors out
    goes with a law of its own (:func:`~expost.reports.laws.noise_law`); for every record at once it is the
    gradient's length in the predictors (:func:`~expost.reports.laws.every_quantile`).

    Tighter than the Theorem on the third term in [RW21]_ by the exact quantiles in place of tail bounds.
    ``factors`` come from :func:`reach_factors`.
    """
    straight = records.norm * factors.norm
    if factors.norm1 is None:
        return straight
    assert records.norm1 is not None
    nearer: FloatArray = namespace_of(straight).minimum(straight, records.norm1 * factors.norm1)
    return nearer


def reach_factors(
    scope: Scope, failure: float, dimension: int, drift: Drift, loss: RecordLoss, unit: float = 1.0
) -> Factors:
    """What :func:`reach` multiplies the norms of a record with; public, and the same for every record.

    ``unit`` is the objective's noise in units of the noise that is bounded.
    """
    # A small share of the failure probability pays for the output's noise, where there is any.
    share = SHARE * failure if drift.tilt > 0.0 else 0.0
    moved = replace(drift, tilt=unit * drift.tilt)
    left = failure - share
    if not scope.every:
        law = noise_law(loss)
        rest = law.quantile(scope.each(share)) if share else 0.0
        return Factors(moved.widened(law.quantile(scope.each(left)), rest), None)
    rest = chi_quantile(dimension, share) if share else 0.0
    if not loss.along_row:
        return Factors(moved.widened(every_quantile(dimension, loss.outputs, left), rest), None)
    # (1 + p^(1/d))/2 is one minus this; computed so that it keeps its digits.
    tail = -0.5 * math.expm1(math.log1p(-0.5 * left) / dimension)
    # The Euclidean norm of a row is at most the sum of its entries.
    return Factors(
        moved.widened(chi_quantile(dimension, 0.5 * left), rest), moved.widened(float(-ndtri(tail)), rest)
    )


def gradient_factors(scope: Scope, failure: float, dimension: int, drift: Drift, plan: Plan) -> Factors:
    """What :func:`reach` takes for the error of a noisy gradient, in units of its noise."""
    assert plan.sigma_gradient is not None
    unit = math.hypot(plan.sigma, plan.sigma_gradient) / plan.sigma_gradient
    return reach_factors(scope, failure, dimension, drift, plan.loss, unit)


def inner_product(
    release: Release, records: ReadRecords, shares: Shares, scope: Scope, drift: Drift, *, member: bool
) -> Interval:
    r"""An interval for :math:`t_3 = \mp\nabla J \cdot \nabla\ell/\sigma^2`, from public values.

    Without a noisy gradient, :math:`\pm m\,\mathrm{reach}/\sigma` with the steepness :math:`m`. With one,
    weighted by precision,

    .. math:: x\cdot\nabla J = s\,x\cdot\hat g + N(0, \|x\|^2\sigma^2\sigma_2^2/(\sigma^2+\sigma_2^2)),
              \quad s = \sigma^2/(\sigma^2 + \sigma_2^2)

    holds unconditionally, for each of several linear predictors alike; the two intervals, each with its
    share of the confidence, are intersected, so that a noisy gradient never makes the figure
    worse than the noise's law alone would at that share.

    Differs from Algorithm 2 of [RW21]_ in keeping the sign (its printed bound lacks an absolute value and
    fails for about half of the records), and in paying for each of the two bounds.

    References
    ----------
    .. [RW21] R. Redberg and Y.-X. Wang. Privately publishable per-instance privacy. NeurIPS 2021.
    """
    plan, dimension = release.plan, len(release.coefficients)
    steepness = records.steepness
    factors = reach_factors(scope, shares.tilt, dimension, drift, plan.loss)
    width = steepness * reach(records, factors) / plan.sigma
    if plan.sigma_gradient is None:
        return Interval(-width, width)
    assert records.along is not None
    together = math.hypot(plan.sigma, plan.sigma_gradient)
    sign = -1.0 if member else 1.0
    centre = sign * records.along / together**2  # s/σ² = 1/(σ² + σ₂²)
    factors = gradient_factors(scope, shares.gradient, dimension, drift, plan)
    narrow = steepness * reach(records, factors)
    narrow *= plan.sigma_gradient / (plan.sigma * together)
    xp = namespace_of(width)
    low, high = xp.maximum(centre - narrow, -width), xp.minimum(centre + narrow, width)
    # Only off the good event can the two intervals miss each other; then say the wider thing.
    apart = low > high
    return Interval(
        xp.where(apart, xp.minimum(centre - narrow, -width), low),
        xp.where(apart, xp.maximum(centre + narrow, width), high),
    )
