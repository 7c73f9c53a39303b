"""The kinds of problems that the cells of a column can have, and which of them a cell has."""

import math
import re
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.data.dates import DATE_KINDS, as_days, days_of_text
from expost.data.dialect import Dialect
from expost.data.features import Category, EventColumn, Feature, YesNo, yes_or_no
from expost.data.labels import (
    AmountLabel,
    Classified,
    CountLabel,
    Label,
    NumericLabel,
    RowsLabel,
    TimeColumn,
)
from expost.data.people import is_id
from expost.data.values import (
    EMPTY_TIME,
    MISSING_OUTCOME,
    as_numbers,
    attempted,
    class_places,
    class_text,
    distinct_cells,
    distinct_texts,
    number_in,
)
from expost.exceptions import DomainError

NOT_TEXT = "\ufffd"
"""What stands for bytes that are no text in the declared encoding."""
# Words that people write for a missing value, in lower case.
_MISSING_WORDS = frozenset(
    "na|n/a|n.a.|nan|null|none|nil|-|--|---|.|?|??|unknown|missing|not known|#n/a|#nv|#null!|k.a.|k. a.|"  # noqa: SIM905
    "keine angabe|unbekannt|nicht bekannt|fehlt".split("|")
)
_COMMA = re.compile(r"\s*[+-]?[0-9]*,[0-9]+\s*")
_POINT = re.compile(r"\s*[+-]?[0-9]*\.[0-9]+\s*")
_GROUPED = re.compile(r"\s*[+-]?[0-9]{1,3}([.,' ][0-9]{3})+([.,][0-9]+)?\s*")
# Dates that are written in other orders, and what the domain file says then.
_OTHER_DATES = {
    "DD.MM.YYYY": re.compile(r"\s*[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4}.*"),
    "DD/MM/YYYY": re.compile(r"\s*[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}.*"),
    "YYYY/MM/DD": re.compile(r"\s*[0-9]{4}/[0-9]{1,2}/[0-9]{1,2}.*"),
}


def _under_table(line: str, note: str = "") -> str:
    return f"add the line  {line}  under [table]" + (f", with {note}" if note else "")


_AS_IT_IS = "correct the cells; or declare the column as it is, or list a feature in `ignore`"


class Problem(Enum):
    """A kind of problem: what it is, what to do, and whether a fit is refused because of it."""

    LACKING = "the table has no such column", "rename the column, or the name in the domain file"
    MIXED = "another type than in the first file", "write all files of the table with one type"
    UNEVEN = ("a line with more or fewer cells than names", "quote cells with delimiters, and close quotes")
    BROKEN = "the file cannot be read to its end", "the last sentence says why; save the file again"
    ENCODING = (
        "characters that the encoding does not have",
        _under_table('encoding = "cp1252"', "the one that the file was saved with"),
    )
    COMMA = "a number with a decimal comma", _under_table('decimal = ","')
    POINT = "a number with a decimal point", "write it with a comma, as [table] declares"
    GROUPED = "a number with grouped digits", "write numbers without marks between thousands"
    WORD = "a word for a missing value", _under_table('missing_words = ["NA"]', "your words")
    NUMBER = "not a number", _AS_IT_IS
    INFINITE = "not a finite number", "correct the cells"
    DATE_ORDER = "a date that is written otherwise", _under_table('dates = "DD.MM.YYYY"')
    DATE = "not a date", _AS_IT_IS
    CYCLE = (
        "not a date, of which the month or the weekday is taken",
        "write any date of that month or weekday, such as 2000-03-01 for March; or declare the values that "
        'the column has, with kind = "category"',
    )
    MISSING = "missing, without a default", "declare `missing` for it, fill the cells, or leave records out"
    NO_OUTCOME = MISSING_OUTCOME
    NO_TIME = EMPTY_TIME
    SPELLING = "differs from a declared value only in case or blanks", "correct the spelling: it counts"
    KIND = (
        "classes of another kind: texts are no numbers",
        "declare the classes as the column has them: numbers without quotes",
    )
    UNDECLARED = (
        "a value that is not declared",
        "correct the cells; declare it only if the codebook has it. If it is a word for a missing value, "
        "write missing_words with your words under [table]",
    )
    YES_NO = (
        "neither yes nor no",
        'declare your two words: kind = "category" and such as categories = ["nein", "ja"]; or write yes/no, '
        "true/false or 1/0",
    )
    EVENT = "whether it happened is neither yes nor no", "write yes/no, true/false or 1/0"
    NEGATIVE = "a time below 0", "correct the cells, or leave these records out"
    PERSON = (
        "no id that says whose the row is",
        "fill the cells with texts or whole numbers, give each such row an id of its own, or leave it out",
    )
    WEIGHT = "not a weight from 0 to the largest", "scale the weights by a public constant, or --max-weight"
    TYPE = "a type that cannot be read", "save the column as numbers, texts or dates"
    EMPTY = "the table has no records", "check that the file is the right one"
    BEYOND = (
        "beyond the declared bounds",
        "nothing: it counts as the bound. Check the unit, and whether it is a code for a missing value",
    )
    LATE = (
        "after the last period",
        "nothing: the record counts for all periods, without an event. Check the unit and `length`",
    )
    AMOUNT = (
        "an amount of 0 or below",
        "nothing: it counts as `low`. Where 0 says that there was none, that is a yes or no of its own, and "
        "the amounts are those of the others",
    )
    COUNT = (
        "no whole number of 0 or more, in a count",
        "nothing: it counts as it is, or as the bound. Is it a code for a missing value? Then it belongs in "
        'missing_words under [table]. A measurement has kind = "number"',
    )
    COUNTED = "how many people and rows", "nothing: compare with what you know, and publish neither"

    def __init__(self, title: str, advice: str) -> None:
        self.title, self.advice = title, advice

    @property
    def refused(self) -> bool:
        """Whether a fit is refused because of it."""
        return self not in (Problem.BEYOND, Problem.LATE, Problem.AMOUNT, Problem.COUNT, Problem.COUNTED)


def problems_in(
    part: Feature | Label, column: Any, dialect: Dialect, *, typed: bool = False
) -> dict[Problem, NDArray[np.bool_]]:
    """Which cells of a column have which problem, private; in a ``typed`` table, texts are no numbers."""
    from pyarrow import array, string

    everywhere = np.ones(len(column), dtype=bool)
    beyond = _beyond(part, column, dialect)
    if beyond is not None:
        return beyond
    try:
        places, raw = distinct_texts(column, part.name)
        texts = dialect.plain(array(raw, string()), _read_as(part)).to_pylist()
    except DomainError:
        return {Problem.TYPE: everywhere}
    if typed and isinstance(part, Classified) and _of_another_kind(part, column):
        return {Problem.KIND: everywhere}
    pairs = zip(raw, texts, strict=True)
    found = np.array([_problem_of(part, *pair, dialect) for pair in pairs], dtype=object)
    return {problem: (found == problem)[places] for problem in Problem if problem in found}


def _of_another_kind(part: Classified, column: Any) -> bool:
    """Whether some cell is a text where classes are numbers, or the other way round."""
    present = [cell for cell in distinct_cells(column)[1] if cell not in (None, "") and cell == cell]
    return any(isinstance(cell, str) != isinstance(part.classes[0], str) for cell in present)


def dialect_advice(part: Feature | Label, column: Any, dialect: Dialect) -> str:
    """What to declare where a refused column looks like another dialect; it names a problem, and no cell."""
    away = (Problem.COMMA, Problem.WORD, Problem.DATE_ORDER)  # once the domain file says it
    found = [problem for problem in problems_in(part, column, dialect) if problem in away]
    return f" It has {found[0].title}: {found[0].advice} in the domain file." if found else ""


def without_ids(ids: Any) -> NDArray[np.bool_]:
    """Which of the different cells of a column of ids are none; private."""
    return np.array([not is_id(one) for one in ids.tolist()], dtype=bool)


def wrong_weights(column: Any, name: str, largest: float, dialect: Dialect) -> NDArray[np.bool_]:
    """Which cells of a column are no weights; private."""
    places, texts = distinct_texts(dialect.plain(column, "number"), name)
    weights = np.array([number_in(text) for text in texts])
    return np.asarray(~((weights >= 0.0) & (weights <= largest))[places])


def _beyond(part: Any, column: Any, dialect: Dialect) -> dict[Problem, NDArray[np.bool_]] | None:
    """Which cells are beyond the bounds, where all of a column's are numbers, or dates; None otherwise."""
    kind = _read_as(part)
    read = {"number": as_numbers, "date": as_days}.get(kind)
    numbers = attempted(lambda: read and read(dialect.plain(column, kind), part.name))
    if numbers is None or np.isnan(numbers).any():
        return None
    return {problem: cells for problem, cells in _outside(part, numbers).items() if cells.any()}


def _read_as(part: Feature | Label) -> str:
    """The kind that its cells are written as: counts and amounts are numbers."""
    return "number" if isinstance(part, NumericLabel) else part.kind


def _problem_of(part: Feature | Label, original: str, text: str | None, dialect: Dialect) -> Problem | None:
    """What is wrong with a cell, from its text as the table has it and as the library reads it."""
    if NOT_TEXT in original:
        return Problem.ENCODING
    if not text or (_read_as(part) == "number" and text.strip().lower() in ("nan", "+nan", "-nan")):
        return _of_missing(part)
    if isinstance(part, YesNo):
        problem = _of_yes_or_no(text, part)
    elif isinstance(part, Category | Classified):
        problem = _of_choice(text, part)
    else:
        problem = _of_scale(part, original, text, dialect)
    # A class can have such a word for a name: "none" of pain.
    other = problem not in (None, Problem.SPELLING) and not isinstance(part, Classified)
    if other and original.strip().lower() in _MISSING_WORDS:
        return Problem.WORD
    return problem


def _of_missing(part: Feature | Label) -> Problem | None:
    if isinstance(part, TimeColumn | EventColumn):
        return Problem.NO_TIME
    if isinstance(part, Classified | NumericLabel | RowsLabel):
        return Problem.NO_OUTCOME
    return Problem.MISSING if part.missing is None else None


def _of_yes_or_no(text: str, part: YesNo) -> Problem | None:
    if yes_or_no(text) is not None:
        return None
    return Problem.EVENT if isinstance(part, EventColumn) else Problem.YES_NO


def _of_choice(text: str, part: Category | Classified) -> Problem | None:
    values = part.categories if isinstance(part, Category) else part.classes
    if class_places([text], values, typed=False)[0] >= 0:
        return None
    folded = {class_text(value).strip().casefold() for value in values}
    return Problem.SPELLING if text.strip().casefold() in folded else Problem.UNDECLARED


def _of_scale(part: Any, original: str, text: str, dialect: Dialect) -> Problem | None:
    is_date = part.kind in DATE_KINDS
    number = days_of_text(text) if is_date else number_in(text)
    if math.isfinite(number):
        return next((problem for problem, cell in _outside(part, np.float64(number)).items() if cell), None)
    if math.isinf(number):
        return Problem.INFINITE
    ways = _other_ways(dialect, is_date=is_date)
    found = (problem for pattern, problem in ways if pattern.fullmatch(original))
    return next(found, {"number": Problem.NUMBER, "date": Problem.DATE}.get(_read_as(part), Problem.CYCLE))


def _outside(part: Any, numbers: Any) -> dict[Problem, Any]:
    """Which numbers are beyond the bounds of their column, or none that it should have."""
    low, high = getattr(part, "limits", (-math.inf, math.inf))
    if isinstance(part, TimeColumn):
        return {Problem.NEGATIVE: numbers < low, Problem.LATE: numbers > high}
    beyond = (numbers < low) | (numbers > high)
    if isinstance(part, AmountLabel):
        problem, odd = Problem.AMOUNT, numbers <= 0.0
    elif isinstance(part, CountLabel):
        problem, odd = Problem.COUNT, (numbers < 0.0) | (numbers != np.rint(numbers))
    else:
        return {Problem.BEYOND: beyond}
    return {problem: odd, Problem.BEYOND: beyond & ~odd}


def _other_ways(dialect: Dialect, *, is_date: bool) -> list[tuple[re.Pattern[str], Problem]]:
    """Patterns of dates, or of numbers, that are written otherwise than the dialect says."""
    if is_date:
        return [(one, Problem.DATE_ORDER) for name, one in _OTHER_DATES.items() if name != dialect.dates]
    marks = {".": (_COMMA, Problem.COMMA), ",": (_POINT, Problem.POINT)}
    return [marks[dialect.decimal], (_GROUPED, Problem.GROUPED)]
