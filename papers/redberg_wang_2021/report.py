"""The report of Redberg and Wang (2021), made sound where it was not and otherwise left as it is."""

import math
from dataclasses import replace
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from expost.goe import LargestEigenvalue
from expost.research import Drift, Figures, Release
from papers.common import FloatArray

EVENTS = {"independent": 1, "leverage": 2, "dependent": 3, "adaptive": 3}
"""How many events the bound of each kind of report relies on; they share the failure probability."""
PRINTING = 2.0**-10
"""The part of a failure probability that pays for the noise of the printed coefficients."""


class Records(NamedTuple):
    """What the report reads of the records."""

    rows: FloatArray
    norm: FloatArray
    slope: FloatArray
    curvature: FloatArray

    @classmethod
    def of(cls, release: Release, rows: FloatArray, labels: FloatArray) -> "Records":
        """At the released coefficients."""
        slope, curvature = release.plan.loss.derivatives(rows @ release.coefficients, labels)
        return cls(rows, np.sqrt(np.vecdot(rows, rows)), slope, curvature)

    @property
    def gradient(self) -> FloatArray:
        """The length of each record's gradient."""
        length: FloatArray = np.abs(self.slope) * self.norm
        return length


def paper_report(
    release: Release, rows: FloatArray, labels: FloatArray, *, failure: float, member: bool | None = None
) -> Figures:
    r"""Algorithm 2 of [RW21]_, and its Appendix's adaptive report, for one linear predictor.

    .. math:: \bar\epsilon_1 = -\log(1 - f''\bar\mu) + \frac{\|f'x\|^2}{2\sigma^2} + \frac{|\bar g|}{\sigma^2}

    What is only loose is left as printed: the data-independent :math:`\bar\mu = \|x\|^2/\lambda` inside
    :math:`-\log(1 - \cdot)`, which is infinite where :math:`f''\|x\|^2 \ge \lambda`; the factor
    :math:`(\lambda + \tau\sigma_3)/\lambda`, at most 3/2 under its condition; absolute values added up; tail
    bounds :math:`\sqrt{2\log(2/\rho)}` for the report's own cost. What is unsound is mended: the absolute
    value goes inside :math:`\bar g`, each event pays its share of the failure probability, :math:`\bar\mu` is
    capped as its proof assumes, the GOE quantile is the true one, and quantiles allow for the noise of the
    printed coefficients. The paper has no lower end, and one figure for members and others.

    References
    ----------
    .. [RW21] R. Redberg and Y.-X. Wang. Privately publishable per-instance privacy. NeurIPS 2021.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # the squared loss has no largest slope
        records = Records.of(release, rows, labels)
        upper = _upper(release, records, failure)
        nothing = np.zeros_like(upper)
        if not release.plan.scales.releases_statistics:
            return Figures(nothing, upper, nothing, upper)
        tail = math.sqrt(2.0 * math.log(4.0 / failure))
        printed = _shift(release, records, solver=release.plan.rounding.solver)
        # With one tail bound for all statistics; the paper adds up one for each, which is larger.
        total = _upper(release, records, 0.5 * failure) + printed * (0.5 * printed + tail)
        # On its own the cost is that of the library's report.
        shift = _shift(release, records, solver=0.0)
        return Figures(nothing, upper, shift * (0.5 * shift + _two_sided(failure)), total)


def determinant_bound(release: Release, records: Records, share: float) -> FloatArray:
    """The bound on the determinant term of each record, where ``share`` is its failure probability."""
    floor, inverse = _hessian_estimate(release, share)
    form = records.norm**2 / floor
    if inverse is not None:
        basis, reciprocals = inverse
        form = np.minimum(form, reciprocals @ (basis.T @ records.rows.T) ** 2)
    with np.errstate(divide="ignore"):
        largest: FloatArray = -np.log1p(-np.minimum(records.curvature * form, 1.0))
    return largest


def _upper(release: Release, records: Records, failure: float) -> FloatArray:
    plan = release.plan
    share = failure / EVENTS[plan.report]
    product = _product(release, records, share) / plan.sigma**2
    return determinant_bound(release, records, share) + 0.5 * (records.gradient / plan.sigma) ** 2 + product


def _product(release: Release, records: Records, share: float) -> FloatArray:
    r"""The bound :math:`|\bar g|` on the inner product of each record's gradient with the noise."""
    plan = release.plan
    alone = plan.sigma * records.gradient * _reach(release, share)
    if plan.sigma_gradient is None:
        return alone
    unit = math.hypot(plan.sigma, plan.sigma_gradient) / plan.sigma_gradient
    reach = plan.sigma_gradient * _reach(release, share, unit)
    assert release.gradient is not None
    measured = np.abs(records.slope * (records.rows @ release.gradient)) + reach * records.gradient
    return measured if plan.report == "adaptive" else np.minimum(measured, alone)


def _reach(release: Release, share: float, unit: float = 1.0) -> float:
    """How many scales of noise a record fixed in advance meets; ``unit`` is the objective's in its scales."""
    drift = Drift.of(release)
    if drift.tilt == 0.0:
        return _two_sided(share)
    moved = replace(drift, tilt=unit * drift.tilt)
    return moved.widened(_two_sided(share - PRINTING * share), _two_sided(PRINTING * share))


@lru_cache(maxsize=4)  # the same for every block of records
def _hessian_estimate(release: Release, share: float) -> tuple[float, tuple[FloatArray, FloatArray] | None]:
    """A lower bound of the Hessian's eigenvalues and, where it is valid, the paper's estimate of its inverse.

    The estimate is a basis and the reciprocals of the eigenvalues in it.
    """
    plan, floor = release.plan, release.plan.l2
    if plan.sigma_hessian is None or release.hessian is None:
        return floor, None
    margin = goe_quantile(len(release.coefficients), 0.5 * share) * plan.sigma_hessian
    adaptive = plan.sigma_eigenvalue is not None and release.eigenvalue is not None
    if plan.sigma_eigenvalue is not None and release.eigenvalue is not None:
        floor = max(floor, release.eigenvalue + plan.sigma_eigenvalue * float(ndtri(share)))
    values, basis = np.linalg.eigh(release.hessian)
    if floor >= 2.0 * margin and values[0] > 0.0:
        return floor, (basis, (floor + margin) / (floor * values))
    if adaptive and values[0] + margin > 0.0:
        return floor, (basis, (floor + 2.0 * margin) / (floor * (values + margin)))
    return floor, None


def _shift(release: Release, records: Records, *, solver: float) -> FloatArray:
    """How far each record moves the statistics, in units of their noise, at the exact minimiser."""
    plan, drift = release.plan, Drift.of(release)
    shift: FloatArray = plan.scales.shift(
        records.gradient + drift.slope * plan.sigma,
        records.curvature * records.norm**2 * (1.0 + drift.curvature),
        rounding=replace(plan.rounding, solver=solver),
    )
    return shift


def _two_sided(failure: float) -> float:
    return float(-ndtri(0.5 * failure))


@cache
def goe_quantile(dimension: int, failure: float) -> float:
    """What the largest eigenvalue of the GOE exceeds with probability ``failure``."""
    return float(LargestEigenvalue(dimension).isf(failure))
