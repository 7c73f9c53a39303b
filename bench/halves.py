"""The tables on which rules and settings are chosen, and those that are left to judge them.

Rules for two classes are chosen on the first half, judged once on the second, and once more on tables that
were drawn up after both. The same for regressions, without a third part. Made-up tables are named by rows,
columns and how strong the signal is, or how many columns have one.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_wine

from bench import class_tables, declared
from bench.declared import Pair
from expost import ClassLabel, Domain, Number, NumberLabel
from papers import datasets
from papers.datasets import DataSet

Loader = Callable[[int], Pair]
# A made-up table has this many rows more, for testing.
TEST_ROWS = 4_000
# Of schools in California, in the units of the table: mostly percentages.
SCHOOLS = dict.fromkeys(("LOWINC", "PERASIAN", "PERBLACK", "PERHISP", "PERMINTE"), (0.0, 100.0))
SCHOOLS |= {"AVYRSEXP": (5.0, 25.0), "AVSALK": (30.0, 90.0), "PERSPENK": (2.0, 8.0), "PTRATIO": (10.0, 35.0)}
SCHOOLS |= dict.fromkeys(("PCTAF", "PCTCHRT", "PCTYRRND"), (0.0, 100.0))
YES_NO = ClassLabel(name="label", classes=("no", "yes"))
# Above this a year's progression of diabetes counts as high, and from this grade on a wine as good.
HIGH, GOOD = 150.0, 6.0


def known(load: Callable[[], Pair], seed: int, rows: int | None = None) -> Pair:
    """A table of the comparison, split anew by a seed; with so many rows for fitting if that is said."""
    fit, judge = load()
    whole = DataSet(
        name=fit.name,
        domain=fit.domain,
        columns={name: np.concatenate([values, judge.columns[name]]) for name, values in fit.columns.items()},
        outcome=np.concatenate([fit.outcome, judge.outcome]),
    )
    share = declared.SHARE if rows is None else (rows + 0.5) / len(whole)
    return whole.split(share, seed)


def yes_no(features: np.ndarray, bounds: Mapping[str, tuple[float, float]], second, seed: int) -> Pair:
    """Columns of numbers with these bounds, and whether a record is of the second class."""
    numbers = tuple(Number(name=name, low=low, high=high) for name, (low, high) in bounds.items())
    columns = dict(zip(bounds, np.asarray(features, dtype=float).T, strict=True))
    outcome = np.where(second, "yes", "no")
    table = DataSet(name="", domain=Domain(features=numbers, label=YES_NO), columns=columns, outcome=outcome)
    return table.split(declared.SHARE, seed)


def even_digits(seed: int, rows: int | None = None) -> Pair:
    """Whether a handwritten digit is even."""
    bunch = load_digits()
    bounds = {f"pixel {place}": (0.0, 16.0) for place in range(64)}
    return known(lambda: yes_no(bunch.data, bounds, bunch.target % 2 == 0, seed), seed, rows)


def grower(place: int, seed: int) -> Pair:
    """Whether a wine is of one of three growers."""
    bunch = load_wine()
    return yes_no(bunch.data, class_tables.WINE, bunch.target == place, seed)


def good_wine(part: str, seed: int, useless: int = 0) -> Pair:
    """Whether tasters found a wine good; with columns of noise if that is said."""
    table = datasets.wine(part)
    features = table.domain.encode(table.columns)
    noise = np.random.default_rng(40).uniform(-1.0, 1.0, size=(len(table), useless))
    bounds = {f"column {place}": (-1.0, 1.0) for place in range(features.shape[1] + useless)}
    good = np.asarray(table.outcome, dtype=float) >= GOOD
    return yes_no(np.column_stack([features, noise]), bounds, good, seed)


def iris(seed: int) -> Pair:
    """The two kinds of iris that are hard to tell apart."""
    bunch = load_iris()
    two = bunch.target > 0
    return yes_no(bunch.data[two], class_tables.IRIS, bunch.target[two] == 2, seed)


def progression(seed: int) -> Pair:
    """Whether diabetes progressed fast."""
    bunch = load_diabetes(scaled=False)
    return yes_no(bunch.data, declared.DIABETES, bunch.target > HIGH, seed)


def schools(seed: int) -> Pair:
    """Whether most pupils of a district were above the median in mathematics, from statsmodels (star98)."""
    frame = declared._statsmodels("star98")
    features = np.column_stack([frame[name] for name in SCHOOLS])
    return yes_no(features, SCHOOLS, frame["NABOVE"] > frame["NBELOW"], seed)


def any_visit(seed: int, rows: int | None = None) -> Pair:
    """Whether somebody saw a doctor within a year."""
    parts = known(declared.doctor_visits, seed, rows)
    fit, judge = (
        DataSet(
            name=part.name,
            domain=Domain(features=part.domain.features, label=YES_NO),
            columns=part.columns,
            outcome=np.where(part.outcome > 0.0, "yes", "no"),
        )
        for part in parts
    )
    return fit, judge


def made_up(
    kind: str, rows: int, columns: int, strength: float, seed: int, *, outcome: str = "class"
) -> Pair:
    """Uniform features, a linear score, and labels of a logistic model or a noisy outcome.

    ``dense``: all columns matter, and the score's deviation is the strength. ``sparse``: so many columns
    matter. ``correlated``: half of every column is common to all, and all matter.
    """
    rng = np.random.default_rng([seed, rows, columns])
    X = rng.uniform(-1.0, 1.0, size=(rows + TEST_ROWS, columns))
    if kind == "correlated":
        X = 0.5 * (X + rng.uniform(-1.0, 1.0, size=(len(X), 1)))
    weights = rng.normal(size=columns)
    if kind == "sparse":
        weights[int(strength) :] = 0.0
    score = X @ weights
    score *= (2.0 if kind != "dense" else strength) / np.std(score)
    bounds = {f"column {place}": (-1.0, 1.0) for place in range(columns)}
    features = tuple(Number(name=name, low=-1.0, high=1.0) for name in bounds)
    if outcome == "class":
        label, values = YES_NO, np.where(rng.random(len(X)) < 1.0 / (1.0 + np.exp(-score)), "yes", "no")
    else:
        label = NumberLabel(name="outcome", low=0.0, high=20.0)
        noisy = score + rng.normal(size=len(X))
        values = np.clip(np.exp(0.5 * noisy) if outcome == "skewed" else 12.0 + noisy, 0.0, 20.0)
    table = DataSet(
        name="",
        domain=Domain(features=features, label=label),
        columns=dict(zip(bounds, X.T, strict=True)),
        outcome=values,
    )
    return table.split((rows + 0.5) / len(X), seed)


def _compared(name: str, rows: int | None = None) -> Loader:
    return partial(known, declared.TABLES[name], rows=rows)


def _digits(first: int, second: int) -> Loader:
    return partial(known, partial(declared.digits, first, second))


TUNING: dict[str, Loader] = {
    "kidney": _compared("kidney"),
    "breast cancer": _compared("breast cancer"),
    "digits 3/8": _compared("digits 3/8"),
    "digits 4/9": _digits(4, 9),
    "good wine red": partial(good_wine, "red"),
    "wine 0": partial(grower, 0),
    "affairs": _compared("affairs"),
    "good wine white": partial(good_wine, "white"),
    "white wine + 40": partial(good_wine, "white", useless=40),
    "credit": _compared("credit"),
    "syn-1000-20-3": partial(made_up, "dense", 1000, 20, 3.0),
    "spa-1000-60-4": partial(made_up, "sparse", 1000, 60, 4.0),
    "cor-500-40": partial(made_up, "correlated", 500, 40, 2.0),
}
HOLD_OUT: dict[str, Loader] = {
    "election": _compared("election"),
    "digits 1/7": _compared("digits 1/7"),
    "progression high": progression,
    "iris 1/2": iris,
    "wine 1": partial(grower, 1),
    "star98": schools,
    "digits even": even_digits,
    "any visit": any_visit,
    "adult": _compared("adult"),
    "spa-800-100-3": partial(made_up, "sparse", 800, 100, 3.0),
    "syn-600-15-2": partial(made_up, "dense", 600, 15, 2.0),
    "cor-2000-60": partial(made_up, "correlated", 2000, 60, 2.0),
}
SECOND: dict[str, Loader] = {
    "digits 2/7": _digits(2, 7),
    "digits 5/9": _digits(5, 9),
    "digits 0/6": _digits(0, 6),
    "digits 8/9": _digits(8, 9),
    "adult (600 rows)": _compared("adult", 600),
    "adult (3000 rows)": _compared("adult", 3000),
    "any visit (800 rows)": partial(any_visit, rows=800),
    "election (200 rows)": _compared("election", 200),
    "digits even (400 rows)": partial(even_digits, rows=400),
    "star98": schools,
    "syn-400-30-2": partial(made_up, "dense", 400, 30, 2.0),
    "spa-1500-40-4": partial(made_up, "sparse", 1500, 40, 4.0),
    "cor-800-20": partial(made_up, "correlated", 800, 20, 2.0),
    "syn-5000-8-1": partial(made_up, "dense", 5000, 8, 1.0),
}
# The small tables on which goals against gradient descent are stated.
SMALL = (
    *("kidney", "digits 3/8", "digits 1/7", "digits 4/9", "breast cancer", "election", "wine 0"),
    *("progression high", "good wine red", "syn-300-10-2"),
)
EVERY = TUNING | HOLD_OUT | SECOND | {"syn-300-10-2": partial(made_up, "dense", 300, 10, 2.0)}
# Regressions on which settings are chosen.
REGRESSIONS: dict[str, Loader] = {
    "wine, red": _compared("wine, red"),
    "diabetes": _compared("diabetes"),
    "lin-1000-60": partial(made_up, "dense", 1000, 60, 1.0, outcome="number"),
    "lin-500-10": partial(made_up, "dense", 500, 10, 1.0, outcome="number"),
    "skew-2000-10": partial(made_up, "dense", 2000, 10, 1.0, outcome="skewed"),
}
