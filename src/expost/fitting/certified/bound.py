r"""How far the end of a Newton step is from the minimiser: the bound with all its terms.

Write :math:`H` for :math:`\lambda I + X^\top DX` at the point :math:`w` of a pass, without the Hessian of the
regulariser, which is convex and can only help; :math:`\zeta` for the constant of :math:`|f'''| \le \zeta
f''`; :math:`\Delta` for the step, :math:`a = \zeta R\|\Delta\|`, :math:`\mu` for a lower bound on
:math:`\lambda_{\min}(H)`. The gradient at :math:`w + \Delta` is, in the norm :math:`\|v\|_{H^{-1}} =
\sqrt{v^\top H^{-1}v}`, at most

.. math:: N = (\|\hat g + \tilde H\Delta + \nabla r(w + \Delta)\| + E + E_H\|\Delta\|)/\sqrt\mu
              + c\sqrt{\textstyle\sum_i\kappa_i} + (s + \tfrac12 a e^a)\|\Delta\|_H

with :math:`\hat g` the computed residual, :math:`c\kappa_i` and :math:`E` the two kinds of error in it,
:math:`E_H` the error of the double Hessian :math:`\tilde H` and :math:`s` how much it may have changed since
it was taken. Curvatures change by a factor of at most :math:`e^{\zeta R\rho}` over a distance :math:`\rho`,
hence on the sphere of radius :math:`\rho` about :math:`w + \Delta` the gradient points outwards if
:math:`e^{a + \zeta R\rho}N/\sqrt\mu < \rho`, and the minimiser lies inside.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigvalsh

from expost.fitting.certified.dyadic import Dyadic
from expost.fitting.certified.pairs import UNIT, FloatArray, length
from expost.fitting.certified.problem import Problem
from expost.fitting.certified.residual import Partial
from expost.fitting.certified.slopes import gradient_pair, third_order
from expost.losses.regularizers import SmoothedL1

UP = 1.0 + 2.0**-30
"""Above all roundings in the evaluation of a bound."""


class Evaluated(Protocol):
    """A point at which a pass was taken."""

    @property
    def exact(self) -> Dyadic:
        """The point itself."""
        ...


@dataclass(frozen=True)
class Curvature:
    r"""A double :math:`\lambda I + X^\top DX` with bounds on its error and on its smallest eigenvalue."""

    matrix: FloatArray
    rows: FloatArray
    """The part of the rows, without the penalty."""
    at: FloatArray
    error: float
    """At least the spectral norm of the matrix's error."""
    rows_error: float
    """At least the Frobenius norm of the error of ``rows``."""
    smallest: float
    """At most the smallest eigenvalue of the exact matrix at the same point."""

    @classmethod
    def of(cls, rows: FloatArray, at: FloatArray, problem: Problem, chain: int) -> "Curvature":
        r"""Bound the error of a matrix whose entries are sums of ``chain`` rounded terms.

        An entry is off by :math:`\gamma\sum_i\kappa_i|x_{ij}x_{ik}|`, in spectral norm at most
        :math:`\gamma\,\mathrm{tr}`; :math:`\gamma` counts the additions, what is rounded in a term, and the
        relative change of a curvature by the error of its linear predictor. The eigenvalue: a Cholesky
        factorisation of :math:`H - tI` that runs through proves :math:`\lambda_{\min}(H) \ge t -
        \gamma_{d+2}\mathrm{tr}H` (Rump 2006); :math:`4(d+8)u` leaves room for a library that multiplies by
        reciprocals of pivots.
        """
        dimension = problem.dimension
        matrix = rows.copy()
        matrix.flat[:: dimension + 1] += problem.l2
        trace = float(np.trace(matrix))
        wobble = (third_order(problem.loss) or 0.0) * (dimension + 4) * problem.radius * length(at)
        up = UP + 4.0 * chain * UNIT
        rows_error = up * UNIT * (chain + 32.0 + wobble) * float(np.trace(rows))
        error = rows_error + up * UNIT * ((chain + dimension + 40.0) * UNIT * trace + trace)
        smallest = problem.l2
        margin = 4.0 * (dimension + 8) * UNIT * trace
        try:
            estimate = float(eigvalsh(matrix, subset_by_index=(0, 0), check_finite=False)[0])
            shift = estimate * (1.0 - 2.0**-10) - 2.0 * margin
            if shift - margin - error > smallest:
                shifted = matrix.copy()
                shifted.flat[:: dimension + 1] -= shift
                cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
                smallest = (shift - up * margin - error) / up
        except (LinAlgError, ValueError):
            pass  # the penalty is a lower bound in any case
        return cls(matrix, rows, at, error, rows_error, smallest)

    def change(self, point: Evaluated, steepening: float) -> float:
        """How much a curvature may differ at the point, relative to itself; infinite if by more than e."""
        exponent = steepening * length((point.exact - Dyadic.of(self.at)).doubles())
        return UP * math.expm1(exponent) if exponent <= 1.0 else math.inf


@dataclass(frozen=True)
class Visit:
    """What one pass found at a point, and the Newton step from there."""

    point: Evaluated
    gradient: FloatArray
    step: FloatArray
    certified: Dyadic
    """The point that ``radius`` is about: the end of the step."""
    radius: float
    """Bound on its distance to the minimiser; may be infinite."""
    floor: float
    """The part of it that no further step can lower."""


def bound(
    problem: Problem, curvature: Curvature, point: Evaluated, sums: Partial, predictor_error: float
) -> Visit:
    """Take the Newton step and evaluate the bound of the module's docstring."""
    data = Dyadic.of(sums.total[0]) + Dyadic.of(sums.total[1]) + problem.linear_part(point.exact)
    gradient, matrix = data.doubles(), curvature.matrix
    if problem.regularizer is not None:
        theta = point.exact.doubles()
        gradient = gradient + problem.regularizer.gradient(theta)
        matrix = matrix + problem.regularizer.hessian(theta)
    step = -_solve(matrix, gradient)
    errors = sums.error + UP * problem.radius * sums.absolute
    errors += 16.0 * UNIT**2 * (sums.additions + 1) * problem.radius * sums.steepness
    zeta = third_order(problem.loss)
    if (
        zeta is None
    ):  # nothing is known of how curvatures change: certify the point itself, by the penalty alone
        errors += UP * problem.curve.max_curvature * predictor_error * problem.radius * sums.rows
        left, error = _remainder(problem, data, np.zeros_like(step), point.exact)
        floor = UP * (errors + error) / problem.l2
        return Visit(point, gradient, step, point.exact, floor + UP * left / problem.l2, floor)

    end = after(point.exact, step)
    left, error = _remainder(problem, data, curvature.matrix @ step, end)
    errors += error
    stride, trace = length(step), float(np.trace(curvature.matrix))
    left += (problem.dimension + 4) * UNIT * trace * stride  # the product with the step is rounded
    steepening = UP * zeta * problem.radius
    change = curvature.change(point, steepening)
    a = steepening * stride
    if not max(a, change, zeta * predictor_error) <= 1.0:
        return Visit(point, gradient, step, end, math.inf, 0.0)
    mu = max(problem.l2, curvature.smallest / (UP * (1.0 + change)))
    rounding = curvature.error + (2 * problem.dimension + 8) * UNIT * trace
    square = max(float(step @ curvature.matrix @ step), 0.0) + rounding * stride**2
    energy = UP * math.sqrt((1.0 + change) * square)
    # In the norm of the Hessian the slopes' errors add up to the root of the curvatures, or to the sum of
    # their lengths where the penalty outweighs the rows.
    total = UP * sums.curvature
    slopes = (sums.per_curvature + UP * predictor_error) * min(
        math.sqrt(total), problem.radius * total / math.sqrt(mu)
    )
    lasting = errors / math.sqrt(mu) + slopes
    passing = (left + curvature.error * stride) / math.sqrt(mu) + (change + 0.5 * a * math.exp(a)) * energy
    factor = UP * math.exp(a + 2.0 * zeta * predictor_error) / math.sqrt(mu)
    radius = _enclosing(factor * (lasting + passing), steepening)
    return Visit(point, gradient, step, end, radius, factor * lasting)


def _enclosing(ratio: float, steepening: float) -> float:
    r"""A radius :math:`\rho \ge qe^{k\rho}`, :math:`q` the ratio and :math:`k` the steepening, or infinity.

    With :math:`ekq \le 1`, :math:`\rho = qe^{ekq}` is at most :math:`eq`, hence :math:`qe^{k\rho} \le
    qe^{ekq} = \rho`.
    """
    exponent = math.e * steepening * ratio
    return UP * ratio * math.exp(exponent) if exponent <= 1.0 else math.inf


def after(point: Dyadic, step: FloatArray, share: float = 1.0) -> Dyadic:
    """The point that lies a share of the step further, without rounding."""
    return point + Dyadic.of(share * step)


def _remainder(problem: Problem, data: Dyadic, product: FloatArray, end: Dyadic) -> tuple[float, float]:
    """The norm of the computed gradient at the end of a step, and the error of the regulariser's part."""
    left, error = data + Dyadic.of(product), 0.0
    if problem.regularizer is not None:
        theta = end.doubles()
        low = (end - Dyadic.of(theta)).doubles()
        gradient, error = gradient_pair(problem.regularizer, theta, low)
        left = left + Dyadic.of(gradient[0]) + Dyadic.of(gradient[1])
        if isinstance(
            problem.regularizer, SmoothedL1
        ):  # the two doubles are off by 2**-106 of the coefficient
            error += 2.0 * UNIT**2 * problem.regularizer.weight / problem.regularizer.scale * length(theta)
    return length(left.doubles()), error


def _solve(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """A step that need not be exact; a matrix that is not quite positive definite is lifted until it is."""
    lift = 0.0
    floor = float(np.trace(matrix)) * len(matrix) * UNIT
    while True:
        try:
            factor = cho_factor(matrix + lift * np.eye(len(matrix)), lower=True, check_finite=False)
            step: FloatArray = cho_solve(factor, vector, check_finite=False)
            if np.all(np.isfinite(step)):
                return step
        except LinAlgError:
            pass
        lift = max(4.0 * lift, floor)
        if not math.isfinite(lift) or lift == 0.0:
            raise OverflowError("the curvature is beyond the range of doubles")
