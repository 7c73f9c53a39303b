"""A forest plot: every coefficient with its interval, on one scale."""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import missing_extra_error
from expost.exceptions import printable
from expost.inference.coordinates import INTERCEPT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette: people with any kind of colour vision can tell its colours apart.
_BLUE, _GREY = "#0072B2", "#777777"
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


def forest(table: Drawn) -> "Figure":
    """Draw each coefficient over its feature's declared range, with its interval; public.

    The intercept and what is not determined are left out. With more than two classes there is one panel per
    class.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_extra_error("a forest plot", "matplotlib", "figures") from None
    panels = [
        np.atleast_2d(values) * table.spans for values in (table.coefficients, table.lower, table.upper)
    ]
    shown = [
        place
        for place, term in enumerate(table.terms)
        if term != INTERCEPT and np.all(np.isfinite(panels[0][:, place]))
    ]
    count = len(panels[0])
    figure = Figure(figsize=(2.0 + 4.0 * count, 1.5 + _HEIGHT_PER_TERM * len(shown)), layout="constrained")
    drawn = figure.subplots(1, count, sharey=True, squeeze=False)[0]
    heights = -np.arange(len(shown))
    for place, axes in enumerate(drawn):
        middle, lower, upper = (panel[place, shown] for panel in panels)
        axes.axvline(0.0, color=_GREY, linewidth=1)
        axes.errorbar(
            middle,
            heights,
            xerr=[middle - lower, upper - middle],
            fmt="o",
            color=_BLUE,
            capsize=3,
            markersize=4,
        )
        # A dollar sign would begin a formula.
        names = [printable(table.terms[term]).replace("$", r"\$") for term in shown]
        axes.set_yticks(heights, names)
        axes.spines[["top", "right"]].set_visible(False)
        if table.classes is not None:
            axes.set_title(printable(str(table.classes[place])).replace("$", r"\$"))
        axes.set_xlabel("change of the log-odds over the feature's range")
    figure.suptitle(f"Coefficients and {table.confidence:.6g} intervals", fontsize=12)
    return figure
