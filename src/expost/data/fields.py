"""What fields of a record have in common, features and outcomes: bounds, units, or a list of values."""

import math
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from expost.data.texts import FieldTexts, Line, Units, Word
from expost.data.values import of_one_kind
from expost.exceptions import printable


class Bounded(FieldTexts):
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


class Measured(Bounded):
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


class Chosen(FieldTexts):
    """A field that has one of several declared values."""

    titles: Annotated[tuple[Line, ...], Field(strict=False)] = ()
    """What to call each value, in the order of the values."""
    example: Any = None

    def check_texts(self, values: tuple[Any, ...]) -> None:
        """Raise ValueError unless the example is one of the values, and each of them has a title or none."""
        example = self.example
        if example is not None and (example not in values or not of_one_kind([example, *values])):
            raise ValueError(f"`{printable(self.name)}` must have an example that is one of its values")
        if self.titles and len(set(self.titles)) != len(values):
            raise ValueError(f"`titles` must be {len(values)} different texts, one for each value")
