"""Dates that a domain declares or a table has, and the numbers of days that they stand for."""

import datetime
import math
import re
from contextlib import suppress
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, PlainSerializer

from expost._common.typing import FloatArray
from expost.data.values import attempted, distinct_texts
from expost.exceptions import DomainError

# A date as ISO 8601 has it, where one digit may do for a month or a day, with or without a time of day.
_DATE = re.compile(r"\s*([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:[ T][0-9:.+Z-]+)?\s*")
_EPOCH = datetime.date(1970, 1, 1)


PublicDate = Annotated[
    datetime.date,
    BeforeValidator(
        lambda day: datetime.date.fromisoformat(day) if isinstance(day, str) and _DATE.fullmatch(day) else day
    ),
    PlainSerializer(datetime.date.isoformat),
]
"""A declared date: a date in TOML, a text in JSON."""


def days(date: datetime.date) -> float:
    """The number of days from 1 January 1970."""
    return float((date - _EPOCH).days)


DATE_KINDS = ("date", "month", "weekday")
"""The kinds of features whose cells are dates."""


def days_of_text(text: str) -> float:
    """The days of a date that is spelt out; NaN for a text that is none."""
    found = _DATE.fullmatch(text)
    with suppress(ValueError):
        return math.nan if found is None else days(datetime.date(*map(int, found.groups())))
    return math.nan


def as_days(values: Any, name: str) -> FloatArray:
    """Convert cells to days; a missing cell becomes NaN, and what is no date is refused."""
    numbers = attempted(lambda: _typed_days(values))
    if numbers is not None:
        return numbers
    places, texts = distinct_texts(values, name)
    found = np.array([math.nan if text == "" else days_of_text(text) for text in texts], dtype=np.float64)
    if np.any(np.isnan(found) & (texts != "")):
        raise DomainError(f"`{name}` must be a date in every record; got something else.")
    return np.asarray(found[places], dtype=np.float64)


def _typed_days(values: Any) -> FloatArray | None:
    """The days of a column whose type is that of dates; None for any other column."""
    if not isinstance(values, np.ndarray):
        from pyarrow import compute, date32, types

        if not (types.is_date(values.type) or types.is_timestamp(values.type)):
            return None
        values = compute.cast(values, date32(), safe=False).to_numpy(zero_copy_only=False)
    if values.dtype.kind != "M":
        return None
    dates = values.astype("datetime64[D]")
    return np.where(np.isnat(dates), np.nan, dates.astype(np.int64).astype(np.float64))
