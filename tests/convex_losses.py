"""Convex losses to test with: models of the library written out, and one that has Hessians only."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from expost import ConvexLoss, LipschitzPoisson, LocationScale, RecordBall, SmoothedNorm


@dataclass(frozen=True)
class AsConvex(ConvexLoss):
    """A loss of one linear predictor, written as a convex loss."""

    loss: Any
    features: int
    radius: float = 1.0
    name = "as_convex"
    gradient_dimension = 1

    @property
    def n_parameters(self):
        return self.features

    @property
    def record_set(self):
        return RecordBall(self.features, self.radius)

    @property
    def labels(self):
        return self.loss.labels

    @property
    def max_gradient(self):
        return self.loss.curve.max_slope * self.radius

    @property
    def max_curvature(self):
        return self.loss.curve.max_curvature * self.radius**2

    def value(self, theta, records):
        return self.loss.value(records[:, :-1] @ theta, records[:, -1])

    def gradient(self, theta, records):
        slope, _ = self.loss.derivatives(records[:, :-1] @ theta, records[:, -1])
        return slope[:, None] * records[:, :-1]

    def factor(self, theta, records):
        _, curvature = self.loss.derivatives(records[:, :-1] @ theta, records[:, -1])
        return (np.sqrt(curvature)[:, None] * records[:, :-1])[:, :, None]


@dataclass(frozen=True)
class VectorAsConvex(AsConvex):
    """A loss of several linear predictors, written as a convex loss."""

    @property
    def n_parameters(self):
        return self.features * self.loss.outputs

    @property
    def gradient_dimension(self):
        return self.loss.outputs

    def _predictors(self, theta, records):
        return records[:, :-1] @ theta.reshape(self.loss.outputs, self.features).T

    def value(self, theta, records):
        return self.loss.value(self._predictors(theta, records), records[:, -1])

    def gradient(self, theta, records):
        v, _ = self.loss.derivatives(self._predictors(theta, records), records[:, -1])
        return (v[:, :, None] * records[:, None, :-1]).reshape(len(records), -1)

    def factor(self, theta, records):
        _, F = self.loss.derivatives(self._predictors(theta, records), records[:, -1])
        wide = F[:, :, None, :] * records[:, None, :-1, None]
        return wide.reshape(len(records), self.n_parameters, -1)


@dataclass(frozen=True)
class Coupled(ConvexLoss):
    """The logarithm of a sum of exponentials of parameters, with Hessians and no factors."""

    name = "coupled"
    n_parameters = 3
    max_gradient = 2.0
    max_curvature = 0.5
    max_trace = 0.75

    @property
    def record_set(self):
        return RecordBall(3, 1.0)

    def _masses(self, theta, records):
        powers = theta - records
        powers = np.exp(powers - powers.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def value(self, theta, records):
        return np.logaddexp.reduce(theta - records, axis=1) + records @ theta

    def gradient(self, theta, records):
        return self._masses(theta, records) + records

    def hessian(self, theta, records):
        p = self._masses(theta, records)
        return p[:, :, None] * np.eye(3) - p[:, :, None] * p[:, None, :]


def draw_records(loss, rng, n):
    """Rows and labels of a table, some of the rows outside of the declared set."""
    rows = rng.normal(size=(n, loss.record_set.dimension))
    if isinstance(loss, LipschitzPoisson):
        return rows, rng.poisson(3.0, n).clip(0, loss.largest).astype(float)
    if isinstance(loss, AsConvex):
        return rows, rng.choice(loss.labels.values or (-1.0, 0.3, 2.0), n)
    return rows, None


CONVEX = [
    SmoothedNorm(1, smoothing=0.3),
    SmoothedNorm(3, radius=2.0, smoothing=0.2),
    LipschitzPoisson(features=2, largest=20.0, radius=1.5),
    LocationScale(low=-2.0, high=3.0),
    Coupled(),
]


@dataclass(frozen=True)
class OneOfMany(ConvexLoss):
    """A pseudo-Huber loss of the first of many parameters: one eigenvalue, where many are declared."""

    threshold: float = 0.1
    n_parameters: int = 10
    name = "one_of_many"
    max_curvature = max_trace = 1.0

    @property
    def record_set(self):
        return RecordBall(self.n_parameters)

    @property
    def max_gradient(self):
        return self.threshold

    def _bent(self, theta):
        return np.hypot(1.0, theta[0] / self.threshold)

    def value(self, theta, records):
        return np.full(len(records), self.threshold**2 * (self._bent(theta) - 1.0))

    def gradient(self, theta, records):
        return np.outer(np.ones(len(records)), np.eye(self.n_parameters)[0] * theta[0] / self._bent(theta))

    def factor(self, theta, records):
        column = np.eye(self.n_parameters)[:, :1] * self._bent(theta) ** -1.5
        return np.broadcast_to(column, (len(records), self.n_parameters, 1))
