"""Where a convex loss is checked: records across the declared set, and parameters near and far."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from expost._common.typing import FloatArray
from expost.losses.base import LabelSet
from expost.losses.convex import ConvexLoss

# Lengths of parameters in units of ξ/β, the distance over which a gradient can change by all of its size.
_LENGTHS = np.array([0.0, 0.03, 0.3, 1.0, 3.0, 10.0, 100.0, 1e3, 1e4])
_DIRECTIONS = 4
_RECORDS = 24
# Records whose own minimum is looked for, and steps towards it.
_OWN, _STEPS = 8, 40
# Eigenvalues of a matrix of d rows take about d³ operations: so many in all, for a least number of vectors.
_WORK, _FEWEST = 1e9, 30
# Random steps of a search for the largest value of a quantity.
_TRIALS = 80


@dataclass(frozen=True, eq=False)
class Points:
    """Parameters, one vector a row, and records, every one of which is looked at with every vector."""

    thetas: FloatArray
    records: FloatArray
    unit: float
    """ξ/β."""

    @classmethod
    def of(cls, loss: ConvexLoss, random: np.random.Generator) -> "Points":
        """Records across the set with labels across theirs, and parameters of all lengths."""
        d, unit = loss.n_parameters, loss.max_gradient / loss.max_curvature
        rows = loss.record_set.draw(random, _RECORDS)
        labels = _labels(loss.labels)
        if len(labels):
            chosen = np.resize(labels, max(len(rows), len(labels)))
            rows = np.column_stack(
                [np.resize(rows, (len(chosen), rows.shape[1])), random.permutation(chosen)]
            )
        directions = random.normal(size=(_DIRECTIONS, d))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        axes = np.eye(d)[:_DIRECTIONS]
        spread = np.concatenate([directions, axes, -axes])
        lengths = np.concatenate([unit * _LENGTHS, loss.parameter_scale * _LENGTHS[3:6]])
        thetas = (lengths[:, None, None] * spread).reshape(-1, d)
        thetas = random.permutation(np.unique(thetas, axis=0))
        most = max(_FEWEST, int(_WORK / (len(rows) * d**3)))
        return cls(np.concatenate([np.zeros((1, d)), thetas[: most - 1]]), rows, unit)

    def with_minima(self, loss: ConvexLoss) -> "Points":
        """The same with the places where single records are content, where curvature is often largest."""
        places = np.unique(np.linspace(0, len(self.records) - 1, _OWN).astype(int))
        own = [_minimum(loss, self.records[place : place + 1]) for place in places]
        return Points(np.concatenate([self.thetas, np.array(own)]), self.records, self.unit)


def _labels(labels: LabelSet) -> FloatArray:
    if labels.values is not None:
        return np.array(labels.values)
    far = np.array([0.0, 1.0, 10.0, 1e2, 1e4])
    low, high = max(labels.low, -1e4), min(labels.high, 1e4)
    return np.unique(np.clip(np.concatenate([np.linspace(low, high, 9), -far, far]), low, high))


def _minimum(loss: ConvexLoss, record: FloatArray) -> FloatArray:
    """Close to the minimum of one record's loss, by damped Newton steps."""
    theta, ridge = np.zeros(loss.n_parameters), 1e-6 * loss.max_curvature
    for _ in range(_STEPS):
        gradient = loss.gradient(theta, record)[0]
        hessian = loss.hessian(theta, record)[0] + ridge * np.eye(len(theta))
        step = -np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        limit = loss.max_gradient / loss.max_curvature
        length = float(np.linalg.norm(step))
        if not np.isfinite(length) or length <= 1e-12 * limit:
            break
        theta = theta + step * min(1.0, limit / length)
    return theta


def climb(
    measures: Callable[[FloatArray, FloatArray], FloatArray],
    points: Points,
    random: np.random.Generator,
) -> list[tuple[float, FloatArray, FloatArray]]:
    """The largest value of each measure that is found, with its parameters and its record.

    ``measures`` has one row per record and one column per measure. The search looks at all points first, and
    then takes random steps of many lengths from the best of them.
    """
    seen = np.array([measures(theta, points.records) for theta in points.thetas])
    found = []
    for column in range(seen.shape[2]):
        place, row = np.unravel_index(int(np.argmax(seen[:, :, column])), seen.shape[:2])
        best, theta = float(seen[place, row, column]), points.thetas[place]
        record = points.records[row : row + 1]
        for length in np.repeat(np.logspace(1, -3, _TRIALS // 4), 4) * points.unit:
            candidate = theta + length * random.normal(size=len(theta)) / np.sqrt(len(theta))
            value = float(measures(candidate, record)[0, column])
            if value > best:
                best, theta = value, candidate
        found.append((best, theta, record[0]))
    return found
