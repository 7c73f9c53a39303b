"""Ranges of columns that are chosen privately: their columns, read whole, and the exact losses of rows."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Self, TypeAlias

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import parameter_error
from expost.data.choices import (
    LEVELS,
    MOST_CANDIDATES,
    NUMBERS,
    ONE,
    IntArray,
    RangeChoice,
)
from expost.data.dialect import PLAIN, Dialect
from expost.data.domain import Domain
from expost.data.frame_tables import columns_of, plain_column
from expost.data.lazy import LazyTable, empty_error
from expost.data.people import People
from expost.data.refusals import PRIVATE
from expost.data.values import as_numbers, filled
from expost.exceptions import DomainError
from expost.privacy.choices import MOST_EPSILON

# Rows of a file that are read at a time.
_LENGTH = 1 << 16
# The quantiles that the ends of a range are chosen close to where none are declared.
_LEVELS = (0.01, 0.99)
_ENDS = ("low", "high")
_NONE = "0" * 64

ReadAs: TypeAlias = tuple[str, float | None]


@dataclass(frozen=True, eq=False, repr=False)
class Column:
    """A column of numbers with its people: as private as the table."""

    values: FloatArray
    weights: IntArray
    people: People | None

    def histogram(self, choice: RangeChoice) -> IntArray:
        """The weight of all rows in each cell."""
        found = np.zeros(len(choice.candidates) + 1, dtype=np.int64)
        np.add.at(found, choice.cells(self.values), self.weights)
        return found

    def losses(self, choice: RangeChoice) -> FloatArray:
        """The exact signed loss of each row, of each person or of each family, in their order."""
        whole, cells, count = self.histogram(choice), choice.cells(self.values), len(choice.candidates) + 1
        if self.people is None:  # all rows of a cell lost the same
            by_cell = np.zeros(count)
            for some in np.array_split(np.flatnonzero(whole), count * count // NUMBERS + 1):
                by_cell[some] = choice.losses_of(whole, ONE * (some[:, None] == np.arange(count)))
            return by_cell[cells]
        found = np.empty(len(self.people))
        order = np.argsort(self.people.codes, kind="stable")
        for first in range(0, len(found), length := max(NUMBERS // count, 1)):
            last = min(first + length, len(found))
            some = order[slice(*np.searchsorted(self.people.codes[order], [first, last]))]
            each = np.zeros((last - first, count), dtype=np.int64)
            np.add.at(each, (self.people.codes[some] - first, cells[some]), self.weights[some])
            found[first:last] = choice.losses_of(whole, each)
        return found


def read_columns(
    table: Any,
    choices: Sequence[RangeChoice],
    *,
    dialect: Dialect = PLAIN,
    person: Any = None,
    rows_per_person: int | None = None,
) -> dict[ReadAs, Column]:
    """The columns of choices, as numbers, and whose the rows are; private.

    ``person`` is the column of the ids, or the ids. Where choices promise to rows, it says who is of one
    family, and rows weigh what they do alone.

    Raises DomainError, which names a column and no value, for what is no number or has no default.
    """
    named = [person] if isinstance(person, str) else []
    parts: dict[ReadAs, list[FloatArray]] = {one.read_as: [] for one in choices}
    ids: list[People] = []
    for cells in _batches(table, [*dict.fromkeys(name for name, _ in parts), *named]):
        for (name, missing), part in parts.items():
            numbers = as_numbers(dialect.plain(cells[name], "number"), name)
            part.append(filled(numbers, name, missing))
        ids += [People.of(cells[name], name=name) for name in named]
    people = People.joined(ids) if named else _people(person)
    shared = people if choices[0].unit == "person" else None
    return {
        key: Column(values := _whole(some), _weights(values, shared, rows_per_person), people)
        for key, some in parts.items()
    }


def _whole(parts: Sequence[FloatArray]) -> FloatArray:
    """A column from its parts; one without a row is refused."""
    if not any(map(len, parts)):
        raise empty_error()
    return np.concatenate(parts)


def _people(ids: Any) -> People | None:
    """The people of ids that lie beside the table, if there are any."""
    return None if ids is None else People.of(ids)


def _weights(rows: FloatArray, people: People | None, rows_per_person: int | None) -> IntArray:
    """What each row weighs, in whole numbers of which nobody has more than ``ONE``."""
    if people is None:
        return np.full(len(rows), ONE, dtype=np.int64)
    return np.asarray(ONE // np.maximum(people.counts, rows_per_person or 1)[people.codes])


def _batches(table: Any, names: list[str]) -> Iterator[Mapping[str, Any]]:
    """The cells of some columns, all at once of a frame and batch by batch of files."""
    columns = table.kinds if isinstance(table, LazyTable) else columns_of(table)
    if columns is None:
        raise DomainError("`table` must be a data frame with named columns, or files.")
    absent = set(names).difference(columns)
    if absent:
        raise DomainError(f"the table lacks the column {min(absent)!r}. Add or rename it.")
    if isinstance(table, LazyTable):
        yield from _read_batches(table, names)
    else:
        yield {name: plain_column(name, columns[name]) for name in names}


def _read_batches(table: LazyTable, names: list[str]) -> Iterator[Mapping[str, Any]]:
    table.check_columns(names)
    for piece in table.pieces():
        for batch in piece.batches(names, _LENGTH):
            yield {name: batch.column(name) for name in names}


def choice_losses(
    table: Any,
    choices: Sequence[RangeChoice],
    *,
    dialect: Dialect = PLAIN,
    person: Any = None,
    rows_per_person: int | None = None,
) -> FloatArray:
    """What choices of ranges cost each member, or each family, together, with its sign; private."""
    people: Any = {"person": person, "rows_per_person": rows_per_person}
    columns = read_columns(table, choices, dialect=dialect, **people)
    return np.asarray(np.sum([columns[one.read_as].losses(one) for one in choices], axis=0))


@dataclass(frozen=True)
class AskedRanges:
    """A domain file in which the ends of some ranges are to be chosen privately; public.

    Attributes
    ----------
    domain
        The domain with the ends of the grids for those that are to be chosen.
    ends
        What is to be chosen: its place and its id say nothing yet.
    """

    domain: Domain
    ends: tuple[RangeChoice, ...]

    @classmethod
    def from_toml(cls, text: str, epsilon: float) -> Self:
        """Read the text of a domain file, or raise DomainError; all choices share the budget equally."""
        domain, found = with_stand_ins(text)
        if not found:
            raise DomainError(
                f'the domain file asks for no choice. Write `low = "{PRIVATE}"` or `high = "{PRIVATE}"` for '
                "a column of numbers whose range nobody knows, and a `grid` of candidates."
            )
        if epsilon > MOST_EPSILON * len(found):
            raise parameter_error("epsilon", f"at most {MOST_EPSILON:g} for each choice", epsilon)
        shared: Any = {"epsilon": epsilon / len(found), "id": _NONE, "place": 0, "unit": domain.unit}
        return cls(domain, tuple(RangeChoice(**one, **shared) for one in found))

    def read(self, table: Any) -> dict[ReadAs, Column]:
        """The columns of a table; private."""
        domain = self.domain
        people: Any = {"person": domain.person, "rows_per_person": domain.rows_per_person}
        return read_columns(table, self.ends, dialect=domain.table, **people)

    def resolved(self, chosen: Sequence[RangeChoice]) -> Domain:
        """The domain with the ranges that were chosen, from these alone; defaults are moved inside them."""
        changed = {}
        for part in (*self.domain.features, self.domain.label):
            ends: dict[str, RangeChoice] = {one.end: one for one in chosen if one.column == part.name}
            if ends:
                changed[part.name] = part.model_copy(update=_inside(part, *_limits(part, ends)))
        features = tuple(changed.get(one.name, one) for one in self.domain.features)
        label = changed.get(self.domain.label.name, self.domain.label)
        before = self.domain.choices
        return self.domain.model_copy(
            update={"features": features, "label": label, "choices": (*before, *chosen)}
        )


def with_stand_ins(text: str) -> tuple[Domain, list[dict[str, Any]]]:
    """The domain of a file, with ends of grids for bounds, and what is to be chosen, if anything is."""
    found: list[dict[str, Any]] = []
    return Domain.from_toml(text, change=lambda content: found.extend(_taken_out(content))), found


def _taken_out(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Take grids and levels out of a domain file, and put ends of grids where bounds are to be chosen."""
    features = content.get("features")
    for part in [*(features if isinstance(features, list) else []), content.get("label")]:
        if isinstance(part, dict) and PRIVATE in (part.get("low"), part.get("high")):
            yield from _asked_of(part)


def _asked_of(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What is to be chosen of one column, which then has the ends of its grid for bounds."""
    name = part.get("name")
    if part.get("kind") != "number" or "knots" in part:
        raise DomainError(
            f"the range of {name!r} cannot be chosen: it must be of the kind `number`, without `knots`."
        )
    grid, levels = _grid(name, part.pop("grid", None)), _levels(name, part.pop("levels", _LEVELS))
    ends = dict(zip(_ENDS, zip(levels, (grid[0], grid[-1]), strict=True), strict=True))
    asked = {end: ends[end] for end in _ENDS if part.get(end) == PRIVATE}
    part.update({end: stand_in for end, (_, stand_in) in asked.items()})
    if len(asked) == 1:
        _check_outside(part, next(iter(asked)), grid)
    shared = {"column": name, "candidates": grid, "missing": part.get("missing")}
    yield from ({"end": end, "level": level, **shared} for end, (level, _) in asked.items())


def _check_outside(part: Mapping[str, Any], chosen: str, grid: Sequence[float]) -> None:
    """Refuse an end that is not chosen, unless it lies beyond every candidate for the other."""
    end, starts, ends, sign = ("low", "starts", "from", 1) if chosen == "high" else ("high", "ends", "to", -1)
    name, declared, candidates = part.get("name"), part.get(end), grid[::sign]
    if not _is_number(declared):
        raise DomainError(f"the bound of {name!r} that is declared must be a number outside its `grid`.")
    beyond = [one for one in candidates if sign * one > sign * declared]  # type: ignore[operator]
    if len(beyond) == len(grid):
        return
    example = f", such as {ends} = {beyond[0]:g}" if beyond else ""
    raise DomainError(
        f"`{end} = {declared:g}` of {name!r} lies in its `grid`, which {starts} at {candidates[0]:g}: let "
        f"that {starts.removesuffix('s')} {'above' if sign > 0 else 'below'} {declared:g}{example}."
    )


def _grid(name: Any, declared: Any) -> tuple[float, ...]:
    """The candidates for a bound: a list of rising numbers, or so many equal steps from one to another."""
    grid = _stepped(declared) if isinstance(declared, dict) else declared
    if not isinstance(grid, list) or not all(map(_is_number, grid)):
        raise DomainError(
            f"the range of {name!r} is to be chosen privately, and needs a public `grid` of candidates: a "
            "list of rising numbers, or { from = 0, to = 100000, steps = 200 }."
        )
    if not 2 <= len(grid) <= MOST_CANDIDATES or not all(one < other for one, other in pairwise(grid)):
        raise DomainError(
            f"the `grid` of {name!r} must be between 2 and {MOST_CANDIDATES:,} numbers that rise."
        )
    return tuple(map(float, grid))


def _stepped(declared: Mapping[str, Any]) -> list[float] | None:
    """The numbers of a grid that is declared by its ends and its steps; None where it is not."""
    first, last, steps = (declared.get(key) for key in ("from", "to", "steps"))
    if len(declared) != 3 or type(steps) is not int or not 1 <= steps < MOST_CANDIDATES:
        return None
    if not (_is_number(first) and _is_number(last)):
        return None
    return [first + (last - first) * place / steps for place in range(steps + 1)]  # type: ignore[operator]


def _is_number(value: Any) -> bool:
    with suppress(OverflowError):  # of a whole number beyond doubles
        return type(value) in (int, float) and math.isfinite(value)
    return False


def _levels(name: Any, levels: Any) -> tuple[float, float]:
    pair = list(levels) if isinstance(levels, list | tuple) else []
    rising = len(pair) == 2 and all(map(_is_number, pair)) and 0.0 < pair[0] < pair[1] < 1.0
    if not rising or any(Fraction(str(one)) * LEVELS % 1 for one in pair):
        raise DomainError(
            f"`levels` of {name!r} must be two rising numbers between 0 and 1 with at most three decimals, "
            "such as [0.01, 0.99]."
        )
    return pair[0], pair[1]


def _limits(part: Any, ends: Mapping[str, RangeChoice]) -> tuple[float, float]:
    """Rising bounds; where both were chosen and do not rise, what lies between them or next to them."""
    if len(ends) == 1:
        return tuple(ends[end].chosen if end in ends else getattr(part, end) for end in _ENDS)  # type: ignore
    grid = ends["low"].candidates
    first, last = sorted(one.place for one in ends.values())
    if first == last:
        first, last = max(first - 1, 0), min(last + 1, len(grid) - 1)
    return grid[first], grid[last]


def _inside(part: Any, low: float, high: float) -> dict[str, float]:
    """Bounds of a part, with its default and its example moved inside them."""
    others = {key: getattr(part, key, None) for key in ("missing", "example")}
    moved = {key: min(max(value, low), high) for key, value in others.items() if value is not None}
    return {"low": low, "high": high, **moved}
