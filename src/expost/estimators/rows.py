"""Private models in which a record is several rows of one person: ordered classes, and times to an event."""

import operator
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from expost._common.namespaces import on_host
from expost._common.typing import FloatArray
from expost._common.validation import UnitName, check_positive, parameter_error
from expost.data.labels import OrderedLabel, RowsLabel, TimeLabel
from expost.data.lazy import LazyTable
from expost.estimators.base import PrivateGLM
from expost.estimators.planned import label_error
from expost.exceptions import ParameterError
from expost.fitting.prediction import concordance
from expost.losses import AnyLoss, LogisticLoss
from expost.privacy.plan import Plan, row_radius
from expost.privacy.shapes import classification_loss


@dataclass(kw_only=True, eq=False, repr=False)
class RowsModel(PrivateGLM):
    """Logistic regression of the rows that an outcome makes of a record: its person has one record."""

    cap: float | str | None = None

    _losses: ClassVar = (LogisticLoss,)
    _of_loss: ClassVar = ("cap",)
    _promised_to: ClassVar = "row"
    _kind: ClassVar[type[RowsLabel]]
    """What a domain must declare."""

    @property
    def _planned_unit(self) -> UnitName:
        return "person"

    def _check_people(self, plan: Plan, groups: Any) -> None:
        """Ids are refused where records are encoded."""

    def _given_plan(self) -> Plan | None:
        for name, wanted in (("fit_intercept", True), ("rows_per_person", None)):
            if getattr(self, name) != wanted:
                way_out = "Every record is one person, and each of her rows has an intercept."
                raise parameter_error(name, repr(wanted), getattr(self, name), way_out)
        plan = super()._given_plan()
        if plan is not None and plan.unit != "person":
            raise ParameterError(
                f"`plan` must be made with unit='person' for {type(self).__name__}, in which a record is "
                "several rows of one person."
            )
        return plan

    def _of_domain(self, name: str, given: Any) -> Any:
        """The label that the domain declares; refused where it is of another kind, or declared twice."""
        assert self.domain is not None
        label = self.domain.label
        if not isinstance(label, self._kind):
            raise label_error(f"kind={self._kind.model_fields['kind'].default!r}", label)
        if given is not None:
            raise parameter_error(name, "None with a domain, which declares it", given)
        return label

    def _set_coefficients(self, weights: FloatArray, intercepts: FloatArray) -> None:
        label = self._label_of_fit
        assert isinstance(label, RowsLabel)
        self.coef_, self.intercept_ = weights[0].copy(), label.settled(intercepts)

    def _make_loss(self, norm: float, max_weight: float) -> AnyLoss:
        radius = row_radius(check_positive("norm", norm), fit_intercept=True)
        l2 = None if self.l2 is None else check_positive("l2", self.l2) / max_weight
        return classification_loss(2, self.epsilon, self.delta, cap=self.cap, l2=l2, radius=radius)


@dataclass(kw_only=True, eq=False, repr=False)
class OrdinalRegression(ClassifierMixin, RowsModel):  # type: ignore[misc]
    r"""Logistic regression of classes that have an order, released once with differential privacy.

    .. math:: P(y > k \mid x) = \frac{1}{1 + e^{-(x^\top\beta + \alpha_k)}} \quad (1 \le k < K)

    One vector of coefficients for all steps, and an intercept for each (the all-threshold form): a record is
    :math:`K - 1` rows :math:`(x, e_k)` of weight :math:`1/(K - 1)`, and the promise is to the person with all
    of them.

    Parameters
    ----------
    classes
        The classes from the lowest to the highest, three or more: declared, here or with a domain whose label
        has ``kind = "ordered"``.
    cap
        As in :class:`expost.LogisticRegression`, for each row.
    epsilon, delta, models, report, calibration, plan, norm, max_weight, domain, l2, l1, coef_bounds
        As in :class:`expost.LogisticRegression`; docs/reference/models.md describes all arguments in full.
    unit, rows_per_person, fit_intercept, random_state, verbose
        As there, but a record is always one person, and there are always intercepts.

    Attributes
    ----------
    coef_
        One for each feature: positive where larger values go with higher classes.
    intercept_
        One for each class but the last, in falling order: published ones that are not are sorted.
    classes_
        As declared.
    plan_, publication_, insecure_
        As in :class:`expost.LogisticRegression`.

    Notes
    -----
    **Privacy.** Every ``fit`` spends the budget again. ``score`` is the share of records that are predicted
    exactly, as in scikit-learn's classifiers.

    Examples
    --------
    >>> import numpy as np, expost
    >>> X = np.linspace(-1.0, 1.0, 6001)[:, None]
    >>> pain = np.array(["none", "mild", "severe"])[np.digitize(X[:, 0], [-0.3, 0.4])]
    >>> model = expost.OrdinalRegression(norm=1.0, classes=["none", "mild", "severe"]).fit(X, pain)
    >>> model.predict([[-0.9], [0.9]])
    array(['none', 'severe'], dtype='<U6')
    """

    classes: Sequence[Any] | None = None

    _kind: ClassVar = OrderedLabel

    def decision_function(self, X: Any) -> FloatArray:
        """The logarithm of the odds to be above each class but the last, a column for each."""
        return self._linear_predictor(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """The probability of each class, in the order of ``classes_``."""
        label = self._label_of_fit
        scores = self.decision_function(X)
        assert isinstance(label, OrderedLabel)
        return label.probabilities(scores)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of records whose predicted class is theirs; each counts with its sample weight.

        Records come in any form that :meth:`fit` takes. A label that was not declared is refused.

        Privacy
        -------
        Private: computed from people's records without noise.
        """
        scores, labels, weights = self._scored(X, y, sample_weight)
        return float(np.average(np.count_nonzero(scores > 0.0, axis=1) == labels, weights=weights))

    def _set_label(self, y: Any) -> None:
        if self.domain is not None:
            label = self._of_domain("classes", self.classes)
        else:
            label = self._outcome = self._ordered()
        self._labels = self.classes_ = np.array(label.classes)

    def _ordered(self) -> OrderedLabel:
        """The declared classes as a label, or ParameterError."""
        with suppress(TypeError, ValueError):  # pydantic's errors are ValueErrors
            return OrderedLabel(name="outcome", classes=self.classes)  # type: ignore[arg-type]
        wanted = "three or more different classes from the lowest to the highest, all of one kind"
        way_out = "A set has no order: give a list, the lowest first. " * isinstance(
            self.classes, set | frozenset
        )
        way_out += "Or give a `domain` (expost.Domain). Never read them from the table."
        raise parameter_error("classes", f"declared: {wanted}", self.classes, way_out)


@dataclass(kw_only=True, eq=False, repr=False)
class SurvivalRegression(RegressorMixin, RowsModel):  # type: ignore[misc]
    r"""The time to an event that may not be seen, in declared periods, released once with privacy.

    .. math:: P(T = t \mid T \ge t, x) = \frac{1}{1 + e^{-(x^\top\beta + \alpha_t)}} \quad (1 \le t \le m)

    The discrete-time model of hazards: a record is a row :math:`(x, e_t)` for every period in which the event
    could still have been seen, each of weight :math:`1/m` whatever came of it, and the promise is to the
    person with all of them. Cox's partial likelihood is no sum over people (docs/libraries.md).

    Parameters
    ----------
    periods
        How many periods there are, from 2 to 60: declared, here or with a domain whose label has
        ``kind = "time"``. What happens after the last one counts as not seen.
    length
        The length of a period in the unit of the times.
    cap, epsilon, delta, models, report, calibration, plan, norm, max_weight, domain, l2, l1, coef_bounds
        As in :class:`expost.OrdinalRegression`; docs/reference/models.md describes all arguments in full.
    unit, rows_per_person, fit_intercept, random_state, verbose
        As there: a record is one person.

    Attributes
    ----------
    coef_
        One for each feature: positive where the event comes sooner with larger values.
    intercept_
        One for each period.
    plan_, publication_, insecure_
        As in :class:`expost.LogisticRegression`.

    Notes
    -----
    ``y`` has two columns, the time and whether the event happened then; else the record was followed to that
    time without it. A structured array with a field of truth values will do as well. A period that a record
    was followed through in part only is left out, unless the event is in it.

    **Privacy.** Every ``fit`` spends the budget again. ``score`` is the concordance, as in scikit-survival:
    0.5 is chance.

    Examples
    --------
    >>> import numpy as np, expost
    >>> X = np.linspace(-1.0, 1.0, 4001)[:, None]
    >>> months = np.ceil(6.0 - 5.0 * X[:, 0])
    >>> y = np.column_stack([np.minimum(months, 9.0), months <= 9.0])
    >>> model = expost.SurvivalRegression(periods=9, norm=1.0).fit(X, y)
    >>> early, late = model.predict([[0.9], [-0.9]])
    >>> bool(early < 4.0 < 7.0 < late)
    True
    """

    periods: int | None = None
    length: float = 1.0

    _kind: ClassVar = TimeLabel

    def predict_survival(self, X: Any) -> FloatArray:
        """The probability that the event has not happened by the end of each period, a column for each."""
        label, scores = self._label_of_fit, on_host(self._linear_predictor(X))
        assert isinstance(label, TimeLabel)
        return label.survival(scores)

    def predict(self, X: Any) -> Any:
        """The mean time without the event within the declared periods, in the unit of the times.

        An event counts in the middle of its period.
        """
        return super().predict(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Harrell's concordance; each record counts with its sample weight.

        Of two records of which one is known to have had the event first, how often the model says so. Records
        come in any form that :meth:`fit` takes.

        Privacy
        -------
        Private: computed from people's records without noise.
        """
        scores, codes, weights = self._scored(X, y, sample_weight)
        label = self._label_of_fit
        assert isinstance(label, TimeLabel)
        found = concordance(label.predicted(scores), codes, weights)
        return float("nan") if found is None else found

    def _set_label(self, y: Any) -> None:
        if self.domain is not None:
            self._of_domain("periods", self.periods)
            if self.length != 1.0:
                raise parameter_error("length", "left out with a domain, which declares it", self.length)
        else:
            self._outcome = self._declared_periods()

    def _declared_periods(self) -> TimeLabel:
        """The declared periods as a label, or ParameterError."""
        with suppress(TypeError, ValueError):  # pydantic's errors are ValueErrors
            periods, length = operator.index(self.periods), float(self.length)  # type: ignore[arg-type]
            return TimeLabel(name="outcome", event="event", periods=periods, length=length)
        wanted = "declared: a whole number of periods from 2 to 60, and their `length` above 0"
        way_out = "Or give a `domain` (expost.Domain). Never read them from the table."
        raise parameter_error("periods", wanted, (self.periods, self.length), way_out)

    def _set_columns(self, lazy: LazyTable, y: Any, sample_weight: Any, groups: Any) -> None:
        if self.domain is None:
            wanted = "given for files and Dask frames: it names the columns of the time and of the event"
            raise parameter_error("domain", wanted, None)
        super()._set_columns(lazy, y, sample_weight, groups)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.regressor_tags.poor_score = True
        return tags
