import math
import sys

import numpy as np
import pytest
import scipy.sparse as sparse
from problems import CASES, design_of, rows_in_ball
from scipy.optimize import minimize as scipy_minimize

from expost import LogisticLoss
from expost.fitting.objective import Objective
from expost.fitting.solvers import (
    Start,
    conjugate_gradients,
    minimize,
    newton,
    newton_cg,
    products_of_a_dense_solver,
)


def problem(case, n=200, d=6, l2=0.5, scale=1.0, tilt_scale=3.0, seed=0):
    rng = np.random.default_rng(seed)
    X, y = rows_in_ball(rng, n, d, norm=scale), case.labels(rng, n)
    design = design_of(X, norm=scale, fit_intercept=True)
    tilt = tilt_scale * rng.normal(size=d + 1)
    return Objective(design.labelled(y), case.loss, l2=l2, tilt=tilt), X, y, tilt


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("solve", [newton, newton_cg], ids=["newton", "newton_cg"])
def test_both_solvers_find_the_minimum(case, solve):
    objective, X, y, tilt = problem(case)
    found = solve(objective, Start.at(objective, np.zeros(7)), tolerance=1e-10)
    assert found.meets(1e-10)
    A = np.column_stack([X, np.ones(len(X))])

    def value(theta):
        return case.loss.value(A @ theta, y).sum() + 0.25 * theta @ theta + tilt @ theta

    peer = scipy_minimize(value, np.zeros(7), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(found.theta, peer.x, atol=1e-5)
    assert value(found.theta) <= peer.fun + 1e-9


@pytest.mark.parametrize("solve", [newton, newton_cg], ids=["newton", "newton_cg"])
@pytest.mark.parametrize("l2", [1e-6, 1e-3, 1e3])
@pytest.mark.parametrize("tilt_scale", [0.0, 1e3])
def test_the_minimum_is_reached_from_far_away(solve, l2, tilt_scale):
    """Separable data, hardly any regularisation, steep tilts: full Newton steps would diverge."""
    rng = np.random.default_rng(2)
    X = rows_in_ball(rng, 60, 3, norm=5.0)
    y = (X[:, 0] > 0).astype(float)
    design = design_of(X, norm=5.0)
    objective = Objective(
        design.labelled(y), LogisticLoss(), l2=l2, tilt=tilt_scale * np.array([1.0, -1.0, 0.5])
    )
    assert solve(objective, Start.at(objective, np.zeros(3)), tolerance=1e-9).meets(1e-9)
    assert solve(objective, Start.at(objective, 50.0 * rng.normal(size=3)), tolerance=1e-9).meets(1e-9)


def test_warm_starts_do_not_change_the_minimum():
    """A table large enough for thinning, sorted by label as real tables are."""
    rng = np.random.default_rng(3)
    case = CASES[0]
    X, y = rows_in_ball(rng, 60_000, 4), np.sort(case.labels(rng, 60_000))
    design = design_of(X, fit_intercept=True)
    objective = Objective(design.labelled(y), case.loss, l2=1.0, tilt=np.ones(5))
    warm = minimize(objective, tolerance=1e-9)
    cold = newton(objective, Start.at(objective, np.zeros(5)), tolerance=1e-9)
    assert warm.meets(1e-9)
    assert cold.meets(1e-9)
    np.testing.assert_allclose(warm.theta, cold.theta, rtol=1e-9, atol=1e-12)


def test_large_dimensions_use_no_matrix():
    rng = np.random.default_rng(4)
    X, y = rows_in_ball(rng, 300, 2100), rng.integers(0, 2, 300).astype(float)
    design = design_of(X)
    objective = Objective(design.labelled(y), LogisticLoss(), l2=0.1, tilt=rng.normal(size=2100))
    found = minimize(objective, tolerance=1e-8)
    assert found.meets(1e-8)
    assert found.evaluation.hessian is None


def wide(n=400, d=1300):
    """Columns of very different sizes, for which conjugate gradients need many products."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(n, d)) * np.exp(-np.arange(d) * 2.0 / d) + 0.5
    X /= 1.001 * np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(0, 2, n).astype(float)
    tilt = 0.1 * rng.normal(size=d)
    return Objective(design_of(X).labelled(y), LogisticLoss(), l2=1.0, tilt=tilt)


@pytest.mark.parametrize(("products", "matrix"), [(None, False), (3, True)])
def test_slow_conjugate_gradients_give_way_to_hessians(monkeypatch, products, matrix):
    """Both ways end at the same point; how many products are allowed decides which is taken."""
    objective = wide()
    if products is not None:
        monkeypatch.setitem(minimize.__globals__, "products_of_a_dense_solver", lambda _: products)
    start = Start.at(objective, np.zeros(1300))
    found, dense = minimize(objective, tolerance=1e-9), newton(objective, start, tolerance=1e-9)
    assert found.meets(1e-9)
    assert (newton_cg(objective, start, tolerance=1e-9, products=products).meets(1e-9)) != matrix
    np.testing.assert_allclose(found.theta, dense.theta, atol=2e-9)


def test_conjugate_gradients_stop_where_they_were_told_to(monkeypatch):
    objective, *_ = problem(CASES[0])
    calls = 0
    multiply = Objective.curvature_product

    def counted(self, theta):
        product = multiply(self, theta)

        def once(direction):
            nonlocal calls
            calls += 1
            return product(direction)

        return once

    monkeypatch.setattr(Objective, "curvature_product", counted)
    for products in (0, 1, 5):
        calls = 0
        found = newton_cg(objective, Start.at(objective, np.zeros(7)), tolerance=1e-10, products=products)
        assert calls <= products
        assert not found.meets(1e-10)
        assert found.evaluation.norm <= objective.evaluate(np.zeros(7)).norm


@pytest.mark.parametrize(("n", "d"), [(300, 2000), (10_000, 2000), (10_000, 5000)])
def test_the_cost_of_a_dense_solver_grows_with_columns_and_falls_with_stored_ones(n, d):
    stored = d // 100
    columns = (np.arange(n)[:, None] + 100 * np.arange(stored)) % d
    edges = np.arange(0, n * stored + 1, stored)
    X = sparse.csr_array((np.full(n * stored, 0.1), columns.ravel(), edges), shape=(n, d))
    thin = Objective(design_of(X).labelled(np.zeros(n)), LogisticLoss(), l2=1.0)
    expected = 5 * (d / 250 + d * d / (200 * n)) * d / stored
    assert products_of_a_dense_solver(thin) == round(expected)


def test_curvatures_that_underflow_in_single_precision_cost_no_digit():
    """Rows far on the right side have curvatures of 1e-60 beside others of 0.2."""
    rng = np.random.default_rng(8)
    X = rows_in_ball(rng, 500, 4, norm=300.0)
    objective = Objective(design_of(X, norm=300.0).labelled(np.zeros(500)), LogisticLoss(), l2=1e-3)
    theta = np.array([1.0, -1.0, 0.5, 0.2])
    single = objective.evaluate(theta, hessian=np.float32).hessian
    double = objective.evaluate(theta, hessian=np.float64).hessian
    np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-5 * np.abs(double).max())


def test_an_unsolvable_problem_is_reported():
    """With l2 far below rounding the Hessian is singular in double precision; the solver says so."""
    X = np.ones((10, 2))
    design = design_of(X, norm=2.0)
    objective = Objective(design.labelled(np.ones(10)), LogisticLoss(), l2=1e-300, tilt=np.array([1.0, -1.0]))
    assert not minimize(objective, tolerance=1e-10).meets(1e-10)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_last_pass_can_be_left_to_the_caller(case, monkeypatch):
    """With fewer passes the end is as close to the minimum as was asked."""
    objective, *_ = problem(case, n=3000)
    passes, evaluate = [], Objective.evaluate
    monkeypatch.setattr(
        Objective, "evaluate", lambda *rest, **more: passes.append(1) or evaluate(*rest, **more)
    )
    truth = newton(objective, Start.at(objective, np.zeros(7)), tolerance=1e-12)
    all_passes = len(passes)
    passes.clear()
    found = newton(objective, Start.at(objective, np.zeros(7)), tolerance=1e-12, unseen=1e-7)
    # With a Hessian in double precision the first step of a squared loss is the last.
    assert len(passes) < all_passes or all_passes == 2
    assert np.linalg.norm(found.theta - truth.theta) <= 1e-7


def test_a_large_fit_takes_few_passes(monkeypatch):
    """Two with a Hessian and two without, or fewer, and one for the certificate."""
    import expost
    from expost.fitting.certified.certify import _Search

    passes, visits, evaluate, visit = [], [], Objective.evaluate, _Search._visit

    def counted(self, *rest, **more):
        if self.stand_for is None:
            passes.append(more.get("hessian"))
        return evaluate(self, *rest, **more)

    monkeypatch.setattr(Objective, "evaluate", counted)
    monkeypatch.setattr(_Search, "_visit", lambda *rest, **more: visits.append(1) or visit(*rest, **more))
    rng = np.random.default_rng(0)
    X = rows_in_ball(rng, 60_000, 5)
    y = (rng.random(60_000) < 1 / (1 + np.exp(-4 * X[:, 0]))).astype(int)
    expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=0).fit(X, y)
    # The last evaluation is that of a small table at its published coefficients.
    assert len([one for one in passes if one is np.float32]) <= 2
    assert len(passes) <= 5
    assert len(visits) == 1


@pytest.mark.parametrize(("name", "hessians"), [("_ENOUGH_PER_COLUMN", 0), ("_SOME_PER_COLUMN", 1)])
def test_a_hessian_of_fewer_rows_serves_for_all_of_them(monkeypatch, name, hessians):
    """The minimum is the same, and no Hessian of all rows was taken, or one of fewer."""
    random = np.random.default_rng(3)
    X = rows_in_ball(random, 40_000, 4)
    y = (X[:, 0] + random.normal(size=len(X)) > 0.0).astype(float)
    design = design_of(X, fit_intercept=True)
    tilt = random.normal(size=5)
    objective = Objective(design.labelled(y), LogisticLoss(), l2=0.5, tilt=tilt)
    wanted = minimize(objective, tolerance=1e-9)
    taken = []
    evaluate = Objective.evaluate

    def counted(self, theta, *, hessian=None):
        found = evaluate(self, theta, hessian=hessian)
        taken.append((found.of_fewer_rows, hessian is not None))
        return found

    monkeypatch.setattr(Objective, "evaluate", counted)
    monkeypatch.setattr(sys.modules["expost.fitting.solvers"], name, 500)
    # So few rows have the Hessian of all of them to a few percent only.
    monkeypatch.setattr(sys.modules["expost.fitting.solvers"], "_GOOD_REDUCTION", 0.1)
    found = minimize(objective, tolerance=1e-9, unseen=1e-7)
    assert taken.count((False, True)) <= hessians
    assert taken[[fewer for fewer, _ in taken].index(False)] == (False, False)  # the first step has another's
    assert (True, True) in taken
    assert np.linalg.norm(found.theta - wanted.theta) <= 1e-7


def test_conjugate_gradients_end_with_the_best_that_rounding_leaves():
    """A goal of zero is out of reach of doubles; twice as many products as numbers are enough."""
    hilbert = 1.0 / (1.0 + np.add.outer(np.arange(6.0), np.arange(6.0)))
    solution, taken = conjugate_gradients(lambda vector: hilbert @ vector, np.ones(6), 0.0, math.inf)
    assert taken == 12
    assert np.linalg.norm(hilbert @ solution - 1.0) < 1e-6
