"""Losses of outcomes that are no classes: numbers, quantiles, and counts and amounts by their logarithms."""

import math
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from expost._common.namespaces import namespace_of
from expost._common.typing import FloatArray
from expost._common.validation import check_positive, parameter_error
from expost.losses.base import ADDED, DerivativeCurve, LabelSet, Loss
from expost.losses.binary import checked_gradient_cap, probabilities
from expost.losses.convex import check_scales
from expost.losses.records import Levels, take

# Linear predictors beyond this count as this far: their exponentials are beyond any outcome, and finite.
_FAR = 300.0
# The same for derivatives, whose squares may be infinite.
_FARTHEST = 550.0
# Shorter rows do not widen the pseudo-Huber loss further: it is half the squared error already.
_WIDEST = 16.0
SMALLEST_SHARE = 1e-6
"""The smallest threshold, as a share of the largest count, or of a mean."""
LARGEST_COUNT = 8.0
"""The largest count, in units of the typical one in which counts are fitted."""
LARGEST_AMOUNT = 1e15
"""No amount is more than this many typical ones."""


@dataclass(frozen=True)
class PseudoHuber(Loss):
    r"""A smooth robust regression loss whose slope never exceeds ``threshold`` (:math:`c`).

    .. math:: f(\eta; y) = c^2\left(\sqrt{1 + (r/c)^2} - 1\right), \quad r = \eta - y, \quad
              f' = r/\sqrt{1 + (r/c)^2}, \quad f'' = (1 + (r/c)^2)^{-3/2}

    Its slope is bounded, so that regression has a worst-case guarantee; with the squared loss it has none.

    With a ``gradient_cap`` :math:`C` rows of length :math:`C/c` or more have the threshold :math:`c`, and a
    shorter row has a larger one, :math:`C` over its length, up to 16 times
    (:class:`~expost.losses.records.Levels`).
    """

    threshold: float = 1.0
    gradient_cap: float | None = field(default=None, metadata=ADDED)
    name: ClassVar[str] = "pseudo_huber"
    in_any_namespace: ClassVar[bool] = True
    labels = LabelSet()
    """Every real number."""

    def __post_init__(self) -> None:
        check_positive("threshold", self.threshold)
        object.__setattr__(self, "gradient_cap", checked_gradient_cap(self.gradient_cap))

    def __str__(self) -> str:
        gradient = "" if self.gradient_cap is None else f", gradient_cap={self.gradient_cap:.6g}"
        return f"PseudoHuber(threshold={float(f'{self.threshold:.6g}')}{gradient})"

    @property
    def levels(self) -> Levels | None:
        """The lengths of rows that have thresholds of their own, where gradients have a cap."""
        most = self.gradient_cap
        return None if most is None else Levels.up_to(most / self.threshold, _WIDEST)

    def at_level(self, factor: float) -> "PseudoHuber":
        """The loss of rows whose threshold is so many times that of the longest rows."""
        return PseudoHuber(self.threshold * factor)

    def for_rows(self, rows: Any) -> Any:
        """The loss with the threshold that each of these rows has."""
        if self.levels is None:
            return self
        bound = copy(self)
        thresholds = take(self.threshold * self.levels.factors, self.levels.of(rows))
        object.__setattr__(bound, "threshold", thresholds)
        return bound

    @property
    def curve(self) -> DerivativeCurve:
        """``(1 - (m/threshold)^2)^(3/2)``; the label does not fix the sign."""
        threshold = self.threshold

        def curvature(slope: FloatArray) -> FloatArray:
            share = slope / threshold
            # (1 - s)(1 + s) keeps its digits near s = 1; a slope rounded above the limit counts as the limit.
            return np.maximum((1.0 - share) * (1.0 + share), 0.0) ** 1.5

        return DerivativeCurve(max_slope=threshold, curvature=curvature, peak=0.0, sign_fixed=False)

    def value(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        """Written as ``r² / (1 + sqrt(1 + (r/c)²))``, which does not cancel at small residuals."""
        residual = eta - y
        return residual * (residual / (1.0 + np.hypot(1.0, residual / self.threshold)))

    def derivatives(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``r / sqrt(1 + (r/c)²)`` and ``(1 + (r/c)²)^(-3/2)``."""
        # A residual beyond double precision has the limiting slope.
        with np.errstate(over="ignore", invalid="ignore"):
            xp, residual = namespace_of(eta), eta - y
            stretch = xp.hypot(xp.ones_like(residual), residual / self.threshold)
            slope = xp.where(xp.isinf(stretch), self.threshold * xp.sign(residual), residual / stretch)
        return slope, stretch**-3.0


@dataclass(frozen=True)
class SquaredLoss(Loss):
    r"""Half the squared error.

    .. math:: f(\eta; y) = (\eta - y)^2/2, \quad f' = \eta - y, \quad f'' = 1

    Its slope is unbounded, so no noise scale gives a worst-case guarantee, and the user must give ``sigma``
    and ``l2``. Exact losses after the fact still exist, and so do bounds on them.
    """

    name: ClassVar[str] = "squared"
    in_any_namespace: ClassVar[bool] = True
    labels = LabelSet()
    """Every real number."""
    curve = DerivativeCurve(max_slope=math.inf, curvature=np.ones_like, peak=0.0, sign_fixed=False)
    """Curvature one at every slope, and no largest slope."""

    def value(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        """``(eta - y)² / 2``."""
        return 0.5 * (eta - y) ** 2

    def derivatives(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the residual, and one."""
        residual = eta - y
        return residual, namespace_of(residual).ones_like(residual)


@dataclass(frozen=True)
class SmoothedPinball(Loss):
    r"""The loss of a quantile, with its corner rounded over a width ``scale`` (:math:`h`).

    .. math:: f(\eta; y) = h\log(1 + e^{r/h}) - tr, \quad r = \eta - y, \quad
              f' = p - t, \quad f'' = p(1 - p)/h, \quad p = 1/(1 + e^{-r/h})

    It tends to the pinball loss of level :math:`t` as ``scale`` falls to zero, whose minimiser is the
    :math:`t`-quantile (Koenker and Bassett 1978). With :math:`t' = \min(t, 1 - t)`

    .. math:: |f'| \le 1 - t', \qquad \kappa(m) = (t' + m)(1 - t' - m)/h,

    so that :math:`\kappa(m)/m` does not rise. The label does not fix the sign of the slope.

    Parameters
    ----------
    level
        :math:`t`, between 0 and 1: 0.5 for the median.
    scale
        :math:`h`, in units of the label.
    """

    level: float = 0.5
    scale: float = 0.2
    name: ClassVar[str] = "smoothed_pinball"
    in_any_namespace: ClassVar[bool] = True
    labels = LabelSet()
    """Every real number."""

    def __post_init__(self) -> None:
        check_positive("level", self.level, below=1.0, way_out="The 90% quantile is 0.9.")
        check_positive("scale", self.scale)

    @property
    def curve(self) -> DerivativeCurve:
        """A parabola, whose peak is where the probability is one half."""
        rare, scale = min(self.level, 1.0 - self.level), self.scale
        steepest = max(self.level, 1.0 - self.level)

        def curvature(slope: FloatArray) -> FloatArray:
            # A slope rounded above the limit counts as the limit.
            return (rare + slope) * np.maximum(steepest - slope, 0.0) / scale

        return DerivativeCurve(
            max_slope=steepest, curvature=curvature, peak=0.5 * (steepest - rare), sign_fixed=False
        )

    def value(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        """Split by the sign of the residual, so that nothing cancels."""
        residual = eta - y
        pull = np.where(residual > 0.0, 1.0 - self.level, -self.level) * residual
        return pull + self.scale * np.log1p(np.exp(-np.abs(residual) / self.scale))

    def derivatives(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``p - t``, as ``tanh(r/2h)/2 + (1/2 - t)``, and ``p (1 - p) / h``."""
        with np.errstate(over="ignore"):  # a residual beyond double precision has the limiting derivatives
            distance = (eta - y) / self.scale
        slope = 0.5 * namespace_of(eta).tanh(0.5 * distance) + (0.5 - self.level)
        return slope, probabilities(distance)[2] / self.scale


def _check_threshold(largest: float, threshold: float) -> None:
    """Raise ParameterError for a threshold so small that the loss is all corner."""
    check_scales(largest=largest, threshold=threshold)
    if threshold < SMALLEST_SHARE * largest:
        raise parameter_error("threshold", f"at least {SMALLEST_SHARE:g} of the largest label", threshold)


def _squashed(
    exponent: FloatArray, factor: FloatArray | float, centre: FloatArray | float, threshold: float
) -> tuple[FloatArray, FloatArray]:
    r""":math:`\psi(we^t - v)`, :math:`\psi(r) = r/\sqrt{1 + (r/c)^2}`, and its derivative in :math:`t`."""
    xp = namespace_of(exponent)
    power = factor * xp.exp(xp.clip(exponent, None, _FARTHEST))
    residual = power - centre
    stretch = xp.hypot(xp.ones_like(residual), residual / threshold)
    with np.errstate(over="ignore"):  # what is beyond double precision bends no more
        return residual / stretch, power / stretch / (stretch * stretch)


def _logarithmic_curve(largest: float, threshold: float) -> DerivativeCurve:
    r"""The curve of a squashed residual :math:`\psi(e^\eta - y)`, for labels up to the largest.

    .. math:: \kappa(m) = y_{\max}(1 - t^2)^{3/2} + m(1 - t^2), \qquad t = m/c

    Its peak is at :math:`t = \sin\varphi`, :math:`\cos(2\varphi + \arctan a) = 1/3\sqrt{1 + a^2}`,
    :math:`a = y_{\max}/c`; both terms over :math:`m` fall.
    """
    ratio = largest / threshold
    angle = 0.5 * (math.acos(1.0 / (3.0 * math.hypot(1.0, ratio))) - math.atan(ratio))

    def curvature(slope: FloatArray) -> FloatArray:
        share = slope / threshold
        # A slope rounded above the limit counts as the limit.
        left = np.maximum((1.0 - share) * (1.0 + share), 0.0)
        return np.asarray(largest * left**1.5 + slope * left)

    return DerivativeCurve(
        max_slope=threshold,
        curvature=curvature,
        peak=threshold * math.sin(angle),
        sign_fixed=False,
        # A linear predictor of one changes a mean by a factor of e.
        predictor_unit=1.0,
    )


@dataclass(frozen=True)
class BoundedPoisson(Loss):
    r"""The loss of a count with mean :math:`\mu = e^\eta`, whose residual pulls with at most ``threshold``.

    .. math:: f' = \psi(\mu - y), \quad f'' = \frac{\mu}{(1 + (\mu - y)^2/c^2)^{3/2}}, \quad
              \psi(r) = \frac{r}{\sqrt{1 + (r/c)^2}}

    The slope is that of the Poisson likelihood for small residuals, and never beyond :math:`\pm c`. It rises
    with :math:`\eta`, so the loss is convex. With :math:`b^2 = y^2 + c^2` and :math:`Q = (\mu - y)^2 + c^2`

    .. math:: f = c\,\mathrm{asinh}\frac{\mu - y}{c}
              + \frac{yc}{b}\left(\log(2b\sqrt Q - 2y\mu + 2b^2) - \eta\right).

    Estimates are not exactly those of the Poisson model: large counts count for less.

    Parameters
    ----------
    largest
        The largest count there may be, a public bound.
    threshold
        :math:`c`, in counts.
    """

    largest: float = LARGEST_COUNT
    threshold: float = 2.0
    name: ClassVar[str] = "bounded_poisson"
    in_any_namespace: ClassVar[bool] = True
    log_link: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_threshold(self.largest, self.threshold)

    @property
    def labels(self) -> LabelSet:
        """From 0 to the largest count."""
        return LabelSet(0.0, self.largest)

    @property
    def curve(self) -> DerivativeCurve:
        """The curvature of the largest count, which bounds that of the others."""
        return _logarithmic_curve(self.largest, self.threshold)

    def value(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        """The loss of each count."""
        return _logarithmic_value(eta, y, self.threshold)

    def derivatives(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the squashed residual, and its derivative."""
        return _squashed(eta, 1.0, y, self.threshold)


@dataclass(frozen=True)
class BoundedGamma(Loss):
    r"""The loss of an amount with mean :math:`\mu = e^\eta`, whose relative residual is squashed.

    .. math:: f' = \psi(1 - y/\mu), \quad f'' = \frac{y/\mu}{(1 + (1 - y/\mu)^2/c^2)^{3/2}}, \quad
              \psi(r) = \frac{r}{\sqrt{1 + (r/c)^2}}

    The slope is that of the Gamma likelihood for small residuals, and never beyond :math:`\pm c`. No bound on
    :math:`y` is needed: the curve is that of :class:`BoundedPoisson` for counts up to one. Of the value, what
    depends on :math:`y` alone is left out, so that it is finite at zero too: with :math:`w = y/\mu`,
    :math:`b^2 = 1 + c^2`

    .. math:: f = \frac cb\eta + c\,\mathrm{asinh}\frac{w - 1}{c}
              + \frac cb\log\left(2b\sqrt{(w - 1)^2 + c^2} - 2w + 2b^2\right).

    Parameters
    ----------
    threshold
        :math:`c`, a share of the mean.
    """

    threshold: float = 1.0
    name: ClassVar[str] = "bounded_gamma"
    in_any_namespace: ClassVar[bool] = True
    log_link: ClassVar[bool] = True
    labels = LabelSet(0.0, LARGEST_AMOUNT)
    """Zero, and positive numbers of every size that occurs."""

    def __post_init__(self) -> None:
        _check_threshold(1.0, self.threshold)

    @property
    def curve(self) -> DerivativeCurve:
        """That of counts up to one."""
        return _logarithmic_curve(1.0, self.threshold)

    def value(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        """The loss of each amount."""
        c, b = self.threshold, math.hypot(1.0, self.threshold)
        with np.errstate(divide="ignore"):  # the logarithm of an amount of zero
            place = np.log(y) - eta
        ratio = np.exp(np.minimum(place, _FAR))
        bent = c * np.arcsinh((ratio - 1.0) / c)
        bent += (c / b) * np.log(2.0 * b * np.hypot(ratio - 1.0, c) - 2.0 * ratio + 2.0 * b * b)
        return (c / b) * eta + bent + (c + c / b) * np.maximum(place - _FAR, 0.0)

    def derivatives(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the squashed residual, and its derivative."""
        slope, curvature = _squashed(-eta, y, 1.0, self.threshold)
        return -slope, curvature


def _logarithmic_value(eta: FloatArray, y: FloatArray, threshold: float) -> FloatArray:
    """The loss whose slope is the squashed residual of ``exp(eta)``, stable for means of every size."""
    b = np.hypot(y, threshold)
    small = np.exp(-np.clip(eta, -_FAR, None))  # 1/μ
    mean = np.exp(np.minimum(eta, _FAR))
    # (2b√Q − 2yμ + 2b²)/μ where μ is large; times μ where it is small. Where the last two terms are negative
    # together, multiplied out: b²Q − (yμ − b²)² = c²μ².
    root, rest = b * np.hypot(1.0 - y * small, threshold * small), b * b * small - y
    large = 2.0 * np.where(
        rest < 0.0, threshold * threshold / np.where(rest < 0.0, root - rest, 1.0), root + rest
    )
    below = np.minimum(mean, 1.0)
    little = 2.0 * b * np.hypot(below - y, threshold) - 2.0 * y * below + 2.0 * b * b
    logarithm = np.where(eta > 0.0, np.log(large), np.log(little) - eta)
    far = np.maximum(eta - _FAR, 0.0)
    value = threshold * (np.arcsinh((mean - y) / threshold) + far) + y * threshold / b * logarithm
    return np.asarray(value)
