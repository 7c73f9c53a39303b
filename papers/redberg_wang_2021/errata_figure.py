"""The figure of the errata: six of them, as printed and as corrected."""

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from papers.redberg_wang_2021.experiment import Numbers
from papers.redberg_wang_2021.plotting import OURS, PAPER, REFERENCE, TRUTH, Mark, ink, panels, plain_ticks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

SMALLEST = 1e-9
PALE: Mark = {"color": PAPER, "alpha": 0.15, "linewidth": 0}
"""Where what is printed has no meaning."""


def draw_errata(numbers: Numbers) -> Figure:
    """Six panels; every line and bar is named where it is."""
    figure, axes = panels(2, 3, height=4.3)
    _draw_noise(axes[0, 0], numbers["noise_formula"])
    _draw_determinant(axes[0, 1], numbers["determinant"])
    _draw_product(axes[0, 2], numbers["inner_product"])
    _draw_leverage(axes[1, 0], numbers["leverage_estimate"])
    _draw_quantile(axes[1, 1], numbers["quantile"])
    _draw_budgets(axes[1, 2], numbers["budgets"])
    return figure


def _name(plane: "Axes", x: float, y: float, text: str, colour: str, **options: Any) -> None:
    plane.text(x, y, text, color=ink(colour), fontsize=14, **options)


def _draw_noise(plane: "Axes", noise: Numbers) -> None:
    """What can be seen as a line, what is too small as open marks on the floor."""
    for key, colour, marker, lift in (("printed", PAPER, "o", 1.0), ("corrected", OURS, "s", 0.15)):
        seen = [(x, y) for x, y in zip(noise["norms"], noise[key], strict=True) if y > SMALLEST]
        below = [x for x, y in zip(noise["norms"], noise[key], strict=True) if y <= SMALLEST]
        if seen:
            plane.plot(*zip(*seen, strict=True), color=colour, marker=marker)
        floor = [lift * SMALLEST] * len(below)
        plane.plot(below, floor, marker, color=colour, mfc="white", mew=2)
    plane.axhline(1e-6, color=REFERENCE, linestyle="--", linewidth=2)
    plane.set(xscale="log", yscale="log", ylim=(0.03 * SMALLEST, 5.0), xlabel="largest norm of a row")
    plane.set(ylabel="exact δ at ε = 1", title="1. Theorem 1's noise")
    plain_ticks(plane.xaxis, (0.001, 0.01, 0.1, 1))
    plain_ticks(plane.yaxis, (0.4 * SMALLEST, 1e-6, 1e-3, 1.0))
    plane.set_yticklabels(["below\n1e-9", "1e-6", "1e-3", "1"])
    _name(plane, 0.03, 0.02, "σ as printed", PAPER)
    _name(plane, 1.0, 1.6e-6, "promised δ", REFERENCE, ha="right")
    _name(plane, 0.001, 4.0 * SMALLEST, "its square root", OURS)


def _draw_determinant(plane: "Axes", bends: Numbers) -> None:
    printed = [pair for pair in zip(bends["l2"], bends["printed"], strict=True) if pair[1] is not None]
    plane.axvspan(bends["l2"][0], 0.25, **PALE)
    plane.plot(*zip(*printed, strict=True), color=PAPER)
    plane.plot(bends["l2"], bends["ours"], color=OURS)
    plane.plot(bends["l2"], bends["largest"], ".", color=TRUTH, markersize=13)
    plane.set(xscale="log", yscale="log", xlabel="λ", ylabel="leverage term (log-odds)", ylim=(0.015, 6.0))
    plane.set_title("3. Without the data")
    plain_ticks(plane.xaxis, (0.1, 1, 10))
    plain_ticks(plane.yaxis, (0.1, 1))
    _name(plane, 0.035, 0.018, "printed\nbound\ninfinite", PAPER, va="bottom")
    _name(plane, 0.62, 0.75, "−log(1 − a/λ),\nprinted", PAPER)
    _name(plane, 0.3, 0.07, "log(1 + a/λ)", OURS)
    _name(plane, 10.0, 2.2, "dots: largest\nterm found", TRUTH, ha="right")


def _draw_product(plane: "Axes", product: Numbers) -> None:
    rows = (
        ("printed", "ḡ as printed", PAPER, ""),
        ("absolute", "|·| inside, no union bound", PAPER, "///"),
        ("ours", "ours, for the whole loss", OURS, ""),
    )
    level = product["level"]
    bars = [(product[key], label, colour, hatch) for key, label, colour, hatch in rows]
    _bars(plane, bars, "{:.1%}", past=level)
    for place in range(len(rows)):
        plane.plot([level, level], [place - 0.27, place + 0.27], "--", color=REFERENCE, linewidth=2)
    _name(plane, 0.62, 2.6, "dashed: allowed, ρ = 5%", REFERENCE, va="center", ha="right")
    plane.set(xlabel="records whose bound fails", title="4. The inner product", xlim=(0.0, 0.62))
    plane.set_ylim(2.8, -0.75)
    plane.xaxis.set_major_formatter(PercentFormatter(1.0))


def _draw_leverage(plane: "Axes", leverage: Numbers) -> None:
    plane.plot(leverage["l2"], leverage["too_small"], color=PAPER, marker="o", markersize=9)
    open_mark: Mark = {"marker": "o", "markersize": 9, "mfc": "white", "mew": 2.5}
    plane.plot(leverage["l2"], leverage["meaningless"], "--", color=PAPER, **open_mark)
    plane.set(xscale="log", xlabel="λ (Theorem 1: 0.5; required: 26.5)", ylabel="records", ylim=(-0.02, 1.0))
    plane.set_title("5. (3/2)xᵀĤ⁻¹x as a bound")
    plane.yaxis.set_major_formatter(PercentFormatter(1.0))
    plain_ticks(plane.xaxis, (0.5, 1, 2.5, 5, 10, 26.5))
    _name(plane, 2.7, 0.68, "too small", PAPER)
    _name(plane, 0.5, 0.22, "without meaning", PAPER)


def _draw_quantile(plane: "Axes", quantile: Numbers) -> None:
    plane.stairs(quantile["histogram"], quantile["edges"], fill=True, color=TRUTH, alpha=0.2)
    plane.stairs(quantile["law"], quantile["edges"], color=OURS, linewidth=2)
    true = quantile["true_quantile"]
    for place, colour, label in ((12.0, PAPER, "τ = 12,\nprinted"), (true, OURS, f"τ = {true:.2f},\ntrue")):
        plane.plot([place, place], [0.0, 0.085], color=colour, linestyle="--")
        _name(plane, place, 0.087, label, colour, ha="center")
    _name(plane, 14.1, 0.066, "exact law", OURS)
    _name(plane, 14.6, 0.048, "grey:\nsimulated", TRUTH)
    plane.set(xlabel="largest eigenvalue of GOE(50)", ylabel="probability per bin", title="6. The quantile")
    plane.set(ylim=(0.0, 0.115), xlim=(10.4, 18.1), xticks=(12, 14, 16, 18))


def _draw_budgets(plane: "Axes", budget: Numbers) -> None:
    rows = [
        (budget["paper"]["sigma"], "budgets add up", PAPER, ""),
        (budget["joint"]["sigma"], "one joint profile", OURS, ""),
    ]
    _bars(plane, rows, "{:.3g}")
    plane.set(xlabel="noise in the model, σ", title="8. ε = 1 for three releases", xlim=(0.0, 66.0))


def _bars(
    plane: "Axes", rows: "Sequence[tuple[float, str, str, str]]", template: str, *, past: float = 0.0
) -> None:
    """Horizontal bars with their names above and their lengths at the end, past a line if there is one."""
    for place, (length, label, colour, hatch) in enumerate(rows):
        plane.barh(place, length, 0.42, color=colour, hatch=hatch, edgecolor="white")
        plane.text(0.0, place - 0.26, " " + label, color=ink(colour), va="bottom", fontsize=14)
        plane.text(max(length, past), place, " " + template.format(length), va="center", fontsize=14)
    plane.set(ylim=(len(rows) - 0.5, -0.75), yticks=[])
