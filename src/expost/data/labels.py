"""The outcomes that a domain declares: classes, numbers, counts and amounts, and the scale of their fit."""

import math
from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from expost._common.namespaces import namespace_of
from expost._common.typing import FloatArray
from expost.data.texts import LONGEST_TEXT, Chosen, Measured, Text
from expost.data.values import class_text, of_one_kind, plain_class, share_between
from expost.exceptions import printable
from expost.losses.outcomes import LARGEST_COUNT

Class = Text | bool | int
# Labels at and beyond it are not exact everywhere that they are read.
_LARGEST_INTEGER = 2**53


def _check_class(label: Any) -> None:
    if isinstance(label, str):
        if not 1 <= len(label) <= LONGEST_TEXT:
            raise ValueError(f"must be texts of 1 to {LONGEST_TEXT} characters")
    elif abs(label) >= _LARGEST_INTEGER:
        raise ValueError("must be whole numbers between -2^53 and 2^53")


def _classes(value: Any) -> Any:
    """Classes as Python has them, all of one kind; what is no list of them is left to be refused."""
    if not isinstance(value, list | tuple | np.ndarray):
        return value
    classes = tuple(plain_class(label) for label in value)
    if classes and (not of_one_kind(classes) or any(isinstance(label, float) for label in classes)):
        raise ValueError("must be all texts, all whole numbers, or false and true")
    for label in classes:
        _check_class(label)
    return classes


class ClassLabel(Chosen):
    """An outcome with declared classes; of two, positive scores predict the second.

    Classes are texts, whole numbers, or false and true; all of one kind. Predictions are what was declared.
    """

    kind: Literal["classes"] = "classes"
    classes: Annotated[tuple[Class, ...], Field(strict=False), BeforeValidator(_classes)]
    example: Class | None = None

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if not 2 <= len(set(self.classes)) == len(self.classes):
            raise ValueError(f"`{printable(self.name)}` must have two or more different classes")
        self.check_texts(self.classes)
        return self

    @property
    def values(self) -> str:
        """The declared values in words."""
        return ", ".join(map(class_text, self.classes))


class NumericLabel(Measured):
    """An outcome on a scale with public bounds, beyond which it counts as the bound."""

    log_link: ClassVar[bool] = False
    """Whether it is modelled by its logarithm."""

    @property
    def typical(self) -> float:
        """The outcome that a linear predictor of zero stands for."""
        return 0.5 * self.low + 0.5 * self.high

    @abstractmethod
    def scaled(self, values: FloatArray) -> FloatArray:
        """Clip outcomes to the bounds and bring them to the scale of the fit."""

    @abstractmethod
    def unscaled(self, values: FloatArray) -> FloatArray:
        """Map linear predictors to the outcome's units, and those beyond its bounds to the bound."""

    @abstractmethod
    def in_units(self, coefficients: FloatArray) -> FloatArray:
        """Coefficients in the outcome's units, or in its logarithm; the last one is the intercept."""

    @property
    def predictor(self) -> str:
        """What its coefficients change."""
        return f"logarithm of the mean of {self.name}" if self.log_link else self.name


class NumberLabel(NumericLabel):
    """An outcome on a scale with public bounds; it is clipped and scaled to [-1, 1], as features are."""

    kind: Literal["number"] = "number"

    def scaled(self, values: FloatArray) -> FloatArray:
        """Clip outcomes to the bounds and map these to [-1, 1], the scale of the fit."""
        return 2.0 * share_between(values, *self.limits) - 1.0

    def unscaled(self, values: FloatArray) -> FloatArray:
        """Map predictions back to the units of the outcome, and those beyond its bounds to the bound."""
        share = namespace_of(values).clip(0.5 * (values + 1.0), 0.0, 1.0)
        found: FloatArray = self.low + share * (self.high - self.low)
        return found

    def in_units(self, coefficients: FloatArray) -> FloatArray:
        """Half the range times the coefficients, and the middle of the range added to the intercept."""
        values = coefficients * (0.5 * (self.high - self.low))
        values[-1] += 0.5 * (self.low + self.high)
        return values


class _Logarithmic(NumericLabel):
    """An outcome whose mean is multiplied by what features change: it is fitted in units of a typical one."""

    log_link: ClassVar[bool] = True

    def scaled(self, values: FloatArray) -> FloatArray:
        """Clip outcomes to the bounds and divide them by the typical one."""
        numbers: FloatArray = namespace_of(values).clip(values, self.low, self.high) / self.typical
        return numbers

    def unscaled(self, values: FloatArray) -> FloatArray:
        """The mean that belongs to each linear predictor, within the bounds."""
        xp = namespace_of(values)
        most = math.log(self.high / self.typical)
        means: FloatArray = xp.clip(self.typical * xp.exp(xp.clip(values, None, most)), self.low, self.high)
        return means

    def in_units(self, coefficients: FloatArray) -> FloatArray:
        """Coefficients of the logarithm, with that of the typical outcome in the intercept."""
        values = coefficients.copy()
        values[-1] += math.log(self.typical)
        return values


class CountLabel(_Logarithmic):
    """An outcome that counts something, from 0 to a public bound: a Poisson model with a logarithmic link."""

    kind: Literal["count"] = "count"
    low: float = 0.0

    @model_validator(mode="after")
    def _counts(self) -> Self:
        if self.low < 0.0:
            raise ValueError(f"`{printable(self.name)}` must have low >= 0: it is a count")
        return self

    @property
    def typical(self) -> float:
        """An eighth of the largest count."""
        return self.high / LARGEST_COUNT


class AmountLabel(_Logarithmic):
    """A positive outcome between public bounds, such as a cost: a Gamma model with a logarithmic link."""

    kind: Literal["amount"] = "amount"

    @model_validator(mode="after")
    def _positive(self) -> Self:
        if self.low <= 0.0:
            raise ValueError(f"`{printable(self.name)}` must have low > 0: it is an amount")
        return self

    @property
    def typical(self) -> float:
        """The geometric mean of the bounds."""
        return math.sqrt(self.low) * math.sqrt(self.high)


Outcome = Annotated[NumberLabel | CountLabel | AmountLabel, Field(discriminator="kind")]
Label = Annotated[ClassLabel | NumberLabel | CountLabel | AmountLabel, Field(discriminator="kind")]
