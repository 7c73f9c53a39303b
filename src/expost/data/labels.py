"""Labels as the loss accepts them."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._common.namespaces import is_foreign, namespace_of, on_host
from expost._common.typing import FloatArray
from expost.data.domain import Domain
from expost.data.values import as_numbers, distinct_texts, untold
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

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected.", DataConversionWarning, stacklevel=4
        )
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
    domain: Domain | None = None,
) -> FloatArray:
    """Turn the labels of ``rows`` records into the numbers that the loss accepts.

    With ``classes``, the first becomes the loss's first label, the second its second, and so on. A numeric
    outcome that a domain declares is clipped and scaled by the domain.

    Privacy
    -------
    An error names the declared classes or the loss's label set, never a label of the table or a count.
    """
    labels = one_label_per_row(y)
    if labels.shape[0] != rows:
        raise DomainError(
            "`X` and `y` must have one label per row; they have inconsistent numbers of samples."
        )
    if (
        domain is None
        and is_foreign(labels)
        and (classes is None or np.asarray(classes).dtype.kind in "fiub")
    ):
        numbers: FloatArray = _placed_numbers(labels, loss, classes)
        return numbers
    return label_numbers(on_host(labels), loss=loss, classes=classes, domain=domain)


def _placed_numbers(labels: Any, loss: AnyLoss, classes: Sequence[Any] | NDArray[Any] | None) -> Any:
    """The same for labels of another library, which stay where they lie."""
    xp = namespace_of(labels)
    if xp.isdtype(labels.dtype, "bool"):
        labels = xp.astype(labels, xp.uint8)
    if classes is None:
        numbers = xp.astype(labels, xp.float64, copy=False)
        if not bool(xp.all(loss.labels.contains(numbers))):
            raise _outside_loss_error(loss)
        return numbers
    values = loss.labels.values
    assert values is not None
    whole = xp.isdtype(labels.dtype, "integral")
    numbers = xp.full_like(labels, math.nan, dtype=xp.float64)
    for label, value in zip(np.asarray(classes).tolist(), values, strict=True):
        if whole and label != int(label):
            continue  # no whole number is equal to it
        hits = labels == (int(label) if whole else float(label))
        numbers = xp.where(hits, xp.full_like(numbers, value), numbers)
    if bool(xp.any(xp.isnan(numbers))):
        raise _outside(classes, None)
    return numbers


def label_numbers(
    labels: Any,
    *,
    loss: AnyLoss,
    classes: Sequence[Any] | NDArray[Any] | None,
    domain: Domain | None = None,
) -> FloatArray:
    """The same for a column of labels, NumPy's or Arrow's."""
    if classes is None:
        return _encode_numbers(labels, loss, domain)
    values = loss.labels.values
    assert values is not None
    places: NDArray[Any] | slice = slice(None)
    if domain is not None:
        places, labels = distinct_texts(labels, "y")
    encoded: FloatArray | None = None
    with untold():
        numbers = np.full(len(labels), np.nan)
        for label, value in zip(classes, values, strict=True):
            numbers[np.asarray(labels == label, dtype=bool)] = value
        encoded = None if np.any(np.isnan(numbers)) else numbers[places]
    if encoded is None:
        raise _outside(classes, domain)
    return encoded


def _outside(classes: Sequence[Any] | NDArray[Any], domain: Domain | None) -> DomainError:
    """The error for labels that were not declared; the caller raises it."""
    names = [repr(getattr(label, "item", lambda label=label: label)()) for label in classes]
    listed = ", ".join(names[:_MOST_NAMES]) + (
        f", … ({len(names)} in all)" if len(names) > _MOST_NAMES else ""
    )
    if domain is None:
        return DomainError(
            f"`y` has labels outside the declared classes {{{listed}}}. Recode them, or declare others with "
            "`classes`."
        )
    return DomainError(
        f"`{domain.label.name}` has a value outside the declared classes {{{listed}}}; spelling and case "
        "count. Recode it, or declare it in the domain."
    )


def _encode_numbers(labels: Any, loss: AnyLoss, domain: Domain | None) -> FloatArray:
    numbers = as_numbers(labels, "y")
    finite = np.all(np.isfinite(numbers))  # a missing label is none; no clipping may make it one
    if domain is not None:
        numbers = domain.scale_outcome(numbers)
    if not finite or not np.all(loss.labels.contains(numbers)):
        raise _outside_loss_error(loss)
    return numbers


def _outside_loss_error(loss: AnyLoss) -> DomainError:
    """The error for numbers that the loss does not accept; the caller raises it."""
    return DomainError(f"`y` has labels outside {loss.labels}, the set that {type(loss).__name__} accepts.")
