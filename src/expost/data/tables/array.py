"""A table over a NumPy matrix of any real dtype and memory order."""

from typing import Any

from numpy.typing import NDArray

from expost.data.tables.base import Table


class ArrayTable(Table):
    """A matrix held in memory; its blocks are views."""

    def __init__(self, matrix: NDArray[Any]) -> None:
        self._matrix = matrix
        self.n_rows, self.n_features = matrix.shape

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """A view of the rows."""
        return self._matrix[start:stop]
