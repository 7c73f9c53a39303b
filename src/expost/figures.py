"""Two figures of exact losses, for the curator: against the worst case, and against what people can know."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from expost._files import bytes_written_whole
from expost._typing import FloatArray
from expost.reports import Bounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def available() -> bool:
    """Whether matplotlib is installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return False
    return True


def draw_losses(path: Path, losses: FloatArray, worst: float) -> None:
    """The distribution of the exact losses beside the promised worst case; private."""
    figure = _empty()
    axes = figure.add_subplot()
    axes.hist(losses, bins=40, color="tab:blue")
    axes.axvline(worst, color="tab:red", linestyle="--", label=f"worst case promised: {worst:g}")
    axes.set(xlabel="exact privacy loss", ylabel="people", title="PRIVATE: what the model cost each person")
    axes.set_xlim(0.0, 1.05 * max(worst, float(np.max(losses))))
    axes.legend()
    _save(figure, path)


def draw_intervals(path: Path, losses: FloatArray, bounds: Bounds, confidence: float) -> None:
    """Each person's exact loss within the interval that she can compute herself; private."""
    order = np.argsort(losses)
    place = np.arange(len(losses))
    figure = _empty()
    axes = figure.add_subplot()
    axes.vlines(
        place,
        bounds.lower[order],
        bounds.upper[order],
        color="tab:gray",
        alpha=0.4,
        linewidth=1.0,
        label=f"published interval, {confidence:.0%}",
    )
    axes.plot(place, losses[order], ".", color="tab:blue", markersize=2.5, label="exact loss")
    axes.set(
        xlabel="people, by their exact loss",
        ylabel="privacy loss of the model",
        title="PRIVATE: the exact loss and what each person can know",
    )
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="upper left")
    _save(figure, path)


def _empty() -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(7.0, 4.2), layout="constrained")


def _save(figure: "Figure", path: Path) -> None:
    with bytes_written_whole(path, private=True) as file:
        figure.savefig(file, format="png", dpi=150)
