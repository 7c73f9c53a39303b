"""How the parameters of an estimator become a plan, and how the plan is entered in its account."""

import threading
from abc import abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from expost._common.validation import CalibrationName, ReportName, check_choice, parameter_error, warn_caller
from expost.data.weights import Weighting
from expost.estimators.table_estimator import TableEstimator
from expost.exceptions import LedgerError, LedgerWarning, UncountedWarning, UndeclaredWarning
from expost.ledger import Account
from expost.losses import AnyLoss
from expost.privacy.calibration import calibrate
from expost.privacy.plan import Plan
from expost.privacy.scales import REPORT_KINDS
from expost.privacy.shapes import default_reduced


class Spending:
    """The entry of one fit, from the check of its plan to the hash of its publication.

    Made before the table is touched: the entry has the time of that.

    Parameters
    ----------
    family
        The name of the estimator, which is the entry's note where the account has none.
    account
        The account, or None.
    insecure
        Whether the noise comes from a seed.
    """

    def __init__(self, family: str, account: Any, *, insecure: bool) -> None:
        if not (account is None or isinstance(account, Account)):
            raise parameter_error(
                "account", "an account of `expost.Ledger(...).account(...)` or None", type(account).__name__
            )
        self._family = family
        self._account: Account | None = account
        self._insecure = insecure
        self._began = datetime.now(UTC)
        self._number: int | None = None

    def check(self, plan: Plan) -> None:
        """Refuse a plan that would overdraw the account, or warn of a second fit without one."""
        if self._account is not None:
            self._account.check(plan)
        elif _UNCOUNTED.is_second(self._family):
            warn_caller(
                f"this process fits {self._family} once more and nobody counts what that spends: every fit "
                "spends its budget again. Give all fits of one table the same account: "
                "fit(..., account=account), with an account of expost.Ledger.",
                UncountedWarning,
            )

    def enter(self, plan: Plan) -> None:
        """Enter the plan as spent, or remember the fit without an account, just before noise is drawn."""
        if self._account is None:
            _UNCOUNTED.add(self._family)
        else:
            self._number = self._account.enter(
                plan, note=self._family, insecure=self._insecure, began=self._began
            )

    def finish(self, sha256: str | None) -> None:
        """Mark the entry as finished; the fit is spent and published whether or not this succeeds."""
        if self._account is None or self._number is None:
            return
        try:
            self._account.finish(self._number, sha256=sha256)
        except LedgerError as error:
            warn_caller(f"the fit is counted, but its entry stays unfinished: {error}", LedgerWarning)


class UncountedFits:
    """Which kinds of estimators this process has fitted without an account, and which it has warned of."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fitted: set[str] = set()
        self._warned: set[str] = set()

    def add(self, family: str) -> None:
        """Remember a fit."""
        with self._lock:
            self._fitted.add(family)

    def is_second(self, family: str) -> bool:
        """Whether there was a fit of this kind before, and this has not been asked since: to warn once."""
        with self._lock:
            if family not in self._fitted or family in self._warned:
                return False
            self._warned.add(family)
            return True


_UNCOUNTED = UncountedFits()


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
