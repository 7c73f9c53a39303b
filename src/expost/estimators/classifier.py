"""The base class of the classifiers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import type_of_target

from expost._common.namespaces import on_host
from expost._common.typing import FloatArray
from expost._common.validation import parameter_error, warn_caller
from expost.data.features import ClassLabel
from expost.data.labels import one_label_per_row
from expost.data.values import of_one_kind, untold
from expost.estimators.base import PrivateGLM
from expost.exceptions import DomainError, PrivacyLeakWarning
from expost.fitting.prediction import likeliest


class LinearClassifier(ClassifierMixin, PrivateGLM):  # type: ignore[misc]
    """A private linear classifier of declared classes: two, or more where the estimator takes them."""

    classes: Sequence[Any] | None
    class_weight: Mapping[Any, float] | None

    def _most_classes(self) -> int | None:
        """How many classes the estimator takes at most; None for any number."""
        return 2

    def decision_function(self, X: Any) -> FloatArray:
        """The linear predictor, positive for the second class; or the score of each of several classes."""
        return self._linear_predictor(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most likely class of each record."""
        return likeliest(self.decision_function(X), self.classes_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of records whose most likely class is theirs.

        Parameters
        ----------
        X, y
            Records and labels, in any form that :meth:`fit` takes. A label that was not declared is refused.
        sample_weight
            What each record counts; of files the name of its column.

        Privacy
        -------
        Private: computed from people's records without noise.
        """
        scores, labels, weights = self._scored(X, y, sample_weight)
        assert self._labels is not None
        values = np.array(self.plan_.loss.labels.values)
        if scores.ndim == 2:
            values = values[np.argsort(self._labels)]  # in the order of `classes_`
        return float(np.average(likeliest(scores, values) == labels, weights=weights))

    def _set_label(self, y: Any) -> None:
        labels = one_label_per_row(y)
        if self.domain is not None:
            if not isinstance(self.domain.label, ClassLabel):
                raise parameter_error("domain", "one whose label has classes", self.domain.label.kind)
            most = self._most_classes()
            if most is not None and len(self.domain.label.classes) > most:
                found = f"{len(self.domain.label.classes)} classes"
                raise parameter_error("domain", f"one whose label has {most} classes", found)
            if self.classes is not None:
                raise parameter_error("classes", "None with a domain, which declares them", self.classes)
            # In the order of the declaration: of two, positive scores predict the second class.
            self._labels = np.array(self.domain.label.classes)
        elif self.classes is None:
            self._labels = _inferred(on_host(labels), several=self._most_classes() is None)
        else:
            self._labels = _declared(self.classes, several=self._most_classes() is None)
        # scikit-learn's scores take the columns of more than two classes to be in sorted order.
        self.classes_ = self._labels if len(self._labels) == 2 else np.sort(self._labels)

    def _set_coefficients(self, weights: FloatArray, intercepts: FloatArray) -> None:
        assert self._labels is not None
        order = np.argsort(self._labels) if len(weights) > 1 else slice(None)
        self.coef_, self.intercept_ = weights[order], intercepts[order]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._most_classes() is None
        return tags


def _declared(classes: Sequence[Any], *, several: bool) -> NDArray[Any]:
    try:
        unique = np.unique(np.asarray(classes)) if of_one_kind(classes) else np.empty(0)
    except (TypeError, ValueError):
        unique = np.empty(0)
    if not 2 <= len(unique) == np.size(classes) or (len(unique) > 2 and not several):
        wanted = "two or more different labels" if several else "two different labels"
        raise parameter_error("classes", f"{wanted} of one kind: texts, numbers or booleans", classes)
    return unique


def _kind(labels: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """The kind of target and its labels; scikit-learn's own errors would quote labels."""
    with untold():
        return type_of_target(labels, input_name="y"), np.unique(labels)
    return "unknown", labels[:0]


def _inferred(labels: NDArray[Any], *, several: bool) -> NDArray[Any]:
    if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
        raise DomainError("`y` must be finite; it contains NaN or infinity.")
    if labels.dtype.kind == "c":
        raise DomainError("Complex data not supported; `y` must hold texts or numbers of one kind.")
    kind, classes = _kind(labels)
    if kind == "unknown":
        raise DomainError("Unknown label type: `y` must hold texts or numbers of one kind.")
    if kind not in (("binary", "multiclass") if several else ("binary",)):
        if several:
            raise DomainError(
                f"Unknown label type: {kind}. `y` must hold classes; declare them with `classes`."
            )
        raise DomainError(f"Only binary classification is supported. The type of the target is {kind}.")
    if len(classes) < 2:
        raise DomainError("`y` has only one class; declare both with `classes` if that is meant.")
    warn_caller(
        "the class labels were learnt from the table, which the guarantee does not cover; declare them "
        "with `classes`.",
        PrivacyLeakWarning,
    )
    return classes
