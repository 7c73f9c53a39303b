"""What single values of a published file may be: losses, labels, names and lists of numbers."""

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, ValidationInfo

from expost._common.strict_json import INTACT, publication_error, shown
from expost.data.classes import of_one_kind
from expost.exceptions import LossError, ParameterError, PublicationError
from expost.losses import AnyLoss, Regularizer, as_loss, describe
from expost.losses.registry import PUBLISHED, REGULARIZERS
from expost.losses.softmax_curve import MOST_CLASSES

# Labels beyond this are not exact everywhere that JSON is read.
_LARGEST_INTEGER = 2**53
_LONGEST_TEXT = 10_000

Named = TypeVar("Named", bound=AnyLoss | Regularizer)
Label = str | bool | int | float


def _loss(value: Any, info: ValidationInfo) -> AnyLoss:
    """The loss that a file names; the reader may bring her own, which are checked."""
    known: Mapping[str, type[AnyLoss]] = info.context or PUBLISHED
    name = value.get("name") if isinstance(value, dict) else None
    own = isinstance(name, str) and name not in PUBLISHED
    try:
        return as_loss(_named("loss", value, known))
    except PublicationError:
        raise
    except LossError as error:
        reason = f"`loss` is refused: {str(error).rstrip('.')}"
        raise publication_error(reason, "mend the class that `losses` gives") from None
    except Exception as error:
        if not own:
            raise
        # What the reader's own class raises can be anything.
        reason = f"the class of `loss` raises {type(error).__name__} with the parameters of the file"
        raise publication_error(reason, "mend the class that `losses` gives, or " + INTACT) from None


def _named(field: str, value: Any, known: Mapping[str, type[Named]]) -> Named:
    """Build the loss or regulariser that a field describes."""
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(name, str) or name not in known:
        got = shown(name) if isinstance(value, dict) else shown(value)
        choices = ", ".join(known)
        way_out = "upgrade expost if it is newer than this one, or " + INTACT
        if field == "loss":
            way_out = "give its class with `losses` if it is a loss of the curator's own, " + way_out
        raise publication_error(f"`{field}` must name one of {choices} but is {got}", way_out)
    declared = {parameter.name: parameter.type for parameter in fields(known[name])}  # type: ignore[arg-type]
    parameters = {key: given for key, given in value.items() if key in declared}
    for key, given in parameters.items():
        _check_parameter(f"{field}.{key}", given, declared[key], positive=name in PUBLISHED | REGULARIZERS)
    needed = {one.name for one in fields(known[name]) if one.default is MISSING}  # type: ignore[arg-type]
    if not needed <= set(parameters):
        raise publication_error(f"`{field}` of kind {name!r} must have {', '.join(sorted(needed))}")
    try:
        built = known[name](**parameters)
    except ParameterError as error:
        raise publication_error(f"`{field}` is refused: {str(error).rstrip('.')}") from None
    # What was added to the format later is written only where it has an effect.
    described = describe(built)
    if set(described) != set(value):
        wanted = ", ".join(key for key in described if key != "name") or "no parameters"
        raise publication_error(f"`{field}` of kind {name!r} must have exactly {wanted}")
    if described != value:
        raise publication_error(f"`{field}` of kind {name!r} changes its parameters as it is made")
    return built


def _check_parameter(field: str, given: Any, declared: Any, *, positive: bool) -> None:
    """Refuse a parameter of another type than the loss declares."""
    if declared in (bool, "bool"):
        if not isinstance(given, bool):
            raise publication_error(f"`{field}` must be true or false but is {shown(given)}")
    elif declared in (int, "int"):
        if type(given) is not int or (positive and given <= 0):
            raise publication_error(f"`{field}` must be a whole number above 0 but is {shown(given)}")
    elif type(given) not in (int, float) or (positive and given <= 0):
        raise publication_error(f"`{field}` must be a finite number above 0 but is {shown(given)}")


def numbers(field: str) -> BeforeValidator:
    """Read a list of numbers as floats; the first wrong entry is named, and no others are collected."""

    def read(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise publication_error(f"`{field}` must be a list of numbers but is {shown(value)}")
        for place, entry in enumerate(value):
            if type(entry) is not float and type(entry) is not int:
                raise publication_error(f"`{field}[{place}]` must be a number but is {shown(entry)}")
        return tuple(map(float, value))

    return BeforeValidator(read)


def choice(field: str, choices: Collection[str]) -> AfterValidator:
    """Accept one of a few texts."""

    def check(value: str) -> str:
        if value not in choices:
            raise publication_error(f"`{field}` must be one of {', '.join(choices)} but is {shown(value)}")
        return value

    return AfterValidator(check)


def _labels(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, Sequence) or isinstance(value, str) or not 2 <= len(value) <= MOST_CLASSES:
        wanted = f"null or 2 to {MOST_CLASSES} labels"
        raise publication_error(f"`classes` must be {wanted} but is {shown(value)}")
    if not of_one_kind(value):
        raise publication_error("`classes` must be labels of one kind: texts, numbers, or false and true")
    for label in value:
        if isinstance(label, str):
            _check_text("classes", label)
        elif not abs(label) <= (_LARGEST_INTEGER if isinstance(label, int) else sys.float_info.max):
            raise publication_error(f"`classes` must be exact, finite numbers but one is {shown(label)}")
    if len(set(value)) < len(value):
        twice = next(label for place, label in enumerate(value) if label in value[:place])
        raise publication_error(f"`classes` must be different labels but two are {shown(twice)}")
    return tuple(value)


def _check_text(field: str, text: str) -> None:
    """Refuse half of a surrogate pair, which cannot be written as UTF-8, and texts that are no names."""
    try:
        short = len(text.encode("utf-8")) <= _LONGEST_TEXT
    except UnicodeEncodeError:
        raise publication_error(
            f"`{field}` must be text but {shown(text)} holds half of a surrogate pair"
        ) from None
    if not short:
        raise publication_error(
            f"`{field}` must be texts of at most {_LONGEST_TEXT} bytes but one is {shown(text)}"
        )


def _names(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise publication_error(f"`feature_names` must be null or a list of texts but is {shown(value)}")
    for name in value:
        _check_text("feature_names", name)
    if len(set(value)) < len(value):
        raise publication_error("`feature_names` must be different from each other")
    return tuple(value)


Positive = Annotated[float, Field(gt=0.0)]
PublishedLoss = Annotated[AnyLoss, BeforeValidator(_loss), PlainSerializer(describe)]
PublishedRegularizer = Annotated[
    Regularizer,
    BeforeValidator(lambda value: _named("regularizer", value, REGULARIZERS)),
    PlainSerializer(describe),
]
Classes = Annotated[tuple[Label, ...] | None, BeforeValidator(_labels)]
FeatureNames = Annotated[tuple[str, ...] | None, BeforeValidator(_names)]
