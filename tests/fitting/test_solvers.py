import numpy as np
import pytest
from problems import CASES, design_of, rows_in_ball
from scipy.optimize import minimize as scipy_minimize

from expost import LogisticLoss
from expost.fitting.objective import Objective
from expost.fitting.solvers import minimize
from expost.fitting.solvers.newton import newton
from expost.fitting.solvers.newton_cg import newton_cg


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
    found = solve(objective, np.zeros(7), tolerance=1e-10)
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
    assert solve(objective, np.zeros(3), tolerance=1e-9).meets(1e-9)
    assert solve(objective, 50.0 * rng.normal(size=3), tolerance=1e-9).meets(1e-9)


def test_warm_starts_do_not_change_the_minimum():
    """A table large enough for thinning, sorted by label as real tables are."""
    rng = np.random.default_rng(3)
    case = CASES[0]
    X, y = rows_in_ball(rng, 60_000, 4), np.sort(case.labels(rng, 60_000))
    design = design_of(X, fit_intercept=True)
    objective = Objective(design.labelled(y), case.loss, l2=1.0, tilt=np.ones(5))
    warm, cold = minimize(objective, tolerance=1e-9), newton(objective, np.zeros(5), tolerance=1e-9)
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


def test_an_unsolvable_problem_is_reported():
    """With l2 far below rounding the Hessian is singular in double precision; the solver says so."""
    X = np.ones((10, 2))
    design = design_of(X, norm=2.0)
    objective = Objective(design.labelled(np.ones(10)), LogisticLoss(), l2=1e-300, tilt=np.array([1.0, -1.0]))
    assert not minimize(objective, tolerance=1e-10).meets(1e-10)
