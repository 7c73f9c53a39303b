"""Fits with corners: against other solvers, with a proof of where they end, and what is printed of them."""

import math
import warnings

import numpy as np
import pytest
from corner_law import KINDS, corners_of
from problems import design_of
from scipy.optimize import nnls
from sklearn.linear_model import ElasticNet, LogisticRegression

import expost
from expost import LogisticLoss, PseudoHuber, SquaredLoss
from expost.fitting.certified.bound import ExactProblem
from expost.fitting.certified.certify import certify
from expost.fitting.certified.decimals import certify_in_decimals
from expost.fitting.certified.pairs import Dyadic
from expost.fitting.faces import model_minimum
from expost.fitting.mechanism import perturb
from expost.fitting.noise import SeededNoise
from expost.fitting.objective import Objective
from expost.fitting.private_fit import plausible, recover
from expost.fitting.solvers import minimize
from expost.losses.corners import Corners


def table(seed, rows=400, columns=8, useless=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns + useless))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    score = 3.0 * X[:, 0] - 2.0 * X[:, 1] + 0.3 * rng.normal(size=rows)
    return X, score


def solved(X, y, loss, l2, corners):
    """The minimiser without noise."""
    objective = Objective(design_of(X, norm=9.0).labelled(y), loss, l2, corners=corners)
    return minimize(objective, tolerance=1e-11).theta


def test_saga_agrees():
    X, score = table(0)
    y, l1, l2 = (score > 0.0).astype(float), 3.0, 0.7
    theta = solved(X, y, LogisticLoss(), l2, Corners.of(l1, -math.inf, [math.inf] * 8, intercept=False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = LogisticRegression(
            penalty="elasticnet",
            solver="saga",
            C=1.0 / (l1 + l2),
            l1_ratio=l1 / (l1 + l2),
            fit_intercept=False,
            tol=1e-12,
            max_iter=20_000,
            random_state=0,
        ).fit(X, y)
    assert theta == pytest.approx(other.coef_[0], abs=1e-6)
    assert 0 < np.count_nonzero(theta) < 8


@pytest.mark.parametrize("l1", [0.0, 2.0])
def test_non_negative_fits_agree(l1):
    X, y = table(1)
    l2, rows = 0.5, len(y)
    theta = solved(X, y, SquaredLoss(), l2, Corners.of(l1, 0.0, [math.inf] * 8, intercept=False))
    if l1 == 0.0:  # a penalty is eight more rows
        other = nnls(np.vstack([X, math.sqrt(l2) * np.eye(8)]), np.append(y, np.zeros(8)))[0]
    else:
        share, alpha = l1 / (l1 + l2), (l1 + l2) / rows
        other = ElasticNet(alpha=alpha, l1_ratio=share, positive=True, fit_intercept=False, tol=1e-14)
        other = other.set_params(max_iter=100_000).fit(X, y).coef_
    assert theta == pytest.approx(other, abs=1e-6)
    assert np.all(theta >= 0.0)
    assert np.any(theta == 0.0)


@pytest.mark.parametrize("seed", range(60))
def test_the_model_is_minimised_on_the_right_face(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 25))
    A = rng.normal(size=(d + 2, d))
    hessian, tilt = A.T @ A + 0.1 * np.eye(d), 3.0 * rng.normal(size=d)
    corners = corners_of(KINDS[seed % 4], d, rng, rng.choice([1e-6, 1.0, 30.0]))
    theta = corners.inside(rng.normal(size=d) * rng.choice([0.0, 1.0]))
    move = model_minimum(hessian, hessian @ theta + tilt + corners.offset(theta), theta, corners)
    assert np.abs(corners.residual(hessian @ move.end + tilt, move.end)).max() <= 1e-9
    assert theta + move.step == pytest.approx(move.end, abs=1e-12)
    assert np.array_equal(corners.active(move.end), move.active)


def problem_of(seed, kind, loss, *, rows=60, columns=4, copies=False):
    X, score = table(seed, rows, columns)
    if copies:
        X = np.column_stack([X, X[:, :1]])
    d = X.shape[1]
    rng = np.random.default_rng(seed)
    y = (score > 0.0).astype(float) if isinstance(loss, LogisticLoss) else np.tanh(score)
    records = design_of(X).labelled(y)
    tilt = (3.0 * rng.normal(size=d),)
    corners = corners_of(kind, d, rng, 2.0)
    return ExactProblem(records, loss, 0.4, 1.0, tilt, corners=corners)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("loss", [LogisticLoss(), PseudoHuber(0.3)], ids=["logistic", "pseudo_huber"])
def test_certified_points_are_close_to_the_minimiser(kind, copies, loss):
    problem = problem_of(5, kind, loss, copies=copies)
    target, grid = 2.0**-50, 2.0**-60
    start = problem.corners.inside(np.zeros(problem.dimension))
    found = certify(problem, start, target=target, grid=grid)
    sharp = certify_in_decimals(problem, Dyadic.of(start), None, target=2.0**-90, grid=2.0**-100)
    assert max(found.radius / target, sharp.radius / 2.0**-90) <= 1.0
    off = (found.point - sharp.point).doubles()
    assert np.linalg.norm(off) <= found.radius + sharp.radius
    # Those at a kink are there exactly, up to the grid.
    active = problem.corners.active(problem.corners.snapped(sharp.point.doubles(), 2.0**-80))
    assert active.any()
    assert np.abs(off[active]).max() <= grid


@pytest.mark.parametrize("report", ["independent", "leverage"])
def test_printed_coefficients_are_on_their_kinks(report):
    X, score = table(7, rows=800, columns=6)
    plan = expost.calibrate(epsilon=2.0, loss=LogisticLoss(), report=report, fit_intercept=True)
    records = design_of(X, fit_intercept=True).labelled((score > 0.0).astype(float))
    low, high = np.full(6, -0.123), np.full(6, math.inf)
    corners = Corners.of(1.5 * plan.sigma, low, high, intercept=True)
    release, fit = perturb(plan, records, noise=SeededNoise(1), corners=corners)
    theta = release.coefficients
    assert np.sum(theta == 0.0) >= 2
    assert not np.any(np.signbit(theta[theta == 0.0]))
    assert np.any(theta == -0.123)
    free = theta[~corners.active(theta)]
    assert np.all(np.abs(free) > plan.precision.window)
    assert np.all(free / plan.grid == np.rint(free / plan.grid))
    # Recomputed from the publication, the private part is the same.
    again = recover(release, records)
    assert plausible(again)
    assert again.face.noise == pytest.approx(fit.face.noise, rel=1e-9, abs=1e-9)
    assert fit.loss_error < 1e-6
    # At a kink the noise is not known, and the gradient need not have its length.
    other = design_of(X, fit_intercept=True).labelled((score < 0.0).astype(float))
    assert not plausible(recover(release, other))


def test_useless_columns_are_not_used():
    X, score = table(3, rows=3000, columns=5, useless=200)
    y = (score > 0.0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = [
            expost.LogisticRegression(norm=1.0, classes=[0, 1], l1=l1, random_state=2).fit(X, y)
            for l1 in (0.0, "auto", 12.0)
        ]
    counts = [np.count_nonzero(model.coef_) for model in fits]
    assert counts[0] == 205 > counts[1] > counts[2] >= 2
    assert fits[1].publication_.release.corners.l1[0] == 0.5 * fits[1].plan_.sigma


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"report": "dependent"}, "`l1` must be 0 with report='dependent', whose noisy gradient"),
        ({"coef_bounds": (0.0, 1e-12)}, "`coef_bounds`, or an `effect`, must leave 2.* between two bounds"),
        ({"coef_bounds": (-1e-12, 1.0)}, "with `l1` between a bound and zero; got 1e-12"),
        ({"l1": -1.0}, "`l1` must be a finite number with l1 > 0; got l1=-1.0. 0 is none"),
        ({"l1": "some"}, "`l1` must be"),
        ({"coef_bounds": (1.0, 0.0)}, r"of 3 numbers each, with low < high; got coef_bounds=\(1.0, 0.0\)"),
        ({"coef_bounds": ([0.0], [1.0, 2.0])}, "`coef_bounds` must be None or a pair"),
        ({"coef_bounds": 3.0}, "`coef_bounds` must be None or a pair"),
        ({"classes": [0, 1, 2]}, "`l1` must be 0 for SoftmaxLoss"),
    ],
)
def test_corners_without_a_theorem_are_refused(arguments, sentence):
    X, score = table(2, rows=30, columns=3)
    model = expost.LogisticRegression(**{"norm": 1.0, "classes": [0, 1], "l1": 1.0} | arguments)
    with pytest.raises(expost.exceptions.ParameterError, match=sentence):
        model.fit(X, (score > 0.0).astype(int))


def test_corners_of_a_loss_without_a_largest_slope_are_refused():
    X, score = table(2, rows=30, columns=3)
    plan = expost.calibrate(loss="squared", sigma=3.0, l2=1.0, fit_intercept=True)
    model = expost.LinearRegression(plan=plan, loss="squared", outcome=(-9.0, 9.0), coef_bounds=(0.0, 1.0))
    with pytest.raises(
        expost.exceptions.ParameterError, match=r"`coef_bounds` must be None, and .* for SquaredLoss"
    ):
        model.fit(X, score)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"l1": 1.0}, "`l1` must be 0 for SmoothedNorm: .* convex models are not known at corners. Leave it"),
        ({"coef_bounds": (0.0, 1.0)}, "`coef_bounds` must be None, .* for SmoothedNorm"),
        ({"l1": "much"}, "`l1` must be"),
        ({"coef_bounds": 3.0}, "`coef_bounds` must be None or a pair"),
    ],
)
def test_convex_models_refuse_corners(arguments, sentence):
    model = expost.ConvexModel(loss=expost.SmoothedNorm(2), **arguments)
    with pytest.raises(expost.exceptions.ParameterError, match=sentence):
        model.fit(np.zeros((10, 2)))


def test_many_columns_have_a_matrix_at_corners(monkeypatch):
    """Without a matrix the certificate would be that of the objective without its corners."""
    monkeypatch.setattr("expost.fitting.wide._LARGEST_MATRIX", 3)
    problem = problem_of(5, "l1", LogisticLoss())
    start = problem.corners.inside(np.zeros(problem.dimension))
    found = certify(problem, start, target=2.0**-50, grid=2.0**-60)
    sharp = certify_in_decimals(problem, Dyadic.of(start), None, target=2.0**-90, grid=2.0**-100)
    assert np.linalg.norm((found.point - sharp.point).doubles()) <= 2.0**-49
