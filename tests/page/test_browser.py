"""The page in a real browser: its figures, its behaviour, and what it must never do."""

import json

import make
import numpy as np
import pages
import pytest
from browser import MISSING, Visit, launched, plain_people

import expost
from expost.page.numbers import payload

pytestmark = pytest.mark.skipif(
    bool(MISSING),
    reason=f"THE PAGE IS NOT TESTED IN A BROWSER on this machine; missing: {', '.join(MISSING)}",
)
HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def browser():
    with launched() as started:
        yield started


@pytest.fixture
def open_page(browser, tmp_path):
    visits = []

    def visit(*publications, **view):
        visits.append(Visit(browser, tmp_path, publications, **view))
        return visits[-1]

    yield visit
    for one in visits:
        requests, complaints = one.close()
        assert requests == [one.path.as_uri()]
        assert complaints == []


def hostile():
    X = np.random.default_rng(0).normal(size=(60, 2)) / 3
    model = expost.LogisticRegression(norm=1.0, classes=[HOSTILE, "<b>bold</b>"], random_state=1)
    labels = np.where(X[:, 0] > 0, HOSTILE, "<b>bold</b>")
    release = model.fit(X, labels).publication_.release
    return expost.Publication.from_release(
        release, classes=[HOSTILE, "<b>bold</b>"], feature_names=[HOSTILE, "&amp;"]
    )


# Every loss with every kind of report is compared in node; here every loss once, and every kind once.
IN_A_BROWSER = [
    pytest.param(
        loss,
        kind,
        marks=[pytest.mark.slow] * (kind != "adaptive" and loss != "logistic"),
        id=f"{loss}-{kind}",
    )
    for loss in pages.LOSSES
    for kind in pages.KINDS
]


@pytest.mark.parametrize(("loss", "kind"), IN_A_BROWSER)
def test_figures_agree_with_the_library(open_page, loss, kind):
    publication = pages.published(loss, kind)
    visit = open_page(publication)
    rng = np.random.default_rng(5)
    answers, asked = plain_people(rng, 500, publication), pages.questions(rng, 500)
    theirs = pages.by_python(publication, answers, asked)
    ours = visit.page.evaluate(
        """pairs => pairs.map(([answers, options]) => {
             const { lower, upper, reportCost, total } = expost.read(0, answers, options);
             return [lower, upper, reportCost, total];
           })""",
        list(zip(answers, asked, strict=True)),
    )
    assert pages.discrepancy(np.array(ours), theirs) < 1e-9

    fields = payload([publication])["fields"]
    visit.fill(fields, answers[0])
    visit.page.get_by_label("How sure should this page be?").select_option(index=asked[0]["confidence"])
    words = {True: "Yes", False: "No", None: "I don’t know"}
    visit.page.get_by_label(words[asked[0]["member"]], exact=True).check()
    visit.page.get_by_label("I chose my answers").set_checked(asked[0]["every"])
    shown = np.array([[*visit.figure("model"), *visit.figure("report"), *visit.figure("total")]])
    assert pages.discrepancy(shown, theirs[:1]) < 1e-9
    odds = visit.page.locator("#odds").inner_text()
    assert odds.startswith("Someone who thought it 50:50 that you were in the data")
    no_worst_case = "No worst case exists" in visit.page.locator("#released").inner_text()
    assert no_worst_case == (loss == "squared")


def test_a_pasted_line_fills_the_form(open_page):
    visit = open_page(pages.published("logistic", "leverage"))
    visit.page.get_by_text("Or paste one line").click()
    line = visit.page.get_by_label("One line of the table")
    line.fill('44.5, 20000, "south, old", true, 0, yes')
    visit.page.get_by_role("button", name="Fill in the form").click()
    assert visit.page.get_by_label("ward").input_value() == "south, old"
    assert visit.page.get_by_label("insured").input_value() == "no"
    assert "at most" in visit.page.locator("#odds").inner_text()
    line.fill("44.5,20000,west,true,0,yes")
    visit.page.get_by_role("button", name="Fill in the form").click()
    assert "Not one of the listed values: ward" in visit.page.locator("#pasted").inner_text()
    line.fill("1,2")
    visit.page.get_by_role("button", name="Fill in the form").click()
    assert "6 are needed" in visit.page.locator("#pasted").inner_text()


def test_missing_wrong_and_clipped_answers_are_reported(open_page):
    visit = open_page(pages.published("logistic", "independent"))
    assert "income, insured, ill" in visit.page.locator("#odds").inner_text()
    assert not visit.page.locator("#readings").is_visible()
    visit.page.get_by_label("income").fill("lots")
    assert "Please give a number" in visit.page.locator("#note-1").inner_text()
    assert visit.page.get_by_label("income").get_attribute("aria-invalid") == "true"
    visit.page.get_by_label("income").fill("1e9")
    assert "Counted as 90000" in visit.page.locator("#note-1").inner_text()


@pytest.mark.parametrize("name", ["huber", "squared"])
def test_numbers_at_the_end_of_double_precision_are_drawn(open_page, name):
    publication = expost.Publication.from_json(json.dumps(make.read("publications")[name]))
    visit = open_page(publication)
    answers = ["1e200", "-1e-300", "1e308"]
    visit.fill(payload([publication])["fields"], answers)
    theirs = pages.by_python(publication, [answers], [{"confidence": 1, "member": None, "every": False}])[0]
    assert visit.figure("total") == pytest.approx([theirs[3]], rel=1e-9)
    assert np.isinf(theirs[3]) == (name == "squared")
    assert ("∞" in visit.page.locator("#readings").inner_text()) == (name == "squared")
    for place in range(len(answers)):
        visit.page.get_by_label("Along").select_option(index=place)
        assert visit.page.locator("#curve svg").count() == 1
        assert "NaN" not in "".join(
            visit.page.locator("svg").evaluate_all("all => all.map((x) => x.outerHTML)")
        )
    assert "NaN" not in visit.page.locator("main").inner_text()


def test_numbers_are_read_as_the_library_reads_them(open_page):
    visit = open_page(pages.published("logistic", "independent"))
    income = visit.page.get_by_label("income")
    for typed, note in (
        ("1e6", "Counted as 90000."),
        (" 1000\u00a0", "from"),
    ):
        income.fill(typed)
        assert visit.page.locator("#note-1").inner_text().startswith(note)
        assert income.get_attribute("aria-invalid") == "false"
    for typed in ("4_0", "٤٠"):
        income.fill(typed)
        assert income.get_attribute("aria-invalid") == "true"


def test_everything_works_by_keyboard_alone(open_page):
    publication = pages.published("logistic", "leverage")
    visit = open_page(publication)
    keys = visit.page.keyboard
    for answer in ("61", "40000", "south", "yes", "no", "yes"):
        keys.press("Tab")
        keys.type(answer)
    keys.press("Tab")
    keys.press("Tab")
    keys.press("ArrowUp")  # from "I don't know" to "No"
    keys.press("Tab")
    keys.press("ArrowDown")  # from 95% to 99%
    keys.press("Tab")
    keys.press("Space")
    person = ["61", "40000", "south, old", "yes", "no", "yes"]
    theirs = pages.by_python(publication, [person], [{"confidence": 2, "member": False, "every": True}])
    assert visit.figure("total") == pytest.approx([float(theirs[0, 3])], rel=1e-9)
    keys.press("Tab")
    assert visit.page.evaluate("document.activeElement.id") == "feature"


@pytest.mark.parametrize("loss", ["logistic", "huber", "soft"])
def test_a_phone_needs_no_horizontal_scrolling(open_page, loss):
    publication = pages.published(loss, "adaptive")
    visit = open_page(publication, viewport={"width": 375, "height": 700})
    assert visit.overflow <= 0
    rng = np.random.default_rng(1)
    visit.fill(payload([publication])["fields"], plain_people(rng, 1, publication)[0])
    visit.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    for place in range(len(publication.domain.features) if publication.domain else 4):
        visit.page.get_by_label("Along").select_option(index=place)
        assert visit.page.locator("#curve svg").count() == 1
        assert visit.overflow <= 0


def test_hostile_names_are_text(open_page):
    visit = open_page(hostile())
    visit.page.get_by_label(HOSTILE, exact=True).fill("0.1")
    visit.page.get_by_label("&amp;", exact=True).fill("0.2")
    visit.page.get_by_label("outcome").select_option(HOSTILE)
    visit.page.get_by_label("Along").select_option(label=HOSTILE)
    assert HOSTILE in visit.page.locator("#curve").text_content()
    assert HOSTILE in visit.page.locator("#published").text_content()
    assert visit.page.locator("img, b").count() == 0
    assert visit.page.locator(".banner").inner_text().startswith("INSECURE")


def test_the_policy_stops_an_injected_script(browser, tmp_path):
    visit = Visit(browser, tmp_path, [pages.published("logistic", "independent")])
    for inject in (
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'ran = 1'}))",
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"ran = 1\">')",
        "document.body.append(Object.assign(document.createElement('script'), {src: 'https://x.org/x.js'}))",
        "fetch('https://example.org/').catch(() => null)",
    ):
        visit.page.evaluate(f"() => {{ {inject} }}")
    visit.page.wait_for_timeout(200)
    assert visit.page.evaluate("globalThis.ran") is None
    requests, complaints = visit.close()
    # Blocked requests are reported too, with the reason why they were not sent.
    assert set(requests) - set(visit.stopped) == {visit.path.as_uri()}
    assert set(visit.stopped.values()) == {"csp"}
    assert any("Content Security Policy" in complaint for complaint in complaints)


def test_a_dialog_would_be_noticed(browser, tmp_path):
    visit = Visit(browser, tmp_path, [pages.published("logistic", "independent")])
    visit.page.evaluate("alert('a name was run')")
    assert visit.close()[1] == ["a dialog: a name was run"]


def test_nothing_is_stored(browser, tmp_path):
    watched = """
      globalThis.touched = [];
      for (const name of ["localStorage", "sessionStorage", "indexedDB", "caches"]) {
        Object.defineProperty(globalThis, name, { get() { globalThis.touched.push(name); } });
      }
      Object.defineProperty(Document.prototype, "cookie", {
        get() { globalThis.touched.push("cookie"); }, set() { globalThis.touched.push("cookie"); },
      });"""
    publication = pages.published("logistic", "leverage")
    visit = Visit(browser, tmp_path, [publication])
    visit.page.add_init_script(watched)
    visit.page.reload()
    answers = plain_people(np.random.default_rng(2), 1, publication)[0]
    visit.fill(payload([publication])["fields"], answers)
    assert visit.page.evaluate("globalThis.touched") == []
    assert visit.context.cookies() == []
    visit.close()


def test_several_publications_have_a_total_of_all(open_page):
    several = [pages.published("logistic", "independent"), pages.published("logistic", "leverage", seed=4)]
    visit = open_page(*several)
    rng = np.random.default_rng(3)
    answers, asked = plain_people(rng, 1, several[0]), [{"confidence": 1, "member": None, "every": False}]
    visit.fill(payload(several)["fields"], answers[0])
    totals = [pages.by_python(one, answers, asked, sharing=2)[0, 3] for one in several]
    assert visit.figure("total") == pytest.approx(totals, rel=1e-9)
    together = pages.totals_by_python(several, answers, asked)
    assert visit.figure("sum") == pytest.approx(together, rel=1e-9)
    assert together < sum(totals)
    assert "all of these publications" in visit.page.locator("#odds").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_accessibility_violation(browser, tmp_path, scheme):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="ACCESSIBILITY IS NOT TESTED: axe-playwright-python is missing",
    )
    publication = pages.published("logistic", "leverage")
    visit = Visit(browser, tmp_path, [publication], color_scheme=scheme)
    answers = plain_people(np.random.default_rng(2), 1, publication)[0]
    visit.fill(payload([publication])["fields"], answers)
    visit.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    found = axe.Axe().run(visit.page).response["violations"]
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert serious == [], json.dumps(serious, indent=1)[:3000]
    visit.close()
