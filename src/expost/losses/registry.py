"""The losses and regularisers by name, and their description in a file."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from expost._common.validation import parameter_error
from expost.exceptions import PublicationError
from expost.losses.base import Loss
from expost.losses.check import check_loss
from expost.losses.logistic import LogisticLoss
from expost.losses.pseudo_huber import PseudoHuber
from expost.losses.regularizers import Regularizer, SmoothedL1
from expost.losses.smoothed_hinge import SmoothedHinge
from expost.losses.softmax import SoftmaxLoss
from expost.losses.squared import SquaredLoss
from expost.losses.vector import AnyLoss, VectorLoss
from expost.losses.vector_check import check_vector_loss

LOSSES: dict[str, type[Loss]] = {
    loss.name: loss for loss in (LogisticLoss, SmoothedHinge, PseudoHuber, SquaredLoss)
}
REGULARIZERS: dict[str, type[Regularizer]] = {"smoothed_l1": SmoothedL1}


def as_loss(loss: Any) -> AnyLoss:
    """Return a loss given as an object or by name; a loss that the library does not know is checked first."""
    if isinstance(loss, VectorLoss):
        if type(loss) is not SoftmaxLoss:
            check_vector_loss(loss)
        return loss
    if isinstance(loss, Loss):
        if type(loss) not in LOSSES.values():
            check_loss(loss)  # the certificate relies on the curve that the loss declares
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]()
    raise parameter_error("loss", "a Loss or one of " + ", ".join(map(repr, LOSSES)), loss)


def has_certified_slopes(loss: AnyLoss) -> bool:
    """Whether the library can compute this loss's slopes with a proved error: its own losses only."""
    return type(loss) in LOSSES.values() or type(loss) is SoftmaxLoss


def can_be_published(loss: AnyLoss, regularizer: Regularizer | None) -> bool:
    """Whether a publication can name this loss and this regulariser, by formulas that a reader knows."""
    known = type(loss) in LOSSES.values()
    return known and (regularizer is None or type(regularizer) in REGULARIZERS.values())


def describe(thing: AnyLoss | Regularizer) -> dict[str, Any]:
    """The name and the parameters of a loss or a regulariser that the library knows.

    Examples
    --------
    >>> describe(PseudoHuber(2))
    {'name': 'pseudo_huber', 'threshold': 2.0}
    >>> describe(LogisticLoss()), describe(LogisticLoss(cap=0.75, corner=0.5))
    ({'name': 'logistic', 'soft': False}, {'name': 'logistic', 'soft': False, 'cap': 0.75, 'corner': 0.5})
    """
    known: dict[str, type] = LOSSES | REGULARIZERS
    for name, kind in known.items():
        if type(thing) is kind:
            return {"name": name} | dict(_parameters(thing))
    if isinstance(thing, VectorLoss):
        raise PublicationError(
            f"a {type(thing).__name__} cannot be published yet: publications know one linear predictor only. "
            "Share the coefficients without a publication."
        )
    raise PublicationError(
        f"a {type(thing).__name__} cannot be published because a reader would not know its formula; use "
        f"one of {', '.join(known)}, or share the coefficients without a publication."
    )


def _parameters(thing: AnyLoss | Regularizer) -> Iterator[tuple[str, bool | float]]:
    for parameter in fields(thing):  # type: ignore[arg-type]
        value = getattr(thing, parameter.name)
        if "added" not in parameter.metadata or value != parameter.default:
            yield parameter.name, _plain(value)


def _plain(parameter: Any) -> bool | float:
    return parameter if isinstance(parameter, bool) else float(parameter)
