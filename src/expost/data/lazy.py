"""Tables that are read piece by piece: named columns whose values stay where they are until a pass."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from expost._common.namespaces import Space
from expost.data.dialect import PLAIN, Dialect
from expost.engines.base import LOCAL, Engine
from expost.exceptions import DomainError

if TYPE_CHECKING:
    import pyarrow


class Piece(Protocol):
    """Some rows of a table, read as columns where the work is done; it can be pickled."""

    def batches(self, columns: list[str], length: int) -> "Iterator[pyarrow.RecordBatch]":
        """The columns of the rows, in batches of at most ``length`` rows.

        Raises
        ------
        FileError, DomainError
            If the rows cannot be read. The error quotes nothing of them.
        """
        ...

    @property
    def bytes(self) -> int:
        """About how much memory the rows take; 0 where that is not known before they are read."""
        ...

    @property
    def stamp(self) -> tuple[int, ...] | None:
        """What a reader makes sure of before and after it reads; None where only the rows themselves tell."""
        ...


@dataclass(frozen=True, kw_only=True)
class LazyTable(ABC):
    """A table of which names and types of columns are known, and no value.

    Parameters
    ----------
    kinds
        Each column and its kind, ``"number"``, ``"category"``, ``"yes_no"``, ``"date"`` or, without a value,
        ``"empty"``;
        None where cells are texts whose types only a domain knows, as in CSV.
    engine
        Where passes over the rows are run.
    device
        Where rows are sent to be worked on, if they are.

    Privacy
    -------
    Public. The rows, which are read when they are needed, are private.
    """

    kinds: Mapping[str, str | None]
    engine: Engine = LOCAL
    device: Space | None = None
    paths: tuple[Path, ...] = ()
    """The files that it is in, if any."""
    dialect: Dialect = PLAIN
    """How its files are written."""

    @property
    def has_types(self) -> bool:
        """Whether columns have types, so that numbers need no domain."""
        return None not in self.kinds.values()

    @abstractmethod
    def check_columns(self, names: Iterable[str]) -> None:
        """Refuse a table of which some piece is known to lack a column, or to have another type in it."""

    @abstractmethod
    def pieces(self) -> Sequence[Piece]:
        """The pieces, in the order of their rows."""


def changed_error() -> DomainError:
    """The error for rows that are others than before; the caller raises it."""
    return DomainError(
        "the table changed while it was in use. Let nobody write to it during a fit, and give no frame whose "
        "partitions are drawn or read anew each time; persist it first."
    )
