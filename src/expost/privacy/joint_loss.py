r"""The law of the joint privacy loss of several publications, on a grid.

A curve becomes a discrete privacy loss distribution by connecting the dots (Doroshenko, Ghazi, Kamath,
Kumar and Manurangsi, PoPETs 2022): the profile of that distribution is the chord between the curve's values
on the grid, which lies above it. Google's dp-accounting convolves them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import missing_extra_error
from expost.privacy.profile_curve import Knots, ProfileCurve, chord

# What each convolution may cut off its tails. It counts as the probability of an unbounded loss.
_TAIL = 1e-16
# One rounding of a double, and how many of them a level of a fast Fourier transform may cost.
_UNIT = 2.0**-53
_PER_LEVEL = 8.0


def accountant() -> Any:
    """Google's privacy loss distributions, imported when they are first needed.

    Raises
    ------
    MissingExtraError
        If the extra ``ledger`` is not installed.
    """
    try:
        from dp_accounting.pld import pld_pmf
    except ImportError:
        raise missing_extra_error("composing publications", "dp-accounting", "ledger") from None
    return pld_pmf


@dataclass(frozen=True)
class JointLoss:
    """The law of the joint privacy loss in one direction, and what its computation may be wrong by."""

    law: Any
    error: float

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
        return cls(law, error)

    def delta(self, epsilon: float) -> float:
        """An upper bound on delta in this direction."""
        return float(self.law.get_delta_for_epsilon(epsilon)) + self.error

    def epsilon(self, delta: float) -> float:
        """About the smallest epsilon with this delta in this direction; infinite where there is none."""
        left = delta - self.error
        return float(self.law.get_epsilon_for_delta(left)) if left > 0.0 else math.inf


def grid_masses(curve: ProfileCurve, step: float) -> tuple[FloatArray, float]:
    r"""The masses of the privacy loss on the grid, from the lowest up, and what their rounding may cost.

    A record that is added has a mass of :math:`p_j` at :math:`js > 0`, from the falls of its bound by the
    formula of connecting the dots. At :math:`-js` it has :math:`e^{-js}` times the mass that the neighbours
    in the other order have at :math:`js`: values near 1 need not be subtracted. What remains is at 0.
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
    r"""How much of delta a convolution by Fourier transforms may lose.

    A transform of :math:`N` numbers has an error of at most :math:`8u\log_2N` of their Euclidean norm
    (Higham, *Accuracy and stability of numerical algorithms*, section 24.1), which for masses is no larger
    than that of any factor. Summing up :math:`N` errors costs :math:`\sqrt N`.
    """
    length = 2.0 * size
    return transforms * _PER_LEVEL * _UNIT * math.log2(length) * math.sqrt(length) * norm
