"""Her own table, opened or pasted: as spreadsheets write it, matched by name, refused by the cell."""

import kidney
import numpy as np
import pages
import pytest
from grids import grid

import expost

USUAL = {"confidence": 1, "member": None, "every": False}


def read(visit, text):
    visit.page.evaluate("document.getElementById('from').open = true")
    visit.page.locator("#paste").fill(text)
    visit.page.locator("#check").click()


def total_of(publication, answers):
    return pages.by_python(publication, [answers], [USUAL])[0, 3]


@pytest.fixture
def visit(open_page):
    return open_page(kidney.published())


LINES = [
    # Semicolons and decimal commas, titles and aliases for names, another unit, a column too many.
    "id;Age;SEX;sbp;diabetes;Krea (mg/dL);HB;worse\n17;47;f;152,0;nein;2,1;11,2;1\n",
    # Commas and points, quotes, words for values, another order, a byte order mark.
    '\ufeffhb,"age",Sex,"Upper blood pressure",dm,note,crea,worse\r\n11.2,47,Female,152,no,x,2.1,Yes\r\n',
    # Tabs, and no names: the order of the form.
    "47\tf\t152\t0\t2.1\t11.2\t1",
    # Units beside the numbers.
    "age;sex;sbp;dm;crea;hb;worse\n47 years;f;152 mmHg;no;2,1 mg/dL;11,2;1",
]


def test_a_line_of_a_table_fills_in_the_form(visit):
    expected = total_of(visit.publications[0], kidney.ANSWERS)
    for text in LINES:
        visit.page.locator("#clear").click()
        assert visit.text("#answer .status").startswith("Example")
        read(visit, text)
        assert visit.text("#answer .status").startswith("Your result"), visit.text("#preview")
        assert visit.figure("total") == pytest.approx([expected], rel=1e-9)
        assert visit.text("#preview").startswith("7 of 7 answers found.")
        assert visit.page.locator("#field-5").input_value() == "11.2"


@pytest.mark.slow
def test_another_unit_is_converted(visit):
    read(visit, "crea (µmol/L);age\n186,4;47")
    assert "2 of 7 answers found." in visit.text("#preview")
    assert (
        "Not found: Sex, Upper blood pressure, Diabetes, Haemoglobin, Kidney disease got worse"
        in visit.text("#preview")
    )
    assert visit.page.locator("#field-4").input_value() == "2.10632"
    assert "You have answered 2 of 7" in visit.text("#answer .status")


UNREAD = [
    (
        "age;sex;sbp\n48;f;viel",
        2,
        "“viel” in your file cannot be read. Please write this as a number, such as 140.",
    ),
    ("age;sex\n48;x", 1, "“x” in your file cannot be read. Please choose one of the listed values."),
    ("age,dm\n48,perhaps", 3, "“perhaps” in your file cannot be read. Please answer yes or no."),
    ('age,hb\n48,"1,234"', 5, "“1,234” in your file cannot be read. Is this 1.234 or 1234?"),
]
REFUSED = [
    ("age;Age\n47;48", "Two columns are meant for “Age”"),
    ("age;sex\n47;f;3", "Line 2 has 3 values; the first line has 2."),
    ("age;sex", "a line of names and no line of values"),
    ("1,2", "Without names, it needs 7 values in a line; line 1 has 2."),
    ("  \n ", "There is nothing to read."),
]


def test_a_refusal_clears_the_old_answer(visit):
    visit.fill(kidney.ANSWERS)
    for years, (text, complaint) in enumerate(REFUSED, start=48):
        assert visit.text("#answer .status").startswith("Your result")
        read(visit, text)
        assert visit.text("#preview").startswith("Nothing was filled in.")
        assert complaint in visit.text("#preview")
        assert visit.headline == "There is no result yet."
        assert complaint in visit.text("#answer .status")
        assert visit.figure("total") == []
        assert visit.page.locator("#preview table").count() == 0
        # Her answers are still there, and with the next change the page goes on.
        visit.page.locator("#field-0").fill(str(years))


def test_a_cell_that_cannot_be_read_is_marked_and_the_rest_is_filled_in(visit):
    """The declared example is suggested, her other answers stay, and an answer in the form ends it."""
    visit.fill(kidney.ANSWERS)
    for text, place, complaint in UNREAD:
        read(visit, text)
        assert complaint in visit.text("#preview")
        assert visit.text(f"#field-{place}-message").startswith(complaint)
        assert visit.page.locator("#field-0").input_value() == "48"
        assert visit.headline == "There is no result yet."
        assert visit.figure("total") == []
        visit.fill(kidney.ANSWERS)
        assert visit.text("#answer .status").startswith("Your result")


def test_words_for_missing_values_are_those_of_the_publisher(open_page):
    """A word that the table had for a missing value leaves the question open, or counts as the default."""
    domain = kidney.domain_of()
    declared = expost.Domain.from_toml('[table]\nmissing_words = ["k.A."]\n' + domain.to_toml())
    assert declared.missing_words == ("k.A.",)
    X, y = kidney.drawn(declared, np.random.default_rng(3), 200)
    publication = expost.LogisticRegression(domain=declared, random_state=2).fit(X, y).publication_
    again = expost.Publication.from_json(publication.to_json())
    assert again.domain.missing_words == ("k.A.",)
    visit = open_page(again)
    read(visit, "age;sex;sbp;dm;crea;hb;worse\n47;f;152;nein;k.A.;k.A.;1")
    assert visit.page.locator("#field-4-missing").is_checked()
    assert "Not found: Haemoglobin." in visit.text("#preview")
    assert "You have answered 6 of 7 questions." in visit.text("#answer .status")


@pytest.mark.slow
def test_what_a_file_lacks_stays_as_she_answered_it(visit):
    visit.fill([*kidney.ANSWERS[:3], "yes", *kidney.ANSWERS[4:]])
    visit.page.locator("#field-0-unknown").check()
    visit.page.locator("#field-4-missing").check()
    read(visit, "sbp;Diabetes\n152;nein")
    assert visit.page.locator("#field-0-unknown").is_checked()
    assert visit.page.locator("#field-4-missing").is_checked()
    assert visit.text("#answer .status").startswith("Your result")
    read(visit, "age;crea\n47;2,1")
    expected = total_of(visit.publications[0], kidney.ANSWERS)
    assert visit.figure("total") == pytest.approx([expected], rel=1e-9)


def test_several_rows_give_a_list(visit):
    read(
        visit,
        "age;sex;sbp;dm;crea;hb;worse\n47;f;152;nein;2,1;11,2;1\n\n61,5;m;131;ja;;13,9;0\n52;f;;no;1;13;0",
    )
    publication = visit.publications[0]
    people = [kidney.ANSWERS, ["61.5", "m", "131", "yes", "", "13.9", "0"]]
    shown = visit.page.locator("#preview data").evaluate_all("all => all.map((one) => Number(one.value))")
    assert shown == pytest.approx([total_of(publication, person) for person in people], rel=1e-9)
    rows = [" ".join(text.split()) for text in visit.page.locator("#preview tbody tr").all_inner_texts()]
    assert [row.split()[0] for row in rows] == ["2", "4", "5"]
    assert "not known yet" in rows[2]
    visit.page.get_by_role("button", name="Take line 4").click()
    assert "From line 4 of your file." in visit.text("#answer .status")
    assert visit.figure("total") == pytest.approx([shown[1]], rel=1e-9)
    # A new text replaces the list.
    read(visit, "age;age\n47;48")
    assert visit.page.locator("#preview table").count() == 0


@pytest.mark.slow
def test_a_file_of_an_old_spreadsheet_is_opened(visit, tmp_path):
    path = tmp_path / "mine.csv"
    names = "Größe;Age;Sex;sbp;Diabetes;crea;hb;worse"
    path.write_bytes(f"{names}\r\n1,80;47;Female;152;nein;2,1;11,2;1\r\n".encode("cp1252"))
    visit.page.locator("#from > summary").click()
    visit.page.locator("#file").set_input_files(path)
    visit.page.wait_for_selector("#preview table")
    assert "Not needed: Größe." in visit.text("#preview")
    expected = total_of(visit.publications[0], kidney.ANSWERS)
    assert visit.figure("total") == pytest.approx([expected], rel=1e-9)
    path.write_bytes(b"PK\x03\x04\x00\x00\x00")
    visit.page.locator("#file").set_input_files(path)
    visit.page.wait_for_selector("#preview .error")
    assert "not plain text" in visit.text("#preview")
    assert visit.headline == "There is no result yet."


def test_a_german_page_reads_and_writes_decimal_commas(open_page):
    visit = open_page(kidney.published(), language="de")
    publication = visit.publications[0]
    read(visit, "Age;Sex;sbp;Diabetes;Krea;hb;worse\n47,5;Female;152;nein;2,1;11,2;1")
    person = ["47.5", *kidney.ANSWERS[1:]]
    assert visit.figure("total") == pytest.approx([total_of(publication, person)], rel=1e-9)
    assert visit.page.locator("#field-4").input_value() == "2,1"
    assert visit.text("#answer .status").startswith("Ihr Ergebnis")
    assert "von 100 Vermutungen richtig" in visit.headline
    assert visit.page.evaluate("document.documentElement.lang") == "de"
    visit.page.locator("#field-4").fill("1.234")
    visit.page.locator("#field-4").blur()
    assert visit.text("#field-4-message") == "Gelesen als 1,234 mg/dL."
    visit.page.locator("#field-0").fill("1.234")
    visit.page.locator("#field-0").blur()
    assert visit.text("#field-0-message").startswith("Ist das 1,234 oder 1234?")
    visit.page.locator("#field-0").fill("47,5")
    assert visit.text(".eyebrow") == "Norrdal University Clinic · 3. Juni 2026"
    visit.open_details()
    total = visit.text("[data-figure=row_scope], [data-figure=total]  >> nth=0")
    assert "," in total
    assert "." not in total.split()[-1]


def test_an_empty_cell_takes_no_old_answer(visit):
    visit.fill(kidney.ANSWERS)
    read(visit, "age;sex;sbp\n;m;131")
    assert visit.page.locator("#field-0").input_value() == ""
    assert "invented person" in visit.text("#answer .status")
    read(visit, "age;sex;sbp\n50;m;131\n;m;131")
    rows = visit.page.locator("#preview tbody tr").all_inner_texts()
    assert ["not known yet" in row for row in rows] == [False, True]


@pytest.mark.slow
def test_a_cell_that_cannot_be_read_waits_for_one_that_can(visit):
    visit.fill(kidney.ANSWERS)
    read(visit, "age\nold")
    assert "“Age” cannot be read" in visit.text("#answer .status")
    read(visit, "age\n50")
    assert visit.text("#answer .status").startswith("Your result")


def test_a_column_in_an_unknown_unit_is_not_read(visit):
    visit.fill(kidney.ANSWERS)
    read(visit, "age (months);sbp [mmHg]\n564;131")
    assert "Not needed: age (months)." in visit.text("#preview")
    assert visit.page.locator("#field-0").input_value() == kidney.ANSWERS[0]
    assert visit.page.locator("#field-2").input_value() == "131"


@pytest.mark.slow
def test_a_file_that_is_too_long_is_not_called_binary(visit, tmp_path):
    (tmp_path / "long.csv").write_text("age;sex\n" + "50;f\n" * 900_000)
    visit.page.evaluate("document.getElementById('from').open = true")
    visit.page.locator("#file").set_input_files(tmp_path / "long.csv")
    visit.page.wait_for_selector("#preview .error")
    assert "at most 500 lines" in visit.text("#preview")
    read(visit, "age\n" + "9" * 400)
    assert "such as 58." in visit.text("#preview")


PASTE = """letter => {
  const [place, clipboard] = [document.getElementById("paste"), new DataTransfer()];
  clipboard.setData("text", letter.repeat(1_200_000));
  const start = performance.now();
  const event = new ClipboardEvent("paste", { clipboardData: clipboard, cancelable: true, bubbles: true });
  if (place.dispatchEvent(event)) place.value = clipboard.getData("text");
  return [performance.now() - start, place.value.length];
}"""


@pytest.mark.parametrize(("letter", "language"), grid(['"', "(", "\n"], ["en", "de"], together=1))
def test_a_long_paste_is_refused_at_once_as_a_long_file_is(open_page, language, letter):
    """A megabyte of quotes, or of brackets, kept the page busy for seconds, and some texts for minutes."""
    visit = open_page(kidney.published(), language=language)
    visit.page.evaluate("document.getElementById('from').open = true")
    milliseconds, length = visit.page.evaluate(PASTE, letter)
    ends = {"en": "at most 500 lines.", "de": "höchstens 500 Zeilen."}
    assert visit.text("#preview").endswith(ends[language])
    assert length == 0
    assert milliseconds < 2000


def test_the_outcome_is_among_the_names_that_work_however_many_there_are(open_page):
    features = tuple(expost.Number(name=f"f{one}", low=0.0, high=1.0) for one in range(14))
    domain = expost.Domain(features=features, label=expost.ClassLabel(name="ill", classes=("no", "yes")))
    columns = {feature.name: np.zeros(4) for feature in features}
    model = expost.LogisticRegression(domain=domain, random_state=0).fit(columns, ["no", "yes"] * 2)
    visit = open_page(model.publication_)
    visit.page.evaluate("document.getElementById('from').open = true")
    assert visit.text("#names-note").endswith("f10, f11, …, ill.")
