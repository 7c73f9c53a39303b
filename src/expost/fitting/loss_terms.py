"""The three terms of an exact privacy loss, and the algebra of determinants that they need; private."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from expost._common.namespaces import Space, namespace_of
from expost._common.parallel import limit_blas_threads
from expost._common.typing import FloatArray
from expost.exceptions import SolverError

# From so many rows on a matrix is worth sending to a device.
_LARGE = 1000


@dataclass(frozen=True, repr=False, eq=False)
class LossTerms:
    """The three signed terms of each record's log-odds.

    Privacy
    -------
    Private: they come from everyone's records.
    """

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
        signed = self.signed
        size: FloatArray = namespace_of(signed).abs(signed)
        return size

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """The terms of several runs of records, one after the other."""
        runs = [(one.determinant, one.quadratic, one.inner_product) for one in parts]
        if not runs:
            return cls(*(np.empty(0) for _ in range(3)))
        return cls(*map(namespace_of(runs[0][0]).concat, zip(*runs, strict=True)))

    def __repr__(self) -> str:
        return "LossTerms(withheld)"


def inverse_root(hessian: FloatArray, space: Space | None = None) -> Any:
    r""":math:`L^{-1}`, lower triangular, for the Hessian :math:`LL^\top` at the released coefficients.

    A large one is factored on a device where there is one, and left there.
    """
    if space is not None and len(hessian) >= _LARGE:
        placed = _inverse_root_in(space, hessian)
        if placed is not None:
            return placed
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


def _inverse_root_in(space: Space, hessian: FloatArray) -> Any:
    """The same on a device; None where it cannot be factored there."""
    xp, found = space.xp, None
    with suppress(Exception):  # each library has an error of its own
        # In one expression: each of these is as large as the matrix, and given back at once.
        found = xp.tril(xp.linalg.inv(xp.linalg.cholesky(space.put(hessian))))
    return found if found is not None and bool(xp.all(xp.isfinite(found))) else None
