"""Losses of two classes: the logistic loss, its slope capped if wanted, and the smoothed hinge."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from expost._common.namespaces import is_foreign, namespace_of
from expost._common.typing import FloatArray
from expost._common.validation import check_positive, parameter_error
from expost.losses.base import ADDED, DerivativeCurve, LabelSet, Loss
from expost.losses.records import Levels, take

SMALLEST_CAP = 1e-6
"""The smallest cap, and the smallest corner of a cap."""
LARGEST_CORNER = 1.0 - 2.0**-20
"""A sharper corner bends more than a million times as fast as the logistic loss."""
_USUAL_CORNER = 0.8
# This many widths beyond the corner the slope is the cap and the curvature zero, in doubles.
_FAR = 800.0


@dataclass(frozen=True, eq=False)
class Bend:
    """The capped logistic loss by its constants: numbers, or arrays with an entry for each row."""

    cap: Any
    steep: Any
    """The slope at the corner; infinite without a cap."""
    gap: Any
    """The cap less that slope."""
    turn: Any
    """How far on the wrong side the corner is."""
    rate: Any
    """How fast the curvature falls beyond it."""
    in_any_namespace: ClassVar[bool] = True

    @classmethod
    def of(cls, loss: "LogisticLoss") -> "Bend":
        """The constants of a loss; those without a cap are at no corner."""
        if loss.corner is None:
            return cls(1.0, math.inf, 0.0, math.inf, 1.0)
        steep = loss.corner_slope
        turn = float(np.log(steep / (1.0 - steep)))
        return cls(loss.cap, steep, loss.cap - steep, turn, loss.corner_rate)

    @property
    def corner_slope(self) -> Any:
        """As :attr:`LogisticLoss.corner_slope`, but for rows without a cap."""
        return self.steep

    def value(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        """As :meth:`LogisticLoss.value`."""
        inner, beyond, widths = self._parts(eta, y)
        return np.asarray(
            np.logaddexp(0.0, inner) + self.cap * beyond + self.gap / self.rate * np.expm1(-widths)
        )

    def derivatives(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As :meth:`LogisticLoss.derivatives`."""
        xp = namespace_of(eta)
        inner, _, widths = self._parts(eta, y)
        steep, _, curvature = probabilities(inner)
        steep -= self.gap * xp.expm1(-widths)
        return xp.where(y > 0.5, -steep, steep), curvature * xp.exp(-widths)

    def _parts(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """How far on the wrong side: up to the corner, beyond it, and beyond it in the corner's widths."""
        xp = namespace_of(eta)
        wrong = xp.where(y > 0.5, -eta, eta)
        inner = xp.clip(wrong, None, self.turn)
        beyond = wrong - inner
        return inner, beyond, self.rate * xp.clip(beyond, None, _FAR / self.rate)


@dataclass(frozen=True)
class LogisticLoss(Loss):
    r"""The negative log-likelihood of a Bernoulli label with logit ``eta``, its slope capped if wanted.

    .. math:: f(\eta; y) = \log(1 + e^\eta) - y\eta, \quad
              f' = p - y, \quad f'' = p(1 - p), \quad p = 1/(1 + e^{-\eta})

    With hard labels in {0, 1} the label fixes the sign of :math:`f'` and
    :math:`f'' = m(1 - m)` where :math:`m = |f'|`: a record is steep or curved, never both. With
    ``soft=True`` a label may be any probability in [0, 1]; then :math:`m \le \max(p, 1 - p)`, the
    curvature may be 1/4 up to :math:`m = 1/2`, and the label does not fix the sign.

    With a cap :math:`c < 1` no record pulls with more than :math:`c`. Write :math:`g = \pm\eta` for how far
    the prediction is on the wrong side, :math:`m_0 = \theta c` for the slope at the corner,
    :math:`g_0 = \log(m_0/(1 - m_0))`, :math:`\kappa_0 = m_0(1 - m_0)` and :math:`r = \kappa_0/(c - m_0)`.
    Up to :math:`g_0` the loss is the logistic one; beyond it, with :math:`t = g - g_0`,

    .. math:: F = -\log(1 - m_0) + ct - (c - m_0)(1 - e^{-rt})/r, \quad F' = c - (c - m_0)e^{-rt}, \quad
              F'' = \kappa_0 e^{-rt}, \quad \kappa(m) = \kappa_0\frac{c - m}{c - m_0}

    It is convex, twice continuously differentiable, :math:`\kappa(m)/m` does not rise, and
    :math:`|F'''| \le \max(1, r)F''`.

    Parameters
    ----------
    soft
        Whether labels are probabilities. The cap is for hard labels.
    cap
        The largest slope :math:`c`, between 1e-6 and 1; 1 for none.
    corner
        The share :math:`\theta` of the cap up to which the loss is the logistic one, between 1e-6 and
        :math:`1 - 2^{-20}`; by default 0.8, and None without a cap. :math:`m_0` is the product of the two,
        rounded to a double.
    gradient_cap
        The largest length :math:`C` of a gradient. Rows of length :math:`C/c` or more have the cap :math:`c`,
        and a shorter row has a larger one, :math:`C` over its length and at most 1, with the same corner
        (:class:`~expost.losses.records.Levels`): it pulls with its share. By default all rows have the same
        cap. Refused unless :math:`c(1 - \theta + \theta^2) \le \theta`: then a row of any length has at
        most the curvature of the longest at the same length of its gradient, and :attr:`curve` covers it
        (docs/mathematics.md, lemma 6.4).

    Examples
    --------
    >>> slope, _ = LogisticLoss(cap=0.6).derivatives(np.array([-2.0, 0.0, 2.0, 9.0]), np.zeros(4))
    >>> slope.round(3)
    array([0.119, 0.498, 0.598, 0.6  ])
    """

    soft: bool = False
    cap: float = field(default=1.0, metadata=ADDED)
    corner: float | None = field(default=None, metadata=ADDED)
    gradient_cap: float | None = field(default=None, metadata=ADDED)
    name: ClassVar[str] = "logistic"
    is_likelihood: ClassVar[bool] = True
    in_any_namespace: ClassVar[bool] = True

    def __post_init__(self) -> None:
        cap = _share("cap", self.cap, 1.0)
        corner = self.corner
        if cap < 1.0:
            if self.soft:
                raise parameter_error("cap", "1 with soft=True", cap, "Only hard labels can have a cap.")
            corner = _share("corner", _USUAL_CORNER if corner is None else corner, LARGEST_CORNER)
        elif corner is not None:
            raise parameter_error("corner", "None with cap=1", corner, "Give a cap below 1, or no corner.")
        object.__setattr__(self, "cap", cap)
        object.__setattr__(self, "corner", corner)
        object.__setattr__(self, "gradient_cap", checked_gradient_cap(self.gradient_cap))
        if self.gradient_cap is not None and not longest_rows_bend_most(cap, corner):
            wanted = "None where shorter rows could bend more than the longest"
            raise parameter_error("gradient_cap", wanted, self.gradient_cap, "Give a smaller cap.")

    def __str__(self) -> str:
        if self.corner is None:
            return f"LogisticLoss(soft={self.soft})"
        gradient = "" if self.gradient_cap is None else f", gradient_cap={self.gradient_cap:.6g}"
        return f"LogisticLoss(cap={self.cap:.6g}, corner={self.corner:.6g}{gradient})"

    @property
    def labels(self) -> LabelSet:
        """Zero and one, or everything between them for soft labels."""
        return LabelSet(0.0, 1.0, values=None if self.soft else (0.0, 1.0))

    @property
    def corner_slope(self) -> float:
        """The slope :math:`m_0` up to which the loss is the logistic one; 1 without a cap."""
        return self.cap * (1.0 if self.corner is None else self.corner)

    @property
    def corner_rate(self) -> float:
        """How fast the curvature falls beyond the corner, :math:`r`; zero without a cap."""
        steep = self.corner_slope
        return 0.0 if self.corner is None else steep * (1.0 - steep) / (self.cap - steep)

    @property
    def curve(self) -> DerivativeCurve:
        """``m(1 - m)``, a straight line beyond the corner; with soft labels constant up to one half."""
        soft, cap, steep, rate = self.soft, self.cap, self.corner_slope, self.corner_rate

        def curvature(slope: FloatArray) -> FloatArray:
            inner = np.clip(slope, 0.5 if soft else 0.0, steep)
            # A slope rounded above the cap counts as the cap.
            straight = rate * np.maximum(cap - slope, 0.0)
            return np.where(slope <= steep, inner * (1.0 - inner), straight)

        return DerivativeCurve(
            max_slope=cap,
            curvature=curvature,
            peak=min(0.5, steep),
            sign_fixed=not soft,
            predictor_unit=1.0,
        )

    @property
    def levels(self) -> Levels | None:
        """The lengths of rows that have caps of their own, where gradients have a cap."""
        most, cap = self.gradient_cap, self.cap
        return None if most is None else Levels.up_to(most / cap, 1.0 / cap)

    def at_level(self, factor: float) -> "LogisticLoss":
        """The loss of rows whose cap is so many times that of the longest rows."""
        cap = self.cap * factor
        return LogisticLoss(cap=cap, corner=self.corner) if cap < 1.0 else LogisticLoss()

    def for_rows(self, rows: Any) -> Any:
        """The loss with the cap that each of these rows has."""
        if self.levels is None:
            return self
        level = self.levels.of(rows)
        return Bend(*(take(constants, level) for constants in self._bends))

    @cached_property
    def _bends(self) -> FloatArray:
        """The constants of :class:`Bend`, those of each level in a column."""
        assert self.levels is not None
        bends = (Bend.of(self.at_level(factor)) for factor in self.levels.factors.tolist())
        return np.array([list(vars(bend).values()) for bend in bends]).T

    def value(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        """Split as ``(1 - y) log(1 + e^eta) + y log(1 + e^-eta)``, so that nothing cancels."""
        if self.corner is None:
            return (1.0 - y) * np.logaddexp(0.0, eta) + y * np.logaddexp(0.0, -eta)
        return Bend.of(self).value(eta, y)

    def derivatives(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``(1 - y) p - y (1 - p)`` and ``p (1 - p)``, both accurate even close to zero.

        Under a cap these are taken at the corner for whatever lies beyond it, and what the corner adds is
        added: sums and products of positive numbers, in which nothing cancels.
        """
        if self.corner is None:
            p, q, curvature = probabilities(eta)
            return (1.0 - y) * p - y * q, curvature
        return Bend.of(self).derivatives(eta, y)


def probabilities(eta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """``p``, ``1 - p`` and their product, the small one from its own exponential."""
    xp = namespace_of(eta)
    decay = xp.exp(-xp.abs(eta))
    large = 1.0 / (1.0 + decay)
    small = decay * large
    positive = eta >= 0.0
    return xp.where(positive, large, small), xp.where(positive, small, large), large * small


def longest_rows_bend_most(cap: float, corner: float | None) -> bool:
    r"""Whether the longest rows have the largest curvature at every length of a gradient.

    .. math:: c(1 - \theta + \theta^2) \le \theta
    """
    return corner is not None and cap * (1.0 - corner + corner**2) <= corner


def checked_gradient_cap(gradient_cap: Any) -> float | None:
    """The largest length of a gradient, or None; ParameterError where it is neither."""
    return None if gradient_cap is None else check_positive("gradient_cap", gradient_cap)


def _share(name: str, value: Any, most: float) -> float:
    """A number between the smallest cap and ``most``, or ParameterError."""
    accepted = isinstance(value, Real) and not isinstance(value, bool)
    if not accepted or not SMALLEST_CAP <= value <= most:
        raise parameter_error(name, f"a number between {SMALLEST_CAP:g} and {most:.7g}", value)
    return float(value)


@dataclass(frozen=True)
class SmoothedHinge(Loss):
    r"""The hinge loss with its corner rounded over a width ``scale`` (:math:`a`).

    .. math:: f(\eta; y) = a \log(1 + e^t), \quad t = (1 - y\eta)/a, \quad
              f' = -y\,p, \quad f'' = p(1 - p)/a, \quad p = 1/(1 + e^{-t})

    It tends to ``max(0, 1 - y eta)`` as ``scale`` falls to zero, while its curvature, and with it the
    regularisation that privacy needs, grows as ``1 / (4 scale)``.
    """

    scale: float = 0.5
    name: ClassVar[str] = "smoothed_hinge"
    in_any_namespace: ClassVar[bool] = True
    labels = LabelSet(-1.0, 1.0, values=(-1.0, 1.0))
    """Minus one and one."""

    def __post_init__(self) -> None:
        check_positive("scale", self.scale)

    @property
    def curve(self) -> DerivativeCurve:
        """``m(1 - m) / scale``; the label fixes the sign."""
        scale = self.scale
        return DerivativeCurve(
            max_slope=1.0, curvature=lambda slope: slope * (1.0 - slope) / scale, peak=0.5, sign_fixed=True
        )

    def value(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        """``scale * log(1 + e^t)``."""
        return self.scale * np.logaddexp(0.0, (1.0 - y * eta) / self.scale)

    def derivatives(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``-y p`` and ``p (1 - p) / scale``."""
        with np.errstate(over="ignore"):  # a margin beyond double precision has the limiting derivatives
            t = (1.0 - y * eta) / self.scale
        p, q = probabilities(t)[:2] if is_foreign(t) else (expit(t), expit(-t))
        return -y * p, p * q / self.scale
