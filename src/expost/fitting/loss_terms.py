"""The three terms of an exact privacy loss, and the factor of the Hessian that they need; private."""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from expost._common.parallel import limit_blas_threads
from expost._common.typing import FloatArray
from expost.exceptions import SolverError


@dataclass(frozen=True, repr=False, eq=False)
class LossTerms:
    """The three signed terms of each record's log-odds; private."""

    determinant: FloatArray
    """The record's leverage. Not negative for members, not positive for outsiders."""
    quadratic: FloatArray
    """The squared norm of the record's gradient, over twice the noise variance; never negative."""
    inner_product: FloatArray
    """The inner product of the record's gradient with the noise that was drawn, over its variance."""

    @property
    def signed(self) -> FloatArray:
        """Log density ratio, actual table over its neighbour."""
        return self.determinant + self.quadratic + self.inner_product

    @property
    def loss(self) -> FloatArray:
        """The privacy loss: the size of the log-odds."""
        return np.abs(self.signed)

    def __repr__(self) -> str:
        return "LossTerms(withheld)"


def inverse_root(hessian: FloatArray) -> FloatArray:
    r""":math:`L^{-1}`, lower triangular, for the Hessian :math:`LL^\top` at the released coefficients."""
    inverse: FloatArray | None = None
    with suppress(LinAlgError), limit_blas_threads(len(hessian)):
        factor = cholesky(hessian, lower=True)
        inverse = solve_triangular(factor, np.eye(len(hessian)), lower=True)
    if inverse is None:
        raise SolverError(
            "the Hessian at the released coefficients is not positive definite in double precision; "
            "raise `l2`."
        )
    return inverse
