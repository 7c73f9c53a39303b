"""Records from a file as a fit or a publication wants them: features and outcome."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.data.domain import Domain, Number, as_numbers, as_texts
from expost.data.tables.files import Columns
from expost.exceptions import DomainError
from expost.publication import Publication


def split_by_domain(columns: Columns, domain: Domain) -> tuple[Columns, NDArray[Any]]:
    """The declared features, numbers as numbers once and for all passes, and the outcome.

    Privacy
    -------
    As private as the records. A refusal names a column that was declared and nothing else.
    """
    outcome = _column(columns, domain.label.name, "outcome")
    features = {feature.name: _column(columns, feature.name, "feature") for feature in domain.features}
    for feature in domain.features:
        if isinstance(feature, Number):
            features[feature.name] = as_numbers(features[feature.name], feature.name)
    return features, outcome


def split_for(publication: Publication, columns: Columns) -> tuple[Any, NDArray[Any]]:
    """Features and outcome as :meth:`Publication.bounds` takes them.

    A publication with a domain names its columns. One without takes the features by their published names,
    or else in the order of the file, and the outcome from the one other column, or else the last.

    Privacy
    -------
    As private as the records.
    """
    if publication.domain is not None:
        return split_by_domain(columns, publication.domain)
    names = list(columns)
    features = list(publication.feature_names or names[:-1])
    rest = [name for name in names if name not in features]
    if not rest:
        raise DomainError("the records lack a column for the outcome; it must be the last.")
    texts = columns[rest[-1]]
    matrix = [as_numbers(_column(columns, name, "feature"), name) for name in features]
    return np.column_stack(matrix) if matrix else np.empty((len(texts), 0)), _labels(publication, texts)


def _labels(publication: Publication, texts: NDArray[Any]) -> NDArray[Any]:
    if publication.classes is None:
        return as_numbers(texts, "the outcome")
    # The classes may be numbers or booleans, of which a file holds the text, and 1 may be written 1.0.
    found = as_texts(texts)
    by_text = dict(zip(_as_texts(publication), publication.classes, strict=True))
    by_number = {float(label): label for label in publication.classes if not isinstance(label, str | bool)}
    labels = [by_text.get(text, by_number.get(_as_number(text))) for text in found]
    return np.array(labels, dtype=object)


def _as_texts(publication: Publication) -> list[str]:
    labels: list[str] = as_texts(np.array(publication.classes, dtype=object)).tolist()
    return labels


def _as_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan  # equal to no class


def _column(columns: Columns, name: str, role: str) -> NDArray[Any]:
    if name not in columns:
        raise DomainError(f"the table lacks the column {name!r}, a declared {role}. Add or rename it.")
    return columns[name]
