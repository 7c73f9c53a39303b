"""The figure of ours against the paper's: what a person is told for a model of a given quality."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from papers.redberg_wang_2021.experiment import Numbers
from papers.redberg_wang_2021.plotting import (
    DRAWS,
    OURS,
    OURS_DEPENDENT,
    PAPER,
    PAPER_ADAPTIVE,
    PAPER_DEPENDENT,
    REFERENCE,
    Mark,
    band_key,
    legend_above,
    line_key,
    panels,
    plain_ticks,
)
from papers.redberg_wang_2021.publications import OUR_L2, WHOM

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVES = {
    "paper independent": ("the paper's, data-independent", PAPER, "s"),
    "paper dependent": ("the paper's, dependent", PAPER_DEPENDENT, "^"),
    "paper adaptive": ("the paper's, adaptive", PAPER_ADAPTIVE, "v"),
    "ours dependent": ("ours, dependent", OURS_DEPENDENT, "^"),
    "ours independent": ("ours, data-independent (default)", OURS, "o"),
}
LEFT_OUT = {"ours leverage": ("ours independent", 0.16), "ours adaptive": ("ours dependent", 0.04)}
"""Curves that would lie on others: on which, and how far from it at most."""
LOWEST, TOP, ENDLESS = 0.004, 18.0, 35.0
"""The scale, and where marks of an infinite loss stand above it."""
COIN = 0.5
"""The AUC of guessing."""
BIG: Mark = {"markersize": 14, "mec": "white", "mew": 1.5}
OPEN: Mark = {"marker": "s", "markersize": 7.5, "mfc": "none", "mew": 2.0, "linestyle": ""}


def draw_comparison(numbers: Numbers) -> Figure:
    """One column per table, the median person above the most exposed one."""
    figure, axes = panels(2, len(numbers["tables"]), height=4.6, sharex="col", sharey=True)
    for planes, (whose, whom) in zip(axes, WHOM.items(), strict=True):
        for plane, (name, table) in zip(planes, numbers["tables"].items(), strict=True):
            for key, (_, colour, marker) in CURVES.items():
                _draw_curve(plane, table[key], whom, colour, marker, _style(key))
            _draw_squares(plane, table[f"paper {OUR_L2}"], whom)
            plane.axhline(TOP, color="#CCCCCC", linewidth=1)
            plane.set(yscale="log", ylim=(LOWEST, 1.6 * ENDLESS))
            plain_ticks(plane.yaxis, (0.01, 0.1, 1, 10, ENDLESS))
            plane.set_yticklabels(["0.01", "0.1", "1", "10", "∞"])
            if whom == "total":
                plane.set_title(f"{name} (n = {table['rows']:,})")
            else:
                plane.set_xlabel("AUC on people not in the data\n(stretched towards the best)")
            _stretch(plane, table)
        start = planes[0].get_xlim()[0]
        planes[0].text(start, ENDLESS, "  no finite bound", color=REFERENCE, va="center", fontsize=13.5)
        planes[0].set_ylabel(f"the {whose} person\nis told at most (log-odds)")
    legend_above(figure, _keys(), 2)
    return figure


def _keys() -> dict[str, Any]:
    """The paper's in the first column of the legend, ours in the second."""
    curves = {
        key: line_key(colour, marker=marker, linestyle=_style(key), **BIG)
        for key, (_, colour, marker) in CURVES.items()
    }
    named: dict[str, Any] = {CURVES[key][0]: curves[key] for key in sorted(curves, reverse=True)}
    theirs = {label: key for label, key in named.items() if label.startswith("the paper's")}
    return (
        theirs
        | {"the paper's, data-independent, our λ": line_key(PAPER, **OPEN)}
        | named
        | {"large marks: ε = 1": line_key(linestyle="", marker="o", **BIG), "bars: " + DRAWS: band_key()}
    )


def _style(key: str) -> str:
    return "--" if key.startswith("paper") else "-"


def _stretch(plane: "Axes", table: Numbers) -> None:
    """Stretch the axis of quality towards the best model of the table, where most curves end."""
    found = [row["auc"][1] for key in CURVES for row in table[key].values()]
    span = max(found) - max(min(found), COIN)
    limit = max(found) + 0.05 * span

    def place(quality: Any) -> Any:
        return -np.log(np.maximum(limit - np.asarray(quality), 1e-9))

    plane.set_xscale("function", functions=(place, lambda where: limit - np.exp(-np.asarray(where))))
    left, right = max(min(found), COIN) - 0.02 * span, max(found) + 0.01 * span
    plane.set_xlim(left, right)
    # Round numbers first, and no two so close that their labels touch.
    ticks: list[float] = []
    rounds = [step * count for step in (0.1, 0.05, 0.01) for count in range(1, round(1.0 / step) + 1)]
    width = place(right) - place(left)
    for tick in rounds:
        near = [place(tick) - place(other) for other in ticks]
        if left <= tick <= right and min(np.abs(near), default=width) > 0.13 * width:
            ticks.append(tick)
    plane.set_xticks(ticks, [f"{tick:.2f}" for tick in ticks])


def _draw_curve(plane: "Axes", curve: Numbers, whom: str, colour: str, marker: str, style: str) -> None:
    """The medians as a line, ε = 1 as a mark with its bar, and infinite losses above the scale."""
    told = [(row["auc"][1], row[whom][1]) for row in curve.values()]
    finite = [point for point in told if point[1] is not None]
    plane.plot(*zip(*finite, strict=True), style, color=colour)
    endless = [quality for quality, loss in told if loss is None]
    if endless:
        plane.plot([finite[-1][0], endless[0]], [finite[-1][1], ENDLESS], ":", color=colour)
        plane.plot(endless, [ENDLESS] * len(endless), marker, color=colour, markersize=9, mec="white")
    low, middle, high = (math.nan if loss is None else loss for loss in curve["1"][whom])
    place = curve["1"]["auc"][1]
    plane.plot([place, place], [low, high], color=colour, linewidth=4, alpha=0.6)
    plane.plot(place, middle, marker, color=colour, **BIG)


def _draw_squares(plane: "Axes", curve: Numbers, whom: str) -> None:
    """The paper's release with our λ, as marks on whatever line they lie."""
    rows = [row for row in curve.values() if row[whom][1] is not None]
    plane.plot([row["auc"][1] for row in rows], [row[whom][1] for row in rows], color=PAPER, **OPEN)
