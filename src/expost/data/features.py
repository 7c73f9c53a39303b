"""The features and dates that a domain declares, and how each becomes columns of numbers."""

import datetime
import math
import re
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from expost._common.namespaces import namespace_of
from expost._common.typing import FloatArray
from expost.data.texts import FieldTexts, Line, Text, Units, Word
from expost.data.values import (
    as_numbers,
    attempted,
    distinct_texts,
    filled,
    of_one_kind,
    text_codes,
)
from expost.exceptions import DomainError, printable

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


class _Bounded(FieldTexts):
    """A field with public bounds."""

    kind: str
    low: Any
    high: Any
    example: Any = None

    @model_validator(mode="after")
    def _bounds(self) -> Self:
        low, high = self.limits
        if not low < high or not math.isfinite(high - low):
            raise ValueError(f"`{printable(self.name)}` must have low < high")
        if self.example is not None and not self.low <= self.example <= self.high:
            raise ValueError(f"`{printable(self.name)}` must have an example within its bounds")
        return self

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds as numbers."""
        return self.low, self.high

    @property
    def values(self) -> str:
        """The declared values in words."""
        return f"{self.low} to {self.high}"

    def _share(self, values: FloatArray) -> FloatArray:
        """Where numbers lie between the bounds, from 0 to 1; those beyond them are clipped."""
        low, high = self.limits
        share: FloatArray = (namespace_of(values).clip(values, low, high) - low) / (high - low)
        return share


# The bounds of a coefficient that each effect stands for.
_BOUNDS = {
    None: (-math.inf, math.inf),
    "increasing": (0.0, math.inf),
    "decreasing": (-math.inf, 0.0),
    "monotone": (0.0, math.inf),
}


def _effect_of(*words: str) -> BeforeValidator:
    """Accept one of some words, or the two bounds of a coefficient."""
    wanted = ", ".join(f'"{word}"' for word in words) + " or two numbers [low, high] with low < high"

    def read(value: Any) -> Any:
        if isinstance(value, str) and value in words:
            return value
        numbers = isinstance(value, list | tuple) and len(value) == 2
        if numbers and all(type(end) in (int, float) and math.isfinite(end) for end in value):
            low, high = map(float, value)
            if low < high:
                return low, high
        raise ValueError(f"must be {wanted}; got {printable(repr(value)[:60])}")

    return BeforeValidator(read)


class _Encoded:
    """What is encoded as columns of numbers; no model, because files list fields in the models' order."""

    @property
    def columns(self) -> int:
        """How many columns it takes."""
        return len(self.column_names)  # type: ignore[attr-defined]

    @property
    def coef_bounds(self) -> list[tuple[float, float]]:
        """Between which numbers the coefficient of each column must lie, as its effect says."""
        effect: Any = self.effect  # type: ignore[attr-defined]
        return [_BOUNDS.get(effect, effect)] * self.columns


class _OneColumn(FieldTexts, _Encoded):
    """A feature that is encoded as one column, of its coded values."""

    effect: Annotated[Any, _effect_of("increasing", "decreasing")] = None
    """How a larger value may change the predictor, or the two bounds of the coefficient."""

    @property
    def column_names(self) -> list[str]:
        """The names of the encoded columns."""
        return [self.name]

    def expanded(self, codes: NDArray[Any]) -> list[NDArray[Any]]:
        """The column of coded values."""
        return [codes]


class Date(_OneColumn, _Bounded):
    """A feature that is a day with public bounds; days beyond them are clipped.

    Encoded as one column, by the number of days: ``[low, high]`` becomes [-1, 1].
    """

    kind: Literal["date"] = "date"
    low: PublicDate
    high: PublicDate
    missing: PublicDate | None = None
    """What a missing value counts as; if this is None, a missing value is an error."""
    example: PublicDate | None = None

    scale: ClassVar[str] = "symmetric"

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds in days from 1 January 1970."""
        return days(self.low), days(self.high)

    def coded(self, values: Any) -> FloatArray:
        """The days on the encoded scale, missing ones by the default."""
        missing = None if self.missing is None else days(self.missing)
        return 2.0 * self._share(filled(as_days(values, self.name), self.name, missing)) - 1.0


# The words for yes and no, in lower case; the first of each is used to write a default.
YES = ("yes", "true", "1", "1.0", "y", "t")
NO = ("no", "false", "0", "0.0", "n", "f")
_words = {**dict.fromkeys(YES, 1), **dict.fromkeys(NO, 0)}


def yes_or_no(text: str) -> int | None:
    """1 for a word for yes, 0 for one for no, and None for any other text."""
    return _words.get(text.strip().lower())


class Measured(_Bounded):
    """A field on a scale with public bounds, and texts about its units."""

    low: float
    high: float
    example: float | None = None
    """The value of the invented person that the page shows first."""
    unit: Word | None = None
    """The unit of the bounds and of the answer."""
    units: Units = ()
    """Other units, each with what to multiply by to come to ``unit``."""

    @model_validator(mode="after")
    def _other_units(self) -> Self:
        names = [name for name, _ in self.units]
        if names and (self.unit is None or self.unit in names or len(set(names)) < len(names)):
            raise ValueError("`units` must be units other than `unit`, which must be declared too")
        return self

    @property
    def values(self) -> str:
        """The declared values in words."""
        return f"{self.low:g} to {self.high:g}"


class Number(_OneColumn, Measured):
    """A feature measured on a scale with public bounds; values beyond them are clipped.

    Encoded as one column: ``[low, high]`` becomes [-1, 1], or [0, 1] with ``scale="unit"``.
    """

    kind: Literal["number"] = "number"
    scale: Literal["symmetric", "unit"] = "symmetric"
    missing: float | None = None
    """What a missing value counts as; if this is None, a missing value is an error."""

    def coded(self, values: Any) -> FloatArray:
        """The cells as numbers on the encoded scale, missing ones by the default."""
        share = self._share(filled(as_numbers(values, self.name), self.name, self.missing))
        return 2.0 * share - 1.0 if self.scale == "symmetric" else share


class Chosen(FieldTexts):
    """A field that has one of several declared values."""

    titles: Annotated[tuple[Line, ...], Field(strict=False)] = ()
    """What to call each value, in the order of the values."""
    example: Any = None

    def _check_texts(self, values: tuple[Any, ...]) -> None:
        example = self.example
        if example is not None and (example not in values or not of_one_kind([example, *values])):
            raise ValueError(f"`{printable(self.name)}` must have an example that is one of its values")
        if self.titles and len(set(self.titles)) != len(values):
            raise ValueError(f"`titles` must be {len(values)} different texts, one for each value")


class Category(Chosen, _Encoded):
    r"""A feature with a few declared values, encoded as one column of 0 or 1 for each of them.

    With ``effect="monotone"`` the order of the categories counts: there is a column for each step, which is
    :math:`1/\sqrt{K - 1}` from that category on and 0 before, and no coefficient may be negative.
    """

    kind: Literal["category"] = "category"
    categories: Annotated[tuple[Text, ...], Field(min_length=2, strict=False)]
    missing: str | None = None
    """The category that a missing value counts as; if this is None, a missing value is an error."""
    example: str | None = None
    effect: Annotated[Any, _effect_of("monotone")] = None
    """Whether the predictor must not fall from one category to the next, or two bounds of coefficients."""

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if len(set(self.categories)) < len(self.categories):
            raise ValueError(f"`{printable(self.name)}` must have different categories")
        if self.missing is not None and self.missing not in self.categories:
            raise ValueError(f"`{printable(self.name)}` must count missing values as one of its categories")
        self._check_texts(self.categories)
        return self

    @property
    def values(self) -> str:
        """The declared values in words."""
        return ", ".join(self.categories)

    def coded(self, values: Any) -> NDArray[Any]:
        """The place of each cell's category among those declared."""
        places = {category: place for place, category in enumerate(self.categories)}
        refusal = "has a category that was never declared. Recode it, or declare it in the domain."
        return text_codes(values, self.name, places.get, len(places), self.missing, refusal)

    def expanded(self, codes: NDArray[Any]) -> list[NDArray[Any]]:
        """A column for each category that is true where a coded value is that one, or one for each step."""
        places = range(len(self.categories))
        if self.monotone:
            return [np.where(codes >= place, self.step, 0.0) for place in places[1:]]
        return [codes == place for place in places]

    @property
    def monotone(self) -> bool:
        """Whether its columns are steps."""
        return bool(self.effect == "monotone")

    @property
    def step(self) -> float:
        """What a column of a monotone effect counts: all steps together have the length 1."""
        return 1.0 / math.sqrt(len(self.categories) - 1)

    @property
    def column_names(self) -> list[str]:
        """The names of the encoded columns."""
        if self.monotone:
            return [f"{self.name}≥{category}" for category in self.categories[1:]]
        return [f"{self.name}={category}" for category in self.categories]


class YesNo(_OneColumn):
    """A feature that is true or false, encoded as one column of 1 or 0."""

    kind: Literal["yes_no"] = "yes_no"
    missing: bool | None = None
    """What a missing value counts as; if this is None, a missing value is an error."""
    example: bool | None = None

    values: ClassVar[str] = "yes or no"

    def coded(self, values: Any) -> NDArray[Any]:
        """1 for yes and 0 for no."""
        missing = None if self.missing is None else (YES if self.missing else NO)[0]
        refusal = (
            "must be yes or no (or true, false, 1, 0) in every record; got something else. Declare other "
            'words as kind = "category" with both of them.'
        )
        return text_codes(values, self.name, yes_or_no, 1, missing, refusal)


Feature = Annotated[Number | Category | YesNo | Date, Field(discriminator="kind")]
