"""The perturbed objective of any convex loss."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import DTypeLike

from expost._common.parallel import map_spans
from expost._common.typing import FloatArray
from expost.data.convex_records import RecordRows
from expost.fitting.objective import Evaluation, Objective, Sums
from expost.losses.convex import ConvexLoss

_EPS = float(np.finfo(np.float64).eps)
# Numbers in the Hessians of one block of records.
_BLOCK_NUMBERS = 500_000


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
        self.n_rows = records.n_rows
        self._records = records
        self._convex_loss = loss
        self._l2 = l2
        self._tilt = np.zeros(self.dimension) if tilt is None else tilt

    def evaluate(self, theta: FloatArray, *, hessian: DTypeLike | None = None, every: int = 1) -> Evaluation:
        """Gradient at ``theta`` and the Hessian where one is asked for, in one pass.

        ``every`` keeps only each ``every``-th block of records, weighted up, for warm starts.
        """

        def work(slices: list[slice]) -> Sums:
            with np.errstate(over="ignore", invalid="ignore"):
                return self._pass(theta, slices[::every], hessian)

        sums, *others = map_spans(self.n_rows, self.dimension + self._records.n_columns, work)
        for other in others:
            sums += other
        sums.rescale_to(self.n_rows)
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

    def _pass(self, theta: FloatArray, slices: list[slice], precision: DTypeLike | None) -> Sums:
        loss, d = self._convex_loss, self.dimension
        sums = Sums(np.zeros(d), None if precision is None else np.zeros((d, d)))
        length = float(np.linalg.norm(theta))
        for _, records in self._records.blocks(list(cut(slices, d * d))):
            gradient = loss.gradient(theta, records)
            sums.gradient += np.sum(gradient, axis=0)
            sums.slopes += float(np.sum(np.sqrt(np.vecdot(gradient, gradient))))
            # What rounding the parameters and the record can move a gradient by, in units of the last place.
            reach = length + np.sqrt(np.vecdot(records, records))
            sums.curvatures += loss.max_curvature * float(np.sum(reach))
            sums.rows += len(records)
            if sums.hessian is not None:
                sums.hessian += loss.total_hessian(theta, records)
        return sums


def cut(slices: list[slice], numbers: int) -> Iterator[slice]:
    """The same rows in blocks so short that so many numbers per row fit."""
    longest = max(16, _BLOCK_NUMBERS // numbers)
    for block in slices:
        for low in range(block.start, block.stop, longest):
            yield slice(low, min(low + longest, block.stop))
