"""Dates as numbers of days."""

import datetime
import math
import re
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, PlainSerializer, model_validator

from expost._common.typing import FloatArray
from expost.data.texts import FieldTexts, Text
from expost.data.values import default_of, distinct_texts, share_of_limits, untold
from expost.exceptions import DomainError, printable

# A date as ISO 8601 has it, where one digit may do for a month or a day, with or without a time of day.
_DATE = re.compile(r"\s*([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:[ T][0-9:.+Z-]+)?\s*")
_EPOCH = datetime.date(1970, 1, 1)


def _as_date(value: Any) -> Any:
    """A date that a domain file declares, or a publication spells; anything else is left to be refused."""
    if isinstance(value, str) and _DATE.fullmatch(value):
        return datetime.date.fromisoformat(value)
    return value


PublicDate = Annotated[datetime.date, BeforeValidator(_as_date), PlainSerializer(datetime.date.isoformat)]
"""A declared date: a date in TOML, a text in JSON."""


def days(date: datetime.date) -> float:
    """The number of days from 1 January 1970.

    Examples
    --------
    >>> days(datetime.date(1970, 2, 1))
    31.0
    """
    return float((date - _EPOCH).days)


def days_of_text(text: str) -> float:
    """The days of a date that is spelt out; NaN for a text that is none.

    Examples
    --------
    >>> days_of_text("1970-01-02"), days_of_text("1970-02-30")
    (1.0, nan)
    """
    found = _DATE.fullmatch(text)
    if found is None:
        return math.nan
    try:
        return days(datetime.date(*map(int, found.groups())))
    except ValueError:
        return math.nan


def as_days(values: Any, name: str) -> FloatArray:
    """Convert cells to days; a missing cell becomes NaN, and what is no date is refused."""
    numbers: FloatArray | None = None
    with untold():
        numbers = _typed_days(values)
    if numbers is not None:
        return numbers
    places, texts = distinct_texts(values, name)
    found = np.array([math.nan if text == "" else days_of_text(text) for text in texts], dtype=np.float64)
    if np.any(np.isnan(found) & (texts != "")):
        raise DomainError(f"`{name}` must be a date in every record; got something else.")
    return np.asarray(found[places], dtype=np.float64)


def _typed_days(values: Any) -> FloatArray | None:
    """The days of a column whose type is that of dates; None for any other column."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind != "M":
            return None
        dates = values.astype("datetime64[D]")
        numbers: FloatArray = np.where(np.isnat(dates), np.nan, dates.astype(np.int64).astype(np.float64))
        return numbers
    from pyarrow import compute, date32, int32, types

    if not (types.is_date(values.type) or types.is_timestamp(values.type)):
        return None
    whole = compute.cast(compute.cast(values, date32(), safe=False), int32())
    found: FloatArray = whole.to_numpy(zero_copy_only=False).astype(np.float64)
    return found


class Date(FieldTexts):
    """A feature that is a day with public bounds; days beyond them are clipped.

    Encoded as one column, by the number of days: ``[low, high]`` becomes [-1, 1].
    """

    name: Text
    kind: Literal["date"] = "date"
    low: PublicDate
    high: PublicDate
    missing: PublicDate | None = None
    """What a missing value counts as; if this is None, a missing value is an error."""

    example: PublicDate | None = None

    columns: ClassVar[int] = 1
    scale: ClassVar[str] = "symmetric"

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"`{printable(self.name)}` must have low < high")
        if self.example is not None and not self.low <= self.example <= self.high:
            raise ValueError(f"`{printable(self.name)}` must have an example within its bounds")
        return self

    @property
    def column_names(self) -> list[str]:
        """The name of the encoded column."""
        return [self.name]

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds in days from 1 January 1970."""
        return days(self.low), days(self.high)

    @property
    def values(self) -> str:
        """The declared values in words."""
        return f"{self.low} to {self.high}"

    def coded(self, values: Any) -> FloatArray:
        """The days on the encoded scale, missing ones by the default."""
        numbers = as_days(values, self.name)
        gone = np.isnan(numbers)
        if gone.any():
            numbers = np.where(gone, days(default_of(self.name, self.missing)), numbers)
        return 2.0 * share_of_limits(self.limits, numbers) - 1.0

    def expanded(self, codes: FloatArray) -> list[NDArray[Any]]:
        """The column of coded values."""
        return [codes]
