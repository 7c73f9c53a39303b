"""Standard errors that are clustered by person: intervals cover however the rows of a person depend.

A test of coverage is one-sided, by the binomial law at 95% with a false-alarm rate of 1e-6 over all tests of
this file; the coefficients of one table may fail together, so that only tables count as independent.
"""

import numpy as np
import pytest
from scipy import stats

import expost

TRUTH = np.array([0.8, -0.6])
PLAN = {"report": "leverage", "split": 0.98, "fit_intercept": True, "loss": "logistic", "epsilon": 4.0}


def table(rng, people, agree):
    """Rows of people that agree with this probability; each row on its own follows the model exactly."""
    rows = rng.integers(1, 9, people)
    ids = np.repeat(np.arange(people), rows)
    usual, chance = rng.uniform(-0.7, 0.7, (people, 2)), rng.random(people)
    same = rng.random(len(ids)) < agree
    X = np.where(same[:, None], usual[ids], rng.uniform(-0.7, 0.7, (len(ids), 2)))
    uniform = np.where(same, chance[ids], rng.random(len(ids)))
    y = (uniform < 1.0 / (1.0 + np.exp(-X @ TRUTH))).astype(int)
    return X, y, ids


def covered(unit, agree, tables, people=1500, seed=1):
    """Which coefficients of each table lie in their intervals of 95%."""
    plan, found = expost.calibrate(unit=unit, **PLAN), []
    for number in range(tables):
        rng = np.random.default_rng([seed, number])
        X, y, ids = table(rng, people, agree)
        model = expost.LogisticRegression(plan=plan, classes=[0, 1], random_state=number)
        model.fit(X, y, groups=ids if unit == "person" else None)
        summary = model.publication_.summary()
        found.append((summary.lower[:2] <= TRUTH) & (summary.upper[:2] >= TRUTH))
    return np.array(found)


@pytest.mark.parametrize("agree", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("tables", [8, pytest.param(200, marks=pytest.mark.slow)])
def test_intervals_of_people_cover_however_rows_depend(agree, tables):
    hits = covered("person", agree, tables)
    missed = (~hits).sum(axis=0)
    assert np.all(missed <= stats.binom.isf(1e-6 / 12, tables, 0.05))
    if agree == 1.0 and tables == 200:  # exact where rows agree, and not merely wide
        assert np.all(missed >= stats.binom.ppf(1e-6 / 12, tables, 0.05))


def test_intervals_of_rows_do_not():
    """The same tables, row by row: 40% of the intervals miss where 5% should."""
    hits = covered("row", 1.0, 8)
    assert np.mean(~hits) > 0.15


def test_a_summary_says_who_the_sample_is():
    notes = [
        expost.LogisticRegression(plan=expost.calibrate(unit=unit, **PLAN), classes=[0, 1], random_state=0)
        .fit(*table(np.random.default_rng(0), 800, 1.0)[:2], **more)
        .publication_.summary()
        .notes
        for unit, more in (
            ("person", {"groups": table(np.random.default_rng(0), 800, 1.0)[2]}),
            ("row", {}),
        )
    ]
    assert [any("People are the sample" in note for note in some) for some in notes] == [True, False]
