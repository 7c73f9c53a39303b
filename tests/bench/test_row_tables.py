"""The comparison of ordered classes and of times descends on the loss that it says, and clips people."""

import numpy as np
import pytest

from bench.rivals import Descent
from bench.row_tables import CHOSEN_ON, ORDERED
from bench.rows import Steps, clipped_sum, descend

# Of ordered classes all rows count; of times those up to the last period that was seen.
KINDS = pytest.mark.parametrize("kind", ["ordered", "times"])


def case(kind, rows=30, features=3, places=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (rows, features))
    codes, numbers = rng.integers(0, places + 1, rows)[:, None], np.arange(1, places + 1)
    answers = codes >= numbers if kind == "ordered" else (codes == numbers) & (rng.random((rows, 1)) < 0.7)
    counted = np.ones((rows, places)) if kind == "ordered" else numbers <= codes
    return X, answers.astype(float), counted.astype(float), rng.normal(size=(features + places, 1))


def loss(theta, X, answers, counted):
    """That of all people: of each the logistic losses of her rows that count, over the number of places."""
    places, total = answers.shape[1], 0.0
    for person, place in zip(*np.nonzero(counted), strict=True):
        score = np.append(X[person], np.eye(places)[place]) @ theta
        total += (np.logaddexp(0.0, score) - answers[person, place] * score) / places
    return total


@KINDS
def test_without_a_clip_the_sum_is_the_gradient_of_the_loss(kind):
    *given, weights = case(kind)
    found = clipped_sum(*given, weights, np.array([1e9]))[:, 0]
    steps = 1e-6 * np.eye(len(weights))
    numeric = [
        (loss(weights[:, 0] + step, *given) - loss(weights[:, 0] - step, *given)) / 2e-6 for step in steps
    ]
    np.testing.assert_allclose(found, numeric, rtol=1e-6, atol=1e-7)


@KINDS
def test_each_persons_gradient_is_cut_to_the_clip_and_keeps_its_direction(kind):
    *given, weights = case(kind)
    clip, whole = np.array([0.2]), np.array([1e9])
    cut = 0
    for one in zip(*(part[:, None] for part in given), strict=True):
        full, short = (clipped_sum(*one, weights, limit)[:, 0] for limit in (whole, clip))
        length = np.linalg.norm(full)
        cut += length > 0.2
        np.testing.assert_allclose(short, full * 0.2 / max(length, 0.2), rtol=1e-12)
    assert 0 < cut < len(given[0])


@KINDS
def test_with_a_large_budget_descent_comes_to_the_minimum(kind):
    *given, _ = case(kind, rows=200, features=2, places=3)
    setting = Descent(epsilon=1e7, steps=150, clip=2.0, rate=1.6, momentum=0.9)
    found = descend(Steps(*given, 1.7), [setting], 1, 1e-6, 0)[:, 0, 0].astype(float)
    gradient = clipped_sum(*given, found[:, None], np.array([1e9]))[:, 0]
    assert np.linalg.norm(gradient) < 1e-3 * 200


def test_half_of_the_tables_of_ordered_classes_are_held_out():
    assert len(ORDERED) == 2 * CHOSEN_ON
