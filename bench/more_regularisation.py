"""Compare regressions of the default regularisation with those of a multiple of it, draw by draw.

    python -m bench.more_regularisation [--draws 100] [--times 2.5]

The tables, the split and the seeds are those of `bench.peers`. More regularisation needs a little less noise,
and shrinks coefficients more.
"""

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from bench.comparison import EPSILONS, Comparison
from bench.declared import TABLES
from bench.saving import RESULTS, save

REGRESSIONS = ("wine, red", "wine, white", "diabetes", "doctor visits")


def compare(name, draws, times):
    """For every epsilon both plans, their median scores, and the mean difference with its error."""
    comparison = Comparison(*TABLES[name](), draws)
    for epsilon in EPSILONS:
        plan = comparison.plan(epsilon)
        stronger = {"l2": times * plan.l2}
        more = comparison.plan(epsilon, **stronger)
        before, after = (
            comparison.score(comparison.coefficients(epsilon, **each))["r2"] for each in ({}, stronger)
        )
        gained = after - before
        yield {
            "table": name,
            "epsilon": epsilon,
            "sigmas": [plan.sigma, more.sigma],
            "r2": [float(np.median(before)), float(np.median(after))],
            "gained": float(np.mean(gained)),
            "error": float(np.std(gained) / np.sqrt(draws)),
        }


def show(rows, times, console):
    table = Table(title=f"R² with {times:g} times the default l2", title_justify="left")
    for column in ("table", "ε", "σ", "less noise", "R²", f"{times:g} times", "gained, ± two errors"):
        table.add_column(column, justify="left" if column == "table" else "right")
    for row in rows:
        (sigma, less), (before, after) = row["sigmas"], row["r2"]
        gained = f"{row['gained']:+.4f} ± {2.0 * row['error']:.4f}"
        figures = (f"{sigma:.4f}", f"{1.0 - less / sigma:.1%}", f"{before:.4f}", f"{after:.4f}", gained)
        table.add_row(row["table"], f"{row['epsilon']:g}", *figures)
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--times", type=float, default=2.5)
    parser.add_argument("--json", default=RESULTS / "more_regularisation.json")
    options = parser.parse_args()
    with threadpool_limits(1):
        rows = [row for name in REGRESSIONS for row in compare(name, options.draws, options.times)]
    show(rows, options.times, Console(width=110))
    save(options.json, {"draws": options.draws, "times": options.times, "rows": rows})


if __name__ == "__main__":
    main()
