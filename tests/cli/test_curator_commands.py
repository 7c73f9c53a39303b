"""The curator's commands: init, plan, fit, losses."""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from ward import DOMAIN, NAMES, patients, refused, run, ward, write_csv

import expost
from expost.cli import fit as cli_fit
from expost.exceptions import DomainError
from expost.privacy.shapes import capped_logistic, default_threshold


def test_init_names_the_columns_and_learns_no_value(tmp_path):
    one, other = patients(3), [[999, "west", "maybe", "perhaps"]]
    texts = []
    for rows in (one, other, []):
        result = run("init", write_csv(tmp_path / "table.csv", rows))
        assert result.exit_code == 0
        texts.append(result.stdout)
    assert texts[0] == texts[1] == texts[2]
    assert all(f'name = "{name}"' in texts[0] for name in NAMES)
    assert texts[0].count("[[features]]") == 3
    assert 'name = "ill"\nkind = "classes"' in texts[0]
    with pytest.raises(DomainError, match="still says 'FILL IN' for `low` of 'age'"):
        expost.Domain.from_toml(texts[0])


def test_init_takes_kinds_from_parquets_schema_and_the_outcome_from_the_option(tmp_path):
    frame = pd.DataFrame({"paid": [1.5], "city": ["x"], "old": [True], "rooms": [3]})
    frame["since"] = pd.Timestamp("2020-01-31")
    frame.to_parquet(tmp_path / "table.parquet")
    text = run("init", tmp_path / "table.parquet", "--label", "paid").stdout
    kinds = dict(re.findall(r'name = "(\w+)"\nkind = "(\w+)"', text))
    assert kinds == {
        "city": "category",
        "old": "yes_no",
        "rooms": "number",
        "since": "date",
        "paid": "number",
    }
    assert refused(run("init", tmp_path / "table.parquet", "--label", "nope"), "no column 'nope'")


def test_a_skeleton_is_refused_by_every_command_until_it_is_filled(tmp_path):
    _, table = ward(tmp_path)
    (tmp_path / "domain.toml").write_text(run("init", table).stdout)
    for command in (["plan"], ["fit"]):
        extra = [table] if command == ["fit"] else []
        assert refused(run(*command, tmp_path / "domain.toml", *extra), "FILL IN")


def test_plan_needs_no_data_and_prints_the_same_as_json(tmp_path):
    domain, table = ward(tmp_path)
    table.unlink()
    shown = run("plan", domain, "--epsilon", 2, "--report", "leverage")
    assert "whole publication: ε = 2 at δ = 1e-06" in shown.stdout
    plan = json.loads(run("plan", domain, "--epsilon", 2, "--report", "leverage", "--json").stdout)
    expected = expost.calibrate(
        loss=capped_logistic(2.0, 1e-6, radius=math.hypot(np.sqrt(3 / 2), 1.0)),
        norm=np.sqrt(3 / 2),
        epsilon=2.0,
        report="leverage",
        fit_intercept=True,
    )
    assert str(expected.loss) in " ".join(shown.stdout.split())
    assert plan["loss_parameters"] == {
        "soft": False,
        "cap": expected.loss.cap,
        "corner": expected.loss.corner,
        "gradient_cap": expected.loss.gradient_cap,
    }
    assert plan["sigma"] == expected.sigma
    assert plan["sigma_hessian"] == expected.sigma_hessian
    assert plan["sigma_gradient"] is None


@pytest.mark.long
def test_plan_takes_every_loss_that_suits_the_outcome(tmp_path):
    domain, _ = ward(tmp_path)
    for loss in ("logistic", "smoothed_hinge"):
        assert json.loads(run("plan", domain, "--loss", loss, "--json").stdout)["loss"] == loss
    assert refused(run("plan", domain, "--loss", "pseudo_huber"), "`loss` must be")
    assert refused(run("plan", domain, "--threshold", "0.5"), "`threshold` must be left out")
    plain = json.loads(run("plan", domain, "--cap", "1", "--json").stdout)
    assert plain["loss_parameters"] == {"soft": False}
    assert plain["sigma"] == expost.calibrate(norm=np.sqrt(3 / 2), fit_intercept=True).sigma
    assert refused(run("plan", domain, "--loss", "smoothed_hinge", "--cap", "0.5"), "`cap` must be left out")
    assert refused(run("plan", domain, "--cap", "1.5"), "`cap` must be a number between")
    number = DOMAIN.replace(
        'kind = "classes"\nclasses = ["no", "yes"]', 'kind = "number"\nlow = 0.0\nhigh = 1.0'
    )
    domain.write_text(number)
    chosen = json.loads(run("plan", domain, "--json").stdout)["loss_parameters"]
    width = default_threshold(1.0, 1e-6)
    assert chosen == {"threshold": width, "gradient_cap": pytest.approx(width * np.sqrt(5 / 2), rel=1e-14)}
    shown = " ".join(run("plan", domain).stdout.split())
    assert "PseudoHuber(threshold=0.195303, gradient_cap=0.308802)" in shown
    given = json.loads(run("plan", domain, "--threshold", "0.5", "--json").stdout)["loss_parameters"]
    assert given == {"threshold": 0.5}
    assert refused(run("plan", domain, "--threshold", "0"), "`threshold` must be")
    assert refused(run("plan", domain, "--loss", "logistic"), "`loss` must be")
    assert run("plan", domain, "--loss", "squared").exit_code == 2


def test_fit_says_first_what_it_will_spend_and_write(tmp_path, monkeypatch):
    domain, table = ward(tmp_path)

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("expost.cli.fit.perturb", stopped)
    result = run("fit", domain, table, "-o", tmp_path / "p.json", "--losses", tmp_path / "private.csv")
    assert result.exit_code == 1
    assert "Will spend   epsilon 1 at delta 1e-06" in result.stdout
    assert str(tmp_path / "p.json") in result.stdout
    assert f"{tmp_path / 'private.csv'}  (PRIVATE" in result.stdout
    assert "stopped before the end" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["domain.toml", "table.csv"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_fit_and_losses_agree_from_csv_and_parquet(suffix, tmp_path):
    domain, table = ward(tmp_path)
    if suffix == "parquet":
        pd.read_csv(table).astype({"ward": "category"}).to_parquet(tmp_path / "table.parquet")
    source, kept = tmp_path / f"table.{suffix}", tmp_path / f"private-losses.{suffix}"
    result = run("fit", domain, source, "-o", tmp_path / "p.json", "--losses", kept, "--report", "adaptive")
    assert result.exit_code == 0, result.output
    assert f"Published: {tmp_path / 'p.json'}" in result.stdout
    again = tmp_path / f"private-again.{suffix}"
    shown = run("losses", tmp_path / "p.json", source, "-o", again)
    assert shown.exit_code == 0, shown.output
    assert shown.stderr == ""
    assert "The most exposed (private)" in shown.stdout
    if suffix == "csv":
        first, second = (pd.read_csv(path) for path in (kept, again))
        assert again.read_text().startswith("PRIVATE_record,ex_post_loss\n")
    else:
        import pyarrow.parquet

        first, second = (pd.read_parquet(path) for path in (kept, again))
        assert b"Never publish" in pyarrow.parquet.read_schema(again).metadata[b"PRIVATE"]
    assert len(first) == 200
    np.testing.assert_allclose(first["ex_post_loss"], second["ex_post_loss"], rtol=1e-7, atol=1e-12)


def test_fit_prints_only_json_on_standard_output(tmp_path):
    domain, table = ward(tmp_path)
    result = run("fit", domain, table, "-o", tmp_path / "p.json", "--json")
    told = json.loads(result.stdout)
    publication = expost.Publication.load(tmp_path / "p.json")
    assert told["sha256"] == publication.sha256
    assert told["plan"]["sigma"] == publication.plan.sigma
    assert told["spent"] is True
    assert told["private_losses"] is None
    assert "Will spend" in result.stderr


def test_a_dry_run_checks_everything_and_spends_nothing(tmp_path):
    domain, table = ward(tmp_path)
    result = run("fit", domain, table, "-o", tmp_path / "p.json", "--dry-run", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["spent"] is False
    assert not (tmp_path / "p.json").exists()
    ward(tmp_path, [[1, "west", "no", "no"]])
    assert "never declared" in run("fit", domain, table, "-o", tmp_path / "p.json", "--dry-run").stderr


def test_fit_asks_before_spending_in_a_terminal(tmp_path, monkeypatch):
    domain, table = ward(tmp_path)
    arguments = ("fit", domain, table, "-o", tmp_path / "p.json")
    monkeypatch.setattr(cli_fit, "_someone_is_there", lambda: True)
    declined = run(*arguments, input="n\n")
    assert declined.exit_code == 1
    assert "Spend it? [y/N]" in declined.output
    assert not (tmp_path / "p.json").exists()
    assert run(*arguments, input="y\n").exit_code == 0
    assert (tmp_path / "p.json").exists()
    told = run(*arguments, "--force", "--yes")
    assert told.exit_code == 0
    assert "Spend it?" not in told.output
    monkeypatch.undo()
    assert run(*arguments, "--force").exit_code == 0  # a script has nobody to ask


@pytest.mark.parametrize(
    ("texts", "absent"),
    [
        ("", "no publisher and no contact"),
        ('publisher = "Hospital"', "no contact"),
        ('contact = { phone = "1234" }', "no publisher"),
        ('publisher = "Hospital"\ncontact = { phone = "1234" }', None),
    ],
)
def test_a_page_that_will_name_nobody_is_announced_before_anything_is_spent(tmp_path, texts, absent):
    domain, table = ward(tmp_path)
    domain.write_text(f"{DOMAIN}\n[publication]\n{texts}\n" if texts else DOMAIN)
    for command in (["check"], ["fit", "--dry-run"]):
        told = run(*command, domain, table)
        assert told.exit_code == 0
        assert ("The page will name" in told.stdout) == (absent is not None)
        assert absent is None or f"The page will name {absent}. Declare [publication]" in told.stdout


def test_a_publication_is_not_overwritten_without_force(tmp_path):
    domain, table = ward(tmp_path)
    arguments = ("fit", domain, table, "-o", tmp_path / "p.json")
    assert run(*arguments).exit_code == 0
    first = (tmp_path / "p.json").read_text()
    assert refused(run(*arguments), "p.json exists, and it has spent already. A new fit spends again")
    assert (tmp_path / "p.json").read_text() == first
    again = run(*arguments, "--force")
    assert again.exit_code == 0
    assert "has spent already: replacing it refunds nothing" in again.stdout
    assert (tmp_path / "p.json").read_text() != first


@pytest.mark.parametrize("name", ["losses.csv", "private.txt"])
def test_a_file_of_losses_says_that_it_is_private(name, tmp_path):
    domain, table = ward(tmp_path)
    publication = tmp_path / "p.json"
    result = run("fit", domain, table, "-o", publication, "--losses", tmp_path / name)
    assert refused(result, "a file of exact losses must")
    assert not publication.exists()
    assert run("fit", domain, table, "-o", publication).exit_code == 0
    assert refused(run("losses", publication, table, "-o", tmp_path / name), "a file of exact losses must")


def test_losses_refuse_a_table_that_was_not_fitted(tmp_path):
    domain, table = ward(tmp_path)
    assert run("fit", domain, table, "-o", tmp_path / "p.json").exit_code == 0
    other = write_csv(tmp_path / "other.csv", [[90, "south", "yes", "yes"]] * 2000)
    for options in (["--json"], ["-o", tmp_path / "private-losses.csv"]):
        result = run("losses", tmp_path / "p.json", other, *options)
        assert refused(result, "this is not the table that was fitted, or not all of it")
        assert "--domain" not in result.stderr
        assert result.stdout == ""
    assert not (tmp_path / "private-losses.csv").exists()


def test_a_numeric_outcome_is_fitted_too(tmp_path):
    domain = tmp_path / "domain.toml"
    domain.write_text(
        "[[features]]\nname='x'\nkind='number'\nlow=0.0\nhigh=1.0\n[label]\nname='y'\nkind='number'\nlow=0.0\nhigh=9.0"
    )
    table = write_csv(tmp_path / "table.csv", [[k / 50, k % 10] for k in range(50)], ["x", "y"])
    assert run("fit", domain, table, "-o", tmp_path / "p.json", "--report", "leverage").exit_code == 0
    assert run("losses", tmp_path / "p.json", table).exit_code == 0
    assert run("bounds", tmp_path / "p.json", table).exit_code == 0


def test_weights_of_records_go_from_the_table_to_the_publication_and_the_losses(tmp_path):
    domain, table = ward(tmp_path)
    frame = pd.read_csv(table)
    frame["counts"] = np.arange(len(frame)) % 4
    frame.to_csv(table, index=False)
    options = ("--weight", "counts")
    assert refused(run("fit", domain, table, *options, "-o", tmp_path / "p.json"), "from 0 to max_weight=1")
    assert refused(run("fit", domain, table, "--weight", "nope", "-o", tmp_path / "p.json"), "column 'nope'")
    out, private = tmp_path / "p.json", tmp_path / "private.csv"
    fitted = run("fit", domain, table, *options, "--max-weight", 3, "-o", out, "--losses", private, "--json")
    assert json.loads(fitted.stdout)["plan"]["max_weight"] == 3.0
    publication = expost.Publication.load(out)
    assert publication.weighting.max_weight == publication.release.plan.max_weight == 3.0
    planned = json.loads(run("plan", domain, "--max-weight", 3, "--json").stdout)
    assert planned["sigma"] == publication.plan.sigma
    again = json.loads(run("losses", out, table, *options, "--json").stdout)
    assert again["plausible"]
    written = pd.read_csv(private).iloc[:, -1]
    np.testing.assert_allclose(again["losses"], written, rtol=1e-9)
    assert np.all(written[frame["counts"] == 0] == 0.0)
    bounds = json.loads(run("bounds", out, table, *options, "--confidence", 1 - 1e-9, "--json").stdout)
    (read,) = bounds["publications"]
    assert np.all((np.array(read["lower"]) <= written) & (written <= np.array(read["upper"])))
    unweighted = run("losses", out, table)
    assert refused(unweighted, "Name the column that was fitted: --weight COLUMN")
    plain = json.loads(run("bounds", out, table, "--confidence", 1 - 1e-9, "--json").stdout)
    assert np.all(np.array(plain["total"])[frame["counts"] == 0] > 0.0)


@pytest.mark.long
@pytest.mark.parametrize("report", [pytest.param("independent", marks=pytest.mark.slow), "adaptive"])
def test_an_outcome_of_several_classes_goes_all_the_way(report, tmp_path):
    """From a domain with four classes to the publication, exact losses, bounds and the page."""
    classes = ["calm", "worse", "better", "gone"]
    domain, table = ward(tmp_path)
    domain.write_text(DOMAIN.replace('["no", "yes"]', json.dumps(classes)))
    frame = pd.read_csv(table)
    frame["ill"] = np.array(classes)[np.arange(len(frame)) % 4]
    frame.to_csv(table, index=False)
    out, private = tmp_path / "p.json", tmp_path / "private.csv"
    fitted = run("fit", domain, table, "-o", out, "--losses", private, "--report", report, "--json")
    assert fitted.exit_code == 0, fitted.stderr
    planned = json.loads(fitted.stdout)["plan"]
    assert planned["loss"] == "softmax"
    assert planned["loss_parameters"]["classes"] == 4
    assert not planned["reduced"]
    assert expost.Publication.load(out).classes == tuple(classes)
    written = pd.read_csv(private).iloc[:, -1]
    again = json.loads(run("losses", out, table, "--json").stdout)
    assert again["plausible"]
    np.testing.assert_allclose(again["losses"], written, rtol=1e-6, atol=1e-9)
    bounds = run("bounds", out, table, "--confidence", 1 - 1e-9, "--member", "yes", "--json")
    (read,) = json.loads(bounds.stdout)["publications"]
    assert np.all((np.array(read["lower"]) <= written) & (written <= np.array(read["upper"])))
    assert run("page", out, "-o", tmp_path / "p.html").exit_code == 0
    assert refused(run("plan", domain, "--loss", "smoothed_hinge"), "'logistic' for 4 classes")
    frame.loc[3, "ill"] = "unheard of"
    frame.to_csv(table, index=False)
    result = run("fit", domain, table, "-o", tmp_path / "q.json")
    assert refused(result, "outside the declared classes")
    assert "unheard" not in result.stderr


@pytest.mark.long
def test_the_hessian_of_many_coefficients_is_the_reduced_one(tmp_path):
    domain, _ = ward(tmp_path)
    wards = json.dumps([f"ward {k}" for k in range(60)])
    domain.write_text(
        DOMAIN.replace('["no", "yes"]', '["no", "some", "yes"]').replace('["north", "south"]', wards)
    )
    plan = json.loads(run("plan", domain, "--report", "leverage", "--json").stdout)
    assert plan["reduced"]
    assert not json.loads(run("plan", domain, "--json").stdout)["reduced"]
