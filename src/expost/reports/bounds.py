"""Bounds: what a publication cost each record, as figures, as a frame and as a table."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from expost._common.choices import LibraryName
from expost._common.namespaces import Space, is_foreign, namespace_of, on_host
from expost._common.summary import Summary
from expost._common.typing import FloatArray
from expost.data.frames import FrameKind
from expost.reports.base import CONFIDENCE, Scope

# More records than this are not shown in a notebook.
_MOST_RECORDS = 10


class Figures(NamedTuple):
    """What a release cost some records: the fields of :class:`~expost.reports.bounds.Bounds`.

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
        return self.kind.in_library(library).frame(
            {name: on_host(figure) for name, figure in self.figures._asdict().items()}
        )

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
