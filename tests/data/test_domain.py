"""The domain: one encoding for the curator's table and for the reader's record."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from problems import hides_its_cause

import expost
from expost.exceptions import DomainError

TOML = """
norm = 1.5

[label]
name = "ill"
kind = "classes"
classes = ["no", "yes"]

[[features]]
name = "age"
kind = "number"
low = 0.0
high = 100.0

[[features]]
name = "dose"
kind = "number"
low = 0.0
high = 10.0
scale = "unit"
missing = 5.0

[[features]]
name = "ward"
kind = "category"
categories = ["north", "south", "7"]

[[features]]
name = "smoker"
kind = "yes_no"
missing = false
"""
DOMAIN = expost.Domain.from_toml(TOML)
RECORDS = {
    "age": [25.0, 140.0, -3.0, 50.0],
    "dose": [1.0, None, 20.0, 5.0],
    "ward": ["north", "south", "7", "north"],
    "smoker": ["yes", "no", None, "TRUE"],
    "ill": ["no", "yes", "yes", "no"],
}
ENCODED = [[-0.5, 0.1, 1, 0, 0, 1], [1, 0.5, 0, 1, 0, 0], [-1, 1, 0, 0, 1, 0], [0, 0.5, 1, 0, 0, 1]]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_the_encoding_is_what_the_documents_say(frame):
    table = frame(RECORDS)
    columns = {name: table[name].to_numpy() for name in RECORDS}
    np.testing.assert_allclose(DOMAIN.encode(columns), ENCODED)
    assert DOMAIN.column_names == ["age", "dose", "ward=north", "ward=south", "ward=7", "smoker"]
    assert DOMAIN.row_norm == 1.5


def test_a_fit_with_a_domain_publishes_it_and_reads_raw_records(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "smoker": rng.choice(["yes", "no"], 400),
            "age": rng.uniform(0, 120, 400),
            "ward": rng.choice(["north", "south", "7"], 400),
            "dose": rng.uniform(0, 10, 400),
            "note": "not in the domain",
        }
    )
    y = np.where(table["age"] > 50, "yes", "no")
    model = expost.LogisticRegression(domain=DOMAIN, report="leverage", random_state=0).fit(table, y)
    assert model.classes_.tolist() == ["no", "yes"]
    encoded = DOMAIN.encode({name: table[name].to_numpy() for name in table})
    plain = expost.LogisticRegression(norm=1.5, classes=["no", "yes"], report="leverage", random_state=0)
    plain.fit(encoded, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-12)
    publication = model.publication_
    publication.save(tmp_path / "publication.json")
    loaded = expost.Publication.load(tmp_path / "publication.json")
    assert loaded == publication
    assert loaded.domain == DOMAIN
    mine, theirs = loaded.bounds(table, y), plain.publication_.bounds(encoded, y)
    np.testing.assert_allclose(mine.upper, theirs.upper, rtol=1e-10)
    np.testing.assert_allclose(model.ex_post_losses(table, y), plain.ex_post_losses(encoded, y), rtol=1e-9)
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table))


@pytest.mark.parametrize(("features", "norm"), [(1, 1.0), (2, 1.0), (3, np.sqrt(1.5)), (50, 5.0)])
def test_the_default_norm_is_a_rule_in_the_number_of_features(features, norm):
    names = [{"name": f"x{i}", "kind": "yes_no"} for i in range(features)]
    domain = expost.Domain.model_validate(
        {"features": names, "label": {"name": "y", "kind": "classes", "classes": ["a", "b"]}}
    )
    assert domain.row_norm == norm
    assert domain.longest_row == np.sqrt(features)
    assert domain.model_copy(update={"norm": 9.0}).row_norm == 9.0


def test_longer_rows_are_scaled_down_in_the_fit_and_for_every_reader():
    """As a fit on rows that were scaled by hand, in predictions, bounds and exact losses."""
    domain = DOMAIN.model_copy(update={"norm": None})
    short = {"age": 50.0, "dose": 0.0, "ward": "7", "smoker": "no", "ill": "no"}
    table = {name: [*values, short[name]] * 40 for name, values in RECORDS.items()}
    y = np.array(table.pop("ill"))
    encoded = np.array([*ENCODED, [0, 0, 0, 0, 1, 0]] * 40)
    lengths = np.linalg.norm(encoded, axis=1)
    assert np.any(lengths > np.sqrt(2.0))
    assert np.any(lengths < np.sqrt(2.0))
    scaled = encoded * np.minimum(1.0, np.sqrt(2.0) / lengths)[:, None]
    model = expost.LogisticRegression(domain=domain, report="leverage", random_state=0).fit(table, y)
    plain = expost.LogisticRegression(
        norm=np.sqrt(2.0), classes=["no", "yes"], report="leverage", random_state=0
    ).fit(scaled, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9)
    published = expost.Publication.from_json(model.publication_.to_json())
    assert published.norm == published.domain.norm == np.sqrt(2.0)
    predictor = plain.decision_function(scaled)
    np.testing.assert_allclose(model.decision_function(table), predictor, rtol=1e-9)
    np.testing.assert_allclose(published.decision_function(table), predictor, rtol=1e-9)
    np.testing.assert_allclose(
        published.bounds(table, y).total, plain.publication_.bounds(scaled, y).total, rtol=1e-9
    )
    np.testing.assert_allclose(model.ex_post_losses(table, y), plain.ex_post_losses(scaled, y), rtol=1e-9)


def test_a_file_is_loaded_as_its_text_is_read(tmp_path):
    (tmp_path / "domain.toml").write_text("\ufeff" + TOML, encoding="utf-8")
    assert expost.Domain.load(tmp_path / "domain.toml") == DOMAIN
    assert expost.Domain.load(str(tmp_path / "domain.toml")) == DOMAIN
    for encoding in ("cp1252", "utf-16"):  # in texts too: they would be published with other letters
        (tmp_path / "domain.toml").write_bytes(TOML.replace('"north"', '"nörth"').encode(encoding))
        with pytest.raises(DomainError, match="must be text in UTF-8"):
            expost.Domain.load(tmp_path / "domain.toml")


def test_a_numeric_outcome_is_scaled_and_predictions_are_scaled_back():
    domain = expost.Domain.model_validate(
        {
            "features": [{"name": "x", "kind": "number", "low": -1.0, "high": 1.0}],
            "label": {"name": "y", "kind": "number", "low": 0.0, "high": 10.0},
        }
    )
    x = np.linspace(-1, 1, 3000)
    y = 5.0 + 3.0 * x
    model = expost.LinearRegression(domain=domain, epsilon=8.0).fit(pd.DataFrame({"x": x}), y)
    predicted = model.predict(pd.DataFrame({"x": [0.0, 1.0]}))
    np.testing.assert_allclose(predicted, [5.0, 8.0], atol=0.5)
    np.testing.assert_allclose(model.publication_.predict(pd.DataFrame({"x": [0.0, 1.0]})), predicted)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ward": ["north", "south", "secret", "north"]}, "`ward` has a category that was never declared"),
        ({"ward": ["north", None, "south", "north"]}, "`ward` is missing in a record"),
        ({"age": [1.0, None, 2.0, 3.0]}, "`age` is missing in a record"),
        ({"age": ["1", "secret", "2", "3"]}, "`age` must be a number in every record"),
        ({"age": [1.0, np.inf, 2.0, 3.0]}, "`age` must be finite"),
        ({"smoker": ["yes", "secret", "no", "no"]}, "`smoker` must be yes or no"),
        ({"ill": ["yes", "no", "secret", "no"]}, "outside the declared classes {'no', 'yes'}"),
    ],
)
def test_undeclared_values_are_refused_by_the_features_name_only(change, words):
    table = pd.DataFrame({**RECORDS, **change})
    with pytest.raises(DomainError) as caught:
        expost.LogisticRegression(domain=DOMAIN).fit(table, table["ill"])
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)
    assert hides_its_cause(caught.value)


def test_a_missing_column_is_named_and_an_array_is_refused():
    table = pd.DataFrame(RECORDS)
    with pytest.raises(DomainError, match="lacks the column 'dose'"):
        expost.LogisticRegression(domain=DOMAIN).fit(table.drop(columns="dose"), table["ill"])
    with pytest.raises(DomainError, match="must be a data frame"):
        expost.LogisticRegression(domain=DOMAIN).fit(np.zeros((4, 6)), table["ill"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not toml", "not valid TOML"),
        ("[label]\nname='y'\nkind='classes'\nclasses=['a','b']", "features"),
        (TOML.replace("high = 100.0", "high = -1.0"), "`age` must have low < high"),
        (TOML.replace('"south", "7"', '"north"'), "`ward` must have different categories"),
        (TOML.replace('name = "dose"', 'name = "age"'), "different names"),
        (TOML.replace("norm = 1.5", "norm = 0.0"), "norm"),
        (TOML.replace("norm = 1.5", "norm = 1.5\nextra = 1"), "extra"),
        (TOML.replace('kind = "yes_no"', 'kind = "maybe"'), "kind"),
        (TOML.replace('["no", "yes"]', '["no", "no"]'), "two or more different classes"),
        (TOML.replace("missing = 5.0", 'missing = "5"'), "missing"),
    ],
)
def test_a_bad_domain_file_is_refused_in_one_sentence(text, words):
    with pytest.raises(DomainError) as caught:
        expost.Domain.from_toml(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "`features` is missing"),
        ("{x}", "not valid TOML"),
        ('[[features]]\nname = "x"\nkind = "number"\nlow = 0\n', "`high` of the feature 'x' is missing"),
        ('[[features]]\nname = "x"\nkind = "text"\n', "`kind` of the feature 'x' must be one of"),
        ('[label]\nname = "y"\nkind = "yes_no"\n', r'write kind = "classes" and classes = \["no", "yes"\]'),
        ('[[features]]\nname = "x"\nlow = 0\n', "`kind` of the feature 'x' is missing"),
        ('[[features]]\nkind = "yes_no"\n', "`name` of feature number 1 is missing"),
        (
            '[[features]]\nname = "x"\nkind = "yes_no"\nlow = 0\n',
            "`low` of the feature 'x' does not belong there",
        ),
        ('[[features]]\nname = "x"\nkind = "number"\nlow = "0"\nhigh = 1\n', "must be a number, such as"),
        (
            '[[features]]\nname = "x"\nkind = "category"\ncategories = ["a", 3]\n',
            "every entry of `categories`",
        ),
        ('[[features]]\nname = "x"\nkind = "category"\ncategories = "a"\n', "must be a list, such as"),
        ('[[features]]\nname = "x"\nkind = "category"\ncategories = ["a"]\n', "must have 2 entries or more"),
        ('[[features]]\nname = "x"\nkind = "yes_no"\nmissing = "no"\n', "must be true or false; got 'no'"),
        (
            '[[features]]\nname = "x"\nkind = "date"\nlow = 1\nhigh = 2\n',
            r"must be a date, .*\(1 more after this\)",
        ),
        ("nrom = 2.0\n", r"`nrom` is no key of a domain file \(perhaps `norm` is meant\)"),
        ("norm = -1.0\n", "`norm` must be above 0; got -1.0"),
        ("[table]\ndelimeter = ';'\n", r"`delimeter` of \[table\] is no key .* `delimiter`"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_sentence_of_ours(text, words):
    label = '[label]\nname = "y"\nkind = "classes"\nclasses = ["a", "b"]\n'
    if text and "features" not in text:
        text += '[[features]]\nname = "x"\nkind = "yes_no"\n'
    with pytest.raises(DomainError, match=words) as refusal:
        expost.Domain.from_toml(text + label * ("[label]" not in text))
    assert "\n" not in str(refusal.value)
    assert not any(theirs in str(refusal.value) for theirs in ("Input should", "Field required", "pydantic"))


@pytest.mark.parametrize(
    ("make", "others"),
    [
        (expost.ClassLabel, {"classes": {"a", "b"}}),
        (expost.OrderedLabel, {"classes": frozenset("abc")}),
        (expost.Category, {"categories": {"a", "b"}}),
        (expost.Category, {"categories": ("a", "b"), "titles": {"A", "B"}}),
    ],
)
def test_a_set_is_no_list_where_the_order_counts(make, others):
    with pytest.raises(DomainError, match="must be a list: a set has no order"):
        make(name="y", **others)


def test_a_domain_is_shown_with_the_values_of_each_kind():
    domain = expost.Domain(
        features=(expost.Date(name="born", low="1900-01-01", high="2030-12-31"), expost.YesNo(name="smoker")),
        label=expost.NumberLabel(name="cost", low=0.0, high=9.5),
    )
    shown = domain._repr_html_()
    assert "1900-01-01 to 2030-12-31" in shown
    assert "outcome: cost (0 to 9.5)" in shown
    assert " more" not in shown


def test_only_a_numeric_outcome_has_a_scale():
    values = np.array([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(DOMAIN.scale_outcome(values), values)
    np.testing.assert_array_equal(DOMAIN.unscale_outcome(values), values)


def test_missing_values_count_as_a_category_that_is_declared():
    text = TOML.replace('"7"]', '"7"]\nmissing = "west"')
    with pytest.raises(DomainError, match="`ward` must count missing values as one of its categories"):
        expost.Domain.from_toml(text)
    assert expost.Domain.from_toml(text.replace("west", "7")).features[2].missing == "7"
