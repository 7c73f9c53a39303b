"""Fits and exact losses where the cap of a row follows its length, against formulas written out by hand."""

import numpy as np
import pytest
from problems import capped_curvature, capped_slope, design_of, rows_in_ball, sigmoid, with_intercept

import expost
from expost import LogisticLoss, PseudoHuber, calibrate
from expost._common import kernels
from expost.fitting.ex_post import ex_post_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import SeededNoise
from expost.privacy.shapes import default_threshold

SIGMA, L2 = 1.3, 0.4
BINARY = LogisticLoss(cap=0.45, corner=0.8, gradient_cap=0.45 * np.sqrt(2.0))
HUBER = PseudoHuber(0.2, gradient_cap=0.2 * np.sqrt(2.0))


def level(loss, row):
    reach = loss.gradient_cap / getattr(loss, "cap", getattr(loss, "threshold", None))
    return 2.0 ** (np.floor(64 * np.log2(reach / np.linalg.norm(row)) - 1e-9) / 64)


def derivatives(loss, row, y, theta):
    """Slope and curvature of one row, from the textbook."""
    eta, factor = row @ theta, max(level(loss, row), 1.0)
    if loss is HUBER:
        width, residual = 0.2 * min(factor, 16.0), eta - y
        return residual / np.sqrt(1 + (residual / width) ** 2), (1 + (residual / width) ** 2) ** -1.5
    side, cap = 1 - 2 * y, 0.45 * factor
    if cap >= 1.0:
        return sigmoid(eta) - y, sigmoid(eta) * sigmoid(-eta)
    return side * capped_slope(side * eta, cap, 0.8), capped_curvature(side * eta, cap, 0.8)


def log_density(theta, rows, labels, loss):
    gradient, hessian = L2 * theta, L2 * np.eye(len(theta))
    for row, y in zip(rows, labels, strict=True):
        slope, curvature = derivatives(loss, row, y, theta)
        gradient, hessian = gradient + slope * row, hessian + curvature * np.outer(row, row)
    return -gradient @ gradient / (2 * SIGMA**2) + np.linalg.slogdet(hessian)[1]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", [BINARY, HUBER], ids=str)
def test_exact_losses_are_the_ratio_of_densities(loss, intercept, compiled, monkeypatch, remembered):
    if not compiled:
        monkeypatch.setattr(kernels, "library", lambda: None)
    rng = np.random.default_rng(5)
    n, d = 14, 3
    X = rows_in_ball(rng, n + 3, d, norm=1.0 if intercept else np.sqrt(2.0))
    y = rng.normal(size=n + 3) if loss is HUBER else rng.integers(0, 2, n + 3) * 1.0
    norm = 1.0 if intercept else np.sqrt(2.0)
    plan = calibrate(loss=loss, sigma=SIGMA, l2=L2, norm=norm, fit_intercept=intercept)
    inside, outside = (
        design_of(rows, norm=norm, fit_intercept=intercept).labelled(labels)
        for rows, labels in ((X[:n], y[:n]), (X[n:], y[n:]))
    )
    release, private = perturb(plan, inside, noise=SeededNoise(d))
    rows, theta = with_intercept(X, intercept), release.coefficients
    levels = {level(loss, row) for row in rows}
    assert len(levels) > 5
    here = log_density(theta, rows[:n], y[:n], loss)
    members = ex_post_terms(private, inside, loss, member=True)
    truth = [
        here - log_density(theta, np.delete(rows[:n], i, axis=0), np.delete(y[:n], i), loss) for i in range(n)
    ]
    np.testing.assert_allclose(members.signed, truth, rtol=1e-10, atol=1e-12)
    outsiders = ex_post_terms(private, outside, loss, member=False)
    truth = [
        here - log_density(theta, np.vstack([rows[:n], rows[n + i]]), np.append(y[:n], y[n + i]), loss)
        for i in range(3)
    ]
    np.testing.assert_allclose(outsiders.signed, truth, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("estimator", ["classes", "regression", "several classes"])
def test_rows_of_full_length_are_fitted_as_under_one_cap(estimator):
    """Bit for bit: the plan differs in nothing but how it is described."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3))
    X /= np.linalg.norm(X, axis=1)[:, None] * (1.0 + 1e-12)
    options = {"norm": 1.0, "random_state": 0}
    if estimator == "regression":
        y = X[:, 0]
        new = expost.LinearRegression(**options, outcome=(-1.0, 1.0))
        old = expost.LinearRegression(**options, outcome=(-1.0, 1.0), threshold=default_threshold(1.0, 1e-6))
    else:
        y = np.digitize(X[:, 0], [0.0, 0.4] if estimator == "several classes" else [0.0])
        classes = sorted(set(y.tolist()))
        new = expost.LogisticRegression(**options, classes=classes)
    new.fit(X, y, account=None)
    loss = new.plan_.loss
    assert loss.gradient_cap is not None
    if estimator != "regression":
        old = expost.LogisticRegression(**options, classes=classes, cap=loss.cap)
    old.fit(X, y, account=None)
    assert old.plan_.loss.gradient_cap is None
    assert (new.plan_.sigma, new.plan_.l2) == (old.plan_.sigma, old.plan_.l2)
    np.testing.assert_array_equal(new.coef_, old.coef_)
    np.testing.assert_array_equal(new.ex_post_losses(X, y), old.ex_post_losses(X, y))
    # A table with shorter rows is another fit.
    shorter = X * rng.uniform(0.1, 1.0, 300)[:, None]
    assert not np.array_equal(new.fit(shorter, y).coef_, old.fit(shorter, y).coef_)
