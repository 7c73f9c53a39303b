"""Losses, bounds and ratios of a whole table: how they are measured, their figure and their table."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from expost._typing import FloatArray
from expost.plan import Plan
from papers.redberg_wang_2021.experiment import Numbers, Tick
from papers.redberg_wang_2021.measuring import (
    Fitted,
    bands,
    fit,
    histogram,
    listed,
    ratios,
    read,
    rounded,
    summary,
)
from papers.redberg_wang_2021.plotting import OURS, PAPER, PAPER_ADAPTIVE, WORST, panels, share_steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# In powers of ten.
LOSS_EDGES = np.linspace(-4.5, 0.5, 51)
RATIO_EDGES = np.linspace(0.0, 3.0, 61)
COLOURS = {"independent": PAPER, "dependent": OURS, "independent_same_l2": PAPER_ADAPTIVE}
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
    """Seeded releases of one plan: bands of their summaries, and histograms over the people."""
    rows, readings = [], []
    for seed in range(draws):
        fitted = fit(plan, X, y, seed)
        readings.append(read(fitted, method))
        rows.append(summary(readings[-1]) | {name: score(fitted) for name, score in scores.items()})
        tick()
    return bands(rows) | {
        "sigma": rounded(plan.sigma),
        "l2": rounded(plan.l2),
        "truths": histogram([np.log10(reading.truth + 1e-12) for reading in readings], LOSS_EDGES),
        "uppers": histogram([np.log10(reading.upper) for reading in readings], LOSS_EDGES),
        "ratios": histogram([np.log10(ratios(reading)) for reading in readings], RATIO_EDGES),
    }


def edges() -> Numbers:
    """The bins, for the file of numbers."""
    return {"loss_edges": listed(LOSS_EDGES), "ratio_edges": listed(RATIO_EDGES)}


def draw_pair(numbers: Numbers, labels: Mapping[str, str], *, worst: float | None) -> Figure:
    """Left the losses and the bounds, right the ratios."""
    figure, axes = panels(1, 2, width=6.4, height=4.4)
    paper = {kind: label for kind, label in labels.items() if kind in ("independent", "dependent")}
    draw_losses(axes[0, 0], numbers, paper, worst=worst)
    draw_ratios(axes[0, 1], numbers, labels)
    return figure


def draw_losses(plane: "Axes", numbers: Numbers, labels: Mapping[str, str], *, worst: float | None) -> None:
    """The shares of people by true loss, filled, and by published bound, outlined."""
    bins = numbers["loss_edges"]
    for kind, label in labels.items():
        colour = COLOURS[kind]
        plane.stairs(
            numbers[kind]["truths"]["middle"],
            bins,
            fill=True,
            color=colour,
            alpha=0.3,
            label=f"true loss, {label}",
        )
        share_steps(plane, bins, numbers[kind]["uppers"], colour, f"bound, {label}")
    if worst is not None:
        plane.axvline(
            np.log10(worst), color=WORST, linestyle="--", linewidth=2, label=f"promise, ε = {worst:g}"
        )
    powers(plane, bins)
    plane.set_xlabel("privacy loss (log-odds)")
    plane.set_ylabel("share of people per bin")
    plane.legend(loc="upper left")
    plane.set_ylim(0.0, 1.45 * plane.get_ylim()[1])


def draw_ratios(plane: "Axes", numbers: Numbers, labels: Mapping[str, str]) -> None:
    """The shares of people by the ratio of bound and truth."""
    for kind, label in labels.items():
        share_steps(plane, numbers["ratio_edges"], numbers[kind]["ratios"], COLOURS[kind], label)
        plane.axvline(np.log10(numbers[kind]["ratio"][1]), color=COLOURS[kind], linestyle=":", linewidth=2)
    plane.plot([], [], color="#555555", linestyle=":", label="median")
    powers(plane, numbers["ratio_edges"])
    plane.set_xlabel("bound over true loss")
    plane.set_ylabel("share of people per bin")
    plane.legend(loc="upper right")


def powers(plane: "Axes", bins: Sequence[float]) -> None:
    """Label an axis of logarithms by the powers of ten themselves."""
    ticks = np.arange(np.ceil(bins[0]), np.floor(bins[-1]) + 1)
    plane.set_xticks(ticks, [f"$10^{{{int(tick)}}}$" for tick in ticks])
    plane.set_xlim(bins[0], bins[-1])


def overview(numbers: Numbers, labels: Mapping[str, str], *, score: str | None = "auc") -> list[str]:
    """One line per kind of release."""
    names = {"auc": "AUC", "r2": "R²"}
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
