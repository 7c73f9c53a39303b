"""Gradients in pairs of doubles, as compiled kernels add them up: stated errors hold."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from grids import grid
from hard_tables import LOSSES as ALL, RowBlocks, derivatives, into_ball, labels_for, of_row
from test_softmax_certificate import LOSSES as SOFTMAX, exact_derivatives

from expost._common import kernels
from expost._common.machine import SPAN
from expost.fitting.certified.pairs import UNIT, Dyadic
from expost.fitting.certified.residual import ResidualPass
from expost.fitting.certified.slopes import proved_loss
from expost.fitting.compiled import CHAIN, CHUNK, Known, _errors, compiles
from expost.losses import BoundedGamma, BoundedPoisson, LogisticLoss, SmoothedPinball, SquaredLoss
from expost.privacy.calibration import calibrate

pytestmark = pytest.mark.skipif(kernels.library() is None, reason="no compiled kernels")
LOSSES = [loss for loss in ALL if compiles(loss)]


def rows_of(kind, random, n, d):
    """Rows of an awkward kind, and coefficients."""
    X, w = into_ball(random.normal(size=(n, d)), 1.0), 3.0 * random.normal(size=d)
    if kind == "cancelling":
        # Predictors that are what is left of large products, and sums that are what is left of large rows.
        X[:, 1] = -X[:, 0] * (1.0 + 2.0**-40 * random.normal(size=n))
        w[:2] = 1e6
        X[n // 2 :] = -X[: n - n // 2]
    elif kind == "saturated":
        w *= 10.0 ** random.uniform(0, 3)
    elif kind == "tiny":
        X *= 10.0 ** random.uniform(-320, -150, (n, 1))
    elif kind == "mixed":
        X *= 10.0 ** random.uniform(-60, 0, (n, 1))
        w *= 10.0 ** random.uniform(-30, 0, d)
    elif kind == "corner":
        # The capped losses turn at this linear predictor; zero is the corner of the others.
        X[:, 0], w = 1e-9 * random.normal(size=n), np.zeros(d)
        w[0] = 1.0
        X[:, 1], w[1] = 0.5, 2.0 * np.log(0.45 / 0.55)
    return X, w


def longest(X):
    """More than the length of every row."""
    return max(float(np.max(np.linalg.norm(X, axis=1))), 1e-300) * 1.0001


def exactly(total):
    """Pairs of doubles in the digits that are set."""
    return mp.matrix(total[0].tolist()) + mp.matrix(total[1].tolist())


# Of the truth: denormal rows have products far below those of others.
BITS = {"tiny": 2600}
# With a largest slope, and caps that do not make nearly everything flat.
ORDINARY = [
    loss for loss in (*LOSSES, *SOFTMAX) if loss != SquaredLoss() and getattr(loss, "cap", 1.0) >= 0.5
]
KINDS = ["random", "cancelling", "saturated", "tiny", "mixed", "corner"]


def found_and_bound(loss, X, y, w, weights, radius):
    """What the kernels found, the exact point of it, and the bound on its error that certificates use."""
    known = proved_loss(loss)
    work = ResidualPass(known, known.points(Dyadic.of(w), 2), radius, hessian=True)
    blocks = [
        (X[i : i + 64], y[i : i + 64], None if weights is None else weights[i : i + 64])
        for i in range(0, len(y), 64)
    ]
    (found,) = RowBlocks(blocks).sweep(work)
    assert not found.sliced
    per_curvature = found.per_curvature + 1.01 * found.predictor_error
    return found, work.points, found.error + radius * (found.absolute + per_curvature * found.curvature)


@pytest.mark.parametrize(("loss", "kind", "weighted"), grid(LOSSES, KINDS, [False, True]), ids=str)
def test_gradients_are_within_their_error(loss, kind, weighted):
    random = np.random.default_rng(len(kind))
    n, d = 140, 5
    X, w = rows_of(kind, random, n, d)
    y, radius = labels_for(random, loss, X @ w), longest(X)
    weights = 10.0 ** random.uniform(-3, 3, n) if weighted else None
    found, points, bound = found_and_bound(loss, X, y, w, weights, radius)
    with mp.workprec(BITS.get(kind, 500)):
        exact = [mp.mpf(count) * mp.mpf(2) ** points.exact.exponent for count in points.exact.counts]
        total, steep = mp.zeros(d, 1), mp.mpf(0)
        for place, (row, label) in enumerate(zip(X, y, strict=True)):
            x = mp.matrix(row.tolist())
            slope, _ = derivatives(of_row(loss, row), mp.fdot(x, exact), mp.mpf(float(label)))
            slope *= mp.mpf(1.0 if weights is None else float(weights[place]))
            total += slope * x
            steep += abs(slope)
        assert mp.norm(total - exactly(found.total)[0, :].T) <= bound
        # Orders below what slices give, but where rows are so small that their products underflow.
        assert kind == "tiny" or found.error <= 2.0**-90 * radius * steep


# Losses of outcomes whose exponentials rise, with wide and narrow thresholds.
OUTCOMES = [
    SmoothedPinball(level=0.999, scale=1e-3),
    BoundedPoisson(),
    BoundedPoisson(largest=1e4, threshold=0.1),
    BoundedGamma(),
    BoundedGamma(threshold=1e3),
]


@pytest.mark.long
@pytest.mark.parametrize("loss", OUTCOMES, ids=str)
def test_records_with_predictors_of_every_size_are_within_their_error(loss):
    """One record at a time, so that no other hides its error."""
    random = np.random.default_rng(4)
    sizes = 10.0 ** random.uniform(-30, 3, 60)
    for eta in np.concatenate([random.normal(0, 3, 60), random.choice([-1.0, 1.0], 60) * sizes]):
        X, w = np.array([[eta]]), np.ones(1)
        y = labels_for(random, loss, X @ w)
        found, _, bound = found_and_bound(loss, X, y, w, None, longest(X))
        with mp.workprec(1200):
            slope, curvature = derivatives(loss, mp.mpf(float(eta)), mp.mpf(float(y[0])))
            error = abs(slope * mp.mpf(float(eta)) - exactly(found.total)[0, 0])
            assert error <= bound
            least = mp.mpf(2) ** -780 * mp.mpf(float(eta)) ** 2
            off = abs(curvature * mp.mpf(float(eta)) ** 2 - mp.mpf(float(np.ravel(found.hessian)[0])))
            assert off <= 32 * UNIT * curvature * mp.mpf(float(eta)) ** 2 + least


@pytest.mark.parametrize(("loss", "kind"), grid(SOFTMAX, KINDS, together=1), ids=str)
def test_gradients_of_several_classes_are_within_their_error(loss, kind):
    random = np.random.default_rng(len(kind))
    n, d, K = 60, 4, loss.classes
    X, w = rows_of(kind, random, n, d)
    w = np.concatenate([np.roll(w, j) for j in range(K - 1)])
    y, radius = random.integers(0, K, n).astype(float), longest(X)
    found, points, bound = found_and_bound(loss, X, y, w, None, radius)
    with mp.workprec(BITS.get(kind, 500)):
        parts = [[mp.matrix(part.tolist()) for part in point.slices] for point in points.by_score]
        vectors, total = [first + second for first, second in parts], mp.zeros(K, d)
        for row, label in zip(X, y, strict=True):
            x = mp.matrix(row.tolist())
            scores = [mp.fdot(vector, x) for vector in vectors]
            total += exact_derivatives(loss, scores, int(label))[0] * x.T
        # The norm of a Hessian is at most its trace, so that errors relative to it count with the curvature.
        assert mp.norm(mp.matrix(list(total - exactly(found.total)))) <= bound


def test_sums_against_rational_numbers():
    """A residual is linear, so that everything can be compared with fractions; half of every sum cancels."""
    random = np.random.default_rng(0)
    n, d = 3000, 6
    half = into_ball(random.normal(size=(n // 2, d)), 1.0)
    X, w = np.vstack([half, -half[::-1]]), random.normal(size=d)
    y = random.normal(size=n) * 1e3
    found, points, bound = found_and_bound(SquaredLoss(), X, y, w, None, 1.0)
    exact = [Fraction(count) * Fraction(2) ** points.exact.exponent for count in points.exact.counts]
    total = [Fraction(0)] * d
    for row, label in zip(X, y, strict=True):
        x = [Fraction(float(value)) for value in row]
        slope = sum(a * b for a, b in zip(x, exact, strict=True)) - Fraction(float(label))
        total = [t + slope * value for t, value in zip(total, x, strict=True)]
    high, low = (part[0] for part in found.total)
    off = [t - Fraction(float(a)) - Fraction(float(b)) for t, a, b in zip(total, high, low, strict=True)]
    error = float(sum(value * value for value in off)) ** 0.5
    assert error <= bound
    assert bound <= 1e-20 * float(np.sum(np.abs(y)))


def test_an_unsound_thread_certifies_nothing(monkeypatch):
    library = kernels.library()

    class Unsound:
        def __getattr__(self, name):
            return lambda *_: kernels.UNSOUND

    monkeypatch.setattr(kernels, "library", lambda: library._replace(kernels=Unsound()))
    found, _, _ = found_and_bound(LogisticLoss(), np.ones((3, 2)), np.ones(3), np.ones(2), None, 2.0)
    assert np.isinf(found.error)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("loss", ORDINARY, ids=str)
def test_plans_never_need_more_than_pairs(loss, epsilon):
    """Whatever the table, of as many rows as a plan prints for and 100 columns.

    The bound of section 10 with a curvature that is the penalty alone, and with coefficients as long as all
    slopes together over the penalty: the minimiser is no longer.
    """
    plan = calibrate(loss=loss, norm=1.0, epsilon=epsilon, delta=1e-6, fit_intercept=True)
    known, radius, columns = proved_loss(loss), np.sqrt(2.0), 101
    rows, slope = plan.precision.rows_at_most, loss.curve.max_slope
    steepest = rows * slope * Known.of(loss).scores
    longest = 2.0 * rows * slope * radius / plan.l2
    units = 1.02 * (CHAIN + 3) ** 2 + 4.1 * (rows / CHUNK + rows / SPAN) + 13.0
    relative, absolute = _errors(loss)
    summed = radius * (units * UNIT**2 * steepest + rows * absolute)
    predictors = known.score_error * 1.02 * ((columns + 3) * UNIT) ** 2 * radius * longest
    bent = (relative + predictors) * np.sqrt(rows * loss.curve.max_curvature * known.trace)
    assert 1.1 * (summed / plan.l2 + bent / np.sqrt(plan.l2)) <= 0.25 * plan.precision.solver_radius
