"""What a reader can know of a record under any convex loss, from the released parameters alone."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from expost._common.choices import Simultaneous
from expost._common.typing import FloatArray
from expost.data.convex_records import RecordRows
from expost.fitting.convex_ex_post import grams
from expost.fitting.convex_fit import ConvexRelease
from expost.fitting.loss_terms import log_determinants
from expost.losses.convex import ConvexLoss
from expost.reports.base import CONFIDENCE, Interval, Scope, check_confidence, sides_of
from expost.reports.bounds import NO_FIGURES, Bounds, Figures
from expost.reports.laws import chi_quantile
from expost.reports.tight import sum_of_terms


def evaluate_convex(
    release: ConvexRelease,
    records: RecordRows,
    *,
    confidence: float = CONFIDENCE,
    member: bool | None = None,
    simultaneous: Simultaneous = None,
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
    plan, theta = release.plan, release.parameters
    loss = plan.loss
    freedom = loss.n_parameters if scope.every else loss.gradient_dimension
    quantile = chi_quantile(freedom, scope.each(failure))
    work = ConvexReading(
        loss=loss, parameters=theta, sigma=plan.sigma, l2=plan.l2, quantile=quantile, sides=sides_of(member)
    )
    return Bounds.of(records.sweep(work), confidence=1.0 - failure, scope=scope)


@dataclass(frozen=True, eq=False, repr=False)
class ConvexReading:
    """The pass that reads a release for every record."""

    loss: ConvexLoss
    parameters: FloatArray
    sigma: float
    l2: float
    quantile: float
    sides: tuple[bool, ...]
    """Whether the records were in the table: one answer, or both."""

    def __call__(self, blocks: Iterator[FloatArray]) -> Figures:
        """The figures of the part's records, in their order."""
        found = [NO_FIGURES]
        for rows in blocks:
            gradient = self.loss.gradient(self.parameters, rows)
            steep = np.sqrt(np.vecdot(gradient, gradient)) / self.sigma
            root = self.loss.factor(self.parameters, rows) / math.sqrt(self.l2)
            most = log_determinants(grams(root), 1.0)
            ends = [_interval(most, steep, self.quantile, member=side) for side in self.sides]
            lower = np.min([one.low for one in ends], axis=0)
            upper = np.max([one.high for one in ends], axis=0)
            # Nothing is released but the parameters, so their loss is the whole.
            found.append(Figures(lower, upper, np.zeros(len(rows)), upper))
        return Figures.joined(found)


def _interval(most: FloatArray, steep: FloatArray, quantile: float, *, member: bool) -> Interval:
    none = np.zeros_like(most)
    determinant = Interval(none, most) if member else Interval(-most, none)
    return sum_of_terms(determinant, 0.5 * steep**2, Interval(-quantile * steep, quantile * steep))
