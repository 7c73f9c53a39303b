r"""How far the printed coefficients are from the exact minimiser, in the units of a report's terms.

Slopes and curvatures are read at the printed coefficients :math:`w`. The noise :math:`b` of the objective is
minus the gradient at the exact minimiser :math:`\hat w`, and statistics were taken there. Let
:math:`t = s(\chi_d + 1)` bound :math:`\|w - \hat w\|`, let :math:`\beta` be the largest curvature of a
record, and let curvatures change by a factor of at most :math:`e^{\zeta R\rho}` over a distance :math:`\rho`.
Then

- :math:`x\cdot\nabla J(w) = -x\cdot b + x\cdot\bar H(w - \hat w)`, and the last term is at most
  :math:`\|x\|\,s(\lambda + \beta n_{\max})` times a normal variable that is independent of :math:`b`;
- Hessians change by a factor of at most :math:`e^{\zeta Rt}`;
- a record's gradient changes by at most :math:`\beta t`.
"""

import math
from dataclasses import dataclass

from scipy.special import gammainccinv

from expost.fitting.certified.slopes import third_order
from expost.fitting.release import Release
from expost.losses import SmoothedL1

SHARE = 2.0**-10
"""The part of a failure probability that pays for the output's noise."""
# What else separates the two points, in standard deviations of that noise: the solver's radius, the rounding
# to the grid, and the change of the Hessian along the way.
_REST = 2.0**-10


@dataclass(frozen=True)
class Drift:
    """What a report adds to its terms because printed coefficients are not the exact minimiser.

    Privacy
    -------
    Public: computed from the plan and the regulariser.
    """

    tilt: float = 0.0
    """Of the gradient, in units of the objective's noise, per standard deviation of the output's noise."""
    curvature: float = 0.0
    """Relative change of a Hessian."""
    slope: float = 0.0
    """Of a record's gradient, in units of the objective's noise."""

    @classmethod
    def of(cls, release: Release) -> "Drift":
        """The drift of a release; none where its numbers are taken to be real."""
        plan, dimension = release.plan, len(release.coefficients)
        if plan.precision is None:
            return cls()
        noise, curvature = plan.precision.output_noise, plan.curve.max_curvature * plan.radius**2
        # Longer output noise has a probability below 1e-15, far below every share of a failure.
        distance = noise * (math.sqrt(2.0 * float(gammainccinv(0.5 * dimension, 1e-15))) + 1.0)
        change = (third_order(plan.loss) or 0.0) * plan.radius * distance
        largest = plan.l2 + curvature * plan.precision.rows_at_most
        if isinstance(release.regularizer, SmoothedL1):
            largest += release.regularizer.weight / release.regularizer.scale
            # Its curvature changes by at most 3/2 of itself over the width of the corner.
            change = max(change, 1.5 * distance / release.regularizer.scale)
        return cls(
            tilt=noise * largest / plan.sigma,
            # Twice a small change covers its exponential, and a lowered eigenvalue needs that much.
            curvature=max(2.0 * change, math.expm1(min(change, 700.0))),
            slope=curvature * distance / plan.sigma,
        )

    def widened(self, quantile: float, tail: float) -> float:
        """A quantile of the objective's noise, widened by ``tail`` standard deviations of the output's."""
        return quantile + self.tilt * (tail + _REST)


NO_DRIFT = Drift()
"""For numbers that are taken to be real."""
