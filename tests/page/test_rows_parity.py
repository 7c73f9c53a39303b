"""The page's numbers of records that are several rows are the library's, in node and in a browser."""

import csv
import io
import json

import node
import numpy as np
import pages
import pandas as pd
import pytest

import expost
from expost.page.introduction import right_of_hundred
from expost.page.numbers import payload

pytestmark = pytest.mark.skipif(node.NODE is None, reason=node.MISSING)
TOLERANCE = 1e-9
TIME = expost.TimeLabel(name="months", event="died", periods=5, length=2.5, unit="months")
ORDERED = expost.OrderedLabel(name="pain", classes=("none", "mild", "bad", "worst"))


def outcomes(label, rng, count):
    """As the library takes them, and as the page does."""
    if label is ORDERED or label == ORDERED:
        found = rng.choice(label.classes, count).tolist()
        return found, found
    times = np.column_stack([rng.uniform(0.0, 15.0, count), rng.integers(2, size=count)])
    return times, [f"{code:g}" for code in label.coded(*times.T)]


def published(label, report, seed=3, rows=120, **others):
    """A seeded publication with features of all kinds."""
    rng = np.random.default_rng(seed)
    domain = expost.Domain(features=pages.FEATURES, label=label, norm=1.6)
    answers = pages.people(rng, rows, pages.domain_for(pages.example("logistic")), pages.example("logistic"))
    names = [feature.name for feature in domain.features]
    frame = pd.DataFrame([row[:-1] for row in answers], columns=names, dtype=object)
    make = expost.OrdinalRegression if label == ORDERED else expost.SurvivalRegression
    model = make(domain=domain, report=report, random_state=seed, **others)
    return model.fit(frame, outcomes(label, rng, rows)[0]).publication_


def asked(publication, rng, count):
    """Random answers as texts with the outcome last, what Python takes in its place, and how to read them."""
    known = pages.people(rng, count, pages.domain_for(pages.example("logistic")), pages.example("logistic"))
    _, labels = outcomes(publication.label, rng, count)
    answers = [[*row[:-1], label] for row, label in zip(known, labels, strict=True)]
    return answers, pages.questions(rng, count)


@pytest.mark.long
@pytest.mark.parametrize("report", pages.KINDS)
@pytest.mark.parametrize("cornered", [False, True])
@pytest.mark.parametrize("label", [ORDERED, TIME], ids=["ordered", "time"])
def test_every_report_and_the_library_say_the_same(report, cornered, label):
    if cornered and report in ("dependent", "adaptive"):
        pytest.skip("corners have no noisy gradient")
    publication, rng = published(label, report, l1=2.0 * cornered), np.random.default_rng(1)
    answers, options = asked(publication, rng, 150)
    numbers = json.loads(json.dumps(payload([publication])))
    ours = pages.by_node(numbers, [[0, *pair] for pair in zip(answers, options, strict=True)])
    theirs = pages.by_python(publication, answers, options)
    assert pages.discrepancy(ours, theirs) < TOLERANCE


@pytest.mark.long
def test_unknown_weights_and_several_publications_say_the_same():
    rng = np.random.default_rng(2)
    one, two = published(ORDERED, "independent", max_weight=3.0), published(ORDERED, "leverage", seed=4)
    answers, options = asked(one, rng, 60)
    numbers = json.loads(json.dumps(payload([one])))
    filled = [[*row[:-1], None, row[-1]] for row in answers]
    ours = pages.by_node(numbers, [[0, *pair] for pair in zip(filled, options, strict=True)])
    assert pages.discrepancy(ours, pages.by_python(one, answers, options)) < TOLERANCE
    three = published(ORDERED, "independent", seed=5)
    numbers = json.loads(json.dumps(payload([two, three])))
    ours = pages.by_node(numbers, [[None, *pair] for pair in zip(answers, options, strict=True)])[:, 0]
    theirs = pages.totals_by_python([two, three], answers, options)
    np.testing.assert_allclose(ours, theirs, rtol=TOLERANCE)


@pytest.mark.long
@pytest.mark.parametrize("report", ["independent", "adaptive"])
def test_unknown_answers_count_as_the_worst_that_they_can_have_been(report):
    """Lists are tried one by one; with unknown numbers the bound is looser, and still one."""
    publication, rng = published(ORDERED, report), np.random.default_rng(3)
    answers, options = asked(publication, rng, 12)
    numbers = json.loads(json.dumps(payload([publication])))
    unknown = [
        [[None if i in places else one for i, one in enumerate(row)], option]
        for row, option, places in zip(answers, options, 4 * [(2, 5), (0,), (0, 1, 3)], strict=True)
    ]
    content = {"numbers": [numbers], "asked": [[0, *pair] for pair in unknown], "tries": 300}
    for place, (bound, largest) in enumerate(node.answer("ranges.mjs", content)["results"]):
        assert largest <= bound * (1.0 + 1e-12)
        assert place % 3 or bound <= largest * (1.0 + 1e-9)
        assert bound < 3.0 * largest


def one_record(publication, answers):
    """A file with one record; of a time and its event, which are two columns."""
    names = [one.name for one in publication.domain.features]
    cells = dict(zip(names, answers[:-1], strict=True))
    label, outcome = publication.label, answers[-1]
    if label == ORDERED:
        cells[label.name] = outcome
    else:
        periods, happened = divmod(int(outcome), 2)
        cells |= {label.name: f"{label.length * periods:g}", label.event: ["no", "yes"][happened]}
    file = io.StringIO()
    csv.writer(file).writerows([cells, cells.values()])
    return file.getvalue()


@pytest.mark.long
@pytest.mark.parametrize("label", [ORDERED, TIME], ids=["ordered", "time"])
def test_a_browser_says_the_same_and_shows_it(open_page, label):
    """With the numbers of a browser, and from the file of a record."""
    publication, rng = published(label, "leverage"), np.random.default_rng(4)
    visit, (answers, options) = open_page(publication), asked(publication, rng, 100)
    theirs = pages.by_python(publication, answers, options)
    ours = visit.page.evaluate(
        """pairs => pairs.map(([answers, options]) => {
             const { lower, upper, reportCost, total } = expost.read(0, answers, options);
             return [lower, upper, reportCost, total];
           })""",
        list(zip(answers, options, strict=True)),
    )
    assert pages.discrepancy(np.array(ours), theirs) < TOLERANCE
    visit.open_details()
    visit.page.locator("#paste").fill(one_record(publication, answers[0]))
    visit.page.locator("#check").click()
    visit.options(**options[0])
    shown = [[*visit.figure("model"), *visit.figure("report"), *visit.figure("total")]]
    assert pages.discrepancy(np.array(shown), theirs[:1]) < TOLERANCE
    assert f"at most {right_of_hundred(theirs[0, 3])} of 100 guesses would be right" in visit.headline


def test_a_time_is_asked_for_by_the_periods_that_were_seen(open_page):
    """Of the answers one is true, whatever happened and however far the record goes."""
    visit = open_page(published(TIME, "independent"))
    field = len(visit.fields) - 1
    titles = [one.strip() for one in visit.page.locator(f"#field-{field} option").all_inner_texts()]
    assert titles[1:3] == ["Yes, within 2.5 months", "Yes, after more than 2.5, up to 5 months"]
    assert titles[5:8] == [
        "Yes, after more than 10, up to 12.5 months",
        "No, not within 12.5 months",
        "No, and records end after 10 to under 12.5 months",
    ]
    assert titles[-1] == "No, and records end before 2.5 months"
    assert len(set(titles)) == 12
    assert visit.page.locator(f"label[for=field-{field}]").inner_text() == "died: did it happen, and when?"


@pytest.mark.parametrize(
    ("language", "width"), [("de", 390), pytest.param("fr", 1280, marks=pytest.mark.docs)]
)
def test_experts_read_their_figures_in_their_language(open_page, language, width):
    """Also the names of the columns, and every bar has its whole name, however narrow the page is."""
    view = {"viewport": {"width": width, "height": 844}}
    visit = open_page(published(TIME, "independent"), language=language, **view)
    visit.open_details()
    visit.page.locator("#along").select_option(label="months")
    names = visit.page.locator("#curve text.label[x='0']").all_text_contents()
    titles = [one.strip() for one in visit.page.locator("#field-5 option").all_inner_texts()[1:]]
    assert " ".join(names) == " ".join(titles)
    chart = visit.page.locator("#curve svg").bounding_box()
    for box in (one.bounding_box() for one in visit.page.locator("#curve svg text").all()):
        assert chart["x"] <= box["x"]
        assert box["x"] + box["width"] <= chart["x"] + chart["width"]
    assert "1; 0,000001" in visit.text("#figures")
    assert {"de": "Zeitraum 5", "fr": "période 5"}[language] in visit.text("#published")
    assert "period 5" not in visit.text("#published")
    assert visit.overflow <= 0


def pasted(visit, text):
    """The code that the page reads for the outcome, the last question, or None."""
    visit.page.locator("#paste").fill(text)
    visit.page.locator("#check").click()
    code = visit.page.locator(f"#field-{len(visit.fields) - 1}").input_value()
    return float(code) if code else None


def test_a_time_is_read_with_the_column_of_its_event(open_page):
    """As the library reads it; a time alone says too little, and is no code of an outcome."""
    visit = open_page(published(TIME, "independent"))
    visit.page.evaluate("document.getElementById('from').open = true")
    assert "smoker, insured, months, died." in visit.text("#names-note")
    times = [0.0, 2.0, 2.5, 2.6, 5.000000001, 11.0, 12.5, 13.0]
    events = ["no", "yes"] * 4
    for time, event in [*zip(times, events, strict=True), *zip(times, events[::-1], strict=True)]:
        code = TIME.coded(np.array([time]), np.array([event], dtype=object))[0]
        assert pasted(visit, f"died;months [months]\n{event};{time!r}".replace(".", ",")) == code
    assert pasted(visit, 'months\n"Yes, within 2.5 months"') == 3.0
    for text, cell in (("months\n5", "5"), ("died\nyes", "yes"), ("months;died\n-1;no", "-1; no")):
        assert pasted(visit, text) is None
        assert f"“{cell}” in your file cannot be read." in visit.text("#preview")
