"""Private choices among public candidates: what the exponential mechanism costs, whatever it chooses."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from expost._common.summary import Summarized, Summary
from expost._common.typing import FloatArray
from expost._common.validation import check_choice, check_count, check_positive, parameter_error
from expost.privacy.excess import UNITS

# A choice may cost up to this much. One that costs more is no longer private.
MOST_EPSILON = 50.0
# How many chords a curve has; up to an epsilon of 1 they exceed the profile by less than 1e-4 of its maximum.
_CHORDS = 64


@dataclass(frozen=True)
class ChoicePlan(Summarized):
    r"""What a choice among public candidates costs: the profile of the exponential mechanism.

    A candidate :math:`w` is published with probability :math:`\propto e^{\epsilon S_w(D)}`, where one record,
    or one person, changes no two scores differently by more than 1: the *range* of the change of
    :math:`\epsilon S` is at most :math:`\epsilon`. Of all such mechanisms, in both directions,

    .. math:: \delta(\epsilon') = \frac{(1 - e^{(\epsilon' - \epsilon)/2})^2}{1 - e^{-\epsilon}},
              \qquad 0 \le \epsilon' \le \epsilon

    is the least that holds (docs/mathematics.md, theorem 20.1). It is the profile of a pair of its own, so
    that choices compose with plans and with one another, whatever the scores of one are made from of what was
    published before.

    Frozen, comparable, printable. :func:`expost.compose` and :meth:`expost.ledger.Account.enter` take it as
    they take a plan.

    Attributes
    ----------
    epsilon
        The promise of the choice alone; its δ is 0.
    candidates
        How many there are.
    unit
        What neighbouring tables differ by, ``"row"`` or ``"person"``.

    Privacy
    -------
    Public: it is made before any record is seen.

    Examples
    --------
    >>> import expost
    >>> model = expost.calibrate(epsilon=1.0, delta=1e-6)
    >>> both = expost.compose([model, expost.ChoicePlan(0.1, candidates=100)])
    >>> round(both.epsilon_at(1e-6), 3)
    1.033
    """

    epsilon: float
    candidates: int
    unit: str = "row"

    delta: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        if self.epsilon > MOST_EPSILON:
            raise parameter_error("epsilon", f"at most {MOST_EPSILON:g} for a choice", self.epsilon)
        if check_count("candidates", self.candidates) < 2:
            raise parameter_error("candidates", "at least 2, or there is nothing to choose", self.candidates)
        check_choice("unit", self.unit, UNITS)

    def delta_at(self, epsilon: float) -> float:
        """A certified upper bound on δ(ε) of the choice. Public."""
        at = check_positive("epsilon", epsilon) if epsilon != 0 else 0.0
        return float(self._deltas(np.array([at]))[0])

    def epsilon_at(self, delta: float) -> float:
        """The smallest ε that is certified at ``delta``. Public."""
        target = check_positive("delta", delta, below=1.0)
        root = math.sqrt(target * -math.expm1(-self.epsilon))
        found = self.epsilon + 2.0 * math.log1p(-root) * (1.0 - 1e-12)
        # A sum is rounded: one double up is above the exact one.
        return min(max(math.nextafter(found, math.inf), 0.0), self.epsilon)

    def _deltas(self, epsilons: FloatArray) -> FloatArray:
        gap = np.minimum(epsilons - self.epsilon, 0.0)
        found = np.expm1(0.5 * gap) ** 2 / -math.expm1(-self.epsilon)
        return np.asarray(np.minimum(found * (1.0 + 1e-14), 1.0))

    @property
    def knots(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rising epsilons from 0, and δ there for a record that is added and for one that is removed."""
        places = np.linspace(0.0, self.epsilon, _CHORDS + 1)
        return places, self._deltas(places), self._deltas(places)

    def fields(self) -> dict[str, Any]:
        """Its fields as JSON's types. Public."""
        stated = {"epsilon": self.epsilon, "delta": self.delta, "candidates": self.candidates}
        return stated if self.unit == "row" else stated | {"unit": self.unit}

    def _summary(self) -> Summary:
        whom = "" if self.unit == "row" else ", for all rows of a record or person together"
        rows = [("a choice", str(self.candidates), f"{self.epsilon:g}")]
        notes = (f"ε = {self.epsilon:g} at δ = 0{whom}",)
        return Summary("Plan (public, made without data)", rows, ("released", "candidates", "ε"), notes)
