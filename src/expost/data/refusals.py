"""What is wrong with a declaration, in one sentence."""

import datetime
import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from expost._common.validation import as_written
from expost.exceptions import DomainError

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
    "union_tag_invalid": "`kind`{owner} must be one of {choices}; got {got}{instead}",
    "too_short": "{key} must have {min_length} entries or more",
    "greater_than": "{key} must be above {gt:g}; got {got}",
    "literal_error": "{key} must be {choices}; got {got}",
}
# What a label has in place of the kind of a feature.
_INSTEAD = {
    (" of the label", "yes_no"): '; write kind = "classes" and classes = ["no", "yes"]',
    (" of the label", "category"): '; write kind = "classes", and `classes` in place of `categories`',
}
_LONGEST = 60
# What a skeleton of a domain file holds in place of each value that must be declared.
PLACEHOLDER = "FILL IN"
PRIVATE = "private"
"""In the place of a bound that is to be chosen by `expost choose`."""
# So many places that are still to be filled in are named.
_MOST_PLACES = 6


def error_in_file(error: ValidationError, content: Mapping[str, Any], keys: Collection[str]) -> DomainError:
    """The error for what validation found first in a file, whose keys are ``keys``; the caller raises it."""
    sentence = sentence_of(error, content, keys)
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


def sentence_of(error: ValidationError, content: Mapping[str, Any], keys: Collection[str]) -> str:
    """What validation found first, and how much more, without the full stop."""
    # A key that is misspelt is also missing.
    first, *more = sorted(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
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
        unknown = _unknown(where, keys)
        instead = _INSTEAD.get((owner, context.get("tag")), "")
        words = {"key": key, "owner": owner, "choices": choices, "got": got, "unknown": unknown}
        words["instead"] = instead
        return _SENTENCES[kind].format(**context | words)
    if family in _KINDS and kind.endswith(("_type", "_number", "_parsing")):
        return _unkind(first["input"], _KINDS[family], key, rest)
    return f"{key} {_unlike(first['msg'], first['input'])}"


def _unkind(value: object, kind: str, key: str, rest: list[Any]) -> str:
    """That a value, or an entry of a list, is of another kind."""
    if rest[:1] == ["units"] and isinstance(value, str):
        return f"{key} must be other units, such as {{ weeks = 7 }}; the unit of the column is `unit`"
    entry = "every entry of " * isinstance((None, *rest)[-1], int)
    return f"{entry}{key} must be {kind}; got {_shown(value)}"


def _unlike(message: str, value: Any) -> str:
    """What a part must be like, where validation says so in words of its own."""
    limit = message.removeprefix("Input should be ")
    if limit != message:
        return f"must be {limit}; got {_shown(value)}"
    return f"is refused: {message.removeprefix('Value error, ')}"


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


def _unknown(where: Sequence[str | int], keys: Collection[str]) -> str:
    *_, part, key = "", *map(str, where)
    if key in keys:
        meant = " (perhaps `unit` is meant)" if key == "units" else ""
        of_kind = where[0] in ("features", "label") and len(where) > 1
        parts = f'parts with kind = "{part}" have' if of_kind else "this part of a domain file has"
        return f"does not belong there: {parts} no such key{meant}"
    close = get_close_matches(key, keys, n=1)
    return "is no key of a domain file" + (f" (perhaps `{close[0]}` is meant)" if close else "")


def _shown(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else as_written(value)
    text = str(value) if isinstance(value, datetime.date) else text
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def _declared(content: Mapping[str, Any]) -> list[Any]:
    """The features and the outcome, as a file has them."""
    features = content.get("features")
    return [*(features if isinstance(features, list) else []), content.get("label")]


def check_filled(content: Mapping[str, Any]) -> None:
    """Raise DomainError if the file still has placeholders; it names the first ones."""
    places = [
        f"`{key}` of {part.get('name', 'publication')!r}"
        for part in [*_declared(content), content.get("publication")]
        for key, value in (part.items() if isinstance(part, Mapping) else ())
        if PLACEHOLDER in (value if isinstance(value, list) else [value])
    ]
    if places:
        more = len(places) - _MOST_PLACES
        named = ", ".join(places[:_MOST_PLACES]) + (f" and {more} more" if more > 0 else "")
        raise DomainError(
            f"the domain file still says {PLACEHOLDER!r} for {named}. Write what is known about these "
            "without looking at the table."
        )


def check_chosen(content: Mapping[str, Any]) -> None:
    """Raise DomainError if a range is still to be chosen; it names the first column."""
    for part in _declared(content):
        if isinstance(part, Mapping) and PRIVATE in (part.get("low"), part.get("high")):
            raise DomainError(
                f"the range of {part.get('name')!r} is to be chosen privately, and has not been. Choose it "
                "first: expost choose DOMAIN.toml TABLE -o chosen.toml"
            )
