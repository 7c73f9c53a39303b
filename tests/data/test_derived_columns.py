"""Columns that follow from others: curves, products of two features, and what was not recorded."""

import datetime
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import expost
from expost import Category, ClassLabel, Date, Domain, Interaction, Month, Number, Weekday, YesNo
from expost._common.strict_json import digest
from expost.exceptions import DomainError, PublicationError

AGE = Number(name="age", low=18, high=90, knots=(30, 45, 60))
FEATURES = (
    AGE,
    YesNo(name="smoker"),
    Category(name="ward", categories=("north", "south", "east"), missing="north"),
    Number(name="dose", low=-5.0, high=200.0, scale="unit", missing=10.0),
    Date(name="seen", low="2015-01-01", high="2025-12-31", knots=("2020-03-01",), effect="decreasing"),
)
PAIRS = (("age", "smoker"), ("dose", "age"), ("ward", "smoker"), ("dose", "smoker"))
LABEL = ClassLabel(name="ill", classes=("no", "yes"))
DOMAIN = Domain(features=FEATURES, label=LABEL, interactions=[Interaction(product=pair) for pair in PAIRS])


def table(count, seed=0):
    rng = np.random.default_rng(seed)
    days = np.datetime64("2014-06-01") + rng.integers(0, 4500, count)
    return {
        "age": rng.uniform(10.0, 100.0, count),
        "smoker": rng.choice(["yes", "no"], count),
        "ward": rng.choice(["north", "south", "east", ""], count),
        "dose": rng.uniform(-20.0, 220.0, count),
        "seen": days.astype(str),
        "ill": rng.choice(["no", "yes"], count),
    }


def hats(x, nodes):
    """Every hat by interpolation between the nodes."""
    return np.column_stack([np.interp(x, nodes, row) for row in np.eye(len(nodes))])


def test_a_curve_is_what_interpolation_says():
    x = np.concatenate([np.random.default_rng(1).uniform(0.0, 120.0, 500), [18.0, 30.0, 45.0, 60.0, 90.0]])
    nodes = [18.0, 30.0, 45.0, 60.0, 90.0]
    rows = np.column_stack(AGE.expanded(AGE.coded(x)))
    np.testing.assert_allclose(rows, hats(x, nodes), atol=1e-15)
    heights = np.array([3.0, -1.0, 4.0, 1.0, -5.0])
    np.testing.assert_allclose(rows @ heights, np.interp(x, nodes, heights), atol=1e-14)
    assert AGE.column_names == ["age=18", "age=30", "age=45", "age=60", "age=90"]


@pytest.mark.parametrize(("effect", "sign"), [("increasing", 1.0), ("decreasing", -1.0)])
def test_a_curve_with_an_effect_never_turns(effect, sign):
    feature = Number(name="age", low=0.0, high=10.0, knots=(1.0, 4.0), effect=effect)
    x = np.linspace(-1.0, 11.0, 200)
    rows = np.column_stack(feature.expanded(feature.coded(x)))
    assert feature.column_names == ["age≥1", "age≥4", "age≥10"]
    assert feature.coef_bounds == [(0.0, np.inf) if sign > 0 else (-np.inf, 0.0)] * 3
    curve = rows @ (sign * np.array([0.3, 2.0, 0.0]))
    assert np.all(sign * np.diff(curve) >= -1e-15)
    np.testing.assert_allclose(np.max(np.linalg.norm(rows, axis=1)), 1.0, rtol=1e-15)


@settings(max_examples=30)
@given(
    st.lists(st.floats(0.01, 0.99), max_size=8, unique_by=lambda knot: round(knot, 3)),
    st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=20),
)
def test_no_feature_is_longer_than_one(knots, x):
    knots = sorted(knot for knot in knots if all(knot == one or abs(knot - one) > 1e-4 for one in knots))
    feature = Number(name="x", low=0.0, high=1.0, knots=knots)
    columns = np.array(feature.expanded(feature.coded(np.array(x))), dtype=float)
    assert np.max(np.linalg.norm(columns, axis=0)) <= 1.0 + 1e-15
    if knots:
        np.testing.assert_allclose(columns.sum(axis=0), 1.0, atol=1e-15)


def test_a_product_has_every_column_of_one_times_every_column_of_the_other():
    rows = DOMAIN.encode(table(300))
    named = dict(zip(DOMAIN.column_names, rows.T, strict=True))
    assert rows.shape[1] == 5 + 1 + 3 + 1 + 2 + 5 + 5 + 3 + 1
    for name, column in named.items():
        factors = name.split(" × ")
        np.testing.assert_array_equal(column, np.prod([named[one] for one in factors], axis=0))
    assert "dose × age=30" in named
    assert "ward=south × smoker" in named


def test_the_longest_row_counts_products():
    assert DOMAIN.longest_row == pytest.approx(3.0)
    assert DOMAIN.row_norm == pytest.approx(np.sqrt(4.5))
    assert np.max(np.linalg.norm(DOMAIN.encode(table(2000)), axis=1)) <= DOMAIN.longest_row


def test_effects_bound_their_own_columns_alone():
    low, high = DOMAIN.coef_bounds
    bounded = [name for name, end in zip(DOMAIN.column_names, high, strict=True) if end == 0.0]
    assert bounded == ["seen≥2020-03-01", "seen≥2025-12-31"]
    assert set(low) == {-np.inf}


def fitted(source, y=None):
    domain = Domain(features=FEATURES[:4], label=LABEL, interactions=DOMAIN.interactions)
    return expost.LogisticRegression(domain=domain, random_state=3).fit(source, y)


@pytest.mark.long
def test_every_kind_of_table_gives_the_same_bits(tmp_path):
    raw = table(400)
    y = raw["ill"]
    wanted = fitted(raw).publication_.to_json()
    frame = pd.DataFrame(raw)
    assert fitted(frame, y).publication_.to_json() == wanted
    assert fitted(pa.table(raw), y).publication_.to_json() == wanted
    frame.to_parquet(tmp_path / "table.parquet")
    frame.to_csv(tmp_path / "table.csv", index=False)
    for name in ("table.parquet", "table.csv"):
        found = fitted(expost.scan(str(tmp_path / name)))
        np.testing.assert_array_equal(found.coef_, fitted(raw).coef_)


def test_a_publication_keeps_them_and_predicts_by_them():
    raw = table(400)
    model = fitted(raw)
    publication = expost.Publication.from_json(model.publication_.to_json())
    assert publication.domain.interactions == DOMAIN.interactions
    assert publication.domain.features[0].knots == (30.0, 45.0, 60.0)
    one = {name: column[:1] for name, column in raw.items()}
    score = model.domain.encode(one) @ np.ravel(model.coef_) + model.intercept_
    length = np.linalg.norm(model.domain.encode(one))
    assert length <= model.domain.row_norm
    np.testing.assert_allclose(publication.decision_function(one), score, rtol=1e-12)
    assert "age=30 × smoker" in publication.summary().terms


def test_files_without_them_are_as_they_were():
    plain = Domain(features=FEATURES[1:3], label=LABEL)
    written = plain.model_dump(mode="json")
    assert "interactions" not in written
    assert all("knots" not in feature for feature in written["features"])


def test_a_domain_file_is_read_back():
    assert Domain.from_toml(DOMAIN.to_toml()) == DOMAIN
    text = '[[interactions]]\nproduct = ["age", "smoker"]\n'
    assert text in DOMAIN.to_toml()
    assert "knots = [2020-03-01]" in DOMAIN.to_toml()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda domain: domain["interactions"].append({"product": ["age", "nobody"]}), "nobody"),
        (lambda domain: domain["interactions"].pop(), "feature_names"),
        (lambda domain: domain["interactions"].append({"product": ["smoker", "age"]}), "declared once"),
        (lambda domain: domain["features"][0]["knots"].append(200.0), "rise between its bounds"),
        (lambda domain: domain["features"][0]["knots"].pop(), "feature_names"),
        (lambda domain: domain["features"][0]["knots"].__setitem__(0, 31.0), "feature_names"),
        (lambda domain: domain["features"][1].update(knots=[0.5]), "knots"),
    ],
)
def test_a_forged_file_is_refused(change, words):
    document = json.loads(fitted(table(60)).publication_.to_json())
    change(document["domain"])
    document["sha256"] = digest({key: value for key, value in document.items() if key != "sha256"})
    with pytest.raises(PublicationError, match=words):
        expost.Publication.from_json(json.dumps(document))


@pytest.mark.parametrize(
    ("product", "words"),
    [
        (("age", "nobody"), "`nobody` is none"),
        (("age", "age"), "two different features; got age × age"),
        (("age",), "two different features"),
        (("age", "smoker", "ward"), "two different features"),
        (("age", "dose × age"), "`dose × age` is none"),
        (("seen", "age"), "must not name `seen`, whose `effect` it would undo"),
        (("age", "ill"), "`ill` is none"),
    ],
)
def test_a_product_is_of_two_features(product, words):
    with pytest.raises(DomainError, match=words) as refusal:
        Domain(features=FEATURES, label=LABEL, interactions=[{"product": product}])
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("knots", "words"),
    [
        ((10, 40), "must rise between its bounds, 18 to 90; got 10, 40"),
        ((40, 90), "must rise between its bounds"),
        ((50, 40), "must rise between its bounds"),
        ((30, 30), "must rise between its bounds"),
        ((30, 30.00001), "must rise between its bounds"),
        (tuple(range(20, 41)), "must be at most 20; got 21"),
        (("a",), "every entry of `knots` must be a number"),
        ((float("nan"),), "finite"),
        (3, "`knots` must be a list"),
    ],
)
def test_knots_rise_between_the_bounds(knots, words):
    with pytest.raises(DomainError, match=words) as refusal:
        Number(name="age", low=18, high=90, knots=knots)
    assert "\n" not in str(refusal.value)


def test_a_curve_has_no_unit_scale():
    with pytest.raises(DomainError, match="`scale` of `age` must be left out where it has knots"):
        Number(name="age", low=18, high=90, knots=(30,), scale="unit")


GAPS = (
    Number(name="bmi", low=10.0, high=60.0, missing=25.0, recorded=True),
    Number(name="age", low=0.0, high=10.0, missing=5.0, recorded=True, knots=(4.0,)),
    YesNo(name="smoker", missing=True, recorded=True),
    Category(name="ward", categories=("a", "b"), missing="b", recorded=True),
    Date(name="seen", low="2000-01-01", high="2020-01-01", missing="2010-01-01", recorded=True),
)


@pytest.mark.parametrize("feature", GAPS, ids=lambda one: one.name)
def test_what_was_not_recorded_counts_as_the_default_and_has_a_column(feature):
    plain = type(feature).model_validate(feature.model_dump() | {"recorded": None})
    given_cells = {"bmi": "30", "age": "2", "smoker": "no", "ward": "a", "seen": "2005-05-05"}[feature.name]
    for empty in ("", None, float("nan")):
        cells = np.array([given_cells, empty, given_cells], dtype=object)
        found = np.array(feature.expanded(feature.coded(cells)), dtype=float)
        wanted = np.array(plain.expanded(plain.coded(cells)), dtype=float)
        np.testing.assert_array_equal(found[:-1], wanted)
        np.testing.assert_array_equal(found[-1], [0.0, 1.0, 0.0])
    assert feature.column_names == [*plain.column_names, f"{feature.name} not recorded"]
    assert feature.coef_bounds[-1] == (-np.inf, np.inf)


def test_what_was_not_recorded_counts_in_the_norm():
    domain = Domain(features=GAPS, label=LABEL, interactions=[{"product": ("bmi", "smoker")}])
    assert domain.longest_row == pytest.approx(np.sqrt(14.0))
    assert Domain.from_toml(domain.to_toml()) == domain
    assert "recorded = true" in domain.to_toml()


def test_a_column_for_what_was_not_recorded_needs_a_default():
    with pytest.raises(DomainError, match="`recorded` of `bmi` must come with `missing`, its default"):
        Number(name="bmi", low=10.0, high=60.0, recorded=True)
    assert "recorded" not in Number(name="bmi", low=10.0, high=60.0, recorded=False).model_dump()


@pytest.mark.parametrize(
    ("feature", "place", "count"),
    [
        (Month(name="seen"), lambda day: day.month - 1, 12),
        (Weekday(name="seen"), lambda day: day.weekday(), 7),
    ],
    ids=["month", "weekday"],
)
def test_a_date_lies_on_a_circle(feature, place, count):
    rng = np.random.default_rng(3)
    dates = [
        datetime.date(1890, 1, 1) + datetime.timedelta(days=int(d)) for d in rng.integers(0, 60_000, 500)
    ]
    angles = 2.0 * np.pi * np.array([place(day) for day in dates]) / count
    wanted = np.column_stack([np.cos(angles), np.sin(angles)])
    kinds = (
        np.array([day.isoformat() for day in dates], dtype=object),
        np.array(dates, dtype="datetime64[D]"),
    )
    for cells in kinds:
        found = np.column_stack(feature.expanded(feature.coded(cells)))
        np.testing.assert_allclose(found, wanted, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(wanted, axis=1), 1.0)
    assert feature.column_names == [f"cos({feature.kind} of seen)", f"sin({feature.kind} of seen)"]


def test_a_month_is_missing_as_other_values_are():
    month = Month(name="seen", missing="2020-07-01", recorded=True)
    columns = np.array(month.expanded(month.coded(np.array(["", "2020-01-31"], dtype=object))))
    np.testing.assert_allclose(columns, [[-1.0, 1.0], [0.0, 0.0], [1.0, 0.0]], atol=1e-15)
    with pytest.raises(DomainError, match="`seen` is missing in a record"):
        Month(name="seen").coded(np.array([""], dtype=object))


def test_a_month_of_what_is_no_date_is_refused():
    domain = Domain(features=(Month(name="seen"),), label=LABEL)
    with pytest.raises(
        DomainError, match=r"`seen` must be a date in every record, such as 2015-01-31; got something else\."
    ):
        domain.encode({"seen": ["2020-02-30"]})
    found = domain.check({"seen": ["2020-02-30", "soon", "2020-02-28"], "ill": ["no"] * 3})
    assert found["record"].tolist() == [1, 2]
    assert all(found["problem"] == "not a date, of which the month or the weekday is taken")
    with pytest.raises(DomainError, match=r"`kind` of the feature 'seen' must be one of .*; got .*year"):
        Domain.from_toml(domain.to_toml().replace('"month"', '"year"'))
    assert Domain.from_toml(domain.to_toml()) == domain


@pytest.mark.long
def test_months_in_files_follow_the_dialect(tmp_path):
    (tmp_path / "t.csv").write_text("seen;ill\n" + "31.01.2020;no\n01.07.2021;yes\n" * 20)
    text = (
        '[table]\ndelimiter = ";"\ndates = "DD.MM.YYYY"\n'
        + Domain(features=(Month(name="seen"),), label=LABEL).to_toml()
    )
    domain = Domain.from_toml(text)
    model = expost.LogisticRegression(domain=domain, random_state=0).fit(
        expost.scan(str(tmp_path / "t.csv"), dialect=domain.table)
    )
    assert model.predict({"seen": ["2022-01-05", "2022-07-05"]}).tolist() == ["no", "yes"]


def test_more_products_than_anybody_fits_are_refused_at_once():
    """A file of 100 kB could else ask for 36 million columns."""
    many = tuple(f"c{place}" for place in range(400))
    features = (Category(name="a", categories=many), Category(name="b", categories=many))
    with pytest.raises(DomainError, match="at most 100,000 columns together; got 160,000"):
        Domain(features=features, label=LABEL, interactions=[{"product": ("a", "b")}])
