"""The comparison of ordered classes descends on the loss that it says, and clips people."""

import numpy as np

from bench.rivals import Descent
from bench.row_tables import CHOSEN_ON, ORDERED
from bench.rows import Steps, clipped_sum, descend


def case(rows=30, features=3, places=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (rows, features))
    above = (rng.integers(0, places + 1, rows)[:, None] > np.arange(places)).astype(float)
    return X, above, rng.normal(size=(features + places, 1))


def loss(theta, X, above):
    """That of all people: the means of the logistic losses of their rows."""
    scores = (X @ theta[: X.shape[1]])[:, None] + theta[X.shape[1] :]
    return float(np.sum(np.mean(np.logaddexp(0.0, scores) - above * scores, axis=1)))


def test_without_a_clip_the_sum_is_the_gradient_of_the_loss():
    X, above, weights = case()
    found = clipped_sum(X, above, weights, np.array([1e9]))[:, 0]
    steps = 1e-6 * np.eye(len(weights))
    numeric = [
        (loss(weights[:, 0] + step, X, above) - loss(weights[:, 0] - step, X, above)) / 2e-6 for step in steps
    ]
    np.testing.assert_allclose(found, numeric, rtol=1e-6, atol=1e-7)


def test_each_persons_gradient_is_cut_to_the_clip_and_keeps_its_direction():
    X, above, weights = case()
    clip, whole = np.array([0.2]), np.array([1e9])
    cut = 0
    for x, own in zip(X[:, None], above[:, None], strict=True):
        full, short = (clipped_sum(x, own, weights, one)[:, 0] for one in (whole, clip))
        length = np.linalg.norm(full)
        cut += length > 0.2
        np.testing.assert_allclose(short, full * min(1.0, 0.2 / length), rtol=1e-12)
    assert 0 < cut < len(X)


def test_with_a_large_budget_descent_comes_to_the_minimum():
    X, above, _ = case(rows=200, features=2, places=3)
    setting = Descent(epsilon=1e7, steps=150, clip=2.0, rate=1.6, momentum=0.9)
    found = descend(Steps(X, above, 1.7), [setting], 1, 1e-6, 0)[:, 0, 0].astype(float)
    gradient = clipped_sum(X, above, found[:, None], np.array([1e9]))[:, 0]
    assert np.linalg.norm(gradient) < 1e-3 * len(X)


def test_half_of_the_tables_of_ordered_classes_are_held_out():
    assert len(ORDERED) == 2 * CHOSEN_ON
