"""The perturbed objective of any convex loss."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import DTypeLike

from expost._common.typing import FloatArray
from expost.data.convex_records import RecordRows
from expost.fitting.derivatives import Sums, total
from expost.fitting.objective import Evaluation, Objective
from expost.losses.convex import ConvexLoss

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class ConvexDerivatives:
    """The pass that adds up gradients and, where asked for, Hessians at ``theta``."""

    loss: ConvexLoss
    theta: FloatArray
    hessian: bool

    def __call__(self, blocks: Iterator[FloatArray]) -> Sums:
        """The sums over the blocks."""
        loss, theta, d = self.loss, self.theta, len(self.theta)
        sums = Sums(np.zeros(d), np.zeros((d, d)) if self.hessian else None)
        length = float(np.linalg.norm(theta))
        with np.errstate(over="ignore", invalid="ignore"):
            for records in blocks:
                gradient = loss.gradient(theta, records)
                sums.gradient += np.sum(gradient, axis=0)
                sums.slopes += float(np.sum(np.sqrt(np.vecdot(gradient, gradient))))
                # What rounding the parameters and the record can move a gradient by, in units of the last
                # place.
                reach = length + np.sqrt(np.vecdot(records, records))
                sums.curvatures += loss.max_curvature * float(np.sum(reach))
                sums.rows += len(records)
                if sums.hessian is not None:
                    sums.hessian += loss.total_hessian(theta, records)
        return sums


class ConvexObjective(Objective):
    r"""The objective of objective perturbation for any convex loss.

    .. math:: J(\theta; D) + b^\top\theta, \qquad
              J(\theta; D) = \sum_i \ell(\theta; z_i) + \frac{\lambda}{2}\|\theta\|^2

    For the dense solver only. Hessians are in double precision whatever is asked for. A block of records
    needs memory for half a million numbers of Hessians.

    Privacy
    -------
    Everything computed here is private, the number of passes included.
    """

    def __init__(
        self, records: RecordRows, loss: ConvexLoss, *, l2: float, tilt: FloatArray | None = None
    ) -> None:
        self.dimension = self.columns = loss.n_parameters
        self._convex_records = records
        self._convex_loss = loss
        self._l2 = l2
        self._tilt = np.zeros(self.dimension) if tilt is None else tilt
        self._stand_for: int | None = None

    @property
    def n_rows(self) -> int:
        """How many records there are."""
        return self._convex_records.n_rows

    def thinned(self, every: int) -> Self:
        """The objective of each ``every``-th block of records, which stand for all of them."""
        thin = copy(self)
        thin._convex_records = self._convex_records.thinned(every)
        thin._stand_for = self.n_rows
        return thin

    def evaluate(self, theta: FloatArray, *, hessian: DTypeLike | None = None) -> Evaluation:
        """Gradient at ``theta`` and the Hessian where one is asked for, in one pass."""
        work = ConvexDerivatives(self._convex_loss, theta, hessian is not None)
        sums = total(self._convex_records.sweep(work))
        if self._stand_for is not None:
            sums.rescale_to(self._stand_for)
        gradient = sums.gradient + self._l2 * theta
        tilted = gradient + self._tilt
        square = None if sums.hessian is None else sums.hessian + self._l2 * np.eye(self.dimension)
        size = sums.slopes + sums.curvatures + self._l2 * float(np.linalg.norm(theta))
        return Evaluation(
            gradient=gradient,
            tilted_gradient=tilted,
            norm=float(np.linalg.norm(tilted)),
            floor=4.0 * _EPS * (size + float(np.linalg.norm(self._tilt))),
            hessian=square,
            rows_hessian=sums.hessian,
            precise=hessian is not None,
        )
