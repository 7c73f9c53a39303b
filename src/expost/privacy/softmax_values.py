r"""The largest value of a softmax record over its class masses, as a function of the noise.

At one :math:`\epsilon` the value of a record is :math:`\delta_G(\epsilon - u; \Delta)`, with the privacy
loss :math:`u` of its coefficients and the shift :math:`\Delta` of the statistics. On each cell of
:mod:`expost.privacy.softmax_cells` both are bounded: :math:`u` by affine functions of the noise,
:math:`\Delta` by a number. Cells of nearly one shift are put together.
"""

from dataclasses import dataclass

import numpy as np

from expost._common.typing import FloatArray
from expost.privacy import gaussian
from expost.privacy.precision import Rounding
from expost.privacy.scales import NoiseScales
from expost.privacy.softmax_cells import SoftmaxCells

# So many shifts are told apart; each cell counts with the largest of its group.
_LEVELS = 48


@dataclass(frozen=True)
class SoftmaxValues:
    r"""The values of all records at one noise scale, without :math:`\epsilon`.

    For each shift in ``shifts``, ``heights`` holds :math:`A_{kl}` at the corners of its cells, and minus
    infinity at all others.
    """

    cells: SoftmaxCells
    unit: float
    """``norm / sigma``."""
    shifts: FloatArray
    heights: FloatArray

    @classmethod
    def of(
        cls,
        cells: SoftmaxCells,
        *,
        norm: float,
        l2: float,
        scales: NoiseScales,
        rounding: Rounding,
        reduced: bool,
    ) -> "SoftmaxValues":
        """The values of records whose rows have this norm."""
        unit = norm / scales.sigma
        curvature = cells.reduced if reduced else cells.hessian
        # The norm of the Hessian is at hand, so its rank is not needed.
        shift = scales.shift(cells.gradient * norm, curvature * norm**2, rank=1, rounding=rounding)
        # Shifts add up in squares, so their squares are told apart evenly.
        above = shift**2 - float(shift.min()) ** 2
        level = np.zeros(shift.shape, dtype=np.intp)
        if above.max() > 0.0:
            level = np.minimum(above / above.max() * _LEVELS, _LEVELS - 1).astype(np.intp)
        present = np.unique(level)
        planes = cells.planes(norm**2 / l2)
        heights = np.full((len(present), len(cells.slopes), len(cells.shares)), -np.inf)
        for height, number in zip(heights, present, strict=True):
            own = np.where((level == number)[..., None, None], planes, -np.inf)
            for row in (0, 1):
                for column in (0, 1):
                    corner = height[row : row + len(own), column : column + own.shape[1]]
                    np.maximum(corner, own[..., row, column], out=corner)
        heights += 0.5 * unit**2 * cells.squares
        shifts = np.array([shift[level == number].max() for number in present])
        return cls(cells, unit, shifts, heights)

    @property
    def rates(self) -> tuple[float, float]:
        r"""Rates :math:`r, r'` for which every value is convex in :math:`e^{-rM_1}` and :math:`e^{r'\Gamma}`.

        A value at a privacy loss that rises by :math:`a` per unit of a noise is convex in the exponential of
        minus :math:`a` times that noise (:meth:`expost.privacy.slopes.Slopes.rates`).
        """
        return self.unit * self.cells.slopes[-1], self.unit * self.cells.slopes[-1] * self.cells.shares[-1]

    def at(self, epsilon: float, largest: FloatArray, gaps: FloatArray) -> FloatArray:
        """The largest value of any record: one row for each largest difference, one column for each gap.

        ``largest`` rises.
        """
        slopes = self.unit * self.cells.slopes
        taken = slopes[:, None, None] * self.cells.shares[:, None] * gaps
        value = np.zeros((len(largest), len(gaps)))
        covered = np.full_like(value, -np.inf)
        # From the largest shift down: a smaller one counts only where its privacy loss is larger.
        for shift, height in zip(self.shifts[::-1], self.heights[::-1], strict=True):
            used = np.ix_(np.isfinite(height).any(axis=1), np.isfinite(height).any(axis=0))
            best = (height[used][..., None] - taken[used]).max(axis=1)
            loss = _envelope(slopes[used[0][:, 0]], best, largest)
            larger = loss > covered
            np.maximum(covered, loss, out=covered)
            value[larger] = np.maximum(value[larger], _profile(epsilon - loss[larger], float(shift)))
        return value


def _envelope(slopes: FloatArray, intercepts: FloatArray, at: FloatArray) -> FloatArray:
    """The largest of ``slope * at + intercept``, for rising slopes and one column for each gap."""
    # A line is needed only if no steeper one is above it at the first point and no flatter one at the last.
    first, last = (slopes[:, None] * end + intercepts for end in (at[0], at[-1]))
    needed = np.ones(first.shape, dtype=bool)
    needed[:-1] &= first[:-1] > np.maximum.accumulate(first[::-1])[::-1][1:]
    needed[1:] &= last[1:] > np.maximum.accumulate(last)[:-1]
    needed |= (first == first.max(axis=0)) | (last == last.max(axis=0))  # whatever the rounding
    result = np.full((len(at), intercepts.shape[1]), -np.inf)
    for line in np.flatnonzero(needed.any(axis=1)):
        np.maximum(result, slopes[line] * at[:, None] + intercepts[line], out=result)
    return result


def _profile(left: FloatArray, shift: float) -> FloatArray:
    """The profile of the Gaussian mechanism at what is left of epsilon, for one shift."""
    value: FloatArray = -np.expm1(np.minimum(left, 0.0))
    if shift > 0.0:
        # Farther out the shift changes the value by less than e^-800, which no double holds.
        near = np.abs(left) <= 40.0 * shift + 0.5 * shift**2
        value[near] = gaussian.delta(left[near], sensitivity=shift, sigma=1.0)
    return value
