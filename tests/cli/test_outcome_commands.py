"""Counts, amounts and quantiles on the command line, from the domain file to a rehearsal."""

import csv
import json

import numpy as np
import pytest
from ward import refused, run

import expost

FEATURES = """
[[features]]
name = "age"
kind = "number"
low = 18
high = 90

[[features]]
name = "smoker"
kind = "yes_no"

[label]
name = "{name}"
kind = "{kind}"
{bounds}
"""
OUTCOMES = {
    "count": {"name": "visits", "kind": "count", "bounds": "high = 52"},
    "amount": {"name": "cost", "kind": "amount", "bounds": 'low = 5\nhigh = 20000\nunit = "euros"'},
    "quantile": {"name": "stay", "kind": "number", "bounds": "low = 0\nhigh = 60"},
}
LEVEL = {"quantile": ("--level", "0.9")}
LOSSES = {"count": "bounded_poisson", "amount": "bounded_gamma", "quantile": "smoothed_pinball"}


def written(folder, name, rows=300, **others):
    """A domain file and a table with its outcome."""
    rng = np.random.default_rng(3)
    about = OUTCOMES[name] | others
    ages, smokers = rng.integers(18, 91, rows), rng.choice(["yes", "no"], rows)
    means = np.exp(0.5 + 0.02 * (ages - 50) + 0.4 * (smokers == "yes"))
    drawn = {
        "count": rng.poisson(means),
        "amount": np.round(100.0 * means * rng.lognormal(0.0, 0.5, rows), 2) + 5.0,
        "quantile": np.clip(np.round(10.0 * means + rng.normal(0.0, 5.0, rows), 1), 0.0, 60.0),
    }
    domain, table = folder / "domain.toml", folder / "table.csv"
    domain.write_text(FEATURES.format(**about))
    with table.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["age", "smoker", about["name"]])
        lines.writerows(zip(ages, smokers, drawn[name], strict=True))
    return domain, table


@pytest.fixture(scope="module", params=list(OUTCOMES))
def fitted(request, tmp_path_factory):
    """The name of an outcome, its files, and its publication."""
    folder = tmp_path_factory.mktemp(request.param)
    domain, table = written(folder, request.param)
    options = ("--report", "leverage", "--yes", *LEVEL.get(request.param, ()))
    result = run("fit", domain, table, "-o", folder / "publication.json", *options)
    assert result.exit_code == 0, result.output
    return request.param, domain, table, folder / "publication.json"


def test_a_file_to_fill_in_says_how_to_declare_them(tmp_path):
    _, table = written(tmp_path, "count")
    text = run("init", table).stdout
    assert '"count", "amount"' in text


def test_a_table_that_fits_is_told_so_and_a_plan_says_what_is_modelled(fitted):
    name, domain, table, _ = fitted
    assert "The table fits the domain" in run("check", domain, table).stdout
    said = " ".join(run("plan", domain, *LEVEL.get(name, ())).stdout.split())
    modelled = "of the 0.9-quantile" if name == "quantile" else "of the logarithm of the mean"
    assert f"3 coefficients, with noise, {modelled}." in said
    plan = json.loads(run("plan", domain, "--json", *LEVEL.get(name, ())).stdout)
    assert plan["loss"] == LOSSES[name]


def test_predictions_bounds_and_losses_are_those_of_python(fitted):
    name, _, table, path = fitted
    publication = expost.Publication.load(path)
    with table.open() as file:
        records = list(csv.DictReader(file))
    columns = {one: [row[one] for row in records] for one in ("age", "smoker")}
    outcome = np.array([float(row[OUTCOMES[name]["name"]]) for row in records])
    said = json.loads(run("predict", path, table, "--json").stdout)
    found = np.array(said["predictions"]["prediction"])
    np.testing.assert_allclose(found, publication.predict(columns))
    assert ("0.9-quantile" if name == "quantile" else "prediction") in run("predict", path, table).stdout
    label = publication.domain.label
    assert np.all((found >= label.low) & (found <= label.high))
    (bounds,) = json.loads(run("bounds", path, table, "--json").stdout)["publications"]
    np.testing.assert_allclose(bounds["total"], publication.bounds(columns, outcome).total)
    losses = np.array(json.loads(run("losses", path, table, "--json").stdout)["losses"])
    sure = publication.bounds(columns, outcome, confidence=1 - 1e-6, member=True, simultaneous="all")
    assert np.all((sure.lower <= np.abs(losses)) & (np.abs(losses) <= sure.upper))


def test_a_summary_names_what_coefficients_change_and_why_there_are_no_error_bars(fitted):
    name, _, _, path = fitted
    said = " ".join(run("summary", path).stdout.split())
    changed = {
        "count": "change of the logarithm of the mean of visits for one unit",
        "amount": "change of the logarithm of the mean of cost for one unit",
        "quantile": "change of the 0.9-quantile of stay for one unit",
    }
    why = {
        "count": "how much more counts scatter than a Poisson law's do",
        "amount": "how far amounts scatter around their mean",
        "quantile": "near the quantile, but not how many there are in all",
    }
    assert changed[name] in said
    assert "No error bars: inference needs the logistic or the softmax loss" in said
    assert f"but this publication has {LOSSES[name]}" in said
    assert why[name] in said


@pytest.mark.parametrize("name", ["count", "quantile"])
@pytest.mark.long
def test_a_rehearsal_has_the_score_of_the_model(tmp_path, name):
    domain, _ = written(tmp_path, name)
    shown = run("rehearse", domain, "--rows", 200, "--tables", 1, *LEVEL.get(name, ()))
    assert shown.exit_code == 0, shown.output
    assert "D²" in shown.stdout
    assert "R²" not in shown.stdout


BAD_DOMAINS = {
    "negative": ("count", {"bounds": "low = -1\nhigh = 52"}, "low >= 0 and high >= 1: it is a count"),
    "zero": ("amount", {"bounds": "low = 0\nhigh = 9"}, "must have low > 0"),
    "tiny": ("count", {"bounds": "low = 0\nhigh = 5e-324"}, "high >= 1"),
    "wide": ("amount", {"bounds": "low = 1e-300\nhigh = 1e300"}, "high at most 1e30 times low"),
    "no end": ("count", {"bounds": ""}, "high"),
    "turned": ("amount", {"bounds": "low = 9\nhigh = 5"}, "low"),
    "unknown": ("count", {"kind": "counts"}, "kind"),
}


@pytest.mark.parametrize("bad", BAD_DOMAINS)
def test_a_wrong_label_is_refused_in_one_sentence(tmp_path, bad):
    name, others, words = BAD_DOMAINS[bad]
    domain, table = written(tmp_path, name, rows=5, **others)
    for command in (("check", domain, table), ("fit", domain, table, "-o", tmp_path / "p.json", "--yes")):
        assert refused(run(*command), words)
    assert not (tmp_path / "p.json").exists()


BAD_OPTIONS = {
    "level of a count": ("count", ("--level", "0.9"), "`level` must be left out for this loss"),
    "level of an amount": ("amount", ("--level", "0.5"), 'declared with kind = "number"'),
    "level beyond": ("quantile", ("--level", "1.5"), "`level` must be"),
    "threshold of a quantile": (
        "quantile",
        ("--level", "0.5", "--threshold", "1"),
        "`threshold` must be left",
    ),
    "threshold": ("amount", ("--threshold", "-1"), "`threshold` must be"),
    "loss": ("count", ("--loss", "logistic"), "`loss` must be 'bounded_poisson' for a count"),
    "cap": ("amount", ("--cap", "0.7"), "`cap` must be left out for this loss"),
}


@pytest.mark.parametrize("bad", BAD_OPTIONS)
def test_an_option_of_another_model_is_refused_in_one_sentence(tmp_path, bad):
    name, options, words = BAD_OPTIONS[bad]
    domain, _ = written(tmp_path, name, rows=5)
    assert refused(run("plan", domain, *options), words)


@pytest.mark.parametrize("name", OUTCOMES)
def test_an_outcome_that_is_no_number_is_a_problem_and_no_fit(tmp_path, name):
    domain, table = written(tmp_path, name, rows=20)
    lines = table.read_text().splitlines()
    column = lines[0].rsplit(",", 1)[1]
    lines[3] = lines[3].rsplit(",", 1)[0] + ","
    table.write_text("\n".join(lines) + "\n")
    fit = ("fit", domain, table, "-o", tmp_path / "p.json", "--yes")
    assert refused(run(*fit), f"`{column}`: the outcome is missing in a record. Fill the cells")
    lines[3] = lines[3].rsplit(",", 1)[0] + ",many"
    table.write_text("\n".join(lines) + "\n")
    checked = run("check", domain, table)
    assert checked.exit_code == 1
    assert "many" not in checked.output.replace("how many", "")
    assert refused(run(*fit), f"`{column}` must be a number in every record")
    assert not (tmp_path / "p.json").exists()
