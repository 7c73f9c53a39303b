"""Cells as numbers and texts, with what counts as missing."""

import math
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._common.typing import FloatArray
from expost.exceptions import DomainError


def as_numbers(values: NDArray[Any], name: str) -> FloatArray:
    """Numbers, with NaN for what is missing: an empty cell, or null."""
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
    """Texts, with the declared default for what is missing."""
    return np.array(
        [default_of(name, missing) if _missing(value) else _text(value) for value in values.tolist()],
        dtype=object,
    )


def as_texts(values: NDArray[Any]) -> NDArray[Any]:
    """Labels as the texts that a domain declares; what is missing is no class."""
    return np.array(["" if _missing(value) else _text(value) for value in values.tolist()], dtype=object)


def _text(value: Any) -> str:
    # A whole number reads the same from a CSV file and from a column of floats.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _missing(value: Any) -> bool:
    if isinstance(value, str):
        return value == ""
    # pandas' own marker compares to nothing, not even to itself.
    return (
        value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and math.isnan(value))
    )


def default_of(name: str, missing: Any) -> Any:
    """What a missing value counts as, or the error for a feature that declares nothing."""
    if missing is None:
        raise DomainError(
            f"`{name}` is missing in a record and the domain declares no default. Declare `missing` for it, "
            "or leave such records out."
        )
    return missing
