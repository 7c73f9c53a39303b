"""Dask frames as tables that are read one partition at a time."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from expost.data.lazy import LazyTable
from expost.data.values import untold
from expost.engines.base import Engine
from expost.exceptions import DomainError

if TYPE_CHECKING:
    import pyarrow


def is_dask_frame(X: Any) -> bool:
    """Whether ``X`` is a Dask DataFrame."""
    frames = sys.modules.get("dask.dataframe")  # who has one has imported it
    return frames is not None and isinstance(X, frames.DataFrame)


def is_dask_series(y: Any) -> bool:
    """Whether ``y`` is a Dask Series."""
    frames = sys.modules.get("dask.dataframe")
    return frames is not None and isinstance(y, frames.Series)


def beside(frame: Any, series: Any, role: str, name: str) -> tuple[Any, str]:
    """A frame with a Series of as many rows in each partition as one more column, and the column's name."""
    from dask.dataframe import map_partitions

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

    def check_columns(self, names: Iterable[str]) -> None:
        """Nothing is known of single partitions before they are computed."""

    def pieces(self) -> "list[Partition]":
        """The partitions.

        One that shares no task with the others is computed inside the pass: what goes wrong there stays
        there. Others, of a frame that was persisted or shuffled, are computed by Dask's scheduler.
        """
        from dask.optimization import cull

        delayed = self.frame.to_delayed()
        whole = dict(delayed[0].dask) if delayed else {}  # all have the graph of the whole frame
        graphs = [cull(whole, [one.key])[0] for one in delayed]
        uses = Counter(key for graph in graphs for key in graph)
        pieces = []
        for one, graph in zip(delayed, graphs, strict=True):
            alone = all(uses[key] == 1 for key in graph) and not any(map(_is_future, graph.values()))
            pieces.append(Partition(Deferred(graph, one.key) if alone else one, self.kinds))
        return pieces


class Deferred:
    """A partition that is computed where it is asked for.

    No dataclass: Dask would look for tasks in its fields.
    """

    def __init__(self, graph: Mapping[Any, Any], key: Any) -> None:
        self._graph, self._key = graph, key

    def compute(self) -> Any:
        """The partition as a frame of pandas."""
        from dask.local import get_sync

        return get_sync(self._graph, self._key)


@dataclass(frozen=True, eq=False, repr=False)
class Partition:
    """One partition of a Dask frame; private."""

    frame: Any
    """A frame of pandas, or what computes one. On a cluster Dask puts the frame here before the pass."""
    kinds: Mapping[str, str | None]
    bytes: int = 0
    stamp: None = None
    """There is none: a lazy frame can be another one each time that it is computed."""

    def batches(self, columns: list[str], length: int) -> "Iterator[pyarrow.RecordBatch]":
        """The columns of the partition's rows."""
        import pyarrow

        frame = refusal = None
        with untold():  # whatever is raised in the frame's own tasks may quote cells
            try:
                frame = self._computed()
            except DomainError as error:  # ours
                refusal = str(error)
        if refusal is not None:
            raise DomainError(refusal)
        if frame is None:
            raise DomainError(
                "a partition of the Dask frame cannot be computed. Compute it by itself to see why: the "
                "error may quote records, so it is not repeated here."
            )
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
            batches = None
            with untold():
                some = frame.iloc[start : start + length][columns]
                whole = pyarrow.Table.from_pandas(some, preserve_index=False, nthreads=1)
                batches = whole.combine_chunks().to_batches()
            if batches is None:
                raise DomainError(
                    "a column of the Dask frame must hold one plain type: numbers, texts or booleans."
                )
            yield from batches

    def _computed(self) -> Any:
        if isinstance(self.frame, Deferred):
            return self.frame.compute()
        if hasattr(self.frame, "dask"):
            return self.frame.compute(scheduler="synchronous")
        return self.frame


def _kind(dtype: Any) -> str:
    from pandas.api import types

    if types.is_bool_dtype(dtype):
        return "yes_no"
    return "number" if types.is_numeric_dtype(dtype) else "category"


def _is_future(node: Any) -> bool:
    distributed = sys.modules.get("distributed")
    return distributed is not None and isinstance(getattr(node, "value", node), distributed.Future)
