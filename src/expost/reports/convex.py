"""What a reader can know of a record under any convex loss, from the released parameters alone."""

import math

import numpy as np

from expost._common.parallel import map_spans
from expost._common.typing import FloatArray
from expost._common.validation import parameter_error
from expost.data.convex_records import RecordRows
from expost.fitting.convex_ex_post import grams
from expost.fitting.convex_fit import ConvexRelease
from expost.fitting.convex_objective import cut
from expost.fitting.loss_terms import log_determinants
from expost.reports.base import CONFIDENCE, Interval, Scope, check_confidence
from expost.reports.bounds import Bounds
from expost.reports.laws import chi_quantile
from expost.reports.tight import sum_of_terms


def evaluate_convex(
    release: ConvexRelease,
    records: RecordRows,
    *,
    confidence: float = CONFIDENCE,
    member: bool | None = None,
    simultaneous: int | str | None = None,
) -> Bounds:
    r"""An interval for each record's exact loss, from public values and the record.

    With :math:`a_j` the eigenvalues of :math:`\nabla^2\ell` at the released parameters,

    .. math:: 0 \le \pm t_1 \le \sum_j \log(1 + a_j/\lambda), \qquad
              t_2 = \frac{\|\nabla\ell\|^2}{2\sigma^2}, \qquad
              |t_3| \le \frac{\|\nabla\ell\|}{\sigma}\,\chi_{r_g}(1 - \rho)

    with the upper sign for members. The last holds with probability :math:`1 - \rho` for a record fixed
    before the noise was drawn: its gradient depends on the noise, but stays in a subspace of dimension
    :math:`r_g` that does not, where the noise has a chi law (docs/mathematics.md, section 12). For
    :math:`n` such records :math:`\rho/n`; for every record at once :math:`\chi_d`. This is the paper's
    data-independent report for general losses ([RW21]_), with exact quantiles and signs kept.

    Parameters
    ----------
    release
        What was released.
    records
        The records, from :func:`expost.data.convex_records.open_records`.
    confidence, member, simultaneous
        As in :meth:`expost.Publication.bounds`.

    Privacy
    -------
    Public values and the record itself in; the result concerns only that record. Answering for any number of
    records reveals nothing beyond the release.

    References
    ----------
    .. [RW21] R. Redberg and Y.-X. Wang. Privately publishable per-instance privacy. NeurIPS 2021.
    """
    failure = check_confidence(confidence)
    scope = Scope.of(simultaneous)
    scope.check_records(records.n_rows)
    if not (member is None or isinstance(member, bool | np.bool_)):
        raise parameter_error("member", "True, False or None", member)
    plan, theta = release.plan, release.parameters
    loss = plan.loss
    freedom = loss.n_parameters if scope.every else loss.gradient_dimension
    quantile = chi_quantile(freedom, scope.each(failure))
    lower, upper = np.empty(records.n_rows), np.empty(records.n_rows)

    def work(slices: list[slice]) -> None:
        for block, rows in records.blocks(list(cut(slices, loss.n_parameters**2))):
            gradient = loss.gradient(theta, rows)
            steep = np.sqrt(np.vecdot(gradient, gradient)) / plan.sigma
            root = loss.factor(theta, rows) / math.sqrt(plan.l2)
            most = log_determinants(grams(root), 1.0)
            ends = [_interval(most, steep, quantile, member=side) for side in sides]
            lower[block] = np.min([one.low for one in ends], axis=0)
            upper[block] = np.max([one.high for one in ends], axis=0)

    sides = (True, False) if member is None else (bool(member),)
    map_spans(records.n_rows, loss.n_parameters + records.n_columns, work)
    # Nothing is released beside the parameters, so their loss is the whole.
    return Bounds(lower, upper, np.zeros(records.n_rows), upper.copy(), confidence=1.0 - failure, scope=scope)


def _interval(most: FloatArray, steep: FloatArray, quantile: float, *, member: bool) -> Interval:
    none = np.zeros_like(most)
    determinant = Interval(none, most) if member else Interval(-most, none)
    return sum_of_terms(determinant, 0.5 * steep**2, Interval(-quantile * steep, quantile * steep))
