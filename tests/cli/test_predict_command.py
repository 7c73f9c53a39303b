"""`expost predict`, held-out quality after a fit, and identifiers beside figures."""

import json

import numpy as np
import pandas as pd
import pytest
from ward import DOMAIN, NAMES, patients, refused, run, ward, write_csv

import expost


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A folder with a domain file, a table, records that were held out, and a publication."""
    folder = tmp_path_factory.mktemp("ward")
    domain, table = ward(folder, [[f"p{k}", *row] for k, row in enumerate(patients())])
    for name, rows in (("table.csv", patients()), ("held.csv", patients(90)[::-1])):
        write_csv(folder / name, [[f"p{k}", *row] for k, row in enumerate(rows)], ["who", *NAMES])
    assert run("fit", domain, table, "-o", folder / "p.json").exit_code == 0
    return folder


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predictions_are_those_of_the_library(suffix, published, tmp_path):
    read = expost.Publication.load(published / "p.json")
    frame = pd.read_csv(published / "held.csv")
    out = tmp_path / f"predictions.{suffix}"
    result = run("predict", published / "p.json", published / "held.csv", "-o", out, "--id", "who")
    assert result.exit_code == 0, result.output
    written = pd.read_csv(out) if suffix == "csv" else pd.read_parquet(out)
    assert list(written.columns) == ["record", "who", "prediction", "probability of no", "probability of yes"]
    assert list(written["who"]) == list(frame["who"])
    assert list(written["prediction"]) == list(read.predict(frame))
    shares = written[["probability of no", "probability of yes"]].to_numpy()
    np.testing.assert_allclose(shares, read.predict_proba(frame), rtol=1e-12)
    told = json.loads(run("predict", published / "p.json", published / "held.csv", "--json").stdout)
    assert told["predictions"]["prediction"] == list(written["prediction"])


def test_the_outcome_is_not_needed_and_the_first_records_are_shown(published, tmp_path):
    write_csv(tmp_path / "new.csv", [row[:-1] for row in patients(30)], NAMES[:-1])
    shown = run("predict", published / "p.json", tmp_path / "new.csv")
    assert shown.exit_code == 0
    assert "Only the first records are shown" in shown.stdout
    assert refused(
        run("predict", published / "p.json", tmp_path / "new.csv", "--id", "ill"), "lacks the column"
    )
    assert refused(
        run("predict", published / "p.json", tmp_path / "new.csv", "-o", tmp_path / "p.txt"), ".csv"
    )


def test_a_numeric_outcome_and_a_hinge_have_predictions_without_probabilities(tmp_path):
    domain, table = ward(tmp_path)
    assert run("fit", domain, table, "-o", tmp_path / "h.json", "--loss", "smoothed_hinge").exit_code == 0
    told = json.loads(run("predict", tmp_path / "h.json", table, "--json").stdout)["predictions"]
    assert set(told) == {"prediction"}
    number = 'name = "age"\nkind = "number"\nlow = 0.0\nhigh = 100.0'
    swapped = DOMAIN.replace("[label]\n", "[[features]]\n").replace(
        f"[[features]]\n{number}", f"[label]\n{number}"
    )
    domain.write_text(swapped.replace('kind = "classes"\nclasses', 'kind = "category"\ncategories'))
    held = write_csv(tmp_path / "held.csv", patients(50))
    fitted = run("fit", domain, table, "-o", tmp_path / "n.json", "--test", held, "--json")
    assert fitted.exit_code == 0, fitted.output
    quality = json.loads(fitted.stdout)["private_quality"]
    told = json.loads(run("predict", tmp_path / "n.json", held, "--json").stdout)["predictions"]["prediction"]
    ages = np.array([row[0] for row in patients(50)], dtype=float)
    rest = np.sum((ages - np.array(told)) ** 2) / np.sum((ages - ages.mean()) ** 2)
    assert quality["r2"] == pytest.approx(1.0 - rest, rel=1e-9)
    assert quality["auc"] is None


def test_held_out_quality_is_shown_as_private_and_not_published(published, tmp_path):
    domain, table, held = (published / name for name in ("domain.toml", "table.csv", "held.csv"))
    result = run("fit", domain, table, "-o", tmp_path / "p.json", "--test", held)
    assert result.exit_code == 0, result.output
    assert "How well it predicts the held-out table (PRIVATE)" in result.stdout
    assert "Do not" in result.stdout
    assert "AUC" in result.stdout
    assert "log-loss" in result.stdout
    assert set(json.loads((tmp_path / "p.json").read_text())) == set(
        json.loads((published / "p.json").read_text())
    )
    for words in ("expost page ", "expost predict ", "expost losses "):
        assert words in result.stdout
    assert refused(run("fit", domain, table, "-o", tmp_path / "q.json", "--test", table), "hold records out")
    bad = write_csv(tmp_path / "bad.csv", [["x", *patients(1)[0][1:]]])
    result = run("fit", domain, table, "-o", tmp_path / "q.json", "--test", bad)
    assert refused(result, f"expost check {domain} {bad}")
    assert not (tmp_path / "q.json").exists()


def test_identifiers_stand_beside_losses_and_bounds(published, tmp_path):
    table, out = published / "table.csv", tmp_path / "private-losses.csv"
    assert run("losses", published / "p.json", table, "-o", out, "--id", "who").exit_code == 0
    frame = pd.read_csv(out)
    assert list(frame.columns) == ["PRIVATE_record", "who", "ex_post_loss"]
    assert list(frame["who"]) == [f"p{k}" for k in range(200)]
    assert run("bounds", published / "p.json", table, "-o", tmp_path / "b.csv", "--id", "who").exit_code == 0
    bounds = pd.read_csv(tmp_path / "b.csv")
    assert list(bounds.columns) == ["record", "who", "lower", "upper", "report_cost", "total"]
    assert list(bounds["who"]) == list(frame["who"])
    assert refused(run("bounds", published / "p.json", table, "--id", "nobody"), "lacks the column 'nobody'")


def test_an_identifier_may_not_have_the_name_of_a_figure(published, tmp_path):
    rows = [[row[0], *row] for row in patients(5)]
    records = write_csv(tmp_path / "r.csv", rows, ["prediction", *NAMES])
    result = run("predict", published / "p.json", records, "--id", "prediction")
    assert refused(result, "`--id` must not be 'prediction', which is a name of a figure")


def test_predictions_of_a_test_publication_come_with_a_warning(published, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, size=(60, 2)), rng.integers(0, 2, 60)
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=0).fit(X, y)
    model.publication_.save(tmp_path / "seeded.json")
    pd.DataFrame(X, columns=["a", "b"]).to_parquet(tmp_path / "x.parquet")
    result = run("predict", tmp_path / "seeded.json", tmp_path / "x.parquet")
    assert result.exit_code == 0, result.output
    assert "made with seeded noise for a test: its promise is void" in " ".join(result.stderr.split())
    assert "promise" not in run("predict", published / "p.json", published / "held.csv").stderr


@pytest.mark.parametrize("name", ["held.csv", "there.csv", "new.txt"])
def test_a_refused_output_says_nothing_of_how_the_records_are_written(published, name):
    (published / "there.csv").write_text("x\n")
    told = run("predict", published / "p.json", published / "held.csv", "-o", published / name)
    assert refused(told, {"held.csv": "is an input", "there.csv": "exists", "new.txt": "must be .csv"}[name])
    assert "semicolons" not in told.stderr


def test_a_domain_file_says_how_the_records_are_written(published, tmp_path):
    pd.read_csv(published / "held.csv").to_csv(tmp_path / "tabs.csv", sep="\t", index=False)
    wanted = run("predict", published / "p.json", published / "held.csv", "--json").stdout
    domain = tmp_path / "domain.toml"
    domain.write_text(f'[table]\ndelimiter = "\\t"\n{DOMAIN}')
    told = run("predict", published / "p.json", tmp_path / "tabs.csv", "--domain", domain, "--json")
    assert told.stdout == wanted
    assert refused(run("predict", published / "p.json", tmp_path / "tabs.csv"), 'delimiter = "\\t"')
