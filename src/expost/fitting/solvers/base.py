"""What every solver returns, and the step-length rule they share."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from expost._common.typing import FloatArray
from expost.fitting.objective import Evaluation

Evaluate = Callable[[FloatArray], Evaluation]


@dataclass(frozen=True)
class Solution:
    """Where a solver ended; private, its numbers above all."""

    theta: FloatArray
    evaluation: Evaluation
    """What the last pass found: at ``theta``, or one step before it."""
    model: Evaluation | None = None
    """The last one with a Hessian, where there was one."""

    def meets(self, tolerance: float) -> bool:
        """Whether the gradient is as small as asked, or as small as rounding lets it be."""
        return self.evaluation.norm <= max(tolerance, self.evaluation.floor)

    def without_hessians(self) -> "Solution":
        """The same point and norms, in far less memory."""
        return Solution(self.theta, replace(self.evaluation, hessian=None, rows_hessian=None))


def backtrack(
    theta: FloatArray, step: FloatArray, norm: float, evaluate: Evaluate, *, forcing: float = 0.0
) -> tuple[FloatArray, Evaluation] | None:
    r"""Shorten a Newton step until the gradient norm falls enough; ``None`` where no length will do.

    The merit function is :math:`\|\nabla\|`, not the objective: the objective is strongly convex, so an
    (inexact) Newton direction with :math:`\|Hp + g\| \le \eta\|g\|` decreases it, and halving until

    .. math:: \|g(\theta + tp)\| \le (1 - 10^{-4} t (1 - \eta)) \|g(\theta)\|

    converges from any start (Eisenstat and Walker 1994). A sum of a million loss values has lost the digits
    that the last steps change; the gradient has not.
    """
    length = 1.0
    while length > 1e-12:
        candidate = theta + length * step
        evaluation = evaluate(candidate)
        if evaluation.norm <= (1.0 - 1e-4 * length * (1.0 - forcing)) * norm:
            return candidate, evaluation
        length *= 0.5
    return None
