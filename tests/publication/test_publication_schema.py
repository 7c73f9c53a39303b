"""The JSON Schema of a published file: made from the models, and about as strict about single fields."""

import importlib.util
import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from publications import KINDS, document, squared

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "publication.schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
GOLDEN = json.loads((ROOT / "tests" / "golden" / "publications.json").read_text(encoding="utf-8"))


LOCKED = re.search(
    r"^pydantic==(\S+)", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE
)[1]


def shape(schema):
    """Fields, those needed, losses and reports: what does not differ between versions of pydantic."""
    models = schema["$defs"] | {"Publication": schema}
    fields = {
        name: (set(model["properties"]), set(model.get("required", ()))) for name, model in models.items()
    }
    return fields, schema["properties"]["loss"], schema["$defs"]["PublishedPlan"]["properties"]["report"]


def test_the_file_is_what_the_models_say():
    spec = importlib.util.spec_from_file_location("made", ROOT / "docs" / "publication_schema.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert shape(made.schema()) == shape(SCHEMA), "run python docs/publication_schema.py"
    if version("pydantic") == LOCKED:  # others word the same schema differently
        assert made.schema() == SCHEMA, "run python docs/publication_schema.py"


def test_it_is_a_schema():
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("kind", KINDS)
def test_published_files_are_valid(kind):
    VALIDATOR.validate(document(kind))


@pytest.mark.parametrize("name", GOLDEN)
def test_older_files_are_valid(name):
    VALIDATOR.validate(GOLDEN[name])


def test_a_file_without_a_guarantee_is_valid():
    VALIDATOR.validate(json.loads(squared().to_json()))


@pytest.mark.parametrize("field", SCHEMA["required"])
def test_a_missing_field_is_found(field):
    assert not VALIDATOR.is_valid({name: value for name, value in document().items() if name != field})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("format", "expost-publication/3"),
        ("extra", 1),
        ("norm", 0.0),
        ("sha256", "0" * 63),
        ("coefficients", ["1"]),
        ("loss", {"name": "logistic", "soft": 1}),
        ("loss", {"name": "logistic", "soft": False, "capp": 1.0}),
        ("loss", {"name": "logistic"}),
        ("loss", {"name": "logistic", "soft": False, "cap": 2.0, "corner": 0.8}),
        ("loss", {"name": "softmax", "classes": 1}),
        ("coefficients", []),
        ("classes", ["a"]),
        ("classes", ["a", "a"]),
        ("feature_names", ["a", "a"]),
        ("insecure", "perhaps"),
        ("weights", {"max_weight": None, "class_weight": None}),
        ("weights", {"max_weight": None, "class_weight": [-1.0, 1.0]}),
        ("regularizer", {"name": "nothing"}),
        ("plan.delta", 1.0),
        ("plan.report", "everything"),
        ("plan.calibration", "loose"),
        ("precision.noise", "Gaussian"),
        ("precision", None),
        ("statistics.rows", 60),
    ],
)
def test_a_wrong_field_is_found(path, value):
    fields = document()
    *parts, last = path.split(".")
    place = fields
    for part in parts:
        place = place[part]
    place[last] = value
    assert not VALIDATOR.is_valid(fields)
