"""The features that a domain declares, and how each becomes columns of numbers."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator

from expost._common.typing import FloatArray
from expost.data.dates import PublicDate, as_days, days
from expost.data.texts import Bounded, Chosen, DeclaredModel, FieldTexts, Measured, Text
from expost.data.values import as_numbers, class_text, filled, share_between, text_codes
from expost.exceptions import printable

MOST_KNOTS = 20
"""How many knots a feature may have."""
# The shortest stretch between two knots, as a part of the feature's range.
_SHORTEST = 1e-6


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


# True where it is declared; files leave it out otherwise.
_Declared = Annotated[Literal[True] | None, BeforeValidator(lambda value: None if value is False else value)]
# The code of a value that was not recorded, where that has a column; of numbers it is NaN.
_GONE = -1


class _Encoded(FieldTexts):
    """A feature, encoded as columns of numbers; ``missing`` and ``effect`` have a type for each kind."""

    recorded: _Declared = None
    """Whether a column beside the default is 1 where no value was recorded, and 0 elsewhere."""

    @model_validator(mode="after")
    def _default(self) -> Self:
        if self.recorded and self.missing is None:  # type: ignore[attr-defined]
            raise ValueError(f"`recorded` of `{printable(self.name)}` must come with `missing`, its default")
        return self

    @property
    def places(self) -> Sequence[str]:
        """The values that have a column each, or each step from one to the next; none for one column."""
        return ()

    @property
    def in_steps(self) -> bool:
        """Whether columns are steps."""
        return False

    @property
    def value_names(self) -> list[str]:
        """The names of the columns that encode a value."""
        if self.in_steps:
            return [f"{self.name}≥{place}" for place in self.places[1:]]
        return [f"{self.name}={place}" for place in self.places] or [self.name]

    @property
    def column_names(self) -> list[str]:
        """The names of the encoded columns."""
        return self.value_names + [f"{self.name} not recorded"] * (self.parts - 1)

    @property
    def parts(self) -> int:
        """How many parts it has that are at most 1 long: its value, and whether that was recorded."""
        return 2 if self.recorded else 1

    @property
    def sums_to_one(self) -> bool:
        """Whether the columns of every value add up to 1."""
        return bool(self.places) and not self.in_steps

    @property
    def step(self) -> float:
        """What a step counts: all of them together have the length 1."""
        return 1.0 / math.sqrt(len(self.places) - 1)

    @property
    def columns(self) -> int:
        """How many columns it takes."""
        return len(self.column_names)

    @property
    def coef_bounds(self) -> list[tuple[float, float]]:
        """Between which numbers the coefficient of each column must lie, as its effect says."""
        effect: Any = self.effect  # type: ignore[attr-defined]
        free = [_BOUNDS[None]] * (self.parts - 1)
        return [_BOUNDS.get(effect, effect)] * (self.columns - len(free)) + free

    def expanded(self, codes: NDArray[Any]) -> list[NDArray[Any]]:
        """The columns of coded values."""
        if not self.recorded:
            return self._of_values(codes)
        gone = np.isnan(codes) if codes.dtype.kind == "f" else codes == _GONE
        missing: Any = self.missing  # type: ignore[attr-defined]
        (default,) = self.coded(np.array([missing], dtype=object))  # type: ignore[attr-defined]
        return [*self._of_values(np.where(gone, default, codes)), gone]

    def _of_values(self, codes: NDArray[Any]) -> list[NDArray[Any]]:
        """The columns that encode values."""
        return [codes]


class _OneColumn(_Encoded):
    """A feature that is encoded as one column, of its coded values."""

    effect: Annotated[Any, _effect_of("increasing", "decreasing")] = None
    """How a larger value may change the predictor, or the two bounds of the coefficient."""


class _Scale(_OneColumn, Bounded):
    r"""A feature on a scale, encoded as one column, or with ``knots`` as a curve.

    The bounds and the knots :math:`k_0 < \dots < k_m` are then nodes, with a column each: the hat function
    that is 1 at its node, 0 at all others, and linear between two. Any curve that is linear between nodes is
    a sum of hats, and its coefficients are its heights. Of a record at most two of them are not 0, they add
    up to 1, and their length is at most 1. With the ramps :math:`r_j = (x - k_{j-1})/(k_j - k_{j-1})`,
    clipped to [0, 1], hats are :math:`1 - r_1, r_1 - r_2, \dots, r_m`: a quotient and a difference, which
    every machine rounds alike. With an effect ``"increasing"`` or ``"decreasing"`` columns are the ramps
    themselves, divided by :math:`\sqrt m`, and no coefficient may have the other sign.
    """

    knots: Any = ()
    """Where the curve may bend."""

    @model_validator(mode="after")
    def _knots(self) -> Self:
        called = f"`knots` of `{printable(self.name)}` must"
        if len(self.knots) > MOST_KNOTS:
            raise ValueError(f"{called} be at most {MOST_KNOTS}; got {len(self.knots)}")
        shortest = _SHORTEST * (self.limits[1] - self.limits[0])
        if not all(end - start >= shortest for start, end in pairwise(self.nodes)):
            got = ", ".join(self.places[1:-1])
            raise ValueError(f"{called} rise between its bounds, {self.values}; got {got}")
        if self.knots and not self.symmetric:
            raise ValueError(f"`scale` of `{printable(self.name)}` must be left out where it has knots")
        return self

    @property
    def symmetric(self) -> bool:
        """Whether one column goes from -1 to 1, and not from 0 to 1."""
        return True

    @property
    def nodes(self) -> list[float]:
        """The knots with the bounds before and after them, as numbers."""
        return [self.low, *self.knots, self.high]

    @property
    def places(self) -> Sequence[str]:
        """The nodes in words, where there are knots."""
        return [class_text(node) for node in self.nodes] if self.knots else ()

    @property
    def in_steps(self) -> bool:
        """Whether columns are ramps."""
        return bool(self.knots) and isinstance(self.effect, str)

    def _coded(self, numbers: FloatArray, missing: float | None) -> FloatArray:
        """Numbers on the encoded scale; with knots, clipped alone."""
        low, *_, high = self.nodes
        numbers = numbers if self.recorded else filled(numbers, self.name, missing)
        if self.knots:
            return np.clip(numbers, low, high)
        share = share_between(numbers, low, high)
        return 2.0 * share - 1.0 if self.symmetric else share

    def _of_values(self, codes: NDArray[Any]) -> list[NDArray[Any]]:
        """The column of coded values, or those of the hats or ramps."""
        if not self.knots:
            return [codes]
        ramps = [np.clip((codes - start) / (end - start), 0.0, 1.0) for start, end in pairwise(self.nodes)]
        if self.in_steps:
            return [self.step * ramp for ramp in ramps]
        return [1.0 - ramps[0], *(before - after for before, after in pairwise(ramps)), ramps[-1]]


class Date(_Scale, Bounded):
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


class _Cycle(_Encoded):
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
        return np.where(gone, _GONE, self._places(dates)).astype(np.int8)

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


# The words for yes and no, in lower case; the first of each is used to write a default.
YES = ("yes", "true", "1", "1.0", "y", "t")
NO = ("no", "false", "0", "0.0", "n", "f")
_words = {**dict.fromkeys(YES, 1), **dict.fromkeys(NO, 0)}


def yes_or_no(text: str) -> int | None:
    """1 for a word for yes, 0 for one for no, and None for any other text."""
    return _words.get(text.strip().lower())


class Number(Measured, _Scale):
    """A feature measured on a scale with public bounds; values beyond them are clipped.

    Encoded as one column: ``[low, high]`` becomes [-1, 1], or [0, 1] with ``scale="unit"``. With ``knots``
    there is a column for each of them and for each bound.
    """

    kind: Literal["number"] = "number"
    scale: Literal["symmetric", "unit"] = "symmetric"
    missing: float | None = None
    """What a missing value counts as; if this is None, a missing value is an error."""
    knots: Annotated[tuple[float, ...], Field(strict=False)] = ()

    @property
    def symmetric(self) -> bool:
        """Whether one column goes from -1 to 1, and not from 0 to 1."""
        return self.scale == "symmetric"

    def coded(self, values: Any) -> FloatArray:
        """The cells as numbers on the encoded scale, missing ones by the default."""
        return self._coded(as_numbers(values, self.name), self.missing)


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
        self.check_texts(self.categories)
        return self

    @property
    def values(self) -> str:
        """The declared values in words."""
        return ", ".join(self.categories)

    def coded(self, values: Any) -> NDArray[Any]:
        """The place of each cell's category among those declared."""
        places = {category: place for place, category in enumerate(self.categories)}
        refusal = "has a category that was never declared. Recode it, or declare it in the domain."
        missing = "" if self.recorded else self.missing
        return text_codes(values, self.name, (places | {"": _GONE}).get, len(places), missing, refusal)

    def _of_values(self, codes: NDArray[Any]) -> list[NDArray[Any]]:
        """A column for each category that is true where a coded value is that one, or one for each step."""
        places = range(len(self.categories))
        if self.in_steps:
            return [np.where(codes >= place, self.step, 0.0) for place in places[1:]]
        return [codes == place for place in places]

    @property
    def places(self) -> Sequence[str]:
        """The categories."""
        return self.categories

    @property
    def in_steps(self) -> bool:
        """Whether columns are steps, of a monotone effect."""
        return bool(self.effect == "monotone")


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
        missing = "" if self.recorded else missing
        refusal = (
            "must be yes or no (or true, false, 1, 0) in every record; got something else. Declare other "
            'words as kind = "category" with both of them.'
        )
        code = (lambda text: yes_or_no(text) if text else _GONE) if self.recorded else yes_or_no
        return text_codes(values, self.name, code, 1, missing, refusal)


Feature = Annotated[Number | Category | YesNo | Date | Month | Weekday, Field(discriminator="kind")]


class Interaction(DeclaredModel):
    """Two features whose effects depend on each other: every column of one times every column of the other.

    Nothing is asked for it, and no record is longer in these columns than 1: they have the product of the
    lengths that the two features have.
    """

    product: Annotated[tuple[Text, ...], Field(strict=False)]
    """The names of the two features."""

    @model_validator(mode="after")
    def _two(self) -> Self:
        if len(set(self.product)) != 2 or len(self.product) != 2:
            raise ValueError(
                f"`product` must be the names of two different features; got {printable(self.name)}. For the "
                "curve of one feature declare its `knots`"
            )
        return self

    @property
    def name(self) -> str:
        """The interaction in words, such as ``age × smoker``."""
        return " × ".join(self.product)


def check_interactions(interactions: Sequence[Interaction], features: Sequence[Feature]) -> None:
    """Raise ValueError for a product of anything but two of the features, and for one that is there twice."""
    effects = {feature.name: feature.effect for feature in features}
    seen: set[frozenset[str]] = set()
    for one in interactions:
        called = f"`product` of `{printable(one.name)}` must"
        if unknown := [name for name in one.product if name not in effects]:
            raise ValueError(f"{called} name two features; `{printable(unknown[0])}` is none")
        if bound := [name for name in one.product if isinstance(effects[name], str)]:
            raise ValueError(f"{called} not name `{printable(bound[0])}`, whose `effect` it would undo")
        if frozenset(one.product) in seen:
            raise ValueError(f"{called} be declared once")
        seen.add(frozenset(one.product))
