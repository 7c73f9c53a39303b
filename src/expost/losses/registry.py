"""The losses by name, as a file describes them."""

from collections.abc import Hashable, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from expost._common.validation import parameter_error
from expost.exceptions import PublicationError
from expost.losses.base import Loss, PredictorLoss
from expost.losses.binary import LogisticLoss, SmoothedHinge
from expost.losses.check import check_loss
from expost.losses.convex import ConvexLoss
from expost.losses.outcomes import BoundedGamma, BoundedPoisson, PseudoHuber, SmoothedPinball, SquaredLoss
from expost.losses.softmax import SoftmaxLoss
from expost.losses.vector import AnyLoss, VectorLoss

LOSSES: dict[str, type[Loss]] = {
    loss.name: loss
    for loss in (
        LogisticLoss,
        SmoothedHinge,
        PseudoHuber,
        SquaredLoss,
        SmoothedPinball,
        BoundedPoisson,
        BoundedGamma,
    )
}
PUBLISHED: dict[str, type[AnyLoss]] = LOSSES | {SoftmaxLoss.name: SoftmaxLoss}
"""The losses that every reader knows, by their names in a file."""


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


def can_be_published(loss: AnyLoss) -> bool:
    """Whether a publication can name this loss."""
    return has_certified_slopes(loss) or _is_own(loss)


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


def describe(loss: AnyLoss) -> dict[str, Any]:
    """The name and the parameters of a loss, as a file has them."""
    if can_be_published(loss):
        return {"name": loss.name} | _parameters(loss)
    raise PublicationError(
        f"a {type(loss).__name__} cannot be published: a loss of one's own must be a dataclass with a `name` "
        "that no other loss has, and parameters that are numbers, true or false."
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
