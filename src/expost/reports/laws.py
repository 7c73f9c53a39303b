"""The laws of the noise along a record, and how far printed coefficients are from the exact minimiser.

The noise along a gradient is at most a *steepness* of the record, which may depend on the noise in any way,
times a variable of a law that does not (docs/mathematics.md, section 11, "Inner product").
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaincc, gammainccinv, gammaln, ndtr, ndtri, xlogy

from expost._common.typing import FloatArray
from expost.fitting.certified.slopes import third_order
from expost.fitting.release import Release
from expost.losses import RecordLoss
from expost.losses.persons import STRETCH

# The noise of the own class, beyond which nothing is left of any tail; half a density is integrated.
_OWN = np.arange(0.0, 40.0, 0.05)
_DENSITY = 0.1 * np.exp(-0.5 * _OWN**2) / math.sqrt(2.0 * math.pi)
_DENSITY[0] *= 0.5


# Of the integral over the noise across a person's direction.
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(200)
_ANGLES, _ANGLE_WEIGHTS = 0.25 * math.pi * (_NODES + 1.0), 0.25 * math.pi * _NODE_WEIGHTS


@dataclass(frozen=True)
class Chi:
    """The length of ``freedom`` standard normals: with the length of the gradient, for any loss."""

    freedom: int

    def tail(self, at: FloatArray) -> FloatArray:
        """The probability of a larger value than each of ``at``."""
        return np.asarray(gammaincc(0.5 * self.freedom, 0.5 * np.square(at)), dtype=float)

    def quantile(self, failure: float) -> float:
        """What is exceeded with probability ``failure``."""
        return chi_quantile(self.freedom, failure)


@dataclass(frozen=True)
class Spread:
    r""":math:`\max_{j\ne y}|W_j - W_y|/\sqrt2` of normal noise: for softmax, with :math:`\sqrt2q`.

    Two classes have the law of one normal (docs/mathematics.md, section 11, "Inner product").
    """

    classes: int

    def tail(self, at: FloatArray) -> FloatArray:
        """Tails by the trapezoidal rule, which converges exponentially for such an integrand."""
        t = math.sqrt(2.0) * np.asarray(at, dtype=float)[..., None]
        outside = ndtr(-(t + _OWN)) + ndtr(_OWN - t)  # of one other class
        with np.errstate(divide="ignore"):
            missed = -np.expm1((self.classes - 1) * np.log1p(-np.minimum(outside, 1.0)))
        return np.asarray(missed @ _DENSITY)

    def quantile(self, failure: float) -> float:
        """What is exceeded with probability ``failure``."""
        return _spread_quantile(self, failure)


@dataclass(frozen=True)
class Across:
    r""":math:`\sqrt{N_1^2 + \chi^2/c^2}`, :math:`\chi` the length of ``freedom`` - 1 further normals.

    What the noise reaches along a gradient in a space of ``freedom`` dimensions that was fixed in advance,
    per unit of a person's steepness (docs/mathematics.md, theorem 15.2).
    """

    freedom: int
    stretch: float = STRETCH

    def tail(self, at: FloatArray) -> FloatArray:
        """By an integral over the other normals, up to where they alone reach so far."""
        t = np.asarray(at, dtype=float)[..., None]
        others = 0.5 * (self.freedom - 1)
        if others == 0.0:
            return np.asarray(2.0 * ndtr(-t[..., 0]))
        # Their square is (ct sin a)²: the integrand is smooth in the angle.
        half = 0.5 * (self.stretch * t * np.sin(_ANGLES)) ** 2
        density = np.exp(xlogy(others - 1.0, half) - half - gammaln(others))
        slope = (self.stretch * t) ** 2 * np.sin(_ANGLES) * np.cos(_ANGLES)
        inside = 2.0 * density * slope * ndtr(-t * np.cos(_ANGLES))
        return np.asarray(inside @ _ANGLE_WEIGHTS + gammaincc(others, 0.5 * (self.stretch * t[..., 0]) ** 2))

    def quantile(self, failure: float) -> float:
        """What is exceeded with probability ``failure``."""
        return two_sided(failure) if self.freedom == 1 else _across_quantile(self, failure)


@cache
def _across_quantile(law: Across, failure: float) -> float:
    def excess(at: float) -> float:
        return math.log(max(float(law.tail(np.array(at))), 1e-320)) - math.log(failure)

    # Between one normal and all of them at full length.
    high = chi_quantile(law.freedom, failure) + 1e-9
    return float(brentq(excess, two_sided(failure), high, xtol=1e-13, rtol=1e-14))


@cache
def _spread_quantile(law: Spread, failure: float) -> float:
    def excess(at: float) -> float:
        return math.log(max(float(law.tail(np.array(at))), 1e-320)) - math.log(failure)

    # Between one other class and a union over all of them.
    low, high = 0.0, two_sided(failure / (law.classes - 1)) + 1e-3
    return float(brentq(excess, low, high, xtol=1e-13, rtol=1e-14))


# Beyond this the exponential moment of a law is bounded in closed form: its tail is below all doubles there.
_STEEPEST = 20.0
# Panels of the integral over a tail, each one standard deviation wide.
_PANEL, _PANEL_WEIGHTS = np.polynomial.legendre.leggauss(24)


@cache
def conditional_quantile(law: "Chi | Spread | Across", failure: float, largest: float) -> float:
    r"""What the noise reaches on average given what was published, but for a probability of ``failure``.

    .. math:: \zeta = \frac{1}{a_1}\log\mathrm{CVaR}_{1 - \rho}\bigl(e^{a_1Q}\bigr)
              = q + \frac{1}{a_1}\log\Bigl(1 + \frac{a_1}{\rho}\int_0^\infty e^{a_1u}P(Q > q + u)\,du\Bigr)

    for a variable :math:`Q \ge 0` of the law with the quantile :math:`q` of :math:`1 - \rho`. At corners the
    noise is not a function of what was published, and a quantile of it would not do (docs/mathematics.md,
    theorem 19.4). ``largest`` is :math:`a_1`, at least every multiple of the noise that a record can have.
    """
    # A length of k normals, at most: beyond the root of k its tail is below that of a normal, and so are its
    # exponential moments.
    quantile, root = law.quantile(failure), math.sqrt(getattr(law, "freedom", 1))
    if largest > _STEEPEST:
        return root + 0.5 * largest - math.log(failure) / largest
    panels = math.ceil(max(largest + root - quantile, 0.0) + 14.0)
    at = (np.arange(panels)[:, None] + 0.5 * (_PANEL + 1.0)).ravel()
    weights = np.tile(0.5 * _PANEL_WEIGHTS, panels)
    with np.errstate(divide="ignore"):  # where the tail is zero in doubles
        mean = float(weights @ np.exp(largest * at + np.log(law.tail(quantile + at)))) / failure
    return quantile + math.log1p(largest * mean) / largest


NoiseLaw: TypeAlias = Chi | Spread | Across
NORMAL = Chi(1)
"""The size of one standard normal: for one linear predictor."""


def noise_law(loss: RecordLoss) -> NoiseLaw:
    """The law that goes with the steepness of a record fixed in advance."""
    return Chi(loss.curve.outputs) if loss.noise_classes is None else Spread(loss.noise_classes)


def person_law(loss: RecordLoss, rows: int, dimension: int) -> Across:
    """The law that goes with the steepness of a person of so many different rows, fixed in advance."""
    outputs = loss.curve.outputs if loss.noise_classes is None else loss.outputs
    return Across(min(rows * outputs, dimension))


def every_quantile(dimension: int, outputs: int, failure: float) -> float:
    """The quantile for every record at once with several linear predictors (section 11, "Inner product")."""
    columns = dimension // outputs
    singular = math.sqrt(columns) + math.sqrt(outputs) + math.sqrt(-2.0 * math.log(failure))
    return min(singular, chi_quantile(dimension, failure))


def two_sided(failure: float) -> float:
    """The normal quantile that a standard normal exceeds in size with probability ``failure``."""
    return float(-ndtri(0.5 * failure))


def chi_quantile(freedom: int, failure: float) -> float:
    """The quantile that a chi variable exceeds with probability ``failure``."""
    if freedom == 1:
        return two_sided(failure)
    if freedom == 2:
        return math.sqrt(-2.0 * math.log(failure))
    return math.sqrt(2.0 * float(gammainccinv(0.5 * freedom, failure)))


SHARE = 2.0**-10
"""The part of a failure probability that pays for the output's noise."""
# What else separates the two points, in standard deviations of that noise: the solver's radius, the rounding
# to the grid, and the change of the Hessian along the way.
_REST = 2.0**-10


@dataclass(frozen=True)
class Drift:
    """What a report adds to its terms because printed coefficients are not the exact minimiser.

    ``tilt`` is the change of the gradient, in units of the objective's noise, per standard deviation of the
    output's noise; ``curvature`` the relative one of a Hessian; ``slope`` that of the gradient of all that
    changes, in units of the objective's noise (docs/mathematics.md, section 10, "Reading").

    Privacy
    -------
    Public: computed from the plan, and with corners from how many coefficients are at a kink.
    """

    tilt: float = 0.0
    curvature: float = 0.0
    slope: float = 0.0

    @classmethod
    def of(cls, release: Release, weight: int = 1) -> "Drift":
        """The drift where rows of this weight change; none where numbers are taken to be real."""
        plan, dimension = release.plan, len(release.coefficients)
        if plan.precision is None:
            return cls()
        noise, curvature = plan.precision.output_noise, plan.curve.max_curvature * plan.radius**2
        # Longer output noise has a probability below 1e-15, far below every share of a failure. At corners it
        # is its probability given what was published that counts, which may be many times as large.
        longer = 1e-15 if release.corners is None else 1e-40
        distance = noise * (chi_quantile(dimension, longer) + 1.0)
        if release.corners is not None:
            at_kinks = int(np.sum(release.corners.active(release.coefficients)))
            distance += plan.precision.window * math.sqrt(at_kinks)
        change = (third_order(plan.loss) or 0.0) * plan.radius * distance
        largest = plan.l2 + curvature * plan.precision.rows_at_most
        return cls(
            tilt=noise * largest / plan.sigma,
            # Twice a small change covers its exponential, and a lowered eigenvalue needs that much.
            curvature=max(2.0 * change, math.expm1(min(change, 700.0))),
            slope=weight * curvature * distance / plan.sigma,
        )

    def widened(self, quantile: float, tail: float) -> float:
        """A quantile of the objective's noise, widened by ``tail`` standard deviations of the output's."""
        return quantile + self.tilt * (tail + _REST)


NO_DRIFT = Drift()
"""For numbers that are taken to be real."""
