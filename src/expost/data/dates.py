"""Features that are dates, the dates that a table has, and the numbers of days that they stand for."""

import datetime
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, PlainSerializer

from expost._common.typing import FloatArray
from expost.data.expansion import GONE, Expanded, Scale
from expost.data.texts import Bounded
from expost.data.values import attempted, distinct_texts, filled
from expost.exceptions import DomainError

# A date as ISO 8601 has it, where one digit may do for a month or a day, with or without a time of day.
_DATE = re.compile(r"\s*([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:[ T][0-9:.+Z-]+)?\s*")
_EPOCH = datetime.date(1970, 1, 1)


PublicDate = Annotated[
    datetime.date,
    BeforeValidator(lambda day: (_date_of_text(day) if isinstance(day, str) else None) or day),
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
    found = _date_of_text(text)
    return math.nan if found is None else days(found)


def _date_of_text(text: str) -> datetime.date | None:
    found = _DATE.fullmatch(text)
    with suppress(ValueError):
        return found and datetime.date(*map(int, found.groups()))
    return None


def as_days(values: Any, name: str) -> FloatArray:
    """Convert cells to days; a missing cell becomes NaN, and what is no date is refused."""
    numbers = attempted(lambda: _typed_days(values))
    if numbers is not None:
        return numbers
    places, texts = distinct_texts(values, name)
    found = np.array([math.nan if text == "" else days_of_text(text) for text in texts], dtype=np.float64)
    if np.any(np.isnan(found) & (texts != "")):
        raise DomainError(
            f"`{name}` must be a date in every record, such as 2015-01-31; got something else. "
            "In a data frame, turn the texts of the column into dates first."
        )
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


class Date(Scale, Bounded):
    """A feature that is a day with public bounds; days beyond them are clipped.

    Encoded as one column, by the number of days: ``[low, high]`` becomes [-1, 1].
    """

    kind: Literal["date"] = "date"
    low: PublicDate
    high: PublicDate
    missing: PublicDate | None = None
    """What a missing value counts as; if this is None, a missing value is an error."""
    example: PublicDate | None = None
    knots: Annotated[tuple[PublicDate, ...], Field(strict=False)] = ()

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds in days from 1 January 1970."""
        return days(self.low), days(self.high)

    @property
    def nodes(self) -> list[float]:
        """The knots with the bounds before and after them, in days."""
        return [days(one) for one in (self.low, *self.knots, self.high)]

    @property
    def places(self) -> Sequence[str]:
        """The nodes in words, where there are knots."""
        return [one.isoformat() for one in (self.low, *self.knots, self.high)] if self.knots else ()

    def coded(self, values: Any) -> FloatArray:
        """The days on the encoded scale, missing ones by the default."""
        missing = None if self.missing is None else days(self.missing)
        return self._coded(as_days(values, self.name), missing)


class _Cycle(Expanded):
    r"""A feature that is a date of which only the place in a cycle counts, on a circle.

    The :math:`k`-th of :math:`n` places has the columns :math:`\cos(2\pi k/n)` and :math:`\sin(2\pi k/n)`, so
    that the last is next to the first, and every record has the length 1.
    """

    kind: str
    missing: PublicDate | None = None
    """The date that a missing value counts as; if this is None, a missing value is an error."""
    example: PublicDate | None = None

    effect: ClassVar[None] = None
    length: ClassVar[int]

    @property
    def values(self) -> str:
        """The declared values in words."""
        return f"the {self.kind} of a date"

    @property
    def value_names(self) -> list[str]:
        """The names of the two columns."""
        return [f"{name}({self.kind} of {self.name})" for name in ("cos", "sin")]

    @property
    def circle(self) -> list[tuple[float, float]]:
        """The two columns at each place."""
        angles = [2.0 * math.pi * place / self.length for place in range(self.length)]
        return [(math.cos(angle), math.sin(angle)) for angle in angles]

    def coded(self, values: Any) -> NDArray[Any]:
        """The place of each date in the cycle, from 0."""
        numbers = as_days(values, self.name)
        if not self.recorded:
            missing = None if self.missing is None else days(self.missing)
            numbers = filled(numbers, self.name, missing)
        gone = np.isnan(numbers)
        dates = np.where(gone, 0.0, numbers).astype("datetime64[D]")
        return np.where(gone, GONE, self._places(dates)).astype(np.int8)

    def _places(self, dates: NDArray[Any]) -> NDArray[Any]:
        raise NotImplementedError

    def _of_values(self, codes: NDArray[Any]) -> list[NDArray[Any]]:
        return list(np.array(self.circle)[codes].T.copy())


class Month(_Cycle):
    """A feature that is the month of a date, on a circle: December is next to January."""

    kind: Literal["month"] = "month"
    length = 12

    def _places(self, dates: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(dates.astype("datetime64[M]").astype(np.int64) % 12)


class Weekday(_Cycle):
    """A feature that is the day of the week of a date, on a circle: Sunday is next to Monday."""

    kind: Literal["weekday"] = "weekday"
    length = 7

    def _places(self, dates: NDArray[Any]) -> NDArray[Any]:
        return np.asarray((dates.astype(np.int64) + 3) % 7)  # 1 January 1970 was a Thursday
