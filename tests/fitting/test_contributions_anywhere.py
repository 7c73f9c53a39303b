"""What rows add to the numbers that recalibrate a model has the same bits wherever the table lies."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csc_array, csr_array
from spaces import SPACES

import expost
from expost.fitting.contributions import Contributions, Totals

RANDOM = np.random.default_rng(5)
# Half of the rows are longer than the norm, and every number is a float32 too.
X = (RANDOM.normal(size=(700, 3)) * RANDOM.choice([0.2, 1.0, 3.0], size=(700, 1))).astype(np.float32)
X[RANDOM.random(X.shape) < 0.3] = 0.0
WIDE, NAMES = X.astype(float), ["a", "b", "c"]
Y = {"histogram": RANDOM.integers(0, 2, 700) * 1.0, "moments": RANDOM.uniform(-1.2, 1.2, 700)}
THETA = np.array([0.7, -0.5, 0.3, 0.2])


def model_of(kind, **options):
    options = {"norm": 1.0, "recalibrate": True, "random_state": 0} | options
    if kind == "histogram":
        return expost.LogisticRegression(classes=[0.0, 1.0], **options)
    return expost.LinearRegression(outcome=(-1.0, 1.0), **options)


@pytest.fixture(scope="module", params=["histogram", "moments"])
def held(request):
    """A model of the table as it is held in memory, and the sums at some coefficients."""
    y = Y[request.param]
    model = model_of(request.param).fit(WIDE, y)
    totals = Totals.of(model.plan_, model._records(WIDE, y, None), THETA)
    return request.param, model, totals


TABLES = {
    "by columns": np.asfortranarray(WIDE),
    "float32": X,
    "every second row of twice as many": np.repeat(WIDE, 2, axis=0)[::2],
    "compressed rows": csr_array(WIDE),
    "compressed columns": csc_array(WIDE),
    "pandas": pd.DataFrame(WIDE, columns=NAMES),
    "polars, float32": pl.DataFrame(X, schema=NAMES),
}


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("name", TABLES)
def test_sums_have_the_same_bits(held, name):
    kind, model, totals = held
    records = model._records(TABLES[name], Y[kind], None)
    assert Totals.of(model.plan_, records, THETA).steps == totals.steps


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("table", [WIDE, X], ids=["float64", "float32"])
def test_on_a_device_too(held, table, space):
    kind, model, totals = held
    records = model._records(space(table), space(Y[kind]), None)
    assert Totals.of(model.plan_, records, THETA).steps == totals.steps
    ours = model.ex_post_losses(WIDE, Y[kind], return_terms=True).recalibration
    theirs = model.ex_post_losses(space(table), space(Y[kind]), return_terms=True).recalibration
    assert np.asarray(theirs) == pytest.approx(ours, abs=1e-15)


def test_a_file_in_small_parts(held, tmp_path):
    """The whole fit is the same: coefficients, numbers, and what they cost."""
    kind, model, _ = held
    frame = pl.DataFrame(WIDE, schema=NAMES).with_columns(y=Y[kind])
    frame.write_parquet(tmp_path / "t.parquet", row_group_size=64)
    fitted = model_of(kind).fit(tmp_path / "t.parquet", "y")
    assert np.array_equal(fitted.coef_, model.coef_)
    assert fitted._private.totals.steps == model._private.totals.steps
    ours, theirs = (
        one.publication_.release.recalibration for one in (fitted, model_of(kind).fit(frame[NAMES], Y[kind]))
    )
    assert np.array_equal(ours, theirs)
    losses = fitted.ex_post_losses(tmp_path / "t.parquet", "y")
    assert losses == pytest.approx(model.ex_post_losses(WIDE, Y[kind]), abs=1e-12)


def test_parts_of_a_table_add_up(held):
    """What two halves add is what the whole adds, to the last step."""
    kind, model, totals = held
    halves = [
        Totals.of(model.plan_, model._records(WIDE[some], Y[kind][some], None), THETA).steps
        for some in (slice(0, 333), slice(333, None))
    ]
    assert tuple(a + b for a, b in zip(*halves, strict=True)) == totals.steps


def test_lengths_of_reports_are_at_least_those_of_vectors(held):
    kind, model, _ = held
    contributions = Contributions(THETA, model.plan_)
    ((added,),) = contributions.sweep(model._records(WIDE, Y[kind], None), lambda _, one: one)
    exact = contributions.step * np.sqrt(np.sum(added.steps.astype(float) ** 2, axis=1))
    away = model._records(WIDE, Y[kind], None).sweep(_Lengths(contributions))
    lengths = np.concatenate(list(away))
    assert np.all(lengths >= exact - 1e-15)
    assert lengths == pytest.approx(exact, abs=1e-7)


class _Lengths:
    """The pass of a report."""

    def __init__(self, contributions):
        self.contributions = contributions

    def __call__(self, blocks):
        return np.concatenate([self.contributions.lengths(block) for block in blocks])
