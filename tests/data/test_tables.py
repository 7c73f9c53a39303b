"""Every kind of table gives the same rows and the same fit."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sparse
from problems import all_rows, design_of, hides_its_cause
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import expost
from expost.data.tables import open_table
from expost.exceptions import DomainError
from expost.fitting.objective import Objective
from expost.fitting.solvers import minimize
from expost.fitting.vector_objective import VectorObjective

rng = np.random.default_rng(5)
X = rng.integers(-8, 9, size=(300, 4)) / 16.0  # exact in single precision too
Y = rng.integers(0, 2, 300)
NAMES = list("abcd")


def _disordered():
    """Every row from right to left, each entry in two unequal parts; SciPy believes that it is in order."""
    parts = np.column_stack([X[:, ::-1] - 1.0, np.ones_like(X)])
    columns = np.tile([3, 2, 1, 0], (len(X), 2))
    made = sparse.csr_array((parts.ravel(), columns.ravel(), np.arange(0, X.size * 2 + 1, 8)), shape=X.shape)
    made.has_canonical_format = True
    return made


def _wide():
    columns = np.indices(X.shape)[1]
    made = sparse.csr_array(
        (X.ravel(), columns.ravel().astype(np.int64), np.arange(0, X.size + 1, 4, dtype=np.int64)),
        shape=X.shape,
    )
    assert made.nnz == X.size > np.count_nonzero(X)
    return made


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
    "csr matrix": sparse.csr_matrix(X),
    "csr array": sparse.csr_array(X),
    "csc matrix": sparse.csc_matrix(X),
    "csc array": sparse.csc_array(X),
    "coo with entries stored twice": sparse.coo_array(
        (np.concatenate([X.ravel() / 4, 0.75 * X.ravel()]), np.tile(np.indices(X.shape).reshape(2, -1), 2)),
        shape=X.shape,
    ),
    "csr, neither sorted nor summed up": _disordered(),
    "csr of int64 indices and explicit zeros": _wide(),
    "csr, float32": sparse.csr_array(X.astype(np.float32)),
    "pandas, sparse": pd.DataFrame(X, columns=NAMES).astype(pd.SparseDtype(float, 0.0)),
    "pandas, empty at 0.5": pd.DataFrame(X, columns=NAMES).astype(pd.SparseDtype(float, 0.5)),
    "pandas, one sparse column": pd.DataFrame(X, columns=NAMES).astype({"b": pd.SparseDtype(float, 0.0)}),
}


SPARSE = {
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "pandas, sparse": lambda table: pd.DataFrame.sparse.from_spmatrix(sparse.csc_array(table)),
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


@pytest.mark.parametrize("norm", [1e-3, 0.5, 2.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_products_of_sparse_rows_are_those_of_dense_ones(norm, fit_intercept):
    """Scaled into the ball alike, rows with no entry and rows whose squares overflow included."""
    rows = sparse.csr_array(X * (rng.random(X.shape) < 0.3)).tolil()
    rows[0] = 0.0
    rows[1] = [1e300, 0.0, -1e300, 0.0]
    dense, thin = (
        design_of(table, norm=norm, fit_intercept=fit_intercept) for table in (rows.toarray(), rows.tocsr())
    )
    assert thin.product_width < dense.product_width
    direction, pulls = rng.normal(size=dense.design.dimension), rng.normal(size=300)
    full, few, again = all_rows(dense), all_rows(thin, products=True), all_rows(thin)
    np.testing.assert_allclose(few @ direction, full @ direction, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(pulls @ few, pulls @ full, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(again, full)
    directions, forces = rng.normal(size=(dense.design.dimension, 3)), rng.normal(size=(3, 300))
    np.testing.assert_allclose(few @ directions, full @ directions, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(forces @ few, forces @ full, rtol=1e-12, atol=1e-13)
    assert len(few) == len(full)


def test_several_classes_of_sparse_rows_are_fitted_without_a_dense_table():
    """The coefficients of three classes count twice; less than a tenth of a dense table is enough."""
    n, d = 800, 3000
    places = (np.repeat(np.arange(n), 10), rng.integers(0, d, 10 * n))
    table = sparse.coo_array((rng.normal(size=10 * n), places), shape=(n, d)).tocsr()
    labels = rng.integers(0, 3, n).astype(float)
    objective = VectorObjective(
        design_of(table, fit_intercept=True).labelled(labels), expost.SoftmaxLoss(3), l2=1.0
    )
    tracemalloc.start()
    try:
        solution = minimize(objective, tolerance=1e-9)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert solution.evaluation.norm <= 1e-9
    assert peak < 0.1 * 8 * n * d
    dense = VectorObjective(
        design_of(table.toarray(), fit_intercept=True).labelled(labels), expost.SoftmaxLoss(3), l2=1.0
    )
    assert dense.evaluate(solution.theta).norm < 2e-9


def test_ten_thousand_sparse_columns_are_fitted_without_a_dense_table():
    """The matrix-free solver multiplies the entries that are stored: 2% of a dense table is enough."""
    n, d = 2000, 10_000
    places = (np.repeat(np.arange(n), 10), rng.integers(0, d, 10 * n))
    table = sparse.coo_array((rng.normal(size=10 * n), places), shape=(n, d)).tocsr()
    labels = rng.integers(0, 2, n).astype(float)
    objective = Objective(
        design_of(table, fit_intercept=True).labelled(labels), expost.LogisticLoss(), l2=1.0
    )
    tracemalloc.start()
    try:
        solution = minimize(objective, tolerance=1e-9)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert solution.evaluation.norm <= 1e-9
    assert peak < 0.02 * 8 * n * d
    features, scale = table, 1.0 / np.maximum(1.0, np.sqrt(table.power(2).sum(axis=1)))
    eta = scale * (features @ solution.theta[:-1]) + solution.theta[-1]
    slope = 1.0 / (1.0 + np.exp(-eta)) - labels
    gradient = np.append(features.T @ (scale * slope), slope.sum()) + solution.theta
    assert np.linalg.norm(gradient) < 2e-9


def test_a_default_one_hot_encoder_feeds_a_model():
    words = rng.choice(["red", "green", "blue"], size=(400, 2))
    answers = (words[:, 0] == "red").astype(int)
    encoder = OneHotEncoder(categories=[["blue", "green", "red"]] * 2)
    model = expost.LogisticRegression(norm=2**0.5, classes=[0, 1], epsilon=8.0)
    pipeline = make_pipeline(encoder, model).fit(words, answers)
    assert sparse.issparse(encoder.fit_transform(words))
    assert pipeline.score(words, answers) > 0.95
    bounds = model.publication_.bounds(encoder.transform(words), answers)
    np.testing.assert_array_equal(
        bounds.upper, model.publication_.bounds(encoder.transform(words).toarray(), answers).upper
    )


@pytest.mark.parametrize("kind", ["csr", "csc", "pandas, sparse"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_sparse_tables_with_nan_or_infinity_are_refused(kind, bad):
    table = X.copy()
    table[7, 1] = bad
    with pytest.raises(DomainError, match="NaN or infinity"):
        fitted(SPARSE[kind](table))
    with pytest.raises(DomainError, match="NaN or infinity"):
        fitted(X).predict(SPARSE[kind](table))


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, bool])
def test_whole_numbers_are_numbers(dtype):
    whole = rng.integers(0, 2, size=(50, 3)).astype(dtype)
    y = rng.integers(0, 2, 50)
    np.testing.assert_allclose(fitted(whole, y).coef_, fitted(whole.astype(float), y).coef_, rtol=1e-9)


@pytest.mark.parametrize("kind", ["float64", "float32", "pandas", "polars", "csr", "csc", "pandas, sparse"])
def test_no_copy_of_the_table_is_made(kind):
    """The extra memory of a fit and of a loss pass is a few numbers per row and a few blocks per thread."""
    big = rng.normal(size=(200_000, 50)).astype(np.float32 if kind == "float32" else np.float64)
    if kind in SPARSE:
        big[rng.random(big.shape) > 0.02] = 0.0
    made = {"pandas": pd.DataFrame, "polars": pl.DataFrame, **SPARSE}.get(kind)
    table = big if made is None else made(big)
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
        (pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.0]), "b": ["secret"] * 2}), "column 'b'"),
        (pd.DataFrame({"a": pd.arrays.SparseArray(["secret", 1], dtype="Sparse[object]")}), "numbers"),
        (sparse.csr_array((0, 3)), "at least one row"),
        (sparse.csr_array((3, 0)), "0 feature"),
    ],
)
def test_what_is_not_a_table_of_numbers_is_refused_without_quoting_it(table, words):
    with pytest.raises(DomainError, match=words) as caught:
        open_table(table)
    assert "secret" not in str(caught.value)
    assert hides_its_cause(caught.value)
