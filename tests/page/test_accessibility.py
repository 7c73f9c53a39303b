"""The page for everyone: axe, keyboard, widths, zoom, print, names of pictures."""

import re
from importlib.resources import files
from itertools import pairwise

import kidney
import pages
import pytest
from browser import Visit

from expost.page import render

# `make check-docs` runs these: a browser takes its time.
pytestmark = pytest.mark.docs

WIDTHS = [1280, 390, 320]
# The rules of WCAG 2.2 A and AA, and axe's own advice.
RULES = {
    "runOnly": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    }
}


def two():
    return [
        kidney.published(),
        kidney.published(title="Kidney check", date="2025-03-14", seed=5, report="independent"),
    ]


def in_state(visit, state):
    """Bring the page into a state."""
    if state != "example":
        visit.fill(kidney.ANSWERS)
    if state == "waiting":
        visit.page.locator("#field-2").fill("lots")
        visit.page.locator("#field-2").blur()
    if state == "file":
        visit.page.locator("#from > summary").click()
        visit.page.locator("#paste").fill(
            "age;sex;sbp;dm;crea;hb;worse\n47;f;152;no;2,1;11;1\n50;m;1;no;1;1;0"
        )
        visit.page.locator("#check").click()
    if state == "experts":
        visit.page.locator("#field-2").fill("400")
        visit.open_details()


CASES = [
    pytest.param(1280, "light", "experts", id="1280-light-experts"),
    pytest.param(390, "dark", "own", id="390-dark-own"),
    pytest.param(320, "light", "waiting", id="320-light-waiting"),
    *(
        pytest.param(width, scheme, state, marks=pytest.mark.slow, id=f"{width}-{scheme}-{state}-slow")
        for width in WIDTHS
        for scheme in ("light", "dark")
        for state in ("example", "own", "waiting", "file", "experts")
    ),
]


@pytest.mark.parametrize(("width", "scheme", "state"), CASES)
def test_axe_finds_nothing_and_nothing_sticks_out(browser, tmp_path, width, scheme, state):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="ACCESSIBILITY IS NOT TESTED: axe-playwright-python is missing",
    )
    visit = Visit(
        browser,
        tmp_path,
        two(),
        color_scheme=scheme,
        viewport={"width": width, "height": 800},
        reduced_motion="reduce",
    )
    in_state(visit, state)
    assert visit.overflow <= 0
    found = axe.Axe().run(visit.page, options=RULES).response["violations"]
    told = [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found]
    assert told == []
    visit.close()


def test_everything_works_by_keyboard_alone(open_page):
    publication = kidney.published()
    visit = open_page(publication)
    keys, active = visit.page.keyboard, lambda: visit.page.evaluate("document.activeElement.id")
    # The first stop leads past everything to the answer.
    keys.press("Tab")
    assert visit.page.evaluate("document.activeElement.className") == "skip"
    keys.press("Enter")
    keys.press("Tab")
    assert visit.page.evaluate("document.activeElement.textContent") == "Enter your values"
    keys.press("Enter")
    assert active() == "field-0"
    # Enter goes on to the next question.
    keys.type("47")
    keys.press("Enter")
    assert active() == "field-1-0"
    keys.press("Space")
    keys.press("Enter")
    assert active() == "field-2"
    keys.type("152")
    keys.press("Enter")
    keys.press("ArrowDown")  # from yes to no
    keys.press("Enter")
    keys.type("2,1")
    keys.press("Enter")
    keys.type("11.2")
    keys.press("Enter")
    keys.press("ArrowDown")
    assert visit.text("#answer .status").startswith("Your result")
    while active() != "clear":
        keys.press("Tab")
    keys.press("Tab")
    assert visit.page.evaluate("document.activeElement.textContent") == "See my result"
    keys.press("Enter")
    assert active() == "answer"
    visit.page.locator("#experts > summary").focus()
    keys.press("Enter")
    keys.press("Tab")
    assert active() == "confidence"
    keys.press("ArrowDown")  # from 95% to 99%
    keys.press("Tab")
    keys.press("ArrowUp")  # from unknown to no
    keys.press("Tab")
    keys.press("Space")
    asked = {"confidence": 2, "member": False, "every": True}
    theirs = pages.by_python(publication, [kidney.ANSWERS], [asked])
    assert visit.figure("total") == pytest.approx([float(theirs[0, 3])], rel=1e-9)


@pytest.mark.slow
def test_focus_is_never_hidden_and_targets_are_large(open_page):
    """WCAG 2.2: 2.4.11 and 2.5.8, at the width where the bar sticks to the bottom."""
    visit = open_page(kidney.published(), viewport={"width": 390, "height": 600}, reduced_motion="reduce")
    covered = visit.page.evaluate(
        """() => {
             const bar = document.getElementById("side");
             const found = [];
             for (const one of document.querySelectorAll("#form input, #form summary, #clear")) {
               one.focus();
               const box = one.getBoundingClientRect();
               const end = Math.min(bar.getBoundingClientRect().top, innerHeight);
               if (box.top < 0 || box.bottom > end) found.push(one.id || one.textContent);
             }
             return found;
           }"""
    )
    assert covered == []
    small = visit.page.evaluate(
        """() => [...document.querySelectorAll("button, select, summary, .dunno, .opts label, .box, a.btn")]
             .filter((one) => one.checkVisibility())
             .map((one) => [one.textContent.slice(0, 30), one.getBoundingClientRect()])
             .filter(([, box]) => box.width < 24 || box.height < 24)"""
    )
    assert small == []


@pytest.mark.slow
def test_text_twice_as_large_still_fits(open_page):
    """A zoom of 200% on a window of 1280 pixels is one of 640; or the reader enlarges the text alone."""
    visit = open_page(kidney.published())
    visit.fill(kidney.ANSWERS)
    for width, size in ((640, "16px"), (1280, "32px"), (390, "32px")):
        visit.page.set_viewport_size({"width": width, "height": 400})
        visit.page.evaluate("size => document.documentElement.style.setProperty('font-size', size)", size)
        assert visit.page.evaluate("getComputedStyle(document.documentElement).fontSize") == size
        assert visit.overflow <= 0


def test_pictures_have_names_and_say_what_the_text_says(open_page):
    visit = open_page(*two())
    visit.fill(kidney.ANSWERS)
    names = visit.page.locator("#answer .panel svg").evaluate_all("all => all.map((one) => one.ariaLabel)")
    figures = [int(text.strip("%")) for text in visit.page.locator("#answer .fig b").all_inner_texts()]
    for name, right in zip(names, figures, strict=True):
        assert name.startswith(f"{right} of 100 figures stand for right guesses.")
    for panel, right in zip(visit.page.locator("#answer .panel").all(), figures, strict=True):
        assert panel.locator(".tile").count() == right - 50
        assert panel.locator(".luck").count() == 50
        assert panel.locator(".wrong").count() == 100 - right
    visit.open_details()
    assert (
        visit.page.locator("#curve svg").get_attribute("aria-label").startswith("The total along Age: from")
    )
    # One heading of the first level, and none that skips one.
    levels = visit.page.locator("h1, h2, h3, h4").evaluate_all(
        "all => all.map((one) => Number(one.tagName[1]))"
    )
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.slow
def test_little_moves_and_nothing_where_that_is_asked_for(open_page):
    for motion, wanted in (("reduce", ["none", "auto"]), ("no-preference", ["arrive", "smooth"])):
        visit = open_page(kidney.published(), reduced_motion=motion)
        moving = visit.page.evaluate(
            """() => [getComputedStyle(document.querySelector(".tile")).animationName,
                     getComputedStyle(document.documentElement).scrollBehavior]"""
        )
        assert moving == wanted


def luminance(colour):
    """The relative luminance of WCAG."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


GROUNDS = ("paper", "card", "sunk")
TEXT = [
    *((text, ground) for text in ("ink", "quiet", "accent", "warm") for ground in GROUNDS),
    ("on-accent", "accent"),
    ("accent", "accent-soft"),
    ("ink", "accent-soft"),
    ("ink", "warm-soft"),
    ("warm", "warm-soft"),
]
MARKS = [
    *((mark, ground) for mark in ("edge", "luck", "accent", "warm") for ground in (*GROUNDS, "warm-soft")),
    ("on-warm", "warm"),
]


def test_text_and_marks_stand_out():
    """4.5 to 1 for text and 3 to 1 for marks and borders, light and dark; axe does not look at drawings."""
    style = (files("expost.page") / "static" / "base.css").read_text(encoding="utf-8")
    light, dark = (
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block)) for block in style.split("@media")[:2]
    )
    for scheme in (light, light | dark):
        assert [pair for pair in TEXT if contrast(scheme[pair[0]], scheme[pair[1]]) < 4.5] == []
        assert [pair for pair in MARKS if contrast(scheme[pair[0]], scheme[pair[1]]) < 3.0] == []


@pytest.mark.slow
def test_the_result_is_read_out_once_she_pauses(open_page):
    visit = open_page(kidney.published())
    visit.fill(kidney.ANSWERS)
    assert visit.text("#announce") == ""
    visit.page.locator("#announce", has_text="of 100").wait_for(state="attached")
    assert re.fullmatch(
        r"With your answers, at most \d+ of 100 guesses would be right\.", visit.text("#announce")
    )


def pages_printed(visit):
    pdf = visit.page.pdf(prefer_css_page_size=True)
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))


@pytest.mark.parametrize(
    ("language", "state"),
    [
        ("de", "experts"),
        *(
            pytest.param(language, state, marks=pytest.mark.slow)
            for language in ("en", "de")
            for state in ("example", "own", "waiting", "experts")
        ),
    ],
)
def test_print_is_one_page_that_starts_with_the_result(open_page, language, state):
    visit = open_page(*two(), language=language, viewport={"width": 390, "height": 800})
    in_state(visit, state)
    assert pages_printed(visit) == 1
    visit.page.emulate_media(media="print")
    assert visit.page.locator("#answer").is_visible()
    assert visit.page.locator("#answer .notes").is_visible()
    assert visit.page.locator("#label dl").is_visible()
    assert not visit.page.locator("#values").is_visible()
    assert visit.page.locator("#print-answers dt").count() == (7 if state in ("own", "experts") else 0)


@pytest.mark.slow
def test_thirty_answers_still_print_on_one_page(open_page):
    visit = open_page(kidney.published(rows=200, report="independent", **kidney.many_features(30, 2)))
    visit.fill(["5"] * 30 + ["class 1"])
    assert pages_printed(visit) == 1


def test_it_says_something_without_scripts(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(render([kidney.published()]), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    text = " ".join(page.locator("body").inner_text().split())
    context.close()
    assert "Norrdal University Clinic has published a computer model that helps doctors" in text
    assert "At most 74 of 100 right" in text
    assert "It needs JavaScript for that." in text
