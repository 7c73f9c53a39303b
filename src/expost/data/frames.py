"""Data frames in the library that the records came in."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import narwhals.stable.v1 as nw

from expost._common.choices import LibraryName
from expost._common.typing import FloatArray
from expost._common.validation import check_choice, parameter_error

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
