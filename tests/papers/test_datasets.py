"""The experiments' data sets: their content, what is refused, and the error messages."""

import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from at_hand import need
from grids import grid
from ward import run

from expost import Category, Number, YesNo
from expost.exceptions import ParameterError
from papers.datasets import DataUnavailable, adult, available, credit, kidney, wine
from papers.datasets.files import SOURCES, _places

ROOT = Path(__file__).parents[2]
LOADERS = {
    "credit": credit,
    "kidney": kidney,
    "wine, red": lambda: wine("red"),
    "wine, white": lambda: wine("white"),
    "adult, train": lambda: adult("train"),
    "adult, test": lambda: adult("test"),
}
SHAPES = {
    "credit": (30_000, 21),
    "kidney": (400, 29),
    "wine, red": (1_599, 11),
    "wine, white": (4_898, 11),
    "adult, train": (32_561, 65),
    "adult, test": (16_281, 65),
}
LABELS = {
    "credit": {"0": 23_364, "1": 6_636},
    "kidney": {"ckd": 250, "notckd": 150},
    "wine, red": {3: 10, 4: 53, 5: 681, 6: 638, 7: 199, 8: 18},
    "wine, white": {3: 20, 4: 163, 5: 1_457, 6: 2_198, 7: 880, 8: 175, 9: 5},
    "adult, train": {"<=50K": 24_720, ">50K": 7_841},
    "adult, test": {"<=50K": 12_435, ">50K": 3_846},
}
FEATURES = {
    "credit": """LIMIT_BAL, EDUCATION, AGE, PAY_0, PAY_2, PAY_3, PAY_4, PAY_5, PAY_6, BILL_AMT1, BILL_AMT2,
        BILL_AMT3, BILL_AMT4, BILL_AMT5, BILL_AMT6, PAY_AMT1, PAY_AMT2, PAY_AMT3, PAY_AMT4, PAY_AMT5,
        PAY_AMT6""",
    "kidney": """age, bp, sg, al, su, rbc, pc, pcc, ba, bgr, bu, sc, sod, pot, hemo, pcv, wbcc, rbcc, htn, dm,
        cad, appet, pe, ane""",
    "wine": """fixed acidity, volatile acidity, citric acid, residual sugar, chlorides, free sulfur dioxide,
        total sulfur dioxide, density, pH, sulphates, alcohol""",
    "adult": """age, education-num, capital-gain, capital-loss, hours-per-week, workclass, education,
        marital-status, occupation, relationship, race, sex""",
}
FEATURES = {name: [text.strip() for text in texts.split(",")] for name, texts in FEATURES.items()}


@cache
def load(key):
    """A data set, read once; its test is skipped, with a reason, if the files are missing."""
    name = key.partition(",")[0]
    need(name)
    return LOADERS[key]()


def published(key):
    """The bytes of a file that is present."""
    load(key)
    paths = [place / SOURCES[key].file for place in _places()]
    return next(path.read_bytes() for path in paths if path.is_file())


@pytest.mark.long
@pytest.mark.parametrize("key", LOADERS)
def test_shape_labels_and_the_unit_ball(key):
    table = load(key)
    assert table.name == key.partition(", t")[0]
    assert Counter(table.outcome.tolist()) == LABELS[key]
    for intercept in (False, True):
        rows = table.rows(intercept=intercept)
        assert rows.shape == (len(table), SHAPES[key][1] + intercept)
        assert len(table) == SHAPES[key][0]
        assert np.all(np.linalg.norm(rows, axis=1) <= 1.0 + 1e-12)
    assert np.all(rows[:, -1] == 1.0 / np.sqrt(len(table.columns) + 1.0))


@pytest.mark.long
@pytest.mark.parametrize(("key", "second"), [("credit", "1"), ("kidney", "ckd"), ("adult, test", ">50K")])
def test_the_second_class_counts_as_one(key, second):
    assert load(key).labels().sum() == LABELS[key][second]
    assert set(load(key).labels()) == {0.0, 1.0}


def test_a_grade_lies_between_minus_one_and_one():
    labels = load("wine, red").labels()
    assert labels == pytest.approx(load("wine, red").outcome / 5.0 - 1.0)


@pytest.mark.parametrize("key", ["credit", "kidney", "wine, red", "adult, test"])
def test_the_domain_lists_what_was_meant_and_nothing_else(key):
    table = load(key)
    assert [feature.name for feature in table.domain.features] == FEATURES[key.partition(",")[0]]
    assert list(table.columns) == FEATURES[key.partition(",")[0]]


def test_missing_cells_of_kidney_count_as_declared():
    table = load("kidney")
    rows, start, gone_at_all = table.domain.encode(table.columns), 0, np.zeros(400, dtype=int)
    for feature in table.domain.features:
        values = table.columns[feature.name]
        gone = np.isnan(values) if isinstance(feature, Number) else values == ""
        block = rows[gone, start : start + len(feature.column_names)]
        if isinstance(feature, Number):
            assert feature.low <= feature.missing <= feature.high
            share = (feature.missing - feature.low) / (feature.high - feature.low)
            assert block == pytest.approx(2.0 * share - 1.0)
        elif isinstance(feature, YesNo):
            assert np.all(block == 0.0)
        else:
            assert np.all(block == (np.array(feature.categories) == feature.missing))
        start += len(feature.column_names)
        gone_at_all += gone
    assert gone_at_all.sum() == 1012  # as documented
    assert np.sum(gone_at_all == 0) == 158


def test_unknown_work_in_adult_is_a_separate_category():
    table = load("adult, test")
    rows = table.domain.encode(table.columns)
    for name in ("workclass", "occupation"):
        unknown = rows[:, table.domain.column_names.index(f"{name}=unknown")]
        assert np.array_equal(unknown == 1.0, table.columns[name] == "")
        assert unknown.any()
    others = [feature for feature in table.domain.features if isinstance(feature, Category)]
    assert sum(feature.missing is not None for feature in others) == 2


def test_codes_without_a_delay_in_credit_are_encoded_alike():
    table = load("credit")
    column = table.rows()[:, FEATURES["credit"].index("PAY_0")]
    assert len(np.unique(column[table.columns["PAY_0"] <= 0])) == 1


def test_a_split_shuffles_and_loses_nobody():
    table = load("wine, red")
    fit, judge = table.split(0.8, seed=3)
    assert (len(fit), len(judge)) == (1279, 320)
    together = np.vstack([fit.rows(), judge.rows()])
    assert not np.array_equal(together, table.rows())
    assert np.array_equal(np.unique(together, axis=0), np.unique(table.rows(), axis=0))
    assert np.array_equal(fit.rows(), table.split(0.8, seed=3)[0].rows())
    assert not np.array_equal(fit.rows(), table.split(0.8, seed=4)[0].rows())
    with pytest.raises(ParameterError, match="share"):
        table.split(1.0, seed=3)


DAMAGES = {
    "a cell": lambda raw: raw.replace(b"7", b"8642", 1),
    "half": lambda raw: raw[: len(raw) // 2],
    "a line": lambda raw: raw[: raw.rfind(b"\n", 0, len(raw) - 40)],
    "all": lambda _: b"",
    "no text": lambda _: b"\xff\x00\n",
}


@pytest.mark.parametrize(("key", "damage"), grid(LOADERS, DAMAGES, together=1))
def test_a_tampered_copy_is_refused_without_quoting_its_cells(key, damage, tmp_path, monkeypatch):
    raw = published(key)
    monkeypatch.setenv("EXPOST_DATA", str(tmp_path))
    (tmp_path / SOURCES[key].file).write_bytes(DAMAGES[damage](raw))
    with pytest.raises(DataUnavailable, match=r"SHA-256 is not the expected one\. Remove it") as caught:
        LOADERS[key]()
    assert str(tmp_path / SOURCES[key].file) in str(caught.value)
    assert "8642" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("loader", [wine, adult])
def test_a_part_that_does_not_exist_is_refused(loader):
    with pytest.raises(ParameterError, match="`part` must be one of"):
        loader("blue")
    with pytest.raises(ParameterError, match="`name` must be one of"):
        available("kidney", "blue")


@pytest.mark.long
def test_the_command_line_fits_what_the_command_prints(tmp_path):
    table = load("kidney")
    path, domain = tmp_path / "kidney.csv", ROOT / "examples" / "kidney" / "domain.toml"
    with open(path, "w", encoding="utf-8") as file:
        subprocess.run([sys.executable, "-m", "papers.datasets", "kidney"], cwd=ROOT, stdout=file, check=True)
    columns = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert np.array_equal(table.domain.encode(columns), table.domain.encode(table.columns))
    assert np.array_equal(columns[table.domain.label.name], table.outcome)
    result = run("fit", domain, path, "-o", tmp_path / "out.json")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out.json").is_file()
