"""Split the columns of a file into features and outcome."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._common.typing import FloatArray
from expost._common.validation import numeral
from expost.data.domain import Domain
from expost.data.features import Number
from expost.data.values import as_numbers, as_texts
from expost.exceptions import DomainError

Columns = Mapping[str, NDArray[Any]]


def select_columns(
    columns: Columns,
    domain: Domain | None,
    *,
    feature_names: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
) -> tuple[Any, NDArray[Any]]:
    """Select features and outcome, as a fit and :meth:`expost.Publication.bounds` take them.

    A domain names the columns. Without one the features are taken by ``feature_names``, or else in the order
    of the file. The outcome is then the only other column, or else the last.

    Privacy
    -------
    As private as the records. An error names a declared column and nothing else.
    """
    if domain is not None:
        return _select_declared(columns, domain)
    names = list(columns)
    features = list(feature_names or names[:-1])
    rest = [name for name in names if name not in features]
    if not rest:
        raise DomainError("the records lack a column for the outcome; it must be the last.")
    texts = columns[rest[-1]]
    matrix = [as_numbers(_column(columns, name, "feature"), name) for name in features]
    rows = np.column_stack(matrix) if matrix else np.empty((len(texts), 0))
    return rows, as_numbers(texts, "the outcome") if classes is None else _as_classes(texts, classes)


def split_weight(columns: Columns, name: str | None) -> tuple[Columns, FloatArray | None]:
    """Take the column of the weights out of a file's columns; None where there is none.

    Privacy
    -------
    As private as the records. An error names the column and nothing else.
    """
    if name is None:
        return columns, None
    weights = as_numbers(_column(columns, name, "weight"), name)
    return {other: column for other, column in columns.items() if other != name}, weights


def _select_declared(columns: Columns, domain: Domain) -> tuple[Columns, NDArray[Any]]:
    outcome = _column(columns, domain.label.name, "outcome")
    features = {feature.name: _column(columns, feature.name, "feature") for feature in domain.features}
    for feature in domain.features:
        if isinstance(feature, Number):  # converted once, not in every pass
            features[feature.name] = as_numbers(features[feature.name], feature.name)
    return features, outcome


def _as_classes(texts: NDArray[Any], classes: Sequence[Any]) -> NDArray[Any]:
    """Turn texts into classes, which may be numbers or booleans; 1 may be written 1.0."""
    spelled = as_texts(np.array(classes, dtype=object), "classes")
    by_text = dict(zip(spelled, classes, strict=True))
    by_number = {float(label): label for label in classes if not isinstance(label, str | bool)}
    labels = [by_text.get(text, by_number.get(_as_number(text))) for text in as_texts(texts, "the outcome")]
    return np.array(labels, dtype=object)


def _as_number(text: str) -> float:
    try:
        return numeral(text)
    except ValueError:
        return math.nan  # equal to no class


def _column(columns: Columns, name: str, role: str) -> NDArray[Any]:
    if name not in columns:
        raise DomainError(f"the table lacks the column {name!r}, a declared {role}. Add or rename it.")
    return columns[name]
