"""Tables that are read piece by piece: what they promise, and Dask's frames."""

import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from expost._common.namespaces import Space
from expost._common.progress import Watch
from expost.data.dialect import PLAIN, Dialect
from expost.data.values import converted
from expost.engines.base import LOCAL, Engine
from expost.exceptions import DomainError

EMPTY = "empty"
"""The kind of a column that has no value in a file, and so no type."""
UNREADABLE = "unreadable"
"""The kind of a column whose cells are lists or other parts, which are never read."""


class Run(NamedTuple):
    """Records that follow each other in a piece; private."""

    batch: Any
    """Arrow's batch, or what has columns and can be cut as one."""
    left_out: Sequence[tuple[int, str]] = ()
    """Those with more or fewer cells than there are names: their places in it, from 1, and their texts."""
    quote: int | None = None
    """The first line up to here with a quote that is closed in the middle of a cell, if there is one."""


Seen = Callable[[int, float], None]
"""Is called with the number of rows that were read more, and the share of the piece that was read by then."""


class Piece(ABC):
    """Some rows of a table, read as columns where the work is done; it can be pickled."""

    path: Path | None = None
    bytes: int = 0
    """About how much memory the rows take; 0 where that is not known before they are read."""
    rows: int | None = None
    """How many there are, where that is known before they are read."""
    stamp: tuple[int, ...] | None = None
    """What a reader makes sure of before and after it reads; None where only the rows themselves tell."""

    @abstractmethod
    def runs(self, columns: list[str], length: int, *, lenient: bool = False) -> Iterator[Run]:
        """The columns of the rows, about ``length`` at a time, or an error that quotes nothing of them.

        With ``lenient``, uneven lines of CSV are left out, and characters that are none are replaced.
        """

    def share_of(self, batch: Any) -> float:
        """About which share of the piece a batch is."""
        return len(batch) / self.rows if self.rows else 0.0

    def batches(self, columns: list[str], length: int, seen: Seen | None = None) -> Iterator[Any]:
        """The columns of the rows, in batches of at most ``length`` rows."""
        share = 0.0
        for batch, *_ in self.runs(columns, length):
            share += self.share_of(batch)
            for start in range(0, len(batch), length):
                some = batch.slice(start, length)
                yield some
                if seen is not None:
                    seen(len(some), share)


class PieceShares:
    """The shares of pieces that were read, as one share of all of them; as private as a watch."""

    def __init__(self, pieces: Sequence[Piece], watch: Watch) -> None:
        self._watch, self._lock, self._done = watch, Lock(), 0.0
        self._whole = sum(piece.bytes for piece in pieces) or 1
        rows = [piece.rows for piece in pieces if piece.rows is not None]
        watch.begin(sum(rows) if len(rows) == len(pieces) else None)

    def of(self, piece: Piece) -> Seen:
        """What is called as a piece is read."""
        before = 0.0

        def seen(rows: int, share: float) -> None:
            nonlocal before
            share = min(share, 1.0)
            with self._lock:
                self._done += (share - before) * piece.bytes / self._whole
            before = share
            self._watch.seen(rows, None if self._watch.total else self._done)

        return seen


@dataclass(frozen=True, kw_only=True)
class LazyTable(ABC):
    """A table of which names and types of columns are known, and no value.

    Privacy
    -------
    Public. The rows, which are read when they are needed, are private.
    """

    kinds: Mapping[str, str | None]
    """Each column and its kind, ``"number"``, ``"category"``, ``"yes_no"``, ``"date"`` or, without a value,
    ``"empty"``; None where cells are texts whose types only a domain knows, as in CSV."""
    engine: Engine = LOCAL
    device: Space | None = None
    """Where rows are sent to be worked on, if they are."""
    paths: tuple[Path, ...] = ()
    dialect: Dialect = PLAIN

    @property
    def has_types(self) -> bool:
        """Whether columns have types, so that numbers need no domain."""
        return None not in self.kinds.values()

    def check_columns(self, names: Iterable[str]) -> None:
        """Refuse a table of which some piece is known to lack a column, or to have another type in it."""
        return  # only files know before they are read

    @abstractmethod
    def pieces(self) -> Sequence[Piece]:
        """The pieces, in the order of their rows."""


def empty_error() -> DomainError:
    """The error for a table without records; the caller raises it."""
    return DomainError("the table must have at least one row; got an empty one.")


def changed_error() -> DomainError:
    """The error for rows that are others than before; the caller raises it."""
    return DomainError(
        "the table changed while it was in use. Let nobody write to it during a fit, and give no frame whose "
        "partitions are drawn or read anew each time; persist it first."
    )


def kind_of(kind: Any) -> str:
    """What a column of a type of Arrow's can be in a domain."""
    from pyarrow import types

    tests = {
        EMPTY: (types.is_null,),
        "yes_no": (types.is_boolean,),
        "date": (types.is_date, types.is_timestamp),
        UNREADABLE: (types.is_nested, types.is_fixed_size_binary),
        "number": (types.is_integer, types.is_floating, types.is_decimal),
    }
    return next(
        (name for name, every in tests.items() if any(is_kind(kind) for is_kind in every)), "category"
    )


def with_series(frame: Any, given: Mapping[str, Any], label: str | None) -> Iterator[Any]:
    """A frame with what is given as Series as columns of it, and then the names of these columns.

    Rows are paired by their places, and never by an index. A domain names the labels' column ``label``.
    """
    names = []
    for role, series in given.items():
        own = label if role == "y" and label is not None else f"{role} (expost)"
        frame, name = _with_column(frame, series, role, own)
        names.append(name)
    yield frame
    yield from names


def _with_column(frame: Any, series: Any, role: str, name: str) -> tuple[Any, Any]:
    from dask.dataframe import Series, map_partitions

    if not isinstance(series, Series):
        return frame, series
    refusal = (
        f"`{role}` must have as many rows as `X` in every partition. Put it into a column of the frame, and "
        "name the column."
    )
    if frame.npartitions != series.npartitions:
        raise DomainError(refusal)

    def joined(part: Any, values: Any) -> Any:
        if len(part) != len(values):
            raise DomainError(refusal)
        return part.assign(**{name: values.array})

    meta = joined(frame.head(0, npartitions=-1, compute=False)._meta, series._meta)
    return map_partitions(joined, frame, series, meta=meta, align_dataframes=False), name


@dataclass(frozen=True, kw_only=True)
class DaskTable(LazyTable):
    """A Dask DataFrame; a piece for each of its partitions, computed anew in every pass."""

    frame: Any

    @classmethod
    def of(cls, frame: Any, engine: Engine) -> "DaskTable":
        """The table of a frame whose columns are named by different texts."""
        names = list(frame.columns)
        if len(set(names)) < len(names) or not all(isinstance(name, str) and name for name in names):
            raise DomainError("the columns of a Dask frame must be named by different texts; rename them.")
        kinds = {name: _kind(dtype) for name, dtype in frame.dtypes.items()}
        return cls(frame=frame, kinds=kinds, engine=engine)

    def pieces(self) -> "list[_Partition]":
        """The partitions."""
        from dask.local import get_sync
        from dask.optimization import cull

        # One that shares no task with the others is computed inside the pass: what goes wrong there stays
        # there. Others, of a frame that was persisted or shuffled, are computed by Dask's scheduler.
        delayed = self.frame.to_delayed()
        whole = dict(delayed[0].dask) if delayed else {}  # all have the graph of the whole frame
        graphs = [cull(whole, [one.key])[0] for one in delayed]
        uses = Counter(chain.from_iterable(graphs))
        futures = getattr(sys.modules.get("distributed"), "Future", ())
        pieces = []
        for one, graph in zip(delayed, graphs, strict=True):
            values = (getattr(node, "value", node) for node in graph.values())
            shared = any(uses[key] > 1 for key in graph) or any(isinstance(x, futures) for x in values)
            # Dask looks for tasks in lists and dataclasses, and not in what is called.
            pieces.append(_Partition(one if shared else partial(get_sync, graph, one.key), self.kinds))
        return pieces


@dataclass(frozen=True, eq=False, repr=False)
class _Partition(Piece):
    """One partition of a Dask frame, without a stamp: it can be another one each time; private."""

    frame: Any
    """A frame of pandas, or what computes one. On a cluster Dask puts the frame here before the pass."""
    kinds: Mapping[str, str | None]

    def runs(self, columns: list[str], length: int, *, lenient: bool = False) -> Iterator[Run]:
        frame = converted(
            self._computed,
            "a partition of the Dask frame cannot be computed. Compute it by itself to see why: the "
            "error may quote records, so it is not repeated here.",
        )
        if isinstance(frame, DomainError):
            raise DomainError(str(frame))
        for name in columns:
            if name not in frame.columns:
                raise DomainError(
                    f"a partition of the Dask frame lacks the column {name!r}. Add or rename it."
                )
            if _kind(frame.dtypes[name]) != self.kinds[name]:
                raise DomainError(
                    f"the column {name!r} has one type in the Dask frame and another in a partition. "
                    "Convert it to one type."
                )
        for start in range(0, len(frame), length):
            some = partial(_batches, frame, columns, slice(start, start + length))
            refusal = "a column of the Dask frame must hold one plain type: numbers, texts or booleans."
            yield from map(Run, converted(some, refusal))

    def _computed(self) -> Any:
        """The frame, or an error of this library's."""
        try:
            if isinstance(self.frame, partial):
                return self.frame()
            return self.frame.compute(scheduler="synchronous") if hasattr(self.frame, "dask") else self.frame
        except DomainError as error:
            return error


def _batches(frame: Any, columns: list[str], rows: slice) -> Any:
    import pyarrow

    whole = pyarrow.Table.from_pandas(frame.iloc[rows][columns], preserve_index=False, nthreads=1)
    return whole.combine_chunks().to_batches()


def _kind(dtype: Any) -> str:
    from pandas.api import types

    if types.is_bool_dtype(dtype):
        return "yes_no"
    return "number" if types.is_numeric_dtype(dtype) else "category"
