"""A certified profile as a curve: its values at finitely many epsilons, and chords between them.

A curve is what a composition reads of a plan and what a ledger keeps of it: numbers only.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from expost._common.typing import FloatArray
from expost._common.validation import parameter_error
from expost.privacy import gaussian, renyi
from expost.privacy.choices import ChoicePlan
from expost.privacy.plan import Plan
from expost.privacy.renyi import NUMBERS, Orders

# The distance of the first two knots in standard deviations of the privacy loss, and how much the distance
# grows with each of them: compositions read the middle closely, and the tails only roughly.
_STEP, _GROWTH = 0.1, 0.3
# From here on what is left of delta is not resolved: it counts as the probability of an unbounded loss.
_LAST_DELTA = 1e-17
# exp(epsilon) is a double up to here, and a curve with more knots than this is cut.
LAST_EPSILON, _MOST_KNOTS = 700.0, 1000
# How exactly a value is asked for, as a share of it.
_RTOL = 1e-3
# What the rounding of a chord may take away, as a share of its value.
_ROUNDING = 1e-12
# What another machine's last digits may take from the convexity of three knots in a line, likewise.
_STRAIGHT = 1e-6
# What it may take from the agreement of a knot with the divergences, likewise.
_AGREEING = 0.99

Knots: TypeAlias = tuple[tuple[float, float], ...]
"""Pairs of an epsilon and a bound on delta there."""

AnyPlan: TypeAlias = Plan | ChoicePlan
"""What has a certified profile before any data is touched."""


def _check_knots(name: str, knots: Any) -> None:
    epsilons, deltas = np.array(knots, dtype=np.float64).reshape(-1, 2).T
    rising = len(epsilons) and epsilons[0] == 0.0 and np.all(np.diff(epsilons) > 0.0)
    falling = np.all((deltas >= 0.0) & (deltas <= 1.0)) and np.all(np.diff(deltas) < 0.0)
    if not (rising and falling and epsilons[-1] <= LAST_EPSILON):
        raise parameter_error(name, "pairs of rising epsilons from 0 and falling deltas", "others")
    slopes = np.diff(deltas) / np.diff(np.expm1(epsilons))
    if np.any(slopes[1:] < slopes[:-1] * (1.0 + _STRAIGHT)):
        raise parameter_error(name, "convex in exp(epsilon)", "another curve")


@dataclass(frozen=True)
class ProfileCurve:
    """Upper bounds on the two profiles of a publication, for a record that is added and one that is removed.

    At rising epsilons from 0, where they agree; convex in exp(epsilon), so that they are the profile of a
    pair of distributions (docs/mathematics.md, section 13). Beyond the last epsilon the last delta holds.
    With them bounds on its Rényi divergences, at the orders that have one (section 17).
    """

    adding: Knots
    removing: Knots
    adding_orders: Orders = ()
    removing_orders: Orders = ()

    def __post_init__(self) -> None:
        for name in ("adding", "removing"):
            _check_knots(name, getattr(self, name))
            orders = getattr(self, f"{name}_orders")
            known = set(NUMBERS).issuperset(number for number, _ in orders)
            if not known or not all(0.0 <= divergence < math.inf for _, divergence in orders):
                raise parameter_error(f"{name}_orders", "numbers of orders and divergences", "others")
        if self.adding[0] != self.removing[0]:
            raise parameter_error("removing", "a curve that begins where `adding` does", self.removing[0])

    @classmethod
    def of(cls, plan: AnyPlan) -> Self:
        """The curve of a plan, from its certificate; one without a certificate may lose everything."""
        if isinstance(plan, ChoicePlan):
            return cls._convex(*plan.knots)
        profile = plan.profile
        if profile is None or math.isinf(plan.epsilon):
            return cls(((0.0, 1.0),), ((0.0, 1.0),))
        deviation = 1.0 / gaussian.sigma(plan.epsilon, plan.delta)
        epsilons, deltas = [0.0], [profile.first.directed(0.0, rtol=_RTOL)]
        while max(deltas[-1]) > _LAST_DELTA and epsilons[-1] < LAST_EPSILON and len(deltas) < _MOST_KNOTS:
            step = _STEP * (deviation + _GROWTH * epsilons[-1])
            at = min(epsilons[-1] + step, LAST_EPSILON)
            # The promise is a knot of its own: if it is true, a plan alone costs no more than it says.
            if epsilons[-1] < plan.epsilon < at + 0.5 * step:
                at = min(plan.epsilon, LAST_EPSILON)
            epsilons.append(at)
            deltas.append(profile.first.directed(at, rtol=_RTOL))
        places = np.array(epsilons)
        found = profile.sharpened(places, np.array(deltas), rtol=_RTOL)
        promise = places == plan.epsilon
        if np.any(found[promise] > plan.delta) and profile.certifies(plan.epsilon, plan.delta):
            found[promise] = np.minimum(found[promise], plan.delta)
        return replace(
            cls._convex(places, *found.T),
            **dict(zip(("adding_orders", "removing_orders"), profile.kept(LAST_EPSILON), strict=True)),
        )

    @classmethod
    def _convex(cls, epsilons: FloatArray, adding: FloatArray, removing: FloatArray) -> Self:
        """The largest convex function below all values (section 13, "From the certificate to a curve")."""
        above, below = np.expm1(epsilons)[1:, None], -np.expm1(-epsilons)[1:]
        chords = below * adding[1:, None] + above * (below + (1.0 - below) * removing[1:])
        first = min(adding[0], removing[0], np.min(chords / (above + below), initial=1.0))
        return cls(_hull(epsilons, adding, float(first)), _hull(epsilons, removing, float(first)))

    def orders_agree(self, epsilon: float) -> bool:
        """Whether no direction's divergences allow less at the knot after an epsilon than its curve says.

        No curve of a plan is above what its divergences allow at a knot; it is the smaller of the two there.
        """
        for knots, orders in ((self.adding, self.adding_orders), (self.removing, self.removing_orders)):
            at, delta = next((knot for knot in knots if knot[0] >= epsilon), knots[-1])
            if orders and float(renyi.delta(*renyi.columns(orders), np.asarray(at))) < _AGREEING * delta:
                return False
        return True

    @property
    def backwards(self) -> Self:
        """The curve of the two directions exchanged."""
        return type(self)(self.removing, self.adding, self.removing_orders, self.adding_orders)

    @property
    def last(self) -> float:
        """The largest epsilon at which there is a knot."""
        return max(self.adding[-1][0], self.removing[-1][0])

    @property
    def variance(self) -> float:
        """About the variance of the privacy loss: a Gaussian one's bound ends near 8.5 deviations."""
        return (math.sqrt(8.5**2 + 2.0 * self.last) - 8.5) ** 2

    def delta(self, epsilon: ArrayLike) -> FloatArray:
        """The bound for both directions at each epsilon, at least 0."""
        return np.maximum(chord(self.adding, epsilon), chord(self.removing, epsilon))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at which the bound is at most ``delta``; infinite where it is nowhere."""
        return max(_inverse(self.adding, delta), _inverse(self.removing, delta))


def chord(knots: Knots, epsilon: ArrayLike) -> FloatArray:
    r"""A bound at each epsilon, at least 0: the chord in :math:`e^\epsilon` between the nearest knots."""
    at = np.asarray(epsilon, dtype=np.float64)
    epsilons, deltas = np.array(knots).T
    right = np.searchsorted(epsilons, at, side="left")
    at_knot = epsilons[np.minimum(right, len(knots) - 1)] == at
    left, right = np.maximum(right - 1, 0), np.minimum(right, len(knots) - 1)
    with np.errstate(invalid="ignore"):
        share = np.expm1(np.minimum(at, epsilons[-1]) - epsilons[left]) / np.expm1(
            epsilons[right] - epsilons[left]
        )
    between = (deltas[left] * (1.0 - share) + deltas[right] * share) * (1.0 + _ROUNDING)
    found = np.where(
        at_knot, deltas[right], np.where(left == right, deltas[-1], np.minimum(between, deltas[left]))
    )
    return np.asarray(found)[()]


def _inverse(knots: Knots, delta: float) -> float:
    after = next((place for place, knot in enumerate(knots) if knot[1] <= delta), None)
    if after is None:
        return math.inf
    if after == 0:
        return 0.0
    (low, above), (high, below) = knots[after - 1 : after + 1]
    # A little further than the chord itself, which is rounded up.
    share = (above - delta / (1.0 + 2.0 * _ROUNDING)) / (above - below)
    return min(low + math.log1p(share * math.expm1(high - low)), high)


def _hull(epsilons: FloatArray, deltas: FloatArray, first: float) -> Knots:
    kept = [(0.0, 0.0, first)]  # epsilon, exp(epsilon) - 1, delta
    for knot in zip(epsilons[1:].tolist(), np.expm1(epsilons[1:]).tolist(), deltas[1:].tolist(), strict=True):
        if knot[2] >= kept[-1][2]:
            continue  # a profile falls: the bound before holds here too
        while len(kept) > 1 and _slope(kept[-2], knot) <= _slope(kept[-2], kept[-1]):
            kept.pop()
        kept.append(knot)
    return tuple((epsilon, delta) for epsilon, _, delta in kept)


def _slope(one: Sequence[float], other: Sequence[float]) -> float:
    return (other[2] - one[2]) / (other[1] - one[1])


_known = lru_cache(maxsize=256)(ProfileCurve.of)


def curve_of(plan: AnyPlan) -> ProfileCurve:
    """The curve of a plan; the last ones are kept, because plans of one kind are often made again."""
    try:
        return _known(plan)
    except TypeError:  # a loss of one's own may not be hashable
        return ProfileCurve.of(plan)
