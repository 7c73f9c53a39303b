"""Gradient descent by person, against that by row and against a person's rows spelt out."""

import numpy as np
import pytest

from bench import people, rivals
from bench.people import People
from bench.rivals import Descent, Problem

SETTINGS = [Descent(1.0, 5, clip, 1.6, momentum) for clip in (0.1, 0.5) for momentum in (0.0, 0.9)]


@pytest.fixture
def rows(monkeypatch):
    """Rows and labels; noise would hide what is compared."""
    for module in (people, rivals):
        monkeypatch.setattr(module, "multiplier", lambda epsilon, delta: 0.0)
    rng = np.random.default_rng(0)
    return rng.uniform(-0.5, 0.5, (60, 3)), rng.integers(0, 2, 60)


def found(X, y, counts):
    """What descent by person ends with."""
    table = object.__new__(People)
    table.X, table.y, table.radius = X, y, 1.0
    table.counts, table.starts = counts, np.append(0, np.cumsum(counts)[:-1])
    return table.descend(SETTINGS, 1)


def test_people_with_one_row_are_rows(rows):
    X, y = rows
    by_row = rivals.gradient_descent(Problem(X, y, 1.0, True), SETTINGS, 1, 1e-6, people.SEED)
    np.testing.assert_allclose(found(X, y, np.ones(60, dtype=int)), by_row, atol=1e-5)


def test_the_same_row_many_times_is_one_row(rows):
    X, y = rows
    counts = np.arange(60) % 4 + 1
    many = found(np.repeat(X, counts, axis=0), np.repeat(y, counts), counts)
    np.testing.assert_allclose(many, found(X, y, np.ones(60, dtype=int)), atol=1e-12)


def test_a_step_adds_up_clipped_means(rows):
    X, y = rows
    counts, clip = np.full(20, 3), 0.1
    means = np.mean(((0.5 - y)[:, None] * X).reshape(20, 3, 3), axis=1)
    cut = means * np.minimum(1.0, clip / np.linalg.norm(means, axis=1, keepdims=True))
    table = object.__new__(People)
    table.X, table.y, table.radius, table.counts, table.starts = X, y, 1.0, counts, np.arange(0, 60, 3)
    step = table.descend([Descent(1.0, 1, clip, 1.6, 0.0)], 1)[:, 0, 0]
    np.testing.assert_allclose(step, -1.6 / 20 * cut.sum(axis=0) / clip, atol=1e-12)
