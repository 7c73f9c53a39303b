"""Write ``docs/publication.schema.json``: the JSON Schema of a published file, from the models that read it.

The schema says which fields there are and what each may hold. Reading verifies more: the hash, sizes that
belong together, and that the noise certifies the guarantee.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from expost import Publication
from expost.losses.registry import PUBLISHED
from expost.losses.softmax_curve import MOST_CLASSES
from expost.privacy.calibration import CALIBRATIONS
from expost.privacy.scales import REPORT_KINDS
from expost.publication.document import INSECURE
from expost.publication.schema import FORMAT

SCHEMA = Path(__file__).with_name("publication.schema.json")
# Texts that a validator restricts, which says nothing about itself in a schema.
_CHOICES: dict[str, dict[str, Collection[str]]] = {
    "PublishedPlan": {"report": REPORT_KINDS, "calibration": CALIBRATIONS},
    "PublishedPrecision": {"noise": ["discrete Gaussian"], "statistics_at": ["exact minimiser"]},
}
# Lists that a validator restricts likewise.
_LISTS = {
    "coefficients": {"minItems": 1},
    "classes": {"minItems": 2, "maxItems": MOST_CLASSES, "uniqueItems": True},
    "feature_names": {"uniqueItems": True},
}
_POSITIVE = {"type": "number", "exclusiveMinimum": 0}
_PARAMETERS = {
    "soft": {"type": "boolean"},
    "cap": _POSITIVE | {"maximum": 1},
    "corner": _POSITIVE | {"exclusiveMaximum": 1},
    "classes": {"type": "integer", "minimum": 2, "maximum": MOST_CLASSES},
}


def _named(known: Mapping[str, type]) -> list[dict[str, Any]]:
    """One object for each kind: its name, and the parameters that its class declares."""
    kinds = []
    for name, kind in known.items():
        parameters = {one.name: _PARAMETERS.get(one.name, _POSITIVE) for one in fields(kind)}
        # What was added to the format later is written only where it has an effect.
        needed = [one.name for one in fields(kind) if not one.metadata]
        kinds.append(
            {
                "type": "object",
                "properties": {"name": {"const": name}} | parameters,
                "required": ["name", *needed],
                "additionalProperties": False,
            }
        )
    return kinds


class _Generator(GenerateJsonSchema):
    """Losses are objects with a name, in the file."""

    def is_instance_schema(self, schema: core_schema.IsInstanceSchema) -> dict[str, Any]:
        own = {"properties": {"name": {"type": "string", "not": {"enum": list(PUBLISHED)}}}}
        of_ones_own = {"type": "object", "required": ["name"], "description": "A loss of the curator's own."}
        return {"title": "Loss", "anyOf": [*_named(PUBLISHED), of_ones_own | own]}


def _portable(part: Any) -> Any:
    """The same with patterns that every reader of JSON Schema knows."""
    if isinstance(part, dict):
        return {
            key: value.replace(r"\A", "^").replace(r"\z", "$") if key == "pattern" else _portable(value)
            for key, value in part.items()
        }
    return [_portable(one) for one in part] if isinstance(part, list) else part


def schema() -> dict[str, Any]:
    """The schema as an object."""
    made: dict[str, Any] = Publication.model_json_schema(schema_generator=_Generator, mode="validation")
    for model, choices in _CHOICES.items():
        for field, texts in choices.items():
            made["$defs"][model]["properties"][field]["enum"] = list(texts)
    for field, limits in _LISTS.items():
        stated = made["properties"][field]
        next(one for one in stated.get("anyOf", [stated]) if one.get("type") == "array").update(limits)
    weights = made["$defs"]["PublishedWeights"]
    weights["properties"]["class_weight"]["anyOf"][0]["items"]["minimum"] = 0
    weights["not"] = {"properties": {name: {"type": "null"} for name in weights["properties"]}}
    made["properties"]["insecure"] = {"enum": [INSECURE, None], "title": "Insecure"}
    # Only a loss of one's own is released in real arithmetic.
    made["if"] = {"properties": {"loss": {"properties": {"name": {"enum": list(PUBLISHED)}}}}}
    made["then"] = {"properties": {"precision": {"type": "object"}}}
    made["else"] = {"properties": {"precision": {"type": "null"}}}
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": FORMAT}
    return _portable(about | {key: value for key, value in made.items() if key != "title"})


def text() -> str:
    """The whole file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(text(), encoding="utf-8")
