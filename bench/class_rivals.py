"""Other private models of several classes on the same rows: gradient descent, and one model per class.

Accounting is as in :mod:`bench.rivals`: Gaussian releases compose exactly. A gradient of the softmax loss is
the product of a row and of ``p - e_y``, which is no longer than the square root of two.
"""

import math
from dataclasses import dataclass

import numpy as np

from bench.rivals import multiplier
from expost import calibrate, gaussian
from expost.data.encoding import with_labels
from expost.data.weights import Declared
from expost.fitting.mechanism import perturb
from expost.fitting.noise import noise_source
from expost.privacy.shapes import capped_logistic

# As many rows and models at a time as fit into a cache.
BLOCK, MODELS = 1024, 32


@dataclass(frozen=True)
class ClassProblem:
    """Rows for fitting in the ball of this radius, the constant column included, and classes 0, 1, ..."""

    X: np.ndarray
    y: np.ndarray
    radius: float
    classes: int

    @property
    def steepest(self):
        """The largest norm of a record's gradient."""
        return math.sqrt(2.0) * self.radius


def softmax_descent(problem, settings, draws, delta, seed):
    """DP-GD on the softmax loss from zero with full batches: coefficients (d, classes, settings, draws).

    In each of T steps the sum of the clipped gradients gets noise ``sqrt(T) * multiplier * clip``. Settings
    are those of :class:`bench.rivals.Descent`, with a clip that is a share of the longest gradient: at 1 it
    changes nothing. All settings have the same T and see the same noise.
    """
    (steps,) = {setting.steps for setting in settings}
    models = [(setting, draw) for setting in settings for draw in range(draws)]
    rng = np.random.default_rng(seed)
    shape = (steps, problem.X.shape[1], problem.classes, draws)
    noise = rng.standard_normal(shape, dtype=np.float32)
    X, lengths = problem.X.astype(np.float32), np.linalg.norm(problem.X, axis=1).astype(np.float32)
    found = [
        _descend(problem, X, lengths, models[start : start + MODELS], noise, delta)
        for start in range(0, len(models), MODELS)
    ]
    return np.concatenate(found, axis=2).reshape(*shape[1:3], len(settings), draws)


def _descend(problem, X, lengths, models, noise, delta):
    """A few models at once, the last axis."""

    def columns(values):
        return np.array(values, dtype=np.float32)

    steps, n = len(noise), len(X)
    clips = columns([setting.clip * problem.steepest for setting, _ in models])
    rates = columns([setting.rate for setting, _ in models]) / problem.radius / n
    momenta = columns([setting.momentum for setting, _ in models])
    scales = math.sqrt(steps) * columns([multiplier(setting.epsilon, delta) for setting, _ in models])
    draws = [draw for _, draw in models]
    weights = np.zeros((X.shape[1], problem.classes, len(models)), dtype=np.float32)
    velocity = np.zeros_like(weights)
    for step in range(steps):
        total = np.zeros((X.shape[1], weights[0].size), dtype=np.float32)
        for start in range(0, n, BLOCK):
            rows = slice(start, start + BLOCK)
            slopes = (X[rows] @ weights.reshape(len(weights), -1)).reshape(-1, *weights.shape[1:])
            slopes -= slopes.max(axis=1, keepdims=True)
            np.exp(slopes, out=slopes)
            slopes /= slopes.sum(axis=1, keepdims=True)
            slopes[np.arange(len(slopes)), problem.y[rows]] -= 1.0
            norms = lengths[rows, None] * np.sqrt(np.einsum("rkm,rkm->rm", slopes, slopes))
            slopes *= (clips / np.maximum(norms, clips))[:, None, :]
            total += X[rows].T @ slopes.reshape(len(slopes), -1)
        gradient = total.reshape(weights.shape) / clips + scales * noise[step][:, :, draws]
        velocity = momenta * velocity - rates * gradient
        weights += velocity
    return weights


def split_evenly(epsilon, delta, classes, radius):
    """A binary model of ours for an equal share of epsilon and delta: K of them spend no more than both."""
    budget = {"epsilon": epsilon / classes, "delta": delta / classes}
    return {"loss": capped_logistic(**budget, radius=radius), **budget}


def composed_as_gaussians(epsilon, delta, classes, radius):
    """The least noise that K binary models can have together, with a cap and l2 by our rules for it.

    All K gradients of a record can be as long as their cap C together, so that no accounting allows less
    noise than the Gaussian mechanism of sensitivity ``sqrt(K) C`` needs. It is not proved to be enough:
    one-vs-rest is favoured.
    """
    noise = math.sqrt(classes) * multiplier(epsilon, delta)
    # The cap that our rule has where one model has this noise, which is where its epsilon is smaller.
    alone = float(gaussian.epsilon(delta, sensitivity=1.0, sigma=noise))
    loss = capped_logistic(alone, delta, radius=radius)
    most = loss.cap * radius
    return {"loss": loss, "sigma": most * noise, "l2": 0.5 * most * radius * noise}


def one_vs_rest(rows, y, classes, norm, parameters, draws, seed):
    """A binary model for each class against the rest: coefficients (d, classes, draws)."""
    plan = calibrate(norm=norm, fit_intercept=True, **parameters)
    fitted = np.empty((rows.design.dimension, classes, draws))
    for label in range(classes):
        records = with_labels(rows, (y == label).astype(int), Declared.of(plan, classes=(0, 1)))
        for draw in range(draws):
            # Every class has noise of its own.
            release, _ = perturb(plan, records, noise=noise_source(seed + classes * draw + label))
            fitted[:, label, draw] = release.coefficients
    return fitted
