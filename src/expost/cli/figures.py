"""Two figures of exact losses, for the curator: against the worst case, and against what people can know."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from expost._common.files import atomic_write_bytes
from expost._common.typing import FloatArray
from expost.reports import Bounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette: people with any kind of colour vision can tell its colours apart.
BLUE, SKY, ORANGE = "#0072B2", "#9AD0F0", "#D55E00"


def available() -> bool:
    """Whether matplotlib is installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return False
    return True


def draw_losses(path: Path, losses: FloatArray, worst: float, *, title: str = "") -> None:
    """Draw the distribution of the exact losses and the promised worst case; private."""
    figure, axes = _empty(title)
    top = 1.05 * max(worst, float(np.max(losses)))
    axes.hist(losses, bins=np.linspace(0.0, top, 85), color=BLUE, label="exact loss of each person")
    axes.axvline(worst, color=ORANGE, linewidth=3, label="worst case promised to everyone")
    axes.set_xlabel("privacy loss (log-odds)", fontsize=14)
    axes.set_ylabel("people", fontsize=14)
    axes.set_xlim(0.0, top)
    axes.legend(fontsize=12, frameon=False, loc="upper center")
    _save(figure, path)


def draw_intervals(
    path: Path, losses: FloatArray, bounds: Bounds, worst: float, confidence: float, *, title: str = ""
) -> None:
    """Draw each person's exact loss within the interval that she can compute herself; private."""
    order = np.argsort(bounds.upper)
    people = np.arange(1, len(order) + 1)
    figure, axes = _empty(title)
    axes.fill_between(
        people,
        bounds.lower[order],
        bounds.upper[order],
        color=SKY,
        linewidth=0,
        label=f"what each can know from the published file ({confidence:.0%})",
    )
    axes.plot(people, losses[order], ".", color=BLUE, markersize=4, label="what each really lost (private)")
    axes.axhline(worst, color=ORANGE, linewidth=3, label="worst case promised to everyone")
    axes.set_xlim(1, max(len(order), 2))
    axes.set_ylim(0.0, 1.38 * max(worst, float(np.max(bounds.upper))))
    axes.set_xlabel("the people in the data, by what they can know", fontsize=14)
    axes.set_ylabel("privacy loss (log-odds)", fontsize=14)
    axes.legend(fontsize=12, frameon=False, loc="upper left", markerscale=3)
    _save(figure, path)


def _empty(title: str) -> tuple["Figure", Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.0), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, fontsize=14)
    axes.tick_params(labelsize=12)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: "Figure", path: Path) -> None:
    with atomic_write_bytes(path, private=True) as file:
        figure.savefig(file, format="png", dpi=150)
