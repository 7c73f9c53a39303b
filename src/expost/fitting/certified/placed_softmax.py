"""The gradient of the softmax objective in more than double precision where the rows lie."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from expost._common.namespaces import Space, on_host
from expost.data.blocks import Block
from expost.data.placed import short_blocks
from expost.fitting.certified.pairs import Pair
from expost.fitting.certified.placed_residual import Slicing, group_count, squares
from expost.fitting.certified.residual import Partial
from expost.fitting.certified.softmax_residual import SoftmaxPass
from expost.fitting.certified.softmax_slopes import softmax_slopes

# Numbers that are held for each row, for every class and for every pair of classes.
_PER_CLASS, _PER_PAIR = 40, 6


@dataclass(frozen=True, eq=False, repr=False)
class PlacedSoftmax(SoftmaxPass):
    """A :class:`SoftmaxPass` that is also run where the rows lie, if sums are exact there.

    As :class:`~expost.fitting.certified.placed_residual.PlacedResidual`, with all classes in one product.
    """

    def in_place(self, blocks: Iterator[Block], space: Space) -> Partial:
        """Add up over the blocks, in the classes' coordinates; sums stay on the device until the end."""
        xp, cut = space.xp, Slicing(list(self._passes), space)
        classes, columns = self.loss.classes, self._columns
        pairs = classes * (classes - 1) // 2
        zero = np.zeros((classes, columns))
        sums = Partial((zero, zero.copy()))
        total: Pair = (space.zeros(classes, columns), space.zeros(classes, columns))
        hessians = [space.zeros(columns, columns) for _ in range(pairs if self.hessian else 0)]
        for placed, labels, weights in short_blocks(
            blocks, cut.numbers + _PER_CLASS * classes + _PER_PAIR * pairs
        ):
            rows, parts = cut.sliced(placed)
            found = softmax_slopes(self.loss, cut.predictors(parts), labels, weights)
            high, low = (xp.stack([pair[i] for pair in found.gradient]) for i in (0, 1))
            # The trace of a pair of classes is twice its weight.
            total = cut.collect(sums, total, (high, low), parts, (2.0 * found.weights, found.absolute))
            sums.per_curvature = max(sums.per_curvature, found.per_curvature)
            del parts, high, low
            for pair, hessian in enumerate(hessians):
                hessian += squares(rows, found.weights[:, pair], xp, intercept=placed.intercept)
            if hessians:
                sums.additions += group_count(rows)
        sums.total = on_host(total[0]), on_host(total[1])
        if hessians:
            sums.hessian = np.stack([on_host(hessian) for hessian in hessians])
        return sums
