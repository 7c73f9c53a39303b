"""Cells as numbers, texts and classes, and which of them are missing.

A column is a NumPy array or one of Arrow's. What Arrow converts alike is left to it, which is many times as
fast as the interpreter; everything else is converted cell by cell.
"""

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from expost._common.namespaces import namespace_of
from expost._common.typing import FloatArray
from expost._common.validation import numeral
from expost.exceptions import DomainError

if TYPE_CHECKING:
    import pyarrow


Made = TypeVar("Made")


def attempted(make: Callable[[], Made]) -> Made | None:
    """What a conversion gives; None where it fails, because its error may hold a cell.

    Anything can be in a cell, and its own methods can raise anything. The caller raises an error of its own,
    outside of any handler, so that none is attached to it.
    """
    try:
        return make()
    except MemoryError:
        raise
    except Exception:
        return None


def converted(make: Callable[[], Made | None], refusal: str) -> Made:
    """What a conversion gives; DomainError, with a sentence that holds no cell, where it fails."""
    made = attempted(make)
    if made is None:
        raise DomainError(refusal)
    return made


def as_numbers(values: Any, name: str, *, finite: bool = True) -> FloatArray:
    """Convert cells to numbers; an empty cell or null becomes NaN, and infinity is refused if ``finite``."""
    numbers = None if isinstance(values, np.ndarray) else _arrow_numbers(values)
    if numbers is None:
        cells = plain_cells(values)
        refusal = f"`{name}` must be a number in every record; got something else."
        numbers = converted(lambda: _plain_numbers(cells), refusal)
    if finite and np.isinf(numbers).any():
        raise DomainError(f"`{name}` must be finite in every record.")
    return numbers


def distinct_cells(values: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The place of each cell among the different ones of a column, as far as Arrow can tell, and these."""
    found = attempted(lambda: _dictionary(values))
    if found is not None:
        return found
    cells = plain_cells(values).astype(object)
    return np.arange(len(cells)), cells


def distinct_texts(values: Any, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """The place of each cell among the different texts of a column, and these; a missing one is empty."""
    coded = attempted(lambda: _dictionary(values))
    if coded is not None:
        return coded[0], as_texts(coded[1], name)
    texts = as_texts(plain_cells(values), name)
    found: dict[str, int] = {}
    places = np.array([found.setdefault(text, len(found)) for text in texts], dtype=np.int64)
    return places, np.array(list(found), dtype=object)


def _dictionary(values: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Arrow's places and different cells of a column; an error for a type whose cells must be looked at."""
    coded = _arrow_column(values).dictionary_encode(null_encoding="encode")
    cells = coded.dictionary.to_numpy(zero_copy_only=False)
    if coded.dictionary.null_count or cells.dtype.kind not in "iu":
        cells = np.array([*coded.dictionary.to_pylist(), None], dtype=object)[:-1]
    return coded.indices.to_numpy(zero_copy_only=False), cells


def text_codes(
    values: Any, name: str, code: Callable[[str], int | None], most: int, missing: str | None, refusal: str
) -> NDArray[Any]:
    """The code of each cell's text, at most ``most``, in few bytes; one without a code is refused."""
    places, texts = distinct_texts(values, name)
    codes = [code(_default_of(name, missing) if text == "" else text) for text in texts]
    if None in codes:
        raise DomainError(f"`{name}` {refusal}")
    return np.asarray(np.array(codes, dtype=np.min_scalar_type(-most - 1))[places])


def plain_cells(values: Any) -> NDArray[Any]:
    """A column's cells in an array of NumPy's."""
    if isinstance(values, np.ndarray):
        return values
    refusal = "a column must hold numbers, texts or booleans; got bytes that are no text."
    return converted(lambda: np.asarray(values.to_numpy(zero_copy_only=False)), refusal)


def _arrow_column(values: Any) -> "pyarrow.Array":
    """A column as one of Arrow's, of a type whose values have the texts that cells have; else an error."""
    import pyarrow
    from pyarrow import types

    column = pyarrow.array(values, from_pandas=True) if isinstance(values, np.ndarray) else values
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    plain = (types.is_boolean, types.is_integer, types.is_float32, types.is_float64)
    if not (is_text(column) or any(is_kind(column.type) for is_kind in plain)):
        raise TypeError("not a plain type")
    return column


def is_text(column: Any) -> bool:
    """Whether a column of Arrow's has texts."""
    from pyarrow import types

    return bool(types.is_string(column.type) or types.is_large_string(column.type))


def _arrow_numbers(column: Any) -> FloatArray | None:
    """Arrow's column of numbers, or of texts that spell plain ones; None where cells must be looked at."""
    from pyarrow import DoubleArray

    if isinstance(column, DoubleArray) and column.null_count == 0:
        return np.asarray(column.to_numpy(zero_copy_only=True))
    numbers = attempted(lambda: _cast(_arrow_column(column)))
    # Few columns have cells that are empty or have spaces around them.
    return attempted(lambda: _cast(_arrow_column(column), trim=True)) if numbers is None else numbers


def _cast(column: "pyarrow.Array", *, trim: bool = False) -> FloatArray | None:
    """The numbers of a column as Arrow casts them; None where it has its own way to spell them."""
    from pyarrow import compute, float64, scalar

    if trim:
        some = compute.if_else(compute.equal(column, ""), scalar(None, column.type), column)
        column = compute.utf8_trim_whitespace(some)
    numbers: FloatArray = compute.cast(column, float64()).to_numpy(zero_copy_only=False)
    # Texts for numbers that are not finite are Arrow's own, and not those of the rule for all numbers.
    if is_text(column) and (np.isnan(numbers).sum() > column.null_count or np.isinf(numbers).any()):
        return None
    return numbers


def as_texts(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Convert cells to texts, as a domain declares them; a missing one becomes an empty text."""
    texts = converted(
        lambda: ["" if _missing(value) else _text(value) for value in values.tolist()],
        f"`{name}` must be a text or a number in every record; got something else.",
    )
    return np.array(texts, dtype=object)


def _plain_numbers(cells: NDArray[Any]) -> FloatArray | None:
    if cells.dtype.kind in "fiub":
        return cells.astype(np.float64)
    if cells.dtype.kind in "OUS":
        return np.array([math.nan if _missing(value) else _number(value) for value in cells.tolist()])
    return None


def _number(value: Any) -> float:
    if isinstance(value, bytes):
        value = value.decode("ascii")
    return numeral(value) if isinstance(value, str) else float(value)


def _text(value: Any) -> str:
    # A whole number gives the same text from a CSV file and from a column of floats.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _missing(value: Any) -> bool:
    if isinstance(value, str | float):
        return value == "" or value != value
    # pandas' marker for a missing value is not equal even to itself.
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def filled(numbers: FloatArray, name: str, missing: float | None) -> FloatArray:
    """Numbers with the default for those that are missing."""
    gone = np.isnan(numbers)
    return np.where(gone, _default_of(name, missing), numbers) if gone.any() else numbers


def share_between(values: FloatArray, low: float, high: float) -> FloatArray:
    """Where numbers lie between two bounds, from 0 to 1; those beyond them are clipped."""
    share: FloatArray = (namespace_of(values).clip(values, low, high) - low) / (high - low)
    return share


def _default_of(name: str, missing: Any) -> Any:
    if missing is None:
        raise DomainError(
            f"`{name}` is missing in a record and the domain declares no default. Declare `missing` for it, "
            "or leave such records out."
        )
    return missing


EMPTY_TIME = (
    "the time, or whether it happened, is missing",
    "fill the cells. For people to whom it did not happen, write no, and how long they were followed; do "
    "not leave them out",
)
"""What is wrong where a cell of a time to an event, or of the event, is empty, and what to do."""


def empty_time_error(name: str) -> DomainError:
    """The error for such a cell; the caller raises it."""
    problem, advice = EMPTY_TIME
    return DomainError(f"`{name}` is empty in a record: {problem}. {advice[0].upper()}{advice[1:]}.")


def plain_class(label: Any) -> Any:
    """A class as Python has it, where it is one of NumPy's."""
    return label.item() if isinstance(label, np.generic) else label


# What a class can be; a boolean is not one of the numbers, which are one kind together.
_KINDS = (bool, str, int, float)


def of_one_kind(classes: Sequence[Any]) -> bool:
    """Whether classes are all texts, all numbers or all booleans."""
    kinds = {next((kind for kind in _KINDS if isinstance(plain_class(one), kind)), None) for one in classes}
    return None not in kinds and (len(kinds) == 1 or kinds == {int, float})


def class_text(label: Any) -> str:
    """A class as a person types it: ``true`` and ``false``, and whole numbers without a point."""
    label = plain_class(label)
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return label if isinstance(label, str) else json.dumps(label)


MISSING_OUTCOME = ("the outcome is missing", "fill the cells, or leave these records out")
"""What is wrong with an empty outcome, and what to do: said by a check and by a fit."""


def no_outcome_error(name: str) -> DomainError:
    """The error for an outcome that is missing in a record; the caller raises it."""
    what, advice = MISSING_OUTCOME
    return DomainError(f"`{name}`: {what} in a record. {advice.capitalize()}.")


def is_absent(cell: Any) -> bool:
    """Whether a cell is missing: none, an empty text or no number."""
    return cell is None or (isinstance(cell, str) and not cell) or (isinstance(cell, float) and cell != cell)


def class_places(cells: Sequence[Any], classes: Sequence[Any], *, typed: bool) -> NDArray[np.int64]:
    """The place of each cell's class among those declared, -1 where it is none of them.

    A text is the class that is the same text. A number is the class of that value, whether either is whole, a
    float or a boolean: true counts as 1, and false as 0. Otherwise texts and numbers are never alike, because
    predictions and labels would not be. The cells of CSV have no types (``typed=False``): there a text that
    spells a number is that number. As private as the cells; nothing of them is in an error.
    """
    found = attempted(lambda: _class_places(cells, classes, typed=typed))
    return np.array([-1] * len(cells) if found is None else found, dtype=np.int64)


def _class_places(cells: Sequence[Any], classes: Sequence[Any], *, typed: bool) -> list[int]:
    if isinstance(classes[0], str):
        by_text = {str(label): place for place, label in enumerate(classes)}
        return [by_text.get(cell, -1) if isinstance(cell, str) else -1 for cell in cells]
    by_number = {float(label): place for place, label in enumerate(classes)}
    return [by_number.get(_spelt_number(cell, typed=typed), -1) for cell in cells]


def _spelt_number(cell: Any, *, typed: bool) -> float:
    """The number that a cell is or, without types, spells; NaN, which equals no class, for any other."""
    if isinstance(cell, bytes) or (typed and isinstance(cell, str)):
        return math.nan
    if not isinstance(cell, str):
        return math.nan if cell is None else float(cell)
    word = cell.strip().lower()
    if word in ("true", "false"):
        return float(word == "true")
    return number_in(cell)


def number_in(text: str) -> float:
    """The number that a text spells; NaN where it spells none."""
    with suppress(ValueError):
        return numeral(text)
    return math.nan
