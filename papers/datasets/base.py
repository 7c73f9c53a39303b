"""A data set: the table as in its file, and the rows encoded by its declared domain."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expost import ClassLabel, Domain
from expost.exceptions import ExpostError, ParameterError
from papers.common import FloatArray


class DataUnavailable(ExpostError):  # noqa: N818 -- the name says what is wrong
    """A data set is missing and cannot be downloaded, or its file is not the published one."""


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Raise ParameterError unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ParameterError(f"`{name}` must be one of {', '.join(choices)}; got {name}={value!r}.")


@dataclass(frozen=True)
class DataSet:
    """Public records with what was declared about them; nothing is computed from the values.

    Parameters
    ----------
    name
        The name in tables and figures.
    domain
        What is publicly known about a record, from ``examples/<name>/domain.toml``.
    columns
        The raw values of every feature of the domain, with NaN or an empty text for what is missing.
    outcome
        The raw labels: texts where the domain declares classes, numbers where it declares a scale.
    """

    name: str
    domain: Domain
    columns: Mapping[str, NDArray[Any]]
    outcome: NDArray[Any]

    def __len__(self) -> int:
        return len(self.outcome)

    def rows(self, *, intercept: bool = False) -> FloatArray:
        """Encoded records in the unit ball, with a last column for the intercept on request.

        All are divided by the largest length that the domain allows, the constant 1 included.
        """
        encoded = self.domain.encode(self.columns)
        if intercept:
            encoded = np.column_stack([encoded, np.ones(len(self))])
        ball: FloatArray = encoded / np.sqrt(self.domain.longest_row**2 + intercept)
        return ball

    def labels(self) -> FloatArray:
        """Outcomes as a loss accepts them: 1 for the second of two classes, or a number in [-1, 1]."""
        if isinstance(self.domain.label, ClassLabel):
            return np.asarray(self.outcome == self.domain.label.classes[1], dtype=np.float64)
        return self.domain.scale_outcome(self.outcome)

    def split(self, share: float, seed: int) -> tuple[Self, Self]:
        """A share of the records for fitting and the rest for testing, shuffled by a seed."""
        if not 0.0 < share < 1.0:
            raise ParameterError(f"`share` must be a number with 0 < share < 1; got share={share!r}.")
        order = np.random.default_rng(seed).permutation(len(self))
        cut = int(share * len(self))
        return self._part(order[:cut]), self._part(order[cut:])

    def _part(self, order: NDArray[np.int64]) -> Self:
        columns = {name: values[order] for name, values in self.columns.items()}
        return replace(self, columns=columns, outcome=self.outcome[order])
