"""The style of the figures: colours, bands over draws, intervals in rows, ticks, legends, and saving.

Every figure is to be read at half its size, so letters are large and panels few. Whatever can be named where
it is drawn is; the rest is in one legend above the panels, never on top of what is drawn.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure, FigureBase
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from papers.common import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette and a dark blue: people with any kind of colour vision can tell its colours apart.
# Each colour has one meaning in all figures: warm ones are the paper's releases and formulas, cold ones ours,
# black what is true, grey what it is compared with.
TRUTH = "#000000"
PAPER, PAPER_DEPENDENT, PAPER_ADAPTIVE = "#D55E00", "#E69F00", "#CC79A7"
OURS, OURS_LEVERAGE, OURS_DEPENDENT, OURS_ADAPTIVE = "#0072B2", "#009E73", "#56B4E9", "#003366"
REFERENCE = "#707070"

STYLE: Any = {
    "font.size": 15,
    "axes.titlesize": 15,
    "axes.labelsize": 15,
    "xtick.labelsize": 13.5,
    "ytick.labelsize": 13.5,
    "legend.fontsize": 14.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 2.6,
    "svg.hashsalt": "expost",  # so that the same numbers give the same file
    "svg.fonttype": "path",
}
LOSS = "privacy loss (log-odds)"
Mark = dict[str, Any]
"""How a mark looks, as options of matplotlib."""
DRAWS = "10% to 90% of the draws"


def styled() -> AbstractContextManager[None]:
    """The context in which every figure is drawn and saved."""
    return rc_context(STYLE)


def panels(
    rows: int, columns: int, *, width: float = 4.4, height: float = 4.0, **options: Any
) -> tuple[Figure, Any]:
    """An empty figure and its axes, always as a two-dimensional array."""
    figure = empty(width * columns, height * rows)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def empty(width: float, height: float) -> Figure:
    """A figure whose panels stand far enough apart for the labels of their ticks."""
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(wspace=0.06))


def ink(colour: str) -> tuple[float, float, float]:
    """The colour of letters that name a line: darker, because thin strokes need more contrast."""
    red, green, blue = (0.68 * part for part in to_rgb(colour))
    return red, green, blue


def band_line(axes: "Axes", x: Any, bands: Sequence[Sequence[float]], colour: str, **line: Any) -> None:
    """A median over draws as a line, and between 10% and 90% of them as a band."""
    low, middle, high = np.array(bands).T
    axes.fill_between(x, low, high, color=colour, alpha=0.22, linewidth=0)
    axes.plot(x, middle, color=colour, **line)


def bound_and_truth(
    axes: "Axes",
    x: Any,
    bound: Sequence[Sequence[float]],
    truth: Sequence[Sequence[float]],
    colour: str,
) -> None:
    """The published bound, solid in the colour of its release, and the true loss, dotted in black."""
    band_line(axes, x, truth, TRUTH, linestyle=":")
    band_line(axes, x, bound, colour)


def interval(axes: "Axes", place: float, band: Sequence[float], colour: str, **mark: Any) -> None:
    """One row of a chart: a median over draws as a mark, and 10% to 90% of them as a thick bar."""
    low, middle, high = band
    axes.plot([low, high], [place, place], color=colour, alpha=0.45, linewidth=8, solid_capstyle="butt")
    look: Mark = {"marker": "o", "markersize": 10, "mec": "white"} | mark
    axes.plot([middle], [place], color=colour, **look)


def line_key(colour: str = REFERENCE, **line: Any) -> Line2D:
    """A line or a mark for the legend."""
    return Line2D([], [], color=colour, **line)


def band_key() -> Patch:
    """A band or a bar over draws for the legend."""
    return Patch(color=REFERENCE, alpha=0.35, linewidth=0)


def bound_keys(colours: Sequence[str], bound: str, truth: str) -> dict[str, Any]:
    """The legend of :func:`bound_and_truth`, with all colours that a bound has in the figure."""
    return {
        truth: line_key(TRUTH, linestyle=":"),
        bound: tuple(line_key(colour) for colour in colours),
        DRAWS: band_key(),
    }


def legend_above(figure: FigureBase, keys: Mapping[str, Any], columns: int) -> None:
    """One legend for all panels, above them."""
    figure.legend(
        list(keys.values()),
        list(keys),
        loc="outside upper center",
        ncols=columns,
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0.3)},
        handlelength=2.6,
    )


def plain_ticks(axis: Any, ticks: Sequence[float], template: str = "{:g}") -> None:
    """Write numbers and not powers on a logarithmic axis."""
    axis.set_ticks(list(ticks), [template.format(tick) for tick in ticks])
    axis.set_ticks([], minor=True)


def save(figure: Figure, path: Path) -> None:
    """Write the figure as SVG and as PNG, atomically."""
    with whole_file(path.with_suffix(".svg")) as file:
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, dpi=100)
    with whole_file(path.with_suffix(".png")) as file:
        figure.savefig(file, format="png", dpi=100)
