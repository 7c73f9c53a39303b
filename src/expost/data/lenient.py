"""Read what can be read of a file that may have broken lines, and say which lines those are."""

import codecs
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expost.data.arrow_memory import returning_memory
from expost.data.dialect import Dialect
from expost.data.files import ARROW_ERRORS, CSV_BYTES, FilePiece
from expost.exceptions import ExpostError

if TYPE_CHECKING:
    import pyarrow

NOT_TEXT = "\ufffd"
"""What stands for bytes that are no text in the declared encoding."""
_LONGEST_TEXT = 200


class _AsUtf8(io.RawIOBase):
    """The bytes of a text file as UTF-8, with :data:`NOT_TEXT` for what its encoding does not have."""

    def __init__(self, path: Path, codec: str) -> None:
        self._file = open(path, "rb")  # noqa: SIM115  # closed by `close`
        self._decoder = codecs.getincrementaldecoder(codec)(errors="replace")
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while len(self._rest) < size:
            raw = self._file.read(size)
            self._rest += self._decoder.decode(raw, final=not raw).encode()
            if not raw:
                break
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def close(self) -> None:
        self._file.close()
        super().close()


@dataclass
class LenientReader:
    """Reads columns of the pieces of one file, and remembers lines that it had to leave out; private.

    Records are counted from 1 through the file, those that are left out included.
    """

    path: Path
    dialect: Dialect
    last: int = 0
    """The last record that was read."""
    uneven: list[tuple[int, str]] = field(default_factory=list)
    """Records whose lines have another number of cells than there are names, with their texts."""
    skipped: list[int] = field(default_factory=list)
    """The numbers of those that come after the last record that was read."""
    broken: bool = False
    """Whether something could not be read at all, and what follows it in the file neither."""

    def batches(
        self,
        piece: FilePiece,
        columns: list[str],
        length: int,
        seen: Callable[[int, float], None] | None = None,
    ) -> "Iterator[tuple[NDArray[np.int64], pyarrow.RecordBatch]]":
        """The records that are read, by their numbers, and their columns; a few at a time.

        ``seen`` is told how many rows were read more, and which share of the piece was read by then.
        """
        opened = self._open_csv(columns) if piece.row_groups is None else piece.batches(columns, length)
        batches, share = iter(opened), 0.0
        while not self.broken:
            batch = self._following(batches)
            if batch is None:
                break
            share += piece.share_of(batch)
            for start in range(0, max(len(batch), 1), length):
                some = batch.slice(start, length)
                yield self._numbered(len(some)), some
                if seen is not None:
                    seen(len(some), share)

    def taken(self) -> list[tuple[int, str]]:
        """The uneven lines that were found since this was last asked."""
        found, self.uneven = self.uneven, []
        return found

    def _following(self, batches: "Iterator[pyarrow.RecordBatch]") -> "pyarrow.RecordBatch | None":
        try:
            return next(batches, None)
        except MemoryError:
            raise
        except (ExpostError, *ARROW_ERRORS):
            self.broken = True  # Arrow's own errors quote whole lines
        return None

    def _numbered(self, count: int) -> NDArray[np.int64]:
        """The numbers of the next records that could be read."""
        candidates = np.arange(self.last + 1, self.last + 1 + count + len(self.skipped))
        records = np.setdiff1d(candidates, self.skipped)[:count]
        if count:
            self.last = int(records[-1])
            self.skipped = [record for record in self.skipped if record > self.last]
        return records

    def _open_csv(self, columns: list[str]) -> "Iterator[pyarrow.RecordBatch]":
        from pyarrow import PythonFile, csv as arrow_csv, string

        def leave_out(row: Any) -> str:
            # The line of names is the first; lines without anything are not counted.
            self.uneven.append((row.number - 1, row.text[:_LONGEST_TEXT]))
            self.skipped.append(row.number - 1)
            return "skip"

        with returning_memory(), _AsUtf8(self.path, self.dialect.codec) as raw:
            try:
                reader = arrow_csv.open_csv(
                    PythonFile(raw, mode="r"),
                    read_options=arrow_csv.ReadOptions(use_threads=False, block_size=CSV_BYTES),
                    parse_options=arrow_csv.ParseOptions(
                        delimiter=self.dialect.delimiter,
                        newlines_in_values=True,
                        invalid_row_handler=leave_out,
                    ),
                    convert_options=arrow_csv.ConvertOptions(
                        column_types=dict.fromkeys(columns, string()),
                        strings_can_be_null=False,
                        include_columns=columns,
                    ),
                )
            except (ValueError, OSError):
                self.broken = True
                return
            yield from reader
