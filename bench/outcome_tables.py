"""Real tables of counts, of positive amounts and of numbers, with declared domains.

Bounds are round numbers from what the quantities are or from the table's documentation; none was computed
from the rows. Defaults are chosen on the tables of :data:`CHOSEN_ON` and reported on the others.
"""

from collections.abc import Callable, Iterable

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes

from bench.declared import (
    DIABETES,
    ELECTION,
    HEALTH,
    HEALTH_YES_NO,
    MARRIAGE,
    Pair,
    _columns,
    _numbers,
    _statsmodels,
    _table,
)
from expost import AmountLabel, Category, CountLabel, Domain, NumberLabel, YesNo
from expost.data.features import Feature
from expost.data.labels import NumericLabel
from papers import datasets

# What is known of a tumour's cells, in the order of the table's first ten columns; its size is left out.
TUMOUR = {
    "texture": (5.0, 40.0),
    "smoothness": (0.0, 0.2),
    "compactness": (0.0, 0.4),
    "concavity": (0.0, 0.5),
    "concave points": (0.0, 0.25),
    "symmetry": (0.1, 0.35),
    "fractal dimension": (0.0, 0.1),
}
JOURNEY = {"ttme": (0.0, 100.0), "invt": (0.0, 1500.0), "hinc": (0.0, 80.0), "psize": (1.0, 8.0)}
MODES = ("air", "train", "bus", "car")
# Columns of Adult that say something of hours and of schooling.
WORK = ("age", "marital-status", "occupation", "sex", "workclass")


def children(label: type[NumericLabel] = CountLabel) -> Pair:
    """Children of wives in a survey of 1974 (Fair 1978), from statsmodels."""
    frame = _statsmodels("fair")
    features = _numbers({name: bounds for name, bounds in MARRIAGE.items() if name != "children"})
    domain = Domain(features=features, label=label(name="children", low=0.0, high=10.0))
    return _table("children", domain, frame, frame["children"])


def months_late(label: type[NumericLabel] = CountLabel) -> Pair:
    """In how many of six months a client of a bank paid late."""
    whole = datasets.credit()
    statuses = [name for name in whole.columns if name.startswith("PAY_") and "AMT" not in name]
    late = sum(np.asarray(whole.columns[name], dtype=float) > 0.0 for name in statuses)
    declared = label(name="months", low=0.0, high=6.0)
    return _of(whole, "months late", declared, late.astype(float), leave_out=statuses)


def television(label: type[NumericLabel] = CountLabel) -> Pair:
    """Days of a week on which voters of 1996 watched the news, from statsmodels."""
    frame = _statsmodels("anes96")
    features = _numbers({name: bounds for name, bounds in ELECTION.items() if name != "TVnews"})
    domain = Domain(features=features, label=label(name="days", low=0.0, high=7.0))
    return _table("television", domain, frame, frame["TVnews"])


def diseases(label: type[NumericLabel] = CountLabel) -> Pair:
    """Chronic diseases of people in the RAND health insurance experiment, from statsmodels."""
    return _health("diseases", label(name="diseases", low=0.0, high=60.0), "disea")


def visits(label: type[NumericLabel] = CountLabel) -> Pair:
    """Visits to a doctor in a year, in the RAND health insurance experiment, from statsmodels."""
    return _health("doctor visits", label(name="visits", low=0.0, high=52.0), "mdvis")


def hours(label: type[NumericLabel] = CountLabel) -> Pair:
    """Hours of work a week in the census of 1994."""
    declared = label(name="hours", low=0.0, high=99.0)
    return _adult("hours of work", declared, "hours-per-week", (*WORK, "education-num"))


def schooling(label: type[NumericLabel] = CountLabel) -> Pair:
    """Years of school of people in the census of 1994."""
    return _adult(
        "schooling", label(name="years", low=0.0, high=20.0), "education-num", (*WORK, "hours-per-week")
    )


def deaths(label: type[NumericLabel] = CountLabel) -> Pair:
    """Deaths from cancer in counties, by the logarithm of their population (Rice 2007), from statsmodels."""
    frame = _statsmodels("cancer")
    domain = Domain(features=_numbers({"size": (5.0, 13.0)}), label=label(name="deaths", low=0.0, high=500.0))
    return _table("deaths", domain, {"size": np.log(frame["population"])}, frame["cancer"])


def limit(label: type[NumericLabel] = AmountLabel) -> Pair:
    """The limit of a credit card, in dollars of Taiwan."""
    whole = datasets.credit()
    outcome = np.asarray(whole.columns["LIMIT_BAL"], dtype=float)
    declared = label(name="limit", low=5_000.0, high=1_000_000.0)
    return _of(whole, "credit limit", declared, outcome, leave_out=["LIMIT_BAL"])


def sugar(label: type[NumericLabel] = AmountLabel) -> Pair:
    """Grams of sugar in a litre of white wine."""
    return _wine("sugar in wine", "white", label(name="sugar", low=0.5, high=70.0), "residual sugar")


def sulfur(label: type[NumericLabel] = AmountLabel) -> Pair:
    """Milligrams of sulfur dioxide in a litre of red wine."""
    declared = label(name="sulfur", low=1.0, high=300.0)
    return _wine("sulfur in wine", "red", declared, "total sulfur dioxide", "free sulfur dioxide")


def creatinine(label: type[NumericLabel] = AmountLabel) -> Pair:
    """Creatinine in the blood of patients, mg/dl, where it was measured."""
    whole = datasets.kidney()
    outcome = np.asarray(whole.columns["sc"], dtype=float)
    measured = np.flatnonzero(np.isfinite(outcome))
    return _of(
        whole, "creatinine", label(name="sc", low=0.2, high=20.0), outcome, leave_out=["sc"], rows=measured
    )


def progression(label: type[NumericLabel] = AmountLabel) -> Pair:
    """Progression of diabetes within a year, on a scale of its own."""
    bunch = load_diabetes(scaled=False)
    domain = Domain(features=_numbers(DIABETES), label=label(name="progression", low=10.0, high=350.0))
    return _table("diabetes", domain, _columns(list(DIABETES), bunch.data), bunch.target)


def tumour(label: type[NumericLabel] = AmountLabel) -> Pair:
    """The area of a tumour's cells, by their texture and form."""
    bunch = load_breast_cancer()
    places = [1, 4, 5, 6, 7, 8, 9]
    domain = Domain(features=_numbers(TUMOUR), label=label(name="area", low=100.0, high=3000.0))
    return _table("tumour", domain, _columns(list(TUMOUR), bunch.data[:, places]), bunch.data[:, 3])


def food(label: type[NumericLabel] = AmountLabel) -> Pair:
    """What Belgian households spent on food (Engel 1857), by the logarithm of their income."""
    frame = _statsmodels("engel")
    domain = Domain(
        features=_numbers({"income": (5.5, 9.0)}), label=label(name="food", low=100.0, high=3000.0)
    )
    return _table("food", domain, {"income": np.log(frame["income"])}, frame["foodexp"])


def journey(label: type[NumericLabel] = AmountLabel) -> Pair:
    """What a journey between two cities costs in the vehicle (Greene 2003), from statsmodels."""
    frame = _statsmodels("modechoice")
    features = (*_numbers(JOURNEY), Category(name="mode", categories=MODES))
    columns = {name: frame[name] for name in JOURNEY}
    columns["mode"] = np.array(MODES, dtype=object)[frame["mode"].astype(int) - 1]
    domain = Domain(features=features, label=label(name="cost", low=1.0, high=200.0))
    return _table("journey", domain, columns, frame["invc"])


def wine(part: str) -> Pair:
    """The grade of a wine, from 0 to 10."""
    return datasets.wine(part).split(0.7, 0)


def _of(
    whole: datasets.DataSet,
    name: str,
    label: NumericLabel,
    outcome: np.ndarray,
    *,
    leave_out: Iterable[str] = (),
    rows: np.ndarray | slice = slice(None),
) -> Pair:
    """A table whose outcome is made of columns that are then left out."""
    gone = set(leave_out)
    kept: tuple[Feature, ...] = tuple(one for one in whole.domain.features if one.name not in gone)
    columns = {one.name: whole.columns[one.name][rows] for one in kept}
    return _table(name, Domain(features=kept, label=label), columns, outcome[rows])


def _health(name: str, label: NumericLabel, outcome: str) -> Pair:
    frame = _statsmodels("randhie")
    numbers = {one: bounds for one, bounds in HEALTH.items() if one != outcome}
    features = (*_numbers(numbers), *(YesNo(name=one) for one in HEALTH_YES_NO))
    columns = {one: frame[one] for one in numbers} | {one: frame[one] > 0.5 for one in HEALTH_YES_NO}
    return _table(name, Domain(features=features, label=label), columns, frame[outcome])


def _adult(name: str, label: NumericLabel, outcome: str, kept: tuple[str, ...]) -> Pair:
    whole = datasets.adult("train")
    gone = [one for one in whole.columns if one not in kept]
    return _of(whole, name, label, np.asarray(whole.columns[outcome], dtype=float), leave_out=gone)


def _wine(name: str, part: str, label: NumericLabel, outcome: str, *others: str) -> Pair:
    whole = datasets.wine(part)
    values = np.asarray(whole.columns[outcome], dtype=float)
    return _of(whole, name, label, values, leave_out=[outcome, *others])


COUNTS: dict[str, Callable[[], Pair]] = {
    "children": children,
    "months late": months_late,
    "television": television,
    "diseases": diseases,
    "doctor visits": visits,
    "hours of work": hours,
    "schooling": schooling,
    "deaths": deaths,
}
AMOUNTS: dict[str, Callable[[], Pair]] = {
    "credit limit": limit,
    "sugar in wine": sugar,
    "creatinine": creatinine,
    "diabetes": progression,
    "sulfur in wine": sulfur,
    "tumour": tumour,
    "food": food,
    "journey": journey,
}
NUMBERS: dict[str, Callable[[], Pair]] = {
    "wine, red": lambda: wine("red"),
    "diabetes": lambda: progression(NumberLabel),
    "credit limit": lambda: limit(NumberLabel),
    "tumour": lambda: tumour(NumberLabel),
    "wine, white": lambda: wine("white"),
    "doctor visits": lambda: visits(NumberLabel),
    "hours of work": lambda: hours(NumberLabel),
    "food": lambda: food(NumberLabel),
}
CHOSEN_ON = 4
"""So many tables of each kind, the first ones, are those on which defaults are chosen."""
