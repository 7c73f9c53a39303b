"""Dates are counted in days, and clipped and scaled as numbers are."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest

from expost import ClassLabel, Date, Domain
from expost.data.tables import open_table
from expost.exceptions import DomainError

LOW, HIGH = datetime.date(1900, 1, 1), datetime.date(2000, 1, 1)
BORN = Date(name="born", low=LOW, high=HIGH, missing="1950-01-01")
DAYS = [
    datetime.date(1900, 1, 1),
    datetime.date(1999, 12, 31),
    datetime.date(1899, 5, 5),
    datetime.date(2024, 2, 29),
]


def expected(days):
    """The formula of a number between two bounds."""
    share = [(min(max(day, LOW), HIGH) - LOW).days / (HIGH - LOW).days for day in days]
    return 2.0 * np.array(share) - 1.0


COLUMNS = {
    "texts": np.array([day.isoformat() for day in DAYS], dtype=object),
    "short texts": np.array([f"{day.year}-{day.month}-{day.day}" for day in DAYS], dtype=object),
    "texts with a time": np.array([f"{day} 23:59:59" for day in DAYS], dtype=object),
    "objects": np.array(DAYS, dtype=object),
    "datetimes": np.array(
        [datetime.datetime(day.year, day.month, day.day, 12) for day in DAYS], dtype=object
    ),
    "numpy": np.array(DAYS, dtype="datetime64[ns]"),
    "arrow dates": pyarrow.array(DAYS),
    "arrow timestamps": pyarrow.array(DAYS).cast(pyarrow.timestamp("ms")),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_way_to_hold_dates_has_the_same_code(kind):
    np.testing.assert_array_equal(BORN.coded(COLUMNS[kind]), expected(DAYS))


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pyarrow.table])
def test_frames_with_dates_are_encoded(library):
    domain = Domain(features=(BORN,), label=ClassLabel(name="y", classes=("a", "b")))
    table = open_table(library({"born": [*DAYS, None]}), domain)
    rows = np.column_stack(table.rows(0, 5).columns)
    np.testing.assert_array_equal(rows[:, 0], expected([*DAYS, datetime.date(1950, 1, 1)]))


@pytest.mark.parametrize(
    "text", ["1950", "1950-13-01", "1950-02-30", "01.02.1950", "yesterday", "0000-01-01"]
)
def test_what_is_no_date_is_refused_without_quoting_it(text):
    with pytest.raises(DomainError, match="`born` must be a date in every record") as refusal:
        BORN.coded(np.array(["1950-01-01", text], dtype=object))
    assert text not in str(refusal.value)


def test_a_missing_date_counts_as_declared_or_is_refused():
    np.testing.assert_array_equal(BORN.coded(np.array([""])), expected([datetime.date(1950, 1, 1)]))
    with pytest.raises(DomainError, match="declares no default"):
        Date(name="born", low=LOW, high=HIGH).coded(np.array(["NaT"], dtype="datetime64[D]"))


def test_bounds_must_be_dates_in_order_and_an_example_lies_between():
    with pytest.raises(ValueError, match="low < high"):
        Date(name="born", low=HIGH, high=LOW)
    with pytest.raises(ValueError, match="example within its bounds"):
        Date(name="born", low=LOW, high=HIGH, example="2001-01-01")
    with pytest.raises(ValueError, match="`low` must be a date"):
        Date(name="born", low="soon", high=HIGH)
