"""The paper's synthetic data."""

from dataclasses import dataclass

import numpy as np

from papers.common import FloatArray


@dataclass(frozen=True)
class Sample:
    """Rows and outcomes to fit, and others from the same law to test on."""

    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    y_test: FloatArray


def separable_disc(n: int, margin: float, seed: int) -> tuple[FloatArray, FloatArray]:
    """Two classes in the unit disc, uniform on either side of a strip of width ``margin`` in its middle."""
    rng = np.random.default_rng(seed)
    points = np.empty((0, 2))
    while len(points) < n:
        more = rng.uniform(-1.0, 1.0, size=(4 * n, 2))
        inside = (np.linalg.norm(more, axis=1) <= 1.0) & (np.abs(more[:, 0]) >= 0.5 * margin)
        points = np.vstack([points, more[inside]])
    points = points[:n]
    return points, (points[:, 0] > 0.0).astype(float)


def directions(n: int, d: int, seed: int, *, tests: int = 0, classes: bool = True) -> Sample:
    r"""Rows :math:`x` from a normal law, scaled to length one, and :math:`y = x^\top\theta` scaled to [0, 1].

    With ``classes`` the outcome is rounded to 0 or 1, because the logistic loss of the paper's analysis has
    two labels; otherwise it is the number itself.
    """
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=d)
    X = rng.normal(size=(n + tests, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = X @ theta
    y = (y - y.min()) / (y.max() - y.min())
    if classes:
        y = np.round(y)
    return Sample(X[:n], y[:n], X[n:], y[n:])
