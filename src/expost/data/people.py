"""Whose a row is: the people of a table, what each of their rows weighs, and their rows brought together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from expost._common.namespaces import on_host
from expost._common.typing import FloatArray
from expost.data.blocks import Block
from expost.data.values import attempted, distinct_cells
from expost.exceptions import DomainError

IntArray = NDArray[np.integer[Any]]
ONE_PERSON = object()
"""In the place of ids: all rows are one person's."""


def _vector(column: Any, rows: int | None, name: str) -> Any:
    """A column of ids, Arrow's or NumPy's; DomainError where it is none of ``rows`` ids."""
    given = column if hasattr(column, "dictionary_encode") else attempted(lambda: on_host(column))
    if given is None or getattr(given, "ndim", 1) != 1:
        raise DomainError(f"`{name}` must be a vector with one id for each row.")
    if rows is not None and len(given) != rows:
        raise DomainError(f"`{name}` must have one id for each row of `X`; it has another length.")
    return given


def _are_ids(cells: list[Any], kinds: set[type]) -> bool:
    # The interpreter is slow, and most columns are all whole numbers or all texts.
    return kinds == {int} or all(map(str.strip if kinds == {str} else is_id, cells))


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """Whose each row is: a number for every person, in the order in which people first appear.

    Privacy
    -------
    Private, the ids and the number of people included. An id in two spellings is two people.
    """

    codes: IntArray
    """The number of each row's person."""
    ids: NDArray[Any]
    """The id of each person."""
    parts: tuple[int, ...] = ()
    """How many rows each part had that these were joined from."""
    forgotten: int = 0
    """How many more rows each person has, of which nothing is known."""
    shared_by: int | None = None
    """The least number of rows among which a person's weight of 1 is shared; None where each row has it."""
    named: bool = True
    """Whether the ids were given, and figures are shown with them."""
    mixed: bool = False
    """Whether some of a person's rows leave the table and others enter it: those that leave weigh below 0."""

    @classmethod
    def of(cls, column: Any, rows: int | None = None, *, name: str = "groups") -> Self:
        """The people of a column of ids, or DomainError, which names none of them."""
        if column is ONE_PERSON:
            return cls.alone(rows or 0)
        given = _vector(column, rows, name)
        codes, ids = distinct_cells(given)
        if ids.dtype.kind in "iu":  # whole numbers, each once
            return cls(np.asarray(codes, dtype=np.int64), ids)
        cells = ids.tolist()
        kinds = set(map(type, cells))
        if not _are_ids(cells, kinds):
            raise DomainError(
                f"`{name}` must say in every row whose it is, by a text or a whole number. A row without an "
                "id is no declared record: leave it out, or give it an id of its own."
            )
        found = cls(np.asarray(codes, dtype=np.int64), ids)
        alike = kinds == {str} and len(set(cells)) == len(cells)
        return found if alike else cls.joined([found])

    @classmethod
    def alone(cls, rows: int) -> Self:
        """One person with so many rows, whose id nobody said."""
        return cls(np.zeros(rows, dtype=np.int64), np.array([1], dtype=object))

    @classmethod
    def each_alone(cls, records: int, rows: int, parts: tuple[int, ...] = ()) -> Self:
        """As many people as records, each with so many rows, whose ids nobody said."""
        return cls(np.repeat(np.arange(records), rows), np.arange(1, records + 1), parts, named=False)

    @classmethod
    def joined(cls, parts: Sequence["People"]) -> Self:
        """The people of several runs of rows, one after the other; who is in two of them is one person."""
        places: dict[Any, int] = {}
        codes = [np.empty(0, dtype=np.int64)]
        for part in parts:
            here = [places.setdefault(as_compared(one), len(places)) for one in part.ids.tolist()]
            codes.append(np.array(here, dtype=np.int64)[part.codes])
        ids = np.array([*places, None], dtype=object)[:-1]
        return cls(np.concatenate(codes), ids, tuple(len(part.codes) for part in parts))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def names(self) -> NDArray[Any] | None:
        """The ids, where they were given."""
        return self.ids if self.named else None

    @cached_property
    def counts(self) -> IntArray:
        """How many rows each person has."""
        return np.bincount(self.codes, minlength=len(self.ids)).astype(np.int64)

    def shares(self, rows_per_person: int | None) -> FloatArray:
        r"""What each row weighs: :math:`1/n_i`, or :math:`1/\max\{n_i, n_0\}` for a declared :math:`n_0`.

        Rows that are not known count too. Rounded down, so that nobody's add up to more than 1.
        """
        known = np.arange(self.counts.max(initial=0) + 1)
        shares = shares_of(np.maximum(known + self.forgotten, rows_per_person or 1))
        return np.asarray(shares.take(self.counts).take(self.codes))

    def signed_shares(self, leaves: NDArray[np.bool_]) -> FloatArray:
        """What each row's weight is multiplied with where some leave, with a minus sign, and some enter.

        Rows that leave share a person's weight of 1 among themselves, and so do those that enter.
        """
        sides = np.where(leaves, -1.0, 1.0)
        if self.shared_by is None:
            return sides
        apart = type(self)(2 * self.codes + leaves, np.empty(2 * len(self), dtype=object))
        return sides * apart.shares(self.shared_by) / self.shares(self.shared_by)

    def share(self, known: int) -> float:
        """What each row weighs of a person of whom so many are known."""
        return 1.0 if self.shared_by is None else 1.0 / max(known + self.forgotten, self.shared_by)

    def ranges(self, most: int) -> Iterator[tuple[int, int]]:
        """Numbers of people, from and up to, whose rows are at most ``most``, or those of one person."""
        ends, first = np.cumsum(self.counts), 0
        while first < len(self):
            before = ends[first - 1] if first else 0
            stop = max(int(np.searchsorted(ends, before + most, side="right")), first + 1)
            yield first, stop
            first = stop

    def __repr__(self) -> str:
        return "People(withheld)"


def shares_of(counts: IntArray) -> FloatArray:
    """One over each number, rounded down."""
    numbers = np.asarray(counts, dtype=np.float64)
    # One over a power of two is a double; any other quotient may have been rounded up.
    return np.where(np.frexp(numbers)[0] == 0.5, 1.0 / numbers, np.nextafter(1.0 / numbers, 0.0))


def is_id(cell: Any) -> bool:
    """Whether a cell says whose a row is: a text that is not blank, or a whole number."""
    if isinstance(cell, str):
        return cell.strip() != ""
    whole = isinstance(cell, int) and not isinstance(cell, bool)
    return whole or (isinstance(cell, float) and cell.is_integer())


def as_compared(cell: Any) -> Any:
    """A whole number in a column of floats is that number."""
    return int(cell) if isinstance(cell, float) else cell


def times_shares(weights: Any, shares: Any) -> Any:
    """Weights of rows times their shares of their people, where there are either."""
    if weights is None or shares is None:
        return shares if weights is None else weights
    return weights * shares


@dataclass(frozen=True)
class FindPeople:
    """The pass that finds the people of a part, from blocks of ids."""

    name: str | None
    """The column's, for errors; None where all rows are one person's, whatever a block holds."""

    def __call__(self, blocks: Iterator[Any]) -> People:
        """Whose each row is."""
        name = self.name
        found = People.joined(
            [People.alone(len(block)) if name is None else People.of(block, name=name) for block in blocks]
        )
        return People(found.codes, found.ids)


@dataclass(frozen=True)
class Gather:
    """The pass that copies the encoded rows of some people, from number ``first`` up to ``stop``."""

    first: int
    stop: int

    def __call__(self, blocks: Iterator[Block]) -> list[Block]:
        """The rows, in their order."""
        return [
            block.taken(np.flatnonzero((block.people >= self.first) & (block.people < self.stop)))
            for block in blocks
        ]


def alike(
    codes: IntArray, counts: IntArray, later: NDArray[np.bool_] | None = None
) -> Iterator[tuple[IntArray, int, IntArray]]:
    """People with equally many rows: their numbers, how many rows each has, and where these are.

    The places are person by person, and for each in the table's order, or first those that do not come
    ``later``.
    """
    sizes = np.bincount(counts)
    people = by_number(counts, len(sizes))
    ranks = np.empty(len(people), dtype=_small(len(codes)))
    ranks[people] = np.arange(len(people))
    ranked = ranks.take(codes)
    order = (
        by_number(ranked, len(people)) if later is None else by_number(2 * ranked + later, 2 * len(people))
    )
    first = place = 0
    for each, count in enumerate(sizes.tolist()):
        if each and count:
            yield people[first : first + count], each, order[place : place + each * count]
        first, place = first + count, place + each * count


def by_number(codes: IntArray, people: int) -> IntArray:
    """The places of rows, person by person, and in the table's order for each."""
    # SciPy turns compressed rows into columns by counting, which is faster than any sort.
    ones, edges = np.ones(len(codes), dtype=np.int8), np.arange(len(codes) + 1, dtype=_small(len(codes)))
    return np.asarray(csr_array((ones, codes, edges), shape=(len(codes), people)).tocsc().indices)


def _small(most: int) -> type[np.integer[Any]]:
    """A type of whole numbers up to ``most`` that takes little memory, which takes time to come by."""
    return np.int32 if most < 2**31 else np.int64
