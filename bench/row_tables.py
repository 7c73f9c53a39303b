"""Tables of ordered classes and of times to an event, with declared domains.

Bounds and cuts between classes are round numbers from what the quantities are; none was computed from the
rows. Larger tables are cut to :data:`MOST` rows for fitting and as many for testing, by a seed.
"""

import csv
from collections.abc import Callable
from importlib.resources import files

import numpy as np
from sklearn.datasets import load_diabetes

from bench.declared import (
    DIABETES,
    ELECTION,
    HEALTH,
    HEALTH_YES_NO,
    MARRIAGE,
    SEED,
    SHARE,
    Pair,
    _columns,
    _numbers,
    _statsmodels,
)
from expost import Category, Domain, Number, OrderedLabel, TimeLabel, YesNo
from papers import datasets
from papers.datasets import DataSet

MOST = 4_000
CHOSEN_ON = 4
"""So many tables of ordered classes, the first ones, are for choosing."""
GROUPS = ("ALL", "AML-Low Risk", "AML-High Risk")


def _pair(name, features, label, columns, outcome) -> Pair:
    """A table, split, with at most so many rows in each part."""
    table = DataSet(
        name=name, domain=Domain(features=features, label=label), columns=columns, outcome=outcome
    )
    fit, judge = table.split(SHARE, SEED)
    return tuple(one._part(np.arange(min(len(one), MOST))) for one in (fit, judge))


def _ordered(name, features, columns, values, cuts) -> Pair:
    """Classes by how many of the cuts a value is above; called by their numbers."""
    classes = tuple(range(len(cuts) + 1))
    codes = np.sum(np.asarray(values, dtype=float)[:, None] > np.array(cuts), axis=1)
    return _pair(name, features, OrderedLabel(name="class", classes=classes), columns, codes)


def wine(part: str) -> Pair:
    """Grades of wines, with those up to 4 and those from 7 on taken together."""
    whole = datasets.wine(part)
    return _ordered(f"{part} wine", whole.domain.features, whole.columns, whole.outcome, (4, 5, 6))


def _fair(outcome: str, cuts: tuple[int, ...]) -> Pair:
    frame = _statsmodels("fair")
    kept = {name: bounds for name, bounds in MARRIAGE.items() if name != outcome}
    return _ordered(outcome, _numbers(kept), {name: frame[name] for name in kept}, frame[outcome], cuts)


def _politics(outcome: str, cuts: tuple[int, ...]) -> Pair:
    frame = _statsmodels("anes96")
    kept = {name: bounds for name, bounds in ELECTION.items() if name != outcome}
    return _ordered(outcome, _numbers(kept), {name: frame[name] for name in kept}, frame[outcome], cuts)


def diabetes() -> Pair:
    """Progression within a year, in four classes of about as many patients."""
    bunch = load_diabetes(scaled=False)
    columns = _columns(list(DIABETES), bunch.data)
    return _ordered("diabetes", _numbers(DIABETES), columns, bunch.target, (90.0, 140.0, 210.0))


def visits() -> Pair:
    """Visits to a doctor in a year: none, up to two, up to five, more."""
    frame = _statsmodels("randhie")
    features = (*_numbers(HEALTH), *(YesNo(name=name) for name in HEALTH_YES_NO))
    columns = {name: frame[name] for name in HEALTH} | {name: frame[name] > 0.5 for name in HEALTH_YES_NO}
    return _ordered("doctor visits", features, columns, frame["mdvis"], (0, 2, 5))


def _times(name, features, columns, times, happened, periods, length) -> Pair:
    label = TimeLabel(name="time", event="event", periods=periods, length=length)
    outcome = np.column_stack([np.asarray(times, dtype=float), np.asarray(happened, dtype=float)])
    return _pair(name, features, label, columns, outcome)


def heart() -> Pair:
    """Days that patients lived after a transplant of the heart (Miller 1976), from statsmodels."""
    frame = _statsmodels("heart")
    features, columns = _numbers({"age": (15.0, 70.0)}), {"age": frame["age"]}
    return _times("heart", features, columns, frame["survival"], frame["censors"], 10, 180.0)


def strikes() -> Pair:
    """Days that strikes lasted, by unexpected production (Kennan 1985), from statsmodels."""
    frame = _statsmodels("strikes")
    features, columns = _numbers({"iprod": (-0.15, 0.15)}), {"iprod": frame["iprod"]}
    ended = np.ones(len(frame["iprod"]))
    return _times("strikes", features, columns, frame["duration"], ended, 10, 20.0)


def marrow() -> Pair:
    """Days to a relapse or death after a transplant of bone marrow, by disease, from statsmodels' tests."""
    _statsmodels("heart")  # says what is missing if statsmodels is
    text = files("statsmodels.duration.tests.results").joinpath("bmt.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    features = (Category(name="group", categories=GROUPS),)
    columns = {"group": np.array([row["Group"] for row in rows], dtype=object)}
    times, seen = ([float(row[name]) for row in rows] for name in ("T", "Status"))
    return _times("bone marrow", features, columns, times, seen, 10, 250.0)


def first_late_month() -> Pair:
    """The first of six months in which a client of a bank paid late, by her credit, schooling and age."""
    whole = datasets.credit()
    months = ("PAY_6", "PAY_5", "PAY_4", "PAY_3", "PAY_2", "PAY_0")
    late = np.column_stack([np.asarray(whole.columns[name], dtype=float) > 0.0 for name in months])
    kept = ("LIMIT_BAL", "EDUCATION", "AGE")
    features = tuple(one for one in whole.domain.features if one.name in kept)
    columns = {one.name: whole.columns[one.name] for one in features}
    times = np.where(late.any(axis=1), 1 + np.argmax(late, axis=1), len(months))
    return _times("late payment", features, columns, times, late.any(axis=1), len(months), 1.0)


def made_up(rows: int, columns: int, strength: float) -> Pair:
    """Uniform features, a hazard of one in ten in the middle, and one in twenty leaving in each period."""
    rng = np.random.default_rng([rows, columns])
    X = rng.uniform(-1.0, 1.0, (rows, columns))
    score = X @ rng.normal(size=columns)
    hazard = 1.0 / (1.0 + np.exp(2.2 - strength * score / np.std(score)))
    event, left = rng.geometric(hazard), rng.geometric(0.05, rows)
    names = [f"column {place}" for place in range(columns)]
    features = tuple(Number(name=name, low=-1.0, high=1.0) for name in names)
    seen = event <= left
    return _times("made up", features, _columns(names, X), np.minimum(event, left), seen, 12, 1.0)


ORDERED: dict[str, Callable[[], Pair]] = {
    "red wine": lambda: wine("red"),
    "marriage": lambda: _fair("rate_marriage", (1, 2, 3, 4)),
    "diabetes": diabetes,
    "party": lambda: _politics("PID", (0, 1, 2, 3, 4, 5)),
    "white wine": lambda: wine("white"),
    "religion": lambda: _fair("religious", (1, 2, 3)),
    "doctor visits": visits,
    "left or right": lambda: _politics("selfLR", (1, 2, 3, 4, 5, 6)),
}
TIMES: dict[str, Callable[[], Pair]] = {
    "heart": heart,
    "strikes": strikes,
    "bone marrow": marrow,
    "late payment": first_late_month,
    "made up, 1,000 rows": lambda: made_up(1_430, 5, 1.0),
    "made up, 4,000 rows": lambda: made_up(5_715, 10, 1.0),
}
