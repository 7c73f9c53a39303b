"""Convert cells to numbers and texts, and find the missing ones."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._common.typing import FloatArray
from expost._common.validation import numeral
from expost.exceptions import DomainError


class untold:  # noqa: N801  # used like contextlib.suppress
    """Swallow the error of a conversion: its message, or the error itself, may hold a cell.

    Anything can be in a cell, and its own methods can raise anything. The caller finds that nothing was
    converted and raises an error of its own, outside of any handler, so that none is attached to it.
    """

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> bool:
        return kind is not None and issubclass(kind, Exception) and not issubclass(kind, MemoryError)


def as_numbers(values: NDArray[Any], name: str) -> FloatArray:
    """Convert cells to numbers; an empty cell or null becomes NaN."""
    numbers: FloatArray | None = None
    if values.dtype.kind in "fiub":
        numbers = values.astype(np.float64)
    elif values.dtype.kind in "OUS":
        with untold():
            numbers = np.array([math.nan if _missing(value) else _number(value) for value in values.tolist()])
    if numbers is None:
        raise DomainError(f"`{name}` must be a number in every record; got something else.")
    if np.isinf(numbers).any():
        raise DomainError(f"`{name}` must be finite in every record.")
    return numbers


def filled_texts(values: NDArray[Any], name: str, missing: str | None) -> NDArray[Any]:
    """Convert cells to texts; a missing cell becomes the declared default."""
    texts = as_texts(values, name)
    gone = texts == ""
    if gone.any():
        texts[gone] = default_of(name, missing)
    return texts


def as_texts(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Convert cells to texts, as a domain declares them; a missing one becomes an empty text."""
    texts: list[str] | None = None
    with untold():
        texts = ["" if _missing(value) else _text(value) for value in values.tolist()]
    if texts is None:
        raise DomainError(f"`{name}` must be a text or a number in every record; got something else.")
    return np.array(texts, dtype=object)


def _number(value: Any) -> float:
    if isinstance(value, bytes):
        value = value.decode("ascii")
    return numeral(value) if isinstance(value, str) else float(value)


def _text(value: Any) -> str:
    # A whole number gives the same text from a CSV file and from a column of floats.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _missing(value: Any) -> bool:
    if isinstance(value, str):
        return value == ""
    # pandas' marker for a missing value is not equal even to itself.
    return (
        value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and math.isnan(value))
    )


def default_of(name: str, missing: Any) -> Any:
    """Return what a missing value counts as; raise DomainError if the feature declares nothing."""
    if missing is None:
        raise DomainError(
            f"`{name}` is missing in a record and the domain declares no default. Declare `missing` for it, "
            "or leave such records out."
        )
    return missing
