r"""The privacy profile of a whole publication of one linear predictor, as a certified upper bound.

Branch and bound over cells of slopes (:class:`WorstSlope`) and an :func:`expectation` over cells of the noise
:math:`N`, by chords in :math:`v = e^{-rN}`; docs/mathematics.md, section 6, "How it is computed".
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy.special import gammaincc, gammainccinv, gammaln

from expost._common.typing import FloatArray
from expost._common.validation import check_positive
from expost.exceptions import CalibrationError
from expost.losses.base import DerivativeCurve
from expost.privacy import gaussian, renyi
from expost.privacy.certified_profile import (
    NEGLIGIBLE,
    Bracket,
    CertifiedProfile,
    Direction,
    certified,
)
from expost.privacy.excess import ROW, Excess, best_tangent
from expost.privacy.precision import REAL, Rounding
from expost.privacy.scales import NoiseScales
from expost.privacy.worst_path import COARSE, FINE, LAST_EPSILON, SLOW, WorstPath

# Cells of slopes alive at once, and edges of the noise: what needs more gets a wider bracket, not more time.
_CELL_LIMIT, _EDGE_LIMIT = 200_000, 3_000
# The first round is at least this coarse: the rounds end as soon as the question is decided.
_COARSE, _ROUNDS = 1e-2, 10
# Widths of the bracket, as a share of its upper end: values without statistics cost less, so they get more.
_RTOL_MODEL = 2e-4
_RTOL = 9e-4
# The largest value at one slope is one number, so it is resolved this much further.
_FIXED = 1e-2

# How much of epsilon goes to the solver's error, in units of it: what lies beyond is not resolved elsewhere.
_SOLVER_REACH = 8.5
# How closely divergences are resolved, as a share of them.
_RTOL_ORDERS = 1e-5

Bound = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
OrderExcess = Callable[[FloatArray, FloatArray], FloatArray]
# What an eigenvalue adds to a divergence, and the most that several add for each unit of their sum.
_ADDING = renyi.adding_excess, renyi.adding_mean
_REMOVING = renyi.removing_excess, renyi.removing_mean


@dataclass(frozen=True)
class WorstSlope:
    """The slopes of one record that is added, or removed where ``l2`` is infinite, at one epsilon.

    As a function of the noise the largest value over all slopes rises, and it is convex in ``v``. ``excess``
    is what the values are means of: for a person whose rows have these slopes it is a tangent.
    """

    curve: DerivativeCurve
    norm: float
    l2: float
    scales: NoiseScales
    rounding: Rounding
    epsilon: float
    excess: Excess = ROW

    @property
    def grid(self) -> FloatArray:
        """A first partition of the slopes; the peak of the curvature splits it, so that few cells survive."""
        rising = np.linspace(0.0, self.curve.peak, 9)
        return np.unique(np.concatenate([rising, np.linspace(self.curve.peak, self.curve.max_slope, 25)]))

    def terms(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Upper bounds on the log-determinant and on the statistics' shift for slopes in ``[low, high]``."""
        curvature = self.curve.max_curvature_between(low, high) * self.norm**2
        logarithm = self.curve.rank * self.excess.determinant(curvature / self.l2)
        shift = self.scales.shift(high * self.norm, curvature, rank=self.curve.rank, rounding=self.rounding)
        return logarithm, shift

    def left(self, noise: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What is left of epsilon at this noise, at least, and the shift, at most, for slopes in a cell."""
        logarithm, shift = self.terms(low, high)
        unit = self.norm / self.scales.sigma
        loss = logarithm + 0.5 * (unit * high) ** 2 + unit * np.where(noise >= 0.0, high, low) * noise
        return self.epsilon - loss, shift

    def rates(self, noise: FloatArray) -> FloatArray:
        """A rate in ``v`` for all values below this noise; any larger one serves as well."""
        low, high = self.grid[:-1], self.grid[1:]
        left, shift = self.left(noise[:, None], low, high)
        steepest = np.asarray((self.excess.bend(left, shift) * high).max(axis=1))
        return np.maximum(steepest * self.norm / self.scales.sigma, 1e-9)

    def bound(self, noise: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """An upper bound on the values at this noise for slopes in a cell; exact where its ends agree."""
        left, shift = self.left(noise, low, high)
        if self.scales.releases_statistics:
            return self.excess.mean(left, shift)
        return self.excess.mean_at_shift(left, self.rounding.solver)

    def fixed_bound(self, noise: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """An upper bound on the expectation at one fixed slope in a cell; ``noise`` does not count."""
        logarithm, shift = self.terms(low, high)
        together = np.hypot(high * self.norm / self.scales.sigma, shift)
        return self.excess.mean(self.epsilon - logarithm, together)

    def divergence(
        self, sums: tuple[OrderExcess, OrderExcess], order: FloatArray, low: FloatArray, high: FloatArray
    ) -> FloatArray:
        """An upper bound on the Rényi divergence of an order for slopes in a cell; section 17."""
        excess, mean = sums
        weight, rank = self.norm**2 / self.l2, self.curve.rank
        shift = self.terms(low, high)[1]
        square = (high * self.norm / self.scales.sigma) ** 2 + shift**2
        largest = self.curve.largest_eigenvalue(low, high) * weight
        added = rank * excess(order, largest)
        if self.curve.eigenvalue is not None:  # a curve of determinants bounds the trace
            trace = rank * self.curve.max_curvature_between(low, high) * weight
            added = np.minimum(added, trace * mean(order, np.minimum(largest, trace)))
        return 0.5 * order * square + added

    @property
    def some_fixed(self) -> float:
        """The largest expectation at a few fixed slopes: a lower bound on that of the largest value."""
        return float(np.max(self.fixed_bound(np.zeros(1), self.grid, self.grid)))

    @property
    def rise(self) -> float:
        """How fast a value can rise with the noise, where it is not bounded."""
        return self.curve.max_slope * self.norm / self.scales.sigma

    def worst_fixed(self, rtol: float) -> Bracket:
        """Bracket the largest expectation at one fixed slope."""
        upper, _, lower = self.supremum(self.fixed_bound, np.zeros(1), rtol, np.array([NEGLIGIBLE]))
        return certified(float(lower[0]), float(upper[0]))

    def steepest(self) -> Bracket:
        """The expectation for a removed record, without statistics (section 6, "Removing a record ...")."""
        steep, solver = self.rise, self.rounding.solver
        shifts = np.array([steep, math.hypot(steep, solver), solver])
        alone, both, apart = self.excess.mean(np.asarray(self.epsilon), shifts).tolist()
        if self.curve.sign_fixed:
            return certified(alone, both + apart)
        value = self.excess.folded(self.epsilon, steep)
        return certified(value, value + 2.0 * (both - alone))

    def supremum(
        self, bound: Bound, noise: FloatArray, rtol: float, floor: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Upper bounds on the suprema over slopes, slopes that nearly attain them, and lower bounds.

        They differ by at most ``rtol``, as a share of the supremum or of ``floor`` if that is larger. Cells
        that cannot beat the best slope known by more are dropped, the others are cut in four.
        """
        grid = self.grid
        known = np.broadcast_to(bound(noise[:, None], grid, grid), (len(noise), len(grid)))
        best = grid[known.argmax(axis=1)]
        lower = known.max(axis=1)
        upper = lower.copy()
        owner = np.repeat(np.arange(len(noise)), len(grid) - 1)
        low, high = np.tile(grid[:-1], len(noise)), np.tile(grid[1:], len(noise))
        while len(owner):
            value = bound(noise[owner], low, high)
            alive = value > (lower + rtol * np.maximum(lower, floor))[owner]
            if len(owner) > _CELL_LIMIT:
                alive[:] = False
            np.maximum.at(upper, owner[~alive], value[~alive])
            owner, low, high = owner[alive], low[alive], high[alive]
            cuts = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, 5)
            cuts[:, -1] = high
            middle = bound(noise[owner], cuts[:, 2], cuts[:, 2])
            np.maximum.at(lower, owner, middle)
            improved = middle == lower[owner]
            best[owner[improved]] = cuts[improved, 2]
            owner, low, high = np.repeat(owner, 4), cuts[:, :-1].ravel(), cuts[:, 1:].ravel()
        return np.maximum(upper, lower), best, lower


@dataclass(frozen=True)
class Noise:
    """A chi variable of ``freedom`` degrees, or, where ``signed``, a standard normal."""

    freedom: int
    signed: bool

    def quantile(self, tail: float) -> float:
        """The point exceeded with probability ``tail``."""
        beyond = 2.0 * tail if self.signed else tail
        return math.sqrt(2.0 * float(gammainccinv(0.5 * self.freedom, beyond)))

    @property
    def _moment(self) -> float:
        """The noise times the chi density is the density of one more degree of freedom, times this."""
        return math.sqrt(2.0) * math.exp(gammaln(0.5 * (self.freedom + 1)) - gammaln(0.5 * self.freedom))

    def overshoot(self, at: float) -> float:
        """The mean of the part of the noise above a positive number."""
        mass, more = (float(gammaincc(0.5 * (self.freedom + one), 0.5 * at * at)) for one in (0, 1))
        return (0.5 if self.signed else 1.0) * max(self._moment * more - at * mass, 0.0)

    def cells(self, edges: FloatArray, rate: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Cut the law at ``edges``, which contain 0 where ``signed``, each cell for its own rate in ``v``.

        For each cell its mass, where the mean of ``v`` lies on the scale of the noise, never above it, and
        the chord's weight on the upper edge, never below it.
        """
        low, high = edges[:-1], edges[1:]
        width = high - low
        half = 0.5 * edges * edges
        mass = np.abs(np.diff(gammaincc(0.5 * self.freedom, half)))
        more = np.abs(np.diff(gammaincc(0.5 * (self.freedom + 1), half)))
        first = np.copysign(self._moment, low + high) * more
        centre = np.divide(first, mass, out=0.5 * (low + high), where=mass > 0.0)
        offset = np.clip(centre - low, 0.0, width)
        # v is convex in the noise: its mean lies above v at the mean noise and below the chord there.
        fall = np.expm1(-rate * width)
        mean = low - np.log1p(np.maximum(offset / width * fall, 1e-15 - 1.0)) / rate
        return 0.5 * mass if self.signed else mass, mean, np.expm1(-rate * offset) / fall


def expectation(slopes: WorstSlope, noise: Noise, rtol: float, scale: float = 0.0) -> Bracket:
    """Bracket an expectation to ``rtol``, relative to itself or to ``scale``; below that no further."""
    fixed = slopes.some_fixed
    size = max(fixed, scale, NEGLIGIBLE)
    tail = 1e-2 * rtol * size
    reach = noise.quantile(tail)
    edges = np.linspace(0.0, reach, 17)
    if noise.signed:
        edges = np.concatenate([np.linspace(-reach, 0.0, 5)[:-1], edges])
    share = max(rtol, _COARSE)
    # A value without statistics costs so little that the noise may be resolved more finely than asked.
    part = 0.6 if slopes.scales.releases_statistics else 0.2
    lower, upper, width, known = fixed, 1.0, math.inf, 0
    for _ in range(_ROUNDS):
        edges = _place(slopes, noise, edges, part * share * size)
        mass, mean, chord = noise.cells(edges, slopes.rates(edges[1:]))
        # The chords amount to a law on the edges. Below the first edge the value is at most that
        # at the edge.
        weight = np.concatenate([mass * (1.0 - chord), [0.0]]) + np.concatenate([[tail], mass * chord])
        # An edge may err by a share of its own value, or by an even part of the whole if that is larger.
        even = size / (len(edges) * np.maximum(weight, NEGLIGIBLE))
        values, best, _ = slopes.supremum(slopes.bound, edges, 0.3 * share, even)
        near = np.stack([best[:-1], 0.5 * (best[:-1] + best[1:]), best[1:]], axis=1)
        below = slopes.bound(mean[:, None], near, near).max(axis=1)
        # Every round is a bracket of its own, and a finer one need not be narrower at both ends.
        far = slopes.excess.beyond(tail, float(values[-1]), slopes.rise * noise.overshoot(reach))
        lower, upper = max(lower, float(mass @ below)), min(upper, float(weight @ values) + far)
        if upper <= scale or upper - lower <= rtol * max(upper, size):
            break
        # Where more edges do not help a limit is reached: more rounds would take time only.
        if upper - lower > 0.7 * width and len(edges) > known:
            break
        width, known = upper - lower, len(edges)
        share *= 0.25
    return certified(lower, upper)


def _place(slopes: WorstSlope, noise: Noise, edges: FloatArray, tolerance: float) -> FloatArray:
    """Halve cells until the chords are close, as estimated from a few slopes."""
    while True:
        mass, mean, chord = noise.cells(edges, slopes.rates(edges[1:]))
        places = np.concatenate([edges, mean])[:, None]
        sample = slopes.bound(places, slopes.grid, slopes.grid).max(axis=1)
        at_edges, at_means = np.split(sample, [len(edges)])
        gap = mass * (at_edges[:-1] + chord * np.diff(at_edges) - at_means)
        # Parameters so extreme that the gap is not a number end here too, and are certified by nothing.
        if not gap.sum() > tolerance or len(edges) > _EDGE_LIMIT:
            return edges
        wide = gap > tolerance / len(gap)
        edges = np.sort(np.concatenate([edges, 0.5 * (edges[:-1] + edges[1:])[wide]]))


@dataclass(frozen=True)
class PrivacyProfile(CertifiedProfile):
    r"""What a publication costs at worst, for every :math:`\epsilon`.

    .. math:: \delta(\epsilon) \le \max_m \delta_G\Bigl(\epsilon - \log\bigl(1 + \kappa(m)
              R^2/\lambda\bigr);\, \sqrt{m^2R^2/\sigma^2 + \Delta(m)^2}\Bigr)

    for an added record where :math:`\kappa(m)/m` does not rise or nothing but the coefficients is published;
    otherwise, and for a removed record, whose logarithm is 0, with the maximum inside of an expectation over
    the noise (docs/mathematics.md, theorems 6.2 and 6.1). Needs that :math:`\kappa(m)/m^2` does not rise.

    Where the ``unit`` is a person, who has any number of rows with weights that sum to at most 1, the same
    with a :class:`~expost.privacy.excess.Tangent` in the place of the excess (theorem 15.1).
    """

    curve: DerivativeCurve
    norm: float
    l2: float
    scales: NoiseScales
    rounding: Rounding = REAL
    unit: str = "row"

    def __post_init__(self) -> None:
        check_positive("norm", self.norm)
        check_positive("l2", self.l2, infinite=True)
        if not math.isfinite(self.curve.max_slope):
            raise CalibrationError(
                "no worst-case guarantee exists for a loss of unbounded slope; got max_slope=inf. "
                "Use a loss with a bounded slope, such as PseudoHuber, or state per-person losses only."
            )

    @property
    def width(self) -> float:
        """The default width of a bracket, as a share of its upper end."""
        return _RTOL if self.scales.releases_statistics else _RTOL_MODEL

    @property
    def covers_removing(self) -> bool:
        """Whether the bound for an added record is by its form at least that for a removed one."""
        return not self._along_its_row or (self._slope_moves and self.curve.sign_fixed)

    @property
    def rise(self) -> float:
        """The largest norm of a record's gradient, in units of the noise."""
        return self.curve.max_slope * self.norm / self.scales.sigma

    def adding(self, at: float, width: float) -> Bracket:
        """The bracket for continuous noise when a record is added."""
        slopes = self._slopes(self.l2, at)
        if self._along_its_row and not self._slope_moves:
            return slopes.worst_fixed(_FIXED * width)
        return expectation(slopes, Noise(self.curve.outputs, signed=self._along_its_row), width)

    def removing(self, at: float, width: float, *, scale: float = 0.0) -> Bracket:
        """The bracket when a record is removed, resolved no further than a value of ``scale`` needs."""
        slopes = self._slopes(math.inf, at)
        if self._along_its_row and not self.scales.releases_statistics:
            return slopes.steepest()
        signed = self._along_its_row and self.curve.sign_fixed
        return expectation(slopes, Noise(self.curve.outputs, signed=signed), width, scale=scale)

    def other(self, direction: Direction, at: FloatArray, width: float) -> FloatArray:
        """Bounds on delta by another theorem: for a row of one predictor by its worst path (theorem 16.1).

        What the solver's error costs is one more Gaussian coordinate, whatever the slope: a little of epsilon
        is left to it. Anything else is bounded by its Rényi divergences (theorem 17.1).
        """
        if not (self._along_its_row and self.unit == "row"):
            return super().other(direction, at, width)
        found = np.full(len(at), math.inf)
        inside = at <= LAST_EPSILON
        if self._has_paths and np.any(inside):
            path, solver = self._paths[COARSE], self.rounding.solver
            if width < _RTOL and path.fastest > SLOW:
                path = self._paths[FINE]
            left = np.minimum(_SOLVER_REACH * solver, at[inside])
            bound = path.adding if direction == "adding" else path.removing
            found[inside] = bound(at[inside] - left) + gaussian.delta(left, sensitivity=solver, sigma=1.0)
        return found

    @cached_property
    def _paths(self) -> dict[float, WorstPath]:
        """The worst path by the size of its cells: its levels are the same for every epsilon."""
        whole = WorstPath(self.curve, self.norm, self.l2, self.scales.sigma)
        return {cell: replace(whole, cell=cell) for cell in (COARSE, FINE)}

    @property
    def _has_paths(self) -> bool:
        """Whether the worst path is bounded: nothing is published but the model, and short rows cost less."""
        return math.isfinite(self.l2) and not self.scales.releases_statistics and self.curve.falls_by(2)

    def divergences(self, orders: FloatArray) -> dict[Direction, FloatArray]:
        """Upper bounds on the Rényi divergences of these orders, for continuous noise (section 17)."""
        slopes = WorstSlope(self.curve, self.norm, self.l2, self.scales, self.rounding, 0.0)
        floor = np.full(len(orders), NEGLIGIBLE)
        adding, removing = (
            slopes.supremum(partial(slopes.divergence, one), orders, _RTOL_ORDERS, floor)[0]
            for one in (_ADDING, _REMOVING)
        )
        if self.unit == "person":  # whose largest eigenvalue must lie where the excess is convex
            ends = np.zeros(1), np.array([self.curve.max_slope])
            bent = float(self.curve.largest_eigenvalue(*ends)[0]) * self.norm**2 / self.l2
            adding = np.where(np.sqrt(orders) * bent <= 1.0, adding, math.inf)
        return {"adding": adding, "removing": removing}

    def _slopes(self, l2: float, at: float) -> WorstSlope:
        """The slopes of a row or of a person's rows; each direction has the tangent that suits it."""
        slopes = WorstSlope(self.curve, self.norm, l2, self.scales, self.rounding, at)
        if self.unit == "row":
            return slopes
        return replace(slopes, excess=best_tangent(at, lambda one: replace(slopes, excess=one).some_fixed))

    @property
    def _along_its_row(self) -> bool:
        """Whether a record's gradients all lie along its row."""
        return self.curve.outputs == self.curve.rank == 1

    @property
    def _slope_moves(self) -> bool:
        """Whether the worst slope of an added record may depend on the noise (section 6)."""
        return self.scales.releases_statistics and not self.curve.ratio_falls
