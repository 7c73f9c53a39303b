"""Figures as tables and bars for a terminal."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from rich.bar import Bar
from rich.console import Group
from rich.table import Table

from expost.cli.base import legible
from expost.cli.record_figures import Run
from expost.cli.tally import Tally
from expost.reports import Bounds

# The most exposed people, as shares of everyone in the table.
QUANTILES = (0.5, 0.9, 0.95, 0.99, 1.0)
# More records than this do not fit on a screen.
MOST_RECORDS = 40


def show_losses(losses: Tally, worst: float) -> Group:
    """The exact losses as bars, and the largest ones compared with the worst case; private."""
    return Group(histogram(losses), "", exposure(losses, worst))


def histogram(losses: Tally, bins: int = 12) -> Table:
    """How many people lost how much; private."""
    counts, edges = losses.histogram(bins)
    table = Table(
        title="Exact privacy losses of the people in the data (private)", title_justify="left", box=None
    )
    table.add_column("loss", justify="right")
    table.add_column("people", justify="right")
    table.add_column("")
    for (low, high), count in zip(pairwise(edges), counts, strict=True):
        bar = Bar(size=float(counts.max()), begin=0.0, end=float(count), width=36, color="cyan")
        table.add_row(f"{low:.4f} to {high:.4f}", f"{count:,.0f}", bar)
    return table


def exposure(losses: Tally, worst: float) -> Table:
    """The quantiles of the losses compared with the worst case; private."""
    table = Table(title="The most exposed (private)", title_justify="left", box=None)
    table.add_column("people")
    table.add_column("lost at most", justify="right")
    table.add_column("of the promise", justify="right")
    for share, loss in _quantiles(losses).items():
        who = {0.5: "half of them (median)", 1.0: "everyone"}.get(share, f"{share:.0%} of them")
        part = f"{loss / worst:.1%}" if np.isfinite(worst) else "no promise"
        table.add_row(who, f"{loss:.4f}", part)
    return table


def quantiles(losses: Tally) -> dict[str, float]:
    """The quantiles of the losses, for JSON; private."""
    return {f"{share:g}": loss for share, loss in _quantiles(losses).items()}


def _quantiles(losses: Tally) -> dict[float, float]:
    return {share: losses.quantile(share) for share in QUANTILES}


def show_bounds(paths: Sequence[Path], run: Run, records: int, promise: float, where: str) -> Table:
    """Each record's interval, report cost and total, and the sum where there are several publications.

    ``run`` has the figures of the first records at least; ``where`` says where the others are.
    """
    total = run.total
    several = len(paths) > 1
    table = Table(title="What was released about each record", title_justify="left")
    table.add_column("record", justify="right")
    if several:
        table.add_column("publication", overflow="fold")
    for heading in Bounds.HEADINGS:
        table.add_column(heading, justify="right")
    for record in range(min(len(total), MOST_RECORDS)):
        for path, figures in zip(paths, run.figures, strict=True):
            which = [legible(path)] if several else []
            table.add_row(str(record + 1), *which, *(f"{figure[record]:.4f}" for figure in figures))
        if several:
            table.add_row(
                str(record + 1), "[bold]all[/bold]", "", "", "", f"[bold]{total[record]:.4f}[/bold]"
            )
            table.add_section()
    left = records - MOST_RECORDS
    more = f"\n{left:,} more records: {where}" if left > 0 else ""
    table.caption = f"for comparison, the worst case promised to everyone: {promise:.4g}{more}"
    table.caption_justify = "left"
    return table
