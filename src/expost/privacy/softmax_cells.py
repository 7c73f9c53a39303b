r"""The privacy loss of a softmax record on cells of its class masses, and its largest value.

Cells are rectangles of :math:`q`, the mass of the wrong classes, and of :math:`t`, the share of it that is
not on the largest one (docs/mathematics.md, section 11, "Two order statistics" and "Cells").
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
from scipy.optimize import brentq

from expost._common.typing import FloatArray
from expost.losses.softmax_curve import SoftmaxCurve
from expost.privacy.excess import ROW, Excess, Tangent

# Cells of q and of t, and into how many each is cut for the bound on its Hessian.
_CELLS = 64
_CUTS = 8


class Masses(NamedTuple):
    """The mass of the true class, of the largest wrong one and of each other wrong one; or slopes in them."""

    true: FloatArray
    first: FloatArray
    rest: FloatArray

    def log_determinant(
        self, weight: float, mass: FloatArray, others: int
    ) -> tuple[FloatArray, "Masses", FloatArray]:
        """Its logarithm, the derivatives of that in the three sums, and minus the one in log ``mass``."""
        kept = [1.0 / (1.0 + weight * part) for part in self]
        total = self.true * kept[0] + self.first * kept[1] + others * self.rest * kept[2]
        value = np.log(total / mass) - np.log(kept[0]) - np.log(kept[1]) - others * np.log(kept[2])
        return value, Masses(*(weight * part + part**2 / total for part in kept)), np.ones_like(mass)

    def trace(self, weight: float, mass: FloatArray, others: int) -> tuple[FloatArray, "Masses", FloatArray]:
        """The trace of ``weight`` times the Hessian, and the same derivatives of it."""
        squares = self.true**2 + self.first**2 + others * self.rest**2
        value = weight * (self.true + self.first + others * self.rest - squares / mass)
        tilt = Masses(*(weight * (1.0 - 2.0 * part / mass) for part in self))
        return value, tilt, -weight * squares / mass

    def determinant(
        self, weight: float, mass: FloatArray, others: int, excess: Excess
    ) -> tuple[FloatArray, "Masses", FloatArray]:
        """What counts of the determinant: the logarithm for a row, the trace for a person."""
        cost = self.trace if isinstance(excess, Tangent) else self.log_determinant
        return cost(weight, mass, others)


class Record(NamedTuple):
    """What is exact for one record on a row of norm 1: norms, smallest mass, what its determinant costs."""

    gradient: FloatArray
    hessian: FloatArray
    reduced: FloatArray
    determinant: FloatArray


@dataclass(frozen=True)
class SoftmaxCells:
    """Rectangles with the edges ``slopes`` and ``shares``; of each the largest norms, for rows of norm 1."""

    curve: SoftmaxCurve
    slopes: FloatArray
    shares: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    reduced: FloatArray

    @property
    def squares(self) -> FloatArray:
        r"""The largest :math:`\|v\|^2` at every corner: one row for each edge of :math:`q`."""
        return self.slopes[:, None] ** 2 * _squares(self.shares)

    @property
    def trace(self) -> FloatArray:
        r"""The largest trace :math:`q(1 - \|\pi\|^2) + \kappa(q)(1 + \|\pi\|^2)` of each cell's Hessians."""
        slope, share = self.slopes[1:, None], self.shares[1:]
        peak = np.clip(self.curve.link.curve.peak, self.slopes[:-1], self.slopes[1:])
        # It falls with the sum of squares, which is smallest where the other wrong classes are equal.
        second = (1.0 - share) ** 2 + share**2 / (self.curve.classes - 2)
        return slope * (1.0 - second) + self.curve.curvature(peak)[:, None] * (1.0 + second)

    def planes(self, weight: float, excess: Excess = ROW) -> FloatArray:
        """Bounds on what the determinant costs, affine on each cell, at its corners: the last two axes."""
        low, high = self.slopes[:-1, None], self.slopes[1:, None]
        slope = 0.5 * (low + high)
        share = 0.5 * (self.shares[:-1] + self.shares[1:])
        others = self.curve.classes - 2
        # The chord lies above a convex function. With it the masses are affine, and the bound is concave.
        start, end = self.curve.mass(low), self.curve.mass(high)
        mass, rise = 0.5 * (start + end), (end - start) / (high - low)
        masses = Masses(mass - slope, slope * (1.0 - share), slope * share / others)
        value, tilt, fall = masses.determinant(weight, mass, others, excess)
        through = (rise - 1.0) * tilt.true - rise * fall / mass
        in_first, in_rest = through + tilt.first, through + tilt.rest
        origin = value - in_first * slope * (1.0 - share) - in_rest * slope * share
        slopes = np.stack([low, high], axis=2)[..., None]
        shares = np.stack([self.shares[:-1], self.shares[1:]], axis=1)[None, :, None, :]
        planes: FloatArray = in_first[..., None, None] * slopes * (1.0 - shares)
        planes += in_rest[..., None, None] * slopes * shares + origin[..., None, None]
        # None is above that of equal masses without a cap: a plane too, of slope zero.
        most = self.curve.rank * excess.determinant(weight / self.curve.classes)
        planes[planes.max(axis=(2, 3)) > most] = most
        return planes

    def records(self, weight: float, excess: Excess = ROW) -> Record:
        """A record at every corner: all wrong classes but the largest have equal masses."""
        slope, share, others = self.slopes[:, None], self.shares, self.curve.classes - 2
        mass, bend = self.curve.mass(slope), self.curve.curvature(slope)
        masses = Masses(mass - slope, slope * (1.0 - share), slope * share / others)
        second = (1.0 - share) ** 2 + share**2 / others
        third = (1.0 - share) ** 3 + share**3 / others**2
        return Record(
            gradient=slope * np.sqrt(1.0 + second),
            hessian=_frobenius(slope, bend, second, third),
            reduced=np.minimum(masses.true, masses.rest),
            determinant=masses.determinant(weight, mass, others, excess)[0],
        )


@lru_cache(maxsize=16)
def softmax_cells(curve: SoftmaxCurve) -> SoftmaxCells:
    """The cells of a curve of three classes or more."""
    slopes, shares = _slope_edges(curve), _share_edges(curve.classes)
    fine, across = _cut(slopes), _cut(shares)
    true = curve.mass(fine[:-1]) - fine[:-1]
    return SoftmaxCells(
        curve,
        slopes,
        shares,
        gradient=slopes[1:, None] * np.sqrt(_squares(shares[:-1])),
        hessian=_largest(_hessian(curve, fine, across)),
        reduced=_largest(np.minimum(true[:, None], fine[1:, None] * across[1:] / (curve.classes - 2))),
    )


def largest_determinant(curve: SoftmaxCurve, weight: float, excess: Excess = ROW) -> float:
    """An upper bound on log det(I + wA) of every record, or on its trace for a person.

    Exact for plain softmax (docs/mathematics.md, section 11, "Floor").
    """
    classes, weight = curve.classes, weight * curve.weight
    if classes == 2:
        return float(excess.determinant(2.0 * weight * curve.link.curve.max_curvature))
    if curve.link.corner_slope >= (classes - 1) / classes:
        return (classes - 1) * float(excess.determinant(weight / classes))
    return float(softmax_cells(curve).planes(weight, excess).max())


def _slope_edges(curve: SoftmaxCurve) -> FloatArray:
    """Edges with the corner of the cap, and the slope of equal masses, where the smallest one has a cusp."""
    steep = curve.link.corner_slope
    bent = _CELLS // 4 if steep < curve.cap else 0
    edges = np.union1d(np.linspace(0.0, steep, _CELLS - bent + 1), np.linspace(steep, curve.cap, bent + 1))
    cusp = brentq(lambda q: float(curve.mass(np.array(q))) - q - q / (curve.classes - 1), 0.0, curve.cap)
    return np.union1d(edges, [cusp])


def _share_edges(classes: int) -> FloatArray:
    """Edges with one half among them: up to there the other wrong classes may all be one class."""
    top = (classes - 2) / (classes - 1)
    if classes == 3:
        return np.linspace(0.0, top, _CELLS + 1)
    return np.union1d(np.linspace(0.0, 0.5, _CELLS // 2 + 1), np.linspace(0.5, top, _CELLS // 2 + 1))


def _squares(share: FloatArray) -> FloatArray:
    r"""The largest :math:`1 + \sum_j\pi_j^2` where the largest :math:`\pi_j` is ``1 - share``."""
    return 1.0 + (1.0 - share) ** 2 + share * np.minimum(share, 1.0 - share)


def _cut(edges: FloatArray) -> FloatArray:
    """Every interval cut into equal ones."""
    steps = np.arange(_CUTS) / _CUTS
    return np.append((edges[:-1, None] + np.diff(edges)[:, None] * steps).ravel(), edges[-1])


def _largest(values: FloatArray) -> FloatArray:
    """The largest value of each cell's parts."""
    rows, columns = values.shape
    blocks = values.reshape(rows // _CUTS, _CUTS, columns // _CUTS, _CUTS)
    return np.asarray(blocks.max(axis=(1, 3)))


def _frobenius(slope: FloatArray, bend: FloatArray, second: FloatArray, third: FloatArray) -> FloatArray:
    """The Frobenius norm from the sums of squares and cubes of the shares (section 11, "Cells")."""
    rest = slope - bend
    square = slope**2 * second + (rest * second) ** 2 + bend**2 * (1.0 + 2.0 * second)
    return np.sqrt(np.maximum(square - 2.0 * slope * rest * third, 0.0))


def _hessian(curve: SoftmaxCurve, slopes: FloatArray, shares: FloatArray) -> FloatArray:
    """Upper bounds on the Frobenius norm on small cells: the worst ends, then concave in the mean y."""
    slope = slopes[1:, None]
    bend = curve.curvature(np.clip(curve.link.curve.peak, slopes[:-1], slopes[1:]))[:, None]
    rest = slope - bend
    low, high = shares[:-1], shares[1:]
    first = (1.0 - low) ** 2
    linear = low * (slope**2 + 2.0 * first * rest**2 + 2.0 * bend**2)
    square = (rest * low) ** 2 - 2.0 * slope * rest * high
    top = -0.5 * linear / np.minimum(square, -np.finfo(float).tiny)
    mean = np.clip(top, low / (curve.classes - 2), np.where(high <= 0.5, high, 1.0 - low))
    return _frobenius(slope, bend, first + low * mean, (1.0 - high) ** 3 + high * mean**2)


# The number of shifts that are told apart; each cell counts with the largest of its group.
_LEVELS = 48


@dataclass(frozen=True)
class SoftmaxValues:
    """The values of all records at one noise scale, of which ``unit`` is the norm, without epsilon."""

    cells: SoftmaxCells
    unit: float
    shifts: FloatArray
    # For each shift, what its cells have at their corners, and minus infinity at all others.
    heights: FloatArray

    @classmethod
    def of(
        cls, cells: SoftmaxCells, unit: float, shift: FloatArray, weight: float, excess: Excess = ROW
    ) -> Self:
        """The values of records that move the statistics by these shifts; ``weight`` is R²/λ."""
        # Shifts add up in squares, so their squares are told apart evenly.
        above = shift**2 - float(shift.min()) ** 2
        level = np.zeros(shift.shape, dtype=np.intp)
        if above.max() > 0.0:
            level = np.minimum(above / above.max() * _LEVELS, _LEVELS - 1).astype(np.intp)
        present = np.unique(level)
        planes = cells.planes(weight, excess)
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
    def rise(self) -> float:
        """How fast a value can rise with the largest difference, where it is not bounded."""
        return float(self.unit * self.cells.slopes[-1])

    @property
    def rates(self) -> tuple[float, float]:
        """The rates of section 11, "Expectation"."""
        return self.rise, self.rise * float(self.cells.shares[-1])

    def at(self, epsilon: float, largest: FloatArray, gaps: FloatArray, excess: Excess = ROW) -> FloatArray:
        """The largest value of any record, for rising ``largest`` differences (rows) and gaps (columns)."""
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
            value[larger] = np.maximum(
                value[larger], excess.mean_at_shift(epsilon - loss[larger], float(shift))
            )
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
