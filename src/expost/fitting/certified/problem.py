"""What is to be minimised: the rows, the loss, the penalty and the noise."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Protocol, TypeAlias, TypeVar

from expost.data.blocks import Block
from expost.engines.base import Pass
from expost.fitting.certified.dyadic import Dyadic
from expost.fitting.certified.pairs import FloatArray
from expost.losses import AnyLoss, DerivativeCurve
from expost.losses.regularizers import SmoothedL1
from expost.losses.softmax_curve import SoftmaxCurve

Blocks: TypeAlias = Iterable[Block]
Result = TypeVar("Result")


class Rows(Protocol):
    """The table, to be read as often as asked and every time alike."""

    def sweep(self, work: Pass[Block, Result]) -> Iterable[Result]:
        """Run a pass on the blocks of each part; results in the order of the rows.

        There is always at least one part, even of no rows. Rows are C-contiguous doubles, the intercept's
        column included.
        """
        ...


@dataclass(frozen=True)
class RowBlocks:
    """Blocks in memory, read in one part."""

    blocks: list[Block]

    def sweep(self, work: Pass[Block, Result]) -> Iterable[Result]:
        """All blocks in one go."""
        return [work(iter(self.blocks))]


@dataclass(frozen=True, repr=False)
class Problem:
    r"""The perturbed objective.

    .. math:: \sum_i \omega_i f(x_i^\top w; y_i) + \frac\lambda2\|w\|^2 + r(w) + (b_1 + b_2)^\top w

    Privacy
    -------
    All of it is private but ``loss``, ``l2``, ``radius`` and ``regularizer``.
    """

    rows: Rows
    loss: AnyLoss
    l2: float
    radius: float
    """No row is longer than this."""
    tilt: tuple[FloatArray, ...]
    """Vectors of doubles whose exact sum is the noise."""
    regularizer: SmoothedL1 | None = None
    tilt_rounding: float = 0.0
    """How far (Euclidean) the noise may be from the continuous draw that it stands for."""
    max_weight: float = 1.0
    """No weight is larger than this."""

    @property
    def curve(self) -> DerivativeCurve | SoftmaxCurve:
        """The derivative curve of the largest weight times the loss."""
        return self.loss.curve.scaled(self.max_weight)

    @property
    def slack(self) -> float:
        """How far that rounding may have moved the minimiser: the objective is ``l2``-strongly convex."""
        return self.tilt_rounding / self.l2 * (1.0 + 2.0**-40)

    @property
    def largest_curvature(self) -> float:
        """The largest eigenvalue of one record's Hessian."""
        return self.curve.max_curvature * self.radius**2

    @property
    def dimension(self) -> int:
        """The number of coefficients."""
        return len(self.tilt[0])

    def linear_part(self, point: Dyadic) -> Dyadic:
        """Penalty and noise of the gradient at a point, without any rounding."""
        return reduce(Dyadic.__add__, map(Dyadic.of, self.tilt), point.times(self.l2))
