"""Curves, products and "not recorded" on the page: nothing new is asked, and its figures are Python's."""

import json
from functools import cache

import node
import numpy as np
import pages
import pytest

import expost
from expost import Category, ClassLabel, Domain, Interaction, Month, Number, Weekday, YesNo
from expost.page.numbers import CONSTANTS, payload

FEATURES = (
    Number(name="age", low=18.0, high=90.0, knots=(30.0, 45.5, 60.1)),
    Number(name="dose", low=-5.0, high=200.0, knots=(0.1, 0.1 + 0.2), effect="increasing"),
    Number(name="bmi", low=10.0, high=60.0, scale="unit", missing=25.0, recorded=True),
    YesNo(name="smoker"),
    Category(name="ward", categories=("north", "south", "east"), missing="east", recorded=True),
)
PAIRS = (("age", "smoker"), ("bmi", "age"), ("ward", "smoker"), ("ward", "bmi"))


def domain(effects=True):
    features = (
        FEATURES
        if effects
        else tuple(one.model_copy(update={"effect": None}) if one.name == "dose" else one for one in FEATURES)
    )
    label = ClassLabel(name="ill", classes=("no", "yes"))
    return Domain(features=features, label=label, interactions=[Interaction(product=pair) for pair in PAIRS])


def people(rng, count):
    return [
        [
            repr(float(age)), repr(float(dose)), bmi, smoker, ward, ill,
        ]
        for age, dose, bmi, smoker, ward, ill in zip(
            rng.choice([18.0, 30.0, 45.5, 90.0, 99.0, *rng.uniform(10, 100, 20)], count),
            rng.choice([-5.0, 0.1, 0.1 + 0.2, *rng.uniform(-9, 1, 9), *rng.uniform(0, 220, 9)], count),
            rng.choice(["", "25", "12.5", "61"], count).tolist(),
            rng.choice(["yes", "no"], count).tolist(),
            rng.choice(["north", "south", "east", ""], count).tolist(),
            rng.choice(["no", "yes"], count).tolist(),
            strict=True,
        )
    ]  # fmt: skip


@cache
def published(report="independent", effects=False, **options):
    X, y = pages.as_table(people(np.random.default_rng(5), 300), domain(effects))
    model = expost.LogisticRegression(domain=domain(effects), random_state=1, report=report, **options)
    return model.fit(X, y).publication_


@pytest.mark.long
def test_nothing_new_is_asked():
    numbers = payload([published()])
    assert [field["name"] for field in numbers["fields"]] == ["age", "dose", "bmi", "smoker", "ward", "ill"]
    assert numbers["publications"][0]["products"] == [(0, 3), (2, 0), (4, 3), (4, 2)]
    assert "age=30 × smoker" in numbers["publications"][0]["columns"]


@pytest.mark.skipif(node.NODE is None, reason=node.MISSING)
@pytest.mark.parametrize("effects", [True, False])
def test_every_column_has_the_same_bits(effects):
    rng = np.random.default_rng(2)
    features = domain(effects).features
    fields = [feature.model_dump(mode="json") for feature in features]
    cells = [[place, row[place]] for row in people(rng, 200) for place in range(len(features))]
    encoded = node.answer("encode.mjs", {"fields": fields, "cells": cells, "words": CONSTANTS["words"]})
    for (place, text), ours in zip(cells, encoded, strict=True):
        codes = features[place].coded(np.array([text], dtype=object))
        assert ours == [float(column[0]) for column in features[place].expanded(codes)]


@pytest.mark.long
@pytest.mark.skipif(node.NODE is None, reason=node.MISSING)
@pytest.mark.parametrize(("report", "effects"), [("independent", True), ("leverage", False)])
def test_figures_are_those_of_the_library(report, effects):
    rng = np.random.default_rng(0)
    publication = published(report, effects)
    answers, asked = people(rng, 80), pages.questions(rng, 80)
    numbers = json.loads(json.dumps(payload([publication])))
    ours = pages.by_node(numbers, [[0, *pair] for pair in zip(answers, asked, strict=True)])
    assert pages.discrepancy(ours, pages.by_python(publication, answers, asked)) < 1e-9


@pytest.mark.long
@pytest.mark.skipif(node.NODE is None, reason=node.MISSING)
@pytest.mark.parametrize("report", ["independent", "leverage"])
def test_no_value_of_an_unknown_answer_gives_more(report):
    rng = np.random.default_rng(6)
    publication = published(report)
    asked = []
    for person, option in zip(people(rng, 10), pages.questions(rng, 10), strict=True):
        places = rng.choice(6, size=rng.integers(1, 5), replace=False)
        asked.append([0, [None if i in places else answer for i, answer in enumerate(person)], option])
    asked.append([0, [None] * 6, asked[0][2]])
    numbers = payload([publication])
    found = node.answer("ranges.mjs", {"numbers": [numbers], "asked": asked, "tries": 800})["results"]
    assert all(bound >= largest for bound, largest in found)
    ratios = np.array([bound / largest for bound, largest in found])
    assert np.median(ratios) < 1.1
    assert np.max(ratios) < 3.0


CIRCLES = Domain(
    features=(
        Month(name="seen", missing="2020-07-01", recorded=True),
        Weekday(name="left"),
        Number(name="age", low=0.0, high=100.0),
    ),
    label=ClassLabel(name="ill", classes=("no", "yes")),
    interactions=[Interaction(product=("seen", "age"))],
)


def days_of(rng, count):
    """Dates as texts, and what the page asks for in their place."""
    dates = np.datetime64("1960-01-01") + rng.integers(0, 25_000, count)
    months = (dates.astype("datetime64[M]").astype(int) % 12 + 1).astype(str).tolist()
    weekdays = ((dates.astype(int) + 3) % 7 + 1).astype(str).tolist()
    return dates.astype(str).tolist(), months, weekdays


@cache
def on_circles():
    rng = np.random.default_rng(8)
    table = {"seen": days_of(rng, 200)[0], "left": days_of(rng, 200)[0], "age": rng.uniform(0, 100, 200)}
    model = expost.LogisticRegression(domain=CIRCLES, random_state=1)
    return model.fit(table, rng.choice(["no", "yes"], 200)).publication_


@pytest.mark.long
@pytest.mark.skipif(node.NODE is None, reason=node.MISSING)
def test_months_and_weekdays_are_asked_and_read_as_python_reads_dates():
    rng = np.random.default_rng(9)
    (seen, months, _), (left, _, weekdays) = days_of(rng, 60), days_of(rng, 60)
    seen[0], months[0] = "", ""
    ages = rng.uniform(0, 100, 60).tolist()
    asked = pages.questions(rng, 60)
    numbers = json.loads(json.dumps(payload([on_circles()])))
    given = [[m, w, repr(a), "yes"] for m, w, a in zip(months, weekdays, ages, strict=True)]
    ours = pages.by_node(numbers, [[0, *pair] for pair in zip(given, asked, strict=True)])
    answers = [[s, d, repr(a), "yes"] for s, d, a in zip(seen, left, ages, strict=True)]
    assert pages.discrepancy(ours, pages.by_python(on_circles(), answers, asked)) < 1e-9
    assert numbers["fields"][0]["missing"] == "7"
    unknown = [[0, [None, None, None, "yes"], asked[0]], [0, ["", None, "30", None], asked[1]]]
    found = node.answer("ranges.mjs", {"numbers": [numbers], "asked": unknown, "tries": 300})["results"]
    assert all(largest <= bound < 1.1 * largest for bound, largest in found)


@pytest.mark.long
def test_a_person_gives_a_month_or_a_date_in_her_own_file(open_page):
    spanish = open_page(on_circles(), language="es")
    columns = " ".join(spanish.page.locator("#published th").all_text_contents())
    for name in ("sin(mes de seen)", "cos(día de la semana de left)", "seen sin anotar × age"):
        assert name in columns
    assert "constante" in columns
    assert " of " not in columns
    visit = open_page(on_circles())
    options = visit.page.locator("#field-0 option").all_inner_texts()
    assert options[1:3] == ["January", "February"]
    assert visit.page.locator("#field-1 option").all_inner_texts()[1:3] == ["Monday", "Tuesday"]
    visit.page.evaluate("document.getElementById('from').open = true")
    usual = {"confidence": 1, "member": None, "every": False}
    wanted = pages.by_python(on_circles(), [["1954-07-09", "1969-12-31", "80", "yes"]], [usual])[0, 3]
    for days in ("9.7.1954;1969-12-31", "july;Wednesday"):
        visit.page.locator("#clear").click()
        visit.page.locator("#paste").fill(f"seen;left;age;ill\n{days};80,0;yes\n")
        visit.page.locator("#check").click()
        assert visit.figure("total") == pytest.approx([wanted], rel=1e-9)
