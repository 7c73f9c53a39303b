"""Passes over the rows that add up derivatives of a loss of one linear predictor."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from expost._common.namespaces import Space, on_host
from expost._common.typing import FloatArray
from expost.data.blocks import Block
from expost.fitting.gram import Gram
from expost.losses import Loss, weighted_derivatives

# In single precision, a record whose curvature is smaller than the largest of its block by the square of this
# is left out.
_NEGLIGIBLE = 1e-16


@dataclass
class Sums:
    """What a pass adds up over its rows."""

    gradient: FloatArray
    hessian: FloatArray | None
    slopes: float = 0.0
    curvatures: float = 0.0
    rows: int = 0

    def __iadd__(self, other: Self) -> Self:
        self.gradient += other.gradient
        if self.hessian is not None and other.hessian is not None:
            self.hessian += other.hessian
        self.slopes += other.slopes
        self.curvatures += other.curvatures
        self.rows += other.rows
        return self

    def rescale_to(self, rows: int) -> None:
        """Let the rows that were seen stand for all of them."""
        weight = rows / self.rows
        self.gradient *= weight
        if self.hessian is not None:
            self.hessian *= weight
        self.slopes *= weight
        self.curvatures *= weight


def total(parts: Iterable[Sums]) -> Sums:
    """The sums of all parts, in their order."""
    found = iter(parts)
    sums = next(found)
    for other in found:
        sums += other
    return sums


@dataclass(frozen=True, eq=False)
class Derivatives:
    """The pass that adds up gradients and, in a given precision, Hessians at ``theta``."""

    loss: Loss
    theta: FloatArray
    precision: DTypeLike | None = None

    def __call__(self, blocks: Iterator[Block]) -> Sums:
        """The sums over the blocks."""
        dimension = len(self.theta)
        gram = None if self.precision is None else Gram(dimension, self.precision)
        sums = Sums(np.zeros(dimension), None)
        scaled: NDArray[Any] = np.empty((0, dimension), dtype=self.precision)
        # What leaves the range of a precision is found by the solver, which then takes another.
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, y, weights in blocks:
                slope, curvature = weighted_derivatives(self.loss, rows @ self.theta, y, weights)
                sums.gradient += slope @ rows
                sums.slopes += float(np.sum(np.abs(slope)))
                sums.curvatures += float(np.sum(curvature))
                sums.rows += len(slope)
                if gram is not None:
                    if len(scaled) < len(rows):
                        scaled = np.empty(rows.shape, dtype=self.precision)
                    part = scaled[: len(rows)]
                    root = np.sqrt(curvature)
                    if self.precision != np.float64:
                        # Far beyond the digits of the sum; their products would underflow, which is slow.
                        root[root < _NEGLIGIBLE * np.max(root, initial=0.0)] = 0.0
                    np.copyto(part, rows, casting="same_kind")
                    part *= root.astype(self.precision)[:, None]
                    gram.add(part)
        if gram is not None:
            sums.hessian = gram.matrix()
        return sums

    def in_place(self, blocks: Iterator[Block], space: Space) -> Sums:
        """The same where the rows lie; sums stay there until the end."""
        xp, theta = space.xp, space.put(self.theta)
        dimension, count = len(self.theta), 0
        gradient, sizes = space.zeros(dimension), space.zeros(2)
        hessian = None if self.precision is None else space.zeros(dimension, dimension)
        for rows, y, weights in blocks:
            slope, curvature = weighted_derivatives(self.loss, rows @ theta, y, weights)
            gradient += rows.summed(slope)
            sizes += xp.stack([xp.sum(xp.abs(slope)), xp.sum(curvature)])
            count += slope.shape[0]
            if hessian is not None:
                hessian += rows.gram(curvature, getattr(xp, np.dtype(self.precision).name))
        slopes, curvatures = on_host(sizes).tolist()
        square = None if hessian is None else on_host(hessian)
        return Sums(on_host(gradient), square, slopes, curvatures, count)


@dataclass(frozen=True, eq=False)
class Curvatures:
    """The pass that finds the second derivative of every record at ``theta``."""

    loss: Loss
    theta: FloatArray

    def __call__(self, blocks: Iterator[Block]) -> FloatArray:
        """The curvatures of the part's records, in their order."""
        found = [weighted_derivatives(self.loss, X @ self.theta, y, weights)[1] for X, y, weights in blocks]
        return np.concatenate([np.empty(0), *found])

    def in_place(self, blocks: Iterator[Block], space: Space) -> Any:
        """The same where the rows lie, and left there."""
        theta = space.put(self.theta)
        found = [weighted_derivatives(self.loss, X @ theta, y, weights)[1] for X, y, weights in blocks]
        return space.xp.concat(found)


@dataclass(frozen=True, eq=False)
class CurvatureProduct:
    """The pass that multiplies the Hessian of the rows by a direction; curvatures are beside the rows."""

    direction: FloatArray

    def __call__(self, blocks: Iterator[Block]) -> FloatArray:
        """The sum over the blocks."""
        total = np.zeros(len(self.direction))
        for rows, curvatures, _ in blocks:
            total += (curvatures * (rows @ self.direction)) @ rows
        return total

    def in_place(self, blocks: Iterator[Block], space: Space) -> FloatArray:
        """The same where the rows lie."""
        direction, total = space.put(self.direction), space.zeros(len(self.direction))
        for rows, curvatures, _ in blocks:
            total += rows.summed(curvatures * (rows @ direction))
        return on_host(total)


@dataclass(frozen=True, eq=False)
class ProductAt:
    """The same where curvatures are found in the same pass."""

    loss: Loss
    theta: FloatArray
    direction: FloatArray

    def __call__(self, blocks: Iterator[Block]) -> FloatArray:
        """The sum over the blocks."""
        total = np.zeros(len(self.direction))
        both = np.column_stack([self.theta, self.direction])
        for rows, y, weights in blocks:
            predictor, along = (rows @ both).T
            total += (weighted_derivatives(self.loss, predictor, y, weights)[1] * along) @ rows
        return total
