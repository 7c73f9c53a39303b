"""What stewards stumbled over with tables of their own: each sentence and number that they missed."""

import io
import json
import math

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from ward import DOMAIN, NAMES, patients, refused, run, ward, write_csv

import expost
from expost.cli import losses
from expost.cli.base import say
from expost.fitting.private_fit import FALSE_ALARMS

CLASSES = ["never", "rarely", "sometimes", "often", "always and without fail"]
FIVE = DOMAIN.replace('["no", "yes"]', json.dumps(CLASSES))
PRICES = """
[[features]]
name = "rooms"
kind = "number"
low = 0
high = 20

[label]
name = "price"
kind = "number"
low = 0
high = 2000000
unit = "€"
"""


def five(folder):
    """A ward whose outcome has five classes."""
    domain, table = ward(folder, [[*row[:3], CLASSES[k % 5]] for k, row in enumerate(patients())])
    domain.write_text(FIVE)
    return domain, table


def priced(folder, count=400):
    """Houses with a price, most of them cheap, so that a line goes below zero."""
    rng = np.random.default_rng(4)
    rooms = rng.integers(1, 20, count)
    prices = np.maximum(0, 90_000 * (rooms - 6) + rng.normal(0, 20_000, count)).round()
    (folder / "domain.toml").write_text(PRICES)
    rows = zip(rooms.tolist(), prices.tolist(), strict=True)
    return folder / "domain.toml", write_csv(folder / "table.csv", rows, ["rooms", "price"])


def fitted(folder, domain, table, *options):
    result = run("fit", domain, table, "-o", folder / "p.json", *options)
    assert result.exit_code == 0, result.output
    return folder / "p.json", " ".join(result.stdout.split())


@pytest.mark.parametrize("width", ["80", "100"])
def test_a_prediction_is_seen_with_its_record_and_its_probability(tmp_path, width):
    domain, table = five(tmp_path)
    publication, told = fitted(tmp_path, domain, table)
    # One number for each column and the intercept, for each class but one.
    assert f"{4 * (1 + 2 + 1 + 1)} coefficients, with noise." in told
    assert len(expost.Publication.load(publication).release.coefficients) == 20
    shown = run("predict", publication, table, env={"COLUMNS": width}).stdout
    assert all(len(line) <= int(width) for line in shown.splitlines())
    assert {"record", "prediction", "its probability"} <= {
        cell.strip() for cell in shown.replace("┃", "│").split("│")
    }
    everything = json.loads(run("predict", publication, table, "--json").stdout)["predictions"]
    assert len(everything) == 6
    first = everything["prediction"][0]
    assert f"{everything[f'probability of {first}'][0]:.4f}" in shown
    assert "--output FILE" in shown


def test_predicted_prices_are_in_the_table_s_units_and_range(tmp_path):
    domain, table = priced(tmp_path)
    publication, _ = fitted(tmp_path, domain, table, "--epsilon", "20")
    told = json.loads(run("predict", publication, table, "--json").stdout)["predictions"]["prediction"]
    assert 0.0 == min(told) < max(told) <= 2e6
    shown = run("predict", publication, table, env={"COLUMNS": "80"}).stdout
    assert "prediction (€)" in shown
    assert f"{told[0]:,.0f}" in shown
    assert "e+0" not in shown


def test_summary_prints_estimates_in_the_table_s_units_for_every_publication(tmp_path):
    """A coefficient is the change of the prediction for one unit, wherever it is not cut at a bound."""
    domain, table = priced(tmp_path)
    publication, _ = fitted(tmp_path, domain, table, "--epsilon", "20")
    told = json.loads(run("summary", publication, "--json").stdout)
    slope, intercept = told["coefficients"]
    records = write_csv(tmp_path / "new.csv", [[10], [11]], ["rooms"])
    low, high = json.loads(run("predict", publication, records, "--json").stdout)["predictions"]["prediction"]
    assert high - low == pytest.approx(slope, rel=1e-9)
    assert low == pytest.approx(intercept + 10 * slope, rel=1e-9)
    assert told["standard_errors"] == [None, None]
    assert told["confidence"] is None
    shown = run("summary", publication, env={"COLUMNS": "100"})
    assert shown.exit_code == 0
    assert f"{slope:,.0f}"[:4] in shown.stdout
    assert "No error bars: inference needs" in " ".join(shown.stdout.split())
    assert refused(run("summary", publication, "--figure", tmp_path / "f.svg"), "inference needs")


@pytest.mark.long
def test_summary_of_classes_gives_the_published_log_odds(tmp_path):
    """What classes differ by are log-odds of predicted probabilities, for a row that is not scaled down."""
    domain, table = five(tmp_path)
    publication, _ = fitted(tmp_path, domain, table, "--cap", "1")
    told = json.loads(run("summary", publication, "--json").stdout)
    assert told["classes"] == CLASSES
    assert told["terms"] == ["age", "ward=south", "smoker", "intercept"]
    record = write_csv(tmp_path / "new.csv", [[50, "south", "no"]], NAMES[:3])
    found = json.loads(run("predict", publication, record, "--json").stdout)["predictions"]
    odds = np.log([found[f"probability of {name}"][0] for name in CLASSES])
    scores = np.array(told["coefficients"]) @ [50.0, 1.0, 0.0, 1.0]
    np.testing.assert_allclose(odds - odds[0], scores - scores[0], rtol=1e-9, atol=1e-12)


def test_the_words_about_leverage_follow_the_plan(tmp_path):
    """With a precise Hessian people look up more than without it, and nothing says less."""
    domain, _ = ward(tmp_path)
    shown = {
        split: " ".join(run("plan", domain, "--report", "leverage", *split).stdout.split())
        for split in ((), ("--split", "0.98", "--cap", "1"))
    }
    assert "most people look up a lower figure" in shown[()]
    assert "4,000 rows or more, a thousand for each of 4 encoded columns" in shown[()]
    assert "people look up a higher figure than without it" in shown["--split", "0.98", "--cap", "1"]
    assert "lower figure" not in shown["--split", "0.98", "--cap", "1"]


def test_the_largest_weight_is_said_to_cost(tmp_path):
    domain, _ = ward(tmp_path)
    said = " ".join(run("plan", domain, "--max-weight", "5").stdout.split())
    assert "the noise is 5 times what weights up to 1 would take" in said
    assert "times what weights" not in run("plan", domain).stdout
    one, many = (
        json.loads(run("plan", domain, *more, "--json").stdout)["sigma"]
        for more in ((), ("--max-weight", "5"))
    )
    assert many == pytest.approx(5.0 * one, rel=1e-6)


def test_losses_of_another_table_are_refused_and_those_of_the_fitted_one_are_not(tmp_path, monkeypatch):
    """People who are only half there imply noise that is hardly ever drawn."""
    rng = np.random.default_rng(2)
    age = rng.integers(1, 99, 6000)
    ill = np.where(age + rng.normal(0, 8, 6000) > 50, "yes", "no")
    rows = [[a, "north", "no", i] for a, i in zip(age.tolist(), ill.tolist(), strict=True)]
    domain, table = ward(tmp_path, rows)
    publication, _ = fitted(tmp_path, domain, table)
    whole = run("losses", publication, table)
    assert whole.exit_code == 0
    assert "noise that it implies could have been drawn" in " ".join(whole.stdout.split())
    young = write_csv(tmp_path / "young.csv", [row for row in rows if row[0] < 45])
    words = "this is not the table that was fitted, or not all of it"
    assert refused(run("losses", publication, young), words)
    assert FALSE_ALARMS == 1e-9
    doubt = "drawn less than once in 1,000 fits"
    assert doubt not in whole.stderr
    monkeypatch.setattr(losses, "plausible", lambda private, level=FALSE_ALARMS: level < 1e-3)
    doubtful = run("losses", publication, table)
    assert doubtful.exit_code == 0
    assert doubt in doubtful.stderr


def test_sentences_are_broken_between_words_and_commands_are_not():
    out = io.StringIO()
    terminal = Console(file=out, force_terminal=True, width=40, color_system=None)
    say(
        "  Advice that is longer than the screen of a\nNext: expost losses publication.json table.csv",
        to=terminal,
    )
    say("expost: no room", to=terminal)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    advice = ["  Advice that is longer than the screen", "  of a"]
    assert lines == [*advice, "Next: expost losses publication.json table.csv", "expost: no room"]


def test_files_are_written_as_the_table_is(tmp_path):
    """Losses, predictions and problems have the table's delimiter, decimal mark and byte order mark."""
    table_part = '[table]\ndelimiter = ";"\ndecimal = ","\nencoding = "utf-8-sig"\n'
    domain, _ = ward(tmp_path)
    domain.write_text(table_part + DOMAIN)
    rows = [[f"{row[0]},5", *row[1:]] for row in patients()]
    text = "\n".join(";".join(map(str, row)) for row in [NAMES, *rows]) + "\n"
    table = tmp_path / "table.csv"
    table.write_text(text, encoding="utf-8-sig")
    private = tmp_path / "private.csv"
    publication, _ = fitted(tmp_path, domain, table, "--losses", private)
    predicted = tmp_path / "predicted.csv"
    assert run("predict", publication, table, "--domain", domain, "-o", predicted).exit_code == 0
    table.write_text(text.replace("north", "nord"), encoding="utf-8-sig")
    problems = tmp_path / "private-problems.csv"
    for _ in range(2):  # a list of problems is replaced by the next
        assert run("check", domain, table, "--problems", problems).exit_code == 1
    for path in (private, predicted, problems):
        assert path.read_bytes().startswith("\ufeff".encode())
        frame = pd.read_csv(path, sep=";", decimal=",")
        assert len(frame.columns) > 1
    losses = pd.read_csv(private, sep=";", decimal=",")["ex_post_loss"]
    table.write_text(text, encoding="utf-8-sig")
    again = json.loads(run("losses", publication, table, "--domain", domain, "--json").stdout)
    np.testing.assert_allclose(losses, again["losses"], atol=1e-15)  # an old pandas misses the last bit


@pytest.mark.long
def test_losses_of_a_table_with_semicolons_name_the_domain_file(tmp_path):
    domain, table = ward(tmp_path)
    publication, _ = fitted(tmp_path, domain, table)
    table.write_text(table.read_text().replace(",", ";"))
    assert refused(run("losses", publication, table), "--domain")
    missing = write_csv(tmp_path / "words.csv", [["k.A.", "north", "no", "no"], *patients()])
    assert refused(run("losses", publication, missing), "add --domain DOMAIN.toml")
    assert refused(run("predict", publication, missing), "--domain")


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("low = 0,2", "line 5 is 'low = 0,2'; a number has a decimal point: 0.2"),
        ("low = 01.01.2015", "line 5 is 'low = 01.01.2015'; a date is written year first: 2015-01-31"),
        ("low = null", "line 5 is 'low = null'; a text stands in quotes"),
        ("unit = „Jahre“", "quotes are straight"),
        ("low = ", "line 5 is 'low ='; "),
    ],
)
def test_habits_in_a_domain_file_get_the_line_and_a_hint(tmp_path, written, hint):
    domain, table = ward(tmp_path)
    domain.write_text(DOMAIN.replace("low = 0.0", written))
    assert refused(run("check", domain, table), hint)


def test_other_words_and_codes_for_missing_values_get_advice(tmp_path):
    rows = [[999, "north", "ja", "no"], [-1, "south", "nein", "yes"]]
    domain, table = ward(tmp_path, rows)
    shown = " ".join(run("check", domain, table).stdout.split())
    assert 'declare your two words: kind = "category" and such as categories = ["nein", "ja"]' in shown
    assert (
        "Are some of them codes for missing values? Then list these as missing_words under [table]." in shown
    )
    assert refused(run("fit", domain, table, "-o", tmp_path / "p.json"), "Nothing was spent")
    domain.write_text(
        '[table]\nmissing_words = ["-1", "999"]\n'
        + DOMAIN.replace("high = 100.0", "high = 100.0\nmissing = 40")
    )
    assert "beyond" not in run("check", domain, table).stdout.lower()


def test_a_default_beyond_its_bounds_is_refused(tmp_path):
    domain, table = ward(tmp_path)
    domain.write_text(DOMAIN.replace("high = 100.0", "high = 110\nmissing = 165"))
    assert refused(
        run("check", domain, table),
        "`missing` of the feature 'age' must be within its bounds, 0 to 110; got 165",
    )
    old = expost.Number(name="age", low=0.0, high=110.0, missing=165.0)  # as publications of before have it
    assert math.isclose(old.coded(np.array([np.nan]))[0], 1.0)


def test_init_proposes_weights_as_weights_and_shows_every_text(tmp_path):
    table = write_csv(tmp_path / "t.csv", [], ["age", "survey_weight", "city", "answer"])
    text = run("init", table).stdout
    assert (
        '    "survey_weight",  # how much a record counts? Then: expost fit --weight survey_weight.' in text
    )
    assert 'name = "survey_weight"' not in text
    for key in ("example", "titles", "units", "aliases", "title", "unit", "question", "help", "group"):
        assert f"\n# {key} = " in text
    # What is shown in comments can be used: each line is TOML once its mark is gone.
    for line in text.splitlines():
        if line.startswith(("# units =", "# aliases =", "# titles =", "# example =")):
            assert expost.data.domain.tomllib.loads(line[2:])
