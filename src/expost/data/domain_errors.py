"""What is wrong with a declaration, in a domain file or in Python, in one sentence."""

import datetime
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, cast, dataclass_transform

from pydantic import BaseModel, Field, ValidationError

from expost._common.models import FrozenModel
from expost._common.validation import as_written
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
    """The error for the first thing that validation found; the caller raises it.

    Parameters
    ----------
    error
        What pydantic found.
    content
        The file as TOML reads it.
    keys
        All keys that a domain file can have, for those that are misspelt.

    Privacy
    -------
    Public: the domain file is.
    """
    sentence = _sentence(error, content, keys)
    return DomainError(f"the domain file is not valid: {sentence}. docs/domain.md explains every key.")


def _sentence(error: ValidationError, content: Mapping[str, Any], keys: Collection[str]) -> str:
    """What validation found first, and how much more, without the full stop."""
    first = error.errors(include_url=False)[0]
    kind, where, context = first["type"], list(first["loc"]), first.get("ctx", {})
    owner, rest = _owner(where, content)
    key = f"`{rest[0]}`{owner}" if rest else owner.removeprefix(" of ")
    # pydantic inserts the kind of a feature into the path, and a name may be missing.
    if kind == "value_error":
        message = str(context["error"])
        sentence = message if message.startswith("`") or not rest else f"{key} {message}"
    elif kind == "missing":
        sentence = f"{key} is missing" if rest else f"the part [{where[0]}] is missing"
    elif kind == "extra_forbidden":
        sentence = f"{key} {_unknown(str(where[-1]), keys)}"
    elif kind == "union_tag_not_found":
        sentence = f"`kind`{owner} is missing"
    elif kind == "union_tag_invalid":
        choices = context["expected_tags"].replace("'", '"')
        sentence = f"`kind`{owner} must be one of {choices}; got {_shown(context['tag'])}"
    elif kind == "too_short":
        sentence = f"{key} must have {context['min_length']} entries or more"
    elif kind == "greater_than":
        sentence = f"{key} must be above {context['gt']:g}; got {_shown(first['input'])}"
    elif kind == "literal_error":
        choices = context["expected"].replace("'", '"')
        sentence = f"{key} must be {choices}; got {_shown(first['input'])}"
    elif kind.split("_")[0] in _KINDS and kind.endswith(("_type", "_number", "_parsing")):
        entry = "every entry of " if rest and isinstance(rest[-1], int) else ""
        wanted = _KINDS[kind.split("_")[0]]
        sentence = f"{entry}{key} must be {wanted}; got {_shown(first['input'])}"
    else:
        sentence = f"{key} is refused: {first['msg'].removeprefix('Value error, ')}"
    # A list whose entries are refused is also said to be too short.
    others = sum(one["type"] != "too_short" for one in error.errors(include_url=False)[1:])
    more = f" ({others} more after this)" if others else ""
    return f"{sentence}{more}"


def _owner(where: list[Any], content: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """The part of the file that a path leads to, in words, and the rest of the path."""
    if where[:1] == ["features"] and len(where) > 1 and isinstance(where[1], int):
        part = content["features"][where[1]]
        name = part.get("name") if isinstance(part, Mapping) else getattr(part, "name", None)
        called = f"the feature {name!r}" if isinstance(name, str) else f"feature number {where[1] + 1}"
        return f" of {called}", where[3:]
    if where[:1] == ["label"]:
        return " of the label", where[2:]
    if len(where) > 1 and isinstance(where[0], str):
        return f" of [{where[0]}]", where[1:]
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
