"""Linear models: from the arguments and a table to a publication, and exact losses afterwards."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from expost._common.typing import FloatArray
from expost._common.validation import (
    CalibrationName,
    ReportName,
    UnitName,
    check_choice,
    parameter_error,
    warn_caller,
)
from expost.data.columns import names_of_numbers
from expost.data.design import intercept_count
from expost.data.domain import Domain
from expost.data.encoding import Encoded, Opened, check_column_names, encode_records, encode_rows, opened
from expost.data.labels import Label
from expost.data.lazy import LazyTable
from expost.data.tables import as_lazy, table_of, with_columns
from expost.data.weights import Declared, Weighting, check_rows_per_person
from expost.estimators.planned import PrivateEstimator, check_people
from expost.exceptions import CalibrationError, ParameterError, PublicationError, UndeclaredWarning
from expost.fitting.prediction import linear_predictor, predicted_labels, scored
from expost.fitting.private_fit import corners_for
from expost.fitting.recalibration import calibration_of
from expost.ledger import Account
from expost.losses import AnyLoss
from expost.losses.corners import Corners
from expost.losses.registry import can_be_published
from expost.privacy.calibration import calibrate
from expost.privacy.plan import Plan
from expost.privacy.scales import REPORT_KINDS
from expost.privacy.shapes import default_reduced
from expost.publication import Publication
from expost.publication.trial import try_publication

# The norm of rows of which nothing was declared.
_UNDECLARED_NORM = 1.0


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateGLM(PrivateEstimator):
    """A generalised linear model released by objective perturbation.

    Its records come with a domain, or as numbers with or without names.
    """

    norm: float | None = None
    fit_intercept: bool = True
    report: ReportName = "independent"
    calibration: CalibrationName = "tight"
    max_weight: float = 1.0
    domain: Domain | None = None

    _of_plan: ClassVar[tuple[str, ...]] = (
        *PrivateEstimator._of_plan,
        "norm",
        "fit_intercept",
        "report",
        "calibration",
    )

    @abstractmethod
    def _make_loss(self, norm: float, max_weight: float) -> AnyLoss:
        """The loss that the arguments describe, for rows of this norm and records of at most this weight."""

    @abstractmethod
    def _set_label(self, y: Any) -> None:
        """Store what is declared about the outcome, or the classes of ``y``, if there are any."""

    def _set_coefficients(self, weights: FloatArray, intercepts: FloatArray) -> None:
        """Store the released coefficients, one row or one row per class, in scikit-learn's shapes."""
        alone = len(weights) == 1
        self.coef_ = weights[0] if alone else weights
        self.intercept_: float | FloatArray = float(intercepts[0]) if alone else intercepts

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        account: Account | None = None,
    ) -> Self:
        """Release a model of ``y`` given ``X``.

        Parameters
        ----------
        X
            Rows of numbers: an array, here or on a device (docs/gpu.md), a sparse matrix, a frame, the path
            or pattern of CSV or Parquet files, what :func:`expost.scan` returns, or a Dask DataFrame. See
            docs/reference/models.md, "Tables".
        y
            One label per row, or in files the name of its column. None: the domain's, or the last in files.
        sample_weight
            One weight per row, from 0 to ``max_weight``, by which its loss is multiplied; as private as the
            rest of the record. With files, the name of its column.
        groups
            With ``unit="person"``, whose each row is: an id per row, a text or a whole number, or with files
            the name of a column. By default the domain's ``person``. Ids are private and never published; an
            id in two spellings is two people.
        account
            Where to count what this spends: an account of :class:`expost.Ledger`. The fit is entered before
            its noise is drawn, and refused with :class:`expost.exceptions.BudgetError` if it would overdraw.

        Privacy
        -------
        Spends ``plan_.epsilon`` at ``plan_.delta``, each time it is called. What is stored is public, except
        for the private part, which never leaves memory.
        """
        with self._spending(account) as (spending, step):
            # All checks come before any noise is drawn.
            plan, records = self._planned_records(X, y, sample_weight, groups)
            spending.check(plan)
            if self.domain is not None:
                self.feature_names_in_ = np.array([part.name for part in self.domain.features], dtype=object)
                self.n_features_in_ = len(self.feature_names_in_)
            declared = self._declared | {"feature_names": self._names}
            # Noise scales of one's own may be too small for any epsilon: then there is nothing to publish.
            promised = math.isfinite(plan.epsilon) or math.isinf(plan.loss.curve.max_slope)
            corners = self._corners(plan)
            if promised and can_be_published(plan.loss):
                try_publication(plan, self._width, corners=corners, **declared)
            release = self._release(plan, records, spending, step, corners)
            table = plan.loss.by_predictor(release.coefficients)
            weights, intercepts = np.split(table.copy(), [self._width], axis=1)
            constants = np.ravel(intercepts) if self._intercepts else np.zeros(len(table))
            self._set_coefficients(weights, constants)
            self.calibration_curve_ = calibration_of(release) if plan.recalibrate else None
            step("Verifying the publication")
            try:
                self._publication: Publication | str = Publication.from_release(release, **declared)
            except PublicationError as error:
                # The budget is spent, so keep the model. Store only the message: errors refer to the rows.
                self._publication = str(error)
            spending.finish(None if isinstance(self._publication, str) else self._publication.sha256)
        return self

    def _corners(self, plan: Plan) -> Corners | None:
        """The L1 penalty and the bounds of the coefficients, where there are any; public."""
        declared = None if self.domain is None else self.domain.coef_bounds
        if declared is not None and self.coef_bounds is not None:
            wanted = "None with a domain whose features have an `effect`"
            raise parameter_error("coef_bounds", wanted, self.coef_bounds)
        bounds = declared or self.coef_bounds
        if self.l1 == 0.0 and bounds is None:
            return None
        return corners_for(plan, self.l1, bounds, self._width, intercept=self._intercepts)

    def predict(self, X: Any) -> Any:
        """The predicted class or label of each record, where the loss has an obvious one.

        The likelier of two classes, the likeliest under :class:`expost.SoftmaxLoss`, the probability under a
        logistic loss of soft labels; else the linear predictor, in the units of a declared outcome.
        """
        predictor, loss = self._linear_predictor(X), self.plan_.loss
        classes = getattr(self, "classes_", self._labels)
        classes = loss.labels.values if classes is None else classes
        return predicted_labels(predictor, loss=loss, classes=classes, label=self._label_of_fit)

    @property
    def publication_(self) -> Publication:
        """Everything public about the fit, ready to save.

        Raises PublicationError if a reader could not understand it, for instance with a loss that has no
        name.

        Privacy
        -------
        Public; the budget of ``plan_`` covers it.
        """
        check_is_fitted(self)
        if isinstance(self._publication, str):
            raise PublicationError(self._publication)
        return self._publication

    @property
    def ex_post_error_(self) -> float:
        """The order of the error of :meth:`ex_post_losses`; see :attr:`PrivateFit.loss_error`.

        Privacy
        -------
        Private: it grows with the table.
        """
        check_is_fitted(self)
        return self._private_part().loss_error

    def _planned_records(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> tuple[Plan, Encoded]:
        """The plan of a fit, and its table encoded for it; the number of columns is public."""
        given = self._given_plan()
        weighting = self._declared_weighting(given, of_records=sample_weight is not None)
        self._labels: NDArray[Any] | None = None  # the classes in the order of the loss's labels
        self._outcome: Label | None = None  # what is declared of it but classes, where there is no domain
        self._had_weights = sample_weight is not None
        X, y, sample_weight, groups = with_columns(X, y, sample_weight, groups, self.domain)
        lazy = as_lazy(X, self.domain)
        if lazy is not None:
            self._set_columns(lazy, y, sample_weight, groups)
        self._set_label(y if lazy is None else np.empty(0))  # the number of classes decides the loss
        classes = () if self._labels is None else self._labels
        self._weighting = weighting.for_classes(getattr(self, "class_weight", None), classes)
        table = opened(X if lazy is None else lazy, self.domain)
        width = self._width if isinstance(table, LazyTable) else table.source.n_features
        plan = given or self._shared_plan(lambda one: one._make_plan(weighting.largest, width))
        self._check_people(plan, groups)
        records = encode_records(table, y, self._declared_for(table, plan), sample_weight, groups)
        if lazy is None:
            self._check_names(X, reset=True)
        return plan, records

    def _given_plan(self) -> Plan | None:
        plan = super()._given_plan()
        if self.domain is None:
            return plan
        for name in ("norm", "rows_per_person"):
            if (given := getattr(self, name)) is not None:
                raise parameter_error(name, "None with a domain, which declares it", given)
        if plan is not None and self._person is not None and plan.unit != "person":
            raise ParameterError(
                "`plan` must be made with unit='person', because the domain declares `person`."
            )
        if plan is not None and plan.norm != self.domain.row_norm:
            wanted = f"made with norm=domain.row_norm, {self.domain.row_norm!r}"
            raise ParameterError(f"`plan` must be {wanted}; this one is for norm={plan.norm!r}.")
        return plan

    def _declared_weighting(self, plan: Plan | None, *, of_records: bool) -> Weighting:
        """What is declared about weights, before the classes are known."""
        domain, class_weight = self.domain, getattr(self, "class_weight", None)
        rows = check_rows_per_person(self.rows_per_person) if domain is None else domain.rows_per_person
        made = Weighting.declared if plan is None else partial(Weighting.planned, plan)
        return made(self.max_weight, class_weight, of_records=of_records, rows=rows)

    def _make_plan(self, max_weight: float, n_features: int) -> Plan:
        """The plan of the arguments; public in, public out."""
        norm = self._declared_norm()
        loss = self._make_loss(norm, max_weight)
        if math.isinf(loss.curve.max_slope):
            raise CalibrationError(
                f"{type(loss).__name__} has no worst case at any noise: its slope is unbounded. "
                f"Fit it with plan=expost.calibrate(loss={getattr(self, 'loss', loss)!r}, sigma=..., l2=..., "
                "norm=..., fit_intercept=True), or choose loss='pseudo_huber'."
            )
        columns = n_features + bool(self.fit_intercept)
        report = check_choice("report", self.report, REPORT_KINDS)
        return calibrate(
            loss=loss,
            max_weight=max_weight,
            norm=norm,
            epsilon=self.epsilon,
            delta=self.delta,
            l2=self.l2,
            report=self.report,
            fit_intercept=bool(self.fit_intercept),
            calibration=self.calibration,
            reduced=loss.outputs > 1 and default_reduced(loss, report, columns),
            unit=self._planned_unit,
            recalibrate=bool(getattr(self, "recalibrate", False)),
        )

    def _declared_norm(self) -> float:
        """The largest norm of a row, as declared, or the default with a warning."""
        if self.domain is not None:
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

    @property
    def _person(self) -> str | None:
        """The column of people that a domain declares."""
        return None if self.domain is None else self.domain.person

    @property
    def _planned_unit(self) -> UnitName:
        """Whom a plan of the arguments promises to."""
        return "row" if self._person is None and self.unit == "row" else "person"

    def _check_people(self, plan: Plan, groups: Any) -> None:
        """Refuse a fit for people without their ids, and ids without such a fit."""
        check_people(plan, groups)

    @property
    def _label_of_fit(self) -> Label | None:
        """What is declared about the outcome, but for classes without a domain."""
        return self._outcome if self.domain is None else self.domain.label

    @property
    def _intercepts(self) -> int:
        """How many of the coefficients are intercepts, which come last."""
        return intercept_count(self._label_of_fit, fit_intercept=bool(self.fit_intercept))

    @property
    def _declared(self) -> dict[str, Any]:
        """What is declared about the records, in the words of encoding and publishing."""
        return {
            "classes": self._labels,
            "domain": self.domain,
            "weighting": self._weighting,
            "outcome": self._outcome,
        }

    @property
    def _width(self) -> int:
        """The number of encoded columns."""
        return self.n_features_in_ if self.domain is None else len(self.domain.column_names)

    @property
    def _names(self) -> Sequence[str] | None:
        """The names of the encoded columns, where they have any."""
        names: Sequence[str] | None = getattr(self, "feature_names_in_", None)
        return names if self.domain is None else self.domain.column_names

    def _declared_for(self, table: LazyTable | Opened, plan: Plan, **other: Any) -> Declared:
        """What is declared about the records of a table: that of the fit, but for what is other."""
        if isinstance(table, LazyTable):  # scikit-learn checks the columns of other tables
            other |= {"n_features": self._width, "feature_names": self._names}
        return Declared.of(plan, **self._declared | other)

    def _check_names(self, X: Any, *, reset: bool = False) -> None:
        """Store the columns of a table in memory, or refuse those that are not the fit's."""
        if self.domain is None:
            validate_data(self, table_of(X), reset=reset, skip_check_array=True)

    def _set_columns(self, lazy: LazyTable, y: Any, sample_weight: Any, groups: Any) -> None:
        """Store the names of the columns. Where no domain is declared, classes are, and cells are numbers."""
        check_column_names(y, sample_weight, groups)
        if self.domain is not None:
            return
        if getattr(self, "classes", ()) is None:
            raise parameter_error("classes", "declared for files and Dask frames", None, "Or use a domain.")
        names = names_of_numbers(lazy, label=y, weight=sample_weight, person=groups)
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)

    def _records(self, X: Any, y: Any, sample_weight: Any, groups: Any = None, **other: Any) -> Encoded:
        """Records with their labels and weights, encoded as those of the fit were but for what is other."""
        domain = other.get("domain", self.domain)
        X, y, sample_weight, groups = with_columns(X, y, sample_weight, groups, domain)
        table = self._opened(X)
        declared = self._declared_for(table, self.plan_, **other)
        return encode_records(table, y, declared, sample_weight, groups)

    def _rows(self, X: Any) -> Encoded:
        """Rows without labels, encoded as those of the fit were."""
        table = self._opened(X)
        return encode_rows(table, self._declared_for(table, self.plan_))

    def _opened(self, X: Any) -> LazyTable | Opened:
        """A table with the columns of the fit."""
        table = opened(X, self.domain)
        if not isinstance(table, LazyTable):
            self._check_names(X)
        return table

    def _linear_predictor(self, X: Any) -> FloatArray:
        """The linear predictor of each record, scaled into the ball as the table was."""
        check_is_fitted(self)
        scores: FloatArray = self._recalibrated(linear_predictor(self._rows(X), self._coefficients()))
        return scores

    def _scored(self, X: Any, y: Any, sample_weight: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Linear predictors, labels on the loss's scale, and sample weights; from whatever ``fit`` takes."""
        check_is_fitted(self)
        domain = None if self.domain is None else self.domain.without_people
        weighting = Weighting(max_weight=math.inf)
        records = self._records(X, y, sample_weight, weighting=weighting, domain=domain, unit="row")
        scores, labels, weights = scored(records, self._coefficients())
        return self._recalibrated(scores), labels, weights

    def _recalibrated(self, scores: Any) -> Any:
        """Scores as the numbers that were published after the model read them, where there are some."""
        return scores if self.calibration_curve_ is None else self.calibration_curve_.corrected(scores)

    def _coefficients(self) -> FloatArray:
        """One column for each class, or a vector; with the intercept last."""
        theta = np.atleast_2d(self.coef_)
        if self.plan_.fit_intercept:
            intercepts = np.ravel(self.intercept_)
            theta = np.column_stack([np.broadcast_to(theta, (len(intercepts), theta.shape[1])), intercepts])
        return theta.T if len(theta) > 1 else theta[0]
