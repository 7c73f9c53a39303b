"""The certificate of several classes: stated errors hold, and the true minimiser lies within the radius."""

import mpmath as mp
import numpy as np
import pytest
from grids import grid
from hard_tables import RowBlocks, into_ball, tilt
from problems import design_of

from expost.fitting.certified.bound import ExactProblem
from expost.fitting.certified.certify import certify
from expost.fitting.certified.pairs import Dyadic
from expost.fitting.certified.residual import ResidualPass
from expost.fitting.certified.slopes import proved, proved_loss, third_order
from expost.fitting.certified.softmax_slopes import as_pair, from_classes, to_classes
from expost.fitting.objective import Objective
from expost.fitting.solvers import minimize
from expost.losses import SoftmaxLoss
from expost.losses.softmax import centring

LOSSES = [
    SoftmaxLoss(2),
    SoftmaxLoss(3),
    SoftmaxLoss(10),
    SoftmaxLoss(3, cap=0.6),
    SoftmaxLoss(5, 0.9, 0.99),
    SoftmaxLoss(3, 0.01, 0.1),
]


def exact_derivatives(loss, scores, label):
    """Gradient and Hessian in the scores, in the current precision."""
    others = [mp.mpf(0) if j == label else mp.exp(s) for j, s in enumerate(scores)]
    total = mp.fsum(others)
    g = mp.log(total) - scores[label]
    q = 1 / (1 + mp.exp(-g))
    kappa = q / (1 + mp.exp(g))
    if loss.corner is not None:
        cap, m0 = mp.mpf(loss.cap), mp.mpf(loss.link.corner_slope)
        rate, beyond = m0 * (1 - m0) / (cap - m0), g - mp.log(m0 / (1 - m0))
        if beyond > 0:
            lost = (cap - m0) * mp.exp(-rate * beyond)
            q, kappa = cap - lost, rate * lost
    pi = mp.matrix([part / total for part in others])
    h = pi.copy()
    h[label] -= 1
    return q * h, q * (mp.diag(list(pi)) - pi * pi.T) + kappa * h * h.T


@pytest.mark.long
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_stated_errors_of_gradients_hold(loss):
    random = np.random.default_rng(loss.classes)
    n, K = 60, loss.classes
    high = random.normal(size=(K, n)) * random.choice([1e-9, 1.0, 30.0, 900.0], n)
    high[:, :5] = np.round(high[:, :5])  # ties
    high[:, 5:8] = 0.0
    low = high * random.uniform(-1, 1, (K, n)) * 2.0**-54
    y = random.integers(0, K, n)
    known = proved_loss(loss)
    found = known.slopes(list(zip(high, low, strict=True)), y.astype(float))
    pairs = list(zip(*np.triu_indices(K, 1), strict=True))
    with mp.workprec(2500):
        for i in range(n):
            scores = [mp.mpf(high[j, i]) + mp.mpf(low[j, i]) for j in range(K)]
            v, A = exact_derivatives(loss, scores, int(y[i]))
            g = [mp.mpf(a) + mp.mpf(b) for a, b in zip(*(part[:, i] for part in found.first), strict=True)]
            error = mp.sqrt(mp.fsum((g[j] - v[j]) ** 2 for j in range(K)))
            trace = mp.fsum(A[j, j] for j in range(K))
            # An error of c√tr in the Hessian's norm is at most c tr long.
            assert error <= found.per_curvature * trace + found.absolute
            for weight, (a, b) in zip(found.weights[i], pairs, strict=True):
                truth = -A[int(a), int(b)]
                # Beyond exponents of 640 weights are taken for those there; scores are doubles here.
                off = (known.weight_roundings + 2000.0) * 2.0**-53 * truth
                assert abs(weight - truth) <= off + mp.mpf(2) ** -900


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_third_derivative_is_bounded_by_the_second(loss):
    """In random directions, and on both sides of the corner."""
    random = np.random.default_rng(4)
    zeta, step = third_order(loss), 1e-6
    for _ in range(300):
        y = np.array([float(random.integers(loss.classes))])
        eta = random.normal(size=(1, loss.outputs)) * random.choice([0.3, 2.0, 6.0])
        h = random.normal(size=loss.outputs)
        h /= np.linalg.norm(h)
        before, after = (loss.derivatives(eta + s * step * h, y)[1][0] for s in (-0.5, 0.5))
        change = (after @ after.T - before @ before.T) / step
        here = loss.derivatives(eta, y)[1][0]
        allowed = zeta * (here @ here.T)
        size = np.linalg.norm(here) ** 2
        for sign in (-1.0, 1.0):
            assert np.linalg.eigvalsh(allowed + sign * change).min() >= -2e-4 * zeta * size - 1e-9
    assert zeta >= np.sqrt(2.0)
    assert proved(loss)


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_centred_coordinates_are_exact_to_two_hundred_bits(classes):
    random = np.random.default_rng(classes)
    w = random.normal(size=(classes - 1) * 3)
    parts = to_classes(Dyadic.of(w), classes)
    for j, part in enumerate(parts):
        np.testing.assert_allclose(part.doubles(), centring(classes)[j] @ w.reshape(-1, 3), rtol=1e-14)
    joined = Dyadic([count for part in parts for count in part.counts], parts[0].exponent)
    back = from_classes(joined, classes) - Dyadic.of(w)
    assert np.all(np.abs(back.doubles()) < 2.0**-180)
    high, low = as_pair(from_classes(joined, classes))
    np.testing.assert_array_equal(high, w)
    assert np.all(np.abs(low) < 2.0**-180)


def test_the_hessian_of_pairs_of_classes_is_the_hessian():
    random = np.random.default_rng(0)
    loss, X = SoftmaxLoss(4, cap=0.7), into_ball(random.normal(size=(50, 3)), 1.0)
    y, w = random.integers(0, 4, 50).astype(float), random.normal(size=9)
    scores = X @ (centring(4) @ w.reshape(3, 3)).T
    found = proved_loss(loss).slopes([(s, np.zeros(50)) for s in scores.T], y)
    blocks = np.einsum("ip,ij,ik->pjk", found.weights, X, X)
    factor = loss.derivatives(X @ w.reshape(3, 3).T, y)[1]
    truth = np.einsum("iac,ibc,ij,ik->ajbk", factor, factor, X, X).reshape(9, 9)
    np.testing.assert_allclose(proved_loss(loss).hessian(blocks), truth, rtol=1e-12, atol=1e-13)


def problem_of(loss, X, y, l2, b, *, weights=None, block=7):
    spans = [slice(i, i + block) for i in range(0, len(y), block)]
    blocks = [
        (np.ascontiguousarray(X[here]), y[here], None if weights is None else weights[here]) for here in spans
    ]
    largest = 1.0 if weights is None else float(weights.max())
    return ExactProblem(rows=RowBlocks(blocks), loss=loss, l2=l2, radius=1.0, tilt=b, max_weight=largest)


def start_of(loss, X, y, l2, b, weights=None):
    objective = Objective(design_of(X).labelled(y, weights), loss, l2=l2, tilt=b[0] + b[1])
    return minimize(objective, tolerance=1e-9).theta


def exact_gradient(loss, X, y, l2, b, w, weights=None):
    """The perturbed gradient at mpmath coefficients, and a Newton matrix in doubles."""
    K, d = loss.classes, X.shape[1]
    Q = mp.matrix(K, K - 1)
    for a in range(K - 1):
        root = 1 / mp.sqrt((a + 1) * (a + 2))
        for j in range(a + 1):
            Q[j, a] = root
        Q[a + 1, a] = -(a + 1) * root
    g = [mp.mpf(l2) * value for value in w]
    for part in b:
        g = [value + mp.mpf(float(other)) for value, other in zip(g, part, strict=True)]
    counts = np.ones(len(y)) if weights is None else weights
    for x, label, weight in zip(X, y, counts, strict=True):
        u = mp.matrix([mp.fsum(w[a * d + i] * mp.mpf(float(x[i])) for i in range(d)) for a in range(K - 1)])
        v, _ = exact_derivatives(loss, list(Q * u), int(label))
        slopes = mp.mpf(float(weight)) * (Q.T * v)
        for a in range(K - 1):
            for i in range(d):
                g[a * d + i] += slopes[a] * mp.mpf(float(x[i]))
    return g


def distance(loss, X, y, l2, b, integers, grid, weights=None):
    """How far the point is from the minimiser, by Newton steps in 300 bits with a double Hessian."""
    with mp.workprec(300):
        start = [mp.mpf(count) * mp.mpf(grid) for count in integers]
        w = list(start)
        objective = Objective(design_of(X).labelled(y, weights), loss, l2=l2)
        hessian = objective.evaluate(np.array([float(v) for v in w]), hessian=np.float64).hessian
        for _ in range(12):
            g = exact_gradient(loss, X, y, l2, b, w, weights)
            size = max(abs(v) for v in g)
            if size < mp.mpf(2) ** -200:
                break
            step = np.linalg.solve(hessian, np.array([float(v / size) for v in g]))
            w = [v - size * mp.mpf(float(s)) for v, s in zip(w, step, strict=True)]
        return float(mp.sqrt(mp.fsum((a - c) ** 2 for a, c in zip(w, start, strict=True))))


def table_of(kind, loss, random):
    n, d = 18, 2
    X = into_ball(random.normal(size=(n, d)), 1.0)
    y = random.integers(0, loss.classes, n).astype(float)
    l2, sigma = 1.5, 4.0
    if kind == "identical":
        X, y = np.repeat(X[:1], n, axis=0), np.zeros(n)
    if kind == "separable":
        y, l2 = (X[:, 0] > 0).astype(float), 1e-3
    if kind == "short":
        X = 1e-6 * X
    return X, y, l2, tilt(random, sigma, loss.outputs * d)


@pytest.mark.parametrize(
    ("kind", "loss", "level"),
    grid(
        ["usual", "identical", "separable", "short", "weighted"],
        [SoftmaxLoss(2), SoftmaxLoss(4), SoftmaxLoss(3, cap=0.6)],
        ["slices", "decimals"],
    ),
    ids=str,
)
def test_the_minimiser_lies_within_the_certified_radius(kind, loss, level, monkeypatch):
    if level == "decimals":
        monkeypatch.setattr("expost.fitting.certified.certify.exact_in", lambda _: False)
    random = np.random.default_rng([loss.classes, len(kind)])
    X, y, l2, b = table_of(kind, loss, random)
    weights = 10.0 ** random.uniform(-300, 2, len(y)) if kind == "weighted" else None
    start = start_of(loss, X, y, l2, b, weights)
    target = 2.0**-45
    for step in (2.0**-54, 2.0**-90):
        found = certify(problem_of(loss, X, y, l2, b, weights=weights), start, target=target, grid=step)
        assert found.radius <= target
        assert distance(loss, X, y, l2, b, found.point.counts, step, weights) <= found.radius


@pytest.mark.long
def test_two_slices_serve_a_table_of_several_blocks(monkeypatch):
    """Decimals are out of reach: the residual in 300 bits, and one Newton step from it."""
    monkeypatch.setattr("expost.fitting.certified.certify.certify_in_decimals", None)
    random = np.random.default_rng(8)
    loss, X = SoftmaxLoss(4, cap=0.7), into_ball(random.normal(size=(700, 5)), 1.0)
    y, b = random.integers(0, 4, 700).astype(float), tilt(random, 4.2, 15)
    start = start_of(loss, X, y, 2.1, b)
    found = certify(problem_of(loss, X, y, 2.1, b, block=200), start, target=2.0**-45, grid=2.0**-90)
    assert found.radius <= 2.0**-45
    with mp.workprec(300):
        w = [mp.mpf(count) * mp.mpf(2.0**-90) for count in found.point.counts]
        g = exact_gradient(loss, X, y, 2.1, b, w)
        step = np.linalg.solve(found.curvature.matrix, np.array([float(v * 2**60) for v in g])) * 2.0**-60
    assert np.linalg.norm(step) * (1 - 1e-6) <= found.radius


def test_rows_whose_squares_are_no_doubles_are_certified():
    """The gradient of three classes is a double and the Hessian is none: only decimals can certify it."""
    loss, X = SoftmaxLoss(3), 1e155 * np.array([[0.6, -0.8], [0.8, 0.6], [0.0, 1.0]])
    y, l2 = np.array([0.0, 1.0, 2.0]), 1e300
    b = (1e155 * np.array([0.3, -2.0, 1.0, 0.5]), np.zeros(4))
    problem = ExactProblem(RowBlocks([(X, y, None)]), loss, l2, 1e155, b)
    target, grid = 2.0**-520, 2.0**-530
    found = certify(problem, np.zeros(4), target=target, grid=grid)
    assert found.curvature is None
    assert found.radius <= target
    with mp.workprec(2500):
        w = [mp.mpf(count) * mp.mpf(grid) for count in found.point.counts]
        # The minimiser is no farther away than this, and the Hessian is at most 1e311.
        assert mp.norm(mp.matrix(exact_gradient(loss, X, y, l2, b, w))) <= 1e12 * l2 * mp.mpf(target)


def test_gradients_beyond_doubles_are_left_to_decimals(monkeypatch):
    """Sums that overflow at one point certify nothing there, and raise nothing."""

    def overflowing(whole):
        def overflows(self, blocks, *space):
            sums = whole(self, blocks, *space)
            sums.total[0][0, 0] = np.inf
            return sums

        return overflows

    random = np.random.default_rng(3)
    loss = SoftmaxLoss(3)
    X, y, l2, b = table_of("usual", loss, random)
    problem, start = problem_of(loss, X, y, l2, b), start_of(loss, X, y, l2, b)
    for way in ("__call__", "compiled"):
        monkeypatch.setattr(ResidualPass, way, overflowing(getattr(ResidualPass, way)))
    found = certify(problem, start, target=2.0**-45, grid=2.0**-54)
    assert found.curvature is None
    assert distance(loss, X, y, l2, b, found.point.counts, 2.0**-54) <= found.radius <= 2.0**-45
