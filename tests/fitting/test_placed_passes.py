"""Every pass that is run where the rows lie finds what the one of NumPy's finds."""

import numpy as np
import pytest
from grids import grid
from own_losses import Direction, LogCosh
from problems import CASES
from spaces import SPACES, host

from expost import LogisticLoss, PseudoHuber, SoftmaxLoss
from expost._common.namespaces import Space
from expost.data.design import Design
from expost.data.encoding import Encoded
from expost.data.placed import PlacedSource
from expost.data.sources import ArraySource
from expost.data.tables import open_table
from expost.engines.base import Kernel
from expost.exceptions import SolverError
from expost.fitting.objective import Objective
from expost.fitting.prediction import Predictors
from expost.fitting.private_fit import inverse_root

RANDOM = np.random.default_rng(2)
ROWS, COLUMNS = 1000, 4
X = RANDOM.normal(size=(ROWS, COLUMNS)) / 2.0
WEIGHTS = RANDOM.random(ROWS)
CLASSES = RANDOM.integers(0, 4, ROWS).astype(float)

LOSSES = [(case.loss, case.labels(RANDOM, ROWS)) for case in CASES]
LOSSES += [
    (LogCosh(0.5), RANDOM.normal(size=ROWS)),
    (SoftmaxLoss(4), CLASSES),
    (SoftmaxLoss(4, cap=0.6), CLASSES),
    (SoftmaxLoss(4, cap=0.6, gradient_cap=0.6), CLASSES),
    (LogisticLoss(cap=0.6, corner=0.75, gradient_cap=0.6), CLASSES % 2),
    (PseudoHuber(0.2, gradient_cap=0.2), RANDOM.normal(size=ROWS)),
    (Direction(), RANDOM.uniform(-3.0, 3.0, ROWS)),
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Several blocks of a small table, cut again where a kernel needs memory."""
    monkeypatch.setattr("expost.data.placed._LEAST_NUMBERS", 1440)


def objectives(place, loss, y, *, intercept, weights):
    """The same objective of the same rows, in NumPy and in another library."""
    design = Design(COLUMNS, 1.0, intercept)
    here = Encoded(ArraySource(open_table(X), y, weights), design)
    there = Encoded(PlacedSource.of(place(X)).labelled(y, weights), design)
    return Objective(here, loss, l2=0.3), Objective(there, loss, l2=0.3)


@pytest.mark.long
@pytest.mark.parametrize("place", SPACES)
@pytest.mark.parametrize(
    ("case", "intercept"),
    grid(LOSSES, [True, False], together=1),
    ids=lambda value: str(value[0]) if isinstance(value, tuple) else str(value),
)
def test_derivatives(place, case, intercept):
    loss, y = case
    here, there = objectives(place, loss, y, intercept=intercept, weights=WEIGHTS if intercept else None)
    theta = RANDOM.normal(size=here.dimension)
    wanted = here.evaluate(theta, hessian=np.float64)
    for precision in (None, np.float32, np.float64):
        got = there.evaluate(theta, hessian=precision)
        np.testing.assert_allclose(got.gradient, wanted.gradient, rtol=1e-12, atol=1e-11)
        assert got.floor == pytest.approx(wanted.floor, rel=1e-10)
        if precision is not None:
            close = 1e-11 if precision == np.float64 else 1e-3
            np.testing.assert_allclose(got.hessian, wanted.hessian, rtol=close, atol=close)
            np.testing.assert_allclose(got.hessian, got.hessian.T, rtol=1e-14)
    direction = RANDOM.normal(size=here.dimension)
    product = there.curvature_product(theta)
    np.testing.assert_allclose(product(direction), wanted.hessian @ direction, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("place", SPACES)
def test_a_thinned_objective_stands_for_all_rows(place):
    loss, y = LOSSES[0]
    _, there = objectives(place, loss, y, intercept=True, weights=None)
    theta = RANDOM.normal(size=there.dimension)
    got = there.thinned(8).evaluate(theta)
    design = Design(COLUMNS, 1.0, True)
    some = Objective(Encoded(ArraySource(open_table(X[::8]), y[::8]), design), loss, l2=0.0)
    wanted = 8.0 * some.evaluate(theta).gradient + 0.3 * theta
    np.testing.assert_allclose(got.gradient, wanted, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("place", SPACES)
def test_predictors_stay_where_the_rows_are(place):
    records = Encoded(PlacedSource.of(place(X)), Design(COLUMNS, 10.0, True))
    coefficients = RANDOM.normal(size=(COLUMNS + 1, 2))
    work = Predictors(coefficients)
    assert isinstance(work, Kernel)
    found = np.concatenate([host(part) for part in records.sweep(work)])
    np.testing.assert_allclose(found, X @ coefficients[:-1] + coefficients[-1], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("place", SPACES)
def test_a_large_hessian_is_factored_where_the_rows_are(place, monkeypatch):
    """There where it is large, with the digits of the one here; and here where that fails."""
    space = Space.of(place(np.zeros(1)))
    hessian = X.T @ X + 0.3 * np.eye(COLUMNS)
    here = inverse_root(hessian, space)
    assert isinstance(here, np.ndarray)
    np.testing.assert_allclose(here @ hessian @ here.T, np.eye(COLUMNS), atol=1e-13)
    monkeypatch.setattr("expost.fitting.private_fit._LARGE", COLUMNS)
    there = host(inverse_root(hessian, space))
    np.testing.assert_array_equal(there, np.tril(there))
    np.testing.assert_allclose(there, here, rtol=1e-12, atol=1e-15)
    with pytest.raises(SolverError, match="not positive definite in double precision; raise `l2`"):
        inverse_root(np.diag([1.0, 1.0, 1.0, -1e-9]), space)
