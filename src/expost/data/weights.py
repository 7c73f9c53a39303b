"""What is declared about records, and the label and the weight of each as the loss takes them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expost._common.namespaces import Space, is_foreign, namespace_of, on_host
from expost._common.typing import FloatArray
from expost._common.validation import check_count, check_positive, parameter_error, warn_caller
from expost.data.design import Design, labels_error
from expost.data.domain import MOST_ROWS, Domain
from expost.data.labels import Label, NumericLabel, RowsLabel, TimeLabel
from expost.data.values import (
    as_numbers,
    attempted,
    class_places,
    distinct_cells,
    is_absent,
    no_outcome_error,
    plain_class,
)
from expost.exceptions import DomainError, ParameterError
from expost.losses import AnyLoss, LabelSet
from expost.privacy.calibration import LARGEST_WEIGHT
from expost.privacy.plan import Plan


@dataclass(frozen=True)
class Weighting:
    r"""How records are weighted: declared, never learnt from a table.

    A record of class :math:`y` and sample weight :math:`s` has the weight :math:`\omega = c_y s`, and the
    loss :math:`\omega f`. Weight 0 is the same as no record.

    Privacy
    -------
    Public. The weight of a record is as private as the record, of which it is a part.
    """

    max_weight: float | None = None
    """The largest sample weight; None where records have none of their own."""
    class_weight: tuple[float, ...] | None = None
    """The weight of each class, in the order of the classes; None where there are none."""
    otherwise: float = 1.0
    """The sample weight of records for which none is given."""
    rows_per_person: int | None = None
    """Rows of a person weigh one divided by their number, or by this number where that is larger."""

    @classmethod
    def declared(
        cls, max_weight: Any, class_weight: Any, *, of_records: bool, rows: int | None = None
    ) -> Self:
        """Check what was declared; ``of_records`` says whether records have weights of their own."""
        most = check_positive("max_weight", max_weight)
        if not 1.0 <= most <= LARGEST_WEIGHT:
            limits = f"between 1 and {LARGEST_WEIGHT:g}"
            raise parameter_error("max_weight", limits, max_weight, "Scale the weights by a constant.")
        kept = most if of_records or most > 1.0 else None
        by_class = None if class_weight is None else _class_weights(class_weight)
        return cls(kept, by_class, rows_per_person=rows)

    @classmethod
    def planned(
        cls, plan: Plan, max_weight: float, class_weight: Any, *, of_records: bool, rows: int | None = None
    ) -> Self:
        """Check what was declared against a plan, which says the largest weight where nothing else does."""
        weighting = cls.declared(max_weight, class_weight, of_records=of_records, rows=rows)
        if max_weight == 1.0:  # nothing was declared
            most = max(1.0, plan.max_weight / weighting.largest)
            weighting = cls.declared(most, class_weight, of_records=of_records, rows=rows)
        if weighting.largest != plan.max_weight:
            raise ParameterError(
                f"`plan` must be made for max_weight={weighting.largest:g}, the largest weight of a record "
                f"with its class; this one is for max_weight={plan.max_weight:g}."
            )
        return weighting

    def for_classes(self, class_weight: Any, classes: Sequence[Any] | NDArray[Any]) -> "Weighting":
        """A weighting with the weight of each class in the order of the classes, which must all be named."""
        if class_weight is None:
            return self
        labels = [plain_class(label) for label in classes]
        lacking = [repr(label) for label in labels if label not in class_weight]
        strange = [repr(label) for label in class_weight if label not in labels]
        if lacking or strange:
            said = ("is no class", "are no classes")[len(strange) > 1]
            problems = [f"it lacks {', '.join(lacking)}"] * bool(lacking)
            problems += [f"{', '.join(strange)} {said}"] * bool(strange)
            wanted = "a weight for each class and for nothing else"
            way_out = f"Of these, {' and '.join(problems)}."
            raise parameter_error("class_weight", wanted, dict(class_weight), way_out)
        return replace(self, class_weight=tuple(float(class_weight[label]) for label in labels))

    @property
    def largest(self) -> float:
        """The largest weight that a record can have."""
        return (self.max_weight or 1.0) * max(self.class_weight or (1.0,))

    @property
    def used(self) -> bool:
        """Whether anything was declared."""
        return (self.max_weight, self.class_weight, self.rows_per_person) != (None, None, None)

    @property
    def unknown(self) -> "Weighting":
        """That of records of unknown sample weights: the largest (docs/mathematics.md, section 14)."""
        return replace(self, otherwise=self.max_weight or 1.0)

    def of(self, sample_weight: Any, labels: FloatArray, loss: AnyLoss) -> FloatArray | None:
        """The weight of each record, from its sample weight and its label; None where all are one.

        Labels are those of :func:`encode_labels` for the loss, whose curve must cover weights below the
        largest. As private as the records; an error names the largest weight and nothing of the table.
        """
        xp = namespace_of(labels)
        weights = None
        if sample_weight is not None:
            weights = self._checked(sample_weight, labels.shape[0])
            if is_foreign(labels):
                weights = Space.of(labels).put(weights)
        elif self.otherwise != 1.0:
            weights = xp.full_like(labels, self.otherwise)
        if self.class_weight is not None:
            by_class = xp.zeros_like(labels)
            for value, weight in zip(loss.labels.values or (), self.class_weight, strict=True):
                by_class = xp.where(labels == value, xp.full_like(labels, weight), by_class)
            weights = by_class if weights is None else weights * by_class
        if weights is not None:
            check_weights_covered(loss)
        return weights

    def _checked(self, sample_weight: Any, rows: int) -> FloatArray:
        most = self.max_weight or 1.0
        given = attempted(lambda: on_host(sample_weight))
        plain = given is not None and given.dtype.kind in "fiubO"
        weights = attempted(lambda: np.asarray(given, dtype=np.float64)) if plain else None
        if weights is None or weights.shape != (rows,):
            raise DomainError("`sample_weight` must be a vector of numbers, one weight per row.")
        if not np.all((weights >= 0.0) & (weights <= most)):
            raise DomainError(
                f"`sample_weight` must be numbers from 0 to max_weight={most:g}, none of them missing. Scale "
                "them by a public constant, or declare a larger `max_weight`."
            )
        return weights


def check_rows_per_person(rows: Any) -> int | None:
    """The number of rows that a person is declared to have, or None for any number."""
    if rows is None:
        return None
    count = check_count("rows_per_person", rows, way_out="None is for any number.")
    if count > MOST_ROWS:
        raise parameter_error("rows_per_person", f"at most {MOST_ROWS:,}", rows, "None is for any number.")
    return count


def check_weights_covered(loss: AnyLoss) -> None:
    """Refuse weights for a loss whose certificate does not cover them."""
    if not loss.curve.ratio_falls:
        raise DomainError(
            f"{type(loss).__name__} does not take weights: its curvature(m)/m rises, so the certificate "
            "does not cover weights below 1. Fit without weights."
        )


def _is_weight(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    return 0.0 <= float(value) <= LARGEST_WEIGHT


def _class_weights(class_weight: Any) -> tuple[float, ...]:
    """The declared weights in any order, or ParameterError."""
    wanted = "a mapping from each class to its weight"
    if isinstance(class_weight, str) and class_weight == "balanced":
        way_out = "Balanced weights count the table's labels, which no budget pays for: declare weights."
        raise parameter_error("class_weight", wanted, class_weight, way_out)
    if not isinstance(class_weight, Mapping) or not class_weight:
        raise parameter_error("class_weight", f"None or {wanted}", class_weight)
    if not all(map(_is_weight, class_weight.values())):
        limits = f"weights between 0 and {LARGEST_WEIGHT:g}"
        raise parameter_error("class_weight", limits, dict(class_weight))
    if not any(class_weight.values()):
        raise parameter_error("class_weight", "above 0 for one class at least", dict(class_weight))
    return tuple(float(weight) for weight in class_weight.values())


UNWEIGHTED = Weighting()
Classes = Sequence[Any] | NDArray[Any] | None
# Of more declared classes a message names only the first.
_MOST_NAMES = 12


def one_label_per_row(y: Any) -> NDArray[Any]:
    """Return labels as a vector; errors say nothing about their values."""
    if y is None:
        raise DomainError("this estimator requires y to be passed, but the target y is None.")
    found: NDArray[Any] | None = attempted(lambda: y if is_foreign(y) else np.asarray(y))
    labels = np.empty((0, 0)) if found is None else found
    if labels.ndim == 2 and labels.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warn_caller("A column-vector y was passed when a 1d array was expected.", DataConversionWarning)
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise DomainError("y should be a 1d array with one label per row.")
    return labels


def _of_times(label: TimeLabel, y: Any, rows: int) -> FloatArray:
    """The codes of times and events."""
    columns = y if isinstance(y, tuple) else _two_columns(y)
    if len(columns) != 2 or any(len(column) != rows for column in columns):
        raise DomainError(
            "`y` must have two columns with one entry per row of `X`: the time, and whether the event "
            "happened."
        )
    return label.coded(*columns)


def _two_columns(y: Any) -> tuple[Any, ...]:
    """Times and events: two columns of an array or a frame, or the fields of an array."""
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names is not None:
        # As scikit-survival has them, in either order: what is true or false is the event.
        return tuple(y[name] for name in sorted(names, key=lambda name: y.dtype[name].kind == "b"))
    table = attempted(lambda: np.asarray(on_host(y) if is_foreign(y) else y))
    return () if table is None or table.ndim != 2 else tuple(table.T)


@dataclass(frozen=True, eq=False)
class Declared:
    """What is declared about records before any of them is read; public."""

    loss: AnyLoss
    norm: float
    intercept: bool
    domain: Domain | None = None
    classes: tuple[Any, ...] | None = None
    """In the order of the loss's labels; None where labels are numbers."""
    outcome: Label | None = None
    """What is declared about the outcome, but for plain classes, where there is no domain."""
    weighting: Weighting = UNWEIGHTED
    unit: str = "row"
    n_features: int | None = None
    feature_names: Sequence[str] | None = None

    @classmethod
    def of(cls, plan: Plan, *, classes: Classes = None, **others: Any) -> Self:
        """What a fit was planned for, and what else is declared."""
        plain = None if classes is None else tuple(map(plain_class, classes))
        return cls(plan.loss, plan.norm, plan.fit_intercept, classes=plain, **{"unit": plan.unit} | others)

    @property
    def label(self) -> Label | None:
        """What is declared about the outcome, where something is."""
        return self.outcome if self.domain is None else self.domain.label

    @property
    def in_rows(self) -> RowsLabel | None:
        """The outcome that makes several rows of a record, where it does."""
        return self.label if isinstance(self.label, RowsLabel) else None

    @property
    def accepted(self) -> LabelSet:
        """The numbers that labels of records become: codes of such an outcome, or what the loss accepts."""
        return self.loss.labels if self.in_rows is None else self.in_rows.codes

    def design(self, n_features: int) -> Design:
        """How rows are scaled into the ball; DomainError where the fit had another number of features."""
        if self.n_features not in (None, n_features):
            raise DomainError(f"`X` must have {self.n_features} features, as in the fit; got {n_features}.")
        return Design(n_features, self.norm, self.intercept)

    @property
    def _label_name(self) -> str:
        """What the outcome is called in an error."""
        return "y" if self.domain is None else self.domain.label.name

    def labels(self, y: Any, rows: int) -> FloatArray:
        """The labels of ``rows`` records as numbers that the loss accepts, where the rows lie.

        Classes become the loss's labels in their order; a number with declared bounds is clipped and scaled.
        An error names the declared classes or the loss's label set, never a label of the table or a count.
        """
        if isinstance(self.label, TimeLabel):
            return _of_times(self.label, y, rows)
        labels = one_label_per_row(y)
        if labels.shape[0] != rows:
            raise DomainError(
                "`X` and `y` must have one label per row; they have inconsistent numbers of samples."
            )
        numeric = self.classes is None or np.asarray(self.classes).dtype.kind in "fiub"
        stay = is_foreign(labels) and numeric and self.domain is None and self.in_rows is None
        return self._placed_labels(labels) if stay else self.column_labels(on_host(labels))

    def column_labels(self, column: Any, *, typed: bool = True) -> FloatArray:
        """The numbers of a column of labels, NumPy's or Arrow's; without types, texts may spell numbers."""
        if self.classes is None:
            return self._accepted(as_numbers(column, self._label_name))
        places, cells = distinct_cells(column)
        found = class_places(cells.tolist(), self.classes, typed=typed)
        wrong = np.flatnonzero(found < 0)
        if len(wrong) and all(is_absent(cell) for cell in cells[wrong].tolist()):
            raise no_outcome_error(self._label_name)
        if len(wrong):
            raise self._undeclared_error(typed=typed)
        return np.asarray(np.array(self.accepted.values, dtype=np.float64)[found][places])

    def _placed_labels(self, labels: Any) -> FloatArray:
        """The numbers of labels of another library, which stay where they lie."""
        xp = namespace_of(labels)
        if xp.isdtype(labels.dtype, "bool"):
            labels = xp.astype(labels, xp.uint8)
        if self.classes is None:
            return self._accepted(xp.astype(labels, xp.float64, copy=False))
        whole = xp.isdtype(labels.dtype, "integral")
        numbers: FloatArray = xp.full_like(labels, math.nan, dtype=xp.float64)
        for one, value in zip(self.classes, self.loss.labels.values or (), strict=True):
            if whole and one != int(one):
                continue  # no whole number is equal to it
            hits = labels == (int(one) if whole else float(one))
            numbers = xp.where(hits, xp.full_like(numbers, value), numbers)
        if bool(xp.any(xp.isnan(numbers))):
            raise self._undeclared_error()
        return numbers

    def _accepted(self, numbers: FloatArray) -> FloatArray:
        """Numbers on the scale of the fit, or DomainError for those that the loss does not accept."""
        xp, loss = namespace_of(numbers), self.loss
        finite = bool(xp.all(xp.isfinite(numbers)))  # a missing label is none; no clipping may make it one
        if isinstance(self.label, NumericLabel):
            numbers = self.label.scaled(numbers)
        if not finite and self.domain is not None:
            raise no_outcome_error(self._label_name)
        if not finite:
            raise DomainError(
                "`y` must be a finite number in every record; it is missing or infinite in one. Fill it in, "
                "or leave the record out."
            )
        if not bool(xp.all(loss.labels.contains(numbers))):
            raise labels_error(loss)
        return numbers

    def _undeclared_error(self, *, typed: bool = True) -> DomainError:
        """The error for labels that are not among the classes; the caller raises it."""
        classes = self.classes or ()
        listed = ", ".join(map(repr, classes[:_MOST_NAMES]))
        listed += f", … ({len(classes)} in all)" if len(classes) > _MOST_NAMES else ""
        texts = isinstance(classes[0], str)
        rules = ["spelling and case count"] * texts
        if typed:
            rules.append("a number is no text" if texts else "a text is no number")
        declared = f"outside the declared classes {{{listed}}}" + f"; {' and '.join(rules)}" * bool(rules)
        if self.label is None:
            return DomainError(f"`y` has labels {declared}. Recode them, or declare others with `classes`.")
        name = self.label.name
        return DomainError(f"`{name}` has a value {declared}. Recode it, or declare it in the domain.")
