"""The base class of the binary classifiers."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import type_of_target

from expost._common.typing import FloatArray
from expost._common.validation import parameter_error
from expost.data.encoding import one_label_per_row
from expost.data.features import ClassLabel
from expost.data.values import untold
from expost.estimators.base import PrivateGLM
from expost.exceptions import DomainError, PrivacyLeakWarning


class BinaryClassifier(ClassifierMixin, PrivateGLM):  # type: ignore[misc]
    """A private linear classifier of two declared classes."""

    classes: Sequence[Any] | None

    def decision_function(self, X: Any) -> FloatArray:
        """The linear predictor; positive for the second class."""
        return self._linear_predictor(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The more likely class of each record."""
        second = self.decision_function(X) > 0.0
        predicted: NDArray[Any] = self.classes_[second.astype(int)]
        return predicted

    def _set_classes(self, y: Any) -> None:
        labels = one_label_per_row(y)
        if self.domain is not None:
            if not isinstance(self.domain.label, ClassLabel):
                raise parameter_error("domain", "one whose label has two classes", self.domain.label.kind)
            # In the order of the declaration: positive scores predict the second class.
            self.classes_ = np.array(self.domain.label.classes)
            return
        self.classes_ = _inferred(labels) if self.classes is None else _declared(self.classes)

    def _set_coefficients(self, weights: FloatArray, intercept: float) -> None:
        self.coef_ = weights[None, :].copy()
        self.intercept_ = np.array([intercept])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _declared(classes: Sequence[Any]) -> NDArray[Any]:
    try:
        unique = np.unique(np.asarray(classes))
    except (TypeError, ValueError):
        unique = np.empty(0)
    if len(unique) != 2:
        raise parameter_error("classes", "two different labels", classes)
    return unique


def _kind(labels: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """The kind of target and its labels; scikit-learn's own errors would quote labels."""
    with untold():
        return type_of_target(labels, input_name="y"), np.unique(labels)
    return "unknown", labels[:0]


def _inferred(labels: NDArray[Any]) -> NDArray[Any]:
    if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
        raise DomainError("`y` must be finite; it contains NaN or infinity.")
    kind, classes = _kind(labels)
    if kind == "unknown":
        raise DomainError("Unknown label type: `y` must hold texts or numbers of one kind.")
    if kind != "binary":
        raise DomainError(f"Only binary classification is supported. The type of the target is {kind}.")
    if len(classes) < 2:
        raise DomainError("`y` has only one class; declare both with `classes` if that is meant.")
    warnings.warn(
        "the class labels were learnt from the table, which the guarantee does not cover; declare them "
        "with `classes`.",
        PrivacyLeakWarning,
        stacklevel=4,
    )
    return classes
