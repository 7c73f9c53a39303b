"""The form of a page: one field for each question that its publications ask."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from expost.data.classes import class_text
from expost.data.dates import Date
from expost.data.features import Feature
from expost.data.texts import FieldTexts
from expost.exceptions import PublicationError
from expost.page.base import Published

# A unit is no mere word: an answer in one unit does not serve a question in another.
_WORDS = frozenset(FieldTexts.text_names()) - {"unit"}


@dataclass(frozen=True)
class Form:
    """The fields of all publications on a page, and which of them each publication uses."""

    fields: tuple[dict[str, Any], ...]
    features: tuple[tuple[int, ...], ...]
    """For each publication, the fields of its features in the order of its encoding."""
    outcomes: tuple[int, ...]
    """For each publication, the field of its outcome."""
    weights: tuple[int | None, ...]
    """For each publication, the field of the sample weight; None where records have none of their own."""

    @classmethod
    def of(cls, publications: Sequence[Published]) -> "Form":
        """Join the publications' questions; fields with the same name are asked once.

        The first publication that has a text for a field decides it.

        Raises
        ------
        PublicationError
            If two of them declare a field of the same name differently: one answer cannot serve both.
        """
        places: dict[tuple[str, str, int], int] = {}
        fields: list[dict[str, Any]] = []
        features, outcomes, weights = [], [], []
        for publication in publications:
            own: dict[str, list[int]] = {"feature": [], "weight": [], "outcome": []}
            for key, field in _asked(publication):
                place = places.setdefault(key, len(fields))
                if place == len(fields):
                    fields.append(field)
                elif _encoding(fields[place]) == _encoding(field):
                    fields[place] = field | fields[place]
                else:
                    raise PublicationError(
                        f"the publications declare {field['name']!r} differently, and one answer cannot "
                        "serve both; make a page for each."
                    )
                own[key[0]].append(place)
            features.append(own["feature"])
            weights.append(own["weight"])
            outcomes.append(own["outcome"][0])
        # Outcomes come last, as in a table.
        order = sorted(range(len(fields)), key=lambda place: list(own).index(fields[place]["role"]))
        moved = {place: rank for rank, place in enumerate(order)}
        return cls(
            fields=tuple(fields[place] for place in order),
            features=tuple(tuple(moved[place] for place in own) for own in features),
            outcomes=tuple(moved[place] for place in outcomes),
            weights=tuple(moved[places[0]] if places else None for places in weights),
        )


def _encoding(field: dict[str, Any]) -> dict[str, Any]:
    """What must be the same for one answer to serve two publications: everything but the words."""
    return {key: value for key, value in field.items() if key not in _WORDS}


def _asked(publication: Published) -> Iterator[tuple[tuple[str, str, int], dict[str, Any]]]:
    """The fields of one publication, the outcome last, each with the key that identifies it on the page."""
    seen: Counter[tuple[str, str]] = Counter()
    for role, fields in (
        ("feature", _features(publication)),
        ("weight", _weights(publication)),
        ("outcome", [_outcome(publication)]),
    ):
        for field in fields:
            name = field["name"]
            # Without a domain, several features may have the same name.
            yield (role, name, seen[role, name]), {"role": role} | field
            seen[role, name] += 1


def _features(publication: Published) -> list[dict[str, Any]]:
    if publication.domain is not None:
        return [_declared(feature) for feature in publication.domain.features]
    names = column_names(publication)
    if publication.feature_names is not None:
        return [_unbounded(name) for name in names]
    # The page has words of its own for what has no name.
    return [_unbounded(name) | {"unnamed": number} for number, name in enumerate(names, start=1)]


def _declared(feature: Feature) -> dict[str, Any]:
    """What the page asks for a feature; a date is a number of days that is asked for as a date."""
    field = feature.model_dump(mode="json")
    if isinstance(feature, Date):
        low, high = feature.limits
        field |= {"kind": "number", "date": True, "low": low, "high": high, "scale": feature.scale}
    return field


def column_names(publication: Published) -> list[str]:
    """The names of the encoded columns, numbered where they have none."""
    release = publication.release
    count = len(release.coefficients) // release.plan.loss.outputs - release.plan.fit_intercept
    return list(publication.feature_names or (f"feature {number}" for number in range(1, count + 1)))


def _outcome(publication: Published) -> dict[str, Any]:
    label, labels = publication.label, publication.release.plan.loss.labels
    # The page has words of its own for what has no name.
    field: dict[str, Any] = {"unnamed": 0} if publication.domain is None else {}
    field |= {"name": "outcome"} if label is None else label.model_dump(mode="json")
    if publication.classes is None:
        bounds = {"least": _finite(labels.low), "most": _finite(labels.high)}
        return _unbounded(field["name"]) | field | bounds
    field |= {"kind": "classes", "classes": [class_text(one) for one in publication.classes]}
    return field | ({"example": class_text(field["example"])} if "example" in field else {})


def _weights(publication: Published) -> list[dict[str, Any]]:
    """A number from 0 to the largest sample weight, or unknown; class weights are not asked."""
    most = publication.weighting.max_weight
    if most is None:
        return []
    return [_unbounded("sample weight") | {"least": 0.0, "most": most}]


def _unbounded(name: str) -> dict[str, Any]:
    return {"name": name, "kind": "number", "low": None, "high": None, "missing": None}


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None
