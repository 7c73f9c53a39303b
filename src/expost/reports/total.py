"""What the report itself cost a record, and what the whole publication cost it."""

from dataclasses import replace

import numpy as np

from expost._common.typing import FloatArray
from expost.fitting.release import Release
from expost.reports.base import Records, Scope, chi_quantile, two_sided
from expost.reports.drift import Drift


def statistics_shift(release: Release, records: Records, drift: Drift, *, solver: bool = False) -> FloatArray:
    """How far each record moves the statistics, and with ``solver`` the printed coefficients as well.

    See :meth:`NoiseScales.shift`. Slopes and curvatures are those at the exact minimiser, bounded from the
    printed coefficients.
    """
    plan = release.plan
    rounding = plan.rounding if solver else replace(plan.rounding, solver=0.0)
    gradient = np.abs(records.slope) * records.norm + drift.slope * plan.sigma
    curvature = records.hessian_norm * (1.0 + drift.curvature)
    shift: FloatArray = plan.scales.shift(gradient, curvature, rounding=rounding)
    return shift


def report_cost(release: Release, records: Records, scope: Scope, failure: float) -> FloatArray:
    r"""The statistics' own ex-post loss: at most this with probability ``1 - failure``, from public values.

    .. math:: \Delta^2/2 + \Delta\,\Phi^{-1}(1 - \rho/2)
    """
    if not release.plan.scales.releases_statistics:
        return np.zeros_like(records.norm)
    shift = statistics_shift(release, records, Drift.of(release))
    return shift * (0.5 * shift + cost_quantile(release, scope, failure))


def cost_quantile(release: Release, scope: Scope, failure: float) -> float:
    """What :func:`report_cost` allows for the statistics' noise along any record's shift, in its units."""
    if scope.every:
        return chi_quantile(_statistics_dimension(release), failure)
    return two_sided(scope.each(failure))


def whole_cost(
    release: Release,
    records: Records,
    determinant: FloatArray,
    scope: Scope,
    failure: float,
    drift: Drift,
) -> FloatArray:
    r"""The loss of the whole publication, treated as one Gaussian experiment.

    .. math:: |L| \le |t_1| + S^2/2 + S\,\chi_k(1 - \rho), \qquad
              S^2 = \|\nabla\ell\|^2/\sigma^2 + \Delta(z)^2

    ``determinant`` bounds :math:`|t_1|`. :math:`k = 2` for a record fixed in advance: the noise along the row
    and the statistics' noise along the record's shift are two independent normals, whatever the slope and the
    curvature make of the first. For every record at once :math:`k` counts all the noise there is.
    """
    model = np.abs(records.slope) * records.norm / release.plan.sigma + drift.slope
    size = np.hypot(model, statistics_shift(release, records, drift, solver=True))
    return determinant + size * (0.5 * size + whole_quantile(release, scope, failure))


def whole_quantile(release: Release, scope: Scope, failure: float) -> float:
    """What :func:`whole_cost` allows for all the noise along any record's shift, in its units."""
    freedom = len(release.coefficients) + _statistics_dimension(release) if scope.every else 2
    return chi_quantile(freedom, scope.each(failure))


def _statistics_dimension(release: Release) -> int:
    return release.plan.scales.entries(len(release.coefficients))
