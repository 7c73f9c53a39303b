"""Bounds: what a publication cost each record, and how a reader's confidence is shared."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import ndtri

from expost._common.namespaces import Space, is_foreign, namespace_of, on_host
from expost._common.summary import Summary
from expost._common.typing import FloatArray
from expost._common.validation import LibraryName, Simultaneous, check_count, check_positive, parameter_error
from expost.data.frame_tables import FrameKind
from expost.goe import LargestEigenvalue
from expost.privacy.scales import REPORT_KINDS

# How sure a reader is who does not say how sure to be.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Shares:
    """The failure probability of each event of a :class:`~expost.privacy.scales.ReportKind`."""

    hessian_below: float
    hessian_above: float
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
        """What the total leaves to all the noise together: it needs no lower end and no separate gradient."""
        return self.hessian_above + self.gradient + self.tilt


@dataclass(frozen=True)
class Scope:
    """For how many records at once a bound is to hold: ``None`` for one, a number, or ``"all"``."""

    simultaneous: Simultaneous

    @classmethod
    def of(cls, simultaneous: Any) -> "Scope":
        """Check what the reader asked for."""
        if simultaneous is None or (isinstance(simultaneous, str) and simultaneous == "all"):
            return cls(None if simultaneous is None else "all")
        if isinstance(simultaneous, str):
            raise parameter_error("simultaneous", "None, a number of records or 'all'", simultaneous)
        way_out = "'all' covers every record at once."
        count = check_count("simultaneous", simultaneous, way_out=way_out)
        if count > 10**12:
            raise parameter_error("simultaneous", "at most 1e12", simultaneous, way_out)
        return cls(count)

    def check_records(self, count: int) -> None:
        """Refuse more records than are to be covered together: the confidence would be of none of them."""
        if isinstance(self.simultaneous, int) and self.simultaneous < count:
            # The number of records is not shown: a curator may ask about her table.
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
    r"""What the GOE's form at a record's unit vectors exceeds with probability ``failure``, for the scope.

    For a record fixed in advance :math:`\sqrt2\,\Phi^{-1}(1 - \rho)`, with several outputs the quantile of
    the GOE of that dimension (docs/mathematics.md, sections 7 and 11); for all at once that of the matrix.
    """
    every = goe_quantile(dimension, failure)
    if scope.every:
        return every
    each = scope.each(failure)
    return min(every, -math.sqrt(2.0) * float(ndtri(each)) if outputs == 1 else goe_quantile(outputs, each))


def sides_of(member: Any) -> tuple[bool, ...]:
    """Whether the records were in the table, as one answer; both where that is unknown."""
    if not (member is None or isinstance(member, bool | np.bool_)):
        raise parameter_error("member", "True, False or None", type(member).__name__)
    return (True, False) if member is None else (bool(member),)


def check_confidence(confidence: Any) -> float:
    """Return the failure probability of a confidence level, or refuse it."""
    return 1.0 - check_positive("confidence", confidence, below=1.0)


# More records than this are not shown in a notebook.
_MOST_RECORDS = 10


class Figures(NamedTuple):
    """What a release cost some records: the fields of :class:`~expost.reports.base.Bounds`.

    Privacy
    -------
    As private as the records.
    """

    lower: FloatArray
    upper: FloatArray
    report_cost: FloatArray
    total: FloatArray

    @classmethod
    def joined(cls, parts: Iterable["Figures"]) -> "Figures":
        """The figures of several runs of records, one after the other."""
        runs = list(parts)
        if not runs:
            return cls(*(np.empty(0) for _ in range(4)))
        return cls(*map(namespace_of(runs[0].lower).concat, zip(*runs, strict=True)))


@dataclass(frozen=True, eq=False)
class Bounds:
    """What a publication cost each record, as far as anyone can know it from public values and the record.

    The interval, the report's cost and the total each hold with the chosen confidence on their own. That all
    three hold together is less likely: with a failure probability of ρ each, it is at least 1 − 3ρ.

    Privacy
    -------
    About the records that were asked for, and as private as they are.
    """

    lower: FloatArray
    """Lower end of the interval for the ex-post loss of the model; both ends hold together."""
    upper: FloatArray
    """Upper end of the interval for the ex-post loss of the model."""
    report_cost: FloatArray
    """What the statistics cost at most; zero where there are none."""
    total: FloatArray
    """Bound for the whole publication."""
    confidence: float = CONFIDENCE
    """How sure each of the three is."""
    scope: Scope = field(default=Scope(None))
    """For how many records at once."""
    kind: FrameKind = field(default=FrameKind(), repr=False)
    """The kind of frame that the records came in."""
    people: Any = field(default=None, repr=False)
    """The ids of the people, or families, in the order of the figures, where they are asked about."""

    HEADINGS: ClassVar = ("model, at least", "model, at most", "report, at most", "total, at most")

    @classmethod
    def of(cls, parts: Iterable[Figures], *, confidence: float, scope: Scope) -> Self:
        """The bounds of all records from the figures of each part."""
        return cls(*Figures.joined(parts), confidence=confidence, scope=scope)

    def placed(self, X: Any) -> Self:
        """These bounds, with figures where the records lie if that is not here and they are no frame."""
        if not is_foreign(X):
            return self
        return replace(self, **dict(zip(Figures._fields, map(Space.of(X).put, self.figures), strict=True)))

    @property
    def figures(self) -> Figures:
        """The four figures of each record, in the order of the headings."""
        return Figures(self.lower, self.upper, self.report_cost, self.total)

    def to_frame(self, library: LibraryName | None = None) -> Any:
        """The figures as a data frame with the columns ``lower``, ``upper``, ``report_cost`` and ``total``.

        Parameters
        ----------
        library
            ``"pandas"``, ``"polars"``, ``"pyarrow"``, ``"modin"`` or ``"cudf"``. By default the one that the
            records came in, with their index where they had one; pandas where they were no frame.

        Privacy
        -------
        As private as the records.

        Examples
        --------
        >>> import numpy as np
        >>> zeros = np.zeros(2)
        >>> Bounds(zeros, zeros + 0.1, zeros, zeros + 0.1).to_frame("polars").columns
        ['lower', 'upper', 'report_cost', 'total']
        """
        figures = {name: on_host(figure) for name, figure in self.figures._asdict().items()}
        if self.people is None:
            return self.kind.in_library(library).frame(figures)
        # The index of the records is that of rows.
        kind = replace(self.kind, index=None).in_library(library)
        return kind.frame({"person": list(self.people), **figures})

    def _summary(self) -> Summary:
        count = len(self.total)
        rows = [
            (str(record + 1), *(f"{figure[record]:.4f}" for figure in self.figures))
            for record in range(min(count, _MOST_RECORDS))
        ]
        notes = [self.scope.sentence(self.confidence)]
        if count > _MOST_RECORDS:
            notes.insert(0, f"{count - _MOST_RECORDS:,} more records: to_frame() has them all.")
        return Summary(
            "What was released about each record", rows, ("record", *self.HEADINGS), notes, figures=True
        )

    def _repr_html_(self) -> str:
        return self._summary().html()
