"""The commands for outcomes that make several rows of a record: one line of figures for each record."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import expost
from expost.cli import app
from expost.data.problems import Problem

FEATURES = """
[[features]]
name = "age"
kind = "number"
low = 20.0
high = 80.0

"""
ORDERED = """[label]
name = "pain"
kind = "ordered"
classes = ["none", "mild", "severe"]
"""


def told(*arguments):
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def ordered(tmp_path):
    rng = np.random.default_rng(0)
    age = rng.uniform(20.0, 80.0, 150).round(1)
    pain = np.array(["none", "mild", "severe"])[
        np.digitize((age - 50.0) / 10.0 + rng.logistic(size=150), [-1, 1])
    ]
    pd.DataFrame({"age": age, "pain": pain}).to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "domain.toml").write_text(FEATURES + ORDERED)
    return tmp_path


@pytest.mark.long
def test_a_model_of_ordered_classes_from_the_check_to_the_page(ordered):
    domain, table, model = (ordered / name for name in ("domain.toml", "table.csv", "model.json"))
    assert "The table fits" in told("check", domain, table)
    plan = " ".join(told("plan", domain).split())
    assert "3 coefficients" in plan
    # Nobody declared people.
    assert "for all rows of a record or person together" in plan
    assert "her rows" not in plan
    figures = ordered / "private-losses.csv"
    said = told("fit", domain, table, "--yes", "-o", model, "--losses", figures)
    assert "for every record alike" in said
    assert len(pd.read_csv(figures)) == 150
    publication = expost.Publication.load(model)
    found = json.loads(told("predict", model, table, "--json"))["predictions"]
    records = pd.read_csv(table)
    assert found["prediction"] == publication.predict(records).tolist()
    chances = publication.predict_proba(records)
    np.testing.assert_allclose(found["probability of severe"], chances[:, 2])
    assert "the median class" in " ".join(told("predict", model, table).split())
    bounds = json.loads(told("bounds", model, table, "--json", "--member", "yes"))
    assert (bounds["unit"], bounds["people"]) == ("record", None)
    exact = json.loads(told("losses", model, table, "--json"))
    theirs = publication.bounds(records, member=True)
    np.testing.assert_allclose(bounds["publications"][0]["upper"], theirs.upper, rtol=1e-12)
    np.testing.assert_allclose(exact["losses"], pd.read_csv(figures)["ex_post_loss"], rtol=1e-9)
    summary = told("summary", model)
    assert "above mild" in summary
    assert "makes higher classes likelier" in " ".join(summary.split())
    coefficients = json.loads(told("summary", model, "--json"))
    likelier = publication.predict_proba({"age": [25.0, 75.0]})[:, 2]
    assert (coefficients["coefficients"][0] > 0.0) == (likelier[1] > likelier[0])
    told("page", model, "-o", ordered / "page.html")


@pytest.mark.long
def test_the_quality_of_held_out_records_and_a_rehearsal(ordered):
    rng = np.random.default_rng(1)
    other = pd.DataFrame(
        {"age": rng.uniform(20.0, 80.0, 60), "pain": np.tile(["none", "mild", "severe"], 20)}
    )
    other.to_csv(ordered / "other.csv", index=False)
    arguments = ("--yes", "--json", "-o", ordered / "model.json", "--test", ordered / "other.csv")
    quality = json.loads(told("fit", ordered / "domain.toml", ordered / "table.csv", *arguments))
    found, publication = quality["private_quality"], expost.Publication.load(ordered / "model.json")
    chances = publication.predict_proba(other)
    places = np.tile([0, 1, 2], 20)
    assert found["log_loss"] == pytest.approx(-np.mean(np.log(chances[np.arange(60), places])))
    assert found["guess_log_loss"] == pytest.approx(np.log(3.0))
    rehearsed = json.loads(
        told("rehearse", ordered / "domain.toml", "--rows", 300, "--tables", 1, "--json", "--epsilon", 8)
    )
    assert rehearsed["budgets"][-1]["quality"]["auc"] > 0.6


def test_people_with_ids_are_refused(ordered):
    (ordered / "domain.toml").write_text('person = "age2"\n' + FEATURES + ORDERED)
    result = CliRunner().invoke(app, ["plan", str(ordered / "domain.toml")])
    assert result.exit_code == 1
    assert "each record is a person of her own" in " ".join(result.output.split())


TIME = """[label]
name = "months"
kind = "time"
event = "died"
periods = 6
unit = "months"
"""


@pytest.mark.parametrize(
    ("months", "died", "column"),
    [("5", "", "died"), ("", "no", "months"), ("", "", "died")],
)
def test_a_fit_says_of_an_empty_time_or_event_what_check_says(months, died, column, tmp_path):
    domain, table = tmp_path / "domain.toml", tmp_path / "table.csv"
    domain.write_text(FEATURES + TIME)
    table.write_text(f"age,months,died\n30,2,yes\n40,{months},{died}\n")
    result = CliRunner().invoke(app, ["fit", str(domain), str(table), "--dry-run"])
    assert result.exit_code == 1
    said = " ".join(result.stderr.split())
    title, advice = Problem.NO_TIME.value
    assert f"`{column}` is empty in a record: {title}. F{advice[1:]}. Nothing was spent." in said


@pytest.mark.long
def test_a_model_of_times_from_the_check_to_the_page(tmp_path):
    rng = np.random.default_rng(0)
    age = rng.uniform(20.0, 80.0, 150).round(1)
    months, died = rng.integers(0, 9, 150), np.where(rng.random(150) < age / 100.0, "yes", "no")
    frame = pd.DataFrame({"age": age, "months": months, "died": died})
    domain, table, model = (tmp_path / name for name in ("domain.toml", "table.csv", "model.json"))
    frame.to_csv(table, index=False)
    domain.write_text(FEATURES + TIME)
    assert "The table fits" in told("check", domain, table)
    assert "7 coefficients" in told("plan", domain)
    plain, unit = " ".join(told("plan", domain).split()), 'unit = "months"\n'
    assert "0 to 6 months. Predicted times need about 3,600 rows" in plain
    domain.write_text(FEATURES + TIME.replace(unit, ""))
    assert "0 to 6. Is that the unit of the column? Declare `unit`." in " ".join(told("plan", domain).split())
    domain.write_text(FEATURES + TIME)
    said = told("fit", domain, table, "--yes", "-o", model, "--losses", tmp_path / "private-losses.csv")
    assert "for every record alike" in said
    publication = expost.Publication.load(model)
    found = json.loads(told("predict", model, table, "--json"))["predictions"]
    np.testing.assert_allclose(found["prediction"], publication.predict(frame))
    np.testing.assert_allclose(found["died: not yet by 3 months"], publication.predict_survival(frame)[:, 2])
    screen = told("predict", model, table)
    assert all(
        text in screen for text in ("prediction (months)", "died: not yet by 6 months", "The mean time")
    )
    assert "not yet by 5" not in screen  # a screen has no room for the curve
    assert f"{found['prediction'][0]:.3f}" in screen
    bounds = json.loads(told("bounds", model, table, "--json", "--member", "yes"))
    theirs = publication.bounds(frame, member=True)
    np.testing.assert_allclose(bounds["publications"][0]["upper"], theirs.upper, rtol=1e-12)
    exact = json.loads(told("losses", model, table, "--json"))
    written = pd.read_csv(tmp_path / "private-losses.csv")["ex_post_loss"]
    np.testing.assert_allclose(exact["losses"], written, rtol=1e-9, atol=1e-12)
    summary = told("summary", model)
    assert "period 6" in summary
    assert "makes the event likelier" in " ".join(summary.split())
    told("page", model, "-o", tmp_path / "page.html")
    frame.assign(died="perhaps").to_csv(tmp_path / "other.csv", index=False)
    refused = CliRunner().invoke(app, ["check", str(domain), str(tmp_path / "other.csv")])
    assert refused.exit_code == 1
    assert "died" in refused.output
    assert "0.5 is chance" in told("rehearse", domain, "--rows", 60, "--tables", 1)
    rehearsed = json.loads(told("rehearse", domain, "--rows", 400, "--tables", 1, "--json", "--epsilon", 8))
    last = rehearsed["budgets"][-1]["quality"]
    assert last["concordance"] > 0.55
    assert last["auc"] is None
    frame.to_csv(tmp_path / "held.csv", index=False)
    tried = told("fit", domain, table, "--yes", "--force", "-o", model, "--test", tmp_path / "held.csv")
    assert "concordance  0." in tried
    assert "AUC" not in tried


def test_records_of_several_rows_share_an_account_with_models_of_rows(ordered):
    """One of each kind, on the command line, in Python and from a file: all promise to a record."""
    domain, table, book = (ordered / name for name in ("domain.toml", "table.csv", "book.db"))
    yes_no = ordered / "yes_no.toml"
    label = '[label]\nname = "pain"\nkind = "classes"\nclasses = ["none", "mild", "severe"]\n'
    yes_no.write_text(FEATURES + label)
    told("ledger", book, "--open", "pain", "--epsilon", 3, "--delta", 1e-5)
    shared = ("--yes", "--ledger", book, "--account", "pain")
    told("fit", yes_no, table, "-o", ordered / "classes.json", *shared)
    told("fit", domain, table, "-o", ordered / "ordered.json", *shared)
    account = expost.Ledger(book).account("pain")
    frame = pd.read_csv(table)
    model = expost.OrdinalRegression(domain=expost.Domain.load(domain), epsilon=0.5)
    model.fit(frame, frame["pain"], account=account)
    model.publication_.save(ordered / "other.json")
    assert [entry.unit for entry in account.entries] == ["row", "row", "row"]
    assert 1.0 < account.spent.epsilon_at(1e-5) < 2.5
    told(
        "ledger", book, "--open", "again", "--epsilon", 3, "--delta", 1e-5, "--enter", ordered / "other.json"
    )
    assert expost.Ledger(book).account("again").entries[0].unit == "row"
