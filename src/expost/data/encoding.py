"""Labels as a loss wants them, the curator's and the reader's alike."""

import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from expost._common.typing import FloatArray
from expost.data.domain import Domain, as_texts
from expost.exceptions import DomainError
from expost.losses import Loss


def one_label_per_row(y: Any) -> NDArray[Any]:
    """Labels as a vector, refused without a word about their values."""
    if y is None:
        raise DomainError("this estimator requires y to be passed, but the target y is None.")
    try:
        labels = np.asarray(y)
    except ValueError:
        labels = np.empty((0, 0))
    if labels.ndim == 2 and labels.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected.", DataConversionWarning, stacklevel=4
        )
        labels = labels.ravel()
    if labels.ndim != 1:
        raise DomainError("y should be a 1d array with one label per row.")
    return labels


def encode_labels(
    y: Any,
    *,
    loss: Loss,
    classes: Sequence[Any] | NDArray[Any] | None,
    rows: int,
    domain: Domain | None = None,
) -> FloatArray:
    """Turn the labels of ``rows`` records into the numbers that the loss accepts.

    With ``classes``, the first becomes the loss's first label and the second its second. A numeric outcome
    that a domain declares is clipped and scaled as it says.

    Privacy
    -------
    A refusal names the declared classes or the loss's label set, never a label that was found nor a count.
    """
    labels = one_label_per_row(y)
    if len(labels) != rows:
        raise DomainError(
            "`X` and `y` must have one label per row; they have inconsistent numbers of samples."
        )
    if classes is None:
        numbers: FloatArray | None = None
        if labels.dtype.kind in "fiubOUS":
            with suppress(TypeError, ValueError, OverflowError):  # their messages quote the label
                numbers = labels.astype(np.float64)
        if numbers is None:
            raise DomainError("`y` must hold numbers only; got something else.")
        if domain is not None:
            numbers = domain.scale_outcome(numbers)
        if not np.all(loss.labels.contains(numbers)):
            raise DomainError(
                f"`y` has labels outside {loss.labels}, the set that {type(loss).__name__} accepts."
            )
        return numbers
    if domain is not None:
        labels = as_texts(labels)
    first, second = (labels == label for label in classes)
    if not np.all(first | second):
        names = ", ".join(repr(getattr(label, "item", lambda label=label: label)()) for label in classes)
        raise DomainError(
            f"`y` has labels outside the declared classes {{{names}}}. Recode them, or declare others with "
            "`classes`."
        )
    values = loss.labels.values
    assert values is not None
    return np.where(second, values[1], values[0])
