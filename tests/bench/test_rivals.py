"""The peers of bench.peers: they are what they are said to be, and their accounting is exact."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, r2_score, roc_auc_score

from bench import rivals, scores
from bench.rivals import Descent, Newton, Problem
from expost import gaussian

DELTA = 1e-6
# So large that there is next to no noise.
HUGE = 1e13


def make(logistic, n=400, d=4):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1.0, 1.0, (n, d - 1)), np.ones(n)])
    score = X @ np.array([1.5, -1.0, 0.5, 0.3])
    y = (
        (rng.random(n) < 1.0 / (1.0 + np.exp(-score))).astype(float)
        if logistic
        else np.clip(score / 3.0, -1, 1)
    )
    return Problem(X, y, math.sqrt(d), logistic)


@pytest.mark.parametrize("logistic", [True, False])
def test_gradient_descent_is_the_loop_over_records(logistic):
    problem = make(logistic, n=1500)  # more rows than one block
    settings = [Descent(1.0, 3, 0.2, 1.6, 0.9), Descent(8.0, 3, 1.0, 0.4, 0.0)]
    found = rivals.gradient_descent(problem, settings, 2, DELTA, 7)
    rng = np.random.default_rng(7)
    noises = [rng.standard_normal((4, 2), dtype=np.float32) for _ in range(3)]
    for column, setting in enumerate(settings):
        clip = setting.clip * problem.radius
        sigma = math.sqrt(3.0) * gaussian.sigma(setting.epsilon, DELTA) * clip
        for draw in range(2):
            w, step = np.zeros(4), np.zeros(4)
            for noise in noises:
                prediction = problem.X @ w
                if logistic:
                    prediction = 1.0 / (1.0 + np.exp(-prediction))
                gradients = (prediction - problem.y)[:, None] * problem.X
                lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
                clipped = gradients * np.minimum(1.0, clip / np.maximum(lengths, 1e-300))
                total = clipped.sum(axis=0) + sigma * noise[:, draw]
                step = setting.momentum * step - setting.rate / problem.radius / clip * total / len(problem.y)
                w = w + step
            np.testing.assert_allclose(found[:, column, draw], w, rtol=1e-4, atol=1e-5)


def test_a_clip_at_the_radius_changes_no_logistic_gradient():
    problem = make(True)
    lengths = np.abs(problem.y - 0.5) * np.linalg.norm(problem.X, axis=1)
    assert np.all(np.linalg.norm(problem.X, axis=1) <= problem.radius)
    assert np.all(lengths <= problem.radius)


def test_steps_compose_to_the_budget():
    for epsilon in (0.1, 1.0, 8.0):
        shift = math.sqrt(100.0) / (math.sqrt(100.0) * rivals.multiplier(epsilon, DELTA))
        spent = float(gaussian.delta(epsilon, sensitivity=shift, sigma=1.0))
        assert 0.999 * DELTA < spent <= DELTA


def test_newton_without_noise_is_maximum_likelihood():
    problem = make(True)
    found = rivals.newton(problem, [Newton(HUGE, 60, 0.5, 1e5)], 1, DELTA, 0)[:, 0, 0]
    plain = LogisticRegression(C=1e12, fit_intercept=False, tol=1e-10).fit(problem.X, problem.y)
    np.testing.assert_allclose(found, plain.coef_[0], atol=1e-3)


def test_the_direction_changes_by_no_more_than_its_sensitivity():
    rng = np.random.default_rng(1)
    s, floor = 0.25 * 4.0, 0.7
    bound = s / (floor * (floor + s))
    for _ in range(300):
        root = rng.normal(size=(4, 4)) * rng.uniform(0.0, 2.0)
        x = rng.normal(size=4)
        x *= math.sqrt(s * rng.uniform()) / np.linalg.norm(x)
        H = root @ root.T + floor * np.eye(4)
        change = np.linalg.norm(np.linalg.inv(H) - np.linalg.inv(H + np.outer(x, x)), 2)
        assert change <= bound * (1.0 + 1e-12)
    alone = floor * np.eye(4)
    worst = np.diag([s, 0.0, 0.0, 0.0])
    assert np.linalg.norm(np.linalg.inv(alone) - np.linalg.inv(alone + worst), 2) == pytest.approx(bound)


@pytest.mark.parametrize("release", [rivals.adaptive_statistics, rivals.statistics])
def test_statistics_without_noise_are_least_squares(release):
    problem = make(False)
    exact = np.linalg.lstsq(problem.X, problem.y, rcond=None)[0]
    np.testing.assert_allclose(release(problem, HUGE, 1, DELTA, 0)[:, 0], exact, atol=1e-4)


def test_the_noise_of_the_matrix_has_the_shift_of_one_release():
    # The variances of its entries over 4,000 draws; the chance of a deviation of 15% is below 1e-9 each.
    problem = Problem(np.zeros((1, 3)), np.zeros(1), 2.0, False)
    drawn = np.array([found[0] for found in rivals._statistics(problem, 1.0, 4000, DELTA, 0, parts=2)])
    scale = math.sqrt(2.0) * gaussian.sigma(1.0, DELTA) * 4.0
    assert np.array_equal(drawn, drawn.transpose(0, 2, 1))
    expected = np.where(np.eye(3, dtype=bool), scale**2, 0.5 * scale**2)
    np.testing.assert_allclose(drawn.var(axis=0), expected, rtol=0.15)


def test_scores_are_those_of_scikit_learn():
    rng = np.random.default_rng(2)
    margins = np.round(rng.normal(size=(60, 3)), 1)  # with ties
    labels = rng.integers(0, 2, 60).astype(float)
    found = scores.classification(margins, labels)
    probabilities = 1.0 / (1.0 + np.exp(-margins))
    for column in range(3):
        assert found["auc"][column] == pytest.approx(roc_auc_score(labels, margins[:, column]))
        assert found["log_loss"][column] == pytest.approx(log_loss(labels, probabilities[:, column]))
    outcome = rng.normal(size=60)
    r2 = scores.regression(margins, outcome)["r2"]
    assert r2 == pytest.approx([r2_score(outcome, margins[:, column]) for column in range(3)])


def test_the_calibration_error_is_zero_for_certainties_and_half_for_guesses():
    labels = np.repeat([0.0, 1.0], 50)
    margins = np.column_stack(
        [1e3 * (2.0 * labels - 1.0), 1e-9 * (labels - 0.5), -1e3 * (2.0 * labels - 1.0)]
    )
    np.testing.assert_allclose(scores.calibration_error(margins, labels), [0.0, 0.5, 1.0], atol=1e-6)
