r"""What publications cost together whose plans were chosen on the way, from what was published before.

A Rényi filter: at one order, fixed in advance, divergences add up whatever decides the next plan
(docs/mathematics.md, section 17, "Budgets chosen on the way").
"""

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from expost._common.typing import FloatArray
from expost._common.validation import check_positive
from expost.privacy import renyi
from expost.privacy.composition import Composition
from expost.privacy.profile_curve import LAST_EPSILON, ProfileCurve

# What rounding may take from a divergence that is read off a curve, as a share of its exponential.
_ROUNDING = 1e-9


def filter_order(epsilon: float, delta: float) -> int:
    """The number of the order at which a cap has room for most plans that are Gaussian mechanisms."""
    overhead = renyi.epsilons(renyi.ORDERS, np.zeros(len(renyi.ORDERS)), delta)
    return renyi.NUMBERS[int(np.argmax((epsilon - overhead) / renyi.ORDERS))]


def curve_divergence(curve: ProfileCurve, order: float) -> float:
    """The Rényi divergence of the pair that a curve is the profile of, apart from unbounded losses.

    Of a record that is added. The profile is piecewise linear in exp(epsilon), so that the pair has atoms at
    the knots, of both directions.
    """
    above, below = np.array(curve.adding), np.array(curve.removing)[:0:-1]
    losses = np.concatenate([-below[:, 0], above[:, 0]])
    places = np.exp(losses)
    values = np.concatenate([1.0 - places[: len(below)] * (1.0 - below[:, 1]), above[:, 1]])
    slopes = np.diff(values, prepend=1.0) / np.diff(places, prepend=0.0)
    masses = np.maximum(np.diff(slopes, append=0.0), 0.0) * places
    found = logsumexp((order - 1.0) * losses, b=masses) + _ROUNDING
    return max(float(found) / (order - 1.0), 0.0)


@dataclass(frozen=True)
class AdaptiveComposition(Composition):
    r"""The certified cost of several publications whose plans may follow from those before.

    The divergences of one Rényi order add up, in each direction apart, and are converted to an epsilon. The
    order is fixed before anything is published (Feldman and Zrnic, NeurIPS 2021; Lécuyer 2021).

    Attributes
    ----------
    number
        That of the order, :math:`\alpha = 1 + 2^{n/16}`.

    Privacy
    -------
    A function of public parameters only.
    """

    number: int = 0

    def delta_at(self, epsilon: float) -> float:
        r"""A certified upper bound on :math:`\delta(\epsilon)` of all publications together. Public."""
        at = check_positive("epsilon", epsilon) if epsilon != 0 else 0.0
        if not self._bounded or at > LAST_EPSILON:
            return 1.0
        spent, tail = self._spent
        return min(float(renyi.delta(self._order, np.array([spent]), np.asarray(at))) + tail, 1.0)

    def epsilon_at(self, delta: float) -> float:
        """The smallest ε that is certified at ``delta``; infinite where none is. Public."""
        target = check_positive("delta", delta, below=1.0)
        spent, tail = self._spent
        if not self._bounded or target <= tail:
            return math.inf
        if not self.curves:
            return 0.0
        found = float(renyi.epsilons(self._order, np.array([spent]), target - tail)[0])
        return found * (1.0 + _ROUNDING) if found <= LAST_EPSILON else math.inf

    @property
    def _order(self) -> FloatArray:
        return renyi.orders_of([self.number])

    @cached_property
    def _spent(self) -> tuple[float, float]:
        """The divergence of the dearer direction, and the probability of an unbounded loss in either."""
        order, counted = float(self._order[0]), Counter(self.curves)
        sums = []
        for turned in ([(one, one) for one in counted], [(one, one.backwards) for one in counted]):
            parts = [
                counted[one]
                * min(dict(seen.adding_orders).get(self.number, math.inf), curve_divergence(seen, order))
                for one, seen in turned
            ]
            sums.append(sum(parts))
        tails = [count * (one.adding[-1][1] + one.removing[-1][1]) for one, count in counted.items()]
        return max(sums), sum(tails)
