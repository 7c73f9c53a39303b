"""Encode records for the mechanism: rows scaled into the ball, and labels that the loss accepts."""

import warnings
from collections.abc import Sequence
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from expost._common.typing import FloatArray
from expost.data.design import Design
from expost.data.domain import Domain
from expost.data.encoded import Encoded
from expost.data.source import ArraySource
from expost.data.tables import open_table
from expost.data.values import as_numbers, distinct_texts, untold
from expost.data.weights import UNWEIGHTED, Weighting
from expost.exceptions import DomainError
from expost.losses import AnyLoss
from expost.privacy.plan import Plan

# Of more declared classes a message names only the first.
_MOST_NAMES = 12


def encode_records(
    X: Any,
    y: Any,
    plan: Plan,
    *,
    classes: Sequence[Any] | NDArray[Any] | None,
    domain: Domain | None = None,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    weighting: Weighting = UNWEIGHTED,
    sample_weight: Any = None,
) -> Encoded:
    """Open a table, scale its rows into the ball and encode its labels and weights.

    Parameters
    ----------
    X, y
        Records and labels, in the units of the fit.
    plan
        What the fit was planned for: its loss, the norm of its rows, its intercept.
    classes
        The declared classes in the order of the loss's labels; None where labels are numbers.
    domain
        What is publicly known about a record, where it was declared.
    n_features, feature_names
        The columns of the fit, to be checked, where there is no domain.
    weighting, sample_weight
        What was declared about weights, and the sample weight of each record where there are any.

    Privacy
    -------
    The result is as private as the records. An error names declared values only: never a row, a value
    or a count.
    """
    rows = encode_rows(X, plan, domain=domain, n_features=n_features, feature_names=feature_names)
    return with_labels(
        rows, y, plan, classes=classes, domain=domain, weighting=weighting, sample_weight=sample_weight
    )


def encode_rows(
    X: Any,
    plan: Plan,
    *,
    domain: Domain | None = None,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
) -> Encoded:
    """Open a table and scale its rows into the ball, as :func:`encode_records` does, without labels."""
    table = open_table(X, domain)
    if domain is None and n_features is not None and table.n_features != n_features:
        raise DomainError(f"`X` must have {n_features} features, as in the fit; got {table.n_features}.")
    named = domain is None and feature_names is not None and nw.dependencies.is_into_dataframe(X)
    if named and nw.from_native(X, eager_only=True).columns != list(feature_names or ()):
        raise DomainError("`X` must have the columns `feature_names`, in that order; rename or reorder them.")
    return Encoded(ArraySource(table), Design(table.n_features, plan.norm, plan.fit_intercept))


def with_labels(
    rows: Encoded,
    y: Any,
    plan: Plan,
    *,
    classes: Sequence[Any] | NDArray[Any] | None,
    domain: Domain | None = None,
    weighting: Weighting = UNWEIGHTED,
    sample_weight: Any = None,
) -> Encoded:
    """Add labels, encoded for the plan's loss, and weights to encoded rows."""
    labels = encode_labels(y, loss=plan.loss, classes=classes, rows=rows.n_rows, domain=domain)
    return rows.labelled(labels, weighting.of(sample_weight, labels, plan.loss))


def one_label_per_row(y: Any) -> NDArray[Any]:
    """Return labels as a vector; errors say nothing about their values."""
    if y is None:
        raise DomainError("this estimator requires y to be passed, but the target y is None.")
    labels: NDArray[Any] = np.empty((0, 0))
    with untold():
        labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

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
    if len(labels) != rows:
        raise DomainError(
            "`X` and `y` must have one label per row; they have inconsistent numbers of samples."
        )
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


def _encode_numbers(labels: NDArray[Any], loss: AnyLoss, domain: Domain | None) -> FloatArray:
    numbers = as_numbers(labels, "y")
    finite = np.all(np.isfinite(numbers))  # a missing label is none; no clipping may make it one
    if domain is not None:
        numbers = domain.scale_outcome(numbers)
    if not finite or not np.all(loss.labels.contains(numbers)):
        raise DomainError(
            f"`y` has labels outside {loss.labels}, the set that {type(loss).__name__} accepts."
        )
    return numbers
