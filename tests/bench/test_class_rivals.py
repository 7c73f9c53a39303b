"""The peers of bench.multiclass: they are what they are said to be, and their accounting is exact."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss

from bench import class_rivals, scores
from bench.class_rivals import ClassProblem
from bench.rivals import Descent
from bench.tuning import tuned
from expost import calibrate, gaussian
from expost.data.encoding import encode_rows
from expost.data.weights import Declared

DELTA, CLASSES = 1e-6, 3
rng = np.random.default_rng(0)
FEATURES = rng.uniform(-1.0, 1.0, (1500, 3))  # more rows than one block
LABELS = np.argmax(FEATURES @ rng.normal(size=(3, CLASSES)) + rng.gumbel(size=(1500, CLASSES)), axis=1)
PROBLEM = ClassProblem(np.column_stack([FEATURES, np.ones(1500)]), LABELS, 2.0, CLASSES)


def test_gradient_descent_is_the_loop_over_records():
    settings = [Descent(1.0, 3, 0.2, 1.6, 0.9), Descent(8.0, 3, 1.0, 0.4, 0.0)]
    draws = 20  # more models than run together
    found = class_rivals.softmax_descent(PROBLEM, settings, draws, DELTA, 7)
    noise = np.random.default_rng(7).standard_normal((3, 4, CLASSES, draws), dtype=np.float32)
    X, wanted = PROBLEM.X, np.eye(CLASSES)[LABELS]
    for column, setting in enumerate(settings):
        clip = setting.clip * math.sqrt(2.0) * 2.0
        sigma = math.sqrt(3.0) * gaussian.sigma(setting.epsilon, DELTA) * clip
        for draw in (0, draws - 1):
            w, step = np.zeros((4, CLASSES)), np.zeros((4, CLASSES))
            for drawn in noise[..., draw]:
                odds = np.exp(X @ w)
                gradients = X[:, :, None] * (odds / odds.sum(axis=1, keepdims=True) - wanted)[:, None, :]
                lengths = np.linalg.norm(gradients, axis=(1, 2))
                assert np.all(lengths <= PROBLEM.steepest)  # so that a clip of 1 changes nothing
                gradients *= np.minimum(1.0, clip / lengths)[:, None, None]
                total = gradients.sum(axis=0) + sigma * drawn
                step = setting.momentum * step - setting.rate / 2.0 / clip * total / len(X)
                w = w + step
            np.testing.assert_allclose(found[:, :, column, draw], w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_one_vs_rest_spends_the_budget_of_all_classes(epsilon):
    evenly = class_rivals.split_evenly(epsilon, DELTA, 10, 2.0)
    assert (10 * evenly["epsilon"], 10 * evenly["delta"]) == pytest.approx((epsilon, DELTA))
    least = class_rivals.composed_as_gaussians(epsilon, DELTA, 10, 2.0)
    # No row of length 2 or less has a longer gradient.
    sensitivity = math.sqrt(10.0) * least["loss"].gradient_cap
    spent = float(gaussian.delta(epsilon, sensitivity=sensitivity, sigma=least["sigma"]))
    assert 0.999 * DELTA < spent <= (1.0 + 1e-12) * DELTA


@pytest.mark.long
def test_one_vs_rest_without_noise_is_scikit_learns():
    plan = calibrate(loss="logistic", epsilon=1.0, norm=2.0, fit_intercept=True)
    design = encode_rows(FEATURES, Declared.of(plan))
    parameters = {"loss": "logistic", "sigma": 1e-9, "l2": 0.5}
    found = class_rivals.one_vs_rest(design, LABELS, CLASSES, 2.0, parameters, 2, 0)
    for label in range(CLASSES):
        peer = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10, solver="newton-cholesky")
        expected = peer.fit(PROBLEM.X, label == LABELS).coef_[0]
        np.testing.assert_allclose(found[:, label], np.column_stack([expected] * 2), atol=1e-6)


def test_scores_of_classes_are_those_of_scikit_learn():
    odds = rng.normal(size=(60, CLASSES, 2))
    found = scores.of_classes(odds, LABELS[:60])
    for model in range(2):
        weights = np.exp(odds[..., model])
        probabilities = weights / weights.sum(axis=1, keepdims=True)
        assert found["accuracy"][model] == accuracy_score(LABELS[:60], probabilities.argmax(axis=1))
        assert found["log_loss"][model] == pytest.approx(log_loss(LABELS[:60], probabilities))


@dataclass(frozen=True)
class Setting:
    epsilon: float
    quality: float


def test_the_best_setting_of_every_family_is_found():
    settings = [Setting(epsilon, quality) for epsilon in (1.0, 8.0) for quality in range(9)]
    families = {"all": settings, "odd": [setting for setting in settings if setting.quality % 2]}

    def score(chosen, draws):
        assert draws in (5, 20)
        return {one: {"good": one.quality, "loss": abs(one.quality - 3.0), "shown": draws} for one in chosen}

    found = tuned(score, families, 20, {"good": (1.0, ("good", "shown")), "loss": (-1.0, ("loss",))})
    for epsilon in (1.0, 8.0):
        assert {name: best[epsilon]["good"] for name, best in found.items()} == {"all": 8, "odd": 7}
        assert {best[epsilon]["loss"] for best in found.values()} == {0.0}
        assert {best[epsilon]["shown"] for best in found.values()} == {20}
        assert found["odd"][epsilon]["loss_setting"] == {"epsilon": epsilon, "quality": 3}
