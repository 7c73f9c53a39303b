"""Every kind of table gives the same rows and the same fit."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sparse
from problems import all_rows, design_of, hides_its_cause
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import expost
from expost.data.blocks import as_dense
from expost.data.tables import open_table
from expost.exceptions import DomainError
from expost.fitting.objective import Objective
from expost.fitting.solvers import minimize

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


def _arrow(table):
    return pl.DataFrame(table, schema=NAMES).to_arrow()


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
    "arrow": _arrow(X),
    "arrow, in several chunks": pa.concat_tables([_arrow(X[:7]), _arrow(X[7:])]),
    "polars, in several chunks": pl.concat(
        [pl.DataFrame(X[:7], schema=NAMES), pl.DataFrame(X[7:], schema=NAMES)], rechunk=False
    ),
    "polars, float32": pl.DataFrame(X.astype(np.float32), schema=NAMES),
    "pandas, column by column": pd.DataFrame({name: X[:, k].copy() for k, name in enumerate(NAMES)}),
    "pandas, made from a matrix": pd.DataFrame(np.asfortranarray(X), columns=NAMES, copy=False),
    "pandas on arrow": pd.DataFrame(X, columns=NAMES).astype("double[pyarrow]"),
    "pandas, nullable": pd.DataFrame(X, columns=NAMES).astype("Float64"),
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


COLUMNS = [
    kind for kind in KINDS if "pandas" in kind or "polars" in kind or "arrow" in kind or kind[0] in "Ff"
]


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("norm", [0.3, 2.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_rows_in_either_layout_are_those_of_a_matrix(kind, norm, fit_intercept):
    """Dense rows to the bit, rows for products up to rounding, all of them in the ball."""
    options = {"norm": norm, "fit_intercept": fit_intercept}
    table, plain = design_of(KINDS[kind], **options), all_rows(design_of(X, **options))
    np.testing.assert_array_equal(all_rows(table), plain)
    found = all_rows(table, products=True)
    if "sparse" in kind or "empty" in kind:
        found = found @ np.eye(plain.shape[1])
    np.testing.assert_allclose(found, plain, rtol=1e-15)
    features = found[:, :-1] if fit_intercept else found
    assert np.all(np.linalg.norm(features, axis=1) <= norm * (1 + 1e-15))


@pytest.mark.parametrize("kind", COLUMNS)
def test_derivatives_do_not_depend_on_the_layout(kind):
    """Gradient, Hessian in both precisions and its product with a vector."""
    theta, direction = rng.normal(size=(2, 5))

    def objective(table):
        records = design_of(table, norm=0.3, fit_intercept=True).labelled(Y.astype(float))
        return Objective(records, expost.LogisticLoss(), l2=1.0)

    one, other = objective(KINDS[kind]), objective(X)
    np.testing.assert_allclose(one.evaluate(theta).gradient, other.evaluate(theta).gradient, rtol=1e-12)
    for precision in (np.float32, np.float64):
        here, there = (each.evaluate(theta, hessian=precision).hessian for each in (one, other))
        np.testing.assert_array_equal(here, there)
    here, there = (each.curvature_product(theta)(direction) for each in (one, other))
    np.testing.assert_allclose(here, there, rtol=1e-12)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": [0.5, None], "b": [1, 0]}),
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [1, 0]}),
        pd.DataFrame({"a": pd.array([0.5, None], dtype="Float64"), "b": [1, 0]}),
        pd.DataFrame({"a": pd.array([0.5, None], dtype="double[pyarrow]"), "b": [1, 0]}),
        pl.DataFrame({"a": [0.5, None], "b": [1, 0]}),
        pl.DataFrame({"a": [1, None], "b": [1, 0]}),
        pl.DataFrame({"a": [0.5, float("nan")], "b": [1, 0]}),
        pl.DataFrame({"a": [1, None], "b": [1, 0]}).to_arrow(),
        pa.table({"a": [0.5, float("inf")], "b": [1, 0]}),
        pl.DataFrame({"a": [True, None], "b": [1, 0]}),
        pa.table({"a": [True, None], "b": [1, 0]}),
    ],
)
def test_missing_cells_of_a_frame_are_refused(table):
    with pytest.raises(DomainError, match="NaN or infinity"):
        fitted(table, [0, 1])
    with pytest.raises(DomainError, match="NaN or infinity"):
        all_rows(design_of(table))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [True, False, True], "b": [1, 2, 3], "c": np.float32([0.5, 0.25, 2.0])}),
        pl.DataFrame({"a": [True, False, True], "b": [1, 2, 3], "c": np.float32([0.5, 0.25, 2.0])}),
        pa.table({"a": [True, False, True], "b": [1, 2, 3], "c": np.float32([0.5, 0.25, 2.0])}),
        pd.DataFrame({"a": [True, False, True], "b": [1, 2, 3], "c": [0.5, 0.25, 2.0]}).convert_dtypes(),
    ],
)
@pytest.mark.parametrize("products", [False, True])
def test_truth_values_and_whole_numbers_of_a_frame_are_numbers(frame, products):
    expected = [[1.0, 1.0, 0.5], [0.0, 2.0, 0.25], [1.0, 3.0, 2.0]]
    np.testing.assert_array_equal(all_rows(design_of(frame, norm=10.0), products=products), expected)


def test_columns_are_read_where_they_lie():
    """What a library can show without a copy is not copied."""
    table = np.asfortranarray(X)
    frames = [
        pd.DataFrame({name: table[:, k] for k, name in enumerate(NAMES)}, copy=False),
        pl.DataFrame(table, schema=NAMES),
        _arrow(table),
        _arrow(table).to_pandas(types_mapper=pd.ArrowDtype),
    ]
    for frame in frames:
        found = open_table(frame)
        again = [found.rows(0, 10) for _ in range(2)]
        if isinstance(again[0], np.ndarray):
            assert np.shares_memory(*again)
        else:
            assert all(
                np.shares_memory(*pair) for pair in zip(*(rows.columns for rows in again), strict=True)
            )


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
    np.testing.assert_allclose(few.summed(pulls), pulls @ full, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(again, full)
    directions, forces = rng.normal(size=(dense.design.dimension, 3)), rng.normal(size=(3, 300))
    np.testing.assert_allclose(few @ directions, full @ directions, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(few.summed(forces.T), forces @ full, rtol=1e-12, atol=1e-13)
    assert len(few) == len(full)


def test_several_classes_of_sparse_rows_are_fitted_without_a_dense_table():
    """The coefficients of three classes count twice; less than a tenth of a dense table is enough."""
    n, d = 800, 3000
    places = (np.repeat(np.arange(n), 10), rng.integers(0, d, 10 * n))
    table = sparse.coo_array((rng.normal(size=10 * n), places), shape=(n, d)).tocsr()
    labels = rng.integers(0, 3, n).astype(float)
    objective = Objective(
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
    dense = Objective(
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


def test_columns_of_several_types_may_be_named_by_numbers():
    table = open_table(pd.DataFrame({0: [0.5, 1.5], 1: [2, 3], 2: [True, False]}))
    np.testing.assert_array_equal(as_dense(table.rows(0, 2)), [[0.5, 2.0, 1.0], [1.5, 3.0, 0.0]])


@pytest.mark.parametrize(
    "kind",
    [
        *("pandas", "csr"),
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in ("float32", "float64", "polars", "csc", "pandas, sparse")
        ),
    ],
)
def test_no_copy_of_the_table_is_made(kind):
    """The extra memory of a fit and of a loss pass is a few numbers per row and a few blocks per thread."""
    big = rng.normal(size=(150_000, 50)).astype(np.float32 if kind == "float32" else np.float64)
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


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_labels_of_a_frame_are_those_of_the_column_that_the_domain_declares(library):
    domain = expost.Domain(
        features=(expost.Number(name="age", low=0.0, high=100.0),),
        label=expost.ClassLabel(name="ill", classes=("no", "yes")),
    )
    frame = library({"ill": ["no", "yes", "yes"] * 20, "age": list(range(60))})
    apart = {"age": list(range(60))}, ["no", "yes", "yes"] * 20
    fitted = [
        expost.LogisticRegression(domain=domain, random_state=0).fit(*table)
        for table in ((frame,), (frame, "ill"), apart)
    ]
    for model in fitted[:2]:
        np.testing.assert_array_equal(model.coef_, fitted[2].coef_)
        np.testing.assert_array_equal(model.ex_post_losses(frame), fitted[2].ex_post_losses(*apart))
    publication = fitted[0].publication_
    np.testing.assert_array_equal(publication.bounds(frame).total, publication.bounds(*apart).total)
    with pytest.raises(DomainError, match="requires y"):
        expost.LogisticRegression(domain=domain).fit({"age": [1.0]})
