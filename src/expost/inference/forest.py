"""A forest plot: every coefficient with its interval, on one scale."""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import missing_extra_error
from expost.data.classes import class_text
from expost.exceptions import printable
from expost.inference.coordinates import INTERCEPT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette: people with any kind of colour vision can tell its colours apart.
_BLUE, _GREY, _FAINT, _ALARM = "#0072B2", "#777777", "#E4E4E4", "#B3261E"
_MARKS: dict[str, Any] = {"fmt": "o", "color": _BLUE, "capsize": 3, "markersize": 5}
_HEIGHT_PER_TERM = 0.3


class Drawn(Protocol):
    """What is drawn of a table of coefficients."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of the coefficients."""

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The classes, where there are more than two."""

    @property
    def coefficients(self) -> FloatArray:
        """The coefficients."""

    @property
    def lower(self) -> FloatArray:
        """Lower ends of the intervals."""

    @property
    def upper(self) -> FloatArray:
        """Upper ends of the intervals."""

    @property
    def spans(self) -> FloatArray:
        """The declared range of each feature."""

    @property
    def confidence(self) -> float:
        """How sure each interval is."""

    @property
    def predictor(self) -> str:
        """What a coefficient changes."""

    @property
    def alarm(self) -> str | None:
        """What voids the guarantee, where something does."""


def forest(table: Drawn) -> "Figure":
    """Draw each coefficient over its feature's declared range, with its interval; public.

    The intercept and what is not determined are left out. With more than two classes there is
    one panel per class, on one scale.
    """
    try:
        from expost.inference.picture import Picture
    except ImportError:
        raise missing_extra_error("a forest plot", "matplotlib", "figures") from None
    panels = [
        np.atleast_2d(values) * table.spans for values in (table.coefficients, table.lower, table.upper)
    ]
    last = len(table.terms) - 1
    asked = [place for place, term in enumerate(table.terms) if not (place == last and term == INTERCEPT)]
    shown = [place for place in asked if np.all(np.isfinite(panels[0][:, place]))]
    count = len(panels[0])
    size = (3.0 + 3.6 * count, 1.6 + _HEIGHT_PER_TERM * max(len(shown), 1))
    figure = Picture(figsize=size, layout="constrained")
    drawn = figure.subplots(1, count, sharex=True, sharey=True, squeeze=False)[0]
    heights = -np.arange(len(shown))
    for place, axes in enumerate(drawn):
        middle, lower, upper = (panel[place, shown] for panel in panels)
        axes.axvline(0.0, color=_GREY, linewidth=1)
        axes.errorbar(middle, heights, xerr=[middle - lower, upper - middle], **_MARKS)
        axes.set_yticks(heights, [_plain(table.terms[term]) for term in shown])
        axes.set_ylim(0.5 - max(len(shown), 1), 0.5)
        axes.grid(axis="y", color=_FAINT)
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
        if table.classes is not None:
            axes.set_title(_plain(class_text(table.classes[place])), fontsize=11)
    over = "per unit" if np.all(table.spans == 1.0) else "over the feature's range"
    below = f"change of the {table.predictor} {over}, with intervals of {100 * table.confidence:.6g}%"
    hidden = len(asked) - len(shown)
    if hidden:
        below += f"\n{hidden} coefficient{'s are' if hidden > 1 else ' is'} not determined and not shown"
    figure.supxlabel(below, fontsize=10)
    if table.alarm is not None:
        figure.suptitle(_plain(table.alarm), fontsize=10, color=_ALARM, wrap=True)
    return figure


def _plain(text: str) -> str:
    """A text as it is written: a dollar sign would begin a formula."""
    return printable(text).replace("$", r"\$")
