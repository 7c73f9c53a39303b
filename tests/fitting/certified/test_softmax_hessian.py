"""The Hessians of several classes, whole and reduced: within their stated error of the truth."""

import mpmath as mp
import numpy as np
import pytest
from hard_tables import RowBlocks, into_ball
from test_softmax_certificate import LOSSES, exact_derivatives

from expost.fitting.certified.bound import ExactProblem
from expost.fitting.certified.certify import _summed, certify, rows_hessian
from expost.fitting.certified.pairs import Dyadic
from expost.fitting.certified.slopes import proved_loss, third_order
from expost.losses import SoftmaxLoss
from expost.losses.softmax import centring

TABLES = [SoftmaxLoss(2), SoftmaxLoss(3), SoftmaxLoss(4, cap=0.6), SoftmaxLoss(3, 0.05, 0.1)]


def exact_mass(loss, scores, label):
    """The smallest mass: the least of -v_j off the label, and M - q on it."""
    v, A = exact_derivatives(loss, scores, label)
    q = -v[label]
    kappa = A[label, label]
    others = [v[j] for j in range(loss.classes) if j != label]
    return min([q * kappa / (q - kappa), *others])


def exact_helmert(classes):
    Q = mp.zeros(classes, classes - 1)
    for a in range(classes - 1):
        root = 1 / mp.sqrt(mp.mpf((a + 1) * (a + 2)))
        for j in range(a + 1):
            Q[j, a] = root
        Q[a + 1, a] = -(a + 1) * root
    return Q


def table(loss, seed, n=25, d=3, size=4.0):
    random = np.random.default_rng(seed)
    X = into_ball(random.normal(size=(n, d)), 1.0)
    y = random.integers(0, loss.classes, n).astype(float)
    weights = random.uniform(0.0, 2.0, n) if seed % 2 else None
    w = size * random.normal(size=loss.outputs * d)
    b = random.normal(size=loss.outputs * d)
    blocks = RowBlocks([(X, y, weights)])
    problem = ExactProblem(blocks, loss, 0.5, 1.0, (b,), max_weight=2.0)
    return problem, X, y, weights, w


def exact_hessian(loss, X, y, weights, w, *, reduced):
    """In the current precision, at a point of exact numbers."""
    n, d = X.shape
    Q, k = exact_helmert(loss.classes), loss.outputs
    total = mp.zeros(d if reduced else k * d)
    point = mp.matrix(k, d)
    for a in range(k):
        for i in range(d):
            point[a, i] = w[a * d + i]
    for i in range(n):
        x = mp.matrix([mp.mpf(float(value)) for value in X[i]])
        scores = list(Q * (point * x))
        weight = mp.mpf(1 if weights is None else float(weights[i]))
        if reduced:
            total += weight * exact_mass(loss, scores, int(y[i])) * x * x.T
            continue
        A = Q.T * exact_derivatives(loss, scores, int(y[i]))[1] * Q
        for a in range(k):
            for b in range(k):
                for r in range(d):
                    for c in range(d):
                        total[a * d + r, b * d + c] += weight * A[a, b] * x[r] * x[c]
    return total


def distance(exact, found):
    return mp.mnorm(exact - sum((mp.matrix(part.tolist()) for part in found), mp.zeros(exact.rows)), "f")


@pytest.mark.long
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_smallest_masses_have_their_stated_roundings(loss):
    random = np.random.default_rng(loss.classes)
    n, K = 60, loss.classes
    scores = random.normal(size=(K, n)) * random.choice([1e-9, 1.0, 8.0, 200.0], n)
    scores -= scores.mean(axis=0)
    y = random.integers(0, K, n)
    pairs = [(score, np.zeros(n)) for score in scores]
    known = proved_loss(loss)
    slopes = known.slopes(pairs, y.astype(float))
    found = slopes.smallest
    weights = random.uniform(0.0, 3.0, n)
    np.testing.assert_array_equal(slopes.times(weights).smallest, weights * found)
    plain = loss.smallest_mass(scores.T @ centring(K), y.astype(float))
    with mp.workprec(2500):
        for i in range(n):
            truth = exact_mass(loss, [mp.mpf(score) for score in scores[:, i]], int(y[i]))
            off = known.weight_roundings * 2.0**-53 * truth
            assert abs(found[i] - truth) <= off + mp.mpf(2) ** -900
            assert float(plain[i]) == pytest.approx(float(truth), rel=1e-11, abs=1e-290)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_masses_change_at_most_as_fast_as_the_second_derivative(loss):
    """The logarithm of the smallest mass has the constant of the third derivative, corner included."""
    random = np.random.default_rng(5)
    zeta = third_order(loss)
    eta = random.normal(size=(4000, loss.outputs)) * random.choice([0.3, 2.0, 6.0], size=(4000, 1))
    y = random.integers(0, loss.classes, 4000).astype(float)
    for length in (1e-3, 0.3):
        h = random.normal(size=eta.shape)
        h *= length / np.linalg.norm(h, axis=1, keepdims=True)
        change = np.log(loss.smallest_mass(eta + h, y) / loss.smallest_mass(eta, y))
        assert np.all(np.abs(change) <= zeta * length * (1.0 + 1e-9) + 1e-12)


@pytest.mark.long
@pytest.mark.parametrize("reduced", [True, False])
@pytest.mark.parametrize("slices", [2, 3, None])
@pytest.mark.parametrize("loss", TABLES, ids=str)
def test_a_hessian_is_within_its_error(loss, slices, reduced):
    """In slices, and in decimals for None; against 60 digits at the same point."""
    for seed in range(2):
        problem, X, y, weights, w = table(loss, seed)
        found, error = _summed(problem, Dyadic.of(w), slices, reduced=reduced)
        assert error <= (2.0**-100 if slices is None else 1e-12) * np.trace(found[0])
        with mp.workdps(60):
            point = [mp.mpf(float(value)) for value in w]
            truth = exact_hessian(loss, X, y, weights, point, reduced=reduced)
            assert distance(truth, found) <= error


def at_the_minimiser(loss, *, reduced):
    """A problem, a minimum within a poor radius, and the exact Hessian at a far better one."""
    problem, X, y, weights, w = table(loss, 3)
    poor = certify(problem, w, target=2.0**-12, grid=2.0**-24)
    best = certify(problem, w, target=2.0**-80, grid=2.0**-90)
    with mp.workdps(60):
        point = [mp.ldexp(count, -90) for count in best.point.counts]
        return problem, poor, exact_hessian(loss, X, y, weights, point, reduced=reduced)


@pytest.mark.parametrize("reduced", [True, False])
@pytest.mark.parametrize("loss", TABLES[1:], ids=str)
def test_the_hessian_at_the_minimiser_is_as_exact_as_asked(loss, reduced):
    """A poor radius first, so that only a closer minimiser can be exact enough; truth at a far better one."""
    problem, poor, truth = at_the_minimiser(loss, reduced=reduced)
    with mp.workdps(60):
        for allowed in (1e-5, 1e-9, 1e-13):
            found = rows_hessian(problem, poor, allowed=allowed, reduced=reduced)
            assert distance(truth, found) <= allowed


@pytest.mark.parametrize(("exact", "reduced"), [(True, False), (False, True)])
def test_what_slices_cannot_give_decimals_do(exact, reduced, monkeypatch):
    """Where products cannot be trusted, and where more is asked than slices or one double can give."""
    monkeypatch.setattr("expost.fitting.certified.certify.exact_in", lambda _: exact)
    problem, poor, truth = at_the_minimiser(SoftmaxLoss(3), reduced=reduced)
    with mp.workdps(60):
        allowed = 2.0**-70 * float(mp.mnorm(truth, "f"))
        found = rows_hessian(problem, poor, allowed=allowed, reduced=reduced)
        assert distance(truth, found) <= allowed
