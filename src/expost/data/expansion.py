"""How the values of a feature become columns: one, one for each value or step, or a curve between knots."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, model_validator

from expost._common.typing import FloatArray
from expost.data.texts import Bounded, FieldTexts
from expost.data.values import class_text, filled, share_between
from expost.exceptions import printable

MOST_KNOTS = 20
"""How many knots a feature may have."""
# The shortest stretch between two knots, as a part of the feature's range.
_SHORTEST = 1e-6


# The bounds of a coefficient that each effect stands for.
_BOUNDS = {
    None: (-math.inf, math.inf),
    "increasing": (0.0, math.inf),
    "decreasing": (-math.inf, 0.0),
    "monotone": (0.0, math.inf),
}


def effect_of(*words: str) -> BeforeValidator:
    """Accept one of some words, or the two bounds of a coefficient."""
    wanted = ", ".join(f'"{word}"' for word in words) + " or two numbers [low, high] with low < high"

    def read(value: Any) -> Any:
        if isinstance(value, str) and value in words:
            return value
        numbers = isinstance(value, list | tuple) and len(value) == 2
        if numbers and all(type(end) in (int, float) and math.isfinite(end) for end in value):
            low, high = map(float, value)
            if low < high:
                return low, high
        raise ValueError(f"must be {wanted}; got {printable(repr(value)[:60])}")

    return BeforeValidator(read)


# True where it is declared; files leave it out otherwise.
_Declared = Annotated[Literal[True] | None, BeforeValidator(lambda value: None if value is False else value)]
# The code of a value that was not recorded, where that has a column; of numbers it is NaN.
GONE = -1


class Expanded(FieldTexts):
    """A feature, encoded as columns of numbers; ``missing`` and ``effect`` have a type for each kind."""

    recorded: _Declared = None
    """Whether a column beside the default is 1 where no value was recorded, and 0 elsewhere."""

    @model_validator(mode="after")
    def _default(self) -> Self:
        if self.recorded and self.missing is None:  # type: ignore[attr-defined]
            raise ValueError(f"`recorded` of `{printable(self.name)}` must come with `missing`, its default")
        return self

    @property
    def places(self) -> Sequence[str]:
        """The values that have a column each, or each step from one to the next; none for one column."""
        return ()

    @property
    def in_steps(self) -> bool:
        """Whether columns are steps."""
        return False

    @property
    def value_names(self) -> list[str]:
        """The names of the columns that encode a value."""
        if self.in_steps:
            return [f"{self.name}≥{place}" for place in self.places[1:]]
        return [f"{self.name}={place}" for place in self.places] or [self.name]

    @property
    def column_names(self) -> list[str]:
        """The names of the encoded columns."""
        return self.value_names + [f"{self.name} not recorded"] * (self.parts - 1)

    @property
    def parts(self) -> int:
        """How many parts it has that are at most 1 long: its value, and whether that was recorded."""
        return 2 if self.recorded else 1

    @property
    def sums_to_one(self) -> bool:
        """Whether the columns of every value add up to 1."""
        return bool(self.places) and not self.in_steps

    @property
    def step(self) -> float:
        """What a step counts: all of them together have the length 1."""
        return 1.0 / math.sqrt(len(self.places) - 1)

    @property
    def columns(self) -> int:
        """How many columns it takes."""
        return len(self.column_names)

    @property
    def coef_bounds(self) -> list[tuple[float, float]]:
        """Between which numbers the coefficient of each column must lie, as its effect says."""
        effect: Any = self.effect  # type: ignore[attr-defined]
        free = [_BOUNDS[None]] * (self.parts - 1)
        return [_BOUNDS.get(effect, effect)] * (self.columns - len(free)) + free

    def expanded(self, codes: NDArray[Any]) -> list[NDArray[Any]]:
        """The columns of coded values."""
        if not self.recorded:
            return self._of_values(codes)
        gone = np.isnan(codes) if codes.dtype.kind == "f" else codes == GONE
        missing: Any = self.missing  # type: ignore[attr-defined]
        (default,) = self.coded(np.array([missing], dtype=object))  # type: ignore[attr-defined]
        return [*self._of_values(np.where(gone, default, codes)), gone]

    def _of_values(self, codes: NDArray[Any]) -> list[NDArray[Any]]:
        """The columns that encode values."""
        return [codes]


class OneColumn(Expanded):
    """A feature that is encoded as one column, of its coded values."""

    effect: Annotated[Any, effect_of("increasing", "decreasing")] = None
    """How a larger value may change the predictor, or the two bounds of the coefficient."""


class Scale(OneColumn, Bounded):
    r"""A feature on a scale, encoded as one column, or with ``knots`` as a curve.

    The bounds and the knots :math:`k_0 < \dots < k_m` are then nodes, with a column each: the hat function
    that is 1 at its node, 0 at all others, and linear between two. Any curve that is linear between nodes is
    a sum of hats, and its coefficients are its heights. Of a record at most two of them are not 0, they add
    up to 1, and their length is at most 1. With the ramps :math:`r_j = (x - k_{j-1})/(k_j - k_{j-1})`,
    clipped to [0, 1], hats are :math:`1 - r_1, r_1 - r_2, \dots, r_m`: a quotient and a difference, which
    every machine rounds alike. With an effect ``"increasing"`` or ``"decreasing"`` columns are the ramps
    themselves, divided by :math:`\sqrt m`, and no coefficient may have the other sign.
    """

    knots: Any = ()
    """Where the curve may bend."""

    @model_validator(mode="after")
    def _knots(self) -> Self:
        called = f"`knots` of `{printable(self.name)}` must"
        if len(self.knots) > MOST_KNOTS:
            raise ValueError(f"{called} be at most {MOST_KNOTS}; got {len(self.knots)}")
        shortest = _SHORTEST * (self.limits[1] - self.limits[0])
        if not all(end - start >= shortest for start, end in pairwise(self.nodes)):
            got = ", ".join(self.places[1:-1])
            raise ValueError(f"{called} rise between its bounds, {self.values}; got {got}")
        if self.knots and not self.symmetric:
            raise ValueError(f"`scale` of `{printable(self.name)}` must be left out where it has knots")
        return self

    @property
    def symmetric(self) -> bool:
        """Whether one column goes from -1 to 1, and not from 0 to 1."""
        return True

    @property
    def nodes(self) -> list[float]:
        """The knots with the bounds before and after them, as numbers."""
        return [self.low, *self.knots, self.high]

    @property
    def places(self) -> Sequence[str]:
        """The nodes in words, where there are knots."""
        return [class_text(node) for node in self.nodes] if self.knots else ()

    @property
    def in_steps(self) -> bool:
        """Whether columns are ramps."""
        return bool(self.knots) and isinstance(self.effect, str)

    def _coded(self, numbers: FloatArray, missing: float | None) -> FloatArray:
        """Numbers on the encoded scale; with knots, clipped alone."""
        low, *_, high = self.nodes
        numbers = numbers if self.recorded else filled(numbers, self.name, missing)
        if self.knots:
            return np.clip(numbers, low, high)
        share = share_between(numbers, low, high)
        return 2.0 * share - 1.0 if self.symmetric else share

    def _of_values(self, codes: NDArray[Any]) -> list[NDArray[Any]]:
        """The column of coded values, or those of the hats or ramps."""
        if not self.knots:
            return [codes]
        ramps = [np.clip((codes - start) / (end - start), 0.0, 1.0) for start, end in pairwise(self.nodes)]
        if self.in_steps:
            return [self.step * ramp for ramp in ramps]
        return [1.0 - ramps[0], *(before - after for before, after in pairwise(ramps)), ramps[-1]]
