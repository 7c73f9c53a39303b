r"""Models of so many coefficients that no square matrix of them is made: by products, and by a Gram matrix.

With rows :math:`W = D^{1/2}X`, :math:`D` their curvatures, :math:`H = \lambda I + W^\top W` and

.. math:: x^\top H^{-1}x = \frac{\|x - W^\top z\|^2}{\lambda} + \|z\|^2, \qquad
          (\lambda I + WW^\top)z = Wx

(Woodbury): a matrix as large as there are rows serves in the place of one as large as there are columns. The
right side is least at this :math:`z`, so that an error of :math:`z` counts by its square, however small
:math:`\lambda` is, and nothing cancels between its two terms.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky
from scipy.sparse import csr_array, vstack

from expost._common.machine import check_memory, limit_blas_threads
from expost._common.namespaces import HERE, Space, on_host
from expost._common.typing import FloatArray
from expost.data.blocks import Block, SparseRows
from expost.data.rows import row_blocks
from expost.engines.base import Kernel
from expost.exceptions import SolverError
from expost.fitting.objective import Objective
from expost.losses import RecordLoss
from expost.losses.corners import Corners

# Square matrices of more coefficients than this are not made where that can be helped.
_LARGEST_MATRIX = 8_000


def is_wide(loss: RecordLoss, dimension: int, corners: Corners | None = None) -> bool:
    """Whether a model is fitted without a matrix of its coefficients; decided by public values.

    Corners need one.

    So many coefficients are published without a Hessian, which would have more numbers than a file may.
    """
    return loss.along_row and corners is None and dimension > _LARGEST_MATRIX


def not_definite_error() -> SolverError:
    """What is said where a factor does not exist in doubles."""
    return SolverError(
        "the Hessian at the released coefficients is not positive definite in double precision; raise `l2`."
    )


@dataclass(frozen=True, eq=False, repr=False)
class GramRoot:
    """What leverages of single records are found from without a matrix of the coefficients; private."""

    rows: Any
    """The rows of the table, each times the root of its curvature, sparse where the table is."""
    factor: FloatArray
    """The lower triangular factor of their Gram matrix and the penalty."""
    l2: float
    largest: float
    """At least the largest eigenvalue of the Hessian: no eigenvalue exceeds the largest sum of a row."""

    @classmethod
    def of(cls, objective: Objective, theta: FloatArray) -> "GramRoot":
        """The root of the objective's Hessian at coefficients, from one pass over the rows.

        Raises ResourceError where the table has too many rows as well.
        """
        count = objective.records.n_rows
        check_memory(8 * (2 * count**2 + objective.records.product_width * count), "the exact losses")
        found = list(objective.records.sweep(_ScaledRows(objective.loss, theta), products=True))
        rows = vstack(found, format="csr") if isinstance(found[0], csr_array) else np.concatenate(found)
        gram = rows @ rows.T
        matrix = np.asarray(gram.todense() if hasattr(gram, "todense") else gram)
        matrix.flat[:: count + 1] += objective.l2
        largest = float(np.max(np.sum(np.abs(matrix), axis=1)))
        with suppress(LinAlgError), limit_blas_threads(count):
            factor = cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
            return cls(rows, factor, objective.l2, largest)
        raise not_definite_error()

    def squares_under(self, rows: FloatArray) -> FloatArray:
        r""":math:`x^\top H^{-1}x` of each row."""
        dual, left = self._parts(rows)
        return np.asarray(np.vecdot(left, left) / self.l2 + np.einsum("ij,ij->j", dual, dual))

    def forms_under(self, columns: FloatArray) -> FloatArray:
        r""":math:`F^\top H^{-1}F` of each factor, whose columns come first."""
        dual, left = self._parts(columns.reshape(-1, columns.shape[2]))
        dual, left = dual.T.reshape(*columns.shape[:2], -1), left.reshape(columns.shape)
        return np.asarray(left @ np.swapaxes(left, 1, 2) / self.l2 + dual @ np.swapaxes(dual, 1, 2))

    def _parts(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        r""":math:`z`, one column for each row, and :math:`x - W^\top z`."""
        dual = np.asarray(cho_solve((self.factor, True), np.asarray(self.rows @ rows.T), check_finite=False))
        return dual, rows - np.asarray(self.rows.T @ dual).T


@dataclass(frozen=True, eq=False, repr=False)
class _ScaledRows(Kernel[Any]):
    """The pass that copies the rows, each times the root of its curvature at ``theta``."""

    loss: RecordLoss
    theta: FloatArray

    def __call__(self, blocks: Iterator[Block], space: Space = HERE) -> Any:
        theta, found = space.put(self.theta), []
        for block in row_blocks(blocks):
            at: Any = self.loss.at(theta, block)
            root = np.sqrt(on_host(at.curvature))
            if isinstance(block.X, SparseRows):
                found.append(block.X.scaled(root))
            else:
                found.append(on_host(block.X.encoded()) * root[:, None])
        return vstack(found, format="csr") if isinstance(found[0], csr_array) else np.concatenate(found)
