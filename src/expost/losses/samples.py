"""Where a loss is looked at to check it: records and parameters across all that it declares."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from expost._common.typing import BoolArray, FloatArray
from expost.losses.base import SLACK, LabelSet
from expost.losses.convex import ConvexLoss
from expost.losses.vector import AnyLoss

# Distances of labels from zero and from the ends of their set.
_LABELS = np.concatenate([[0.0], np.logspace(-3, 4, 15)])
# For one predictor, distances from zero and from the label.
_PREDICTORS = np.concatenate([[0.0], np.logspace(-6, np.log10(50.0), 120), [1e3, 1e4]])
# For several, lengths of vectors of predictors, and how many directions are tried for each, at each label.
_LENGTHS, _DIRECTIONS = np.concatenate([[0.0], np.logspace(-3, 2, 11), [1e3, 1e4]]), 24
# The numbers in all Hessians at once, and the labels and axes that are tried.
_MOST_NUMBERS, _MOST_LABELS, _MOST_AXES = 3_000_000, 12, 8
# Where differences of predictors are accurate, and a shift off the places of kinks.
_NEAR, _SHIFT = 12.0, 0.0371
# For any convex loss, lengths of parameters in units of ξ/β, the distance over which a gradient can change by
# all of its size, and how many directions and records are drawn.
_CONVEX_LENGTHS = np.array([0.0, 0.03, 0.3, 1.0, 3.0, 10.0, 100.0, 1e3, 1e4])
_CONVEX_DIRECTIONS, _CONVEX_RECORDS = 4, 24
# Records whose own minimum is looked for, and steps towards it.
_OWN, _NEWTON_STEPS = 8, 40
# Eigenvalues of a matrix of d rows take about d³ operations: these in all, for a least number of vectors.
_WORK, _FEWEST = 1e9, 30


@dataclass(frozen=True, eq=False)
class Sample:
    """Some records at parameters, of any convex loss or of one of linear predictors and labels."""

    loss: Any
    at: FloatArray
    """One vector for all records, or a vector of predictors for each."""
    records: FloatArray
    units: tuple[float, float] = (1.0, 1.0)
    """The size of a gradient, and that of a Hessian."""

    @cached_property
    def parts(self) -> dict[str, FloatArray]:
        """What the loss itself computes: values, first and second derivatives."""
        loss, at = self.loss, self.at
        if isinstance(loss, ConvexLoss):
            names = ["value", "gradient", "hessian" if loss.has_hessian else "factor"]
            return {name: np.asarray(getattr(loss, name)(at, self.records)) for name in names}
        eta = at[:, 0] if loss.along_row else at
        arrays = loss.value(eta, self.records), *loss.derivatives(eta, self.records)
        return dict(zip(("value", *self.words), map(np.asarray, arrays), strict=True))

    @property
    def words(self) -> tuple[str, str]:
        """What the loss calls its derivatives."""
        if self.loss.along_row:
            return "first derivative", "second derivative"
        return "gradient", "Hessian" if isinstance(self.loss, ConvexLoss) else "factor"

    @property
    def value(self) -> FloatArray:
        """The loss of each record."""
        return self.parts["value"]

    @cached_property
    def gradient(self) -> FloatArray:
        """One row for each record, whatever the kind of loss."""
        return [*self.parts.values()][1].reshape(len(self.records), -1)

    @cached_property
    def hessian(self) -> FloatArray:
        """One matrix for each record, whatever the kind of loss."""
        second = [*self.parts.values()][2]
        if "factor" in self.parts:
            return np.asarray(second @ np.swapaxes(second, 1, 2))
        return second.reshape(*self.gradient.shape, -1)

    @cached_property
    def steepness(self) -> FloatArray:
        """The length of each gradient."""
        return np.asarray(np.linalg.norm(self.gradient, axis=1))

    @cached_property
    def eigenvalues(self) -> FloatArray:
        """Those of each Hessian, the smallest first."""
        return np.asarray(np.linalg.eigvalsh(self.hessian), dtype=float)

    def rank(self, least: float = 0.0) -> FloatArray:
        """How many eigenvalues are neither rounding nor below ``least``."""
        values = self.eigenvalues
        return np.asarray(np.sum(values > np.maximum(SLACK * values[:, -1:], least), axis=1))

    @property
    def unit(self) -> float:
        """The distance over which a gradient can change by all of its size."""
        return self.units[0] / self.units[1]

    def at_each(self, thetas: FloatArray) -> Iterator[Self]:
        """The records at one vector after the other; made anew each time, as all Hessians may be too many."""
        return (replace(self, at=theta) for theta in thetas)

    def moved(self, shift: FloatArray) -> Self:
        """The records at other parameters."""
        return replace(self, at=self.at + shift)

    def only(self, row: int) -> Self:
        """One of the records."""
        at = self.at if self.at.ndim == 1 else self.at[row : row + 1]
        return replace(self, at=at, records=self.records[row : row + 1])

    def where(self, bad: BoolArray) -> str:
        """The first of the records that are marked, in words."""
        one = self.only(int(np.flatnonzero(bad)[0]))
        names = ("theta", "record") if self.at.ndim == 1 else ("eta", "y")
        return f"at {names[0]}={listed(one.at)}, {names[1]}={listed(one.records)}"


def listed(numbers: FloatArray) -> str:
    """The first numbers, in words."""
    entries = [f"{entry:.6g}" for entry in numbers.flat]
    return entries[0] if len(entries) == 1 else f"({', '.join(entries[:6])}{', …' * (len(entries) > 6)})"


def rays(
    random: np.random.Generator, dimension: int, lengths: FloatArray, *, axes: int, drawn: int
) -> FloatArray:
    """Vectors of all lengths along the first axes, both ways, and in random directions."""
    ends, spread = np.eye(dimension)[:axes], random.normal(size=(drawn, dimension))
    directions = np.concatenate([ends, -ends, spread / np.linalg.norm(spread, axis=1)[:, None]])
    return np.asarray((lengths[:, None, None] * directions).reshape(-1, dimension))


def _labels_across(labels: LabelSet) -> FloatArray:
    """Labels across the whole set: its ends, between them, and far out where it has no end."""
    if labels.values is not None:
        return np.array(labels.values)
    ends = [end for end in (labels.low, labels.high) if np.isfinite(end)]
    y = np.concatenate([place + sign * _LABELS for place in (0.0, *ends) for sign in (-1.0, 1.0)])
    if len(ends) == 2:
        y = np.concatenate([y, np.linspace(ends[0], ends[1], 25)])
    return np.unique(y[labels.contains(y)])


def one_predictor(loss: AnyLoss) -> tuple[Sample, Sample]:
    """Where a loss of one predictor is looked at, and where its differences are."""
    labels = _labels_across(loss.labels)

    def crossed(distances: FloatArray) -> Sample:
        """Predictors at these distances from zero and from the label, to both sides, for every label."""
        signed = np.unique(np.concatenate([-distances, distances]))
        eta = np.stack(np.broadcast_arrays(signed, labels[:, None] + signed), axis=1)
        return Sample(loss, eta.reshape(-1, 1), np.repeat(labels, 2 * len(signed)))

    return crossed(_PREDICTORS), crossed(np.linspace(0.0, _NEAR, 121) + _SHIFT)


def several_predictors(loss: AnyLoss) -> tuple[Sample, Sample]:
    """Where a loss of several is looked at; of many points a sample, so that memory stays small."""
    random = np.random.default_rng(0)
    points = rays(random, loss.outputs, _LENGTHS, axes=_MOST_AXES, drawn=_DIRECTIONS)
    labels = _labels_across(loss.labels)
    labels = labels[np.unique(np.linspace(0, len(labels) - 1, _MOST_LABELS).astype(int))]
    eta, y = np.tile(points, (len(labels), 1)), np.repeat(labels, len(points))
    most = max(len(labels), _MOST_NUMBERS // (loss.outputs + 1) ** 2)
    kept = np.sort(random.permutation(len(y))[:most])
    eta, y = eta[kept], y[kept]
    close = np.linalg.norm(eta, axis=1) <= _NEAR
    return Sample(loss, eta, y), Sample(loss, eta[close] + _SHIFT, y[close])


def convex_sample(loss: ConvexLoss, random: np.random.Generator) -> tuple[Sample, FloatArray]:
    """Records across the set with labels across theirs, at zero; and parameters of all lengths to try."""
    d, unit = loss.n_parameters, loss.max_gradient / loss.max_curvature
    rows, labels = loss.record_set.draw(random, _CONVEX_RECORDS), _labels_across(loss.labels)
    if len(labels):
        chosen = np.resize(labels, max(len(rows), len(labels)))
        rows = np.resize(rows, (len(chosen), rows.shape[1]))
        rows = np.column_stack([rows, random.permutation(chosen)])
    lengths = np.concatenate([unit * _CONVEX_LENGTHS, loss.parameter_scale * _CONVEX_LENGTHS[3:6]])
    thetas = rays(random, d, lengths, axes=_CONVEX_DIRECTIONS, drawn=_CONVEX_DIRECTIONS)
    thetas = random.permutation(np.unique(thetas, axis=0))
    most = max(_FEWEST, int(_WORK / (len(rows) * d**3)))
    sample = Sample(loss, np.zeros(d), rows, (loss.max_gradient, loss.max_curvature))
    return sample, np.concatenate([np.zeros((1, d)), thetas[: most - 1]])


def minima(sample: Sample) -> FloatArray:
    """Where some single records have their minimum: there curvature is often largest."""
    ridge, longest = 1e-6 * sample.units[1] * np.eye(len(sample.at)), sample.unit
    found = []
    for row in np.unique(np.linspace(0, len(sample.records) - 1, _OWN).astype(int)).tolist():
        one = sample.only(row)
        for _ in range(_NEWTON_STEPS):  # damped
            step = -np.linalg.lstsq(one.hessian[0] + ridge, one.gradient[0], rcond=None)[0]
            length = float(np.linalg.norm(step))
            if not np.isfinite(length) or length <= 1e-12 * longest:
                break
            one = one.moved(step * min(1.0, longest / length))
        found.append(one.at)
    return np.array(found)
