"""Our report: signed intervals term by term, and the total."""

import math
from typing import NamedTuple

from expost._common.namespaces import namespace_of
from expost._common.typing import FloatArray
from expost.fitting.release import Release
from expost.reports.base import Interval, Scope, Shares
from expost.reports.determinant import Determinant
from expost.reports.drift import Drift
from expost.reports.gradient import inner_product
from expost.reports.records import ReadRecords
from expost.reports.total import whole_cost

# Above every rounding error in adding up the terms, so that intervals err on the wide side.
SLACK = 1e-12


class Reading(NamedTuple):
    """What a report says of each record whose membership is known."""

    lower: FloatArray
    upper: FloatArray
    total: FloatArray


class TightReader:
    r"""How to read a release at one failure probability.

    The signed log-odds are :math:`L = t_1 + t_2 + t_3` with :math:`t_2` known and intervals for :math:`t_1`
    and :math:`t_3`; their sum is an interval for :math:`L`, and

    .. math:: \text{upper} = \max(L_{hi}, -L_{lo}), \qquad \text{lower} = \max(0, L_{lo}, -L_{hi})

    is one for :math:`|L|`. Keeping the signs is what lets terms cancel and what gives a lower end at all;
    Algorithm 2 of [RW21]_ adds up absolute values. With ``weights_at_most`` each term lies anywhere between
    zero and what it is at the record's weight, which is then the largest possible.

    The total takes the whole publication as one Gaussian experiment. It relies on fewer events than the
    interval, and the noise has what the others leave of the failure probability. Where only the model is
    published the total is the upper end.

    Privacy
    -------
    Reads public values and the record; answering for any number of records reveals nothing beyond the
    release.

    References
    ----------
    .. [RW21] R. Redberg and Y.-X. Wang. Privately publishable per-instance privacy. NeurIPS 2021.
    """

    def __init__(
        self, release: Release, failure: float, scope: Scope, *, weights_at_most: bool = False
    ) -> None:
        self._release = release
        self._scope = scope
        self._weights_at_most = weights_at_most
        self.shares = Shares.of(release.plan.report, failure)
        self.drift = Drift.of(release)
        self.determinant = Determinant(release, self.shares, scope, self.drift)

    def read(self, records: ReadRecords, *, member: bool) -> Reading:
        """The interval and the total of each record."""
        determinant = self.determinant.bound(records, member=member)
        interval = self._interval(records, determinant, member=member)
        if not self._release.plan.scales.releases_statistics:
            return Reading(interval.low, interval.high, interval.high)
        size = self._size(determinant)
        whole = whole_cost(self._release, records, size, self._scope, self.shares.whole, self.drift)
        return Reading(interval.low, interval.high, whole)

    def determinant_size(self, records: ReadRecords, *, member: bool) -> FloatArray:
        """How large the determinant term is at most, as a total counts it."""
        return self._size(self.determinant.bound(records, member=member))

    def _size(self, determinant: Interval) -> FloatArray:
        xp = namespace_of(determinant.low)
        size: FloatArray = xp.maximum(xp.abs(determinant.low), xp.abs(determinant.high))
        return size * (1.0 + 2.0 * self.drift.curvature)

    def _interval(self, records: ReadRecords, determinant: Interval, *, member: bool) -> Interval:
        product = inner_product(self._release, records, self.shares, self._scope, self.drift, member=member)
        quadratic = 0.5 * (records.gradient_norm / self._release.plan.sigma) ** 2
        return sum_of_terms(determinant, quadratic, product, each_may_vanish=self._weights_at_most)


def sum_of_terms(
    determinant: Interval, quadratic: FloatArray, product: Interval, *, each_may_vanish: bool = False
) -> Interval:
    """An interval for the size of the log-odds, from intervals for two of its terms and the third itself.

    With ``each_may_vanish`` each term lies anywhere between zero and what is given for it.
    """
    xp = namespace_of(determinant.low)
    least = quadratic
    if each_may_vanish:
        least = xp.zeros_like(quadratic)
        determinant, product = (
            Interval(xp.clip(term.low, None, 0.0), xp.clip(term.high, 0.0, None))
            for term in (determinant, product)
        )
    sizes = xp.abs(determinant.low) + xp.abs(determinant.high) + quadratic
    slack = SLACK * (sizes + xp.abs(product.low) + xp.abs(product.high))
    low = determinant.low + least + product.low - slack
    high = determinant.high + quadratic + product.high + slack
    # Where a term is beyond double precision nothing is known below, and no number is above.
    known = xp.isfinite(slack)
    return Interval(
        xp.where(known, xp.clip(xp.maximum(low, -high), 0.0, None), 0.0),
        xp.where(known, xp.maximum(high, -low), math.inf),
    )
