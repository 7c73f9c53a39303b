"""Read JSON strictly and into strict models, and write it with every digit."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from expost.exceptions import PublicationError


class FrozenModel(BaseModel):
    """A frozen model with exactly the declared fields, finite numbers, and no conversion between types."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )

    def __dir__(self) -> Iterable[str]:
        """The names for tab completion, without pydantic's own."""
        return [name for name in super().__dir__() if name not in _OF_PYDANTIC]


_OF_PYDANTIC = frozenset(
    name for name in (*dir(BaseModel), "model_config", "model_fields_set") if not name.startswith("__")
)


MAX_BYTES = 128 * 2**20
# Limits on what a hostile file can make the reader build. They leave room for a domain of 25,000
# features and for a Hessian of 2,800 columns; a fit that needs more is refused before it draws noise.
_MAX_DEPTH = 32
_MAX_CONTAINERS = 30_000
_MAX_VALUES = 4_000_000
_MAX_KEYS = 200_000
_MAX_NUMBER = 40

INTACT = "ask whoever published it for an intact copy"
UPGRADE = "upgrade expost if it is newer than this one, or " + INTACT
# What is escaped, and then a string to its closing quote, or to the end where there is none: no text is
# scanned twice, and nothing is remembered of it.
_ESCAPED, _STRING = re.compile(r"\\.", re.DOTALL), re.compile(r'"[^"]*+"?')
_NOT_STRUCTURE = re.compile(r"[^]\[{},:]+")


def publication_error(what: str, way_out: str = INTACT) -> PublicationError:
    """Build the error for a publication that cannot be used; the caller raises it."""
    return PublicationError(f"cannot use this publication: {what}; {way_out}.")


def require(holds: object, what: str, way_out: str = INTACT) -> None:
    """Raise :func:`publication_error` unless something holds."""
    if not holds:
        raise publication_error(what, way_out)


def shown(value: object) -> str:
    """Show a value from a file in a few printable characters.

    Examples
    --------
    >>> shown([1, 2]), shown("a" * 100), shown(0.5)
    ('a list of 2', "'aaaaaaaaaaaaaaaaaaaaaaaa…'", '0.5')
    """
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, str):
        return ascii(value[:24] + "…" * (len(value) > 24)).replace("\\u2026", "…")
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return repr(value) if isinstance(value, int | float) else f"a {type(value).__name__}"


def read_object(text: str | bytes) -> dict[str, Any]:
    """Read one JSON object; raise an error if it is ambiguous, not finite, or too large.

    Python's own reader takes the last of several equal keys, reads ``NaN`` and ``1e999``, converts numbers of
    any length and goes as deep as the stack allows. None of that is allowed here.

    Privacy
    -------
    The text comes from outside. An error quotes at most a few characters of it.
    """
    check_size(len(text))
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        raise publication_error("it is not UTF-8 text", "save it as UTF-8, or " + INTACT) from None
    marked = decoded.startswith("\ufeff")
    require(not marked, "it starts with a byte order mark", "save it as UTF-8 without one")
    require(decoded.strip(), "it is empty")
    _check_structure(decoded)
    try:
        document = json.loads(
            decoded,
            object_pairs_hook=_without_duplicates,
            parse_float=partial(_number, float),
            parse_int=partial(_number, int),
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise publication_error(f"it is not valid JSON at {place} ({error.msg})") from None
    require(isinstance(document, dict), f"it must be one JSON object but is {shown(document)}")
    return cast(dict[str, Any], document)


def check_readable(text: str) -> None:
    """Raise PublicationError if :func:`read_object` would find a text too large."""
    check_size(len(text.encode()))
    _check_structure(text)


def check_size(size: int, values: int = 0) -> None:
    """Raise PublicationError if a file has too many bytes, or a list in it too many values."""
    require(size <= MAX_BYTES, f"it is longer than {MAX_BYTES // 2**20} MiB")
    require(values <= _MAX_VALUES, f"it has more than {_MAX_VALUES} values")


def digest(document: Mapping[str, Any]) -> str:
    """The SHA-256 of a document in hexadecimal: keys sorted, no spaces, ASCII, numbers by ``repr``."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def indented(document: Mapping[str, Any], margin: str = "") -> str:
    """Format a document for people: one field per line, a list of numbers on one line.

    Examples
    --------
    >>> print(indented({"a": {"b": [0.5, 2.0]}, "c": None}))
    {
      "a": {
        "b": [0.5, 2.0]
      },
      "c": null
    }
    """
    inner = margin + "  "
    spell = partial(json.dumps, ensure_ascii=False, allow_nan=False)
    lines = []
    for key, value in document.items():
        if isinstance(value, Mapping):
            spelling = indented(value, inner)
        elif isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
            items = ",\n".join(f"{inner}  {spell(item)}" for item in value)
            spelling = f"[\n{items}\n{inner}]"
        else:
            spelling = spell(value)
        lines.append(f"{inner}{json.dumps(key)}: {spelling}")
    return "{\n" + ",\n".join(lines) + f"\n{margin}}}"


def _check_structure(text: str) -> None:
    """Check depth and size by a linear scan, before anything recursive or large is built."""
    skeleton = _NOT_STRUCTURE.sub("", _STRING.sub("", _ESCAPED.sub("", text)))
    values, keys = skeleton.count(","), skeleton.count(":")
    brackets = skeleton.replace(",", "").replace(":", "")
    depth = 0
    for bracket in brackets[: 2 * _MAX_CONTAINERS]:
        depth += 1 if bracket in "[{" else -1
        if depth > _MAX_DEPTH:
            raise publication_error(f"it is nested deeper than {_MAX_DEPTH} levels")
    if values > _MAX_VALUES or keys > _MAX_KEYS or len(brackets) > 2 * _MAX_CONTAINERS:
        raise publication_error(
            f"it has more than {_MAX_VALUES} values, {_MAX_KEYS} keys or {_MAX_CONTAINERS} lists and objects"
        )


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for key, value in pairs:
        if key in document:
            raise publication_error(f"the key {shown(key)} appears twice in one object")
        document[key] = value
    return document


def _number(kind: Callable[[str], float], literal: str) -> float:
    if len(literal) > _MAX_NUMBER:
        raise publication_error(f"a number has {len(literal)} characters, more than {_MAX_NUMBER}")
    number = kind(literal)
    if not math.isfinite(number):
        raise publication_error(f"the number {shown(literal)} is beyond double precision")
    return number


def _refuse_constant(name: str) -> float:
    raise publication_error(f"numbers must be finite but one is {name}")


# What is said of the kinds of errors that pydantic tells apart; of any other kind the last sentence.
_NO_OBJECT = "`{where}` must be an object but is {given}"
_SENTENCES = {
    "missing": "the field `{where}` is missing",
    "extra_forbidden": "`{where}` is no field of this format",
    "value_error": "`{where}` is refused: {error}",
    "union_tag_not_found": "the field `{where}.kind` is missing",
    "union_tag_invalid": "`{where}.kind` must be one of {expected_tags} but is {tag}",
    "too_short": "`{where}` must have {min_length} entries or more but has {actual_length}",
    "model_type": _NO_OBJECT,
    "model_attributes_type": _NO_OBJECT,
    "string_pattern_mismatch": "`{where}` must match {pattern} but is {given}",
}
_OTHERWISE = "`{where}` must {constraint} but is {given}"


def error_of_validation(error: ValidationError) -> PublicationError:
    """The error for the first thing that validation found, in one sentence."""
    first = error.errors(include_url=False)[0]
    context = first.get("ctx", {})
    inside = context.get("error")
    if isinstance(inside, PublicationError):
        return inside
    if "tag" in context:
        context["tag"] = shown(context["tag"])
    constraint = first["msg"].removeprefix("Input should ").removeprefix("String should ")
    # What is refused as a whole names its parts itself.
    whole = not first["loc"] and "error" in context
    template = "{error}" if whole else _SENTENCES.get(first["type"], _OTHERWISE)
    sentence = template.format(
        where=_place(first["loc"]), given=shown(first["input"]), constraint=constraint, **context
    )
    newer = first["type"] == "extra_forbidden"
    return publication_error(sentence, UPGRADE if newer else INTACT)


def _place(path: tuple[int | str, ...]) -> str:
    """A path in the file, such as ``domain.features[0].low``."""
    # pydantic inserts the kind of a feature or of a label.
    tags = {("domain", "features"): 3, ("domain", "label"): 2, ("outcome",): 1}
    tag = next((at for first, at in tags.items() if path[: len(first)] == first), len(path))
    text = ""
    for part in path[:tag] + path[tag + 1 :]:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += "." * bool(text) + (part if part.isidentifier() and len(part) <= 40 else shown(part))
    return text
