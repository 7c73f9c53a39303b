"""Matrix-free Newton for dimensions in the thousands: each step by conjugate gradients."""

import math
from collections.abc import Callable

import numpy as np

from expost._common.typing import FloatArray
from expost.fitting.objective import Objective
from expost.fitting.solvers.base import Solution, backtrack

_MAX_STEPS = 200


def newton_cg(
    objective: Objective, start: FloatArray, *, tolerance: float, products: int | None = None
) -> Solution:
    r"""Minimise by inexact Newton steps, globally convergent by backtracking on the gradient norm.

    Each step solves :math:`Hp = -g` by conjugate gradients to :math:`\|Hp + g\| \le \eta\|g\|`, with
    :math:`\eta = \min(0.1, \|g\|/\|g_0\|)`: loose far away, tight near the end, so that convergence is
    superlinear (Dembo, Eisenstat and Steihaug 1982). No matrix is formed. With ``products``, it ends at the
    last full step once it has multiplied the Hessian so often.
    """
    theta = start
    here = objective.evaluate(theta)
    first = here.norm
    left = math.inf if products is None else products
    for _ in range(_MAX_STEPS):
        if here.norm <= max(tolerance, here.floor):
            break
        forcing = min(0.1, here.norm / first)
        # Asking for more than the tolerance would only resolve rounding.
        forcing = max(forcing, 0.1 * max(tolerance, here.floor) / here.norm)
        product = objective.curvature_product(theta)
        step, taken = _conjugate_gradients(product, -here.tilted_gradient, forcing, left)
        left -= taken
        if step is None:
            break
        reached = backtrack(theta, step, here.norm, objective.evaluate, forcing=forcing)
        if reached is None:
            break
        theta, here = reached
    return Solution(theta, here)


def _conjugate_gradients(
    product: Callable[[FloatArray], FloatArray], target: FloatArray, forcing: float, most: float
) -> tuple[FloatArray | None, int]:
    """Solve ``product(x) = target`` to the relative residual ``forcing``, or as well as rounding allows.

    Returns the solution and the number of products, or no solution where these would be more than ``most``.
    """
    solution = np.zeros_like(target)
    residual = target.copy()
    direction = residual.copy()
    square = float(residual @ residual)
    goal = forcing * math.sqrt(square)
    for taken in range(2 * target.size):
        if math.sqrt(square) <= goal:
            return solution, taken
        if taken >= most:
            return None, taken
        image = product(direction)
        length = square / float(direction @ image)
        solution += length * direction
        residual -= length * image
        previous, square = square, float(residual @ residual)
        direction = residual + (square / previous) * direction
    return solution, 2 * target.size
