"""Minimise the perturbed objective, exactly, on all rows."""

import numpy as np

from expost.fitting.objective import Objective
from expost.fitting.solvers.base import Solution
from expost.fitting.solvers.newton import newton
from expost.fitting.solvers.newton_cg import newton_cg

# Beyond this dimension conjugate gradients are cheaper than a Hessian per step, where they converge fast.
LARGEST_DENSE_DIMENSION = 1_200
# A warm start on each k-th block of rows, for the k that leave enough rows to be worth it.
_THINNINGS = (64, 8)
_ROWS_PER_COLUMN = 40
# The Hessian of so many rows is that of all of them to a percent. Where each 16th row leaves as many, steps
# on all rows use it, and no Hessian of all rows is taken.
_THIN, _ENOUGH_PER_COLUMN = 16, 20_000
# How many Hessians Newton's method takes; and how many columns of a Hessian cost as much as a product of the
# rows with a vector, and how many entries of its factor per row.
_HESSIANS, _COLUMNS_PER_PRODUCT, _ENTRIES_PER_PRODUCT = 5, 250, 200


def minimize(objective: Objective, *, tolerance: float, unseen: float = 0.0) -> Solution:
    """Find the minimiser to a gradient norm of ``tolerance``, or to the rounding floor of the sums.

    Large tables start from the solution on a part of their rows; the end is always the minimiser on all
    rows. Wide ones are solved without a matrix. Where that took as many passes as Hessians would have cost,
    Newton's method with Hessians goes on from where it ended. Whether the tolerance was met is for the caller
    to check: :meth:`Solution.meets`. With ``unseen``, the last pass of Newton's method is left to the caller
    (:func:`~expost.fitting.solvers.newton.newton`).
    """
    theta = np.zeros(objective.dimension)
    if objective.dimension > LARGEST_DENSE_DIMENSION:
        products = products_of_a_dense_solver(objective)
        solution = newton_cg(objective, theta, tolerance=tolerance, products=products)
        if solution.meets(tolerance):
            return solution
        return newton(objective, solution.theta, tolerance=tolerance)
    coarse, fine = _THINNINGS
    if borrowed := objective.n_rows >= _THIN * _ENOUGH_PER_COLUMN * objective.columns:
        fine = _THIN
    model = None
    for every in (coarse, fine):
        if objective.n_rows >= every * _ROWS_PER_COLUMN * objective.columns:
            last = borrowed and every == fine
            thin = objective.thinned(every)
            found = newton(thin, theta, tolerance=tolerance, relative=1e-4 if last else 0.01)
            theta, model = found.theta, found.model if last else None
    return newton(objective, theta, tolerance=tolerance, unseen=unseen, model=model)


def products_of_a_dense_solver(objective: Objective) -> int:
    r"""How many products with a vector cost as much as Newton's method with Hessians.

    .. math:: 5\,\frac dw\Bigl(\frac d{250} + \frac{d^2}{200n}\Bigr)

    for :math:`n` rows that store :math:`w` of their :math:`d` columns: a Hessian takes :math:`nd^2` products
    of numbers, its factor :math:`d^3/3` and a product with a vector :math:`2nw`, each at a rate of its own.
    It depends on sizes only, so that the same table is always solved alike.
    """
    dimension, rows = objective.dimension, max(objective.n_rows, 1)
    hessian = dimension / _COLUMNS_PER_PRODUCT + dimension**2 / (_ENTRIES_PER_PRODUCT * rows)
    return max(1, round(_HESSIANS * hessian * objective.columns / objective.product_width))
