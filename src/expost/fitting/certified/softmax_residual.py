r"""The gradient of the softmax objective's rows in more than double precision, in one pass.

Everything is done in the scores of the :math:`K` classes: each class has its own coefficients
:math:`\theta_j`, rows of :math:`Qw`, cut into slices as a scalar loss's are, and its own sum of slope times
row. Only the sums are turned into centred coordinates, in integers.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from expost.fitting.certified.centred import as_pair, centred_hessian, from_classes, to_classes
from expost.fitting.certified.dyadic import Dyadic
from expost.fitting.certified.pairs import FloatArray, length
from expost.fitting.certified.point import Point
from expost.fitting.certified.problem import Blocks
from expost.fitting.certified.residual import Partial, ResidualPass, error_of_process
from expost.fitting.certified.softmax_slopes import SoftmaxSlopes, softmax_slopes, weight_roundings
from expost.losses import SoftmaxLoss
from expost.losses.softmax import centring


@dataclass(frozen=True)
class ClassPoints:
    """A point in centred coordinates, and for each class the nearest point that slices can hold."""

    exact: Dyadic
    points: list[Point]
    offset: float
    """No class's coefficients are farther from its point than this."""

    @classmethod
    def near(cls, values: Dyadic, slices: int, classes: int) -> Self:
        """The point itself, and the points of its classes."""
        parts = to_classes(values, classes)
        points = [Point.near(part, slices) for part in parts]
        away = [length((part - point.exact).doubles()) for part, point in zip(parts, points, strict=True)]
        return cls(values, points, max(away) + 2.0**-150 * length(values.doubles()))

    def doubles(self) -> FloatArray:
        """The point in centred coordinates, rounded once."""
        return self.exact.doubles()


@dataclass(frozen=True, eq=False, repr=False)
class SoftmaxPass:
    r"""A function from row blocks to :math:`\sum_i \omega_iv_{ij}x_i` for every class :math:`j`, as pairs.

    Parameters
    ----------
    loss
        The softmax loss.
    point
        Where to evaluate.
    radius
        No row is longer than this.
    hessian
        Whether to add up :math:`\sum_i B_{i,ab}x_ix_i^\top` for every pair of classes as well, in doubles.

    Notes
    -----
    As :class:`~expost.fitting.certified.residual.ResidualPass`, whose slices it uses, class by class. Errors
    of the classes are added, which is more than their Euclidean sum.
    """

    loss: SoftmaxLoss
    point: ClassPoints
    radius: float
    hessian: bool = False

    @cached_property
    def _passes(self) -> list[ResidualPass]:
        """The scalar loss inside is never asked: each of these cuts rows and multiplies."""
        return [ResidualPass(self.loss.link, one, self.radius) for one in self.point.points]

    @property
    def _columns(self) -> int:
        return len(self.point.points[0].slices[0])

    def predictor_error(self) -> float:
        """Twice a bound on the error of every score.

        Scores off by ``e`` each move a gradient by at most ``2e`` times the root of the Hessian's trace, in
        the Hessian's norm: what :mod:`expost.fitting.certified.bound` takes ``e`` times the root of the
        curvature for.
        """
        scores = max(one.predictor_error() for one in self._passes)
        return 2.02 * (scores + self.radius * self.point.offset)

    def roundings(self) -> int:
        """How many more roundings are in a term of the Hessian than a scalar loss has."""
        return math.ceil(weight_roundings(self.loss) + 2.0 * self.loss.classes**2)

    def __call__(self, blocks: Blocks) -> Partial:
        """Add up over the blocks, in the classes' coordinates."""
        classes, columns = self.loss.classes, self._columns
        zero = np.zeros((classes, columns))
        pairs = classes * (classes - 1) // 2
        sums = Partial(
            (zero, zero.copy()),
            error=error_of_process(),
            hessian=np.zeros((pairs, columns, columns)) if self.hessian else None,
        )
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for found, rows, parts in self.slopes(blocks):
                self._add(sums, found, rows, parts)
        return sums

    def slopes(self, blocks: Blocks) -> Iterator[tuple[SoftmaxSlopes, FloatArray, list[FloatArray]]]:
        """Gradients and Hessians, chunk by chunk, with the rows and their slices."""
        for (rows, labels, weights), parts in self._passes[0].chunks(blocks):
            self._passes[0].cut(rows, parts)
            scores = [one.multiply(parts) for one in self._passes]
            yield softmax_slopes(self.loss, scores, labels, weights), rows, parts

    def centred(self, sums: Partial) -> Partial:
        """The sums of all rows in centred coordinates."""
        classes = self.loss.classes
        high, low = (part.ravel() for part in sums.total)
        if not (np.all(np.isfinite(high)) and np.all(np.isfinite(low))):
            raise OverflowError("the gradient is beyond the range of doubles")
        total = from_classes(Dyadic.of(high) + Dyadic.of(low), classes)
        hessian = sums.hessian
        if hessian is not None:
            hessian = centred_hessian(hessian, centring(classes))
        return replace(
            sums, total=as_pair(total), error=sums.error + 2.0**-100 * length(high), hessian=hessian
        )

    def _add(self, sums: Partial, found: SoftmaxSlopes, rows: FloatArray, parts: list[FloatArray]) -> None:
        for j, (one, slopes) in enumerate(zip(self._passes, found.gradient, strict=True)):
            before = sums.total[0][j], sums.total[1][j]
            (sums.total[0][j], sums.total[1][j]), error = one.weigh(before, slopes, parts)
            sums.error += error
            sums.steepness += float(np.abs(slopes[0]).sum())
        sums.curvature += 2.0 * float(found.weights.sum())
        sums.per_curvature = max(sums.per_curvature, found.per_curvature)
        sums.absolute += 1.01 * float(np.sum(np.broadcast_to(found.absolute, len(rows))))
        sums.rows += len(rows)
        sums.additions += len(parts) ** 2
        if sums.hessian is not None:
            roots = np.sqrt(found.weights)
            for pair in range(roots.shape[1]):
                scaled = np.multiply(rows, roots[:, pair, None], out=parts[0])
                sums.hessian[pair] += scaled.T @ scaled
