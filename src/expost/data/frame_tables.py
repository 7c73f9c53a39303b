"""Data frames as blocks of rows, and figures as frames of the library that the records came in."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from expost._common.typing import FloatArray
from expost._common.validation import LibraryName, check_choice, parameter_error
from expost.data.blocks import ArrayTable, ColumnRows, SparseTable, Table
from expost.data.values import attempted, converted
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
        """The kind in another library; None is the library that the records came in."""
        if library is None or library == self.library:
            return self
        return replace(self, library=check_choice("library", library, LIBRARIES), index=None)

    def frame(self, columns: Mapping[str, FloatArray | Sequence[Any]]) -> Any:
        """A frame with these columns, whose rows are labelled as those of the records were."""
        frame: Any = None
        with suppress(ImportError):
            frame = nw.from_dict(columns, backend=self.library).to_native()  # type: ignore[arg-type]
        if frame is None:
            raise parameter_error("library", "installed", self.library, "Install it, or name another.")
        if self.index is not None:
            frame.index = self.index
        return frame


def open_frame(frame: Any) -> "nw.DataFrame[Any]":
    """Open a data frame of any library whose columns have different names, all of one kind."""
    # pyarrow calls its columns themselves `columns`.
    names = attempted(lambda: list(getattr(frame, "column_names", frame.columns))) or []
    opened: nw.DataFrame[Any] | None = attempted(partial(nw.from_native, frame, eager_only=True))
    if len(set(names)) < len(names):
        raise DomainError("the columns of `X` must have different names; rename those that have one name.")
    if len({isinstance(name, str) for name in names}) > 1:
        raise DomainError("the columns of `X` must be named by texts only; got other names too. Rename them.")
    # Some libraries find out only by the schema what they cannot read.
    if opened is None or attempted(partial(getattr, opened, "schema")) is None:
        raise DomainError("`X` must be a data frame with plain columns of numbers, texts or booleans.")
    return opened


def columns_of(frame: Any) -> dict[str, Any] | None:
    """The columns of a frame, as narwhals has them, or of a mapping; None where it is neither."""
    if isinstance(frame, Mapping):
        return dict(frame)
    if not nw.dependencies.is_into_dataframe(frame):
        return None
    opened = open_frame(frame)
    return {name: opened[name] for name in opened.columns}


def plain_column(name: Any, column: Any, *, numbers: bool = False) -> Any:
    """The cells of a column, Arrow's where they can be; with ``numbers``, NumPy's where they lie as such."""
    frames = isinstance(column, nw.Series)
    cells: Any = attempted(column.to_numpy if frames else partial(np.asarray, column))
    if frames and not (numbers and cells is not None and cells.dtype.kind in "fiub"):
        arrow = attempted(column.to_arrow)  # libraries differ in what they can give to Arrow
        cells = cells if arrow is None else arrow
    if cells is None or getattr(cells, "ndim", 1) != 1:
        raise DomainError(f"`{name}` must be one column with one value per record.")
    return cells


class _FrameTable(Table):
    """A data frame of numbers, whose columns are read where they lie, or converted block by block.

    Missing values turn into NaN, which the design refuses.
    """

    def __init__(self, frame: Any) -> None:
        opened = open_frame(frame)
        self.n_rows, self.n_features = opened.shape
        self._columns = [opened.get_column(name) for name in opened.columns]
        for column in self._columns:
            native: Any = getattr(column.to_native(), "dtype", None)
            dtype: Any = column.dtype
            numbers = dtype.is_numeric() or dtype == nw.Boolean
            if _is_sparse(native):  # as only pandas knows
                dtype, numbers = native, native.subtype.kind in "fiub"
            if not numbers:
                found = f"column {column.name!r} has type {dtype}"
                advice = "Encode it as numbers, declare a `domain`, or leave the column out."
                raise DomainError(f"`X` must hold numbers only; {found}. {advice}")
        # A library refuses what it cannot show without a copy.
        self._views = [attempted(partial(_view, column)) for column in self._columns]

    def rows(self, start: int, stop: int) -> ColumnRows:
        refusal = "`X` must hold numbers only; convert its columns to floats and fill missing cells."
        return ColumnRows(
            [
                converted(partial(_converted, column, start, stop), refusal)
                if view is None
                else view[start:stop]
                for column, view in zip(self._columns, self._views, strict=True)
            ]
        )


def _view(column: "nw.Series[Any]") -> NDArray[Any] | None:
    """The numbers of a column where they lie; None, or an error, where others must be made."""
    native, library = column.to_native(), column.implementation
    view: NDArray[Any] | None = None
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
    return column.chunk(0).to_numpy(zero_copy_only=True) if column.num_chunks == 1 else None


def _converted(column: "nw.Series[Any]", start: int, stop: int) -> NDArray[Any]:
    """The cells of a block of a column as numbers, NaN where they are missing."""
    if column.implementation.is_pandas():
        cells = column.to_native().array[start:stop].to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        cells = column[start:stop].to_numpy()
    return np.asarray(cells if cells.dtype.kind in "fiub" else cells.astype(np.float64))


def frame_table(frame: Any) -> Table:
    """A frame as a table; one whose columns are all sparse and empty where they are zero stays sparse."""
    pandas = nw.dependencies.is_pandas_dataframe(frame)
    if not pandas or not any(_is_sparse(dtype) for dtype in frame.dtypes):
        table = _FrameTable(frame)  # refuses what is not a number
        numbers = attempted(lambda: _one_matrix(frame)) if pandas else None
        return table if numbers is None else ArrayTable(numbers)
    open_frame(frame)  # refuses names that are not those of columns
    # pandas refuses columns that are dense, or not empty where they are zero; they are made dense by blocks.
    matrix = attempted(lambda: frame.sparse.to_coo())
    return _FrameTable(frame) if matrix is None else SparseTable(matrix)


def _one_matrix(frame: Any) -> NDArray[Any] | None:
    """The matrix that a pandas frame of one type was made from, where it was, without a copy."""
    head = frame.iloc[:1]
    if not (head.size and np.shares_memory(head.to_numpy(), head.iloc[:, 0].to_numpy())):
        return None
    matrix: NDArray[Any] = frame.to_numpy()
    return matrix if matrix.dtype.kind in "fiub" else None


def _is_sparse(dtype: Any) -> bool:
    return str(dtype).startswith("Sparse[")
