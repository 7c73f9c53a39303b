"""What the report itself cost a record, and what the whole publication cost it."""

import numpy as np

from expost._common.typing import FloatArray
from expost.fitting.release import Release
from expost.reports.base import Records, Scope, chi_quantile, statistics_dimension, two_sided


def statistics_shift(release: Release, records: Records) -> FloatArray:
    r"""How far the record moves the statistics, in units of their noise.

    .. math:: \Delta(z)^2 = \frac{\|\nabla\ell\|^2}{\sigma_2^2} + \frac{\|\nabla^2\ell\|_F^2}{2\sigma_3^2}
              + \frac{\|\nabla^2\ell\|_2^2}{\sigma_4^2}

    with a term for each statistic that is released. It does not depend on the table.
    """
    plan = release.plan
    square = np.zeros_like(records.norm)
    bend = records.curvature * records.norm**2
    if plan.sigma_gradient is not None:
        square += (records.slope * records.norm / plan.sigma_gradient) ** 2
    if plan.sigma_hessian is not None:
        square += 0.5 * (bend / plan.sigma_hessian) ** 2
    if plan.sigma_eigenvalue is not None:
        square += (bend / plan.sigma_eigenvalue) ** 2
    shift: FloatArray = np.sqrt(square)
    return shift


def report_cost(release: Release, records: Records, scope: Scope, failure: float) -> FloatArray:
    r"""The statistics' own ex-post loss: at most this with probability ``1 - failure``, from public values.

    .. math:: \Delta^2/2 + \Delta\,\Phi^{-1}(1 - \rho/2)
    """
    shift = statistics_shift(release, records)
    if not release.plan.releases_statistics:
        return shift
    return shift * (0.5 * shift + cost_quantile(release, scope, failure))


def cost_quantile(release: Release, scope: Scope, failure: float) -> float:
    """What :func:`report_cost` allows for the statistics' noise along any record's shift, in its units."""
    if scope.every:
        return chi_quantile(statistics_dimension(release), failure)
    return two_sided(scope.each(failure))


def whole_cost(
    release: Release, records: Records, determinant: FloatArray, scope: Scope, failure: float
) -> FloatArray:
    r"""The loss of the whole publication, treated as one Gaussian experiment.

    .. math:: |L| \le |t_1| + S^2/2 + S\,\chi_k(1 - \rho), \qquad
              S^2 = \|\nabla\ell\|^2/\sigma^2 + \Delta(z)^2

    ``determinant`` bounds :math:`|t_1|`. :math:`k = 2` for a record fixed in advance: the noise along the row
    and the statistics' noise along the record's shift are two independent normals, whatever the slope and the
    curvature make of the first. For every record at once :math:`k` counts all the noise there is.
    """
    size = np.hypot(records.slope * records.norm / release.plan.sigma, statistics_shift(release, records))
    return determinant + size * (0.5 * size + whole_quantile(release, scope, failure))


def whole_quantile(release: Release, scope: Scope, failure: float) -> float:
    """What :func:`whole_cost` allows for all the noise along any record's shift, in its units."""
    freedom = len(release.coefficients) + statistics_dimension(release) if scope.every else 2
    return chi_quantile(freedom, scope.each(failure))
