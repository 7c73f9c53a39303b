"""Rows of a person that she does not remember: what they can add to her figures at most."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from expost.fitting.release import Release
from expost.privacy.plan import Plan
from expost.reports.base import Interval, Scope
from expost.reports.intervals import noise_factors
from expost.reports.laws import Drift
from expost.reports.total import WholeParts, whole_noise

CURVED = ("hessian", "eigenvalue", "recalibration")
"""The statistics that a record's gradient does not move."""


@dataclass(frozen=True)
class Forgotten:
    r"""Rows of which nothing is known but that they were fixed in advance, each at its worst.

    .. math:: |t_1| \le T + un\log\Bigl(1 + \frac{\omega\beta}{\lambda}\Bigr), \qquad
              2\sigma^2t_2 \le (\|g\| + u\omega\xi)^2, \qquad
              |t_3| \le T_3(\rho/2) + \frac{u\omega\xi}{\sigma}\,q(\rho/2u)

    for :math:`u` rows of weight :math:`\omega` whose gradients have a length of at most :math:`\xi` and whose
    Hessians a rank of at most :math:`n` and eigenvalues of at most :math:`\beta`; :math:`T` and :math:`T_3`
    are those of the known rows (docs/mathematics.md, theorem 15.3). Half of the failure probability
    is for the rows that are known.

    Privacy
    -------
    Public: computed from the plan and two numbers that the reader gives.
    """

    rows: int
    weight: float
    """What each of them weighs at most, in units of the plan's largest weight."""

    @property
    def count(self) -> float:
        """Their weight together."""
        return self.rows * self.weight

    @property
    def parts(self) -> float:
        """How many parts of this size the noise has with corners: half of it is for the known rows."""
        return 2.0 * max(self.count, 1.0)

    def determinant(self, plan: Plan, known: Interval, *, member: bool) -> Interval:
        """An interval for the first term, from that of the known rows."""
        curvature = self.weight * plan.accounting.curvature
        more = self.rows * plan.curve.rank * math.log1p(curvature / plan.l2)
        return Interval(known.low, known.high + more) if member else Interval(known.low - more, known.high)

    def length(self, plan: Plan) -> float:
        """What they add to the length of the gradient at most."""
        return self.count * plan.accounting.slope

    def product(
        self, release: Release, known: Interval, scope: Scope, failure: float, drift: Drift
    ) -> Interval:
        """An interval for the third term; ``failure`` is the share of these rows together."""
        plan = release.plan
        factors = noise_factors(release, scope, failure / self.rows, drift, parts=self.parts)
        more = self.length(plan) * factors.norm / plan.sigma
        return Interval(known.low - more, known.high + more)

    def shift(self, plan: Plan) -> float:
        """How much further they move all statistics at most."""
        return self.count * moved(plan, "gradient", *CURVED)

    def whole(self, release: Release, parts: WholeParts, scope: Scope, failure: float) -> Any:
        """What they add to a total besides the first term, by its theorem for each of them alone."""
        plan = release.plan
        steep = self.count * math.hypot(plan.accounting.slope / plan.sigma, moved(plan, "gradient"))
        curved = self.count * moved(plan, *CURVED)
        noise = whole_noise(release, scope, failure / self.rows, parts=self.parts)
        reached = noise.model * steep, noise.statistics * curved
        squares = (parts.moved + 0.5 * steep) * steep + (parts.curved + 0.5 * curved) * curved
        return squares + (sum(reached) if noise.apart else math.hypot(*reached))


def moved(plan: Plan, *names: str) -> float:
    """How far a record moves some statistics at most, in units of their noise."""
    found = [
        plan.accounting.sensitivity(statistic) / scale
        for statistic, scale in plan.scales.released
        if statistic.name in names
    ]
    return float(np.linalg.norm(found))
