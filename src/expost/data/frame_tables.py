"""Data frames as blocks of rows, and figures as frames of the library that the records came in."""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from expost._common.typing import FloatArray
from expost._common.validation import LibraryName, check_choice, parameter_error
from expost.data.blocks import ArrayTable, ColumnRows, SparseTable, Table
from expost.data.values import untold
from expost.exceptions import DomainError

# The libraries that frames can be made in; the first is for records that came in no frame.
LIBRARIES = ("pandas", "polars", "pyarrow", "modin", "cudf")


@dataclass(frozen=True)
class FrameKind:
    """The library of a data frame, and its index where the library has one."""

    library: str = LIBRARIES[0]
    index: Any = None

    @classmethod
    def of(cls, records: Any) -> Self:
        """The kind of the frame that records came in; pandas for arrays, lists and mappings of columns."""
        if not nw.dependencies.is_into_dataframe(records):
            return cls()
        frame = nw.from_native(records, eager_only=True)
        return cls(str(frame.implementation), nw.maybe_get_index(frame))

    def in_library(self, library: LibraryName | None) -> Self:
        """The same kind in another library; None is the library that the records came in."""
        if library is None or library == self.library:
            return self
        return replace(self, library=check_choice("library", library, LIBRARIES), index=None)

    def frame(self, columns: Mapping[str, FloatArray | Sequence[Any]]) -> Any:
        """A frame with these columns, whose rows are labelled as those of the records were."""
        made = None
        with suppress(ImportError):
            made = nw.from_dict(columns, backend=self.library)  # type: ignore[arg-type]
        if made is None:
            raise parameter_error("library", "installed", self.library, "Install it, or name another.")
        frame = made.to_native()
        if self.index is not None:
            frame.index = self.index
        return frame


# What gives the rows of a LazyFrame, of a reader or of a set of files; a table in memory has none of them.
_LATER = ("collect", "read_all", "to_table", "read")


def check_at_hand(X: Any) -> None:
    """Refuse what has rows but gives them later, once or one by one, in a sentence that names the way.

    Privacy
    -------
    Public: the error names the type of ``X``.
    """
    got, way = type(X).__name__, None
    if isinstance(X, Sequence) and len(X) and isinstance(X[0], Mapping):
        got, way = "list of records", "Make a frame of it first: pandas.DataFrame(X)"
    elif isinstance(X, np.ndarray) and X.dtype.names is not None:
        got, way = "structured array", "Make a frame of it first: pandas.DataFrame(X)"
    elif got == "RecordBatch":
        way = "Make a table of it first: pyarrow.Table.from_batches([X])"
    elif isinstance(X, io.IOBase):
        way = "Give its path"
    elif not (nw.dependencies.is_into_dataframe(X) or nw.dependencies.is_dask_dataframe(X)):
        found = next((name for name in _LATER if hasattr(X, name)), None)
        if found is not None:
            way = f"Call {found}() first, or give the path of its file"
        elif isinstance(X, Iterator):
            way = "Read all of it into a frame first, or give the path of its file"
    if way is not None:
        raise DomainError(f"`X` must be a table in memory or in files; got a {got}. {way}.")


def open_frame(frame: Any) -> "nw.DataFrame[Any]":
    """Open a data frame of any library whose columns have different names, all of one kind."""
    opened: nw.DataFrame[Any] | None = None
    names: list[Any] = []
    with untold():
        # pyarrow calls its columns themselves `columns`.
        names = list(getattr(frame, "column_names", frame.columns))
        opened = nw.from_native(frame, eager_only=True)
        opened.schema  # noqa: B018  # some libraries find out only here what they cannot read
    if len(set(names)) < len(names):
        raise DomainError("the columns of `X` must have different names; rename those that have one name.")
    if len({isinstance(name, str) for name in names}) > 1:
        raise DomainError("the columns of `X` must be named by texts only; got other names too. Rename them.")
    if opened is None:
        raise DomainError("`X` must be a data frame with plain columns of numbers, texts or booleans.")
    return opened


def columns_of(frame: Any) -> dict[str, Any]:
    """The columns of a frame, or of a mapping, by their names: Arrow's where they can be, else NumPy's."""
    if isinstance(frame, Mapping):
        columns = {name: _plain_column(name, column) for name, column in frame.items()}
    elif nw.dependencies.is_into_dataframe(frame):
        opened = open_frame(frame)
        columns = {name: _plain_column(name, opened[name]) for name in opened.columns}
    else:
        raise DomainError("the table must be files, a data frame with named columns, or a mapping of them.")
    if len({len(column) for column in columns.values()}) > 1:
        raise DomainError("the columns of the table must have one length.")
    return columns


def _plain_column(name: Any, column: Any) -> Any:
    if not isinstance(name, str):
        raise DomainError("the columns of the table must be named by texts; got other names. Rename them.")
    cells: Any = None
    with untold():
        cells = column.to_numpy() if isinstance(column, nw.Series) else np.asarray(column)
    if isinstance(column, nw.Series):
        with untold():  # libraries differ in what they can give to Arrow
            cells = column.to_arrow()
    if cells is None or getattr(cells, "ndim", 1) != 1:
        raise DomainError(f"`{name}` must be one column with one value per record.")
    return cells


class FrameTable(Table):
    """A pandas, polars or pyarrow data frame, whose columns are read where they lie, one block at a time.

    Columns with missing values, and those that do not lie as plain numbers in one piece, are converted block
    by block. Missing values turn into NaN, which the design matrix refuses.
    """

    def __init__(self, frame: Any) -> None:
        self._frame = open_frame(frame)
        for name, dtype in self._frame.schema.items():
            if not (dtype.is_numeric() or dtype == nw.Boolean):
                raise DomainError(
                    f"`X` must hold numbers only; column {name!r} has type {dtype}. "
                    "Encode it as numbers, or leave the column out."
                )
        self.n_rows, self.n_features = self._frame.shape
        self._columns = [self._frame[name] for name in self._frame.columns]
        self._views = [column_view(column) for column in self._columns]

    def rows(self, start: int, stop: int) -> ColumnRows:
        """The rows of the block, column by column."""
        return ColumnRows(
            [
                _converted(column, start, stop) if view is None else view[start:stop]
                for column, view in zip(self._columns, self._views, strict=True)
            ]
        )


def column_view(column: "nw.Series[Any]") -> NDArray[Any] | None:
    """The numbers of a column where they lie, or None where it has missing ones or others must be made."""
    native, library = column.to_native(), column.implementation
    view: NDArray[Any] | None = None
    with untold():  # a library refuses what it cannot show without a copy
        if library.is_polars():
            view = native.to_numpy(allow_copy=False)
        elif library.is_pyarrow():
            view = _arrow_view(native)
        elif library.is_pandas() and isinstance(native.dtype, np.dtype):
            view = native.to_numpy()
        elif library.is_pandas() and hasattr(native.dtype, "pyarrow_dtype"):
            view = _arrow_view(native.array.__arrow_array__())
    return view if view is not None and view.dtype.kind in "fiub" else None


def _arrow_view(column: Any) -> NDArray[Any] | None:
    if column.num_chunks != 1:
        return None
    view: NDArray[Any] = column.chunk(0).to_numpy(zero_copy_only=True)
    return view


def _converted(column: "nw.Series[Any]", start: int, stop: int) -> NDArray[Any]:
    """The cells of a block of a column as numbers, NaN where they are missing."""
    cells: NDArray[Any] | None = None
    with untold():  # each library has its own errors, and some quote cells
        if column.implementation.is_pandas():
            made = column.to_native().array[start:stop].to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            made = column[start:stop].to_numpy()
        cells = made if made.dtype.kind in "fiub" else made.astype(np.float64)
    if cells is None:
        raise DomainError("`X` must hold numbers only; convert its columns to floats and fill missing cells.")
    return cells


class SparseFrameTable(Table):
    """A pandas frame with dense and sparse columns, or with sparse ones that are not empty at zero."""

    def __init__(self, frame: Any) -> None:
        others = [not _is_sparse(dtype) for dtype in frame.dtypes]
        if any(others):
            FrameTable(frame.loc[:, others])  # refuses texts
        for name, dtype in frame.dtypes.items():
            if _is_sparse(dtype) and dtype.subtype.kind not in "fiub":
                raise DomainError(
                    f"`X` must hold numbers only; column {name!r} has type {dtype}. "
                    "Encode it as numbers, or leave the column out."
                )
        self._frame = frame
        self.n_rows, self.n_features = frame.shape

    def rows(self, start: int, stop: int) -> FloatArray:
        """The rows of the block, made dense."""
        block: FloatArray | None = None
        with untold():
            block = self._frame.iloc[start:stop].to_numpy(dtype=np.float64)
        if block is None:
            raise DomainError(
                "`X` must hold numbers only; convert its columns to floats and fill missing cells."
            )
        return block


def frame_table(frame: Any) -> Table:
    """A frame as a table; one whose columns are all sparse and empty where they are zero stays sparse."""
    pandas = nw.dependencies.is_pandas_dataframe(frame)
    if not pandas or not any(_is_sparse(dtype) for dtype in frame.dtypes):
        table = FrameTable(frame)  # refuses what is not a number
        numbers = _one_matrix(frame) if pandas else None
        return table if numbers is None else ArrayTable(numbers)
    open_frame(frame)  # refuses names that are not those of columns
    matrix: Any = None
    with untold():  # pandas refuses columns that are dense, or not empty where they are zero
        matrix = frame.sparse.to_coo()
    return SparseFrameTable(frame) if matrix is None else SparseTable(matrix)


def _one_matrix(frame: Any) -> NDArray[Any] | None:
    """The matrix that a pandas frame of one type was made from, where it was, without a copy."""
    matrix: NDArray[Any] | None = None
    with untold():
        head = frame.iloc[:1]
        if head.size and np.shares_memory(head.to_numpy(), head.iloc[:, 0].to_numpy()):
            matrix = frame.to_numpy()
    return matrix if matrix is not None and matrix.dtype.kind in "fiub" else None


def _is_sparse(dtype: Any) -> bool:
    return str(dtype).startswith("Sparse[")
