"""CoefficientTable: coefficients with their uncertainty, as arrays, frame, table and forest plot."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from expost._common.summary import Summarized, Summary
from expost._common.typing import FloatArray
from expost._common.validation import LibraryName, missing_extra_error
from expost.data.frame_tables import FrameKind
from expost.data.values import class_text
from expost.exceptions import PublicationError, printable
from expost.inference.coordinates import INTERCEPT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Okabe and Ito's palette: people with any kind of colour vision can tell its colours apart.
_BLUE, _GREY, _FAINT, _ALARM = "#0072B2", "#777777", "#E4E4E4", "#B3261E"
_MARKS: dict[str, Any] = {"fmt": "o", "color": _BLUE, "capsize": 3, "markersize": 5}
_HEIGHT_PER_TERM = 0.3
# A smaller p-value is not told from zero: the normal law is an approximation.
_SMALLEST_P = 1e-3
# Figures with more decimals, or larger ones, have an exponent.
_MOST_DECIMALS, _LARGEST = 5, 1e5
_INDENT = "  "
# Between the columns of a product.
_TIMES = " × "
_COLUMNS = ("term", "estimate", "std. err.", "lower", "upper", "z", "p")
UNDETERMINED = "—"
"""What stands for a coefficient that the released Hessian does not determine."""


@dataclass(frozen=True, eq=False)
class CoefficientTable(Summarized):
    """Coefficients without the penalty's shrinkage, in the features' own units, and how sure they are.

    With more than two classes every array has one row per class, otherwise one entry per term. What the
    released Hessian does not determine is NaN.

    Privacy
    -------
    Public: computed from the publication alone.
    """

    terms: tuple[str, ...]
    """The names of the coefficients; the intercept is last."""
    classes: tuple[Any, ...] | None
    """The classes, where there are more than two."""
    coefficients: FloatArray
    """Change of the linear predictor for one unit of the feature: of the log-odds, without a cap."""
    standard_errors: FloatArray
    """Sampling, the objective's noise and the Hessian's together."""
    lower: FloatArray
    """Lower ends of the intervals."""
    upper: FloatArray
    """Upper ends of the intervals."""
    z: FloatArray
    """The coefficient in standard errors."""
    p_values: FloatArray
    """Two-sided, for a coefficient of zero."""
    confidence: float
    """How sure each interval is, on its own."""
    spans: FloatArray
    """The declared range of each term's feature; 1 where it has none."""
    title: str = "Coefficients (public)"
    """What the coefficients are."""
    predictor: str = "log-odds"
    """What a coefficient changes."""
    notes: Sequence[str] = ()
    """What the figures assume."""
    states: tuple[str, ...] = ()
    """With an L1 penalty or bounds, what each published coefficient is: free, not used, or at a bound."""
    alarm: str | None = None
    """The sentence that voids the guarantee, where the noise came from a seed."""

    def __len__(self) -> int:
        return self.coefficients.size

    def to_frame(self, library: LibraryName | None = None) -> Any:
        """The table as a data frame, one row per coefficient.

        The columns are ``class`` where there are more than two, ``term``, ``coefficient``,
        ``standard_error``, ``lower``, ``upper``, ``z`` and ``p_value``.

        Parameters
        ----------
        library
            ``"pandas"``, the default, ``"polars"``, ``"pyarrow"``, ``"modin"`` or ``"cudf"``.

        Privacy
        -------
        Public.
        """
        columns: dict[str, Any] = {}
        if self.classes is not None:
            columns["class"] = np.repeat(np.array(self.classes), len(self.terms)).tolist()
        columns["term"] = list(self.terms) * len(self.classes or [None])
        columns |= {name: figures.ravel() for name, figures in self._figures().items()}
        return FrameKind().in_library(library).frame(columns)

    def plot(self) -> "Figure":
        """A forest plot of the intervals, as a figure of matplotlib's; needs the extra ``figures``.

        Each coefficient is multiplied by the declared range of its feature, so that all are on one scale. The
        intercept and what is not determined are left out, and each of several classes has a panel.
        MissingExtraError is raised if matplotlib is not installed, and PublicationError without intervals.

        Privacy
        -------
        Public.
        """
        if self.without_errors:
            raise PublicationError(f"there are no intervals to draw. {self.notes[-1]}")
        try:
            from expost.inference.picture import Picture
        except ImportError:
            raise missing_extra_error("a forest plot", "matplotlib", "figures") from None
        figures = np.array([self.coefficients, self.lower, self.upper])
        panels = figures.reshape(3, -1, len(self.terms)) * self.spans
        asked = np.arange(len(self.terms) - (self.terms[-1] == INTERCEPT))
        shown = asked[np.all(np.isfinite(panels[0][:, asked]), axis=0)]
        count = len(panels[0])
        size = (3.0 + 3.6 * count, 1.6 + _HEIGHT_PER_TERM * max(len(shown), 1))
        figure = Picture(figsize=size, layout="constrained")
        drawn = figure.subplots(1, count, sharex=True, sharey=True, squeeze=False)[0]
        terms = [_plain(self.terms[term]) for term in shown]
        for place, axes in enumerate(drawn):
            _draw(axes, terms, *panels[:, place, shown])
            if self.classes is not None:
                axes.set_title(_plain(class_text(self.classes[place])), fontsize=11)
        over = "per unit" if np.all(self.spans == 1.0) else "over the feature's range"
        below = f"change of the {self.predictor} {over}, with intervals of {100 * self.confidence:.6g}%"
        hidden = len(asked) - len(shown)
        if hidden:
            below += f"\n{hidden} coefficient{'s are' if hidden > 1 else ' is'} not determined and not shown"
        figure.supxlabel(below, fontsize=10)
        if self.alarm is not None:
            figure.suptitle(_plain(self.alarm), fontsize=10, color=_ALARM, wrap=True)
        return figure

    @property
    def without_errors(self) -> bool:
        """Whether nothing is known of how sure the coefficients are."""
        return bool(np.all(np.isnan(self.standard_errors)))

    def _figures(self) -> dict[str, FloatArray]:
        return {
            "coefficient": self.coefficients,
            "standard_error": self.standard_errors,
            "lower": self.lower,
            "upper": self.upper,
            "z": self.z,
            "p_value": self.p_values,
        }

    def _summary(self) -> Summary:
        columns, cells = self._cells()
        empty = [""] * (len(columns) - 1)
        rows: list[Sequence[str]] = []
        for place, label in enumerate(self.classes or [None]):
            if label is not None:
                rows.append((class_text(label), *empty))
            indent = _INDENT * (label is not None)
            for name, term in _grouped(self.terms):
                rows.append((indent + name, *(empty if term is None else cells[place][term])))
        return Summary(self.title, rows, columns, self.notes, self.alarm, figures=True, dense=True)

    def _cells(self) -> tuple[tuple[str, ...], list[list[tuple[str, ...]]]]:
        """The names of the columns, and what they hold: classes by terms by columns."""
        columns, spelt = (_COLUMNS[:2], _estimate) if self.without_errors else (_COLUMNS, _cells)
        figures = np.stack([np.atleast_2d(column) for column in self._figures().values()], axis=-1)
        cells = [[spelt(found) for found in terms] for terms in figures.tolist()]
        if not self.states:
            return columns, cells
        return (*columns, ""), [[(*found, state) for found, state in zip(cells[0], self.states, strict=True)]]

    def __repr__(self) -> str:
        sure = "no intervals" if self.without_errors else f"confidence={self.confidence:g}"
        return f"CoefficientTable({len(self)} coefficients, {sure})"

    def __str__(self) -> str:
        return self._summary().text()


def _draw(axes: "Axes", terms: list[str], middle: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
    """Draw the intervals of a class, one term above the other."""
    heights = -np.arange(len(terms))
    axes.axvline(0.0, color=_GREY, linewidth=1)
    axes.errorbar(middle, heights, xerr=[middle - lower, upper - middle], **_MARKS)
    axes.set_yticks(heights, terms)
    axes.set_ylim(0.5 - max(len(terms), 1), 0.5)
    axes.grid(axis="y", color=_FAINT)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _parted(term: str) -> tuple[str | None, str]:
    """The feature or product that a term is a value of, None where it is of none, and the value."""
    parts = [one.partition("=") for one in term.split(_TIMES)]
    values = [value for _, equals, value in parts if equals]
    return _TIMES.join(name for name, _, _ in parts) if values else None, _TIMES.join(values)


def _grouped(terms: Sequence[str]) -> Iterator[tuple[str, int | None]]:
    """Each line's name and its term; values of one feature or product have a line with its name above."""
    parted = [_parted(term) for term in terms]
    counted = Counter(feature for feature, _ in parted)
    last = None
    for place, (term, (feature, value)) in enumerate(zip(terms, parted, strict=True)):
        if feature is None or counted[feature] == 1:
            yield term, place
        else:
            if feature != last:
                yield feature, None
            yield _INDENT + value, place
        last = feature


def _cells(figures: Sequence[float]) -> tuple[str, ...]:
    """Figures to the digits that the standard error leaves: two of its own."""
    error, *ends, z, p = figures[1:]
    if np.isnan(z):
        return (UNDETERMINED, *[""] * (len(figures) - 1))
    decimals = max(1 - math.floor(math.log10(error)), 0) if error > 0.0 else _MOST_DECIMALS
    shown = f".{decimals}f"
    if decimals > _MOST_DECIMALS or max(map(abs, ends)) >= _LARGEST:
        shown = ".3g"
    small = f"<{_SMALLEST_P:g}" if p < _SMALLEST_P else f"{p:.3f}"
    return (*(f"{number:{shown}}" for number in figures[:-2]), f"{z:.2f}", small)


def _estimate(figures: Sequence[float]) -> tuple[str, ...]:
    """A coefficient to four digits, with marks between thousands; with many decimals it has an exponent."""
    value = figures[0]
    decimals = max(3 - math.floor(math.log10(abs(value))), 0) if value else 0
    return (f"{value:.4g}" if decimals > _MOST_DECIMALS + 2 else f"{value:,.{decimals}f}",)


def _plain(text: str) -> str:
    """A text as it is written: a dollar sign would begin a formula."""
    return printable(text).replace("$", r"\$")
