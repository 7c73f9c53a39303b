import numpy as np
import pytest
from problems import CASES, design_of, gradient_and_hessian, rows_in_ball, with_intercept

from expost.fitting.objective import Objective


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n", [3, 40_000])  # one block in one thread, and many in several
def test_derivatives_are_those_of_the_sum(case, fit_intercept, n):
    rng = np.random.default_rng(n)
    X, y = rows_in_ball(rng, n, 20), case.labels(rng, n)
    A = with_intercept(X, fit_intercept)
    theta, tilt = rng.normal(size=(2, A.shape[1]))
    design = design_of(X, fit_intercept=fit_intercept)
    objective = Objective(design.labelled(y), case.loss, l2=0.3, tilt=tilt)
    gradient, hessian = gradient_and_hessian(case, A, y, theta, l2=0.3)

    here = objective.evaluate(theta, hessian=np.float64)
    np.testing.assert_allclose(here.gradient, gradient, rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(here.tilted_gradient, gradient + tilt, rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(here.hessian, hessian, rtol=1e-11, atol=1e-10)
    assert here.precise
    coarse = objective.evaluate(theta, hessian=np.float32)
    np.testing.assert_allclose(coarse.hessian, hessian, rtol=1e-4, atol=1e-4 * np.abs(hessian).max())
    assert not coarse.precise
    np.testing.assert_allclose(
        objective.curvature_product(theta)(tilt), hessian @ tilt, rtol=1e-10, atol=1e-9
    )


def test_the_rounding_floor_covers_the_rounding():
    """The gradient in extended precision differs by less than the floor, and the floor is not absurd."""
    rng = np.random.default_rng(0)
    case = CASES[0]
    X, y = rows_in_ball(rng, 30_000, 10), case.labels(rng, 30_000)
    design = design_of(X)
    theta = 3.0 * rng.normal(size=10)
    here = Objective(design.labelled(y), case.loss, l2=0.3).evaluate(theta)
    wide = X.astype(np.longdouble)
    p = 1 / (1 + np.exp(-(wide @ theta)))
    truth = wide.T @ (p - y) + np.longdouble(0.3) * theta
    error = float(np.linalg.norm(here.gradient - truth))
    assert error < here.floor < 1e-9
