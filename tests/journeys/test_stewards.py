"""Three stewards take tables of their own from the line of names to the page, as they would type it."""

import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
import stewards
from typer.testing import CliRunner

import expost
from expost.cli import app


def typed(line):
    """Type a command, and read what it prints."""
    program, *words = shlex.split(line)
    assert program == "expost"
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, words)
    assert "Traceback" not in result.output
    return result


def done(line):
    result = typed(line)
    assert result.exit_code == 0, result.output
    return result.stdout


def data_of(page):
    """What a page knows."""
    return json.loads(
        re.search(r'id="numbers">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)[1]
    )


@pytest.mark.long
def test_a_german_hospital(tmp_path, monkeypatch):
    """Semicolons, decimal commas, a byte order mark and codes for missing values, and a German page."""
    monkeypatch.chdir(tmp_path)
    stewards.hospital(tmp_path)
    skeleton = done('expost init patienten.csv --delimiter ";" --decimal "," --encoding utf-8-sig')
    assert 'name = "Hämoglobin"' in skeleton
    assert "fits the domain" in done("expost check domain.toml patienten.csv --problems private-problems.csv")
    told = done(
        "expost fit domain.toml patienten.csv -o publication.json --losses private-losses.csv --id Fallnummer"
    )
    assert "expost losses publication.json" not in told  # they are written
    assert "expost predict publication.json new.csv --id Fallnummer --domain domain.toml" in told
    losses = pd.read_csv("private-losses.csv", sep=";", decimal=",")
    assert list(losses.columns) == ["PRIVATE_record", "Fallnummer", "ex_post_loss"]
    assert typed("expost losses publication.json patienten.csv").stderr.count("--domain") >= 1
    again = json.loads(done("expost losses publication.json patienten.csv --domain domain.toml --json"))
    np.testing.assert_allclose(again["losses"], losses["ex_post_loss"], rtol=1e-9)
    done("expost predict publication.json patienten.csv --domain domain.toml -o vorhersagen.csv")
    assert (tmp_path / "vorhersagen.csv").read_bytes().startswith(b"\xef\xbb\xbfrecord;prediction;")
    done("expost page publication.json -o seite.html")
    page = (tmp_path / "seite.html").read_text(encoding="utf-8")
    assert '<html lang="de">' in page
    lead = re.search(r'<p class="lead">(.*?)</p>', page)[1]
    assert lead.startswith(
        "Klinikum Nordstadt hat ein Computermodell veröffentlicht, das früh erkennt, wer wiederkommt."
    )
    assert data_of(tmp_path / "seite.html")["missing_words"] == ["-1", "999", "k.A."]
    done("expost page publication.json -o page.html --language en")
    lead = re.search(r'<p class="lead">(.*?)</p>', (tmp_path / "page.html").read_text(encoding="utf-8"))[1]
    quoted = "In the publisher’s own words: “früh erkennt, wer wiederkommt – Erwachsene, die"
    assert f"has published a computer model. {quoted}" in lead


WEIGHED = "--weight survey_weight --max-weight 2"


@pytest.mark.long
def test_a_weighted_survey_of_five_classes(tmp_path, monkeypatch):
    """Weights that are said to cost, and five classes that are predicted on a narrow screen."""
    monkeypatch.chdir(tmp_path)
    stewards.survey(tmp_path)
    assert "--weight survey_weight" in done("expost init survey.csv")
    assert "fits the domain" in done(f"expost check domain.toml survey.csv {WEIGHED}")
    said = " ".join(done(f"expost fit domain.toml survey.csv -o first.json {WEIGHED}").split())
    assert "the noise is 2 times what weights up to 1 would take" in said
    assert "32 coefficients, with noise" in said
    shown = done("expost predict first.json survey.csv")
    assert "its probability" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "never" in done("expost summary first.json")


@pytest.mark.slow
def test_two_publications_of_a_survey_cost_less_than_their_sum(tmp_path, monkeypatch):
    """A ledger counts the first afterwards, and the page promises what both compose to."""
    monkeypatch.chdir(tmp_path)
    stewards.survey(tmp_path)
    done(f"expost fit domain.toml survey.csv -o first.json {WEIGHED}")
    counted = "expost ledger ledger.db --open survey --epsilon 3 --delta 1e-6 --enter first.json"
    assert "Counted first.json" in done(counted)
    options = f"-o second.json {WEIGHED} --epsilon 0.5 --ledger ledger.db --account survey"
    assert "fits cost less together" in done(f"expost fit domain.toml survey.csv {options}")
    done("expost page first.json second.json -o page.html")
    plans = [expost.Publication.load(name).release.plan for name in ("first.json", "second.json")]
    promised = data_of(tmp_path / "page.html")["promises"][0]
    assert promised == expost.compose(plans).epsilon_at(plans[0].delta + plans[1].delta)
    assert promised < plans[0].epsilon + plans[1].epsilon


@pytest.mark.long
def test_house_prices(tmp_path, monkeypatch):
    """Prices in euros and inside what was declared, coefficients too, and another table that is noticed."""
    monkeypatch.chdir(tmp_path)
    stewards.houses(tmp_path)
    done("expost check domain.toml houses.csv")
    done("expost fit domain.toml houses.csv -o publication.json --epsilon 8")
    shown = done("expost predict publication.json houses.csv")
    assert "prediction (€)" in shown
    assert "e+0" not in shown
    prices = np.array(
        json.loads(done("expost predict publication.json houses.csv --json"))["predictions"]["prediction"]
    )
    assert np.all((prices >= 0) & (prices <= 2_000_000))
    assert "area" in done("expost summary publication.json")
    rows = (tmp_path / "houses.csv").read_text().splitlines()
    cheap = [row for row in rows[1:] if int(row.rpartition(",")[2]) < 100_000]
    (tmp_path / "cheap.csv").write_text("\n".join([rows[0], *cheap * 20]) + "\n")
    refused = typed("expost losses publication.json cheap.csv")
    assert refused.exit_code == 1
    assert "this is not the table that was fitted, or not all of it" in refused.stderr
    done("expost page publication.json -o page.html --language fr")


@pytest.mark.slow
@pytest.mark.parametrize("make", [stewards.hospital, stewards.survey, stewards.houses])
def test_the_same_with_many_rows(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make(tmp_path, 40_000)
    (table,) = tmp_path.glob("*.csv")
    weighed = "--weight survey_weight --max-weight 2" if make is stewards.survey else ""
    done(f"expost fit domain.toml {table.name} -o publication.json --report leverage {weighed}")
    weight = "--weight survey_weight" if weighed else ""
    told = json.loads(
        done(f"expost losses publication.json {table.name} --domain domain.toml {weight} --json")
    )
    assert max(told["losses"]) <= told["epsilon"]
    done("expost page publication.json -o page.html")
