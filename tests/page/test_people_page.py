"""A person with several rows and a household on the page, in a browser: cards, answers, promises, words."""

from functools import cache

import kidney
import numpy as np
import pages
import pytest
from test_accessibility import RULES

import expost
from expost.exceptions import DomainError
from expost.page import render
from expost.page.introduction import right_of_hundred
from expost.page.numbers import payload
from expost.page.people import MOST_ROWS

WORDS = {
    "en": 'everyone = "every patient"\nrow_word = "visit"\nrow_words = "visits"\n',
    "de": 'everyone = "alle Kranken"\nrow_word = "Besuch"\nrow_words = "Besuche"\n',
    None: "",
}
USUAL = {"confidence": 1, "member": None, "every": False}
NAMES = "age,sex,sbp,dm,crea,hb,worse"


@cache
def published(words="en", report="leverage", epsilon=1.0):
    texts = kidney.TEXTS.format(title="Kidney model", date="2026-06-03", opt_out="true") + WORDS[words]
    domain = expost.Domain.from_toml(kidney.FEATURES + kidney.LABEL + texts)
    X, y = kidney.drawn(domain, np.random.default_rng(3), 400)
    model = expost.LogisticRegression(domain=domain, report=report, epsilon=epsilon, unit="person")
    return model.fit(X, y, groups=np.arange(400) // 4).publication_


def visits(count):
    """Answers for so many visits, of which age, blood pressure and creatinine change."""
    return [
        [str(47 + i), "f", str(152 - 2 * i), "no", f"{2.1 - 0.05 * i:.2f}", "11.2", str(int(i % 3 == 0))]
        for i in range(count)
    ]


def paste(visit, rows):
    visit.page.locator("#from").evaluate("one => { one.open = true; }")
    visit.page.locator("#paste").fill("\n".join([NAMES, *(",".join(row) for row in rows)]))
    visit.page.locator("#check").click()


def expected(publication, rows, forgotten=0):
    return pages.persons_by_python(publication, [rows], [USUAL], [forgotten])[0]


@pytest.mark.long
@pytest.mark.parametrize(
    "count", [pytest.param(1, marks=pytest.mark.docs), pytest.param(3, marks=pytest.mark.docs), 12]
)
def test_a_file_with_all_her_visits_answers_for_her(open_page, count):
    publication, rows = published(), visits(count)
    visit = open_page(publication)
    paste(visit, rows)
    assert visit.page.locator(".card").count() == count
    figures = expected(publication, rows)
    assert f"{right_of_hundred(figures[3])} of 100" in visit.headline
    shown = [*visit.figure("model"), *visit.figure("report"), *visit.figure("total")]
    assert shown == pytest.approx(figures.tolist(), rel=1e-9)
    if count > 1:
        assert f"for all your {count} visits together" in visit.text("#answer .status")
        assert f"{count} visits found" in visit.text("#preview")
    assert visit.text(".panel.all h3") == "The promise to every patient"


def test_a_card_copies_the_one_before_and_waits_until_she_confirms_it(open_page):
    publication = published()
    visit = open_page(publication)
    assert "This page is about a promise to every patient, for all visits together." in visit.text(".lead")
    visit.fill(kidney.ANSWERS)
    assert "Your result" in visit.text("#answer .status")
    visit.page.get_by_label("How many visits did you have?").fill("2")
    assert "still an invented person" in visit.text("#answer .status")
    visit.page.locator("#card-2 > summary").click()
    visit.page.wait_for_function(
        "age => document.getElementById('card-2-field-0').value === age", arg=kidney.ANSWERS[0]
    )
    visit.page.locator("#card-2-field-0").fill("48")
    assert "Example" in visit.text("#answer .status")
    visit.page.get_by_label("Visit 2: all answers are right").check()
    rows = [kidney.ANSWERS, ["48", *kidney.ANSWERS[1:]]]
    assert visit.figure("total") == pytest.approx([expected(publication, rows)[3]], rel=1e-9)
    # Fewer visits: the answer is hers again, of one.
    visit.page.get_by_label("How many visits did you have?").fill("1")
    assert visit.figure("total") == pytest.approx([expected(publication, rows[:1])[3]], rel=1e-9)


@pytest.mark.parametrize("way", ["box", "open answer"])
def test_a_visit_that_she_does_not_remember(open_page, way):
    publication, rows = published(), visits(3)
    visit = open_page(publication)
    paste(visit, rows)
    visit.page.locator("#card-3 > summary").click()
    if way == "box":
        visit.page.locator("#card-3").get_by_label("I don’t remember this visit").check()
        assert "not remembered" in visit.text("#card-3 > summary")
    else:
        visit.page.locator("#card-3-field-0-unknown").check()
        assert "this whole visit counts as not remembered" in visit.text("#card-3")
    figures = expected(publication, rows[:2], 1)
    assert visit.figure("total") == pytest.approx([figures[3]], rel=1e-9)
    assert visit.figure("model") == pytest.approx([0.0, figures[1]], rel=1e-9)
    assert "1 of your visits is not known" in visit.text("#answer .flag")
    # Not all of them.
    for card in (1, 2):
        visit.page.locator(f"#card-{card}").evaluate("one => { one.open = true; }")
        visit.page.locator(f"#card-{card}-forgotten").check()
    if way == "box":
        assert "at least one of your visits" in visit.text("#answer") or "no result" in visit.headline


def test_without_the_number_there_is_no_answer_and_the_page_says_why(open_page):
    visit = open_page(published())
    visit.fill(kidney.ANSWERS)
    visit.page.locator("#count-unknown").check()
    assert "without the number of your visits, no limit can be worked out" in visit.text("#answer .status")
    assert visit.headline == "There is no result yet."
    visit.page.locator("#answer .status button").click()
    assert visit.page.evaluate("document.activeElement.id") == "count"
    for text in ("0", "x", str(MOST_ROWS + 1)):
        visit.page.locator("#count").fill(text)
        assert visit.page.locator("#count-message").inner_text() != ""
        assert visit.headline == "There is no result yet."
    visit.page.locator("#count").fill("1")
    assert "Your result" in visit.text("#answer .status")


def test_too_many_visits_are_refused(open_page):
    visit = open_page(published())
    paste(visit, visits(MOST_ROWS + 1))
    assert f"at most {MOST_ROWS} visits" in visit.text("#preview")
    assert visit.headline == "There is no result yet."


def test_a_household_is_read_together_with_its_own_promise(open_page):
    publication = kidney.published()
    visit = open_page(publication)
    visit.fill(kidney.ANSWERS)
    alone = visit.figure("total")
    visit.page.get_by_role("button", name="Add someone from your household").click()
    assert visit.page.evaluate("document.activeElement.id") == "card-2-field-0"
    other = ["50", "m", "130", "yes", "1.1", "14", "0"]
    for place, text in ((0, "50"), (2, "130"), (4, "1.1"), (5, "14")):
        visit.page.locator(f"#card-2-field-{place}").fill(text)
    for box in ("1-1", "3-0", "6-0"):
        visit.page.locator(f"#card-2-field-{box}").check()
    figures = expected(publication, [kidney.ANSWERS, other])
    assert visit.figure("total") == pytest.approx([figures[3]], rel=1e-9)
    assert "all were in the data, or none" in visit.text("#answer .status")
    promise = right_of_hundred(publication.release.plan.epsilon_for(2))
    assert visit.text(".panel.all h3") == "The promise to any 2 people"
    assert f"{promise}%" in visit.text(".panel.all .fig")
    # Every answer is needed.
    visit.page.locator("#card-2-field-0-unknown").check()
    assert "every answer is needed" in visit.text("#answer")
    visit.page.get_by_role("button", name="Remove this person").click()
    assert visit.figure("total") == pytest.approx(alone, rel=1e-12)


@pytest.mark.docs
def test_german_words(open_page):
    visit = open_page(published("de"), language="de")
    paste(visit, visits(3))
    assert "eine Zusage an alle Kranken, für alle Besuche zusammen" in visit.text(".lead")
    assert "Wie viele Besuche hatten Sie?" in visit.text("#form")
    assert "Besuch 2" in visit.text("#card-2 > summary")
    assert "für alle 3 Besuche zusammen" in visit.text("#answer .status")


@pytest.mark.docs
def test_print_has_what_differs_between_visits(open_page):
    visit = open_page(published())
    paste(visit, visits(3))
    visit.page.emulate_media(media="print")
    assert visit.text("#print-answers").count("Visit") == 3
    assert visit.text("#print-answers").count("Sex") == 1
    assert visit.text("#print-answers").count("Age") == 3
    assert "all of her real records together" in visit.text("main")
    # One that she does not remember keeps its number from the others.
    visit.page.emulate_media(media="screen")
    visit.page.locator("#card-2 > summary").click()
    visit.page.locator("#card-2-forgotten").check()
    visit.page.emulate_media(media="print")
    assert "Visit 3" in visit.text("#print-answers")
    assert "Visit 2" not in visit.text("#print-answers")


@pytest.mark.docs
@pytest.mark.parametrize("width", [1280, 390, 320])
def test_nothing_sticks_out(open_page, width):
    visit = open_page(published(), viewport={"width": width, "height": 800})
    paste(visit, visits(12))
    visit.open_details()
    assert visit.overflow <= 0


@pytest.mark.docs
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark"), (320, "light")])
def test_axe_finds_nothing(open_page, width, scheme):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="ACCESSIBILITY IS NOT TESTED: axe-playwright-python is missing",
    )
    visit = open_page(published(), viewport={"width": width, "height": 800}, color_scheme=scheme)
    paste(visit, visits(3))
    visit.page.locator("#card-3 > summary").click()
    visit.page.locator("#card-3-forgotten").check()
    visit.page.locator("#card-2 > summary").click()
    found = axe.Axe().run(visit.page, options=RULES).response["violations"]
    assert [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found] == []


def test_words_are_generic_where_none_are_declared():
    page = render([published(None)])
    assert "This page is about a promise to every person, for all records together." in page
    assert len(page.encode()) < 500_000


def test_words_come_together_and_only_where_they_are_declared():
    with pytest.raises(DomainError, match="`row_word` and `row_words` must be declared together"):
        expost.PublicationTexts(row_word="visit")
    assert "row_word" not in kidney.published().to_json()
    assert '"row_words": "visits"' in published().to_json()


def test_promises_to_families_are_those_of_the_plan():
    row, person = kidney.published(), published()
    plan = row.release.plan
    assert payload([row])["promises"] == [plan.epsilon, *(plan.epsilon_for(size) for size in range(2, 6))]
    assert payload([person])["promises"] == [person.release.plan.epsilon]
