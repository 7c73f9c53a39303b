"""Convert cells to numbers and texts, and find the missing ones."""

import math
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._common.typing import FloatArray
from expost.exceptions import DomainError


def as_numbers(values: NDArray[Any], name: str) -> FloatArray:
    """Convert cells to numbers; an empty cell or null becomes NaN."""
    numbers: FloatArray | None = None
    if values.dtype.kind in "fiub":
        numbers = values.astype(np.float64)
    elif values.dtype.kind in "OUS":
        with suppress(TypeError, ValueError, OverflowError):
            numbers = np.array([math.nan if _missing(value) else float(value) for value in values])
    if numbers is None:  # raised here: an error raised in the handler would keep the one that quotes the cell
        raise DomainError(f"`{name}` must be a number in every record; got something else.")
    if np.isinf(numbers).any():
        raise DomainError(f"`{name}` must be finite in every record.")
    return numbers


def filled_texts(values: NDArray[Any], name: str, missing: str | None) -> NDArray[Any]:
    """Convert cells to texts; a missing cell becomes the declared default."""
    return np.array(
        [default_of(name, missing) if _missing(value) else _text(value) for value in values.tolist()],
        dtype=object,
    )


def as_texts(values: NDArray[Any]) -> NDArray[Any]:
    """Convert labels to texts, as a domain declares them; a missing label becomes an empty text."""
    return np.array(["" if _missing(value) else _text(value) for value in values.tolist()], dtype=object)


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
