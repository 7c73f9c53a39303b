"""What the library needs of a table: its shape and its rows, a block at a time."""

from abc import ABC, abstractmethod
from typing import Any

from numpy.typing import NDArray


class Table(ABC):
    """Rows of numbers that are read in blocks and never copied whole.

    Privacy
    -------
    A table is private. Its number of features is public; its number of rows is not.
    """

    n_rows: int
    n_features: int

    @abstractmethod
    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Rows ``start`` to ``stop`` as a matrix of any real dtype; a view wherever one exists."""
