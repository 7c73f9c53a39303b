"""Faces of an objective with corners: the steps that find them, and the probabilities of their kinks."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.special import log_ndtr

from expost._common.machine import limit_blas_threads
from expost._common.typing import BoolArray, FloatArray
from expost.losses.corners import Corners
from expost.losses.records import log_determinants, small_squares
from expost.privacy.plan import Plan

_MOST_STEPS = 100
# What is left of the residual where no further step can lower it, as a share of its terms.
_ROUNDING = 1e-14
# How often a step that ends on the same piece is halved.
_HALVINGS = 40

Solve = Callable[[Any, Any], Any]


class Move(NamedTuple):
    """A step of the coefficients to the minimiser of a model; private."""

    step: FloatArray
    end: FloatArray
    """The end of the step, exactly on the kinks where ``active``; the step itself may have been rounded."""
    active: BoolArray


def solve_dense(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """By Cholesky's factorisation, or LinAlgError."""
    with limit_blas_threads(len(vector)):
        found: FloatArray = cho_solve(cho_factor(matrix, check_finite=False), vector, check_finite=False)
    return found


def model_minimum(
    hessian: FloatArray,
    gradient: FloatArray,
    theta: FloatArray,
    corners: Corners,
    solve: Solve = solve_dense,
) -> Move:
    r"""Minimise :math:`(g - r)^\top p + p^\top Hp/2 + \Lambda(\theta + p)` over the step :math:`p`.

    ``gradient`` is :math:`g`, which has the slope :math:`r` of :math:`\Lambda` at :math:`\theta` in it where
    there is one (:meth:`Corners.offset`), so that it is small near the minimiser and keeps its digits.

    Each coefficient at a kink stays there while the subdifferential holds minus the model's derivative; the
    others take a Newton step together, and stop at the next kink. Halved until the model falls enough, such
    steps converge from anywhere (Bertsekas 1982), and end as soon as the face is found. Every step lowers the
    model, so the result serves as a direction of descent even where rounding ends the search early. Works on
    doubles, and on decimals with a ``solve`` of theirs.
    """
    zero, offset = theta * 0, corners.offset(theta)
    step, end, product = zero, theta, zero
    for _ in range(_MOST_STEPS):
        slope = gradient + product
        below, above = corners.slopes(end, offset)
        rising, falling = _true(-slope > above), _true(-slope < below)
        free = rising | falling | ~_true(below < above)
        total = np.where(free, slope + np.where(rising, above, below), zero)
        if _negligible(total, gradient, product):
            break
        direction = zero.copy()
        direction[free] = -solve(hessian[np.ix_(free, free)], total[free])
        room = _room(corners, end, rising)
        found = _shortened(hessian, total, theta, step, end, direction, room, product)
        if found is None:
            break
        step, end, product = found
    return Move(step, end, corners.active(end))


def _true(mask: Any) -> BoolArray:
    return np.asarray(mask, dtype=bool)


def _negligible(total: FloatArray, gradient: FloatArray, product: FloatArray) -> bool:
    size = np.abs(gradient) + np.abs(product)
    return bool(np.all(np.abs(total) <= type(total[0])(_ROUNDING) * size))


def _room(corners: Corners, end: FloatArray, rising: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The piece that each coefficient moves on: between the kinks on either side of it."""
    low, middle, high = corners.kinks
    upper = _true(end > middle) | (_true(end == middle) & rising)
    return np.where(upper, middle, low), np.where(upper, high, middle)


def _shortened(
    hessian: FloatArray,
    total: FloatArray,
    theta: FloatArray,
    step: FloatArray,
    end: FloatArray,
    direction: FloatArray,
    room: tuple[FloatArray, FloatArray],
    product: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Along a direction, kept on the piece, as far as the model falls; None where rounding ends it."""
    bottom, top = room
    for _ in range(_HALVINGS):
        there = end + direction
        stopped = _true(there <= bottom) | _true(there >= top)
        kept = np.where(stopped, np.where(_true(there <= bottom), bottom, top), there)
        # Where a step is not stopped its own digits count, not those of the point.
        moved = np.where(stopped, kept - end, direction)
        change = hessian @ moved
        fall = total @ moved
        if fall < 0 and fall + (moved @ change) / 2 <= fall / 10000:
            return np.where(stopped, kept - theta, step + moved), kept, product + change
        direction = direction / 2
    return None


# Below this width an interval's probability is its middle's density times its width, to 1e-13.
_NARROW = 1e-3


def log_probability(low: FloatArray, high: FloatArray) -> FloatArray:
    """The logarithm of the probability that a standard normal lies between, with digits however small.

    Examples
    --------
    >>> float(log_probability(np.array(40.0), np.array(np.inf)))
    -804.608...
    """
    # By symmetry, the interval with the larger part below zero.
    flipped = low + high > 0.0
    low, high = np.where(flipped, -high, low), np.where(flipped, -low, high)
    width = high - low
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        top, bottom = log_ndtr(high), log_ndtr(low)
        wide = top + np.log1p(-np.exp(np.minimum(bottom - top, 0.0)))
        middle = 0.5 * (low + high)
        density = -0.5 * (middle**2 + np.log(2.0 * np.pi))
        narrow = np.log(width) + density + np.log1p((middle**2 - 1.0) * width**2 / 24.0)
    return np.asarray(np.where(width < _NARROW, narrow, wide))


# Of the polynomials below: the highest degree, and the errors of those in the gradient and in the width.
_DEGREE, _DIGITS, _FEW_DIGITS = 24, 2.0**-48, 2.0**-26
# Up to here an atom grows with its width as its derivative says: the square of this is a double's rounding.
_SLIGHT = 2.0**-26
# Numbers that are worked on together: they stay in the processor's cache.
_TOGETHER = 1 << 15


@dataclass(frozen=True, eq=False)
class Atoms:
    r"""How the probabilities of intervals grow as records move them and make them wider.

    .. math:: \log\frac{P(l - u - v < Z < h - u + v)}{P(l < Z < h)} = p(u) + v\,q(u) + O(v^2)

    for many records and a few intervals. The functions :math:`p` and :math:`q` of an interval are analytic,
    and records reach a short piece of them: there polynomials agree with them to rounding. For a record that
    is out of their reach the probabilities themselves are computed.
    """

    low: FloatArray
    high: FloatArray
    largest: float
    """How far :math:`u` goes for most records; nothing but time depends on it."""

    @cached_property
    def _powers(self) -> tuple[FloatArray, FloatArray] | None:
        """The coefficients of :math:`p` and :math:`q` in powers of u/largest; None if there are many."""
        first = _coefficients(lambda at: self._log(self.largest * at[:, None]), _DIGITS)
        second = _coefficients(lambda at: self._steepness(self.largest * at[:, None]), _FEW_DIGITS)
        return None if first is None or second is None else (first, second)

    def _log(self, moved: FloatArray, wider: FloatArray | float = 0.0) -> FloatArray:
        return log_probability(self.low - moved - wider, self.high - moved + wider)

    def _steepness(self, moved: FloatArray) -> FloatArray:
        """The derivative of the logarithm in the width."""
        logs = self._log(moved) + 0.5 * np.log(2.0 * np.pi)
        return np.asarray(sum(np.exp(-0.5 * (end - moved) ** 2 - logs) for end in (self.low, self.high)))

    def growth(self, moved: FloatArray, wider: FloatArray) -> FloatArray:
        """Of each record, the growth of all probabilities; both arguments are records by intervals."""
        if self._powers is None:
            return self._computed(moved, wider)
        first, second = self._powers
        at = moved / self.largest
        # No derivative is larger on the piece than its polynomial's coefficients together.
        share = wider * ((1.0 + np.sum(np.abs(second), axis=0)) / _SLIGHT)
        total, power = np.zeros(len(at)), at
        for row in first[1:]:
            total += power @ row
            power = power * at
        power = wider
        for row in second:
            total += power @ row
            power = power * at
        if max(np.max(np.abs(at), initial=0.0), np.max(np.abs(share), initial=0.0)) > 1.0:
            far = np.any(np.maximum(np.abs(at), np.abs(share)) > 1.0, axis=1)
            total[far] = self._computed(moved[far], wider[far])
        return total

    def _computed(self, moved: FloatArray, wider: FloatArray) -> FloatArray:
        return np.asarray(np.sum(self._log(moved, wider) - self._log(np.zeros(1)), axis=1))


def _coefficients(function: Callable[[FloatArray], Any], digits: float) -> FloatArray | None:
    """Of the polynomials that are the functions on [-1, 1] to so many digits; None if there are none."""
    with np.errstate(over="ignore"):
        series = chebyshev.chebinterpolate(function, _DEGREE)
    counted = np.any(~(np.abs(series) <= digits * (1.0 + np.max(np.abs(series), axis=0))), axis=1)
    degree = int(np.max(np.flatnonzero(counted), initial=1))
    if degree > _DEGREE - 2:
        return None
    turned = [chebyshev.cheb2poly(row) for row in np.eye(degree + 1)]
    matrix = np.array([np.pad(row, (0, degree + 1 - len(row))) for row in turned])
    return np.asarray(matrix.T @ series[: degree + 1])


def _determinants(factors: FloatArray, signs: FloatArray) -> FloatArray:
    r""":math:`\log\det(I + SWW^\top)` of each record, with a sign for each of its rows."""
    if not factors.shape[2]:
        return np.zeros(len(factors))
    if np.all(signs == signs.flat[0]):
        return log_determinants(small_squares(factors), float(signs.flat[0]))
    return log_determinants(factors @ np.swapaxes(factors, 1, 2), signs)


def _forms(factors: FloatArray, columns: FloatArray, signs: FloatArray) -> FloatArray:
    r""":math:`c^\top(S + WW^\top)^{-1}c` of each record and column: what it adds to a curvature."""
    _, rows, width = factors.shape
    turned = np.swapaxes(factors, 1, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        if rows == 1:
            return np.asarray(columns[:, 0] ** 2 / (signs + np.vecdot(factors, factors)))
        if rows <= width:
            solved = np.linalg.solve(signs[:, :, None] * np.eye(rows) + factors @ turned, columns)
            return np.asarray(np.einsum("iej,iej->ij", columns, solved))
        # The same by a smaller matrix: S is its own inverse.
        signed = signs[:, :, None] * columns
        seen = turned @ signed
        solved = np.linalg.solve(np.eye(width) + turned @ (signs[:, :, None] * factors), seen)
        return np.asarray(np.sum(columns * signed, axis=1) - np.einsum("iej,iej->ij", seen, solved))


@dataclass(frozen=True, eq=False, repr=False)
class Face:
    r"""The face of published coefficients: free ones, and those at a kink; private.

    The law of the minimiser has the density
    :math:`\prod_F\phi_\sigma(G_j + \Lambda'_j)\det H_{FF}` on a face, and in each other
    coordinate an atom, printed with all that was free within a window :math:`w` of it:

    .. math:: \tilde A_j = \Phi\Bigl(\frac{-G_j - r^-_j + wh_j}{\sigma}\Bigr)
              - \Phi\Bigl(\frac{-G_j - r^+_j - wh_j}{\sigma}\Bigr), \qquad
              h_j = H_{jj} - H_{jF}H_{FF}^{-1}H_{Fj}

    with the gradient :math:`G` and the Hessian :math:`H` of the objective without its corners
    (docs/mathematics.md, theorem 19.1).
    """

    free: NDArray[np.int64]
    """The places of the free coefficients; ``active`` are the others."""
    active: NDArray[np.int64]
    noise: FloatArray
    r""":math:`G_F + \Lambda'_F`: minus the noise that was drawn."""
    root: FloatArray
    r"""The lower triangular :math:`L^{-1}`, :math:`LL^\top = H_{FF}`."""
    across: FloatArray
    r""":math:`H_{FF}^{-1}H_{FC}`."""
    curvature: FloatArray
    """:math:`h`."""
    gradient: FloatArray
    """:math:`G_C`."""
    slopes: tuple[FloatArray, FloatArray]
    window: float
    sigma: float
    largest: float
    """How far a record moves the gradient at most, in units of the noise; nothing but time depends on it."""

    @classmethod
    def of(
        cls,
        corners: Corners,
        theta: FloatArray,
        gradient: FloatArray,
        hessian: FloatArray,
        plan: Plan,
    ) -> Self:
        """The face of coefficients, from the objective's gradient and Hessian there."""
        at = corners.active(theta)
        free, active = np.flatnonzero(~at), np.flatnonzero(at)
        (below, above), block = corners.slopes(theta), hessian[np.ix_(free, free)]
        root = block
        if len(free):  # SciPy refuses an empty matrix before its version 1.14
            root = solve_triangular(cholesky(block, lower=True), np.eye(len(free)), lower=True)
        half = root @ hessian[np.ix_(free, active)]
        return cls(
            free=free,
            active=active,
            noise=gradient[free] + below[free],
            root=root,
            across=root.T @ half,
            curvature=hessian[active, active] - np.sum(half**2, axis=0),
            gradient=gradient[active],
            slopes=(below[active], above[active]),
            window=0.0 if plan.precision is None else plan.precision.window,
            sigma=plan.sigma,
            largest=1.001 * plan.accounting.slope / plan.sigma,  # and the rounding of a record
        )

    @cached_property
    def atoms(self) -> Atoms:
        """The atoms, as functions of how far a record moves them."""
        below, above = self.slopes
        reach = self.window * self.curvature
        low, high = (-self.gradient - above - reach), (-self.gradient - below + reach)
        return Atoms(low / self.sigma, high / self.sigma, self.largest)

    def terms(
        self, X: FloatArray, slope: FloatArray, curvature: FloatArray, signs: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The terms of records: the determinant's, the quadratic, and that of the noise.

        The signs, records by their rows, are -1 for rows that are in the table and leave it, 1 for others.
        """
        count, each = signs.shape
        found = np.empty((3, count))
        some = max(_TOGETHER // (each * X.shape[1]), 1)
        for start in range(0, count, some):
            here, rows = slice(start, start + some), slice(start * each, (start + some) * each)
            found[:, here] = self._terms(X[rows], slope[rows], curvature[rows], signs[here])
        return found[0], found[1], found[2]

    def _terms(
        self, X: FloatArray, slope: FloatArray, curvature: FloatArray, signs: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        count, each = signs.shape
        bend, signed = np.sqrt(curvature)[:, None], signs.reshape(-1, 1) * slope[:, None]
        rows, others = X[:, self.free], X[:, self.active]
        free, active = (
            own if each == 1 else own.reshape(count, each, -1).sum(axis=1)
            for own in (signed * rows, (signed / self.sigma) * others)
        )
        reached = (bend * (rows @ self.root.T)).reshape(count, each, -1)
        if self.window > 0.0 and len(self.active):
            left = (bend * (others - rows @ self.across)).reshape(count, each, -1)
            bent = np.maximum(_forms(reached, left, signs), -self.curvature)
            wider = bent * (self.window / self.sigma)
        else:
            wider = np.zeros_like(active)
        variance = self.sigma**2
        quadratic = np.sum(free**2, axis=1) / (2.0 * variance)
        along = free @ self.noise / variance - self.atoms.growth(active, wider)
        return -_determinants(reached, signs), quadratic, along

    @property
    def remainder(self) -> float:
        r"""The order of what the window leaves of the losses' error: :math:`\sum_C(wh_j/\sigma)^2`."""
        return float(np.sum((self.window * self.curvature / self.sigma) ** 2))
