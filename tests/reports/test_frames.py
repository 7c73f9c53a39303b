"""Bounds as a data frame, in the library that the records came in."""

import builtins
import re
from dataclasses import FrozenInstanceError, replace

import array_api_strict
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from publications import X, Y, published

from expost._common.namespaces import on_host
from expost.exceptions import ParameterError
from expost.reports.base import Figures

NAMES = ["a", "b"]
COLUMNS = dict(zip(NAMES, X.T, strict=True))
FRAMES = {
    "pandas": (pd.DataFrame(COLUMNS), pd.DataFrame),
    "polars": (pl.DataFrame(COLUMNS), pl.DataFrame),
    "pyarrow": (pa.table(COLUMNS), pa.Table),
    "array": (X, pd.DataFrame),
    "list": (X.tolist(), pd.DataFrame),
}


@pytest.mark.parametrize("name", FRAMES)
def test_the_frame_is_of_the_records_library_with_the_same_figures(name):
    records, kind = FRAMES[name]
    bounds = published("leverage").bounds(records, Y)
    frame = bounds.to_frame()
    assert type(frame) is kind
    assert list(getattr(frame, "column_names", frame.columns)) == ["lower", "upper", "report_cost", "total"]
    for column in ("lower", "upper", "report_cost", "total"):
        np.testing.assert_array_equal(np.asarray(frame[column]), getattr(bounds, column))
    assert type(bounds.to_frame("polars")) is pl.DataFrame


def test_rows_keep_the_labels_of_a_pandas_frame():
    labels = [f"person {i}" for i in range(len(X))]
    bounds = published("leverage").bounds(pd.DataFrame(COLUMNS, index=labels), Y)
    assert bounds.to_frame().index.tolist() == labels
    assert type(bounds.to_frame("pyarrow")) is pa.Table


def test_what_is_printed_of_bounds_names_nobody():
    """Neither the ids of people nor the labels of a frame's rows: who writes a log sees figures."""
    bounds = published().bounds(pd.DataFrame(COLUMNS, index=[f"Ada {i}" for i in range(len(X))]), Y)
    assert "Ada" in str(bounds.to_frame())
    assert "Ada" not in repr(bounds)
    people = replace(bounds, people=[f"Ada {i}" for i in range(len(X))])
    assert people.to_frame()["person"].tolist() == people.people
    assert repr(people) == repr(bounds)


def test_bounds_stay_as_they_are_and_are_themselves_alone():
    """Two of them are not compared number by number, so that they can be kept in a set."""
    bounds = published().bounds(X, Y)
    assert len({bounds, bounds, replace(bounds)}) == 2
    with pytest.raises(FrozenInstanceError):
        bounds.confidence = 0.99


@pytest.mark.parametrize("count", [1, 10, 12, 60])
def test_a_notebook_shows_ten_records_and_how_many_more_there_are(count):
    bounds = published("leverage").bounds(X[:count], Y[:count])
    html = bounds._repr_html_()
    for record in range(count):
        figures = "".join(f'<td class="figure">{figure[record]:.4f}</td>' for figure in bounds.figures)
        row = re.search(rf"<th[^>]*>{record + 1}</th>\s*{re.escape(figures)}", html)
        assert (row is not None) == (record < 10)
    more, said = f"{count - 10:,} more records: to_frame() has them all.", bounds.scope.sentence(0.95)
    assert (more in html) == (count > 10)
    assert said in html
    assert count <= 10 or html.index(more) < html.index(said)


def test_figures_lie_where_the_records_do():
    bounds, elsewhere = published().bounds(X, Y), array_api_strict.asarray(X)
    assert bounds.placed(X) is bounds
    for figure, there in zip(bounds.figures, bounds.placed(elsewhere).figures, strict=True):
        assert type(there) is type(elsewhere)
        np.testing.assert_array_equal(on_host(there), figure)


def test_no_records_have_four_empty_figures():
    assert [len(figure) for figure in Figures.joined([])] == [0, 0, 0, 0]


def test_a_library_that_is_unknown_or_missing_is_refused_in_one_sentence(monkeypatch):
    bounds = published().bounds(X, Y)
    with pytest.raises(ParameterError, match="`library` must be one of 'pandas', 'polars'"):
        bounds.to_frame("excel")

    def without(name, *others, **more):
        if name == "modin" or name.startswith("modin."):
            raise ModuleNotFoundError(name)
        return real(name, *others, **more)

    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ParameterError, match="`library` must be installed; got library='modin'"):
        bounds.to_frame("modin")
