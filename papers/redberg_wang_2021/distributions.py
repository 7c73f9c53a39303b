"""Measure the losses, bounds and ratios of a whole table, and show them as a figure and a table."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from expost import Plan
from papers.common import FloatArray
from papers.redberg_wang_2021.experiment import Numbers, Tick
from papers.redberg_wang_2021.measuring import (
    Fitted,
    Method,
    bands,
    cumulated,
    fit,
    listed,
    ratios,
    read,
    rounded,
    summary,
)
from papers.redberg_wang_2021.plotting import (
    LOSS,
    PAPER,
    PAPER_DEPENDENT,
    REFERENCE,
    Mark,
    bound_and_truth,
    bound_keys,
    ink,
    interval,
    legend_above,
    line_key,
    panels,
    plain_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# In powers of ten.
LOSSES = np.linspace(-4.0, 0.25, 86)
RATIOS = np.linspace(0.0, 3.0, 61)
COLOURS = {"independent": PAPER, "dependent": PAPER_DEPENDENT}
OPEN: Mark = {"marker": "o", "markersize": 10, "mfc": "white", "mec": None, "mew": 2.5}
Score = Callable[[Fitted], float]


def measure(
    plan: Plan,
    X: FloatArray,
    y: FloatArray,
    draws: int,
    tick: Tick,
    *,
    method: Method,
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
    """The losses and bounds of either release, and the ratios of all."""
    figure, axes = panels(1, 3, height=4.6)
    draw_row(axes[0], numbers, labels, worst=worst)
    losses_legend(figure, worst=worst)
    return figure


def draw_row(
    planes: Sequence["Axes"], numbers: Numbers, labels: Mapping[str, str], *, worst: float | None
) -> None:
    """A row of three panels: losses without statistics, losses with them, and ratios."""
    for plane, kind in zip(planes, COLOURS, strict=False):
        draw_losses(plane, numbers, numbers[kind], COLOURS[kind], worst=worst)
        plane.set_title(labels[kind])
    planes[0].set_ylabel("people at or below")
    draw_ratios(planes[2], numbers, [(label, kind, numbers[kind]) for kind, label in labels.items()])


def losses_legend(figure: Figure, *, worst: float | None, changed: bool = True, who: str = "people") -> None:
    """What the panels of :func:`draw_losses` show."""
    keys = bound_keys(list(COLOURS.values()), "bound that is published", "true loss")
    if worst is not None:
        keys[f"promise to everyone, ε = {worst:g}"] = line_key(linestyle="--", linewidth=2)
    keys[f"10% to 90% of the {who}"] = line_key(linewidth=2)
    if changed:
        keys["λ by the other rule"] = line_key(linestyle="--", linewidth=2, **OPEN)
    legend_above(figure, keys, 3)


def draw_losses(
    plane: "Axes", numbers: Numbers, release: Numbers, colour: str, *, worst: float | None
) -> None:
    """The share of people at or below a loss: dotted the true one, solid the published bound."""
    x = np.power(10.0, numbers["losses_at"])
    bound_and_truth(plane, x, release["uppers"], release["truths"], colour)
    if worst is not None:
        plane.axvline(worst, color=REFERENCE, linestyle="--", linewidth=2)
    plane.set(xscale="log", xlabel=LOSS, xlim=(x[0], x[-1]), ylim=(0.0, 1.01))
    plain_ticks(plane.xaxis, (0.001, 0.01, 0.1, 1.0))
    plane.yaxis.set_major_formatter(PercentFormatter(1.0))


def draw_ratios(plane: "Axes", numbers: Numbers, rows: Sequence[tuple[str, str, Numbers]]) -> None:
    """How many times its true loss a bound is: one row for each label, kind and release.

    The mark is the median person, its thick bar 10% to 90% of the draws, the thin line 10% to 90% of the
    people in the median draw. Open marks and dashes: the λ is not the one that the release asks for.
    """
    x = np.power(10.0, numbers["ratios_at"])
    for place, (label, kind, release) in enumerate(rows):
        base, _, changed = kind.partition("_")
        colour, style = COLOURS[base], ("--" if changed else "-")
        ends = np.interp([0.1, 0.9], np.array(release["ratios"])[:, 1], x)
        plane.plot(ends, [place, place], style, color=colour, linewidth=2)
        interval(plane, place, release["ratio"], colour, **OPEN if changed else {})
        plane.text(1.0, place - 0.24, label, color=ink(colour), fontsize=13.5, va="bottom")
        times = f"{release['ratio'][1]:.2g}×"
        plane.text(1.15 * max(*ends, *release["ratio"]), place, times, color=ink(colour), va="center")
    plane.set(xscale="log", xlim=(1.0, 1000.0), ylim=(len(rows) - 0.5, -0.75), yticks=[])
    plane.set(xlabel="bound over true loss (times)", title="all releases compared")
    plane.spines["left"].set_visible(False)
    plain_ticks(plane.xaxis, (1, 10, 100, 1000))


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
