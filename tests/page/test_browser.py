"""The page in a real browser: its figures, its states, and what it must never do."""

import json
import math
import re

import kidney
import make
import numpy as np
import pages
import pandas as pd
import pytest
from browser import Visit, plain_people

import expost
from expost.data.weights import Weighting
from expost.page import render

HOSTILE = "</script><img src=x onerror=alert(1)>"
USUAL = {"confidence": 1, "member": None, "every": False}


def right_of_hundred(total):
    return max(51, math.ceil(100.0 / (1.0 + math.exp(-total))))


def hostile():
    X = np.random.default_rng(0).normal(size=(60, 2)) / 3
    model = expost.LogisticRegression(norm=1.0, classes=[HOSTILE, "<b>bold</b>"], random_state=1)
    labels = np.where(X[:, 0] > 0, HOSTILE, "<b>bold</b>")
    release = model.fit(X, labels).publication_.release
    return expost.Publication.from_release(
        release, classes=[HOSTILE, "<b>bold</b>"], feature_names=[HOSTILE, "&amp;"]
    )


# Every loss with every kind of report is compared in node; here a few, with the numbers of a browser.
MARKS = {("capped", "adaptive"): [], ("softmax", "leverage"): [pytest.mark.long]}
IN_A_BROWSER = [
    pytest.param(loss, kind, marks=MARKS.get((loss, kind), [pytest.mark.slow]), id=f"{loss}-{kind}")
    for loss in pages.LOSSES
    for kind in pages.KINDS
]


@pytest.mark.parametrize(("loss", "kind"), IN_A_BROWSER)
def test_figures_agree_with_the_library(open_page, loss, kind):
    publication = pages.published(loss, kind)
    visit = open_page(publication)
    rng = np.random.default_rng(5)
    count = 50 if loss.startswith("softmax") else 500  # over which Python takes longest
    answers, asked = plain_people(rng, count, publication), pages.questions(rng, count)
    theirs = pages.by_python(publication, answers, asked)
    ours = visit.page.evaluate(
        """pairs => pairs.map(([answers, options]) => {
             const { lower, upper, reportCost, total } = expost.read(0, answers, options);
             return [lower, upper, reportCost, total];
           })""",
        list(zip(answers, asked, strict=True)),
    )
    assert pages.discrepancy(np.array(ours), theirs) < 1e-9

    visit.fill(answers[0])
    visit.options(**asked[0])
    shown = np.array([[*visit.figure("model"), *visit.figure("report"), *visit.figure("total")]])
    assert pages.discrepancy(shown, theirs[:1]) < 1e-9
    right = right_of_hundred(theirs[0, 3])
    assert f"at most {right} of 100 guesses would be right" in visit.headline
    assert visit.page.locator(".you .tile").count() == right - 50 + 1  # one is in the key
    assert (visit.text(".panel.all .fig") == "None") == (loss == "squared")
    assert ("Several classes." in visit.text("#experts")) == loss.startswith("softmax")
    assert ("Coefficients of the classes" in visit.text("#published")) == loss.startswith("softmax")


@pytest.mark.parametrize(
    ("name", "language", "asked"),
    [
        ("count", "en", "score: how many?"),
        pytest.param("count", "de", "score: wie viele?", marks=pytest.mark.docs),
        pytest.param("count", "fr", "score\u00a0: combien\u00a0?", marks=pytest.mark.docs),
        pytest.param("count", "es", "score: ¿cuál es el total?", marks=pytest.mark.docs),
        pytest.param("amount", "en", "score", marks=pytest.mark.docs),
        pytest.param("quantile", "en", "score", marks=pytest.mark.docs),
    ],
)
def test_a_count_is_asked_for_as_one(open_page, name, language, asked):
    visit = open_page(pages.published(name, "independent"), language=language)
    assert visit.page.locator("label[for=field-5]").inner_text() == asked


@pytest.mark.long
def test_an_example_stands_first_until_she_has_answered_everything(open_page):
    publication = kidney.published()
    visit = open_page(publication)
    assert visit.text("#answer .status").startswith(
        "Example This is an invented person, not you. Age: 58 years, Sex: Female, Upper blood pressure"
    )
    example = ["58", "f", "140", "yes", "1.4", "12.5", "0"]
    total = pages.by_python(publication, [example], [USUAL])[0, 3]
    assert f"{right_of_hundred(total)} of 100" in visit.headline
    assert "whether this person’s record was in the data" in visit.text("#answer .after")
    # Nothing is hers yet, so one solid button leads to the form, and hers are the words beside the figures.
    assert visit.page.locator(".btn.main:visible").all_inner_texts() == ["Enter your values"]
    assert visit.text(".panel.you .sure") == "holds at least 95 times in 100"
    assert visit.text(".panel.all .sure") == "holds except in about 1 case in a million"
    assert "this example" in visit.text(".panel.you h3")
    # The promise stands beside it.
    assert visit.text(".panel.all .fig").startswith("at most 74%")
    visit.fill(kidney.ANSWERS)
    own = pages.by_python(publication, [kidney.ANSWERS], [USUAL])[0, 3]
    assert visit.text("#answer .status").startswith("Your result")
    assert f"{right_of_hundred(own)} of 100" in visit.headline
    assert "whether your record was in the data" in visit.text("#answer .say")
    assert visit.figure("total") == pytest.approx([own], rel=1e-9)
    # While one question is open it is the example again, and says so.
    visit.page.get_by_label("How old were you?", exact=True).fill("")
    assert "still an invented person, not you. You have answered 6 of 7" in visit.text("#answer .status")
    assert f"{right_of_hundred(total)} of 100" in visit.headline


@pytest.mark.long
@pytest.mark.parametrize("language", ["en", "de"])
def test_nobody_need_know_the_weight_of_her_record(open_page, language):
    """The box is ticked from the start and counts as the largest weight; every figure is shown as ever."""
    publication = pages.published("capped", "leverage", weighting=Weighting(4.0))
    visit = open_page(publication, language=language)
    person = ["70", "30000", "north", "yes", "no", "yes"]
    unknown = pages.by_python(publication, [person], [USUAL])[0]
    known = pages.by_python(publication, [person], [USUAL], weights=[1.5])[0]
    assert known[3] < 0.6 * unknown[3]
    box = visit.page.locator("#field-5-unknown")
    assert box.is_checked()
    assert visit.page.locator("#field-5-missing").count() == 0
    visit.open_details()
    visit.page.locator("#paste").fill(f"age,income,ward,smoker,insured,ill\n{','.join(person)}\n")
    visit.page.locator("#check").click()
    assert [*visit.figure("model"), *visit.figure("report"), *visit.figure("total")] == pytest.approx(unknown)
    assert f"{right_of_hundred(unknown[3])} " in visit.headline
    flag = {"en": "You left 1 answer open.", "de": "Sie haben 1 Antwort offen gelassen."}[language]
    assert flag in visit.text("#answer .flag")
    visit.page.locator("#along").select_option(index=5)
    assert visit.page.locator("#curve circle").count() == 1
    visit.page.locator("#field-5").fill("1,5" if language == "de" else "1.5")
    assert not box.is_checked()
    assert [*visit.figure("model"), *visit.figure("report"), *visit.figure("total")] == pytest.approx(known)
    assert flag not in visit.text("#answer .flag")
    visit.page.locator("#paste").fill(
        f"age,income,ward,smoker,insured,sample weight,ill\n{','.join(person[:5])},,yes\n"
    )
    visit.page.locator("#check").click()
    assert visit.figure("total") == pytest.approx([unknown[3]])
    visit.page.locator("#clear").click()
    assert box.is_checked()


def test_an_answer_that_cannot_be_read_leaves_no_number(open_page):
    visit = open_page(kidney.published())
    visit.fill(kidney.ANSWERS)
    pressure = visit.page.get_by_label("What was your upper blood pressure?", exact=True)
    pressure.fill("lots")
    # While she types there is no message yet, and no number of hers either.
    assert visit.headline == "There is no result yet."
    assert visit.text("#field-2-message") == ""
    visit.page.keyboard.press("Tab")
    assert visit.text("#field-2-message") == "Please write this as a number, such as 140."
    assert pressure.get_attribute("aria-invalid") == "true"
    assert "“Upper blood pressure” cannot be read" in visit.text("#answer .status")
    assert visit.page.locator(".panel.you .tile").count() == 0
    assert visit.text("#side b >> nth=0") == "–"
    assert "%" not in visit.text(".panel.you")
    visit.open_details()
    assert visit.text("#figures") == "There are no figures now."
    visit.page.get_by_role("button", name="Fix it").click()
    assert visit.page.evaluate("document.activeElement.id") == "field-2"


@pytest.mark.slow
def test_numbers_are_read_in_the_readers_notation(open_page):
    visit = open_page(kidney.published())
    crea = visit.page.get_by_label("What was your creatinine?", exact=True)
    for typed, note in (
        ("2,1", "Read as 2.1 mg/dL."),
        ("1,234", "Read as 1.234 mg/dL."),  # 1,234 would be beyond the declared bounds
        ("186", "186 mg/dL counts as 15 mg/dL, the highest value that the model knows."),
        ("186 µmol/L", "Read as 2.1018 mg/dL."),
        ("2.1", ""),
        ("2.10", ""),
    ):
        crea.fill(typed)
        crea.blur()
        assert visit.text("#field-4-message") == note
    crea.fill("186")
    visit.page.get_by_label("Unit: What was your creatinine?").select_option("µmol/L")
    assert visit.text("#field-4-message") == "Read as 2.1018 mg/dL."
    for typed in ("4_0", "٤٠", "1e", "--2"):
        crea.fill(typed)
        crea.blur()
        assert crea.get_attribute("aria-invalid") == "true", typed


@pytest.mark.slow
def test_what_is_beyond_a_bound_is_said(open_page):
    visit = open_page(kidney.published())
    visit.fill([*kidney.ANSWERS[:2], "400", *kidney.ANSWERS[3:]])
    assert "Upper blood pressure: counted at the nearest value" in visit.text("#answer .flag")


def test_an_unknown_answer_is_the_worst_it_may_have_been(open_page):
    publication = kidney.published()
    visit = open_page(publication)
    visit.fill(kidney.ANSWERS)
    known = visit.figure("total")[0]
    visit.page.locator("#field-3-unknown").check()
    # An answer counts as soon as it is given, before she goes on to another question.
    visit.page.locator("#field-3-1").check()
    assert visit.figure("total") == [known]
    visit.page.locator("#field-3-unknown").check()
    assert visit.text("#field-3-message") == "Not known: the page takes the value with the highest limit."
    both = [[*kidney.ANSWERS[:3], word, *kidney.ANSWERS[4:]] for word in ("yes", "no")]
    assert visit.figure("total") == pytest.approx(
        [pages.by_python(publication, both, [USUAL] * 2)[:, 3].max()], rel=1e-9
    )
    visit.page.locator("#field-4-unknown").check()
    assert "You left 2 answers open. The limit holds whatever they were." in visit.text("#answer .flag")
    tried = [
        [*kidney.ANSWERS[:3], word, repr(float(x)), *kidney.ANSWERS[5:]]
        for word in ("yes", "no")
        for x in np.linspace(0.3, 15.0, 60)
    ]
    largest = pages.by_python(publication, tried, [USUAL] * len(tried))[:, 3].max()
    assert largest <= visit.figure("total")[0] < 1.02 * largest
    assert visit.figure("total")[0] >= known
    assert visit.figure("model") == []
    # An answer in its place unticks the box.
    visit.page.get_by_label("What was your creatinine?", exact=True).fill("2.1")
    assert not visit.page.locator("#field-4-unknown").is_checked()
    visit.page.locator("#field-4-missing").check()
    assert visit.text("#field-4-message") == "Not recorded: it counts as 1 mg/dL."


@pytest.mark.long
def test_the_choice_is_left_out_where_there_is_no_range(open_page):
    visit = open_page(pages.published("soft", "leverage"))
    assert visit.page.locator("#field-1-unknown").count() == 0


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
@pytest.mark.parametrize(
    "language", ["en", *(pytest.param(one, marks=pytest.mark.long) for one in ("de", "fr", "es"))]
)
def test_the_pictures_begin_on_the_first_screen(open_page, language, width, height):
    visit = open_page(kidney.published(), language=language, viewport={"width": width, "height": height})
    tops = visit.page.locator(".people").evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect().top)"
    )
    assert tops[0] == tops[1] < height
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width


def test_an_open_answer_says_what_it_would_be_worth(open_page):
    """For some answer the limit is as low as it says, and for no answer above what is shown."""
    visit = open_page(kidney.published(insecure=True))
    visit.fill(kidney.ANSWERS)
    visit.page.locator("#field-5-unknown").check()
    visit.page.locator("#field-2-unknown").check()
    told = re.search(
        r"Your answer to “(.*?)” would help most: with it, the limit can fall to (\d+) of 100",
        visit.text("#answer .flag"),
    )
    shown = int(re.search(r"at most (\d+) of 100", visit.headline)[1])
    assert told[1] in ("What was your haemoglobin?", "What was your upper blood pressure?")
    assert 50 < int(told[2]) < shown


@pytest.mark.long
def test_a_number_that_may_be_thousands_is_echoed_or_asked_about(open_page):
    visit = open_page(priced())
    # Between whole numbers the invented person has one of them.
    assert "rooms: 10." in visit.text("#answer .status")
    field = visit.page.locator("#field-0")
    for typed, said in (
        ("250.000", "Is this 250 or 250,000?"),
        ("2.500", "Is this 2.5 or 2500?"),
        ("250,000.5", "Read as 250,000.5."),
    ):
        field.fill(typed)
        field.blur()
        assert visit.text("#field-0-message").startswith(said)
    visit.page.locator("#field-1").fill("12.000")  # rooms: twelve thousand of them are out of range
    visit.page.locator("#field-1").blur()
    assert visit.text("#field-1-message") == "Read as 12."


def priced():
    """A publication of houses, whose income and rooms are whole numbers."""
    income = expost.Number(name="income", low=0.0, high=900000.0)
    rooms = expost.Number(name="rooms", low=1.0, high=20.0)
    domain = expost.Domain(
        features=(income, rooms), label=expost.ClassLabel(name="owner", classes=("no", "yes"))
    )
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"income": rng.uniform(0, 9e5, 200), "rooms": rng.integers(1, 20, 200)})
    model = expost.LogisticRegression(domain=domain, random_state=1)
    return model.fit(frame, rng.choice(["no", "yes"], 200)).publication_


@pytest.mark.long
def test_a_total_above_the_promise_is_shown_and_explained(open_page):
    publication = kidney.published(epsilon=0.1, seed=4)
    visit = open_page(publication)
    asked = {"confidence": 6, "member": None, "every": True}
    # Whatever the noise, one of the two outcomes surprises the model by half or more.
    both = [["100", "m", "220", "yes", "15", "20", outcome] for outcome in ("0", "1")]
    total, far = max((pages.by_python(publication, [one], [asked])[0, 3], one) for one in both)
    visit.fill(far)
    visit.options(**asked)
    assert total > 0.1
    assert f"{right_of_hundred(total)} of 100" in visit.headline
    assert "The promise is an average over all that could have been released" in visit.text("#answer .flag")


@pytest.mark.long
def test_a_total_above_the_promise_that_reads_the_same_is_not_called_above(open_page):
    publication = kidney.published(epsilon=0.1, seed=4, insecure=True)
    asked = {"confidence": 4, "member": None, "every": False}
    years = np.linspace(18.0, 100.0, 50).round(1).astype(str).tolist()
    people = [[age, "m", "220", "yes", "15", "4", "1"] for age in years]
    totals = pages.by_python(publication, people, [asked] * len(people))[:, 3]
    place = next(
        place
        for place, total in enumerate(totals)
        if total > 0.1 and right_of_hundred(total) == right_of_hundred(0.1)
    )
    visit = open_page(publication)
    visit.fill(people[place])
    visit.options(**asked)
    assert visit.figure("total") == pytest.approx([totals[place]], rel=1e-9)
    assert "above the promise" not in visit.text("#answer .flag")


@pytest.mark.slow
def test_trying_many_records_is_noticed(open_page):
    publication = kidney.published()
    visit = open_page(publication)
    visit.fill(kidney.ANSWERS)
    age = visit.page.get_by_label("How old were you?", exact=True)
    for years in ("48", "49", "50"):
        assert visit.page.locator("#answer .flag").count() == 0
        age.fill(years)
        age.blur()
    visit.page.get_by_role("button", name="Make the limit hold for every try").click()
    person = ["50", *kidney.ANSWERS[1:]]
    every = pages.by_python(publication, [person], [{**USUAL, "every": True}])[0, 3]
    assert visit.figure("total") == pytest.approx([every], rel=1e-9)
    assert "That holds for all records at once." in visit.text("#answer .notes")


@pytest.mark.slow
def test_left_out_next_time_only_where_it_is_promised(open_page):
    visit = open_page(kidney.published())
    assert visit.page.get_by_role("heading", name="Be left out next time").count() == 1
    links = visit.page.get_by_role("link").evaluate_all("all => all.map((one) => one.getAttribute('href'))")
    assert set(links) == {"#answer", "mailto:privacy@norrdal.example"}
    for publication in (kidney.published(opt_out=False), pages.published("logistic", "independent")):
        assert "eft out next time" not in render([publication])
    assert "Ask the person who gave you this page." in render([publication])


@pytest.mark.long
def test_several_publications_have_a_timeline_and_a_sum(open_page):
    several = [
        kidney.published(),
        kidney.published(title="Kidney check", date="2025-03-14", seed=5, report="independent"),
    ]
    visit = open_page(*several)
    visit.fill(kidney.ANSWERS)
    totals = [pages.by_python(one, [kidney.ANSWERS], [USUAL], sharing=2)[0, 3] for one in several]
    together = pages.totals_by_python(several, [kidney.ANSWERS], [USUAL])[0]
    assert together < sum(totals)
    assert visit.figure("total") == pytest.approx([*totals, together], rel=1e-9)
    assert visit.figure("sum") == pytest.approx([together], rel=1e-9)
    assert f"With these 2 models, at most {right_of_hundred(together)} of 100" in visit.headline
    steps = [" ".join(text.split()) for text in visit.page.locator("#timeline li").all_inner_texts()]
    assert steps[0].startswith("Before 50 of 100")
    assert steps[1].startswith(f"14 March 2025 at most {right_of_hundred(totals[1])} of 100 Kidney check")
    assert steps[2].startswith(f"3 June 2026 at most {right_of_hundred(totals[0])} of 100 Kidney model")
    assert steps[3].startswith(f"Together at most {right_of_hundred(together)} of 100")
    # The earlier one first, whatever the order in which they are given.
    X, y = pages.as_table([kidney.ANSWERS], several[0].domain)
    on_the_way = expost.wallet(several[::-1], X, y)[0]
    chosen = visit.page.locator("#timeline .wallet")
    assert chosen.inner_text().startswith(
        f"Decided on the way: at most {right_of_hundred(on_the_way)} of 100. The limit for all of them"
    )
    assert float(chosen.locator("data").get_attribute("value")) == pytest.approx(on_the_way, rel=1e-9)
    visit.page.locator("input[name=member][value=no]").check()
    assert chosen.count() == 0
    assert visit.text(".eyebrow") == "Norrdal University Clinic · 14 March 2025 and 3 June 2026"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["huber", "squared"])
def test_numbers_at_the_end_of_double_precision_are_drawn(open_page, name):
    publication = expost.Publication.from_json(json.dumps(make.read("publications")[name]))
    visit = open_page(publication)
    answers = ["1e200", "-1e-300", "1e308"]
    visit.fill(answers)
    theirs = pages.by_python(publication, [answers], [USUAL])[0]
    assert visit.figure("total") == pytest.approx([theirs[3]], rel=1e-9)
    assert np.isinf(theirs[3]) == (name == "squared")
    assert ("∞" in visit.text("#figures")) == (name == "squared")
    assert ("100 of 100" in visit.headline) == (name == "squared")
    assert ("A limit of 100 of 100 rules nothing out." in visit.text("#answer")) == (name == "squared")
    for place in range(len(answers)):
        visit.page.get_by_label("Along", exact=True).select_option(index=place)
        assert visit.page.locator("#curve svg").count() == 1
        assert "NaN" not in "".join(
            visit.page.locator("svg").evaluate_all("all => all.map((x) => x.outerHTML)")
        )
    assert "NaN" not in visit.text("main")


@pytest.mark.slow
def test_the_published_file_can_be_downloaded(browser, tmp_path):
    publication = kidney.published()
    visit = Visit(browser, tmp_path, [publication])
    visit.open_details()
    with visit.page.expect_download() as coming:
        visit.page.get_by_role("button", name="Download the file (JSON)").click()
    coming.value.save_as(tmp_path / "publication.json")
    assert coming.value.suggested_filename == "publication.json"
    assert (tmp_path / "publication.json").read_text(encoding="utf-8") == publication.to_json()
    requests, complaints = visit.close()
    assert complaints == []
    # The file comes out of the page's own memory.
    assert {address.split(":")[0] for address in requests} <= {"file", "blob"}


def test_hostile_names_are_text(open_page):
    visit = open_page(hostile())
    visit.page.get_by_label(HOSTILE, exact=True).first.fill("0.1")
    visit.page.get_by_label("&amp;", exact=True).fill("0.2")
    visit.page.get_by_role("group", name="Outcome").get_by_label(HOSTILE, exact=True).check()
    visit.open_details()
    visit.page.get_by_label("Along", exact=True).select_option(label=HOSTILE)
    assert HOSTILE in visit.page.locator("#curve").text_content()
    assert HOSTILE in visit.page.locator("#published").text_content()
    visit.page.get_by_label("Or paste it here").fill(f"{HOSTILE}\t&amp;\toutcome\n{HOSTILE}\t1\t2")
    visit.page.get_by_role("button", name="Read this text").click()
    assert HOSTILE[:30] in visit.text("#preview")
    assert visit.page.locator("img, main b:not(.fig b, .side b)").count() == 0
    assert visit.text(".banner").startswith("Test version: the protection is switched off.")


@pytest.mark.long
def test_hostile_texts_are_text(open_page):
    """Everything that a publisher can declare, shown as it is."""
    tag = "<img src=x onerror=alert(1)>**b**{n}"
    about = expost.PublicationTexts(
        title=tag,
        publisher=tag,
        contact=expost.Contact(phone=tag[:40], address=tag),
        purpose=tag,
        population=tag,
        reply=tag,
        opt_out=True,
    )
    words = {"title": tag, "question": f"{tag}?", "help": tag, "group": tag}
    base = pages.published("logistic", "independent")
    number = base.domain.features[0].model_copy(update=words | {"unit": tag[:40], "aliases": (tag,)})
    values = (tag, "b", "c")
    category = base.domain.features[2].model_copy(update={"title": "Ward", "titles": values})
    features = (number, base.domain.features[1], category, *base.domain.features[3:])
    domain = base.domain.model_copy(update={"features": features, "publication": about})
    publication = expost.Publication.from_release(
        base.release, classes=domain.classes, feature_names=domain.column_names, domain=domain
    )
    visit = open_page(publication)
    visit.open_details()
    visit.page.get_by_label(f"{tag}?", exact=True).fill("50")
    shown = visit.page.locator("body").text_content()
    assert shown.count(tag) > 10
    assert f"{tag} has published a computer model that {tag}" in shown
    assert visit.page.locator("img").count() == 0
    assert visit.page.get_by_role("link").count() == 1


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


@pytest.mark.slow
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
    visit = Visit(browser, tmp_path, [kidney.published()])
    visit.page.add_init_script(watched)
    visit.page.reload()
    visit.fill(kidney.ANSWERS)
    visit.open_details()
    visit.page.get_by_label("Or paste it here").fill("age;sex\n47;f")
    visit.page.get_by_role("button", name="Read this text").click()
    assert visit.page.evaluate("globalThis.touched") == []
    assert visit.context.cookies() == []
    visit.close()
