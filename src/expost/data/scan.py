"""The pass that every table goes through before anything is drawn."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

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
            self.check(block)
            rows += block.X.shape[0]
        return rows

    def check(self, block: Block) -> None:
        """Raise DomainError for a block with anything that is refused."""
        check_finite(block.X)
        if not np.all(self.loss.labels.contains(block.y)):
            raise DomainError(
                f"`y` has labels outside {self.loss.labels}, the set that {type(self.loss).__name__} "
                "accepts. Recode them."
            )
        weights = block.weights
        if weights is not None and not np.all((weights >= 0.0) & (weights <= self.max_weight)):
            raise DomainError(f"weights must be from 0 to the plan's max_weight={self.max_weight:g}.")
