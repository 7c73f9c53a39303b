"""What the page asks: the fields of its form, and which of them each publication uses."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from expost.data.dates import Date, Month, Weekday
from expost.data.features import Feature
from expost.data.labels import CountLabel, NumericLabel, RowsLabel, TimeLabel
from expost.data.texts import FieldTexts
from expost.data.values import class_text
from expost.exceptions import PublicationError
from expost.page.introduction import PublishedFile

# A unit is no mere word: an answer in one unit does not serve a question in another.
_WORDS = frozenset(FieldTexts.text_names) - {"unit"}
# A field's role, its name, and how many of the same role and name come before it.
_Key = tuple[str, str, int]

# In the order of a table: outcomes come last.
_ROLES = ("feature", "weight", "outcome")


@dataclass(frozen=True)
class Form:
    """The fields of all publications on a page, and which of them each publication uses."""

    fields: tuple[dict[str, Any], ...]
    used: tuple[dict[str, Any], ...]
    """For each publication the places of its features in the order of its encoding, of its outcome and of the
    sample weight; None where records have none of their own."""

    @classmethod
    def of(cls, publications: Sequence[PublishedFile]) -> "Form":
        """Join the publications' questions; fields with the same name are asked once.

        The first publication that has a text for a field decides it. PublicationError if two declare a field
        of the same name differently: one answer cannot serve both.
        """
        asked = [list(_asked(publication)) for publication in publications]
        fields: dict[_Key, dict[str, Any]] = {}
        for key, field in chain.from_iterable(asked):
            if _encoding(fields.setdefault(key, field)) != _encoding(field):
                raise PublicationError(
                    f"the publications declare {field['name']!r} differently, and one answer cannot serve "
                    "both; make a page for each."
                )
            fields[key] = field | fields[key]
        order = _in_order(fields)
        places = {key: place for place, key in enumerate(order)}
        used = []
        for own in asked:
            of_role = {role: [places[key] for key, _ in own if key[0] == role] for role in _ROLES}
            (outcome,), weight = of_role["outcome"], next(iter(of_role["weight"]), None)
            used.append({"features": of_role["feature"], "outcome": outcome, "weight": weight})
        return cls(tuple(fields[key] for key in order), tuple(used))


def _in_order(fields: dict[_Key, dict[str, Any]]) -> list[_Key]:
    """Outcomes last, and questions under one heading together: a file without names is read in this order."""
    roles = sorted(fields, key=lambda key: _ROLES.index(key[0]))
    headings = [_heading(key, fields[key]) for key in roles]
    return sorted(roles, key=lambda key: headings.index(_heading(key, fields[key])))


def _heading(key: _Key, field: dict[str, Any]) -> str | bool:
    """Under what a question stands: its group, or whether it is an outcome, for which the page has words."""
    return field.get("group") or key[0] == "outcome"


def _encoding(field: dict[str, Any]) -> dict[str, Any]:
    """What must be the same for one answer to serve two publications: everything but the words."""
    plain = {key: value for key, value in field.items() if key not in _WORDS | {"effect", "asked"}}
    effect = field.get("effect")
    return plain | {"in_steps": effect == "monotone" or ("knots" in field and isinstance(effect, str))}


def _asked(publication: PublishedFile) -> Iterator[tuple[_Key, dict[str, Any]]]:
    """The fields of one publication, the outcome last, each with the key that identifies it on the page."""
    seen: Counter[tuple[str, str]] = Counter()
    found = (_features(publication), _weights(publication), [_outcome(publication)])
    for role, fields in zip(_ROLES, found, strict=True):
        for field in fields:
            name = field["name"]
            # Without a domain, several features may have the same name.
            yield (role, name, seen[role, name]), {"role": role} | field
            seen[role, name] += 1


def _features(publication: PublishedFile) -> list[dict[str, Any]]:
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
        field |= {"kind": "number", "date": True, "low": low, "high": high, "scale": "symmetric"}
        field |= {"knots": feature.nodes[1:-1]} if feature.knots else {}
    if isinstance(feature, Month | Weekday):
        numbers = [str(place + 1) for place in range(feature.length)]
        field |= {"kind": "cycle", "cycle": feature.kind, "categories": numbers, "circle": feature.circle}
        given = {key: getattr(feature, key) for key in ("missing", "example") if field.get(key)}
        codes = feature.coded(np.array(list(given.values()), dtype=object)) if given else ()
        field |= {key: numbers[code] for key, code in zip(given, codes, strict=True)}
    return field


def column_names(publication: PublishedFile) -> list[str]:
    """The names of the encoded columns, numbered where they have none."""
    numbered = (f"feature {number}" for number in range(1, publication.n_features + 1))
    return list(publication.feature_names or numbered)


def intercept_names(publication: PublishedFile) -> list[str]:
    """The names of the intercepts: of the classes that rows of a record ask about, where it has several."""
    if isinstance(publication.label, RowsLabel):
        return publication.label.place_names
    return ["intercept"] * publication.release.plan.fit_intercept


def _outcome(publication: PublishedFile) -> dict[str, Any]:
    label = publication.label
    # The page has words of its own for what has no name.
    field: dict[str, Any] = {"unnamed": 0} if publication.domain is None else {}
    field |= {"name": "outcome"} if label is None else label.model_dump(mode="json")
    field |= {"asked": label.kind} if isinstance(label, CountLabel | RowsLabel) else {}
    if isinstance(label, TimeLabel):
        codes = [f"{code:g}" for code in label.codes.values or ()]
        return field | {"kind": "classes", "classes": codes, "example": codes[-2]}
    if publication.classes is None:
        return _unbounded(field["name"]) | field | _numeric(publication)
    field |= {"kind": "classes", "classes": [class_text(one) for one in publication.classes]}
    return field | ({"example": class_text(field["example"])} if "example" in field else {})


def _numeric(publication: PublishedFile) -> dict[str, Any]:
    """The limits of an outcome that is a number, and its scale: none where it has declared bounds."""
    label, labels = publication.label, publication.release.plan.loss.labels
    if isinstance(label, NumericLabel):
        scale = {"kind": "number", "typical": label.typical} if label.log_link else {}
        return {"least": None, "most": None} | scale
    return {"least": finite(labels.low), "most": finite(labels.high)}


def _weights(publication: PublishedFile) -> list[dict[str, Any]]:
    """A number from 0 to the largest sample weight, or unknown; class weights are not asked."""
    most = publication.weighting.max_weight
    if most is None:
        return []
    return [_unbounded("sample weight") | {"least": 0.0, "most": most}]


def finite(number: float) -> float | None:
    """The number, or None where JSON has none for it."""
    return number if math.isfinite(number) else None


def _unbounded(name: str) -> dict[str, Any]:
    return {"name": name, "kind": "number", "low": None, "high": None, "missing": None}
