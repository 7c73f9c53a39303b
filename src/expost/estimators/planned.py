"""How the parameters of an estimator become a plan, before anything is read."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from expost._common.caller import warn_caller
from expost._common.choices import CalibrationName, ReportName
from expost._common.validation import check_choice, parameter_error
from expost.data.weights import Weighting
from expost.estimators.table_estimator import TableEstimator
from expost.exceptions import UndeclaredWarning
from expost.losses import AnyLoss
from expost.privacy.calibration import calibrate
from expost.privacy.plan import Plan
from expost.privacy.softmax_rules import default_reduced
from expost.privacy.statistics import REPORT_KINDS

# The norm of rows of which nothing was declared.
_UNDECLARED_NORM = 1.0


class PlannedEstimator(TableEstimator):
    """An estimator whose parameters, what was declared and the number of columns make its plan.

    Privacy
    -------
    Public in, public out: no row, no label and no weight is looked at.
    """

    epsilon: float
    delta: float
    norm: float | None
    l2: float | None
    sigma: float | None
    sigma_gradient: float | None
    sigma_hessian: float | None
    sigma_eigenvalue: float | None
    rows_at_most: int
    max_weight: float
    fit_intercept: bool
    report: ReportName
    split: float | Sequence[float] | None
    calibration: CalibrationName

    @abstractmethod
    def _make_loss(self, norm: float, max_weight: float) -> AnyLoss:
        """The loss that the parameters describe, for rows of this norm and records of at most this weight."""

    def _declared_weighting(self, sample_weight: Any) -> Weighting:
        """What the parameters declare about weights, before the classes are known."""
        class_weight = getattr(self, "class_weight", None)
        return Weighting.declared(self.max_weight, class_weight, of_records=sample_weight is not None)

    def _class_weighting(self, weighting: Weighting) -> Weighting:
        """The same with class weights in the order of the classes, where there are any."""
        class_weight = getattr(self, "class_weight", None)
        return weighting.for_classes(class_weight, () if self._labels is None else self._labels)

    def _is_reduced(self, loss: AnyLoss, columns: int) -> bool:
        """Whether the report's Hessian is the reduced one, for rows of so many columns in all."""
        return default_reduced(loss, check_choice("report", self.report, REPORT_KINDS), columns)

    def _make_plan(self, max_weight: float, n_features: int) -> Plan:
        norm = self._declared_norm()
        loss = self._make_loss(norm, max_weight)
        return calibrate(
            loss=loss,
            max_weight=max_weight,
            norm=norm,
            epsilon=self.epsilon,
            delta=self.delta,
            l2=self.l2,
            report=self.report,
            split=self.split,
            sigma=self.sigma,
            sigma_gradient=self.sigma_gradient,
            sigma_hessian=self.sigma_hessian,
            sigma_eigenvalue=self.sigma_eigenvalue,
            rows_at_most=self.rows_at_most,
            fit_intercept=bool(self.fit_intercept),
            calibration=self.calibration,
            reduced=self._is_reduced(loss, n_features + bool(self.fit_intercept)),
        )

    def _declared_norm(self) -> float:
        """The largest norm of a row, as declared, or the default with a warning."""
        if self.domain is not None:
            if self.norm is not None:
                raise parameter_error("norm", "None with a domain, which declares it", self.norm)
            return self.domain.row_norm
        if self.norm is not None:
            return self.norm
        warn_caller(
            f"`norm` was not declared, so rows longer than {_UNDECLARED_NORM:g} are scaled down to it, and a "
            "table in other units loses most of what it says. Declare `norm`, or the bounds of every feature "
            "and of the outcome with `domain` (expost.Domain); never compute them from the table.",
            UndeclaredWarning,
        )
        return _UNDECLARED_NORM
