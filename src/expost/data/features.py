"""The features that a domain declares, and how each becomes columns of numbers."""

import math
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from expost._common.typing import FloatArray
from expost.data.dates import Date, Month, Weekday
from expost.data.expansion import GONE, Expanded, OneColumn, Scale, effect_of
from expost.data.texts import (
    Chosen,
    DeclaredModel,
    InOrder,
    Measured,
    Text,
)
from expost.data.values import as_numbers, distinct_texts, empty_time_error, text_codes
from expost.exceptions import DomainError, printable

# More products than anybody fits: a short file can declare far more.
_MOST_PRODUCTS = 100_000
# The words for yes and no, in lower case; the first of each is used to write a default.
YES = ("yes", "true", "1", "1.0", "y", "t")
NO = ("no", "false", "0", "0.0", "n", "f")
_words = {**dict.fromkeys(YES, 1), **dict.fromkeys(NO, 0)}


def yes_or_no(text: str) -> int | None:
    """1 for a word for yes, 0 for one for no, and None for any other text."""
    return _words.get(text.strip().lower())


class Number(Measured, Scale):
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


class Category(Chosen, Expanded):
    r"""A feature with a few declared values, encoded as one column of 0 or 1 for each of them.

    With ``effect="monotone"`` the order of the categories counts: there is a column for each step, which is
    :math:`1/\sqrt{K - 1}` from that category on and 0 before, and no coefficient may be negative.
    """

    kind: Literal["category"] = "category"
    categories: Annotated[tuple[Text, ...], Field(min_length=2, strict=False), InOrder]
    missing: str | None = None
    """The category that a missing value counts as; if this is None, a missing value is an error."""
    example: str | None = None
    effect: Annotated[Any, effect_of("monotone")] = None
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
        return text_codes(values, self.name, (places | {"": GONE}).get, len(places), missing, refusal)

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


class YesNo(OneColumn):
    """A feature that is true or false, encoded as one column of 1 or 0."""

    kind: Literal["yes_no"] = "yes_no"
    missing: bool | None = None
    """What a missing value counts as; if this is None, a missing value is an error."""
    example: bool | None = None

    values: ClassVar[str] = "yes or no"
    otherwise: ClassVar[str] = 'Declare other words as kind = "category" with both of them.'
    """What to do about other words."""

    def coded(self, values: Any) -> NDArray[Any]:
        """1 for yes and 0 for no."""
        missing = None if self.missing is None else (YES if self.missing else NO)[0]
        missing = "" if self.recorded else missing
        refusal = (
            "must be yes or no (or true, false, 1, 0) in every record; got something else. " + self.otherwise
        )
        code = (lambda text: yes_or_no(text) if text else GONE) if self.recorded else yes_or_no
        return text_codes(values, self.name, code, 1, missing, refusal)


class EventColumn(YesNo):
    """The events of a time to an event, which have no default and no other words."""

    otherwise: ClassVar[str] = "Write one of these words."

    def coded(self, values: Any) -> NDArray[Any]:
        """1 for yes and 0 for no; an empty cell is neither."""
        if "" in distinct_texts(values, self.name)[1]:
            raise empty_time_error(self.name)
        return super().coded(values)


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
    _check_products(interactions, features)


def _check_products(interactions: Sequence[Interaction], features: Sequence[Feature]) -> None:
    columns = {feature.name: feature.columns for feature in features}
    products = sum(math.prod(columns[name] for name in one.product) for one in interactions)
    if products > _MOST_PRODUCTS:
        wanted = f"at most {_MOST_PRODUCTS:,} columns together"
        advice = "Take fewer categories or knots"
        raise ValueError(f"`interactions` must have {wanted}; got {products:,}. {advice}")


def check_defaults(features: Sequence[Feature]) -> None:
    """Raise DomainError if a default is beyond its own bounds; publications of before may have such."""
    for part in features:
        missing: Any = part.missing if isinstance(part, Number | Date) else None
        if missing is not None and not part.low <= missing <= part.high:  # type: ignore[union-attr]
            raise DomainError(
                f"the domain file is not valid: `missing` of the feature {part.name!r} must be within its "
                f"bounds, {part.values}; got {missing}. Correct one of them."
            )
