"""A table over a pandas, polars or pyarrow data frame."""

from contextlib import suppress
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from expost.data.tables.base import Table
from expost.exceptions import DomainError


class FrameTable(Table):
    """A data frame whose rows become a matrix one block at a time.

    Missing values turn into NaN, which the design matrix refuses.
    """

    def __init__(self, frame: Any) -> None:
        self._frame = nw.from_native(frame, eager_only=True)
        for name, dtype in self._frame.schema.items():
            if not (dtype.is_numeric() or dtype == nw.Boolean):
                raise DomainError(
                    f"`X` must hold numbers only; column {name!r} has type {dtype}. "
                    "Encode it as numbers, or leave the column out."
                )
        self.n_rows, self.n_features = self._frame.shape

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """The rows of the block, brought together from the columns."""
        block: NDArray[Any] | None = None
        with suppress(Exception):  # each library has its own errors, and some quote cells
            cells: NDArray[Any] = self._frame[start:stop].to_numpy()
            block = cells if cells.dtype.kind in "fiub" else cells.astype(np.float64)
        if block is None:
            raise DomainError(
                "`X` must hold numbers only; convert its columns to floats, missing cells filled."
            )
        return block
