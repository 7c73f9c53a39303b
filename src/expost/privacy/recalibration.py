"""What is published after a model to recalibrate it, by its loss: how many numbers, and for which share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from expost.losses import LogisticLoss, PseudoHuber

LARGEST_NOISE = 2.0**32
"""What a row adds is whole steps of the grid of the numbers up to this noise."""
# From this noise on cells are few; and where those of positive scores end.
_NOISY = 20.0
_FEW, _MANY = (0.6, 1.5, 3.0), (0.5, 1.0, 1.5, 2.25, 3.0, 4.0, 6.0)


def cell_ends(noise: float) -> tuple[float, ...]:
    """The scores at which the cells of either class end, for counts with this noise.

    Examples
    --------
    >>> cell_ends(30.0)
    (-3.0, -1.5, -0.6, 0.0, 0.6, 1.5, 3.0)
    >>> cell_ends(5.0)[7:]
    (0.0, 0.5, 1.0, 1.5, 2.25, 3.0, 4.0, 6.0)
    """
    positive = _FEW if noise >= _NOISY else _MANY
    return (*(-end for end in reversed(positive)), 0.0, *positive)


def cell_count(noise: float) -> int:
    """How many cells both classes have together."""
    return 2 * (len(cell_ends(noise)) + 1)


MOMENT_WEIGHTS = tuple(weight / 0.995 for weight in (0.3, 0.3, 0.3, 0.6, 0.6))
r"""By what the sums of :math:`1, q, q^2, r, qr` are multiplied: with :math:`|q|, |r| \le 1` a row then adds
a vector of length below 1, because :math:`3 \cdot 0.09 + 2 \cdot 0.36 < 0.995^2`."""


@dataclass(frozen=True)
class Recalibration:
    r"""The numbers that are published after a model: sums over the rows, each with the same noise.

    A row adds a vector of length at most 1 at the printed coefficients, whatever its weight, so that given
    these it moves all numbers together by at most :math:`1/\sigma_h` in units of the noise.
    """

    name: str
    share: float
    """Their share of the precision that the budget buys."""
    entries: Callable[[float], int]
    """How many numbers they are with this noise."""
    counts: bool
    """Whether they are counts, none of which is below zero without noise."""


HISTOGRAM = Recalibration("histogram", 0.1, cell_count, counts=True)
"""How many rows have each score and label: of two classes."""
MOMENTS = Recalibration("moments", 0.03, lambda noise: len(MOMENT_WEIGHTS), counts=False)
"""Sums of predictions, of residuals and of their products: of a number."""


def recalibration_of(loss: Any) -> Recalibration | None:
    """What recalibrates a model of this loss; None where no joint certificate is known."""
    if isinstance(loss, LogisticLoss) and not loss.soft:
        return HISTOGRAM
    return MOMENTS if isinstance(loss, PseudoHuber) else None
