"""What a publisher declares in words, and what is wrong with a declaration, in one sentence."""

import datetime
import json
import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from difflib import get_close_matches
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
from expost._common.validation import LanguageName, as_written
from expost.exceptions import DomainError

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass  # it has no public name
else:
    ModelMetaclass = type(BaseModel)


# How each kind of value is called, by the word in pydantic's type of error, with an example of it in TOML.
_KINDS = {
    "string": 'a text, such as "north"',
    "float": "a number, such as 120.0",
    "int": "a whole number, such as 3",
    "finite": "a finite number",
    "bool": "true or false",
    "date": "a date, such as 1980-12-31, without a time",
    "tuple": 'a list, such as ["north", "south"]',
    "list": 'a list, such as ["north", "south"]',
    "dict": "a table of keys, such as { years = 1.0 }",
    "model": "a part with keys of its own",
}
# What is said of other errors, by their types.
_SENTENCES = {
    "missing": "{key} is missing",
    "extra_forbidden": "{key} {unknown}",
    "union_tag_not_found": "`kind`{owner} is missing",
    "union_tag_invalid": "`kind`{owner} must be one of {choices}; got {got}",
    "too_short": "{key} must have {min_length} entries or more",
    "greater_than": "{key} must be above {gt:g}; got {got}",
    "literal_error": "{key} must be {choices}; got {got}",
}
_LONGEST = 60


@dataclass_transform(kw_only_default=True, field_specifiers=(Field,))
class _DeclaredType(ModelMetaclass):
    def __call__(self, *args: Any, **fields: Any) -> Any:
        # Called by whoever declares something in Python, and not for the parts that pydantic itself builds.
        try:
            return super().__call__(*args, **fields)
        except ValidationError as error:
            keys = set(cast(type[BaseModel], self).model_fields)
            sentence = _sentence(error, fields, keys)
        raise DomainError(f"{self.__name__} is not valid: {sentence}.")


class DeclaredModel(FrozenModel, metaclass=_DeclaredType):
    """A part of a domain; to make one that is not valid raises DomainError."""


def error_in_file(error: ValidationError, content: Mapping[str, Any], keys: Collection[str]) -> DomainError:
    """The error for what validation found first in a file, whose keys are ``keys``; the caller raises it."""
    sentence = _sentence(error, content, keys)
    return DomainError(f"the domain file is not valid: {sentence}. docs/domain.md explains every key.")


# Values that people write as they are used to, each with what TOML has in its place.
_HABITS = {
    r"=\s*[+-]?\d+,\d+\s*(#.*)?$": "a number has a decimal point: 0.2",
    r"=\s*\d{1,2}[./]\d{1,2}[./]\d{4}\s*(#.*)?$": "a date is written year first: 2015-01-31",
    r"=\s*[^\W\d][\w .-]*(#.*)?$": 'a text stands in quotes: "north"; true and false are small letters',
    r"=\s*\[\s*[^\W\d\"']": 'texts in a list stand in quotes: ["north", "south"]',
    r"[\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb]": 'quotes are straight: "north"',
}


def explained(error: ValueError, text: str) -> str:
    """What is wrong with a file of TOML: the line that cannot be read, and a hint where a habit is known."""
    found = re.search(r"\(at line (\d+)", str(error))
    lines = text.splitlines()
    if found is None or int(found[1]) > len(lines):
        return str(error)
    line = lines[int(found[1]) - 1].strip()
    hint = next((words for habit, words in _HABITS.items() if re.search(habit, line)), str(error))
    return f"line {found[1]} is {_shown(line)}; {hint}"


def _sentence(error: ValidationError, content: Mapping[str, Any], keys: Collection[str]) -> str:
    """What validation found first, and how much more, without the full stop."""
    first, *more = error.errors(include_url=False)
    owner, rest = _owner(list(first["loc"]), content)
    sentence = _said(first, owner, rest, keys)
    # A list whose entries are refused is also said to be too short.
    others = sum(one["type"] != "too_short" for one in more)
    return sentence + (f" ({others} more after this)" if others else "")


def _said(first: Any, owner: str, rest: list[Any], keys: Collection[str]) -> str:
    """What is wrong with the part of a domain that is called so."""
    kind, where, context = first["type"], first["loc"], first.get("ctx", {})
    family = kind.split("_")[0]
    key = f"`{rest[0]}`{owner}" if rest else owner.removeprefix(" of ")
    if kind == "value_error":
        message = str(context["error"])
        return f"{key} {message}" if rest and not message.startswith("`") else message
    if kind == "missing" and not rest:
        return f"the part [{where[0]}] is missing"
    if kind in _SENTENCES:
        choices = context.get("expected_tags", context.get("expected", "")).replace("'", '"')
        got = _shown(context.get("tag", first["input"]))
        unknown = _unknown("".join(map(str, where[-1:])), keys)
        words = {"key": key, "owner": owner, "choices": choices, "got": got, "unknown": unknown}
        return _SENTENCES[kind].format(**context | words)
    if family in _KINDS and kind.endswith(("_type", "_number", "_parsing")):
        entry = "every entry of " * isinstance((None, *rest)[-1], int)
        return f"{entry}{key} must be {_KINDS[family]}; got {_shown(first['input'])}"
    return f"{key} is refused: {first['msg'].removeprefix('Value error, ')}"


def _owner(where: list[Any], content: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """The part of the file that a path leads to, in words, and the rest of the path.

    pydantic inserts the kind of a feature into the path, and a name may be missing.
    """
    first, second, *rest = [*where, None, None][: max(len(where), 2)]
    if first in ("features", "interactions") and isinstance(second, int):
        word, part = first.removesuffix("s"), content[first][second]
        name = part.get("name") if isinstance(part, Mapping) else getattr(part, "name", None)
        called = f"the {word} {name!r}" if isinstance(name, str) else f"{word} number {second + 1}"
        return f" of {called}", rest[first == "features" :]
    if first == "label":
        return " of the label", rest
    if isinstance(second, str):
        return f" of [{first}]", [second, *rest]
    return "" if where else " of the domain", where


def _unknown(key: str, keys: Collection[str]) -> str:
    if key in keys:
        return "does not belong there: no such part of a domain file has this key"
    close = get_close_matches(key, keys, n=1)
    return "is no key of a domain file" + (f" (perhaps `{close[0]}` is meant)" if close else "")


def _shown(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else as_written(value)
    text = str(value) if isinstance(value, datetime.date) else text
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


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
    added_names = ("effect", "knots")


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


def toml_lines(part: DeclaredModel) -> str:
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
