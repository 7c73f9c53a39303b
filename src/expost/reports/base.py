"""How a reader's confidence is shared: among the parts in use, and among records."""

import math
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np
from scipy.special import ndtri

from expost._common.choices import Simultaneous
from expost._common.typing import FloatArray
from expost._common.validation import check_count, check_positive, parameter_error
from expost.goe import LargestEigenvalue
from expost.privacy.statistics import REPORT_KINDS

# How sure a reader is who does not say how sure to be.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Shares:
    """The failure probability of each event that a bound relies on; together at most one minus confidence."""

    hessian_below: float
    """The noise makes the Hessian look larger than it is, and with it a leverage smaller."""
    hessian_above: float
    """The noise makes the Hessian look smaller than it is."""
    eigenvalue: float
    gradient: float
    tilt: float

    @classmethod
    def of(cls, report: str, failure: float) -> "Shares":
        """Share ``failure`` among the events of a kind of report."""
        shares = REPORT_KINDS[report].failure_shares
        return cls(**{event.name: failure * shares.get(event.name, 0.0) for event in fields(cls)})

    @property
    def whole(self) -> float:
        """What the total leaves to all the noise together: it relies on no other event but two.

        These are that the leverage is no larger than read, and that the smallest eigenvalue is no smaller.
        """
        return self.hessian_above + self.gradient + self.tilt


@dataclass(frozen=True)
class Scope:
    """For how many records at once a bound is to hold: ``None`` for one, a number, or ``"all"``."""

    simultaneous: Simultaneous

    @classmethod
    def of(cls, simultaneous: Any) -> "Scope":
        """Check what the reader asked for."""
        if simultaneous is None:
            return cls(None)
        if isinstance(simultaneous, str) and simultaneous == "all":
            return cls("all")
        if isinstance(simultaneous, str):
            raise parameter_error("simultaneous", "None, a number of records or 'all'", simultaneous)
        way_out = "'all' covers every record at once."
        count = check_count("simultaneous", simultaneous, way_out=way_out)
        if count > 10**12:
            raise parameter_error("simultaneous", "at most 1e12", simultaneous, way_out)
        return cls(count)

    def check_records(self, count: int) -> None:
        """Refuse more records than the reader asked to be covered together.

        Which of them would be covered is left open, so the confidence would belong to none in particular.
        """
        if isinstance(self.simultaneous, int) and self.simultaneous < count:
            # The number of records is not told: a curator may ask about her table.
            raise parameter_error(
                "simultaneous",
                "at least the number of records that are asked about",
                self.simultaneous,
                "Raise it, or use 'all'.",
            )

    @property
    def every(self) -> bool:
        """Whether the bound must hold for every record there could be."""
        return self.simultaneous == "all"

    def sentence(self, confidence: float) -> str:
        """What a confidence is about, in words."""
        covered = "all possible records at once" if self.every else f"{self.simultaneous} records at once"
        if self.simultaneous is None:
            covered = "a record fixed before the publication"
        return (
            "The interval, the cost and the total each hold on their own with confidence "
            f"{confidence:g}, for {covered}."
        )

    def each(self, failure: float) -> float:
        """The failure probability that each of the records may take."""
        return failure / self.simultaneous if isinstance(self.simultaneous, int) else failure


@dataclass(frozen=True)
class Interval:
    """Lower and upper ends, one per record."""

    low: FloatArray
    high: FloatArray


@cache
def goe_quantile(dimension: int, failure: float) -> float:
    """What the largest eigenvalue of the GOE exceeds with probability ``failure``."""
    return float(LargestEigenvalue(dimension).isf(failure))


def form_quantile(dimension: int, failure: float, scope: Scope, outputs: int = 1) -> float:
    r"""What the GOE's quadratic form at a unit vector exceeds with probability ``failure``, for the scope.

    For a vector that is independent of the matrix the form is normal with variance 2, so it is
    :math:`\sqrt2\,\Phi^{-1}(1 - \rho)`, with :math:`\rho/n` for :math:`n` of them; for all vectors at once
    it is the largest eigenvalue's quantile, which never is the smaller one of the two for one vector. For
    all unit vectors of a space of ``outputs`` dimensions that is independent of the matrix, it is the largest
    eigenvalue's quantile in that dimension.
    """
    every = goe_quantile(dimension, failure)
    if scope.every:
        return every
    each = scope.each(failure)
    return min(every, -math.sqrt(2.0) * float(ndtri(each)) if outputs == 1 else goe_quantile(outputs, each))


def sides_of(member: Any) -> tuple[bool, ...]:
    """Whether the records were in the table, as one answer; both where that is unknown."""
    if not (member is None or isinstance(member, bool | np.bool_)):
        raise parameter_error("member", "True, False or None", member)
    return (True, False) if member is None else (bool(member),)


def check_confidence(confidence: Any) -> float:
    """Return the failure probability of a confidence level, or refuse it."""
    return 1.0 - check_positive("confidence", confidence, below=1.0)
