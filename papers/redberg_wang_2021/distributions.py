"""Measure the losses, bounds and ratios of a whole table, and show them as a figure and a table."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from expost._common.typing import FloatArray
from expost.privacy.plan import Plan
from papers.redberg_wang_2021.experiment import Numbers, Tick
from papers.redberg_wang_2021.measuring import (
    Fitted,
    bands,
    cumulated,
    fit,
    listed,
    ratios,
    read,
    rounded,
    summary,
)
from papers.redberg_wang_2021.plotting import PAPER, PAPER_ADAPTIVE, PAPER_DEPENDENT, WORST, band_line, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# In powers of ten.
LOSSES = np.linspace(-4.0, 0.25, 86)
RATIOS = np.linspace(0.0, 3.0, 61)
COLOURS = {
    "independent": PAPER,
    "dependent": PAPER_DEPENDENT,
    "independent_same_l2": PAPER_ADAPTIVE,
    "dependent_small_l2": WORST,
}
Score = Callable[[Fitted], float]


def measure(
    plan: Plan,
    X: FloatArray,
    y: FloatArray,
    draws: int,
    tick: Tick,
    *,
    method: str,
    scores: Mapping[str, Score],
) -> Numbers:
    """Bands of the summaries of seeded releases of one plan, and distributions over the people."""
    rows, readings = [], []
    for seed in range(draws):
        fitted = fit(plan, X, y, seed)
        readings.append(read(fitted, method))
        rows.append(summary(readings[-1]) | {name: score(fitted) for name, score in scores.items()})
        tick()
    return bands(rows) | {
        "sigma": rounded(plan.sigma),
        "l2": rounded(plan.l2),
        "truths": cumulated([np.log10(reading.truth + 1e-12) for reading in readings], LOSSES),
        "uppers": cumulated([np.log10(reading.upper) for reading in readings], LOSSES),
        "ratios": cumulated([np.log10(ratios(reading)) for reading in readings], RATIOS),
    }


def points() -> Numbers:
    """Where the distributions are evaluated, for the file of numbers."""
    return {"losses_at": listed(LOSSES), "ratios_at": listed(RATIOS)}


def draw_pair(numbers: Numbers, labels: Mapping[str, str], *, worst: float | None) -> Figure:
    """Left the losses and the bounds, right the ratios."""
    figure, axes = panels(1, 2, width=6.4, height=4.4)
    paper = {kind: label for kind, label in labels.items() if kind in ("independent", "dependent")}
    draw_losses(axes[0, 0], numbers, paper, worst=worst)
    draw_ratios(axes[0, 1], numbers, labels)
    legend_above(figure, axes[0, 0])
    return figure


def legend_above(figure: Figure, plane: "Axes") -> None:
    """One legend for all panels, above them."""
    figure.legend(*plane.get_legend_handles_labels(), loc="outside upper center", ncols=3)


def draw_losses(plane: "Axes", numbers: Numbers, labels: Mapping[str, str], *, worst: float | None) -> None:
    """The share of people at or below a loss: dotted the true one, solid the published bound."""
    x = numbers["losses_at"]
    for kind, label in labels.items():
        band_line(plane, x, numbers[kind]["truths"], COLOURS[kind], f"true loss, {label}", linestyle=":")
        band_line(plane, x, numbers[kind]["uppers"], COLOURS[kind], f"bound, {label}")
    if worst is not None:
        promise = f"promise, ε = {worst:g}"
        plane.axvline(np.log10(worst), color=WORST, linestyle="--", linewidth=2, label=promise)
    powers(plane, x)
    plane.set_xlabel("privacy loss (log-odds)")
    plane.set_ylabel("share of people at or below")
    plane.set_ylim(0.0, 1.0)


def draw_ratios(plane: "Axes", numbers: Numbers, labels: Mapping[str, str]) -> None:
    """The share of people whose bound is at most so many times their true loss."""
    x = numbers["ratios_at"]
    for kind, label in labels.items():
        band_line(plane, x, numbers[kind]["ratios"], COLOURS[kind], label)
    powers(plane, x)
    plane.set_xlabel("bound over true loss")
    plane.set_ylabel("share of people at or below")
    plane.set_ylim(0.0, 1.0)
    plane.legend(loc="lower right", fontsize=9.5)


def powers(plane: "Axes", points: Sequence[float]) -> None:
    """Label an axis of logarithms with powers of ten."""
    ticks = np.arange(np.ceil(points[0]), np.floor(points[-1]) + 1)
    plane.set_xticks(ticks, [f"$10^{{{int(tick)}}}$" for tick in ticks])
    plane.set_xlim(points[0], points[-1])


def overview(numbers: Numbers, labels: Mapping[str, str], *, score: str | None = "auc") -> list[str]:
    """One line per kind of release."""
    names = {"auc": "AUC, in sample", "r2": "R², in sample"}
    extra = f" {names[score]} |" if score else ""
    lines = [
        f"| | σ | λ |{extra} true loss | bound | largest bound | bound / truth | bound and report's cost |",
        "|---|---:|---:|" + ("---:|" if score else "") + "---:|---:|---:|---:|---:|",
    ]
    for kind, label in labels.items():
        row = numbers[kind]
        shown = f" {row[score][1]:.3f} |" if score else ""
        lines.append(
            f"| {label} | {row['sigma']:.3g} | {row['l2']:.3g} |{shown} {row['truth'][1]:.2g} | "
            f"{row['upper'][1]:.2g} | {row['upper_max'][1]:.2g} | {row['ratio'][1]:.3g} | "
            f"{row['total'][1]:.2g} |"
        )
    return lines
