"""What the mechanism released, in memory."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from expost._common.typing import FloatArray
from expost.data.choices import Choice
from expost.losses.corners import Corners
from expost.privacy.plan import Plan


@dataclass(frozen=True, eq=False)
class Release:
    """The coefficients and the noisy statistics that are published with them: all that a report may read.

    Privacy
    -------
    Public: a function of the table only through noise that :attr:`plan` accounts for.
    """

    plan: Plan
    """The scales it was made with and what they guarantee."""
    coefficients: FloatArray
    """The minimiser of the perturbed objective, the intercept last where there is one."""
    corners: Corners | None = None
    """The public L1 penalty and bounds of the coefficients."""
    gradient: FloatArray | None = None
    """The noisy gradient of the objective at the coefficients, where it is released."""
    hessian: FloatArray | None = None
    """The noisy Hessian there."""
    eigenvalue: float | None = None
    """The noisy smallest eigenvalue of the Hessian there."""
    recalibration: FloatArray | None = None
    """The noisy sums that recalibrate the model: a histogram or moments, by the loss."""
    insecure: bool = False
    """Whether the noise came from a seed: then the guarantee is void."""
    choices: tuple[Choice, ...] = ()
    """Private choices that were made for it from the same table: every total counts what they cost."""


def pack(matrix: FloatArray) -> list[float]:
    """The upper triangle of a symmetric matrix, row by row, the diagonal included."""
    packed: list[float] = matrix[np.triu_indices(len(matrix))].tolist()
    return packed


def unpack(packed: Sequence[float]) -> FloatArray:
    """The symmetric matrix with this upper triangle, row by row."""
    dimension = math.isqrt(2 * len(packed))
    rows, columns = np.triu_indices(dimension)
    matrix = np.empty((dimension, dimension))
    matrix[rows, columns] = matrix[columns, rows] = packed
    return matrix
