"""``expost summary``: the library's table, in a terminal, as JSON and as a figure."""

import json

import numpy as np
import pandas as pd
import pytest
from publications import fit, published
from ward import refused, run

import expost


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(3)
    X = rng.uniform(-0.5, 0.5, (4000, 2))
    y = (rng.uniform(size=4000) < 0.5 + 0.5 * X[:, 0]).astype(int)
    path = tmp_path_factory.mktemp("summary") / "publication.json"
    plan = expost.calibrate(report="leverage", split=0.98, epsilon=8.0, fit_intercept=True)
    fit("leverage", X, y, plan=plan).publication_.save(path)
    return path


def test_the_figures_are_those_of_the_library(file):
    expected = expost.Publication.load(file).summary(0.9)
    told = json.loads(run("summary", file, "--confidence", "0.9", "--json").stdout)
    assert told["terms"] == ["x0", "x1", "intercept"]
    for name in ("coefficients", "standard_errors", "lower", "upper", "z", "p_values"):
        np.testing.assert_allclose(told[name], getattr(expected, name), rtol=1e-12)
    shown = run("summary", file, "--confidence", "0.9", env={"COLUMNS": "120"})
    assert shown.exit_code == 0
    assert f"{expected.coefficients[0]:.3g}" in shown.stdout
    assert "INSECURE" in shown.stdout


@pytest.mark.parametrize(("kind", "opening"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_it_draws(file, tmp_path, kind, opening):
    place = tmp_path / f"forest.{kind}"
    assert run("summary", file, "--figure", place).exit_code == 0
    assert place.read_bytes().startswith(opening)
    assert refused(run("summary", file, "--figure", place), "--force")


def test_what_cannot_be_shown_is_refused(file, tmp_path):
    published("independent").save(tmp_path / "p.json")
    shown = run("summary", tmp_path / "p.json", env={"COLUMNS": "80"})
    assert shown.exit_code == 0
    assert "needs a Hessian" in shown.stdout
    assert "INSECURE" in shown.stdout
    assert refused(run("summary", tmp_path / "p.json", "--figure", tmp_path / "f.svg"), "needs a Hessian")
    assert refused(run("summary", file, "--confidence", "2"), "`confidence` must be")
    assert refused(run("summary", file, "--figure", tmp_path / "forest.bmp"), "`figure` must be")
    assert not (tmp_path / "forest.bmp").exists()


def test_a_recalibrated_model_has_a_curve_and_no_error_bars(tmp_path):
    rng = np.random.default_rng(5)
    X = rng.uniform(-0.5, 0.5, (600, 2))
    y = (rng.uniform(size=600) < 0.5 + X[:, 0]).astype(int)
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], recalibrate=True, random_state=0).fit(X, y)
    model.publication_.save(tmp_path / "publication.json")
    shown = run("summary", tmp_path / "publication.json", env={"COLUMNS": "100"})
    assert shown.exit_code == 0
    assert "signs and ratios" in " ".join(shown.stdout.split())
    assert "Calibration curve" in shown.stdout
    told = json.loads(run("summary", tmp_path / "publication.json", "--json").stdout)["calibration_curve"]
    np.testing.assert_array_equal(told["recalibrated"], model.calibration_curve_.recalibrated)
    np.testing.assert_array_equal(told["counts"], model.calibration_curve_.counts)


@pytest.mark.long
def test_a_recalibrated_number_from_the_plan_to_predictions(tmp_path):
    """`fit --recalibrate` of a number: the plan says so, `summary` has the line, and `predict` follows it."""
    (tmp_path / "domain.toml").write_text(
        '[[features]]\nname = "age"\nkind = "number"\nlow = 0\nhigh = 100\n\n'
        '[label]\nname = "days"\nkind = "number"\nlow = 0\nhigh = 30\n'
    )
    rng = np.random.default_rng(6)
    age = rng.uniform(0.0, 100.0, 3000)
    frame = pd.DataFrame({"age": age, "days": np.minimum(rng.exponential(1.0 + age / 20.0), 30.0)})
    frame.to_csv(tmp_path / "table.csv", index=False)
    planned = run("plan", tmp_path / "domain.toml", "--recalibrate")
    assert "sums of predictions and of their errors" in " ".join(planned.stdout.split())
    file = tmp_path / "p.json"
    made = run("fit", tmp_path / "domain.toml", tmp_path / "table.csv", "--recalibrate", "--yes", "-o", file)
    assert made.exit_code == 0, made.output
    shown = run("summary", file, env={"COLUMNS": "100"})
    assert "Correction of predictions" in shown.stdout
    assert "before the correction" in " ".join(shown.stdout.split())
    read = expost.Publication.load(file)
    told = json.loads(run("summary", file, "--json").stdout)["calibration_curve"]
    assert told == read.calibration_curve.fields()
    predicted = json.loads(run("predict", file, tmp_path / "table.csv", "--json").stdout)["predictions"]
    assert predicted["prediction"] == pytest.approx(read.predict(frame[["age"]]), rel=1e-12)


@pytest.mark.parametrize(
    ("label", "options", "words"),
    [
        ('kind = "number"\nlow = 0\nhigh = 30', ("--level", "0.5"), "a quantile is modelled"),
        ('kind = "count"\nhigh = 30', (), "the outcome is a count"),
        ('kind = "classes"\nclasses = ["a", "b", "c"]', (), "the outcome is 3 classes"),
        ('kind = "ordered"\nclasses = ["a", "b", "c"]', (), "the outcome is 3 ordered classes"),
        ('kind = "time"\nevent = "died"\nperiods = 3', (), "the outcome is a time"),
    ],
)
def test_recalibration_of_what_has_none_is_refused_in_words_of_the_outcome(tmp_path, label, options, words):
    feature = '[[features]]\nname = "age"\nkind = "number"\nlow = 0\nhigh = 100\n\n'
    (tmp_path / "domain.toml").write_text(f'{feature}[label]\nname = "days"\n{label}\n')
    result = run("plan", tmp_path / "domain.toml", "--recalibrate", *options)
    wanted = 'for two classes and for the mean of an outcome with kind = "number", one row a person. Here '
    assert refused(result, wanted + words)
