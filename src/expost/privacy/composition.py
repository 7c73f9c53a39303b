"""What several publications of one table cost together, by the law of their joint privacy loss."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from expost._common.summary import Summarized, Summary
from expost._common.typing import FloatArray
from expost._common.validation import check_positive, missing_extra_error, parameter_error
from expost.privacy import renyi
from expost.privacy.profile_curve import LAST_EPSILON, AnyPlan, Knots, ProfileCurve, chord, curve_of

# What each convolution may cut off its tails. It counts as the probability of an unbounded loss. The tails of
# discrete noise, of which Rényi divergences know nothing, are far lighter.
_TAIL = 1e-16
# One rounding of a double, and how many of them a level of a fast Fourier transform may cost.
_UNIT = 2.0**-53
_PER_LEVEL = 8.0


def accountant() -> Any:
    """Google's privacy loss distributions, or MissingExtraError without the extra ``ledger``."""
    try:
        from dp_accounting.pld import pld_pmf
    except ImportError:
        raise missing_extra_error("composing publications", "dp-accounting", "ledger") from None
    return pld_pmf


@dataclass(frozen=True)
class JointLoss:
    """The law of the joint privacy loss in one direction, and what its computation may be wrong by.

    With it the sums of Rényi divergences at the orders that all publications have: the smaller bound counts.
    """

    law: Any
    error: float
    divergences: renyi.Orders

    @classmethod
    def of(cls, curves: Mapping[ProfileCurve, int], step: float) -> Self:
        """The law of the sum of losses when a record is added, each curve as often as it says."""
        pld_pmf = accountant()
        law, error, smallest = None, 0.0, 1.0
        for curve, count in curves.items():
            masses, rounding = grid_masses(curve, step)
            reach = len(masses) // 2
            part = pld_pmf.create_pmf(
                dict(zip(range(-reach, reach + 1), masses.tolist(), strict=True)),
                step,
                float(chord(curve.adding, math.inf)),
                True,
            )
            norm = float(np.linalg.norm(masses))
            if count > 1:
                part = part.to_dense_pmf().self_compose(count, _TAIL)
            error += count * rounding + _fft_error(part.size + 2 * reach + 1, count + 1, norm)
            law = part if law is None else pld_pmf.compose_pmfs(law, part, _TAIL)
            smallest = min(smallest, norm)
            error += _fft_error(law.size + part.size, 3, smallest)
        return cls(law, error, summed_orders(curves))

    def delta(self, epsilon: float) -> float:
        """An upper bound on delta in this direction."""
        convolved = float(self.law.get_delta_for_epsilon(epsilon)) + self.error
        if not self.divergences or epsilon > LAST_EPSILON:
            return convolved
        return min(convolved, float(renyi.delta(*self._orders, np.asarray(epsilon))) + _TAIL)

    def epsilon(self, delta: float) -> float:
        """About the smallest epsilon with this delta in this direction; infinite where there is none."""
        left = delta - self.error
        convolved = float(self.law.get_epsilon_for_delta(left)) if left > 0.0 else math.inf
        if not self.divergences or delta <= 2.0 * _TAIL:
            return convolved
        found = float(renyi.epsilons(*self._orders, delta - _TAIL).min())
        return min(convolved, found) if found <= LAST_EPSILON else convolved

    @property
    def _orders(self) -> tuple[FloatArray, FloatArray]:
        return renyi.columns(self.divergences)


def summed_orders(curves: Mapping[ProfileCurve, int]) -> renyi.Orders:
    """The Rényi divergences of all publications together for an added record: at each order they add up."""
    every = [(dict(curve.adding_orders), count) for curve, count in curves.items()]
    shared = set.intersection(*(set(one) for one, _ in every))
    return tuple((number, sum(count * one[number] for one, count in every)) for number in sorted(shared))


def grid_masses(curve: ProfileCurve, step: float) -> tuple[FloatArray, float]:
    """The masses of the privacy loss on the grid, from the lowest up, and what their rounding may cost.

    What the two directions leave is at 0 (docs/mathematics.md, section 13, "From curves to a composition").
    """
    places = np.arange(1, math.ceil(curve.last / step) + 1)
    above = _tail_masses(curve.adding, step, len(places))
    mirrored = np.exp(-step * places) * _tail_masses(curve.removing, step, len(places))
    middle = max(1.0 - float(chord(curve.adding, math.inf)) - float(np.sum(above) + np.sum(mirrored)), 0.0)
    values = np.sum(chord(curve.adding, step * places)) + np.sum(chord(curve.removing, step * places))
    rounding = 8.0 * _UNIT * (float(values) / math.expm1(step) + len(places))
    return np.concatenate([mirrored[::-1], [middle], above]), rounding


def _tail_masses(knots: Knots, step: float, count: int) -> FloatArray:
    falls = np.maximum(-np.diff(chord(knots, step * np.arange(count + 1))), 0.0)
    masses = falls / -math.expm1(-step)
    masses[:-1] -= falls[1:] / math.expm1(step)
    return np.maximum(masses, 0.0)


def _fft_error(size: int, transforms: int, norm: float) -> float:
    """How much of delta a convolution by Fourier transforms may lose (section 13)."""
    length = 2.0 * size
    return transforms * _PER_LEVEL * _UNIT * math.log2(length) * math.sqrt(length) * norm


# The grid's step, in standard deviations of the average plan's privacy loss.
_STEP = 0.05


@dataclass(frozen=True)
class Composition(Summarized):
    r"""The certified privacy profile of several publications on one table.

    Made by :func:`expost.compose`. Frozen, comparable, printable. Neighbours differ by adding or removing one
    record of the table, or one person with all of hers, in all publications at once.

    Attributes
    ----------
    curves
        The certified profile of each publication.
    unit
        What neighbours differ by, ``"row"`` or ``"person"``: that of all plans.

    Privacy
    -------
    A function of public parameters only.
    """

    curves: tuple[ProfileCurve, ...]
    unit: str = "row"

    def __len__(self) -> int:
        return len(self.curves)

    def delta_at(self, epsilon: float) -> float:
        r"""A certified upper bound on :math:`\delta(\epsilon)` of all publications together. Public.

        Where it is 1, there is no guarantee.
        """
        at = check_positive("epsilon", epsilon) if epsilon != 0 else 0.0
        if len(self) <= 1 or not self._bounded:
            return max((float(curve.delta(at)) for curve in self.curves), default=0.0)
        return min(max(loss.delta(at) for loss in self._losses), 1.0)

    def epsilon_at(self, delta: float) -> float:
        """The smallest ε that is certified at ``delta``, to about 1e-9; infinite where none is. Public.

        Several publications are resolved down to a delta of about 1e-11.
        """
        target = check_positive("delta", delta, below=1.0)
        if len(self) <= 1 or not self._bounded:
            return max((curve.epsilon(target) for curve in self.curves), default=0.0)
        found = max(loss.epsilon(target) for loss in self._losses)
        step = 1e-12
        while math.isfinite(found) and self.delta_at(found) > target:
            found += step * max(found, 1.0)  # only by rounding
            step *= 2.0
        return found

    @property
    def _bounded(self) -> bool:
        """Whether every publication has a guarantee."""
        return all(curve.delta(math.inf) < 1.0 for curve in self.curves)

    @cached_property
    def _losses(self) -> tuple[JointLoss, JointLoss]:
        """The privacy loss when a record is added, and when it is removed."""
        counted = Counter(self.curves)
        spread = math.sqrt(sum(count * curve.variance for curve, count in counted.items()) / len(self))
        step = _STEP * (spread or 1.0)  # losses that are all 0 or unbounded fit every grid
        backwards = {one.backwards: count for one, count in counted.items()}
        return JointLoss.of(counted, step), JointLoss.of(backwards, step)

    def _summary(self) -> Summary:
        rows = [(f"{delta:g}", f"{self.epsilon_at(delta):.4g}") for delta in (1e-5, 1e-6, 1e-7, 1e-8)]
        title = f"Composition of {len(self)} publication{'s' * (len(self) != 1)} (public)"
        notes = () if self.unit == "row" else ("for all rows of a record or person together",)
        return Summary(title, rows, ("δ", "ε of all together"), notes, figures=True)

    def __repr__(self) -> str:
        return f"<Composition of {len(self)}>"


def compose(plans: Iterable[AnyPlan]) -> Composition:
    r"""The certified joint profile of several publications on one table.

    With :math:`P_i, Q_i` the pair that dominates the neighbours of publication :math:`i`,

    .. math:: \delta(\epsilon) = \max_{\pm}\, \mathbb{E}\Bigl(1 - e^{\epsilon - \sum_i L_i}\Bigr)_+, \qquad
              L_i = \log\frac{dP_i}{dQ_i} \text{ under } P_i

    for records that are added, and the same with :math:`P_i` and :math:`Q_i` exchanged for records that are
    removed (Zhu, Dong and Wang, AISTATS 2022). Every value is on the private side: the certificate of each
    plan is read at finitely many epsilons, chords between them lie above the profile, what is cut off the
    tails counts as an unbounded loss, and the rounding of the convolution is added to delta. In each
    direction the smaller of this and of what the sums of the plans' Rényi divergences promise counts
    (docs/mathematics.md, section 17).

    Assumes that all publications are of one table, or of tables in which a person has one and the same
    record, or in which rows belong to the same people if the plans are for people; plans of two units are
    refused. The plans may not depend on what was published before: their budgets, noise scales and number
    are fixed in advance, or at least not chosen from published values; for those there are adaptive accounts
    (:meth:`expost.Ledger.account`). What else is chosen from them, such as the features of the next model,
    may depend on them. Needs the extra ``ledger``.

    Parameters
    ----------
    plans
        Plans from :func:`expost.calibrate` or :func:`expost.calibrate_convex`, of any losses and budgets; a
        fitted model's is ``plan_``, a publication's ``release.plan``. Or those of private choices,
        :class:`expost.ChoicePlan`.

    Privacy
    -------
    Public in, public out.

    Examples
    --------
    >>> import expost
    >>> plan = expost.calibrate(loss="logistic", epsilon=0.5, delta=1e-7)
    >>> ten = expost.compose([plan] * 10)
    >>> round(ten.epsilon_at(1e-6), 2)  # adding up: 5
    1.54
    """
    given = [plans] if isinstance(plans, AnyPlan) else list(plans)
    for plan in given:
        if not isinstance(plan, AnyPlan):
            raise parameter_error("plans", "plans of `expost.calibrate` or `plan_`", type(plan).__name__)
    units = {plan.unit for plan in given}
    if len(units) > 1:
        way_out = "What is promised to a row is not promised to a person who has several."
        raise parameter_error("plans", "plans of one unit", "plans for rows and for people", way_out)
    if len(given) > 1:
        accountant()
    return Composition(tuple(curve_of(plan) for plan in given), *units)
