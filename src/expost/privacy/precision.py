"""How exactly a release is computed and printed, chosen from public values.

Proofs are about real numbers, and a file holds doubles; docs/mathematics.md, theorem 10.1, covers what is
printed: coefficients and statistics are whole multiples of public grids, with exact discrete Gaussian noise.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

from expost._common.validation import check_count
from expost.exceptions import CalibrationError

ROWS_AT_MOST = 10**7
"""Up to how many rows exact losses and intervals keep their stated accuracy, by default."""
# A release has no more coefficients and no more numbers in all than this.
MOST_COEFFICIENTS, MOST_NUMBERS = 2**17, 2**22
# The solver's part of the whitened sensitivity is this power of two, less for an epsilon below one.
_SOLVER = -16
# A grid is this much finer than the solver's radius: rounding 2**17 coefficients to it takes less than half
# of that.
_FINER = 9
# Binary digits of a statistic's noise scale in steps of its grid.
_STATISTIC_STEPS = 32
# No law counts on more steps: statistics may have hardly more.
_FEWEST = 2.0**_STATISTIC_STEPS
# The largest error of a computed statistic: of its noise scale, or of the largest Hessian that rows_at_most
# rows can have, if that is more.
_OF_NOISE, _OF_HESSIAN = 2.0**-20, 2.0**-44

# The mass of noise so far out that its law is not bounded: too small to change any delta.
_TAIL = 1e-300


@dataclass(frozen=True)
class Rounding:
    r"""What a privacy profile pays for the difference between real numbers and printed ones.

    ``solver`` is :math:`\eta = 2r_0/s`, ``statistics`` the largest error of a computed statistic in units of
    its noise scale, ``hessian`` that of a Hessian that is always allowed, in its own units, and ``steps``
    :math:`\tau`, the smallest noise scale in steps of its grid.
    """

    solver: float = 0.0
    statistics: float = 0.0
    hessian: float = 0.0
    steps: float = math.inf

    @classmethod
    def planned(cls, epsilon: float, *, curvature: float, rows_at_most: int = ROWS_AT_MOST) -> Self:
        """What a plan for this epsilon pays; ``curvature`` is the largest of one record."""
        solver = math.ldexp(1.0, _SOLVER + max(min(math.frexp(epsilon)[1] - 1, 0), -12))
        steps = math.ldexp(1.0, _FINER + 1) / solver
        return cls(solver, _OF_NOISE, _OF_HESSIAN * curvature * rows_at_most, min(steps, _FEWEST))

    def error(self, name: str, scale: float) -> float:
        """The largest error of a statistic, in units of its noise scale; what rows add has none."""
        if name == "recalibration":
            return 0.0
        return self.statistics if name == "gradient" else max(self.statistics, self.hessian / scale)

    def law(self, epsilon: float) -> float:
        """The price ψ of discrete noise at ``epsilon`` (section 10, "Discrete noise")."""
        if math.isinf(self.steps):
            return 0.0
        # One more unit and one part in a thousand: the rounding of the noise, and all other terms.
        reach = math.sqrt(MOST_NUMBERS) + math.sqrt(2.0 * (epsilon - math.log(_TAIL))) + 1.0
        return 1.001 * reach**2 / (24.0 * self.steps**2)

    def over(self, weight: float) -> Self:
        """What is paid where the objective and all noise are divided by a weight."""
        return replace(self, hessian=self.hessian / weight)

    @property
    def tail(self) -> float:
        """The probability of noise so far out that its law is not bounded."""
        return 0.0 if math.isinf(self.steps) else _TAIL


REAL = Rounding()
"""Nothing is paid: numbers are taken to be real. For losses of one's own, and for theory."""


@dataclass(frozen=True)
class Precision:
    r"""The public :math:`s`, :math:`r_0` and :math:`h` by which coefficients are printed (section 10).

    Up to ``rows_at_most`` rows recomputed losses and intervals keep their stated accuracy; the guarantee
    holds for any number of rows.
    """

    output_noise: float
    solver_radius: float
    grid: float
    rows_at_most: int

    @property
    def window(self) -> float:
        r""":math:`w = 2^4s`: no farther from a kink, a coefficient is printed on it (section 19)."""
        return 2.0**4 * self.output_noise

    @classmethod
    def choose(
        cls,
        rounding: Rounding,
        *,
        sigma: float,
        l2: float,
        curvature: float,
        radius: float,
        rows_at_most: int,
    ) -> Self:
        """Powers of two from public values (section 10, "Choice")."""
        rows = check_count("rows_at_most", rows_at_most)
        scale = largest_output_noise(
            sigma=sigma, l2=l2, curvature=curvature, radius=radius, rows_at_most=rows
        )
        if not 1e-250 <= scale <= 1e250:
            raise CalibrationError(
                f"sigma={sigma:g}, l2={l2:g} and norm={radius:g} leave no room for printed digits. Scale the "
                "data by a constant."
            )
        noise = math.ldexp(1.0, math.frexp(scale)[1] - 1)
        solver_radius = 0.5 * rounding.solver * noise
        return cls(noise, solver_radius, math.ldexp(solver_radius, -_FINER), rows)

    def rounding(self, curvature: float) -> Rounding:
        """What a privacy profile pays for these numbers; ``curvature`` is the largest of one record."""
        return Rounding(
            solver=2.0 * self.solver_radius / self.output_noise,
            statistics=_OF_NOISE,
            hessian=_OF_HESSIAN * curvature * self.rows_at_most,
            steps=min(self.output_noise / self.grid, _FEWEST),
        )


def largest_output_noise(
    *, sigma: float, l2: float, curvature: float, radius: float, rows_at_most: int
) -> float:
    """The output's noise before it is rounded down to a power of two (section 10, "Choice")."""
    return min(math.ldexp(sigma, -10) / (l2 + curvature * rows_at_most), 2.0**-20 / radius)


def statistic_grid(scale: float) -> float:
    """The grid of a statistic whose noise has this scale: a power of two, 2**-32 of it or a little less."""
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - _STATISTIC_STEPS)
