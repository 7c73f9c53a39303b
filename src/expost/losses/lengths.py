"""Caps that follow the length of a row: the shorter it is, the steeper its loss may be."""

from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from expost._common.namespaces import Space, namespace_of
from expost._common.typing import FloatArray
from expost._common.validation import check_positive

_STEPS = 64  # levels in which the length of a row halves
# More than all roundings of factors and limits, and so much that a row which lies on a limit falls on the
# same side of it however its squares are added up; and what every column adds to that.
_MARGIN, _PER_COLUMN = 1.0 + 2.0**-40, 2.0**-51


class Lengths(NamedTuple):
    """The lengths of rows of so many columns."""

    squares: FloatArray
    columns: int

    @classmethod
    def of(cls, matrix: FloatArray) -> "Lengths":
        """Those of the rows of a matrix."""
        return cls(np.vecdot(matrix, matrix), matrix.shape[1])


@dataclass(frozen=True, eq=False)
class Levels:
    r"""Rows by their length, and how many times as steep as for the longest rows the loss of each may be.

    Level :math:`k` has the rows :math:`x` with :math:`2^{k/64}\|x\| \le R`, and :math:`2^{k/64}` times the
    cap of the rows of length :math:`R`: no gradient is longer than theirs. Levels are finitely many, and
    their factors are doubles, so that the loss of a row is a formula without rounding, whoever computes it.
    """

    reach: float
    """The length :math:`R`; longer rows count as this long."""
    factors: FloatArray
    """:math:`2^{k/64}` for each level, from 1."""

    @classmethod
    @cache
    def up_to(cls, reach: float, most: float) -> "Levels":
        """All levels up to the first whose factor is at least ``most``."""
        factors = [1.0]
        with localcontext(Context(prec=40)):  # rounded from decimals, which every machine has alike
            while factors[-1] < most:
                factors.append(float(Decimal(2) ** (Decimal(len(factors)) / _STEPS)))
        return cls(reach, np.array(factors))

    @property
    def limits(self) -> FloatArray:
        """The square of the largest length of a row on each level, the first left out, which has no limit."""
        return np.asarray((self.reach / self.factors[1:]) ** 2)

    def of(self, rows: Any) -> Any:
        """The level of each of some rows, which say their ``squares`` and ``columns`` as :class:`Lengths`."""
        squares = rows.squares
        rising = Space.of(squares).put(self.limits[::-1])
        below = namespace_of(squares).searchsorted(rising, squares * self.margin(rows.columns))
        return rising.shape[0] - below

    @staticmethod
    def margin(columns: int) -> float:
        """What squares are multiplied with, so that no row is longer than its level allows."""
        return _MARGIN + columns * _PER_COLUMN


def take(table: FloatArray, level: Any) -> Any:
    """The entry of a table that belongs to the level of each row, where the rows lie."""
    xp = namespace_of(level)
    return table[level] if xp is np else xp.take(Space.of(level).put(table), level)


def check_gradient_cap(gradient_cap: Any) -> float | None:
    """The largest length of a gradient, or None; ParameterError where it is neither."""
    return None if gradient_cap is None else check_positive("gradient_cap", gradient_cap)
