"""Faces of an objective with corners: the steps that find them, and the probabilities of their kinks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
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
    r"""Minimise :math:`(g - r)^\top p + p^\top Hp/2 + \rho(\theta + p)` over the step :math:`p`.

    ``gradient`` is :math:`g`, which has the slope :math:`r` of :math:`\rho` at :math:`\theta` in it where
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

    The law of the minimiser has the density :math:`\prod_F\phi_\sigma(G_j + \rho'_j)\det H_{FF}` on a face,
    and in each other coordinate an atom, printed with all that was free within a window :math:`w` of it:

    .. math:: \tilde A_j = \Phi\Bigl(\frac{-G_j - r^-_j + wh_j}{\sigma}\Bigr)
              - \Phi\Bigl(\frac{-G_j - r^+_j - wh_j}{\sigma}\Bigr), \qquad
              h_j = H_{jj} - H_{jF}H_{FF}^{-1}H_{Fj}

    with the gradient :math:`G` and the Hessian :math:`H` of the objective without its corners
    (docs/mathematics.md, section 19).
    """

    free: NDArray[np.int64]
    """The places of the free coefficients; ``active`` are the others."""
    active: NDArray[np.int64]
    noise: FloatArray
    r""":math:`G_F + \rho'_F`: minus the noise that was drawn."""
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
        )

    def log_atoms(self, gradient: FloatArray, curvature: FloatArray) -> FloatArray:
        r""":math:`\log\tilde A_j` for a gradient and a curvature at each kink."""
        below, above = self.slopes
        reach = self.window * curvature
        low, high = (-gradient - above - reach) / self.sigma, (-gradient - below + reach) / self.sigma
        return log_probability(low, high)

    def terms(
        self, X: FloatArray, slope: FloatArray, curvature: FloatArray, signs: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The terms of records: the determinant's, the quadratic, and that of the noise.

        The signs, records by their rows, are -1 for rows that are in the table and leave it, 1 for others.
        """
        count, each = signs.shape
        bend = np.sqrt(curvature)[:, None]
        rows, others = X[:, self.free], X[:, self.active]
        reached = (bend * (rows @ self.root.T)).reshape(count, each, -1)
        own = (signs.reshape(-1, 1) * slope[:, None] * X).reshape(count, each, -1).sum(axis=1)
        free, active = own[:, self.free], own[:, self.active]
        curved = self.curvature
        if self.window > 0.0 and len(self.active):
            left = (bend * (others - rows @ self.across)).reshape(count, each, -1)
            curved = np.maximum(curved + _forms(reached, left, signs), 0.0)
        moved = self.log_atoms(self.gradient + active, curved)
        atoms = np.sum(self.log_atoms(self.gradient, self.curvature) - moved, axis=1)
        variance = self.sigma**2
        quadratic = np.sum(free**2, axis=1) / (2.0 * variance)
        return -_determinants(reached, signs), quadratic, free @ self.noise / variance + atoms

    @property
    def remainder(self) -> float:
        r"""The order of what the window leaves of the losses' error: :math:`\sum_C(wh_j/\sigma)^2`."""
        return float(np.sum((self.window * self.curvature / self.sigma) ** 2))
