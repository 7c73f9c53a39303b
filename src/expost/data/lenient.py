"""Read what can be read of a file that may have broken lines, and say which lines those are."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from expost.data.arrow_memory import returning_memory
from expost.data.csv_blocks import Run
from expost.data.file_schema import unclosed_quote
from expost.data.files import FilePiece
from expost.data.lazy import Piece
from expost.exceptions import ExpostError

if TYPE_CHECKING:
    import pyarrow

NOT_TEXT = "\ufffd"
"""What stands for bytes that are no text in the declared encoding."""


@dataclass
class LenientReader:
    """Reads columns of the pieces of one file or frame, and remembers lines that it left out; private.

    Records are counted from 1 through the file, those that are left out included.
    """

    last: int = 0
    """The last record that was read."""
    uneven: list[tuple[int, str]] = field(default_factory=list)
    """Records whose lines have another number of cells than there are names, with their texts."""
    broken: str = ""
    """Why something could not be read, and what follows it in the file neither; a public sentence."""

    def batches(
        self,
        piece: Piece,
        columns: list[str],
        length: int,
        seen: Callable[[int, float], None] | None = None,
    ) -> "Iterator[tuple[NDArray[np.int64], pyarrow.RecordBatch]]":
        """The records that are read, by their numbers, and their columns; a few at a time.

        ``seen`` is told how many rows were read more, and which share of the piece was read by then.
        """
        share = 0.0
        with returning_memory():
            runs = _runs(piece, columns, length)
            while not self.broken and (run := self._following(runs)) is not None:
                share += piece.share_of(run.batch) if isinstance(piece, FilePiece) else 0.0
                records = self._numbered(run)
                for start in range(0, max(len(records), 1), length):
                    some = run.batch.slice(start, length)
                    yield records[start : start + length], some
                    if seen is not None:
                        seen(len(some), share)

    def taken(self) -> list[tuple[int, str]]:
        """The uneven lines that were found since this was last asked."""
        found, self.uneven = self.uneven, []
        return found

    def _following(self, runs: Iterator[Run]) -> Run | None:
        try:
            return next(runs, None)
        except ExpostError as error:  # its sentence quotes nothing
            self.broken = str(error)
        return None

    def _numbered(self, run: Run) -> NDArray[np.int64]:
        """The numbers of the records in a run."""
        first, places = self.last + 1, [place for place, _ in run.left_out]
        self.last += len(run.batch) + len(places)
        self.uneven += [(first + place - 1, text) for place, text in run.left_out]
        return np.delete(np.arange(first, self.last + 1), np.array(places, dtype=np.int64) - 1)


def _runs(piece: Piece, columns: list[str], length: int) -> Iterator[Run]:
    if not isinstance(piece, FilePiece):
        yield from (Run(batch, []) for batch in piece.batches(columns, length))
        return
    for run in piece.runs(columns, length, lenient=True):
        yield run
        if run.left_out and run.quote is not None:  # nobody knows which cells follow it
            raise unclosed_quote(piece.path, run.quote)
