"""A skeleton asks for everything that must be declared, and a domain can be written and read back."""

import tomllib

import pytest

from expost import Category, ClassLabel, Domain, Number, NumberLabel, YesNo
from expost.data.skeleton import skeleton
from expost.exceptions import DomainError

AWKWARD = 'a "b" \\ c\n\x7f é = ] #'


@pytest.mark.parametrize("kind", ["number", "category", None])
def test_a_skeleton_is_refused_for_each_missing_value(kind):
    text = skeleton({"x": kind, "y": None})
    assert tomllib.loads(text)["features"][0]["kind"] == (kind or "number")
    asked = "categories" if kind == "category" else "low"
    with pytest.raises(DomainError, match=f"'FILL IN' for `{asked}` of 'x'"):
        Domain.from_toml(text)
    text = text.replace('low = "FILL IN"', "low = 0.0", 1).replace('high = "FILL IN"', "high = 1.0", 1)
    text = text.replace('categories = ["FILL IN", "FILL IN"]', 'categories = ["a", "b"]')
    with pytest.raises(DomainError, match="'FILL IN' for `classes` of 'y'"):
        Domain.from_toml(text)
    assert Domain.from_toml(text.replace('["FILL IN", "FILL IN"]', '["a", "b"]')).label.name == "y"


def test_the_outcome_is_the_last_column_or_the_named_one():
    kinds = {"x": "number", "y": "number", AWKWARD: "yes_no"}
    assert tomllib.loads(skeleton(kinds))["label"]["name"] == AWKWARD
    read = tomllib.loads(skeleton(kinds, "y"))
    assert read["label"] == {"name": "y", "kind": "number", "low": "FILL IN", "high": "FILL IN"}
    assert [feature["name"] for feature in read["features"]] == ["x", AWKWARD]
    with pytest.raises(DomainError, match="no column 'z'"):
        skeleton(kinds, "z")
    with pytest.raises(
        DomainError, match="names one, 'Patients of 2025': if that is a title, delete the line"
    ):
        skeleton({"Patients of 2025": None})


@pytest.mark.parametrize(
    "label",
    [ClassLabel(name="y", classes=("0", AWKWARD)), NumberLabel(name="y", low=-1e300, high=0.1)],
)
@pytest.mark.parametrize("norm", [None, 1.5])
def test_a_domain_survives_its_file(label, norm):
    features = (
        Number(name=AWKWARD, low=-1e-9, high=3.0, scale="unit", missing=1.0),
        Number(name="plain", low=0.0, high=1.0),
        Category(name="ward", categories=("north", AWKWARD), missing=AWKWARD),
        YesNo(name="smoker", missing=False),
        YesNo(name="old"),
    )
    domain = Domain(features=features, label=label, norm=norm)
    assert Domain.from_toml(domain.to_toml()) == domain


def test_columns_that_all_look_like_identifiers_are_not_all_ignored():
    """Else there would be no feature left to fill in."""
    text = skeleton({"patient_id": None, "name": None, "ill": None})
    assert "ignore = []" in text
    assert text.count("[[features]]") == 2
    text = skeleton({"patient_id": None, "age": None, "ill": None})
    assert '"patient_id",  # by its name an identifier' in text
    assert text.count("[[features]]") == 1
