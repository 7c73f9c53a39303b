"""The figure of linear regression: error against regularisation, the wines, and growing tables."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from papers.redberg_wang_2021.experiment import Numbers
from papers.redberg_wang_2021.linear import D, N
from papers.redberg_wang_2021.plotting import (
    LOSS,
    OURS,
    PAPER,
    PAPER_DEPENDENT,
    REFERENCE,
    Mark,
    bound_and_truth,
    bound_keys,
    empty,
    ink,
    interval,
    legend_above,
    plain_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = {
    "squared": ("squared loss,\ndata-independent", PAPER),
    "pseudo_huber": ("pseudo-Huber,\ndata-independent", PAPER),
    "pseudo_huber_dependent": ("pseudo-Huber,\ndata-dependent", PAPER_DEPENDENT),
    "ours": ("pseudo-Huber, ours,\ndata-independent", OURS),
}
RED: Mark = {"markersize": 10, "mec": "white"}
WHITE: Mark = {"markersize": 9, "mfc": "white", "mec": None, "mew": 2.5}
STAR: Mark = {"marker": "*", "markersize": 19, "mec": "white", "zorder": 5}


def draw_linear(numbers: Numbers) -> Figure:
    """Two panels above, and below one for each release and each size that grows."""
    figure = empty(13.2, 12.6)
    parts: Any = figure.subfigures(2, 1, height_ratios=(1.0, 1.7), hspace=0.03)
    above, below = parts
    left, right = above.subplots(1, 2, width_ratios=(1.15, 1.0))
    _draw_regularization(left, numbers["regularization"])
    _draw_wine(right, numbers["wine"])
    axes = below.subplots(2, len(KINDS), sharey=True)
    for planes, grown in zip(axes, ("rows", "features"), strict=True):
        for plane, kind in zip(planes, KINDS, strict=True):
            _draw_growth(plane, numbers[f"by_{grown}"], grown, kind)
        planes[0].set_ylabel(LOSS)
    keys = bound_keys((PAPER, PAPER_DEPENDENT, OURS), "largest bound", "largest true loss")
    legend_above(below, keys, len(keys))
    return figure


def _draw_growth(plane: "Axes", rows: list[Numbers], grown: str, kind: str) -> None:
    name, colour = KINDS[kind]
    x = [row[grown] for row in rows]
    bound_and_truth(plane, x, [row[kind] for row in rows], [row[f"{kind}_truth"] for row in rows], colour)
    plane.set(yscale="log", ylim=(7e-4, 8.0))
    plain_ticks(plane.yaxis, (0.001, 0.01, 0.1, 1))
    if grown == "rows":
        plane.set(title=name, xscale="log", xlabel=f"people (d = {D})")
        plain_ticks(plane.xaxis, (100, 1000, 10_000), "{:,}")
    else:
        plane.set_xlabel(f"features (n = {N:,})")


def _draw_regularization(plane: "Axes", numbers: Numbers) -> None:
    """Bars are 10% to 90% of the draws; those of the two losses stand a little apart."""
    inflations = np.array(numbers["inflations"])
    for loss, style, apart in (("squared", "--", 0.96), ("pseudo_huber", "-", 1.04)):
        row = numbers[loss]
        low, middle, high = np.array(row["curve"]).T
        plane.errorbar(
            apart * inflations,
            middle,
            (middle - low, high - middle),
            color=PAPER,
            linestyle=style,
            elinewidth=2,
        )
        plane.plot(row["demanded_inflation"], row["star"][1], color=PAPER, **STAR)
    low, middle, high = numbers["ours"]
    place = numbers["ours_inflation"]
    plane.errorbar(place, middle, [[middle - low], [high - middle]], color=OURS, marker="D", markersize=10)
    plane.axhline(1.0, color=REFERENCE, linestyle="--", linewidth=1.5)
    first = {loss: numbers[loss]["curve"][0][1] for loss in ("squared", "pseudo_huber")}
    for x, y, text, colour in (
        (1.5, 1.06 * first["pseudo_huber"], "pseudo-Huber, the paper's noise", PAPER),
        (1.08, 0.62 * first["squared"], "squared loss,\nthe paper's noise", PAPER),
        (1.25, middle, "pseudo-Huber, ours", OURS),
        (0.85, 0.94, "always predicting the mean", REFERENCE),
    ):
        plane.text(x, y, text, color=ink(colour), va="center", fontsize=14)
    star = numbers["squared"]
    plane.annotate(
        "λ that the paper's\nreport demands",
        (star["demanded_inflation"], 1.06 * star["star"][1]),
        (star["demanded_inflation"], 2.4 * star["star"][1]),
        ha="center",
        fontsize=14,
        color=ink(PAPER),
        arrowprops={"arrowstyle": "-", "color": ink(PAPER)},
    )
    plane.set(xscale="log", yscale="log", xlim=(0.8, 130.0), ylim=(0.8, 7.0))
    plane.set(xlabel="λ, times the least of Theorem 1", ylabel="held-out error / spread of y")
    plane.set_title("stronger regularisation, synthetic data")
    plain_ticks(plane.xaxis, (1, 3, 10, 30, 100))
    plain_ticks(plane.yaxis, (1, 2, 3, 4, 6))


def _draw_wine(plane: "Axes", found: Numbers) -> None:
    """One row for each publication; bars are 10% to 90% of the draws."""
    names = [row["name"] for row in found["red"]]
    shades = [_shade(name) for name in names]
    for colour, apart, mark in (("red", -0.17, RED), ("white", 0.17, WHITE)):
        for place, (row, shade) in enumerate(zip(found[colour], shades, strict=True)):
            interval(plane, place + apart, row["ratio"], shade, **mark)
        times = 1.1 * found[colour][0]["ratio"][2]
        plane.text(times, apart, f"{colour} wine", color=ink(shades[0]), va="center", fontsize=13.5)
    plane.set_yticks(range(len(names)), names)
    for label, shade in zip(plane.get_yticklabels(), shades, strict=True):
        label.set_color(ink(shade))
    plane.set(xscale="log", xlim=(1.0, 420.0), ylim=(len(names) - 0.5, -0.5))
    plane.set(xlabel="median bound over true loss (times)", title="wines, pseudo-Huber, ε = 1 in all")
    plain_ticks(plane.xaxis, (1, 2, 5, 10, 20, 50, 100))


def _shade(name: str) -> str:
    """One budget is a release without statistics, several are one with them."""
    if not name.startswith("paper"):
        return OURS
    return PAPER_DEPENDENT if "," in name else PAPER
