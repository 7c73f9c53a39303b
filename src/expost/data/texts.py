"""What a publisher declares in words, and what fields have: bounds and units, or a list of values."""

import datetime
import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, cast, dataclass_transform

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from expost._common.strict_json import FrozenModel
from expost._common.validation import LanguageName
from expost.data.refusals import sentence_of
from expost.data.values import of_one_kind
from expost.exceptions import DomainError, printable

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass  # it has no public name
else:
    ModelMetaclass = type(BaseModel)


@dataclass_transform(kw_only_default=True, field_specifiers=(Field,))
class _DeclaredType(ModelMetaclass):
    def __call__(self, *args: Any, **fields: Any) -> Any:
        # Called by whoever declares something in Python, and not for the parts that pydantic itself builds.
        try:
            return super().__call__(*args, **fields)
        except ValidationError as error:
            keys = set(cast(type[BaseModel], self).model_fields)
            sentence = sentence_of(error, fields, keys)
        raise DomainError(f"{self.__name__} is not valid: {sentence}.")


class DeclaredModel(FrozenModel, metaclass=_DeclaredType):
    """A part of a domain; to make one that is not valid raises DomainError."""


# Letters that end a line, steer a terminal or reverse the order of what is read; none belongs into a label.
_STEERING = {"Cc", "Cs", "Zl", "Zp"}
_REVERSING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_ADDRESS = re.compile(r"[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63}){1,8}")


def must(be: str, holds: Callable[[str], object]) -> AfterValidator:
    """Refuse a text for which something does not hold, or cannot be found out, and say what it must be."""

    def check(text: str) -> str:
        with suppress(ValueError, LookupError):
            if holds(text):
                return text
        raise ValueError(f"must be {be}")

    return AfterValidator(check)


def in_order(values: Any) -> Any:
    """Values that were given as a list; ValueError for a set, whose order is another in every process."""
    if isinstance(values, set | frozenset):
        raise ValueError("must be a list: a set has no order, and here the order counts")
    return values


InOrder = BeforeValidator(in_order)


def _is_plain(text: str) -> bool:
    odd = (letter in _REVERSING or unicodedata.category(letter) in _STEERING for letter in text)
    return text == text.strip() and not any(odd)


LONGEST_TEXT = 200
Text = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
"""A name or a value, as a table has it."""
Plain = Annotated[
    str, Field(min_length=1), must("one line of plain text without blanks at its ends", _is_plain)
]
Word = Annotated[Plain, Field(max_length=40)]
Line = Annotated[Plain, Field(max_length=120)]
Sentence = Annotated[Plain, Field(max_length=300)]
Paragraph = Annotated[Plain, Field(max_length=600)]
Day = Annotated[
    str,
    # TOML has dates of its own, which are no times of day; a file of JSON has texts.
    BeforeValidator(lambda day: day.isoformat() if type(day) is datetime.date else day),
    must("a day such as 2026-06-03", lambda day: _DAY.fullmatch(day) and datetime.date.fromisoformat(day)),
]
Address = Annotated[
    str,
    Field(max_length=254),
    must("one plain e-mail address, such as privacy@clinic.example", _ADDRESS.fullmatch),
]
Factor = Annotated[float, Field(gt=0.0)]
Units = Annotated[
    tuple[tuple[Word, Factor], ...],
    Field(max_length=8, strict=False),
    BeforeValidator(lambda units: tuple(units.items()) if isinstance(units, Mapping) else units),
    PlainSerializer(dict),
]


class Texts(DeclaredModel):
    """A part of a domain with texts, all optional; those that are not declared are left out of files."""

    text_names: ClassVar[tuple[str, ...]] = ()
    """The names of the texts in the order in which files have them; empty where all fields are texts."""
    added_names: ClassVar[tuple[str, ...]] = ()
    """The names of other fields that files leave out where they are not declared."""

    @model_serializer(mode="wrap")
    def _declared(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The other fields first, as files without texts have them."""
        fields: dict[str, Any] = whole(self)
        names = (*(self.text_names or list(fields)), *self.added_names)
        texts = {name: fields.pop(name) for name in names if name in fields}
        return fields | {name: text for name, text in texts.items() if text not in (None, (), [], {})}


class FieldTexts(Texts):
    """A feature or an outcome: its name, and texts about it."""

    name: Text
    title: Line | None = None
    """What to call it; by default its name."""
    question: Sentence | None = None
    """How to ask for it; by default its title."""
    help: Paragraph | None = None
    """Where a person finds it."""
    group: Line | None = None
    """The heading under which it is asked."""
    aliases: Annotated[tuple[Line, ...], Field(max_length=20, strict=False)] = ()
    """Other names that its column may have in a person's own file."""

    # Kinds of fields declare an example and an effect each in their own type.
    text_names = ("title", "question", "help", "group", "aliases", "unit", "units", "titles", "example")
    added_names = ("effect", "knots", "recorded")


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

    titles: Annotated[tuple[Line, ...], Field(strict=False), InOrder] = ()
    """What to call each value, in the order of the values."""
    example: Any = None

    def check_texts(self, values: tuple[Any, ...]) -> None:
        """Raise ValueError unless the example is one of the values, and each of them has a title or none."""
        example = self.example
        if example is not None and (example not in values or not of_one_kind([example, *values])):
            raise ValueError(f"`{printable(self.name)}` must have an example that is one of its values")
        if self.titles and len(set(self.titles)) != len(values):
            named = f"`titles` of `{printable(self.name)}`"
            raise ValueError(f"{named} must be {len(values)} different texts, one for each value")


class Contact(Texts):
    """Whom to ask: at least one of an e-mail address, a telephone number and an address."""

    email: Address | None = None
    phone: Word | None = None
    address: Sentence | None = None

    @model_validator(mode="after")
    def _some(self) -> Self:
        if self.email is None and self.phone is None and self.address is None:
            raise ValueError("`contact` must have `email`, `phone` or `address`")
        return self


class PublicationTexts(Texts):
    """What the publisher says about the publication; every text is optional, declared before the fit, public.

    Privacy
    -------
    Public. Write nothing into it that was learnt from the table, such as how many records it has.
    """

    title: Line | None = None
    """The name of the model."""
    publisher: Line | None = None
    """Who publishes it."""
    contact: Contact | None = None
    """Whom to ask."""
    purpose: Sentence | None = None
    """Completes the sentence "a computer model that …"."""
    date: Day | None = None
    """The day of the publication; no clock is read."""
    population: Sentence | None = None
    """Whose records were used: completes "made from the records of …"."""
    opt_out: bool | None = None
    """Whether the publisher promises to leave out the next time whoever asks for it."""
    reply: Sentence | None = None
    """What the publisher promises to those who ask."""
    everyone: Word | None = None
    """Whom a promise to people is made to, such as "every patient"; completes "the promise to …"."""
    row_word: Word | None = None
    """What a person has several of, such as "visit"."""
    row_words: Word | None = None
    """What a person has several of, in the plural: completes "how many … did you have?"."""
    language: LanguageName | None = None
    """The language of these texts, and of the page where no other is asked for."""

    @model_validator(mode="after")
    def _both_words(self) -> Self:
        if (self.row_word is None) != (self.row_words is None):
            raise ValueError("`row_word` and `row_words` must be declared together")
        return self


def quoted(text: str) -> str:
    """A text as TOML writes it."""
    # A JSON string is a TOML string. What a terminal would obey or hide is escaped too, as TOML spells it.
    letters = json.dumps(text, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in letters)


def toml_lines(part: BaseModel) -> str:
    """The lines of a domain file that declare a part: its kind, and what is not the default; texts last."""
    fields = type(part).model_fields
    texts = part.text_names if isinstance(part, Texts) else ()
    keys = [*(key for key in fields if key not in texts), *(key for key in texts if key in fields)]
    declared = [key for key in keys if key == "kind" or getattr(part, key) != fields[key].default]
    return "".join(f"{key} = {toml_value(getattr(part, key))}\n" for key in declared)


def toml_value(value: Any) -> str:
    """A value as TOML writes it; pairs of a name and a value become a table."""
    if isinstance(value, Contact):
        value = tuple(value.model_dump().items())
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return f"{{ {', '.join(f'{quoted(name)} = {toml_value(one)}' for name, one in value)} }}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.date):
        return value.isoformat()
    return quoted(value) if isinstance(value, str) else repr(value)
