"""Sets of records that are publicly declared, and how a record is brought into one."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import check_count, check_positive, parameter_error

# More than the rounding of a norm and of a product with a scale, in units of the last place.
_ROUNDINGS = 8
_EPS = float(np.finfo(np.float64).eps)


LARGEST_NUMBER = 1e50
"""Bounds and scales beyond this would leave the range of doubles in squares and cubes."""


def check_scale(name: str, value: float) -> float:
    """Return a positive number whose powers doubles can hold, or raise ParameterError."""
    if not 1.0 / LARGEST_NUMBER <= check_positive(name, value) <= LARGEST_NUMBER:
        limits = f"between {1.0 / LARGEST_NUMBER:g} and {LARGEST_NUMBER:g}"
        raise parameter_error(name, limits, value, "Scale the data by a constant.")
    return float(value)


class RecordSet(ABC):
    """A set of rows of numbers, declared without looking at any table.

    Every row of a table is brought into it by :meth:`enclose` before a loss sees it. So bounds that hold on
    the set hold for every record that can occur. A set that is none of the library's can be had inside the
    loss: take a ball or a box around it, and let the loss map each row.
    """

    dimension: int

    @abstractmethod
    def enclose(self, rows: FloatArray) -> FloatArray:
        """Each row brought into the set, by itself; rows of the set stay as they are."""

    @abstractmethod
    def draw(self, random: np.random.Generator, count: int) -> FloatArray:
        """Rows across the whole set, its centre and its boundary included, to check a loss at."""

    @abstractmethod
    def __str__(self) -> str:
        """The set in words."""


@dataclass(frozen=True)
class RecordBall(RecordSet):
    r"""Rows of Euclidean norm at most ``radius``; longer ones are scaled down to it.

    .. math:: x \mapsto x\min(1, R/\|x\|)

    Examples
    --------
    >>> RecordBall(2, radius=1.0).enclose(np.array([[3.0, 4.0], [0.1, 0.0]])).round(6).tolist()
    [[0.6, 0.8], [0.1, 0.0]]
    """

    dimension: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        check_count("dimension", self.dimension)
        check_scale("radius", self.radius)

    def enclose(self, rows: FloatArray) -> FloatArray:
        """Each row, scaled down where it is longer than the radius."""
        # The largest entry is factored out, so that no square overflows.
        largest: FloatArray = np.maximum(np.max(np.abs(rows), axis=1), self.radius)
        shares = rows / largest[:, None]
        margin = 1.0 + (self.dimension + _ROUNDINGS) * _EPS
        lengths: FloatArray = np.sqrt(np.vecdot(shares, shares)) * margin
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            short = largest * lengths <= self.radius * margin
            scaled = shares * (self.radius / lengths)[:, None]
        enclosed: FloatArray = np.where(short[:, None], rows, scaled)
        return enclosed

    def draw(self, random: np.random.Generator, count: int) -> FloatArray:
        """The centre, the ends of the first axes, and directions at every distance from the centre."""
        directions = random.normal(size=(count, self.dimension))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        lengths = self.radius * np.where(np.arange(count) % 2 == 0, 1.0, random.random(count))
        axes = np.eye(self.dimension)[: max(1, count // 4)]
        ends = self.radius * np.concatenate([axes, -axes])
        return np.concatenate([np.zeros((1, self.dimension)), ends, lengths[:, None] * directions])

    def __str__(self) -> str:
        return f"rows of {self.dimension} numbers of norm at most {self.radius:g}"


@dataclass(frozen=True)
class RecordBox(RecordSet):
    """Rows whose numbers lie between declared bounds; others are moved to the nearest bound.

    Examples
    --------
    >>> RecordBox(low=(0.0, -1.0), high=(10.0, 1.0)).enclose(np.array([[12.0, 0.5]])).tolist()
    [[10.0, 0.5]]
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        ends = [*self.low, *self.high]
        if not ends or len(self.low) != len(self.high) or not all(math.isfinite(end) for end in ends):
            raise parameter_error("low", "finite numbers, one for each of `high`", self.low)
        if any(low >= high for low, high in zip(self.low, self.high, strict=True)):
            raise parameter_error("low", f"below high={self.high!r}", self.low)

    @property
    def dimension(self) -> int:  # type: ignore[override]  # an attribute of the base that is computed here
        """How many numbers a row has."""
        return len(self.low)

    def enclose(self, rows: FloatArray) -> FloatArray:
        """Each number, moved to the nearest bound where it is outside."""
        return np.clip(rows, self.low, self.high)

    def draw(self, random: np.random.Generator, count: int) -> FloatArray:
        """The centre, corners, and rows in between."""
        low, high = np.array(self.low), np.array(self.high)
        shares = random.random((count, len(low)))
        corners = np.where(random.random((count, len(low))) < 0.5, 0.0, 1.0)
        all_shares = np.concatenate([np.full((1, len(low)), 0.5), corners, shares])
        drawn: FloatArray = low + (high - low) * all_shares
        return drawn

    def __str__(self) -> str:
        intervals = ", ".join(f"[{low:g}, {high:g}]" for low, high in zip(self.low, self.high, strict=True))
        return f"rows of {len(self.low)} numbers in {intervals}"
