"""Other private models on the same rows, with exact Gaussian accounting; many at once, one per column.

Every mechanism here is a composition of Gaussian mechanisms, and these compose exactly: releases of shift
``mu_1, ..., mu_k`` together are one of shift ``sqrt(mu_1^2 + ... + mu_k^2)`` (Dong, Roth and Su 2022). So
the shift that (epsilon, delta) allows is that of the analytic Gaussian mechanism (Balle and Wang 2018), and
it is shared out in squares. Neighbours differ by one record that is added or removed, as in the library; the
number of rows, by which a rate is divided, is taken as known.
The rows lie in a ball of radius R, the constant column included; labels are 0 and 1, or lie in [-1, 1].
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from expost import gaussian

# As many rows at a time as fit into a cache.
BLOCK = 1024


@dataclass(frozen=True)
class Problem:
    """Rows for fitting in the ball of this radius, labels, and what is fitted to them."""

    X: np.ndarray
    y: np.ndarray
    radius: float
    logistic: bool

    def slopes(self, predictors, y):
        """The derivative of each record's loss in its linear predictor."""
        means = 0.5 + 0.5 * np.tanh(0.5 * predictors) if self.logistic else predictors
        return means - y


@dataclass(frozen=True)
class Descent:
    """A setting of gradient descent.

    The clip is a share of the radius R. The rate is what a mean gradient of the clip's length moves the
    coefficients by, as a multiple of 1/R.
    """

    epsilon: float
    steps: int
    clip: float
    rate: float
    momentum: float


@dataclass(frozen=True)
class Newton:
    """A setting of double-noise Newton.

    The share is the direction's of the squared shift. The floor of the Hessian is a multiple of the one at
    which the direction's noise is as long as the direction may be.
    """

    epsilon: float
    steps: int
    share: float
    floor: float


def multiplier(epsilon, delta):
    """The noise per unit of sensitivity if there is one Gaussian release: the inverse of its shift."""
    return gaussian.sigma(epsilon, delta)


def gradient_descent(problem, settings, draws, delta, seed):
    """DP-GD by record: coefficients of shape (d, settings, draws); see :func:`descended`.

    For the logistic loss a clip at R changes nothing.
    """
    X, y = problem.X.astype(np.float32), problem.y.astype(np.float32)[:, None]
    lengths = np.linalg.norm(X, axis=1, keepdims=True)

    def clipped_sum(rows, weights, clips):
        slopes = problem.slopes(X[rows] @ weights, y[rows])
        # A record's gradient is its slope times its row, so clipping its norm is clipping the slope.
        limits = clips / np.maximum(lengths[rows], 1e-12)
        np.clip(slopes, -limits, limits, out=slopes)
        return X[rows].T @ slopes

    return descended(clipped_sum, problem, X.shape[1], settings, draws, delta, seed)


def descended(clipped_sum, problem, d, settings, draws, delta, seed):
    """DP-GD from zero with full batches: coefficients of shape (d, settings, draws).

    ``clipped_sum(rows, weights, clips)`` adds up the clipped gradients of a block. In each of T steps their
    sum gets noise ``sqrt(T) * multiplier * clip``. Momentum (the heavy ball) is computed from what is
    released and costs nothing. All settings have the same T and see the same noise.
    """
    (steps,) = {setting.steps for setting in settings}
    n = len(problem.X)

    def columns(values):
        return np.repeat(np.array(values, dtype=np.float32), draws)

    clips = columns([setting.clip * problem.radius for setting in settings])
    rates = columns([setting.rate for setting in settings]) / problem.radius
    momenta = columns([setting.momentum for setting in settings])
    noise = math.sqrt(steps) * columns([multiplier(setting.epsilon, delta) for setting in settings])
    rng = np.random.default_rng(seed)
    weights = np.zeros((d, len(clips)), dtype=np.float32)
    velocity = np.zeros_like(weights)
    for _ in range(steps):
        total = np.zeros_like(weights)
        for start in range(0, n, BLOCK):
            total += clipped_sum(slice(start, start + BLOCK), weights, clips)
        drawn = np.tile(rng.standard_normal((d, draws), dtype=np.float32), len(settings))
        velocity = momenta * velocity - rates * (total / clips + noise * drawn) / n
        weights += velocity
    return weights.reshape(d, len(settings), draws)


def newton(problem, settings, draws, delta, seed):
    """Double-noise DP-Newton (Ganesh, Haghifam, Steinke and Thakurta 2023) with a quadratic upper bound.

    Of each step's squared shift one share pays for the gradient, of sensitivity R. The rest pays for the
    direction: ``(H + floor)^-1 g`` for the released g changes by at most ``|g| s / (floor (floor + s))``
    with ``s = R^2 / 4`` if a record is added, because H changes by a matrix of rank one and norm s. H has
    weights ``tanh(z/2) / 2z`` for the margin z. Coefficients of shape (d, settings, draws).
    """
    X, y, radius = problem.X.astype(np.float32), problem.y, problem.radius
    d, curvature = X.shape[1], 0.25 * radius**2
    weights = np.zeros((d, len(settings), draws))
    for column, setting in enumerate(settings):
        scale = math.sqrt(setting.steps) * multiplier(setting.epsilon, delta)
        first, second = scale / math.sqrt(1.0 - setting.share), scale / math.sqrt(setting.share)
        floor = setting.floor * curvature * second * math.sqrt(d)
        direction_noise = second * curvature / (floor * (floor + curvature))
        rng = np.random.default_rng(seed)
        for draw in range(draws):
            w = np.zeros(d)
            for _ in range(setting.steps):
                margins = X @ w.astype(np.float32)
                gradient = X.T @ (expit(margins) - y) + first * radius * rng.standard_normal(d)
                safe = np.maximum(np.abs(margins), 1e-3)  # the weight is 1/4 to six digits below this
                H = X.T @ (X * (np.tanh(0.5 * safe) / (2.0 * safe))[:, None])
                direction = np.linalg.solve(H + floor * np.eye(d), gradient)
                size = float(np.linalg.norm(gradient))
                w -= direction + direction_noise * size * rng.standard_normal(d)
            weights[:, column, draw] = w
    return weights


def adaptive_statistics(problem, epsilon, draws, delta, seed, failure=0.05):
    """AdaSSP (Wang 2018): noisy X'X, X'y and smallest eigenvalue, which sets the ridge; (d, draws)."""
    return np.stack(
        [
            _ridge(matrix, vector, _adaptive_ridge(problem, rng, scale, delta, failure))
            for matrix, vector, rng, scale in _statistics(problem, epsilon, draws, delta, seed, parts=3)
        ],
        axis=1,
    )


def statistics(problem, epsilon, draws, delta, seed):
    """Sufficient-statistics perturbation: noisy X'X and X'y, a ridge of the noise's own norm; (d, draws)."""
    d = problem.X.shape[1]
    return np.stack(
        [
            _ridge(matrix, vector, 2.0 * math.sqrt(d) * problem.radius**2 * scale / math.sqrt(2.0))
            for matrix, vector, _, scale in _statistics(problem, epsilon, draws, delta, seed, parts=2)
        ],
        axis=1,
    )


def _statistics(problem, epsilon, draws, delta, seed, parts):
    """Noisy X'X and X'y, the generator, and the noise per unit of sensitivity, for each draw."""
    rng = np.random.default_rng(seed)
    scale = math.sqrt(parts) * multiplier(epsilon, delta)
    d = problem.X.shape[1]
    second, first = problem.X.T @ problem.X, problem.X.T @ problem.y
    for _ in range(draws):
        # Symmetric, variance s^2 off the diagonal and 2 s^2 on it: the shift is Frobenius norm / (sqrt(2) s).
        square = rng.standard_normal((d, d))
        matrix = second + 0.5 * problem.radius**2 * scale * (square + square.T)
        yield matrix, first + problem.radius * scale * rng.standard_normal(d), rng, scale


def _adaptive_ridge(problem, rng, scale, delta, failure):
    d, sensitivity = problem.X.shape[1], problem.radius**2
    smallest = float(np.linalg.eigvalsh(problem.X.T @ problem.X)[0])
    safety = math.sqrt(math.log(6.0 / delta))
    noisy = max(smallest + sensitivity * scale * (rng.standard_normal() - safety), 0.0)
    spread = sensitivity * scale / math.sqrt(2.0)  # of the matrix's noise, off the diagonal
    return max(0.0, math.sqrt(d * math.log(2.0 * d * d / failure)) * spread - noisy)


def _ridge(matrix, vector, ridge):
    return np.linalg.lstsq(matrix + ridge * np.eye(len(vector)), vector, rcond=None)[0]
