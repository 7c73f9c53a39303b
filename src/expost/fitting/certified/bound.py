"""How far the end of a Newton step is from the minimiser: the problem, and the bound with all its terms.

The bound is that of docs/mathematics.md, section 10, "Certificate" and "The bound in full". Corners have no
part in :math:`H`: they are convex and can only help (lemma 19.3).
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigvalsh

from expost.data.encoding import Encoded
from expost.fitting.certified.functions import ProvedLoss
from expost.fitting.certified.pairs import UNIT, Dyadic, FloatArray, length
from expost.fitting.certified.residual import Partial
from expost.fitting.certified.slopes import proved_loss
from expost.fitting.faces import Move, model_minimum
from expost.losses import AnyLoss
from expost.losses.corners import Corners

UP = 1.0 + 2.0**-30
"""Above all roundings in the evaluation of a bound."""
# From this dimension on the smallest eigenvalue is estimated from the factor: to find it among all of them
# takes many times as long.
_MANY = 300
# How far below its estimate the eigenvalue is tried to be proved.
_CAUTION = 2.0**-6


@dataclass(frozen=True, repr=False)
class ExactProblem:
    r"""The perturbed objective.

    .. math:: \sum_i \omega_i f(x_i^\top w; y_i) + \frac\lambda2\|w\|^2 + \Lambda(w) + (b_1 + b_2)^\top w

    Privacy
    -------
    All of it is private but ``loss``, ``l2``, ``radius`` and ``corners``.
    """

    rows: Encoded
    """The table, which is read as often as asked and every time alike; it has at least one part."""
    loss: AnyLoss
    l2: float
    radius: float
    tilt: tuple[FloatArray, ...]
    """Vectors of doubles whose exact sum is the noise."""
    tilt_rounding: float = 0.0
    """How far (Euclidean) the noise may be from the continuous draw that it stands for."""
    corners: Corners | None = None
    max_weight: float = 1.0
    """No row is longer than ``radius``, and no weight larger than this."""

    @cached_property
    def proved(self) -> ProvedLoss:
        """What is known of the loss."""
        return proved_loss(self.loss)

    @property
    def steepening(self) -> float:
        r""":math:`\zeta R`: how fast the logarithm of a curvature may change with the distance."""
        return UP * self.proved.third_order * self.radius

    def change(self, distance: float) -> float:
        """How much a curvature may change over a distance, relative to itself; infinite if by more than e."""
        exponent = self.steepening * distance
        return UP * math.expm1(exponent) if exponent <= 1.0 else math.inf

    @property
    def max_curvature(self) -> float:
        """The largest second derivative of a weight times the loss."""
        return self.loss.curve.scaled(self.max_weight).max_curvature

    @property
    def slack(self) -> float:
        """How far that rounding may have moved the minimiser: the objective is ``l2``-strongly convex."""
        return self.tilt_rounding / self.l2 * (1.0 + 2.0**-40)

    @property
    def dimension(self) -> int:
        """The number of coefficients."""
        return len(self.tilt[0])


@dataclass(frozen=True)
class Curvature:
    r"""A double :math:`\lambda I + X^\top DX` with bounds on its error and on its smallest eigenvalue."""

    matrix: FloatArray
    rows: FloatArray
    at: FloatArray
    error: float
    """At least the spectral norm of the matrix's error."""
    rows_error: float
    """At least the Frobenius norm of the error of ``rows``, the matrix without the penalty."""
    penalty: float
    """At most every eigenvalue, whatever the rows."""
    up: float
    """Above all roundings in these bounds."""

    @classmethod
    def of(cls, rows: FloatArray, at: FloatArray, problem: ExactProblem, chain: int) -> "Curvature":
        """Bound the error of a matrix of sums of ``chain`` rounded terms by a share of its trace.

        It counts the additions, what is rounded in a term, and the error of the linear predictor.
        """
        dimension = problem.dimension
        matrix = rows.copy()
        matrix.flat[:: dimension + 1] += problem.l2
        trace = float(np.trace(matrix))
        wobble = problem.proved.third_order * (dimension + 4) * problem.radius * length(at)
        up = UP + 4.0 * chain * UNIT
        rows_error = up * UNIT * (chain + 32.0 + wobble) * float(np.trace(rows))
        error = rows_error + up * UNIT * ((chain + dimension + 40.0) * UNIT * trace + trace)
        return cls(matrix, rows, at, error, rows_error, problem.l2, up)

    @cached_property
    def smallest(self) -> float:
        """At most the smallest eigenvalue of the exact matrix at the same point.

        A Cholesky factorisation of :math:`H - tI` that runs through proves it (Rump 2006); see section 10.
        """
        size, trace = len(self.matrix), float(np.trace(self.matrix))
        if size >= _MANY and trace <= 2.0 * size * self.penalty:
            return self.penalty  # no eigenvalue is smaller, and the smallest is not twice as large
        margin = 4.0 * (size + 8) * UNIT * trace
        try:
            shift = self._estimate() * (1.0 - _CAUTION) - 2.0 * margin
            proved = (shift - self.up * margin - self.error) / self.up
            if proved > self.penalty:
                _factor(self.matrix, -shift)
                return proved
        except (LinAlgError, ValueError):
            pass
        return self.penalty

    @cached_property
    def factored(self) -> tuple[Any, float]:
        """The factor of the matrix, and what had to be added to its diagonal."""
        return next(_lifted(self.matrix))

    def _estimate(self) -> float:
        """The smallest eigenvalue, as far as doubles tell; by Lanczos's method on the inverse if large."""
        size = len(self.matrix)
        if size < _MANY:
            return float(eigvalsh(self.matrix, subset_by_index=(0, 0), check_finite=False)[0])
        from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

        factor, lift = self.factored
        inverse = LinearOperator((size, size), lambda vector: cho_solve(factor, vector, check_finite=False))
        try:
            # The start is fixed, so that the same matrix gives the same bound.
            start = np.random.default_rng(0).normal(size=size)
            largest, _ = eigsh(inverse, 1, which="LA", v0=start, tol=0.5 * _CAUTION)
        except ArpackError:
            return 0.0
        return 1.0 / float(largest[0]) - lift

    def distance(self, point: Dyadic) -> float:
        """How far a point is from where the matrix was taken."""
        return length((point - Dyadic.of(self.at)).doubles())


@dataclass(frozen=True)
class Visit:
    """What one pass found at a point, and the Newton step from there."""

    point: Dyadic
    gradient: FloatArray
    """Or its shortest sum with a slope of the corners."""
    step: FloatArray
    certified: Dyadic
    radius: float
    """The end of the step, and a bound on its distance to the minimiser, which may be infinite."""
    floor: float
    """The part of it that no further step can lower."""


def bound(
    problem: ExactProblem, curvature: Curvature, point: Dyadic, sums: Partial, predictor_error: float
) -> Visit:
    """Take the Newton step and evaluate the bound of section 10."""
    # The sums, the penalty and the noise, without any rounding.
    data = reduce(Dyadic.__add__, map(Dyadic.of, (*sums.total, *problem.tilt)), point.times(problem.l2))
    gradient, theta = data.doubles(), point.doubles()
    corners = problem.corners
    if corners is None:
        step = -_solve(curvature.matrix, gradient, curvature.factored[0])
        end = point + Dyadic.of(step)
    else:
        # The slope of the corners is added without rounding: near the minimiser nearly all of it cancels.
        offset = corners.offset(theta)
        data = data + Dyadic.of(offset)
        gradient = corners.residual(data.doubles(), theta, offset)
        end = _on_face(corners, point, _to_face(corners, curvature, data.doubles(), theta))
        step = (end - point).doubles()
    errors = _summed_errors(problem, sums)
    reached = data + Dyadic.of(curvature.matrix @ step)
    if corners is None:
        left = length(reached.doubles())
    else:
        left = _off_subdifferential(corners, reached, end.doubles(), offset)
    stride, trace = length(step), float(np.trace(curvature.matrix))
    # The product with the step is rounded, and with corners the step itself.
    left += (problem.dimension + 4 + (corners is not None)) * UNIT * trace * stride
    zeta, steepening = problem.proved.third_order, problem.steepening
    a, change = steepening * stride, problem.change(curvature.distance(point))
    if not max(a, change, zeta * predictor_error) <= 1.0:
        return Visit(point, gradient, step, end, math.inf, 0.0)
    mu = max(problem.l2, curvature.smallest / (UP * (1.0 + change)))
    rounding = curvature.error + (2 * problem.dimension + 8) * UNIT * trace
    square = max(float(step @ curvature.matrix @ step), 0.0) + rounding * stride**2
    energy = UP * math.sqrt((1.0 + change) * square)
    root = math.sqrt(mu)
    lasting = errors / root + _slope_errors(problem, sums, predictor_error, root)
    passing = (left + curvature.error * stride) / root + (change + 0.5 * a * math.exp(a)) * energy
    factor = _farthest(problem, predictor_error) * math.exp(a) / root
    radius = _with_changes(problem, factor * (lasting + passing))
    return Visit(point, gradient, step, end, radius, factor * lasting)


def bound_without_step(
    problem: ExactProblem, point: Dyadic, sums: Partial, predictor_error: float
) -> tuple[FloatArray, float]:
    """The gradient at a point, and how far at most the minimiser is from there.

    The bound of section 10 without a Newton step, and with the penalty for the smallest curvature: no matrix
    is needed.
    """
    data = reduce(Dyadic.__add__, map(Dyadic.of, (*sums.total, *problem.tilt)), point.times(problem.l2))
    gradient = data.doubles()
    if not problem.proved.third_order * predictor_error <= 1.0:
        return gradient, math.inf
    left = (1.0 + UNIT) * length(gradient) + _summed_errors(problem, sums)
    root = math.sqrt(problem.l2)
    ratio = _farthest(problem, predictor_error) / root
    return gradient, _with_changes(
        problem, ratio * (left / root + _slope_errors(problem, sums, predictor_error, root))
    )


def _summed_errors(problem: ExactProblem, sums: Partial) -> float:
    """How far (Euclidean) the gradient is off but for errors of slopes that are relative to curvatures."""
    errors = sums.error + UP * problem.radius * sums.absolute
    return errors + 16.0 * UNIT**2 * (sums.additions + 1) * problem.radius * sums.steepness


def _slope_errors(problem: ExactProblem, sums: Partial, predictor_error: float, root: float) -> float:
    """These, in the norm of the Hessian, whose smallest eigenvalue is at least the square of ``root``.

    They add up to the root of the curvatures, or to the sum of their lengths where the penalty outweighs the
    rows.
    """
    total = UP * sums.curvature
    least = min(math.sqrt(total), problem.radius * total / root)
    return (sums.per_curvature + UP * predictor_error) * least


def _farthest(problem: ExactProblem, predictor_error: float) -> float:
    """What the error of predictors makes of a curvature, at most, as a factor."""
    return UP * math.exp(2.0 * problem.proved.third_order * predictor_error)


def _with_changes(problem: ExactProblem, ratio: float) -> float:
    """A radius that is at least the ratio times exp(steepening * radius)."""
    exponent = math.e * problem.steepening * ratio
    return UP * ratio * math.exp(exponent) if exponent <= 1.0 else math.inf


def _to_face(corners: Corners, curvature: Curvature, gradient: FloatArray, theta: FloatArray) -> Move:
    """The step to the minimiser of the model with corners."""
    matrix, lift = curvature.matrix, curvature.factored[1]
    if lift > 0.0:
        matrix = matrix + lift * np.eye(len(theta))
    return model_minimum(matrix, gradient, theta, corners)


def _on_face(corners: Corners, point: Dyadic, move: Move) -> Dyadic:
    """The exact end of a step: on a kink where it is to end there, else as far as the step is long."""
    there = point + Dyadic.of(move.step)
    nearest = np.where(move.active, move.end, corners.inside(there.doubles()))
    off = there - Dyadic.of(nearest)
    on_kink = corners.active(nearest).tolist()
    kept = [0 if at else count for count, at in zip(off.counts, on_kink, strict=True)]
    return Dyadic.of(nearest) + Dyadic(kept, off.exponent)


def _off_subdifferential(corners: Corners, data: Dyadic, end: FloatArray, offset: FloatArray) -> float:
    """How far the computed gradient at a point is from minus a slope of the corners, at most.

    ``data`` is the gradient with an offset of the slopes in it.
    """
    left = data.doubles()
    below, above = corners.slopes(end, offset)
    # Between the kinks where the step began nothing is rounded but the sum itself.
    ends = np.where(np.isfinite(below), np.abs(below), np.abs(above))
    margin = np.where((below == 0.0) & (above == 0.0), 0.0, 8.0 * UNIT * (np.abs(left) + ends))
    inside = (below < above) & (-left >= below + margin) & (-left <= above - margin)
    return length(np.where(inside, 0.0, np.abs(corners.residual(left, end, offset)) + margin))


def _factor(matrix: FloatArray, lift: float) -> Any:
    """The factor of a symmetric matrix with a number added to its diagonal, or LinAlgError."""
    lifted = np.array(matrix.T, order="F")  # contiguous columns, as the library wants them
    lifted.flat[:: len(matrix) + 1] += lift
    return cho_factor(lifted, lower=True, overwrite_a=True, check_finite=False)


def _lifted(matrix: FloatArray) -> Iterator[tuple[Any, float]]:
    """Factors of a matrix, and what was added to its diagonal: ever more, from nothing, as far as needed."""
    lift, floor = 0.0, float(np.trace(matrix)) * len(matrix) * UNIT
    while math.isfinite(lift):
        with suppress(LinAlgError):
            yield _factor(matrix, lift), lift
        lift = max(4.0 * lift, floor) or math.inf
    raise OverflowError("the curvature is beyond the range of doubles")


def _solve(matrix: FloatArray, vector: FloatArray, factor: Any = None) -> FloatArray:
    """A step that need not be exact; a matrix that is not quite positive definite is lifted until it is."""
    factors = chain([] if factor is None else [factor], (factor for factor, _ in _lifted(matrix)))
    steps = (cho_solve(factor, vector, check_finite=False) for factor in factors)
    return next(step for step in steps if np.all(np.isfinite(step)))


@dataclass(frozen=True, repr=False)
class Minimum:
    """A point of whole multiples of the grid, and how far from it the minimiser is at most (Euclidean).

    Privacy
    -------
    Private, ``radius`` included: only noise added to its counts makes it public.
    """

    point: Dyadic
    radius: float
    curvature: Curvature | None = None
    """The last Hessian that was taken, where doubles sufficed."""
