"""The form of a page: one field for each question that its publications ask."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from expost.exceptions import PublicationError
from expost.page.base import Published


@dataclass(frozen=True)
class Form:
    """The fields of all publications on a page, and which of them each publication uses."""

    fields: tuple[dict[str, Any], ...]
    features: tuple[tuple[int, ...], ...]
    """For each publication, the fields of its features in the order of its encoding."""
    outcomes: tuple[int, ...]
    """For each publication, the field of its outcome."""

    @classmethod
    def of(cls, publications: Sequence[Published]) -> "Form":
        """Join the publications' questions; fields with the same name are asked once.

        Raises
        ------
        PublicationError
            If two of them declare a field of the same name differently: one answer cannot serve both.
        """
        places: dict[tuple[str, str, int], int] = {}
        fields: list[dict[str, Any]] = []
        features, outcomes = [], []
        for publication in publications:
            own = []
            for key, field in _asked(publication):
                place = places.setdefault(key, len(fields))
                if place == len(fields):
                    fields.append(field)
                elif fields[place] != field:
                    raise PublicationError(
                        f"the publications declare {field['name']!r} differently, and one answer cannot "
                        "serve both; make a page for each."
                    )
                own.append(place)
            features.append(tuple(own[:-1]))
            outcomes.append(own[-1])
        # Outcomes come last, as in a table.
        order = sorted(range(len(fields)), key=lambda place: fields[place]["role"] == "outcome")
        moved = {place: rank for rank, place in enumerate(order)}
        return cls(
            fields=tuple(fields[place] for place in order),
            features=tuple(tuple(moved[place] for place in own) for own in features),
            outcomes=tuple(moved[place] for place in outcomes),
        )


def _asked(publication: Published) -> Iterator[tuple[tuple[str, str, int], dict[str, Any]]]:
    """The fields of one publication, the outcome last, each with the key that identifies it on the page."""
    seen: Counter[tuple[str, str]] = Counter()
    for role, fields in (("feature", _features(publication)), ("outcome", [_outcome(publication)])):
        for field in fields:
            name = field["name"]
            # Without a domain, several features may have the same name.
            yield (role, name, seen[role, name]), {"role": role} | field
            seen[role, name] += 1


def _features(publication: Published) -> list[dict[str, Any]]:
    if publication.domain is not None:
        return [feature.model_dump(mode="json") for feature in publication.domain.features]
    return [_unbounded(name) for name in column_names(publication)]


def column_names(publication: Published) -> list[str]:
    """The names of the encoded columns, numbered where they have none."""
    release = publication.release
    count = len(release.coefficients) - release.plan.fit_intercept
    return list(publication.feature_names or (f"feature {number}" for number in range(1, count + 1)))


def _outcome(publication: Published) -> dict[str, Any]:
    domain, labels = publication.domain, publication.release.plan.loss.labels
    name = "outcome" if domain is None else domain.label.name
    if publication.classes is not None:
        return {"name": name, "kind": "classes", "classes": [_text(label) for label in publication.classes]}
    declared = _unbounded(name) if domain is None else domain.label.model_dump(mode="json")
    return declared | {"least": _finite(labels.low), "most": _finite(labels.high)}


def _unbounded(name: str) -> dict[str, Any]:
    return {"name": name, "kind": "number", "low": None, "high": None, "missing": None}


def _text(label: str | bool | int | float) -> str:
    """A label as a person would type it."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return label if isinstance(label, str) else json.dumps(label)


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None
