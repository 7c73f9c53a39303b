"""The style of the figures: colours, bands over draws, ticks, and saving."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from expost._common.files import atomic_write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette: people with any kind of colour vision can tell its colours apart. Each colour has
# one meaning in all figures.
TRUTH = "#000000"
PAPER, PAPER_DEPENDENT, PAPER_ADAPTIVE = "#D55E00", "#E69F00", "#CC79A7"
OURS, OURS_DEPENDENT, OURS_LEVERAGE = "#0072B2", "#56B4E9", "#009E73"
WORST = "#999999"
FOUR = (OURS, PAPER, OURS_LEVERAGE, PAPER_ADAPTIVE)

STYLE: Any = {
    "font.size": 13,
    "axes.titlesize": 14,
    "axes.labelsize": 13,
    "legend.fontsize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 2.2,
    "svg.hashsalt": "expost",  # so that the same numbers give the same file
    "svg.fonttype": "path",
}
LOSS = "privacy loss (log-odds)"


def styled() -> AbstractContextManager[None]:
    """The context in which every figure is drawn and saved."""
    return rc_context(STYLE)


def panels(rows: int, columns: int, *, width: float = 5.0, height: float = 3.8) -> tuple[Figure, Any]:
    """An empty figure and its axes, always as a two-dimensional array."""
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def band_line(
    axes: "Axes", x: Sequence[float], bands: Sequence[Sequence[float]], colour: str, label: str, **line: Any
) -> None:
    """A median over draws as a line, and between 10% and 90% of them as a band."""
    low, middle, high = np.array(bands).T
    axes.plot(x, middle, color=colour, label=label, **line)
    axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)


def plain_ticks(axis: Any, ticks: Sequence[float]) -> None:
    """Write numbers and not powers on a logarithmic axis."""
    axis.set_ticks(list(ticks), [f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def save(figure: Figure, path: Path) -> None:
    """Write the figure as SVG and as PNG, atomically."""
    with atomic_write_bytes(path.with_suffix(".svg")) as file:
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, dpi=100)
    with atomic_write_bytes(path.with_suffix(".png")) as file:
        figure.savefig(file, format="png", dpi=100)
