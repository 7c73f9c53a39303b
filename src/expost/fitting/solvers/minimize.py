"""Minimise the perturbed objective, exactly, on all rows."""

import numpy as np

from expost.fitting.objective import Objective
from expost.fitting.solvers.base import Solution
from expost.fitting.solvers.newton import newton
from expost.fitting.solvers.newton_cg import newton_cg

# Beyond this dimension a Hessian per step costs more than conjugate gradients.
LARGEST_DENSE_DIMENSION = 2_000
# A warm start on each k-th block of rows, for the k that leave enough rows to be worth it.
_THINNINGS = (64, 8)
_ROWS_PER_COLUMN = 40


def minimize(objective: Objective, *, tolerance: float) -> Solution:
    """Find the minimiser to a gradient norm of ``tolerance``, or to the rounding floor of the sums.

    Large tables start from the solution on a part of their rows; the end is always the minimiser on all
    rows. Whether the tolerance was met is for the caller to check: :meth:`Solution.meets`.
    """
    theta = np.zeros(objective.dimension)
    if objective.dimension > LARGEST_DENSE_DIMENSION:
        return newton_cg(objective, theta, tolerance=tolerance)
    for every in _THINNINGS:
        if objective.n_rows >= every * _ROWS_PER_COLUMN * objective.columns:
            theta = newton(objective.thinned(every), theta, tolerance=tolerance, relative=0.01).theta
    return newton(objective, theta, tolerance=tolerance)
