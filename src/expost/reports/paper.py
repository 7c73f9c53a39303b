"""The report of Redberg and Wang (2021), made sound where it was not and otherwise left as it is."""

import math

import numpy as np
from scipy.linalg import eigh
from scipy.special import ndtri

from expost._common.typing import FloatArray
from expost.fitting.release import Release
from expost.privacy.statistics import REPORT_KINDS
from expost.reports.base import Scope, goe_quantile
from expost.reports.drift import SHARE, Drift
from expost.reports.gradient import gradient_factors, reach_factors
from expost.reports.laws import chi_quantile
from expost.reports.pencil import Pencil
from expost.reports.records import ReadRecords, ScalarRecords
from expost.reports.tight import Reading
from expost.reports.total import report_cost, statistics_shift


class PaperReader:
    r"""Algorithm 2 of [RW21]_, its Appendix's adaptive report, and their uniform versions.

    .. math:: \bar\epsilon_1 = -\log(1 - f''\bar\mu) + \frac{\|f'x\|^2}{2\sigma^2} + \frac{|\bar g|}{\sigma^2}

    Kept for comparison on the same release. What is only loose is left as printed: the data-independent
    :math:`\bar\mu = \|x\|^2/\lambda` inside :math:`-\log(1 - \cdot)`, which is infinite where
    :math:`f''\|x\|^2 \ge \lambda`; the factor :math:`(\lambda + \tau\sigma_3)/\lambda`, at most 3/2 under its
    condition; absolute values added up; tail bounds :math:`\sqrt{2\log(2/\rho)}` for the report's own cost.
    What is unsound is mended: the absolute value goes inside :math:`\bar g`, each event pays its share of the
    failure probability, :math:`\bar\mu` is capped as its proof assumes, and the GOE quantile is the true one.

    References
    ----------
    .. [RW21] R. Redberg and Y.-X. Wang. Privately publishable per-instance privacy. NeurIPS 2021.
    """

    def __init__(self, release: Release, failure: float, scope: Scope) -> None:
        self._release = release
        self._scope = scope
        self._failure = failure
        self._statistics = release.plan.scales.releases_statistics
        self._drift = Drift.of(release)
        self._estimators: dict[float, tuple[float, Pencil | None]] = {}

    def read(self, records: ReadRecords, *, member: bool) -> Reading:
        """The bound of each record; the paper has no lower end, and one figure for members and others."""
        upper = self._upper(records, self._failure)
        total = upper
        if self._statistics:
            total = self._upper(records, 0.5 * self._failure) + self._cost(records, 0.5 * self._failure)
        return Reading(np.zeros_like(upper), upper, total)

    def _upper(self, records: ReadRecords, failure: float) -> FloatArray:
        plan = self._release.plan
        share = failure / REPORT_KINDS[plan.report].paper_events
        determinant = self.determinant(records, share)
        gradient = records.gradient_norm
        return (
            determinant + 0.5 * (gradient / plan.sigma) ** 2 + self._product(records, share) / plan.sigma**2
        )

    def determinant(self, records: ReadRecords, share: float) -> FloatArray:
        """The bound on the determinant term of each record, where ``share`` is its failure probability."""
        assert isinstance(records, ScalarRecords)
        leverage = records.at.curvature * self._inverse_form(records, share)
        with np.errstate(divide="ignore"):
            largest: FloatArray = -np.log1p(-np.minimum(leverage, 1.0))
        return largest

    def _product(self, records: ReadRecords, share: float) -> FloatArray:
        plan, dimension = self._release.plan, len(self._release.coefficients)
        gradient = records.gradient_norm
        if self._scope.every:
            assert records.norm1 is not None
            bound: FloatArray = records.steepness * records.norm1
            quantile = math.sqrt(2.0 * math.log(2.0 * dimension / share))
            rest = chi_quantile(dimension, SHARE * share)
            return bound * plan.sigma * self._drift.widened(quantile, rest)
        factors = reach_factors(self._scope, share, dimension, self._drift, plan.loss)
        alone = plan.sigma * gradient * factors.norm
        if plan.sigma_gradient is None:
            return alone
        assert records.along is not None
        factors = gradient_factors(self._scope, share, dimension, self._drift, plan)
        measured = np.abs(records.along) + plan.sigma_gradient * gradient * factors.norm
        return measured if plan.report == "adaptive" else np.minimum(measured, alone)

    def _inverse_form(self, records: ReadRecords, share: float) -> FloatArray:
        floor, estimator = self._estimator(share)
        cap = records.norm**2 / floor
        if estimator is None:
            return cap
        form: FloatArray = estimator.forms(records.coordinates(estimator.basis))[0]
        return np.minimum(form, cap)

    def _estimator(self, share: float) -> tuple[float, Pencil | None]:
        """The largest known lower bound of the Hessian, and the leverage's estimator where one is valid."""
        if share not in self._estimators:
            self._estimators[share] = self._make_estimator(share)
        return self._estimators[share]

    def _make_estimator(self, share: float) -> tuple[float, Pencil | None]:
        plan, release = self._release.plan, self._release
        floor = plan.l2
        if plan.sigma_hessian is None or release.hessian is None:
            return floor, None
        margin = goe_quantile(len(release.coefficients), 0.5 * share) * plan.sigma_hessian
        adaptive = plan.sigma_eigenvalue is not None and release.eigenvalue is not None
        if plan.sigma_eigenvalue is not None and release.eigenvalue is not None:
            floor = max(floor, release.eigenvalue + plan.sigma_eigenvalue * float(ndtri(share)))
        values, vectors = eigh(release.hessian)
        if floor >= 2.0 * margin and values[0] > 0.0:
            return floor, Pencil.single(vectors, floor * values / (floor + margin))
        if adaptive and values[0] + margin > 0.0:
            raised = floor * (values + margin)
            return floor, Pencil.single(vectors, raised / (floor + 2.0 * margin))
        return floor, None

    def _cost(self, records: ReadRecords, failure: float) -> FloatArray:
        """The statistics' cost with one tail bound; the paper adds up one for each, which is larger.

        It has none for every record at once, so there the cost is ours.
        """
        if self._scope.every:
            return report_cost(self._release, records, self._scope, failure)
        shift = statistics_shift(self._release, records, self._drift, solver=True)
        return shift * (0.5 * shift + math.sqrt(2.0 * math.log(2.0 / self._scope.each(failure))))
