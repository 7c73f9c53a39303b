"""Every kind of table gives the same rows and the same fit."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from problems import hides_its_cause

import expost
from expost.data.tables import open_table
from expost.exceptions import DomainError

rng = np.random.default_rng(5)
X = rng.integers(-8, 9, size=(300, 4)) / 16.0  # exact in single precision too
Y = rng.integers(0, 2, 300)
NAMES = list("abcd")

KINDS = {
    "C order": X,
    "Fortran order": np.asfortranarray(X),
    "a strided view": np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "float32": X.astype(np.float32),
    "float16": X.astype(np.float16),
    "objects": X.astype(object),
    "nested lists": X.tolist(),
    "pandas": pd.DataFrame(X, columns=NAMES),
    "pandas, mixed types": pd.DataFrame(X, columns=NAMES).astype({"a": np.float32}),
    "polars": pl.DataFrame(X, schema=NAMES),
    "arrow": pl.DataFrame(X, schema=NAMES).to_arrow(),
}


def fitted(table, y=Y):
    return expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=0).fit(table, y)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_same_model(kind):
    table = KINDS[kind]
    model, expected = fitted(table), fitted(X)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.ex_post_losses(table, Y), expected.ex_post_losses(X, Y), rtol=1e-8)
    np.testing.assert_allclose(model.predict_proba(table), expected.predict_proba(X), rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, bool])
def test_whole_numbers_are_numbers(dtype):
    whole = rng.integers(0, 2, size=(50, 3)).astype(dtype)
    y = rng.integers(0, 2, 50)
    np.testing.assert_allclose(fitted(whole, y).coef_, fitted(whole.astype(float), y).coef_, rtol=1e-9)


@pytest.mark.parametrize("kind", ["float64", "float32", "pandas", "polars"])
def test_no_copy_of_the_table_is_made(kind):
    """The extra memory of a fit and of a loss pass is a few numbers per row and a few blocks per thread."""
    big = rng.normal(size=(200_000, 50)).astype(np.float32 if kind == "float32" else np.float64)
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame}.get(kind)
    table = big if frame is None else frame(big)
    y = rng.integers(0, 2, len(big))
    fitted(X)  # imports and caches
    tracemalloc.start()
    try:
        model = fitted(table, y)
        fit_peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        model.ex_post_losses(table, y)
        loss_peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    blocks = 24e6
    assert fit_peak < 4 * 8 * len(big) + blocks < 0.5 * 8 * big.size
    assert loss_peak < 8 * 8 * len(big) + blocks


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (np.empty((0, 3)), "at least one row"),
        (np.empty((5, 0)), "0 feature"),
        ([1.0, 2.0], "two-dimensional"),
        ([[1.0, "secret"]], "matrix of numbers"),
        ([[1.0], [1.0, 2.0]], "matrix of numbers"),
        (np.array([[1.0 + 2.0j]]), "Complex data not supported"),
        (np.array([["secret"]]), "matrix of numbers"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "numbers"),
        (pd.DataFrame({"a": ["secret"]}), "column 'a'"),
        (pl.DataFrame({"a": ["secret"]}), "column 'a'"),
    ],
)
def test_what_is_not_a_table_of_numbers_is_refused_without_quoting_it(table, words):
    with pytest.raises(DomainError, match=words) as caught:
        open_table(table)
    assert "secret" not in str(caught.value)
    assert hides_its_cause(caught.value)
