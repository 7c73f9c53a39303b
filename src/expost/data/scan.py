"""The pass that every table goes through before anything is drawn."""

from collections.abc import Iterator
from dataclasses import dataclass

from expost._common.namespaces import namespace_of
from expost._common.typing import FloatArray
from expost.data.blocks import Block
from expost.data.design import check_finite
from expost.exceptions import DomainError
from expost.losses import AnyLoss


@dataclass(frozen=True)
class Scan:
    """The pass that counts the rows and refuses what the mechanism was not made for.

    NaN and infinity, labels outside the loss's set, and weights outside ``[0, max_weight]``.
    """

    loss: AnyLoss
    max_weight: float

    def __call__(self, blocks: Iterator[Block]) -> int:
        """The number of rows."""
        rows = 0
        for block in blocks:
            check_finite(block.X)
            self.check_labels(block.y, block.weights)
            rows += block.X.shape[0]
        return rows

    def check_labels(self, y: FloatArray, weights: FloatArray | None) -> None:
        """Raise DomainError for labels or weights that are refused."""
        xp = namespace_of(y)
        if not bool(xp.all(self.loss.labels.contains(y))):
            raise DomainError(
                f"`y` has labels outside {self.loss.labels}, the set that {type(self.loss).__name__} "
                "accepts. Recode them."
            )
        if weights is not None and not bool(xp.all((weights >= 0.0) & (weights <= self.max_weight))):
            raise DomainError(f"weights must be from 0 to the plan's max_weight={self.max_weight:g}.")
