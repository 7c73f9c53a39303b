"""The classes of an outcome: what they may be, how they are written, and which cells are which class."""

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._common.validation import numeral
from expost.data.values import untold

KINDS = (bool, str, int, float)
"""What a class can be; classes of one outcome are of one kind, and numbers are one kind together."""


def plain_class(label: Any) -> Any:
    """A class as Python has it, where it is one of NumPy's."""
    return label.item() if isinstance(label, np.generic) else label


def of_one_kind(classes: Sequence[Any]) -> bool:
    """Whether classes are all texts, all numbers or all booleans."""
    kinds = {next((kind for kind in KINDS if isinstance(plain_class(one), kind)), None) for one in classes}
    return None not in kinds and (len(kinds) == 1 or kinds == {int, float})


def class_text(label: Any) -> str:
    """A class as a person types it: ``true`` and ``false``, and whole numbers without a point."""
    label = plain_class(label)
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return label if isinstance(label, str) else json.dumps(label)


def class_places(cells: Sequence[Any], classes: Sequence[Any], *, typed: bool) -> NDArray[np.int64]:
    """The place of each cell's class among those declared, -1 where it is none of them.

    A text is the class that is the same text. A number is the class of that value, whether either is whole, a
    float or a boolean: true counts as 1, and false as 0. Otherwise texts and numbers are never alike, because
    predictions and labels would not be. The cells of CSV have no types (``typed=False``): there a text that
    spells a number is that number.

    Privacy
    -------
    As private as the cells; nothing of them is in an error.
    """
    found = [-1] * len(cells)
    with untold():  # anything can be in a cell
        if isinstance(classes[0], str):
            by_text = {str(label): place for place, label in enumerate(classes)}
            found = [by_text.get(cell, -1) if isinstance(cell, str) else -1 for cell in cells]
        else:
            by_number = {float(label): place for place, label in enumerate(classes)}
            found = [by_number.get(_number(cell, typed=typed), -1) for cell in cells]
    return np.array(found, dtype=np.int64)


def _number(cell: Any, *, typed: bool) -> float:
    """The number that a cell is or, without types, spells; NaN, which equals no class, for any other."""
    if isinstance(cell, bytes) or (typed and isinstance(cell, str)):
        return math.nan
    if not isinstance(cell, str):
        return math.nan if cell is None else float(cell)
    word = cell.strip().lower()
    if word in ("true", "false"):
        return float(word == "true")
    try:
        return numeral(cell)
    except ValueError:
        return math.nan
