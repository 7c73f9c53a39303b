"""Choices that were made privately among public candidates, as they are published, and ranges of columns."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, ValidationError, model_validator
from scipy.special import logsumexp

from expost._common.strict_json import FrozenModel, error_of_validation, read_object
from expost._common.summary import Summarized, Summary
from expost._common.typing import FloatArray
from expost._common.validation import parameter_error
from expost.data.values import attempted
from expost.exceptions import DomainError
from expost.privacy.choices import MOST_EPSILON, ChoicePlan

ONE = 2**20
"""Scores and weights are whole numbers of this part of 1, so that their sums are exact."""
MOST_CANDIDATES = 10_000
NUMBERS = 1 << 22
"""As many numbers of records are held at a time."""
LEVELS = 1000
"""Levels are whole numbers of this part of 1, for sums that a long integer holds."""

_SCORES = "numbers, one for each record and candidate"

IntArray = NDArray[np.int64]
SomeChoice = TypeVar("SomeChoice", bound="Choice")
_Epsilon = Annotated[float, Field(gt=0.0, le=MOST_EPSILON)]
_Name = Annotated[str, Field(pattern=r"\A[0-9a-f]{64}\z")]
_Level = Annotated[float, Field(gt=0.0, lt=1.0)]


def rounded_scores(scores: ArrayLike, candidates: int) -> IntArray:
    """Scores of records, cut to [0, 1] and rounded down to whole numbers of steps; ParameterError for NaN."""
    given = attempted(lambda: _numbers(scores))
    if given is None:
        raise parameter_error("scores", _SCORES, "something else")
    if given.ndim != 2 or given.shape[1] != candidates:
        wanted = f"a row for each record with {candidates} columns"
        raise parameter_error("scores", wanted, given.shape[1:])  # how many records there are is private
    if np.isnan(given).any():
        raise parameter_error("scores", _SCORES, "NaN")
    return np.floor(np.clip(given, 0.0, 1.0) * ONE).astype(np.int64)


def _numbers(scores: ArrayLike) -> FloatArray | None:
    """Scores as doubles, also where numbers are kept as objects; None for texts and complex numbers."""
    given = np.asarray(scores)
    kept = np.array(given.tolist()) if given.dtype.kind == "O" else given
    return kept.astype(np.float64) if kept.dtype.kind in "biufO" else None


def log_probability(exponents: FloatArray, place: int) -> FloatArray:
    """The logarithm of the probability of a candidate, by the exponents of each table (rows)."""
    return np.asarray(exponents[:, place] - logsumexp(exponents, axis=1))


class Choice(Summarized, FrozenModel):
    r"""A candidate that was chosen with probability :math:`\propto e^{\epsilon S_w}`, and what that cost.

    Made by :func:`expost.choose`.

    Attributes
    ----------
    candidates, place
        The public candidates, and which of them was chosen, counted from 0.
    epsilon, unit
        The promise, at δ = 0, to each row or each person.
    id
        A random name, by which the choice is counted once wherever it is used.
    insecure
        Whether a seed was used, which voids the promise.

    Privacy
    -------
    Public: all of it may be published, at the cost that it states.
    """

    candidates: Annotated[tuple[str | float | int, ...], Field(min_length=2, strict=False)]
    place: Annotated[int, Field(ge=0)]
    epsilon: _Epsilon
    unit: Literal["row", "person"] = "row"
    id: _Name
    insecure: bool = False

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.place >= len(self.candidates) or len(self.candidates) > MOST_CANDIDATES:
            raise ValueError(f"`place` must be that of one of at most {MOST_CANDIDATES} candidates")
        return self

    @property
    def chosen(self) -> str | float | int:
        """The candidate that was chosen."""
        return self.candidates[self.place]

    @property
    def plan(self) -> ChoicePlan:
        """What the choice costs, for :func:`expost.compose` and a ledger."""
        return ChoicePlan(self.epsilon, len(self.candidates), self.unit)

    def to_json(self) -> str:
        """The choice as JSON; :meth:`from_json` reads it back."""
        return self.model_dump_json()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a choice that :meth:`to_json` wrote; PublicationError if it is none."""
        try:
            return cls.model_validate(read_object(text))
        except ValidationError as error:
            refusal = error_of_validation(error)
        raise refusal

    def ex_post_losses(self, scores: ArrayLike) -> FloatArray:
        r"""The exact loss of each record of the table, signed, from the scores that the choice was made by.

        .. math:: L = \epsilon u_w(z) - \log\sum_j \pi_j(D - z)\,e^{\epsilon u_j(z)}

        Privacy
        -------
        Private, because it is computed from everyone's records: never publish it, and tell nobody hers.
        """
        each = rounded_scores(scores, len(self.candidates))
        whole = each.sum(axis=0)
        found = [np.empty(0)]
        for start in range(0, len(each), length := max(NUMBERS // each.shape[1], 1)):
            others = whole - each[start : start + length]
            found.append(self._log_probability(whole[None, :]) - self._log_probability(others))
        return np.concatenate(found)

    def bounds(self, scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
        r"""What the loss of each record lies between, without anybody else's: of a member, signed.

        .. math:: \epsilon(u_w - \max_j u_j) \le L \le \epsilon(u_w - \min_j u_j)

        Privacy
        -------
        Reads the choice and the record, and tells about that record only.
        """
        each = rounded_scores(scores, len(self.candidates)) / ONE
        own, slack = each[:, self.place], 1e-12 * self.epsilon
        return (
            self.epsilon * (own - each.max(axis=1)) - slack,
            self.epsilon * (own - each.min(axis=1)) + slack,
        )

    def _log_probability(self, sums: IntArray) -> FloatArray:
        gaps = sums - sums.max(axis=1, keepdims=True)
        return log_probability(self.epsilon / ONE * gaps, self.place)

    def _summary(self) -> Summary:
        rows = [
            ("chosen", str(self.chosen)),
            ("candidates", f"{len(self.candidates):,}"),
            ("promise", f"epsilon={self.epsilon:g}, delta=0, for each {self.unit}"),
        ]
        alarm = "INSECURE: a seed was used, and nothing is guaranteed" if self.insecure else None
        return Summary("Private choice (public)", rows, alarm=alarm)


class RangeChoice(Choice):
    r"""An end of a column's range, chosen on a public grid as close as possible to a quantile.

    A grid point :math:`g_j` has the score :math:`-|C_j - qn| / (2\max\{q, 1 - q\})`, where :math:`C_j` is the
    number of people with a value of at most :math:`g_j` and :math:`n` that of all. A person changes no two
    scores differently by more than 1.
    """

    column: Annotated[str, Field(min_length=1)]
    end: Literal["low", "high"]
    level: _Level
    missing: float | None = None
    """What a missing value counted as."""
    candidates: Annotated[tuple[float, ...], Field(min_length=2, strict=False)]

    @model_validator(mode="after")
    def _rising(self) -> Self:
        check_grid(self.column, self.candidates)
        if Fraction(str(self.level)) * LEVELS % 1:
            raise ValueError(f"`level` of `{self.column}` must be a multiple of 0.001")
        return self

    @property
    def read_as(self) -> tuple[str, float | None]:
        """What it reads of a table: a column, with a number for missing values."""
        return self.column, self.missing

    def missed_by(self, failure: float) -> float:
        r"""How many people more than the best candidate's may lie between the chosen one and the quantile.

        .. math:: 2\max\{q, 1 - q\}\,\log(k/\rho)/\epsilon

        More of them have probability at most :math:`\rho`, the ``failure``, together: each of the :math:`k`
        candidates that is so far off has :math:`\rho/k` at most. Public.
        """
        share = max(self.level, 1.0 - self.level)
        return 2.0 * share * math.log(len(self.candidates) / failure) / self.epsilon

    def cells(self, values: FloatArray) -> IntArray:
        """The first candidate that is not below each value, or their number where all are."""
        return np.searchsorted(np.array(self.candidates), values, side="left")

    def exponents(self, weights: IntArray) -> tuple[Fraction, ...]:
        r"""The exact :math:`\epsilon S_j` of a table with these whole weights in the cells."""
        q = self._quantile
        rate = Fraction(self.epsilon) / (2 * max(q, 1 - q) * ONE)
        below, everyone = np.cumsum(weights).tolist(), int(weights.sum())
        return tuple(-rate * abs(one - q * everyone) for one in below[: len(self.candidates)])

    def losses_of(self, weights: IntArray, people: IntArray) -> FloatArray:
        """The exact signed loss of each member: a row of ``people`` has her weight in each cell."""
        q, count = self._quantile, len(self.candidates)
        rate = self.epsilon / float(2 * max(q, 1 - q) * ONE * q.denominator)

        def chosen(cells: IntArray) -> FloatArray:
            # In whole numbers, of which only the differences are rounded: a distance of 1 is `denominator`.
            far = abs(q.denominator * np.cumsum(cells, axis=1) - q.numerator * cells.sum(axis=1)[:, None])
            gaps = far[:, :count] - far[:, :count].min(axis=1, keepdims=True)
            return log_probability(-rate * gaps, self.place)

        return chosen(weights[None, :]) - chosen(weights - people)

    @cached_property
    def _quantile(self) -> Fraction:
        return Fraction(str(self.level))


def check_grid(name: str, grid: Sequence[float]) -> None:
    """Raise ValueError where a grid is none: two or more finite numbers that rise."""
    if len(grid) < 2 or len(grid) > MOST_CANDIDATES:
        raise ValueError(f"`grid` of `{name}` must have between 2 and {MOST_CANDIDATES:,} numbers")
    steps = np.diff(np.array(grid, dtype=np.float64))
    if not (math.isfinite(grid[0]) and math.isfinite(grid[-1]) and np.all(steps > 0.0)):
        raise ValueError(f"`grid` of `{name}` must rise from each number to the next")


def counted_once(choices: Iterable[SomeChoice]) -> tuple[SomeChoice, ...]:
    """Each choice once by its id; of two that claim to be the same one, the dearer."""
    once: dict[str, SomeChoice] = {}
    for one in choices:
        known = once.get(one.id, one)
        once[one.id] = max(known, one, key=lambda each: (each.epsilon, each.unit == "row"))
    return tuple(once.values())


def chosen_cost(choices: Iterable[Choice], rows: Any = 1, people: int = 1) -> Any:
    """What choices cost at most together, each counted once, for so many rows or people that change at once.

    What is promised to a person holds for all of her rows.
    """
    once = counted_once(choices)
    return sum((one.epsilon * (rows if one.unit == "row" else people) for one in once), start=0.0)


def check_unit(choices: Iterable[Choice], unit: str) -> None:
    """Raise DomainError where choices promise to rows and the model to people, or the other way round."""
    other = next((one.unit for one in choices if one.unit != unit), None)
    if other is not None:
        raise DomainError(
            f"the ranges of this domain were chosen for each {other}, and this model promises to each "
            f"{unit}: the two do not add up. Choose the ranges again, with a domain that declares `person` "
            "where the model is for people."
        )
