"""People with several rows, as records: the sum of their rows' gradients, and all their factors' columns."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from expost._common.typing import FloatArray
from expost.losses.records import RecordLoss, Records, log_determinants, small_squares

STRETCH = 2.0
"""How much more the noise across a person's direction counts than that along it (section 15, "Reports")."""
CANCELLED = 2.0**-30
"""A sum that is shorter than this part of its vectors together is rounding, and has no direction."""


@dataclass(frozen=True, eq=False)
class _PersonRecords(Records):
    r"""People at a point, each by her gradient and a factor of her Hessian.

    .. math:: g = \sum_j\omega_jg_j, \qquad F = (\sqrt{\omega_1}F_1, \dots, \sqrt{\omega_n}F_n), \qquad
              \nabla^2\ell = FF^\top

    where the weights are in the rows' own gradients and factors. A family, whose records weigh 1, is the
    same. Where some rows leave the table and others enter it, gradients and columns of those that leave count
    with a minus sign. NumPy's only: rows of one person are brought together in this machine's memory.
    """

    rows: Records
    """All rows at the point, those of a person one after the other."""
    at_zero: Callable[[], Records]
    """The rows where all coefficients are zero."""
    each: int
    """How many rows each person has."""
    sides: FloatArray | None = None
    """The sign of each row, where some leave the table and others enter it; those that enter come first."""

    def __len__(self) -> int:
        return len(self.rows) // self.each

    @cached_property
    def gradient(self) -> FloatArray:
        return self._summed(self._signed(self.rows.gradient))

    @property
    def signs(self) -> FloatArray | None:
        """The sign of each column of the factors, people by columns."""
        if self.sides is None:
            return None
        columns = self._columns.shape[1] // self.each
        return np.repeat(self.sides.reshape(len(self), self.each), columns, axis=1)

    def along(self, direction: FloatArray) -> FloatArray:
        return np.asarray(np.vecdot(self.gradient, direction))  # one after the other, whoever is beside her

    def coordinates(self, basis: FloatArray) -> FloatArray:
        """Those of every row's factor, one row after the other."""
        found = self.rows.coordinates(basis)
        return np.asarray(found.reshape(len(self), -1, found.shape[2]))

    @cached_property
    def _columns(self) -> FloatArray:
        """The factors, columns first."""
        return self.coordinates(np.eye(self.gradient.shape[1]))

    def leverages(self, root: FloatArray) -> FloatArray:
        if hasattr(root, "forms_under"):  # of a wide model
            return np.asarray(root.forms_under(self._columns))
        found = self.coordinates(root.T)
        if self.sides is not None:  # for every column, because each has its sign
            return np.asarray(found @ np.swapaxes(found, 1, 2))
        return small_squares(np.swapaxes(found, 1, 2))

    def sided_determinants(self, l2: float) -> tuple[FloatArray, FloatArray]:
        r""":math:`\log\det(I + FF^\top/\lambda)` of the columns that enter alone, and of those that leave."""
        assert self.signs is not None
        enter, leave = (
            log_determinants(small_squares(np.swapaxes(chosen[:, :, None] * self._columns, 1, 2)) / l2, 1.0)
            for chosen in (self.signs > 0.0, self.signs < 0.0)
        )
        return enter, leave

    @property
    def hessian_norm(self) -> FloatArray:
        return np.asarray(np.linalg.matrix_norm(small_squares(np.swapaxes(self._columns, 1, 2))))

    def log_determinant(self, l2: float) -> FloatArray:
        return log_determinants(small_squares(np.swapaxes(self._columns, 1, 2)) / l2, 1.0)

    @cached_property
    def steepness(self) -> FloatArray:
        r""":math:`\sqrt{(g\cdot e)^2 + c^2\|g - (g\cdot e)e\|^2}`, :math:`c` the :data:`STRETCH`.

        :math:`e` is the direction of her gradient where all coefficients are zero, or of the sum of her
        factor's columns there if that gradient is zero, or none: her rows, labels and weights and public
        values decide it, and no noise.
        """
        start = self.at_zero()
        towards = self._direction(self._signed(start.gradient))
        missing = ~np.any(towards, axis=1)
        if missing.any():
            columns = start.coordinates(np.eye(towards.shape[1]))
            towards = np.where(missing[:, None], self._direction(columns.sum(axis=1)), towards)
        lengths = np.linalg.norm(towards, axis=1)
        along = np.vecdot(self.gradient, towards) / np.where(lengths > 0.0, lengths, 1.0)
        across = np.sqrt(np.maximum(self.slope**2 - along**2, 0.0))
        return np.asarray(np.hypot(along, STRETCH * across))

    @property
    def reduced_norm(self) -> FloatArray:
        r"""The Frobenius norm of :math:`\sum_jP_jx_jx_j^\top`, a person's part in a reduced Hessian."""
        rows: Any = self.rows
        matrix = rows.rows.encoded() * np.sqrt(rows.reduced_weights)[:, None]
        people = matrix.reshape(len(self), self.each, -1)
        return np.asarray(np.linalg.matrix_norm(small_squares(np.swapaxes(people, 1, 2))))

    def size(self, reach: float, length: float) -> Any:
        return self.rows.size(reach, length)

    def add_hessian(self, squares: Any) -> None:
        self.rows.add_hessian(squares)

    def _direction(self, rows: FloatArray) -> FloatArray:
        """Each person's sum of vectors, or zero where they cancel."""
        found, lengths = self._summed(rows), self._summed(np.linalg.norm(rows, axis=1)[:, None])
        kept = np.linalg.norm(found, axis=1)[:, None] > CANCELLED * lengths
        return np.asarray(np.where(kept, found, 0.0))

    def _signed(self, rows: FloatArray) -> FloatArray:
        return rows if self.sides is None else self.sides[:, None] * rows

    def _summed(self, rows: FloatArray) -> FloatArray:
        return np.asarray(rows.reshape(len(self), self.each, -1).sum(axis=1))


@dataclass(frozen=True, eq=False)
class PersonLoss(RecordLoss):
    """The loss of a person whose rows have a given loss; rows of a block are people's, ``each`` of them."""

    loss: RecordLoss
    each: int

    @property
    def outputs(self) -> int:
        """Those of a row."""
        return self.loss.outputs

    @property
    def curve(self) -> Any:
        """That of a row: weights of a person sum to at most 1."""
        return self.loss.curve

    def at(self, theta: FloatArray, block: Any) -> _PersonRecords:
        """The people of a block of rows at coefficients."""
        sides = None
        if block.weights is not None and np.any(np.signbit(block.weights)):
            sides = np.where(np.signbit(block.weights), -1.0, 1.0)
            block = block._replace(weights=np.abs(block.weights))
        at_zero = partial(self.loss.at, np.zeros_like(theta), block)
        return _PersonRecords(self.loss.at(theta, block), at_zero, self.each, sides)

    def coefficient_count(self, columns: int) -> int:
        """As many as rows have."""
        return self.loss.coefficient_count(columns)
