"""What experts ran into in the third round, item by item; each test is one line of the list.

12 labels 0 and 1 with a domain   13 regression in real units   14 fit and score take the same inputs
15 plots in notebooks, names of features, words for type checkers, half lines, a large delta
"""

import csv
import json
import subprocess
import sys
import types
import warnings
from pathlib import Path
from typing import get_args

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from grids import grid
from pyarrow import dataset, parquet
from sklearn.linear_model import LinearRegression as Peer
from sklearn.model_selection import GridSearchCV, cross_val_score
from ward import refused, run

import expost
from expost._common import validation
from expost._common.strict_json import digest
from expost.data.frame_tables import LIBRARIES
from expost.data.values import class_places
from expost.exceptions import (
    DomainError,
    LargeDeltaWarning,
    ParameterError,
    PublicationError,
    UndeclaredWarning,
)
from expost.fitting import mechanism
from expost.losses.registry import LOSSES
from expost.page import render
from expost.page.fields import Form
from expost.page.introduction import LANGUAGES
from expost.privacy.calibration import CALIBRATIONS
from expost.privacy.scales import REPORT_KINDS

ROOT = Path(__file__).parents[2]
rng = np.random.default_rng(27)
X = rng.uniform(-1.0, 1.0, 400)
PLACES = (X + 0.3 * rng.normal(size=400) > 0.0).astype(int)
KINDS = {
    "texts": ("no", "yes"),
    "codes": ("0", "1"),
    "integers": (0, 1),
    "descending": (7, -3),
    "booleans": (False, True),
}


def domain_of(classes, **texts):
    label = expost.ClassLabel(name="y", classes=classes, **texts)
    return expost.Domain(features=(expost.Number(name="x", low=-1.0, high=1.0),), label=label)


def frame_of(classes, places=PLACES):
    return pd.DataFrame({"x": X, "y": np.array(classes)[places]})


def model_of(classes, **changes):
    return expost.LogisticRegression(**{"domain": domain_of(classes), "random_state": 0, **changes})


@pytest.fixture
def no_noise(monkeypatch):
    """Fail where noise is drawn."""
    monkeypatch.setattr(mechanism, "minimize", lambda *_, **__: pytest.fail("noise was drawn"))


def inputs_of(frame, folder):
    """One table in every form that has a label inside."""
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    return {
        "pandas": frame,
        "polars": pl.DataFrame(dict(frame)),
        "arrow": pa.table(frame),
        "mapping": {name: frame[name].to_numpy() for name in frame},
        "csv": folder / "t.csv",
        "parquet": str(folder / "t.parquet"),
        "scan": expost.scan(folder / "t.parquet"),
        "dask": dd.from_pandas(frame, npartitions=1),
    }


# Labels 0 and 1 with a domain


@pytest.mark.parametrize("kind", KINDS)
def test_12a_classes_of_every_kind_are_given_back_whatever_the_table(kind, tmp_path):
    classes = KINDS[kind]
    frame = frame_of(classes)
    truth = model_of(("no", "yes")).fit(frame_of(("no", "yes")))
    for name, table in inputs_of(frame, tmp_path).items():
        model = model_of(classes).fit(table)
        np.testing.assert_allclose(model.coef_, truth.coef_, rtol=1e-12, err_msg=name)
        assert model.classes_.dtype == np.array(classes).dtype
        assert model.classes_.tolist() == list(classes)
        predicted = model.predict(frame)
        assert predicted.dtype == model.classes_.dtype
        wanted = np.mean(predicted == frame["y"].to_numpy())
        assert wanted > 0.8
        assert model.score(table) == pytest.approx(wanted, rel=1e-12), name
        assert model.publication_.predict(frame).tolist() == predicted.tolist()


@pytest.mark.parametrize(
    ("kind", "scoring"), grid(KINDS, [None, "accuracy", "roc_auc", "neg_log_loss"], together=1)
)
def test_12b_searches_and_cross_validation_have_no_nan(kind, scoring):
    frame = frame_of(KINDS[kind])
    plans = [expost.calibrate(sigma=1.0, l2=l2, fit_intercept=True) for l2 in (0.5, 1.0)]
    model = model_of(KINDS[kind], plan=plans[1])
    if scoring in ("neg_log_loss", "roc_auc") and kind == "descending":
        pytest.skip("scikit-learn takes the larger label to be the second, whatever was declared")
    search = GridSearchCV(model, {"plan": plans}, cv=2, scoring=scoring, error_score="raise")
    found = search.fit(frame, frame["y"]).cv_results_["mean_test_score"]
    assert np.all(found > (-0.7 if scoring == "neg_log_loss" else 0.8))
    assert np.all(np.isfinite(cross_val_score(model, frame, frame["y"], cv=3, scoring=scoring)))


@pytest.mark.parametrize("kind", KINDS)
def test_12c_domain_files_have_them(kind):
    domain = domain_of(KINDS[kind], titles=("first", "second"), example=KINDS[kind][1])
    again = expost.Domain.from_toml(domain.to_toml())
    assert again == domain
    assert [type(label) for label in again.classes] == [type(label) for label in KINDS[kind]]
    written = {"integers": "classes = [0, 1]", "booleans": "classes = [false, true]"}
    assert written.get(kind, "classes = [") in domain.to_toml()


@pytest.mark.parametrize(
    "classes", [(0, "yes"), (True, 0), (0.0, 1.0), (0, 0.5), (None, 1), (0, 2**53), ("", "yes")]
)
def test_12d_classes_of_several_kinds_are_refused(classes):
    with pytest.raises(ValueError, match=r"all texts, all whole numbers|between -2\^53|texts of 1 to 200"):
        domain_of(classes)
    if len({type(label) for label in classes}) > 1 and None not in classes and 0.5 not in classes:
        with pytest.raises(ParameterError, match="labels of one kind"):
            expost.LogisticRegression(norm=1.0, classes=classes).fit(X[:, None], PLACES)


def test_12e_a_domain_file_says_it_in_a_sentence():
    text = domain_of((0, 1)).to_toml().replace("[0, 1]", '[0, "yes"]')
    with pytest.raises(DomainError, match="`classes` of the label must be all texts, all whole numbers, or"):
        expost.Domain.from_toml(text)
    with pytest.raises(ValueError, match="example that is one of its values"):
        domain_of((0, 1), example=True)


@pytest.mark.parametrize(
    ("declared", "held"), [("codes", "integers"), ("integers", "codes"), ("booleans", "texts")]
)
def test_12f_what_does_not_match_is_refused_before_noise(declared, held, tmp_path, no_noise, remembered):
    table = inputs_of(frame_of(KINDS[held]), tmp_path)
    fitted_on_csv = table.pop("csv")
    for records in table.values():
        with pytest.raises(DomainError, match=r"a (number is no text|text is no number)"):
            model_of(KINDS[declared]).fit(records)
    if declared != "booleans":  # CSV has no types
        with pytest.raises(pytest.fail.Exception, match="noise was drawn"):
            model_of(KINDS[declared]).fit(fitted_on_csv)


def test_12g_what_is_refused_at_fit_is_refused_by_score():
    frame = frame_of((0, 1))
    model = model_of((0, 1)).fit(frame)
    with pytest.raises(DomainError, match="a text is no number"):
        model.score(frame.assign(y=frame["y"].astype(str)))
    with pytest.raises(DomainError, match=r"outside the declared classes \{0, 1\}"):
        model.score(frame.assign(y=2))


def test_12h_which_cells_are_which_class():
    """The table of docs/domain.md."""
    cells = [
        0,
        0.0,
        np.int8(0),
        False,
        1,
        True,
        1.5,
        "0",
        "0.0",
        " +0 ",
        "1e0",
        "False",
        "TRUE",
        "yes",
        "",
        None,
    ]
    number = [0, 0, 0, 0, 1, 1] + [-1] * 10
    spelled = [0, 0, 0, 0, 1, 1, -1, 0, 0, 0, 1, 0, 1, -1, -1, -1]
    for classes in ((0, 1), (False, True)):
        assert class_places(cells, classes, typed=True).tolist() == number
        assert class_places(cells, classes, typed=False).tolist() == spelled
    for typed in (False, True):
        assert class_places(cells, ("0", "yes"), typed=typed).tolist() == [-1] * 7 + [0] + [-1] * 5 + [
            1,
            -1,
            -1,
        ]


@pytest.mark.parametrize("kind", KINDS)
def test_12i_files_state_them_and_are_verified(kind):
    publication = model_of(KINDS[kind]).fit(frame_of(KINDS[kind])).publication_
    assert expost.Publication.from_json(publication.to_json()) == publication
    fields = json.loads(publication.to_json())
    assert fields["classes"] == fields["domain"]["label"]["classes"] == list(KINDS[kind])
    others = {"integers": [False, True], "booleans": [0, 1], "codes": [0, 1]}
    if kind in others:
        del fields["sha256"]
        fields["domain"]["label"]["classes"] = others[kind]
        with pytest.raises(PublicationError, match="`classes` must be what `domain` declares"):
            expost.Publication.from_json(json.dumps(fields | {"sha256": digest(fields)}))


@pytest.mark.parametrize(("kind", "texts"), [("integers", ["0", "1"]), ("booleans", ["false", "true"])])
def test_12j_the_page_asks_for_them(kind, texts):
    domain = domain_of(KINDS[kind], example=KINDS[kind][1])
    publication = expost.LogisticRegression(domain=domain).fit(frame_of(KINDS[kind])).publication_
    asked = Form.of([publication]).fields[-1]
    assert (asked["classes"], asked["example"]) == (texts, texts[1])
    render([publication])


@pytest.mark.long
def test_12k_weights_of_classes_and_more_than_two_of_them():
    places = np.digitize(X, [-0.3, 0.3])
    frame = frame_of((5, 3, 4), places)
    weights = {3: 1.0, 4: 0.5, 5: 1.0}
    model = model_of((5, 3, 4), epsilon=50.0, class_weight=weights).fit(frame)
    assert model.classes_.tolist() == [3, 4, 5]
    assert model.publication_.weights.class_weight == (1.0, 1.0, 0.5)
    assert model.score(frame) == np.mean(model.predict(frame) == frame["y"]) > 0.5
    with pytest.raises(ParameterError, match="it lacks 5, 3, 4"):
        model_of((5, 3, 4), class_weight={"3": 1.0, "4": 1.0, "5": 1.0}).fit(frame)


def test_12l_the_command_line_has_them(tmp_path):
    (tmp_path / "d.toml").write_text(domain_of((0, 1)).to_toml())
    table = inputs_of(frame_of((0, 1)), tmp_path)
    for name in ("csv", "parquet"):
        output = tmp_path / f"{name}.json"
        assert run("check", tmp_path / "d.toml", table[name]).exit_code == 0
        assert run("fit", tmp_path / "d.toml", table[name], "-o", output).exit_code == 0
        assert run("bounds", output, table[name]).exit_code == 0
        found = json.loads(run("predict", output, table[name], "--json").output)["predictions"]
        assert set(found["prediction"]) == {"0", "1"}
        assert "probability of 1" in found


def test_12m_check_names_a_column_of_another_kind(tmp_path):
    (tmp_path / "d.toml").write_text(domain_of(("0", "1")).to_toml())
    table = inputs_of(frame_of((0, 1)), tmp_path)
    assert run("check", tmp_path / "d.toml", table["csv"]).exit_code == 0
    found = run("check", tmp_path / "d.toml", table["parquet"])
    assert found.exit_code == 1
    assert "another kind" in found.output
    assert refused(run("fit", tmp_path / "d.toml", table["parquet"]), "a number is no text")


# Regression in real units

VISITS = 250.0 + 200.0 * X
REAL = {"norm": 1.0, "outcome": (0.0, 500.0)}


def test_13a_a_regression_is_useful_in_real_units_or_warns():
    table = X[:, None]
    with pytest.warns(UndeclaredWarning, match=r"Declare outcome=\(low, high\)") as caught:
        useless = expost.LinearRegression(norm=1.0, random_state=0).fit(table, VISITS)
    assert [one.filename for one in caught if one.category is UndeclaredWarning] == [__file__]
    assert useless.score(table, VISITS) < 0.0
    model = expost.LinearRegression(**REAL, random_state=0).fit(table, VISITS)
    assert model.score(table, VISITS) > 0.95
    np.testing.assert_allclose(model.predict(table), VISITS, atol=60.0)


def test_13b_it_is_the_regression_of_a_domain():
    label = expost.NumberLabel(name="y", low=0.0, high=500.0)
    domain = expost.Domain(features=(expost.Number(name="x", low=-1.0, high=1.0),), label=label)
    wild = np.where(PLACES == 0, VISITS, 1e6)  # clipped to the bound
    declared = expost.LinearRegression(domain=domain, random_state=0).fit({"x": X}, wild)
    plain = expost.LinearRegression(**REAL, random_state=0).fit(X[:, None], wild)
    np.testing.assert_allclose(plain.coef_, declared.coef_, rtol=1e-9)
    np.testing.assert_allclose(plain.predict(X[:, None]), declared.predict({"x": X}), rtol=1e-9)
    np.testing.assert_allclose(plain.score(X[:, None], wild), declared.score({"x": X}, wild), rtol=1e-9)
    mine = plain.publication_.bounds(X[:5, None], wild[:5])
    theirs = declared.publication_.bounds({"x": X[:5]}, wild[:5])
    np.testing.assert_allclose(mine.total, theirs.total, rtol=1e-9)


def test_13c_the_publication_states_it_and_the_page_asks_in_real_units():
    publication = expost.LinearRegression(**REAL).fit(X[:, None], VISITS).publication_
    again = expost.Publication.from_json(publication.to_json())
    assert again == publication
    assert again.outcome.limits == (0.0, 500.0)
    np.testing.assert_allclose(again.predict(X[:, None]), VISITS, atol=80.0)
    asked = Form.of([again]).fields[-1]
    assert (asked["low"], asked["high"], asked["unnamed"]) == (0.0, 500.0, 0)
    render([again])


def test_13d_files_without_it_keep_every_byte():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndeclaredWarning)
        publication = expost.LinearRegression(norm=1.0, random_state=0).fit(X[:, None], X).publication_
    assert "outcome" not in json.loads(publication.to_json())


@pytest.mark.parametrize(
    "outcome",
    [(1.0, 1.0), (2, 1), (0.0, np.inf), (np.nan, 1.0), (0.0,), 3.0, ("low", "high"), (-1e308, 1e308)],
)
def test_13e_bounds_are_checked(outcome, no_noise):
    with pytest.raises(ParameterError, match="`outcome` must be two finite numbers"):
        expost.LinearRegression(norm=1.0, outcome=outcome).fit(X[:, None], VISITS)


def test_13f_a_domain_and_bounds_are_one_too_many():
    label = expost.NumberLabel(name="y", low=0.0, high=500.0)
    domain = expost.Domain(features=(expost.Number(name="x", low=-1.0, high=1.0),), label=label)
    with pytest.raises(ParameterError, match="`outcome` must be None with a domain"):
        expost.LinearRegression(domain=domain, outcome=(0.0, 1.0)).fit({"x": X, "y": VISITS})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"low": 500.0}, "low < high"),
        ({"high": None}, "`outcome.high` must be"),
        ({"kind": "classes"}, "`outcome.kind` must be"),
    ],
)
def test_13g_forged_bounds_are_refused(changes, sentence):
    fields = json.loads(expost.LinearRegression(**REAL).fit(X[:, None], VISITS).publication_.to_json())
    del fields["sha256"]
    fields["outcome"] |= changes
    with pytest.raises(PublicationError, match=sentence):
        expost.Publication.from_json(json.dumps(fields | {"sha256": digest(fields)}))


def test_13h_bounds_of_an_outcome_are_for_a_number():
    fields = json.loads(model_of((0, 1)).fit(frame_of((0, 1))).publication_.to_json())
    del fields["sha256"]
    fields["outcome"] = {"name": "outcome", "kind": "number", "low": 0.0, "high": 1.0}
    with pytest.raises(PublicationError, match="`outcome` must be absent with a domain"):
        expost.Publication.from_json(json.dumps(fields | {"sha256": digest(fields)}))
    fields["domain"] = None
    with pytest.raises(PublicationError, match="`outcome` must not declare a numeric outcome for the loss"):
        expost.Publication.from_json(json.dumps(fields | {"sha256": digest(fields)}))


# Fit and score take the same inputs


def test_14a_a_regression_scores_what_it_fits(tmp_path):
    label = expost.NumberLabel(name="y", low=0.0, high=400.0)
    domain = expost.Domain(features=(expost.Number(name="x", low=-1.0, high=1.0),), label=label)
    frame = pd.DataFrame({"x": X, "y": VISITS})
    model = expost.LinearRegression(domain=domain, random_state=0).fit(frame)
    wanted = model.score(frame, frame["y"])
    assert wanted > 0.9
    for name, table in inputs_of(frame, tmp_path).items():
        assert model.score(table) == pytest.approx(wanted, rel=1e-9), name


def test_14b_files_without_a_domain_are_scored_by_the_name_of_a_column(tmp_path):
    pd.DataFrame({"x": X, "y": VISITS}).to_parquet(tmp_path / "t.parquet")
    model = expost.LinearRegression(**REAL, random_state=0).fit(tmp_path / "t.parquet", "y")
    frame = pd.DataFrame({"x": X})
    assert model.score(tmp_path / "t.parquet", "y") == pytest.approx(model.score(frame, VISITS), rel=1e-9)


def test_14c_scores_are_scikit_learns():
    weights = rng.uniform(size=400)
    model = expost.LinearRegression(**REAL, random_state=0).fit(X[:, None], VISITS)
    peer = Peer.score(model, X[:, None], VISITS, weights)
    assert model.score(X[:, None], VISITS, weights) == pytest.approx(peer, rel=1e-9)
    classifier = model_of((0, 1)).fit(frame_of((0, 1)))
    hits = classifier.predict({"x": X}) == PLACES
    assert classifier.score({"x": X}, PLACES, 7.0 * weights) == pytest.approx(
        np.average(hits, weights=weights)
    )


@pytest.fixture
def unreadable(tmp_path):
    """What has rows, and is no table; with a part of the sentence that names the way."""
    frame = frame_of((0, 1))
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    with (
        open(tmp_path / "t.csv", encoding="utf-8") as file,
        open(tmp_path / "t.csv", "rb") as raw,
        pd.read_csv(tmp_path / "t.csv", chunksize=10) as chunks,
    ):
        yield [
            (pl.DataFrame(dict(frame)).lazy(), r"got a LazyFrame. Call collect\(\) first"),
            (chunks, r"got a TextFileReader. Call read\(\) first"),
            (pa.table(frame).to_reader(), r"got a RecordBatchReader. Call read_all\(\) first"),
            (pa.RecordBatch.from_pandas(frame), "got a RecordBatch. Make a table of it first"),
            (parquet.ParquetFile(tmp_path / "t.parquet"), r"got a ParquetFile. Call read\(\) first"),
            (dataset.dataset(tmp_path / "t.parquet"), r"got a FileSystemDataset. Call to_table\(\) first"),
            (csv.DictReader(file), "got a DictReader. Read all of it into a frame first"),
            ((row for row in frame.to_numpy()), "got a generator. Read all of it into a frame first"),
            (raw, "got a BufferedReader. Give its path"),
            (
                frame.to_dict("records"),
                r"got a list of records. Make a frame of it first: pandas.DataFrame\(X\)",
            ),
            (frame.to_records(), r"got a structured array. Make a frame of it first: pandas.DataFrame\(X\)"),
        ]


def test_14d_what_has_rows_and_is_no_table_gets_the_way(unreadable):
    model = model_of((0, 1)).fit(frame_of((0, 1)))
    plain = expost.LogisticRegression(norm=1.0, classes=[0, 1])
    convex = expost.ConvexModel(loss=expost.SmoothedNorm(1))
    asked = (
        model.fit,
        model.score,
        model.predict,
        model.ex_post_losses,
        model.publication_.bounds,
        plain.fit,
    )
    for table, sentence in unreadable:
        for call in (*asked, convex.fit):
            with pytest.raises(DomainError, match=sentence):
                call(table)


# Notebooks, names, words, half lines, a large delta


def test_15a_a_plot_shows_itself_and_pyplot_holds_nothing():
    from matplotlib import pyplot

    plan = expost.calibrate(epsilon=8.0, report="leverage", split=0.98, fit_intercept=True)
    model = expost.LogisticRegression(classes=[0, 1], plan=plan)
    model.fit(np.column_stack([X, np.roll(X, 7)]), PLACES)
    figure = model.publication_.summary().plot()
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert pyplot.get_fignums() == []


@pytest.mark.slow
def test_15b_a_real_notebook_shows_a_plot_without_magic(monkeypatch):
    import nbclient
    import nbformat

    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    source = """
import numpy as np, expost
X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(1000, 1))
plan = expost.calibrate(epsilon=8.0, report="leverage", split=0.98, fit_intercept=True)
model = expost.LogisticRegression(classes=[0, 1], plan=plan).fit(X, (X[:, 0] > 0).astype(int))
model.publication_.summary().plot()"""
    refusal = (
        "expost.LogisticRegression(norm=1.0, classes=[5, 6], verbose=True).fit(X, (X[:, 0] > 0).astype(int))"
    )
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(source), nbformat.v4.new_code_cell(refusal)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the kernel's own transport
        nbclient.NotebookClient(notebook, timeout=120, allow_errors=True).execute()
    shown, stopped = notebook.cells
    assert [sorted(output.data) for output in shown.outputs] == [["image/png", "text/plain"]]
    assert [output.output_type for output in stopped.outputs] == ["display_data", "error"]
    assert stopped.outputs[0].data["text/plain"] == "Stopped."


def test_15c_names_of_features_exist_with_a_domain(tmp_path):
    ward = expost.Category(name="ward", categories=("north", "south"))
    features = (expost.Number(name="x", low=-1.0, high=1.0), ward)
    domain = expost.Domain(features=features, label=expost.ClassLabel(name="y", classes=(0, 1)))
    frame = frame_of((0, 1)).assign(ward="north")[["ward", "y", "x"]]
    for table in inputs_of(frame, tmp_path).values():
        model = expost.LogisticRegression(domain=domain).fit(table)
        assert model.feature_names_in_.dtype == object
        assert model.feature_names_in_.tolist() == ["x", "ward"]
        assert model.n_features_in_ == 2
        assert model.coef_.shape == (1, 3)
        assert model.predict(table if not isinstance(table, dict) else frame).shape == (400,)


def test_15d_the_words_are_those_that_are_known():
    for words, known in (
        (validation.ReportName, REPORT_KINDS),
        (validation.CalibrationName, CALIBRATIONS),
        (validation.LossName, LOSSES),
        (validation.LibraryName, LIBRARIES),
        (validation.LanguageName, LANGUAGES),
    ):
        assert set(get_args(words)) == set(known)


@pytest.mark.slow
def test_15e_mypy_refuses_other_words(tmp_path):
    wrong = [
        'expost.LogisticRegression(report="leverag")',
        'expost.SmoothedHingeClassifier(calibration="thight")',
        'expost.LinearRegression(loss="huber")',
        'expost.GeneralizedLinearModel(loss="logit")',
        'expost.calibrate(report="all")',
        'publication.bounds(X, simultaneous="every")',
        'publication.bounds(X).to_frame("panda")',
        'publication.to_html("p.html", language="it")',
    ]
    right = [
        'expost.LogisticRegression(report="leverage", calibration="kifer2012")',
        'publication.bounds(X, simultaneous="all").to_frame("polars")',
    ]
    head = ["from typing import Any", "import expost", "X: Any = None", "publication: expost.Publication"]
    (tmp_path / "words.py").write_text("\n".join([*head, *right, *wrong]) + "\n")
    asked = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    found = subprocess.run(
        [*asked, str(tmp_path / "words.py")], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    lines = {int(line.split(":")[1]) for line in found.splitlines() if "words.py" in line and "error" in line}
    first = len(head) + len(right) + 1
    assert lines == set(range(first, first + len(wrong))), found


class Notebook:
    """IPython's display, whose output can be replaced."""

    def __init__(self, monkeypatch):
        self.shown = []
        shell = types.SimpleNamespace(kernel=object())
        package = types.SimpleNamespace(get_ipython=lambda: shell)
        monkeypatch.setitem(sys.modules, "IPython", package)
        monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=self.display))

    def display(self, bundle, **_):
        self.shown.append(bundle["text/plain"])
        return types.SimpleNamespace(update=self.display)


def test_15f_a_refused_fit_names_no_step_for_ever(monkeypatch):
    notebook = Notebook(monkeypatch)
    with pytest.raises(DomainError):
        expost.LogisticRegression(norm=1.0, classes=[5, 6], verbose=True).fit(X[:, None], PLACES)
    assert notebook.shown[-1] == "Stopped."


@pytest.mark.long
def test_15g_a_large_delta_warns_at_the_users_line(tmp_path):
    convex = expost.SmoothedNorm(1)
    for call in (
        lambda delta: expost.calibrate(delta=delta),
        lambda delta: expost.calibrate_convex(convex, delta=delta),
        lambda delta: model_of((0, 1), delta=delta).fit(frame_of((0, 1))),
        lambda delta: expost.ConvexModel(loss=convex, delta=delta).fit(X[:, None]),
    ):
        with pytest.warns(LargeDeltaWarning, match=r"at most 0\.001.*got delta=0\.01") as caught:
            call(0.01)
        assert [one.filename for one in caught if one.category is LargeDeltaWarning] == [__file__]
        with warnings.catch_warnings():
            warnings.simplefilter("error", LargeDeltaWarning)
            call(1e-3)
    (tmp_path / "d.toml").write_text(domain_of((0, 1)).to_toml())
    with warnings.catch_warnings():
        warnings.simplefilter("always", LargeDeltaWarning)
        found = run("plan", tmp_path / "d.toml", "--delta", "0.01")
    assert found.exit_code == 0
    assert "expost, warning: `delta` should be at most 0.001" in found.stderr
