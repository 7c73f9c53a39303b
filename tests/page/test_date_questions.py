"""A date is asked for as a date, and the page counts its days as Python does."""

import datetime
import json
from functools import cache

import node
import numpy as np
import pages
import pytest

import expost
from expost import ClassLabel, Date, Domain, Number
from expost.page.numbers import payload

DOMAIN = Domain(
    features=(
        Date(name="born", low="1900-03-01", high="2024-02-29", missing="1970-01-01"),
        Number(name="weight", low=0.0, high=200.0),
    ),
    label=ClassLabel(name="ill", classes=("no", "yes")),
)
USUAL = {"confidence": 1, "member": None, "every": False}


@cache
def published():
    rng = np.random.default_rng(1)
    days = np.datetime64("1920-01-01") + rng.integers(0, 30_000, 300)
    table = {"born": days, "weight": rng.uniform(0, 200, 300)}
    model = expost.LogisticRegression(domain=DOMAIN, random_state=0)
    return model.fit(table, ["yes", "no"] * 150).publication_


def test_a_publication_has_dates_as_texts():
    publication = published()
    assert expost.Publication.from_json(publication.to_json()).domain.features == DOMAIN.features
    declared = json.loads(publication.to_json())["domain"]["features"][0]
    assert declared == {
        "name": "born", "kind": "date", "low": "1900-03-01", "high": "2024-02-29", "missing": "1970-01-01",
    }  # fmt: skip


@pytest.mark.skipif(node.NODE is None, reason=node.MISSING)
def test_the_page_counts_days_as_python_does():
    rng = np.random.default_rng(0)
    first = datetime.date(1890, 1, 1)
    # Days beyond both bounds, leap days, short spellings, times of day, and missing ones.
    days = [first + datetime.timedelta(days=int(day)) for day in rng.integers(0, 365 * 140, 300)]
    spelt = [day.isoformat() for day in days]
    spelt[:5] = ["2000-02-29", "1900-3-1", " 1969-12-31 ", "1980-12-31 23:59:59", ""]
    answers = [[text, str(w), "yes"] for text, w in zip(spelt, rng.integers(0, 200, 300), strict=True)]
    numbers = json.loads(json.dumps(payload([published()])))
    asked = pages.questions(rng, len(answers))
    ours = pages.by_node(numbers, [[0, *pair] for pair in zip(answers, asked, strict=True)])
    theirs = pages.by_python(published(), answers, asked, sharing=1)
    assert pages.discrepancy(ours, theirs) < 1e-9


def expected(born):
    return pages.by_python(published(), [[born, "80", "yes"]], [USUAL])[0, 3]


def test_a_person_gives_a_date_in_the_form_or_in_her_own_file(open_page):
    visit = open_page(published())
    assert visit.text("#field-0-hint") == "1 March 1900 to 29 February 2024"
    visit.open_details()
    visit.page.locator("#along").select_option(label="born")
    assert "Aug 1942" in " ".join(visit.page.locator("#curve text").all_text_contents())
    visit.fill(["1954-07-09", "80", "yes"])
    assert visit.figure("total") == pytest.approx([expected("1954-07-09")], rel=1e-9)
    visit.page.locator("#field-0").fill("1899-12-31")
    assert visit.figure("total") == pytest.approx([expected("1900-03-01")], rel=1e-9)
    visit.page.locator("#field-0-missing").check()
    assert visit.figure("total") == pytest.approx([expected("1970-01-01")], rel=1e-9)
    visit.page.evaluate("document.getElementById('from').open = true")
    for cell, born in (("9.7.1954", "1954-07-09"), ("1960-02-29", "1960-02-29")):
        visit.page.locator("#paste").fill(f"born;weight;ill\n{cell};80,0;yes\n")
        visit.page.locator("#check").click()
        assert visit.page.locator("#field-0").input_value() == born
        assert visit.figure("total") == pytest.approx([expected(born)], rel=1e-9)
    visit.page.locator("#paste").fill("born;weight;ill\nsoon;80,0;yes\n")
    visit.page.locator("#check").click()
    assert "Please write this as a day, such as" in visit.text("#preview")


@pytest.mark.slow
def test_a_date_may_be_unknown(open_page):
    visit = open_page(published())
    visit.fill(["1954-07-09", "80", "yes"])
    visit.page.locator("#field-0-unknown").check()
    largest = max(expected(born) for born in ("1900-03-01", "1930-01-01", "1954-07-09", "2024-02-29"))
    assert visit.figure("total")[0] >= largest * (1 - 1e-9)
