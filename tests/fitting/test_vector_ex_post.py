"""Exact losses of several classes against brute-force ratios of densities."""

from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from problems import design_of, rows_in_ball, with_intercept
from test_vector_objective import classes_of, written_out

from expost import LogisticLoss
from expost.exceptions import SolverError
from expost.fitting.ex_post import ex_post_terms
from expost.fitting.objective import Objective
from expost.fitting.private_fit import PrivateFit
from expost.fitting.solvers import minimize
from expost.losses import SoftmaxLoss
from expost.losses.softmax import centring

SIGMA, L2 = 1.3, 0.4


def fitted(loss, design, y, *, seed, sigma=SIGMA, l2=L2, at=None):
    """What the curator keeps after a fit, or after a release of ``at``."""
    objective = Objective(design.labelled(y), loss, l2=l2)
    if at is None:
        tilt = sigma * np.random.default_rng(seed).normal(size=objective.dimension)
        at = minimize(Objective(design.labelled(y), loss, l2=l2, tilt=tilt), tolerance=1e-11).theta
    here = objective.evaluate(at, hessian=np.float64)
    return PrivateFit(at, here.gradient, here.hessian, SimpleNamespace(sigma=sigma), here.norm, here.floor)


def log_density(loss, A, y, w):
    """The log density of a release, up to a constant: that of the noise, times the Jacobian."""
    gradient, hessian = written_out(loss, A, y, w, L2)
    return -gradient @ gradient / (2 * SIGMA**2) + np.linalg.slogdet(hessian)[1]


@pytest.mark.parametrize("classes", [2, 3, 5, 10])
@pytest.mark.parametrize("cap", [1.0, 0.6])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("d", [1, 4])
def test_exact_losses_are_the_ratio_of_densities(classes, cap, fit_intercept, d):
    rng = np.random.default_rng([classes, d])
    n, loss = 15, SoftmaxLoss(classes, cap)
    X, y = rows_in_ball(rng, n + 3, d), rng.integers(0, classes, n + 3).astype(float)
    A = with_intercept(X, fit_intercept)
    inside, outside = (design_of(part, fit_intercept=fit_intercept) for part in (X[:n], X[n:]))
    private = fitted(loss, inside, y[:n], seed=d)
    w = private.coefficients
    here = log_density(loss, A[:n], y[:n], w)
    members = ex_post_terms(private, inside.labelled(y[:n]), loss, member=True)
    without = [np.delete(np.arange(n), i) for i in range(n)]
    truth = [here - log_density(loss, A[rest], y[rest], w) for rest in without]
    np.testing.assert_allclose(members.signed, truth, rtol=1e-9, atol=1e-11)
    assert np.all(members.determinant >= 0)
    outsiders = ex_post_terms(private, outside.labelled(y[n:]), loss, member=False)
    joined = [np.append(np.arange(n), n + i) for i in range(3)]
    truth = [here - log_density(loss, A[more], y[more], w) for more in joined]
    np.testing.assert_allclose(outsiders.signed, truth, rtol=1e-9, atol=1e-11)
    assert np.all(outsiders.determinant <= 0)


def precise_losses(loss, A, y, w, record, *, member):
    """The signed loss of one record with 400 digits, from densities of the two tables."""
    K, d = loss.classes, A.shape[1]
    Q = mpmath.matrix(centring(K).tolist())
    W = mpmath.matrix(w.reshape(K - 1, d).tolist())

    def parts(x, label):
        s = Q * (W * mpmath.matrix(x.tolist()))
        others = [mpmath.mpf(0) if j == label else mpmath.exp(s[j]) for j in range(K)]
        total = mpmath.fsum(others)
        q = total / (total + mpmath.exp(s[label]))
        pi = mpmath.matrix([part / total for part in others])
        h = pi.copy()
        h[label] -= 1
        bend = q * (mpmath.diag(list(pi)) - pi * pi.T) + q * (1 - q) * h * h.T
        return q * (Q.T * h), Q.T * bend * Q

    def moments(rows, labels):
        gradient, hessian = mpmath.mpf(L2) * mpmath.matrix(w.tolist()), mpmath.mpf(L2) * mpmath.eye(len(w))
        for x, label in zip(rows, labels, strict=True):
            v, bend = parts(x, int(label))
            for a in range(K - 1):
                for i in range(d):
                    gradient[a * d + i] += v[a] * mpmath.mpf(float(x[i]))
                    for b in range(K - 1):
                        for j in range(d):
                            product = mpmath.mpf(float(x[i])) * mpmath.mpf(float(x[j]))
                            hessian[a * d + i, b * d + j] += bend[a, b] * product
        square = mpmath.fsum(entry**2 for entry in gradient)
        return -square / (2 * mpmath.mpf(SIGMA) ** 2) + mpmath.log(mpmath.det(hessian))

    rest = np.delete(np.arange(len(y)), record)
    whole, less = moments(A, y), moments(A[rest], y[rest])
    return whole - less if member else less - whole


@pytest.mark.parametrize("classes", [3, 5, 10])
@pytest.mark.parametrize("member", [True, False])
def test_losses_keep_their_digits_down_to_probabilities_of_1e_minus_300(classes, member):
    """Records that the model explains all but perfectly, against 400 digits."""
    rng = np.random.default_rng([7, classes])
    loss, d = SoftmaxLoss(classes), 2
    X = rows_in_ball(rng, 5, d)
    w = 3.0 * rng.normal(size=(classes - 1) * d)
    scores = X @ (centring(classes) @ w.reshape(classes - 1, d)).T
    y = np.argmax(scores, axis=1).astype(float)
    for size in (1.0, 40.0, 690.0):
        # Scale so that the last record's own probability misses one by about e^-size.
        gap = np.sort(scores[-1])[-1] - np.sort(scores[-1])[-2]
        at = w * (size / gap)
        table = slice(None) if member else slice(0, 4)
        private = fitted(loss, design_of(X[table]), y[table], seed=0, at=at)
        one = design_of(X[4:])
        with mpmath.workdps(400):
            truth = precise_losses(loss, X, y, at, 4, member=member)
            seen = ex_post_terms(private, one.labelled(y[4:]), loss, member=member).signed[0]
            assert size < 600 or 0 < abs(truth) < 1e-290
            assert abs(seen / truth - 1) < 1e-9


@pytest.mark.parametrize("cap", [1.0, 0.6])
@pytest.mark.parametrize("member", [True, False])
def test_two_classes_have_the_losses_of_logistic_regression(cap, member):
    """``softmax(σ, λ)`` is ``logistic(σ/√2, λ/2)``."""
    rng = np.random.default_rng(4)
    X, y = rows_in_ball(rng, 200, 3), rng.integers(0, 2, 200).astype(float)
    design = design_of(X, fit_intercept=True)
    soft = fitted(SoftmaxLoss(2, cap), design, y, seed=1)
    scalar = fitted(
        LogisticLoss(cap=cap),
        design,
        y,
        seed=1,
        sigma=SIGMA / np.sqrt(2.0),
        l2=L2 / 2.0,
        at=-np.sqrt(2.0) * soft.coefficients,
    )
    seen = ex_post_terms(soft, design.labelled(y), SoftmaxLoss(2, cap), member=member)
    truth = ex_post_terms(scalar, design.labelled(y), LogisticLoss(cap=cap), member=member)
    for term in ("determinant", "quadratic", "inner_product", "loss"):
        np.testing.assert_allclose(getattr(seen, term), getattr(truth, term), rtol=1e-12, atol=1e-14)


def test_centred_coordinates_have_the_losses_of_free_scores():
    """With a free score vector per class the mean score is noise alone, and cancels."""
    rng = np.random.default_rng(5)
    K, d, n = 4, 3, 30
    loss, X = SoftmaxLoss(K), rows_in_ball(rng, 30, d)
    y = classes_of(rng, X, K)
    private = fitted(loss, design_of(X), y, seed=2)
    free = (centring(K) @ private.coefficients.reshape(K - 1, d)) + rng.normal(size=d)

    def density(rows):
        scores = X[rows] @ free.T
        p = np.exp(scores - scores.max(axis=1)[:, None])
        p /= p.sum(axis=1)[:, None]
        gradient, hessian = L2 * free.ravel(), L2 * np.eye(K * d)
        for x, q, label in zip(X[rows], p, y[rows], strict=True):
            gradient = gradient + np.kron(q - np.eye(K)[int(label)], x)
            hessian = hessian + np.kron(np.diag(q) - np.outer(q, q), np.outer(x, x))
        return -gradient @ gradient / (2 * SIGMA**2) + np.linalg.slogdet(hessian)[1]

    everyone = np.arange(n)
    truth = [density(everyone) - density(np.delete(everyone, i)) for i in range(n)]
    seen = ex_post_terms(private, design_of(X).labelled(y), loss, member=True).signed
    np.testing.assert_allclose(seen, truth, rtol=1e-9, atol=1e-11)


def test_many_rows_in_blocks_agree_with_one_at_a_time():
    rng = np.random.default_rng(10)
    loss, X = SoftmaxLoss(4, cap=0.7), rows_in_ball(rng, 20_000, 6)
    y = rng.integers(0, 4, 20_000).astype(float)
    design = design_of(X, fit_intercept=True)
    private = fitted(loss, design, y, seed=3)
    losses = ex_post_terms(private, design.labelled(y), loss, member=True).loss
    for i in (0, 1, 9_999, 19_999):
        one = design_of(X[i : i + 1], fit_intercept=True)
        alone = ex_post_terms(private, one.labelled(y[i : i + 1]), loss, member=True).loss
        assert losses[i] == pytest.approx(alone[0], rel=1e-10)


def test_an_impossible_member_has_an_infinite_loss():
    rng = np.random.default_rng(9)
    loss, X, y = SoftmaxLoss(3), rows_in_ball(rng, 5, 2, norm=0.1), np.array([0.0, 1.0, 2.0, 1.0, 0.0])
    private = fitted(loss, design_of(X, norm=100.0), y, seed=0, at=np.zeros(4))
    stranger = design_of(np.array([[60.0, 80.0]]), norm=100.0)
    assert ex_post_terms(private, stranger.labelled(np.zeros(1)), loss, member=True).loss[0] == np.inf


def test_a_hessian_that_is_not_positive_definite_is_refused():
    private = PrivateFit(np.zeros(4), np.zeros(4), -np.eye(4), SimpleNamespace(sigma=1.0), 0.0, 0.0)
    with pytest.raises(SolverError, match="not positive definite"):
        ex_post_terms(private, design_of(np.ones((1, 2))).labelled(np.zeros(1)), SoftmaxLoss(3), member=True)
