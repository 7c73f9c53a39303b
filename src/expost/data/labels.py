"""Labels as the loss accepts them."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._common.namespaces import is_foreign, namespace_of, on_host
from expost._common.typing import FloatArray
from expost._common.validation import warn_caller
from expost.data.features import ClassLabel, Label, NumberLabel
from expost.data.values import as_numbers, class_places, distinct_cells, plain_class, untold
from expost.exceptions import DomainError
from expost.losses import AnyLoss

# Of more declared classes a message names only the first.
_MOST_NAMES = 12


def one_label_per_row(y: Any) -> NDArray[Any]:
    """Return labels as a vector; errors say nothing about their values."""
    if y is None:
        raise DomainError("this estimator requires y to be passed, but the target y is None.")
    labels: NDArray[Any] = np.empty((0, 0))
    with untold():
        labels = y if is_foreign(y) else np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warn_caller("A column-vector y was passed when a 1d array was expected.", DataConversionWarning)
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise DomainError("y should be a 1d array with one label per row.")
    return labels


def encode_labels(
    y: Any,
    *,
    loss: AnyLoss,
    classes: Sequence[Any] | NDArray[Any] | None,
    rows: int,
    label: Label | None = None,
) -> FloatArray:
    """Turn the labels of ``rows`` records into the numbers that the loss accepts.

    With ``classes``, the first becomes the loss's first label, the second its second, and so on
    (:func:`~expost.data.values.class_places`). ``label`` is what is declared about the outcome, where
    something is: a number is clipped to its bounds and scaled.

    Privacy
    -------
    An error names the declared classes or the loss's label set, never a label of the table or a count.
    """
    labels = one_label_per_row(y)
    if labels.shape[0] != rows:
        raise DomainError(
            "`X` and `y` must have one label per row; they have inconsistent numbers of samples."
        )
    numeric = classes is None or np.asarray(classes).dtype.kind in "fiub"
    if is_foreign(labels) and numeric and not isinstance(label, ClassLabel):
        numbers: FloatArray = _placed_numbers(labels, loss, classes, label)
        return numbers
    return label_numbers(on_host(labels), loss=loss, classes=classes, label=label)


def _placed_numbers(
    labels: Any, loss: AnyLoss, classes: Sequence[Any] | NDArray[Any] | None, label: NumberLabel | None
) -> Any:
    """The same for labels of another library, which stay where they lie."""
    xp = namespace_of(labels)
    if xp.isdtype(labels.dtype, "bool"):
        labels = xp.astype(labels, xp.uint8)
    if classes is None:
        return _accepted(xp.astype(labels, xp.float64, copy=False), loss, label)
    values = loss.labels.values
    assert values is not None
    whole = xp.isdtype(labels.dtype, "integral")
    numbers = xp.full_like(labels, math.nan, dtype=xp.float64)
    for one, value in zip(np.asarray(classes).tolist(), values, strict=True):
        if whole and one != int(one):
            continue  # no whole number is equal to it
        hits = labels == (int(one) if whole else float(one))
        numbers = xp.where(hits, xp.full_like(numbers, value), numbers)
    if bool(xp.any(xp.isnan(numbers))):
        raise _outside(classes, None)
    return numbers


def label_numbers(
    labels: Any,
    *,
    loss: AnyLoss,
    classes: Sequence[Any] | NDArray[Any] | None,
    label: Label | None = None,
    typed: bool = True,
) -> FloatArray:
    """The same for a column of labels, NumPy's or Arrow's; without types, texts may spell numbers."""
    if classes is None:
        return _accepted(as_numbers(labels, "y"), loss, label)
    values = loss.labels.values
    assert values is not None
    places, cells = distinct_cells(labels)
    found = class_places(cells.tolist(), list(classes), typed=typed)
    if np.any(found < 0):
        raise _outside(classes, label, typed=typed)
    numbers: FloatArray = np.array(values, dtype=np.float64)[found][places]
    return numbers


def _outside(
    classes: Sequence[Any] | NDArray[Any], label: Label | None, *, typed: bool = True
) -> DomainError:
    """The error for labels that were not declared; the caller raises it."""
    names = [repr(plain_class(one)) for one in classes]
    listed = ", ".join(names[:_MOST_NAMES]) + (
        f", … ({len(names)} in all)" if len(names) > _MOST_NAMES else ""
    )
    texts = isinstance(classes[0], str)
    rules = ["spelling and case count"] * texts
    if typed:
        rules.append("a number is no text" if texts else "a text is no number")
    ruled = f"; {' and '.join(rules)}" if rules else ""
    if label is None:
        return DomainError(
            f"`y` has labels outside the declared classes {{{listed}}}{ruled}. Recode them, or declare "
            "others with `classes`."
        )
    return DomainError(
        f"`{label.name}` has a value outside the declared classes {{{listed}}}{ruled}. Recode it, or declare "
        "it in the domain."
    )


def _accepted(numbers: FloatArray, loss: AnyLoss, label: Label | None) -> FloatArray:
    """Numbers on the scale of the fit, or DomainError for those that the loss does not accept."""
    xp = namespace_of(numbers)
    finite = bool(xp.all(xp.isfinite(numbers)))  # a missing label is none; no clipping may make it one
    if isinstance(label, NumberLabel):
        numbers = label.scaled(numbers)
    if not finite or not bool(xp.all(loss.labels.contains(numbers))):
        raise DomainError(
            f"`y` has labels outside {loss.labels}, the set that {type(loss).__name__} accepts."
        )
    return numbers
