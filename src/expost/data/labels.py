"""The outcomes that a domain declares: classes, ordered or not, numbers, counts, amounts and times."""

import math
from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator
from scipy.special import expit

from expost._common.namespaces import namespace_of
from expost._common.typing import FloatArray
from expost.data.features import EventColumn
from expost.data.texts import LONGEST_TEXT, Chosen, FieldTexts, Line, Measured, Text, in_order
from expost.data.values import (
    as_numbers,
    class_text,
    empty_time_error,
    of_one_kind,
    plain_class,
    share_between,
)
from expost.exceptions import DomainError, printable
from expost.losses.base import LabelSet
from expost.losses.outcomes import LARGEST_COUNT

Class = Text | bool | int
# Labels at and beyond it are not exact everywhere that they are read.
_LARGEST_INTEGER = 2**53
MOST_PERIODS = 60
"""Periods of a time, at most."""
MOST_ORDERED = 50
"""Classes in an order, at most: each step is a row of every person."""


def _check_class(label: Any) -> None:
    if isinstance(label, str):
        if not 1 <= len(label) <= LONGEST_TEXT:
            raise ValueError(f"must be texts of 1 to {LONGEST_TEXT} characters")
    elif abs(label) >= _LARGEST_INTEGER:
        raise ValueError("must be whole numbers between -2^53 and 2^53")


def _classes(value: Any) -> Any:
    """Classes as Python has them, all of one kind; what is no list of them is left to be refused."""
    if not isinstance(value, list | tuple | np.ndarray):
        return in_order(value)
    classes = tuple(plain_class(label) for label in value)
    if classes and (not of_one_kind(classes) or any(isinstance(label, float) for label in classes)):
        raise ValueError("must be all texts, all whole numbers, or false and true")
    for label in classes:
        _check_class(label)
    return classes


class Classified(Chosen):
    """An outcome with declared classes: texts, whole numbers, or false and true; all of one kind."""

    kind: str
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


class ClassLabel(Classified):
    """An outcome with declared classes; of two, positive scores predict the second.

    Classes are texts, whole numbers, or false and true; all of one kind. Predictions are what was declared.
    """

    kind: Literal["classes"] = "classes"


class RowsLabel(FieldTexts):
    r"""An outcome that makes several rows :math:`(x, e_k)` of a record, each a yes or no of weight 1/places.

    :math:`e_k` is the k-th unit vector: each row has an intercept of its own, and all share the coefficients
    of the features. The rows are those of one person, and who she is decides nothing but her own
    (docs/mathematics.md, section 15).
    """

    kind: str
    direction: ClassVar[str]
    """What a larger linear predictor means, as a sentence."""

    @property
    @abstractmethod
    def places(self) -> int:
        """How many rows a record has at most, which is what each is divided by."""

    @property
    @abstractmethod
    def codes(self) -> LabelSet:
        """The numbers that stand for the outcomes of records."""

    @property
    @abstractmethod
    def place_names(self) -> list[str]:
        """What to call the intercept of each row."""

    @abstractmethod
    def answers(self, codes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The label of each row of records, 0 or 1, and 1 where the row counts; a column for each place."""

    @abstractmethod
    def predicted(self, scores: FloatArray) -> NDArray[Any]:
        """The outcome in its units, from the linear predictor of each row."""

    def settled(self, intercepts: FloatArray) -> FloatArray:
        """The intercepts that predictions are made with, from those that were published."""
        return intercepts

    def by_place(self, coefficients: FloatArray) -> FloatArray:
        """A column for each place: the coefficients of the features, and the place's intercept last."""
        weights, intercepts = np.split(coefficients, [len(coefficients) - self.places])
        return np.vstack([np.repeat(weights[:, None], self.places, axis=1), self.settled(intercepts)])


class OrderedLabel(Classified, RowsLabel):
    r"""An outcome with classes in their order, from the lowest: a row for each step from one to the next.

    Row k asks whether the class is above the k-th. Predictions sort the intercepts, so that the probability
    to be above a class never rises with the class.
    """

    kind: Literal["ordered"] = "ordered"
    direction: ClassVar[str] = "A positive coefficient makes higher classes likelier."

    @model_validator(mode="after")
    def _steps(self) -> Self:
        if not 3 <= len(self.classes) <= MOST_ORDERED:
            raise ValueError(
                f"`{printable(self.name)}` must have 3 to {MOST_ORDERED} classes in their order; two are "
                'kind = "classes"'
            )
        return self

    @property
    def places(self) -> int:
        """The steps from a class to the next."""
        return len(self.classes) - 1

    @property
    def codes(self) -> LabelSet:
        """The places of the classes."""
        return LabelSet(0.0, self.places, values=tuple(map(float, range(len(self.classes)))))

    @property
    def place_names(self) -> list[str]:
        """Above which class a row asks."""
        return [f"above {class_text(label)}" for label in self.classes[:-1]]

    def answers(self, codes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Whether each record is above each class but the last; all rows count."""
        above = (codes[:, None] > np.arange(self.places)).astype(np.float64)
        return above, np.ones_like(above)

    def settled(self, intercepts: FloatArray) -> FloatArray:
        """In falling order: to be above a class is never likelier than to be above one below it."""
        return np.sort(intercepts)[::-1]

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """The probability of each class, from the log odds to be above each but the last."""
        edges = np.pad(expit(scores), [(0, 0), (1, 1)], constant_values=[(0.0, 0.0), (1.0, 0.0)])
        return -np.diff(edges, axis=1)

    def log_probabilities(self, scores: FloatArray) -> FloatArray:
        """The logarithm of :meth:`probabilities`, finite also where a class has none."""
        found: FloatArray = np.log(np.maximum(self.probabilities(scores), np.finfo(np.float64).tiny))
        return found

    def predicted(self, scores: FloatArray) -> NDArray[Any]:
        """The median: the highest class that is reached with probability above one half."""
        reached: NDArray[Any] = np.array(self.classes)[np.count_nonzero(scores > 0.0, axis=1)]
        return reached


class TimeLabel(RowsLabel):
    r"""The time to an event, in declared periods of one length, which may be censored: a row for each period.

    Row t asks whether the event happened in period t, and counts where the record was still at risk then. An
    event beyond the last period did not happen in any of them. A record that is censored counts for the
    periods that it was followed through.
    """

    kind: Literal["time"] = "time"
    direction: ClassVar[str] = "A positive coefficient makes the event likelier in every period."
    event: Text
    """The column that says whether the event happened, yes or no; without one, the time is censored."""
    periods: Annotated[int, Field(ge=2, le=MOST_PERIODS)]
    length: Annotated[float, Field(gt=0.0, le=1e306)] = 1.0
    """That of a period, in the unit of the time."""
    unit: Line | None = None

    @property
    def places(self) -> int:
        """The periods."""
        return self.periods

    @property
    def ends(self) -> FloatArray:
        """When each period ends."""
        return self.length * np.arange(1.0, self.periods + 1.0)

    @property
    def values(self) -> str:
        """The declared values in words."""
        return f"{self.periods} periods of {self.length:g}; {self.event} says whether it happened"

    @property
    def parts(self) -> tuple["TimeColumn", EventColumn]:
        """The two columns that it is read from, as each is checked."""
        time = TimeColumn(name=self.name, low=0.0, high=self.periods * self.length)
        return time, EventColumn(name=self.event)

    @property
    def codes(self) -> LabelSet:
        """Twice the number of rows that count, and one more where the last of them is the event's."""
        values = (0.0, *map(float, range(2, 2 * self.periods + 2)))
        return LabelSet(0.0, values[-1], values=values)

    @property
    def place_names(self) -> list[str]:
        """The number of the period."""
        return [f"period {number}" for number in range(1, self.periods + 1)]

    def coded(self, times: Any, events: Any) -> FloatArray:
        """The codes of records, or DomainError, which names no value of theirs."""
        numbers, happened = as_numbers(times, self.name), self.parts[1].coded(events) > 0
        if np.isnan(numbers).any():
            raise empty_time_error(self.name)
        if np.any(numbers < 0.0):
            raise DomainError(f"`{self.name}` must be a time of 0 or more in every record; got another one.")
        # Later times are all alike; so long ones can overflow.
        periods = np.minimum(numbers, self.length * (self.periods + 1.0)) / self.length
        whole = np.rint(periods)
        periods = np.where(np.abs(periods - whole) <= 1e-9 * np.maximum(whole, 1.0), whole, periods)
        happened &= periods <= self.periods
        rows = np.where(happened, np.maximum(np.ceil(periods), 1.0), np.floor(periods))
        return np.asarray(2.0 * np.minimum(rows, self.periods) + happened)

    def answers(self, codes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Whether the event was in each period; periods count up to it, or as far as the record goes."""
        rows, happened = np.divmod(codes[:, None], 2.0)
        numbers = np.arange(1.0, self.periods + 1.0)
        return (happened * (numbers == rows)).astype(np.float64), (numbers <= rows).astype(np.float64)

    def survival(self, scores: FloatArray) -> FloatArray:
        """The probability that nothing has happened by the end of each period, from the log odds in each."""
        return np.asarray(np.cumprod(expit(-scores), axis=1), dtype=np.float64)

    def predicted(self, scores: FloatArray) -> NDArray[Any]:
        """The mean time without the event, within the declared periods.

        The area under straight lines between the ends of the periods: an event counts in the middle of its
        period, because it may be anywhere in it, and whoever has none counts to the end of the last one.
        """
        curve = self.survival(scores)
        return np.asarray(self.length * (0.5 + np.sum(curve[:, :-1], axis=1) + 0.5 * curve[:, -1]))


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


class TimeColumn(NumberLabel):
    """The times of a :class:`TimeLabel`: none is below 0, and one after the last period is censored there."""


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
        if self.low < 0.0 or self.high < 1.0:
            raise ValueError(f"`{printable(self.name)}` must have low >= 0 and high >= 1: it is a count")
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
        if self.low <= 0.0 or self.high / 1e30 > self.low:
            raise ValueError(f"`{printable(self.name)}` must have low > 0, and high at most 1e30 times low")
        return self

    @property
    def typical(self) -> float:
        """The geometric mean of the bounds."""
        return math.sqrt(self.low) * math.sqrt(self.high)


Outcome = Annotated[
    NumberLabel | CountLabel | AmountLabel | OrderedLabel | TimeLabel, Field(discriminator="kind")
]
Label = Annotated[
    ClassLabel | NumberLabel | CountLabel | AmountLabel | OrderedLabel | TimeLabel,
    Field(discriminator="kind"),
]


def label_parts(label: Label) -> tuple[Any, ...]:
    """The columns of an outcome, each as it is checked: a time has two."""
    return label.parts if isinstance(label, TimeLabel) else (label,)
