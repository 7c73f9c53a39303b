"""The objective of several linear predictors against sums that are written out, and its minimiser."""

import numpy as np
import pytest
from problems import design_of, rows_in_ball, with_intercept
from sklearn.linear_model import LogisticRegression

from expost import LogisticLoss
from expost.fitting.objective import Objective
from expost.fitting.solvers import Start, minimize, newton_cg
from expost.losses import SoftmaxLoss
from expost.losses.softmax import centring

LOSSES = [SoftmaxLoss(2), SoftmaxLoss(3), SoftmaxLoss(5, cap=0.6)]


def written_out(loss, A, y, w, l2):
    """Gradient and Hessian of the objective without noise, record by record."""
    gradient, hessian = l2 * w, l2 * np.eye(len(w))
    W = w.reshape(loss.outputs, A.shape[1])
    slopes, factors = loss.derivatives(A @ W.T, y)
    for x, v, F in zip(A, slopes, factors, strict=True):
        gradient = gradient + np.kron(v, x)
        hessian = hessian + np.kron(F @ F.T, np.outer(x, x))
    return gradient, hessian


def classes_of(rng, X, K, steep=5.0):
    scores = steep * X @ rng.normal(size=(X.shape[1], K)) + rng.gumbel(size=(len(X), K))
    return np.argmax(scores, axis=1).astype(float)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n", [3, 2_000])
def test_derivatives_are_those_of_the_sum(loss, fit_intercept, n):
    rng = np.random.default_rng(n)
    X = rows_in_ball(rng, n, 4)
    y = rng.integers(0, loss.classes, n).astype(float)
    A, design = with_intercept(X, fit_intercept), design_of(X, fit_intercept=fit_intercept)
    D = loss.coefficient_count(design.design.dimension)
    w, tilt = rng.normal(size=(2, D))
    objective = Objective(design.labelled(y), loss, l2=0.3, tilt=tilt)
    assert (objective.dimension, objective.columns) == (loss.outputs * A.shape[1], A.shape[1])
    gradient, hessian = written_out(loss, A, y, w, 0.3)
    here = objective.evaluate(w, hessian=np.float64)
    np.testing.assert_allclose(here.gradient, gradient, rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(here.tilted_gradient, gradient + tilt, rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(here.hessian, hessian, rtol=1e-11, atol=1e-10)
    np.testing.assert_array_equal(here.hessian, here.hessian.T)
    coarse = objective.evaluate(w, hessian=np.float32)
    np.testing.assert_allclose(coarse.hessian, hessian, rtol=0, atol=1e-5 * np.abs(hessian).max())
    np.testing.assert_allclose(objective.curvature_product(w)(tilt), hessian @ tilt, rtol=1e-10, atol=1e-10)


def test_many_rows_in_blocks_are_the_sum_of_their_parts():
    rng = np.random.default_rng(1)
    loss, X = SoftmaxLoss(4), rows_in_ball(rng, 70_000, 9)
    y, w = rng.integers(0, 4, 70_000).astype(float), rng.normal(size=27)
    whole = Objective(design_of(X).labelled(y), loss, l2=1e-9).evaluate(w, hessian=np.float64)
    gradient, hessian = np.zeros(27), np.zeros((27, 27))
    for part in np.array_split(np.arange(70_000), 7):
        piece = Objective(design_of(X[part]).labelled(y[part]), loss, l2=0.0).evaluate(w, hessian=np.float64)
        gradient += piece.gradient
        hessian += piece.hessian
    np.testing.assert_allclose(whole.gradient, gradient, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(whole.rows_hessian, hessian, rtol=1e-9, atol=1e-6)


def test_the_rounding_floor_covers_the_rounding():
    """The gradient in extended precision differs by less than the floor, and the floor is not absurd."""
    rng = np.random.default_rng(0)
    loss, X = SoftmaxLoss(4), rows_in_ball(rng, 20_000, 6)
    y, w = rng.integers(0, 4, 20_000), 3.0 * rng.normal(size=18)
    here = Objective(design_of(X).labelled(y.astype(float)), loss, l2=0.3).evaluate(w)
    wide, Q = X.astype(np.longdouble), centring(4).astype(np.longdouble)
    p = np.exp(wide @ w.reshape(3, 6).T.astype(np.longdouble) @ Q.T)
    p /= p.sum(axis=1)[:, None]
    p[np.arange(len(y)), y] -= 1
    truth = ((p @ Q).T @ wide).ravel() + np.longdouble(0.3) * w
    assert float(np.linalg.norm(here.gradient - truth)) < here.floor < 1e-9


@pytest.mark.parametrize("classes", [3, 5, 10])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_without_noise_the_minimiser_is_scikit_learns_multinomial_fit(classes, fit_intercept):
    rng = np.random.default_rng([classes, fit_intercept])
    X = rows_in_ball(rng, 4_000, 6)
    y = classes_of(rng, X, classes)
    A, l2 = with_intercept(X, fit_intercept), 0.5
    objective = Objective(design_of(X, fit_intercept=fit_intercept).labelled(y), SoftmaxLoss(classes), l2=l2)
    found = minimize(objective, tolerance=1e-10)
    assert found.meets(1e-10)
    coefficients = centring(classes) @ found.theta.reshape(classes - 1, A.shape[1])
    peer = LogisticRegression(C=1 / l2, fit_intercept=False, solver="newton-cholesky", tol=1e-12)
    np.testing.assert_allclose(coefficients, peer.fit(A, y).coef_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(coefficients.sum(axis=0), 0.0, atol=1e-12)


@pytest.mark.parametrize("cap", [1.0, 0.6])
def test_two_classes_are_the_logistic_fit_with_half_the_penalty(cap):
    """``softmax(λ, b)`` at w is ``logistic(λ/2, b/√2)`` at -√2 w."""
    rng = np.random.default_rng(2)
    X, y = rows_in_ball(rng, 500, 3), rng.integers(0, 2, 500).astype(float)
    tilt = rng.normal(size=3)
    soft = minimize(
        Objective(design_of(X).labelled(y), SoftmaxLoss(2, cap), l2=0.8, tilt=tilt), tolerance=1e-11
    )
    scalar = Objective(design_of(X).labelled(y), LogisticLoss(cap=cap), l2=0.4, tilt=-tilt / np.sqrt(2.0))
    theta = minimize(scalar, tolerance=1e-11).theta
    np.testing.assert_allclose(-np.sqrt(2.0) * soft.theta, theta, rtol=1e-10, atol=1e-12)


def test_the_matrix_free_solver_finds_the_same_minimiser():
    rng = np.random.default_rng(3)
    X = rows_in_ball(rng, 800, 5)
    loss = SoftmaxLoss(4, cap=0.7)
    objective = Objective(
        design_of(X).labelled(classes_of(rng, X, 4)), loss, l2=0.5, tilt=4.0 * rng.normal(size=15)
    )
    dense = minimize(objective, tolerance=1e-10)
    free = newton_cg(objective, Start.at(objective, np.zeros(15)), tolerance=1e-10)
    assert dense.meets(1e-10)
    assert free.meets(1e-10)
    np.testing.assert_allclose(free.theta, dense.theta, rtol=0, atol=1e-9)
