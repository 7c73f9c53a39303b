"""Domain: what is publicly known about a record, and the one encoding that follows from it."""

import math
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from expost._common.typing import FloatArray
from expost.exceptions import DomainError

# What a skeleton of a domain file holds in place of everything that must be declared and not learnt.
PLACEHOLDER = "FILL IN"

Text = Annotated[str, Field(min_length=1, max_length=200)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Number(_Part):
    """A feature measured on a scale with public bounds; values beyond them are clipped.

    Encoded as one column: ``[low, high]`` becomes [-1, 1], or [0, 1] with ``scale="unit"``.
    """

    name: Text
    kind: Literal["number"] = "number"
    low: float
    high: float
    scale: Literal["symmetric", "unit"] = "symmetric"
    missing: float | None = None
    """What a missing value counts as; where this is null a missing value is refused."""

    columns: ClassVar[int] = 1

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low < self.high or not math.isfinite(self.high - self.low):
            raise ValueError(f"`{self.name}` must have low < high")
        return self

    def encode(self, values: NDArray[Any], out: FloatArray) -> None:
        """Write the column of ``values`` into ``out``, one column wide."""
        numbers = as_numbers(values, self.name)
        gone = np.isnan(numbers)
        if gone.any():
            numbers = np.where(gone, _default(self.name, self.missing), numbers)
        share = (np.clip(numbers, self.low, self.high) - self.low) / (self.high - self.low)
        out[:, 0] = 2.0 * share - 1.0 if self.scale == "symmetric" else share

    @property
    def column_names(self) -> list[str]:
        """The names of the encoded columns."""
        return [self.name]


class Category(_Part):
    """A feature with a few declared values, encoded as one column of 0 or 1 for each of them."""

    name: Text
    kind: Literal["category"] = "category"
    categories: Annotated[tuple[Text, ...], Field(min_length=2, strict=False)]
    missing: str | None = None
    """The category that a missing value counts as; where this is null a missing value is refused."""

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if len(set(self.categories)) < len(self.categories):
            raise ValueError(f"`{self.name}` must have different categories")
        if self.missing is not None and self.missing not in self.categories:
            raise ValueError(f"`{self.name}` must count missing values as one of its categories")
        return self

    @property
    def columns(self) -> int:
        """How many columns it takes."""
        return len(self.categories)

    def encode(self, values: NDArray[Any], out: FloatArray) -> None:
        """Write a one-hot block for ``values`` into ``out``."""
        texts = _texts(values, self.name, self.missing)
        np.equal(texts[:, None], np.array(self.categories, dtype=object), out=out, casting="unsafe")
        if not np.all(out.sum(axis=1) == 1.0):
            raise DomainError(
                f"`{self.name}` has a category that was never declared. Recode it, or declare it in the "
                "domain."
            )

    @property
    def column_names(self) -> list[str]:
        """The names of the encoded columns."""
        return [f"{self.name}={category}" for category in self.categories]


class YesNo(_Part):
    """A feature that is true or false, encoded as one column of 1 or 0."""

    name: Text
    kind: Literal["yes_no"] = "yes_no"
    missing: bool | None = None
    """What a missing value counts as; where this is null a missing value is refused."""

    columns: ClassVar[int] = 1
    _words: ClassVar[Mapping[str, float]] = {
        **dict.fromkeys(("yes", "true", "1", "1.0", "y", "t"), 1.0),
        **dict.fromkeys(("no", "false", "0", "0.0", "n", "f"), 0.0),
    }

    def encode(self, values: NDArray[Any], out: FloatArray) -> None:
        """Write ones and zeros for ``values`` into ``out``, one column wide."""
        missing = None if self.missing is None else ("yes" if self.missing else "no")
        words = _texts(values, self.name, missing)
        try:
            out[:, 0] = [self._words[word.strip().lower()] for word in words]
        except KeyError:
            raise DomainError(
                f"`{self.name}` must be yes or no (or true, false, 1, 0) in every record; got something else."
            ) from None

    @property
    def column_names(self) -> list[str]:
        """The names of the encoded columns."""
        return [self.name]


class ClassLabel(_Part):
    """An outcome with two declared classes; a positive score speaks for the second."""

    name: Text
    kind: Literal["classes"] = "classes"
    classes: Annotated[tuple[Text, Text], Field(strict=False)]

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if self.classes[0] == self.classes[1]:
            raise ValueError(f"`{self.name}` must have two different classes")
        return self


class NumberLabel(_Part):
    """An outcome on a scale with public bounds; it is clipped and scaled to [-1, 1], as features are."""

    name: Text
    kind: Literal["number"] = "number"
    low: float
    high: float

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low < self.high or not math.isfinite(self.high - self.low):
            raise ValueError(f"`{self.name}` must have low < high")
        return self


Feature = Annotated[Number | Category | YesNo, Field(discriminator="kind")]
Label = Annotated[ClassLabel | NumberLabel, Field(discriminator="kind")]


class Domain(_Part):
    """Everything that is publicly known about a record. Declared, never learnt from a table.

    One function of it, :meth:`encode`, turns records into rows, for the curator's table and for the reader's
    single record, here and on the page.

    Parameters
    ----------
    features
        In the order of the encoded columns.
    label
        The outcome.
    norm
        The largest length of an encoded row; longer ones are scaled down. By default the largest length that
        the features allow, so that nothing is scaled.

    Privacy
    -------
    Public. A refusal names a feature and what was declared about it, never a value, a row or a count.

    Examples
    --------
    >>> age = Number(name="age", low=0.0, high=100.0)
    >>> ward = Category(name="ward", categories=("north", "south"))
    >>> domain = Domain(features=(age, ward), label=ClassLabel(name="ill", classes=("no", "yes")))
    >>> domain.column_names, round(domain.row_norm, 4)
    (['age', 'ward=north', 'ward=south'], 1.4142)
    >>> domain.encode({"age": [25.0, 140.0], "ward": ["north", "south"]})
    array([[-0.5,  1. ,  0. ],
           [ 1. ,  0. ,  1. ]])
    """

    features: Annotated[tuple[Feature, ...], Field(min_length=1, strict=False)]
    label: Label
    norm: Annotated[float, Field(gt=0.0)] | None = None

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [feature.name for feature in self.features] + [self.label.name]
        if len(set(names)) < len(names):
            raise ValueError("features and label must have different names")
        if len(set(self.column_names)) < len(self.column_names):
            raise ValueError("a feature must not be named like a category of another, such as 'ward=north'")
        return self

    @property
    def row_norm(self) -> float:
        """The largest length of an encoded row."""
        # Every kind of feature contributes at most 1 to the squared length.
        return math.sqrt(len(self.features)) if self.norm is None else self.norm

    @cached_property
    def column_names(self) -> list[str]:
        """The names of the encoded columns."""
        return [name for feature in self.features for name in feature.column_names]

    def encode(self, columns: Mapping[str, Any]) -> FloatArray:
        """Records as rows of numbers: one documented function, here and on the page.

        ``columns`` maps each feature's name to its values, all of one length.
        """
        values = [np.asarray(columns[feature.name]) for feature in self.features]
        rows = np.empty((len(values[0]), len(self.column_names)))
        start = 0
        for feature, column in zip(self.features, values, strict=True):
            feature.encode(column, rows[:, start : start + feature.columns])
            start += feature.columns
        return rows

    def scale_outcome(self, values: FloatArray) -> FloatArray:
        """A numeric outcome, clipped to its bounds and brought to the scale of the fit, [-1, 1]."""
        if not isinstance(self.label, NumberLabel):
            return values
        low, high = self.label.low, self.label.high
        scaled: FloatArray = 2.0 * ((np.clip(values, low, high) - low) / (high - low)) - 1.0
        return scaled

    def unscale_outcome(self, values: FloatArray) -> FloatArray:
        """A prediction, brought back to the units of the outcome."""
        if not isinstance(self.label, NumberLabel):
            return values
        return self.label.low + 0.5 * (values + 1.0) * (self.label.high - self.label.low)

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Read a domain file, or refuse it in one sentence."""
        try:
            content = tomllib.loads(text)
            _check_filled(content)
            return cls.model_validate(content)
        except RecursionError:
            raise DomainError("the domain file is nested too deeply to be one.") from None
        except tomllib.TOMLDecodeError as error:
            raise DomainError(f"the domain file is not valid TOML: {error}.") from None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "the domain"
            message = first["msg"].removeprefix("Value error, ")
            raise DomainError(f"the domain file is not valid at {place}: {message}.") from None


def _check_filled(content: Mapping[str, Any]) -> None:
    """Refuse a skeleton in which something is still to be declared."""
    features = content.get("features")
    for part in [*(features if isinstance(features, list) else []), content.get("label")]:
        for key, value in part.items() if isinstance(part, Mapping) else ():
            if PLACEHOLDER in (value if isinstance(value, list) else [value]):
                raise DomainError(
                    f"the domain file still says {PLACEHOLDER!r} for `{key}` of {part.get('name')!r}. Write "
                    "what is known about it without looking at the table."
                )


def as_numbers(values: NDArray[Any], name: str) -> FloatArray:
    """Numbers, with NaN for what is missing: an empty cell, or null."""
    numbers: FloatArray | None = None
    if values.dtype.kind in "fiub":
        numbers = values.astype(np.float64)
    elif values.dtype.kind in "OUS":
        with suppress(TypeError, ValueError, OverflowError):
            numbers = np.array([math.nan if _missing(value) else float(value) for value in values])
    if numbers is None:  # raised here, where no other error that quotes the cell hangs on to it
        raise DomainError(f"`{name}` must be a number in every record; got something else.")
    if np.isinf(numbers).any():
        raise DomainError(f"`{name}` must be finite in every record.")
    return numbers


def _texts(values: NDArray[Any], name: str, missing: str | None) -> NDArray[Any]:
    """Texts, with the declared default for what is missing."""
    return np.array(
        [_default(name, missing) if _missing(value) else _text(value) for value in values.tolist()],
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


def _default(name: str, missing: Any) -> Any:
    if missing is None:
        raise DomainError(
            f"`{name}` is missing in a record and the domain declares no default. Declare `missing` for it, "
            "or leave such records out."
        )
    return missing
