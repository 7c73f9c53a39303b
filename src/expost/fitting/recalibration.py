"""How scores and predictions are read by the noisy numbers that were published after them."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit, log_ndtr

from expost._common.namespaces import Space, is_foreign, on_host
from expost._common.summary import Summarized, Summary
from expost._common.typing import FloatArray
from expost._common.validation import LibraryName
from expost.data.frame_tables import FrameKind
from expost.fitting.contributions import Contributions
from expost.fitting.release import Release
from expost.privacy.recalibration import MOMENT_WEIGHTS, cell_ends

# How far outside of its end the middle of an open cell is taken to be, besides half its neighbour's width.
_OUTSIDE = 0.3
# The grid of logarithms of scales, and of shifts, and what is believed of both before the histogram is read.
_SCALES, _SHIFTS = np.linspace(math.log(0.05), math.log(20.0), 31), np.linspace(-6.0, 6.0, 33)
_USUAL, _SPREAD, _SHIFT = math.log(1.4), 0.5, 0.8
# Where beliefs are narrower than a step of the grid it is made finer around them, this often at most: so many
# steps, or standard deviations if that is more, to either side.
_ROUNDS, _STEPS, _DEVIATIONS = 4, 1.5, 6.0
# A cell has this much variance besides noise and sampling.
_LEAST = 0.001
# Pairs of scale and shift that are believed less than this share of the likeliest are left out.
_UNLIKELY = 1e-12
# Scores that are read at once, and beyond what size a logarithm of odds says no more.
_AT_ONCE, _SURE = 4096, 700.0
# What is believed of the shift and the slope of residuals before moments are read, and their variance.
_LINE_SHIFT, _LINE_SLOPE, _RESIDUAL = 0.015, 0.1, 0.06


@dataclass(frozen=True, eq=False)
class CalibrationCurve(Summarized):
    r"""How often the second class occurred at each score, with noise, and the probabilities that follow.

    A score :math:`z` is read as :math:`\mathrm{E}\,\mathrm{sigmoid}(sz + a)` under what the histogram says of
    :math:`(s, a)`: the counts of a cell have normal noise, and :math:`n` records at scores about :math:`z`
    have a share :math:`\mathrm{sigmoid}(sz + a)` of the second class. The prior is
    :math:`\log s \sim N(\log 1.4, 0.5^2)`, :math:`a \sim N(0, 0.8^2)`, on a grid that is made finer where
    many records leave little doubt. Probabilities rise with the
    score, so that the order of records does not change.

    Privacy
    -------
    Public: a function of what was published.
    """

    histogram: FloatArray
    """The noisy counts, those of the first class by rising scores before those of the second."""
    noise: float
    """The standard deviation of each count's noise."""

    @property
    def ends(self) -> FloatArray:
        """The scores at which cells end."""
        return np.array(cell_ends(self.noise))

    @property
    def middles(self) -> FloatArray:
        """The score that stands for each cell."""
        ends = self.ends
        width = 0.5 * (ends[-1] - ends[-2]) + _OUTSIDE
        return np.concatenate([[ends[0] - width], 0.5 * (ends[:-1] + ends[1:]), [ends[-1] + width]])

    @property
    def counts(self) -> FloatArray:
        """The noisy counts of both classes, one row for each class."""
        return self.histogram.reshape(2, -1)

    @property
    def shares(self) -> FloatArray:
        """The share of the second class in each cell; nan where noise leaves no positive count."""
        both = np.sum(self.counts, axis=0)
        found = np.divide(self.counts[1], both, out=np.full(len(both), math.nan), where=both > 0.0)
        return np.asarray(found)

    @property
    def errors(self) -> FloatArray:
        r"""The standard error of each share :math:`p`, by the noise and by sampling.

        .. math:: \sqrt{\sigma_h^2(p^2 + (1 - p)^2)/n^2 + p(1 - p)/n}
        """
        both, share = np.sum(self.counts, axis=0), np.clip(self.shares, 0.0, 1.0)
        noise = self.noise**2 * (share**2 + (1.0 - share) ** 2)
        return np.asarray(np.sqrt(np.maximum(noise / both**2 + share * (1.0 - share) / both, 0.0)))

    @property
    def recalibrated(self) -> FloatArray:
        """The probability of the second class that the model gives in the middle of each cell."""
        return np.asarray(expit(self.corrected(self.middles)))

    def corrected(self, scores: Any) -> Any:
        """The logarithm of the odds of the second class at each score, where the scores lie."""
        if is_foreign(scores):
            return Space.of(scores).put(self.corrected(on_host(scores)))
        scale, shift, weights = self._believed
        found = np.empty(len(scores))
        for start in range(0, len(scores), _AT_ONCE):
            some = np.asarray(scores[start : start + _AT_ONCE])[:, None]
            inner = np.clip(some * scale + shift, -_SURE, _SURE)
            found[start : start + _AT_ONCE] = np.log(expit(inner) @ weights) - np.log(expit(-inner) @ weights)
        return found

    def _beliefs(self, logarithms: FloatArray, shifts: FloatArray) -> FloatArray:
        """How much each pair of scale and shift is believed, scales by shifts."""
        first, second = self.counts
        noise, cells = self.noise, len(first)
        p = expit(np.exp(logarithms)[:, None, None] * self.middles + shifts[:, None])
        q = 1.0 - p
        length = np.sqrt(p * p + q * q)
        typical = 1.5 * max(float(np.sum(self.histogram)), 0.5 * noise * math.sqrt(2.0 * cells)) / cells
        rate = 1.0 / (typical * length)
        across, along = (q * second - p * first) / length, (p * second + q * first) / length
        variance = noise**2 + np.maximum(first + second, 0.0) * p * q / length**2 + _LEAST
        likelihood = -0.5 * np.log(variance) - across**2 / (2.0 * variance) - np.log(length)
        likelihood += -rate * along + 0.5 * (rate * noise) ** 2 + log_ndtr((along - rate * noise**2) / noise)
        prior = -0.5 * ((logarithms[:, None] - _USUAL) / _SPREAD) ** 2 - 0.5 * (shifts / _SHIFT) ** 2
        total = np.sum(likelihood, axis=2) + prior
        weights = np.exp(total - np.max(total))
        return np.asarray(weights / np.sum(weights))

    @cached_property
    def posterior(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scales, shifts and how much each pair is believed, scales by shifts."""
        axes = [_SCALES, _SHIFTS]
        for _ in range(_ROUNDS):
            weights = self._beliefs(*axes)
            finer = [_finer(grid, weights.sum(axis=1 - axis)) for axis, grid in enumerate(axes)]
            if all(one is grid for one, grid in zip(finer, axes, strict=True)):
                break
            axes = finer
        return np.exp(axes[0]), axes[1], self._beliefs(*axes)

    @cached_property
    def _believed(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The pairs of scale and shift that are believed at all, and how much."""
        scales, shifts, believed = self.posterior
        scale, shift = (grid.ravel() for grid in np.meshgrid(scales, shifts, indexing="ij"))
        weights = believed.ravel()
        kept = weights > _UNLIKELY * float(np.max(weights))
        return scale[kept], shift[kept], weights[kept]

    def fields(self) -> dict[str, Any]:
        """What it says, as JSON's types."""
        names = ("ends", "counts", "shares", "errors", "recalibrated")
        return {name: getattr(self, name).tolist() for name in names}

    def to_frame(self, library: LibraryName | None = None) -> Any:
        """The curve as a data frame, a row for each cell."""
        low, high = np.append(-math.inf, self.ends), np.append(self.ends, math.inf)
        first, second = self.counts
        columns = {"score_from": low, "score_to": high, "first_class": first, "second_class": second}
        columns |= {"share": self.shares, "error": self.errors, "recalibrated": self.recalibrated}
        return FrameKind().in_library(library).frame(columns)

    def _summary(self) -> Summary:
        ends = [f"{end:g}" for end in self.ends]
        between = [f"{low} to {high}" for low, high in pairwise(ends)]
        cells = [f"below {ends[0]}", *between, f"{ends[-1]} or more"]
        both, shares = np.sum(self.counts, axis=0), np.clip(self.shares, 0.0, 1.0)
        seen = [
            f"{share:.2f} ± {2.0 * error:.2f}" if count > 2.0 * self.noise else "lost in the noise"
            for count, share, error in zip(both, shares, self.errors, strict=True)
        ]
        counted = [f"{max(count, 0.0):.0f}" for count in both]
        rows = list(zip(cells, counted, seen, [f"{one:.3f}" for one in self.recalibrated], strict=True))
        columns = ("score", "records, about", "share of the second class", "recalibrated to")
        note = (
            f"Counts have noise of standard deviation {self.noise:.3g}; it and sampling are in the ±. They "
            "are of the records that were fitted: with many columns for few records they flatter the model."
        )
        return Summary("Calibration curve (public)", rows, columns, [note], figures=True)


def _finer(grid: FloatArray, weights: FloatArray) -> FloatArray:
    """The grid, or one as long around the mean where beliefs are narrower than its steps."""
    step, mean = float(grid[1] - grid[0]), float(grid @ weights)
    deviation = math.sqrt(float(np.square(grid - mean) @ weights))
    if deviation >= step:
        return grid
    reach = max(_STEPS * step, _DEVIATIONS * deviation)
    return np.linspace(mean - reach, mean + reach, len(grid))


@dataclass(frozen=True, eq=False)
class CalibrationLine(Summarized):
    r"""How residuals of a number go with predictions, with noise, and the predictions that follow.

    A prediction :math:`p` becomes :math:`p + a + g(p - b)`, with the intercept :math:`b` and the posterior
    mean of :math:`(a, g)`. The published moments say :math:`\sum(r, qr) = M(a, gs) + e` of residuals
    :math:`r` and :math:`q = (p - b)/s`, with :math:`M = \sum(1, q)^\top(1, q)` and noise :math:`e` of
    covariance :math:`(\sigma_h/w)^2I + 0.06M`, in which :math:`M` is made positive. The prior is
    :math:`a \sim N(0, 0.015^2)`, :math:`g \sim N(0, 0.1^2)`, for an outcome between -1 and 1.

    Privacy
    -------
    Public: a function of what was published.
    """

    moments: FloatArray
    """The noisy sums of :math:`1, q, q^2, r, qr`, each over its own weight."""
    noise: float
    """The standard deviation of the noise before weights are taken out."""
    intercept: float
    reach: float
    """How far a prediction can be from the intercept, :math:`s`."""

    @cached_property
    def _posterior(self) -> tuple[FloatArray, FloatArray]:
        """The mean and the covariance of the shift and of the slope times the reach."""
        count, first, second, *residuals = self.moments.tolist()
        values, vectors = np.linalg.eigh(np.array([[count, first], [first, second]]))
        matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T
        prior = np.diag([_LINE_SHIFT**2, (_LINE_SLOPE * self.reach) ** 2])
        error = (self.noise / MOMENT_WEIGHTS[-1]) ** 2 * np.eye(2) + _RESIDUAL * matrix
        gain = np.linalg.solve(matrix @ prior @ matrix + error, matrix @ prior).T
        return gain @ residuals, prior - gain @ matrix @ prior

    @property
    def shift(self) -> float:
        """By what all predictions are raised, :math:`a`, for an outcome between -1 and 1."""
        return float(self._posterior[0][0])

    @property
    def slope(self) -> float:
        """By what share of it a prediction goes further from the intercept, :math:`g`."""
        return float(self._posterior[0][1]) / (self.reach or 1.0)

    @property
    def errors(self) -> FloatArray:
        """The standard errors of the shift and of the slope, by the noise and by sampling."""
        deviations = np.sqrt(np.maximum(np.diag(self._posterior[1]), 0.0))
        return np.asarray(deviations / [1.0, self.reach or 1.0])

    def corrected(self, scores: Any) -> Any:
        """Predictions with the shift and the slope, where they lie."""
        return scores + (self.shift + self.slope * (scores - self.intercept))

    def fields(self) -> dict[str, Any]:
        """What it says, as JSON's types."""
        return {"shift": self.shift, "slope": self.slope, "errors": self.errors.tolist()}

    def _summary(self) -> Summary:
        names = ("added to every prediction", "and for each unit from the intercept")
        found = zip(names, (self.shift, self.slope), self.errors.tolist(), strict=True)
        rows = [(name, f"{value:+.4f}", f"± {2.0 * error:.4f}") for name, value, error in found]
        note = (
            "For an outcome between -1 and 1, the middle of its bounds at 0. Sums of residuals with noise of "
            f"standard deviation {self.noise:.3g} say so; they are of the records that were fitted."
        )
        return Summary("Correction of predictions (public)", rows, ("", "by", "about"), [note], figures=True)


Calibration = CalibrationCurve | CalibrationLine


def calibration_of(release: Release) -> Calibration | None:
    """How the scores of a release are read, where numbers that recalibrate it were published."""
    numbers = release.recalibration
    if numbers is None:
        return None
    contributions = Contributions(release.coefficients, release.plan)
    if contributions.counts:
        return CalibrationCurve(numbers, contributions.noise)
    moments = numbers / MOMENT_WEIGHTS
    return CalibrationLine(moments, contributions.noise, contributions.intercept, contributions.reach)
