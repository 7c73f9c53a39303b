"""Regularisers, and the losses and regularisers by name, as a file describes them."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import check_positive, parameter_error
from expost.exceptions import PublicationError
from expost.losses.base import Loss, PredictorLoss
from expost.losses.check import check_loss
from expost.losses.convex import ConvexLoss
from expost.losses.scalar import LogisticLoss, PseudoHuber, SmoothedHinge, SquaredLoss
from expost.losses.softmax import SoftmaxLoss
from expost.losses.vector import AnyLoss, VectorLoss


class Regularizer(ABC):
    r"""A convex, twice differentiable function :math:`r(\theta)` added to the objective.

    It never sees the table, so it costs no privacy; its Hessian at the released coefficients is public.
    It applies to the intercept too.
    """

    name: ClassVar[str]
    """What files call it, where they can."""

    @abstractmethod
    def value(self, theta: FloatArray) -> float:
        r""":math:`r(\theta)`."""

    @abstractmethod
    def gradient(self, theta: FloatArray) -> FloatArray:
        """The gradient, as long as ``theta``."""

    @abstractmethod
    def hessian(self, theta: FloatArray) -> FloatArray:
        """The Hessian, a square matrix."""

    @abstractmethod
    def hessian_product(self, theta: FloatArray, direction: FloatArray) -> FloatArray:
        """The Hessian times a vector, for dimensions where the matrix is too large."""


@dataclass(frozen=True)
class SmoothedL1(Regularizer):
    r"""The absolute value with its corner rounded, which pulls small coefficients towards zero.

    .. math:: r(\theta) = w \sum_j \left(\sqrt{\theta_j^2 + s^2} - s\right)

    Parameters
    ----------
    weight
        :math:`w`, the slope far from zero.
    scale
        :math:`s`, the width of the rounded corner; it tends to :math:`w\|\theta\|_1` as ``scale`` falls.

    Examples
    --------
    >>> SmoothedL1(weight=2.0, scale=1e-9).value(np.array([3.0, -4.0]))
    13.99999999...
    """

    weight: float
    scale: float = 0.1
    name: ClassVar[str] = "smoothed_l1"

    def __post_init__(self) -> None:
        check_positive("weight", self.weight)
        check_positive("scale", self.scale)

    def value(self, theta: FloatArray) -> float:
        """The sum of the rounded absolute values."""
        return float(self.weight * np.sum(np.hypot(theta, self.scale) - self.scale))

    def gradient(self, theta: FloatArray) -> FloatArray:
        """``weight * theta / sqrt(theta² + scale²)``."""
        return np.asarray(self.weight * theta / np.hypot(theta, self.scale))

    def hessian(self, theta: FloatArray) -> FloatArray:
        """A diagonal matrix."""
        return np.diag(self._curvature(theta))

    def hessian_product(self, theta: FloatArray, direction: FloatArray) -> FloatArray:
        """The diagonal times the vector."""
        return self._curvature(theta) * direction

    def _curvature(self, theta: FloatArray) -> FloatArray:
        root = np.hypot(theta, self.scale)
        return np.asarray(self.weight * (self.scale / root) ** 2 / root)


LOSSES: dict[str, type[Loss]] = {
    loss.name: loss for loss in (LogisticLoss, SmoothedHinge, PseudoHuber, SquaredLoss)
}
PUBLISHED: dict[str, type[AnyLoss]] = LOSSES | {SoftmaxLoss.name: SoftmaxLoss}
"""The losses that every reader knows, by their names in a file."""
REGULARIZERS: dict[str, type[Regularizer]] = {SmoothedL1.name: SmoothedL1}


def as_loss(loss: Any) -> AnyLoss:
    """Return a loss given as an object or by name; a loss that the library does not know is checked first."""
    if isinstance(loss, Loss | VectorLoss):
        if not has_certified_slopes(loss):
            # The certificate relies on the curve that the loss declares.
            (_check_frozen if _is_constant(loss) else check_loss)(loss)
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]()
    convex = "A ConvexLoss is for `ConvexModel` and `calibrate_convex`."
    way_out = convex if isinstance(loss, ConvexLoss) else ""
    raise parameter_error("loss", "a Loss or one of " + ", ".join(map(repr, LOSSES)), loss, way_out)


def _is_constant(loss: Any) -> bool:
    """Whether a loss cannot change, and need be checked only once."""
    parameters = getattr(type(loss), "__dataclass_params__", None)
    frozen = parameters is not None and parameters.frozen
    return frozen and all(isinstance(value, Hashable) for value in (loss, *_parameters(loss).values()))


@lru_cache(maxsize=64)
def _check_frozen(loss: AnyLoss) -> None:
    check_loss(loss)


def has_certified_slopes(loss: AnyLoss) -> bool:
    """Whether the library can compute this loss's slopes with a proved error: its own losses only."""
    return type(loss) in PUBLISHED.values()


def can_be_published(loss: AnyLoss, regularizer: Regularizer | None) -> bool:
    """Whether a publication can name this loss and this regulariser."""
    known = regularizer is None or type(regularizer) in REGULARIZERS.values()
    return known and (has_certified_slopes(loss) or _is_own(loss))


def known_losses(losses: Sequence[Any] = ()) -> dict[str, type[AnyLoss]]:
    """The losses that a reader knows by name: the library's, and those of her own; or ParameterError."""
    known: dict[str, Any] = dict(PUBLISHED)
    if not isinstance(losses, list | tuple):
        raise parameter_error("losses", "a list of classes of losses", losses)
    for own in losses:
        if not _makes_losses(own):
            raise parameter_error("losses", "classes of losses, each a dataclass with a `name`", own)
        if known.setdefault(own.name, own) is not own:
            raise parameter_error("losses", "classes whose names differ from each other and ours", own.name)
    return known


def _makes_losses(own: Any) -> bool:
    known = isinstance(own, type) and issubclass(own, PredictorLoss) and is_dataclass(own)
    return known and isinstance(getattr(own, "name", None), str)


def describe(thing: AnyLoss | Regularizer) -> dict[str, Any]:
    """The name and the parameters of a loss or a regulariser, as a file has them."""
    if type(thing) in (*PUBLISHED.values(), *REGULARIZERS.values()) or _is_own(thing):
        return {"name": thing.name} | _parameters(thing)
    kind = f"a {type(thing).__name__} cannot be published"
    if isinstance(thing, PredictorLoss):
        raise PublicationError(
            f"{kind}: a loss of one's own must be a dataclass with a `name` that no other loss has, and "
            "parameters that are numbers, true or false."
        )
    raise PublicationError(
        f"{kind} because a reader would not know its formula; use one of {', '.join(REGULARIZERS)}, or share "
        "the coefficients without a publication."
    )


def _is_own(loss: Any) -> bool:
    """Whether this loss of someone's own can be written to a file, and be made again from it."""
    if not isinstance(loss, PredictorLoss) or not _makes_losses(type(loss)):
        return False
    if loss.name in PUBLISHED or not loss.name.isidentifier():
        return False
    parameters = _parameters(loss)
    plain = all(isinstance(value, bool | int | float) for value in parameters.values())
    return plain and "name" not in parameters


def _parameters(thing: Any) -> dict[str, Any]:
    return {
        parameter.name: _plain(value, whole=parameter.type in (int, "int"))
        for parameter in fields(thing)
        if (value := getattr(thing, parameter.name)) != parameter.default or "added" not in parameter.metadata
    }


def _plain(value: Any, *, whole: bool) -> Any:
    """A parameter as a file has it: 2 for a threshold is 2.0, and a number of classes stays whole."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return value
    return int(value) if whole else float(value)
