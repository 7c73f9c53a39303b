"""How much of a table's files was read, told to a watch while several pieces are read at once."""

from collections.abc import Callable, Sequence
from threading import Lock

from expost._common.progress import Watch
from expost.data.files import FilePiece
from expost.data.lazy import Piece


class PieceShares:
    """The shares of pieces that were read, as one share of all of them.

    Privacy
    -------
    Private, as what a watch counts is.
    """

    def __init__(self, pieces: Sequence[Piece], watch: Watch) -> None:
        self._watch = watch
        self._lock = Lock()
        self._done = 0.0
        self._whole = sum(piece.bytes for piece in pieces) or 1
        rows = [piece.rows for piece in pieces if isinstance(piece, FilePiece) and piece.rows is not None]
        watch.begin(sum(rows) if len(rows) == len(pieces) else None)

    def of(self, piece: Piece) -> Callable[[int, float], None]:
        """What is told how many more rows of a piece were read, and which share of it was read by then."""
        before = 0.0

        def seen(rows: int, share: float) -> None:
            nonlocal before
            share = min(share, 1.0)
            with self._lock:
                self._done += (share - before) * piece.bytes / self._whole
            before = share
            self._watch.seen(rows, None if self._watch.total else self._done)

        return seen
