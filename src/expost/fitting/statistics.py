"""The statistics published with the model: measured at the exact minimiser, in whole steps of public grids.

Each is within a public error of its real value for every table, and the noise is added to the integers.
The penalty is public: it is added after the rows' part was measured.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh

from expost._common.typing import FloatArray
from expost.fitting.certified.pairs import UNIT, Dyadic, Pair
from expost.fitting.noise import NoiseSource, root_of
from expost.fitting.release import unpack
from expost.privacy.plan import Plan
from expost.privacy.precision import statistic_grid


def smallest_eigenvalue(matrix: Pair, error: float) -> Fraction:
    """The smallest eigenvalue of the sum of two matrices, the second far smaller, within ``error``.

    By a double-precision solver, or where that is too rough by exact elimination (docs/mathematics.md,
    section 10). An error of zero asks for as much as a double can hold.
    """
    high, low = matrix
    size = len(high)
    value = float(eigvalsh(high, subset_by_index=(0, 0))[0])
    off = 16.0 * size * UNIT * float(np.linalg.norm(high))
    if off <= error:
        return Fraction(value)
    exact = Dyadic.of(high.ravel()) + Dyadic.of(low.ravel())
    below, above = Fraction(value - 2.0 * off), Fraction(value + 2.0 * off)
    while not _positive_definite(exact, size, below):
        below -= above - below
    error = error or math.ulp(value)
    while above - below > error:
        middle = _short_middle(below, above)
        if middle in (below, above):
            middle = (below + above) / 2
        below, above = (middle, above) if _positive_definite(exact, size, middle) else (below, middle)
    return _short_middle(below, above)


def _short_middle(low: Fraction, high: Fraction) -> Fraction:
    """The double nearest to the middle of an interval, or the middle where no double is in it."""
    middle = (low + high) / 2
    double = Fraction(float(middle))
    return double if low <= double <= high else middle


def _positive_definite(matrix: Dyadic, size: int, shift: Fraction) -> bool:
    """Whether a matrix less a multiple of the identity is positive definite, by Bareiss's elimination."""
    multiple = Dyadic([shift.numerator], 1 - shift.denominator.bit_length())
    least = min(matrix.exponent, multiple.exponent)
    (moved,), whole = multiple.rounded(least).counts, matrix.rounded(least).counts
    rows = [whole[i * size : (i + 1) * size] for i in range(size)]
    for i in range(size):
        rows[i][i] -= moved
    previous = 1
    for k in range(size):
        pivot = rows[k][k]
        if pivot <= 0:
            return False
        for i in range(k + 1, size):
            factor = rows[i][k]
            rows[i] = [(pivot * a - factor * b) // previous for a, b in zip(rows[i], rows[k], strict=True)]
        previous = pivot
    return True


Steps = dict[str, list[int]]
"""Statistics by name, in whole steps of their grids; a matrix as its upper triangle, row by row."""


def allowed_hessian_error(plan: Plan) -> float:
    """How far (Frobenius) the rows' Hessian may be off so that every statistic keeps its stated error.

    Half of it: the other half is for the eigenvalue's own computation and for rounding to the grids.
    """
    errors = [
        scale * plan.rounding.error(statistic.name, scale)
        for statistic, scale in plan.scales.released
        if statistic.name in ("hessian", "eigenvalue")
    ]
    return 0.5 * min(errors, default=math.inf)


def measure(plan: Plan, *, gradient: Dyadic, rows_hessian: Pair | None, added: Dyadic | None = None) -> Steps:
    """The statistics that the plan releases, at the exact minimiser and without noise; private.

    ``gradient`` is that of the objective without its noise, ``rows_hessian`` that of the rows alone, or the
    reduced one, as the sum of two matrices. ``added`` is what all rows add to the numbers that
    recalibrate the model, at what is printed.
    """
    found: Steps = {}
    for statistic, scale in plan.scales.released:
        grid = statistic_grid(scale)
        penalty = round(Fraction(plan.l2) / Fraction(grid))
        exact = {"gradient": gradient, "recalibration": added}.get(statistic.name)
        if exact is not None:
            found[statistic.name] = exact.on_grid(grid).counts
            continue
        assert rows_hessian is not None
        high, low = rows_hessian
        if statistic.name == "eigenvalue":
            error = 0.25 * scale * plan.rounding.error("eigenvalue", scale)
            smallest = smallest_eigenvalue(rows_hessian, error)
            found["eigenvalue"] = [round(smallest / Fraction(grid)) + penalty]
        else:
            upper = np.triu_indices(len(high))
            rows = _steps(high[upper], grid, low[upper])
            lifted = [penalty if on else 0 for on in (upper[0] == upper[1]).tolist()]
            found["hessian"] = [a + b for a, b in zip(rows, lifted, strict=True)]
    return found


def draw(plan: Plan, dimension: int, noise: NoiseSource) -> Steps:
    """The noise of every statistic that the plan releases."""
    draws: Steps = {}
    for statistic, scale in plan.scales.released:
        unit = scale / statistic_grid(scale)  # exact: the grid is a power of two
        scales = [unit] * statistic.entries(
            dimension, plan.hessian_order(dimension), plan.recalibration_entries
        )
        if statistic.name == "hessian":
            # The GOE has twice the variance on its diagonal; the scale there is rounded up.
            diagonal = root_of(2 * Fraction(unit) ** 2)
            rows, columns = np.triu_indices(plan.hessian_order(dimension))
            scales = np.where(rows == columns, diagonal, unit).tolist()
        draws[statistic.name] = noise.integers(scales)
    return draws


def published(plan: Plan, measured: Steps, draws: Steps) -> dict[str, Any]:
    """The statistics as a release holds them: steps and noise added up, as doubles. Public."""
    result: dict[str, Any] = {}
    for statistic, scale in plan.scales.released:
        name = statistic.name
        numbers = printed(measured[name], draws[name], statistic_grid(scale))
        if name == "hessian":
            numbers = unpack(numbers.tolist())
        result[name] = float(numbers[0]) if name == "eigenvalue" else numbers
    return result


def printed(steps: list[int], draws: list[int], grid: float) -> FloatArray:
    """Steps of a grid, each with its noise, added as integers: the nearest doubles, which are public."""
    noisy = [step + drawn for step, drawn in zip(steps, draws, strict=True)]
    return Dyadic(noisy, math.frexp(grid)[1] - 1).doubles()


def _steps(numbers: FloatArray, grid: float, rest: FloatArray | float = 0.0) -> list[int]:
    """The nearest numbers of steps to sums, exact but for the last addition: the grid is a power of two."""
    whole = np.rint(numbers / grid)
    further = np.rint((numbers / grid - whole) + rest / grid)
    return [int(a) + int(b) for a, b in zip(whole.tolist(), further.tolist(), strict=True)]
