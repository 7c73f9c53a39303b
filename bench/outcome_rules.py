"""Try defaults of the models of counts, amounts and quantiles on the tables that are for choosing.

    python -m bench.outcome_rules [--draws 12] [--kind counts|amounts|quantiles] [--json FILE]

Each width is a multiple of today's default, and each ridge a multiple of the one that ``calibrate`` takes for
that width. What is compared is how far D² lies below that of the model without privacy, in medians over draws
of the noise and then in means over tables, with losses of more than one counted as one.
"""

import argparse
import warnings
from contextlib import suppress
from itertools import product

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from bench.comparison import DELTA, EPSILONS
from bench.outcomes import KINDS, TABLES, opened
from bench.saving import RESULTS, save
from expost.exceptions import CalibrationError

WIDTHS, RIDGES = (0.5, 1.0, 2.0, 4.0, 8.0), (0.5, 1.0, 2.0)
WORST = 1.0


def width_name(kind):
    """The argument that is the width of a model of this kind."""
    return "scale" if kind == "quantiles" else "threshold"


def tried(name, draws):
    """The shortfall of every width and ridge at every epsilon on one table."""
    for about, comparison in opened(name, 1):
        if not about["chosen_on"]:
            return
        comparison.draws = draws
        best = comparison.plain()["d2"]
        for epsilon, width in product(EPSILONS, WIDTHS):
            argument = width_name(about["kind"])
            few = comparison.small
            default = comparison.model(epsilon).fit(few.columns, few.outcome).plan_.loss
            given = {argument: width * getattr(default, argument)}
            ridge = comparison.model(epsilon, **given).fit(few.columns, few.outcome).plan_.l2
            for more in RIDGES:
                with suppress(CalibrationError):  # no noise is enough for so small a ridge
                    found = comparison.ours(epsilon, **given, l2=more * ridge)["d2"]
                    yield {**about, "epsilon": epsilon, "width": width, "ridge": more, "below": best - found}


def show(rows, console):
    """For every kind and epsilon the mean shortfall by width and ridge."""
    for kind, epsilon in product(KINDS, EPSILONS):
        chosen = [row for row in rows if row["kind"] == kind and row["epsilon"] == epsilon]
        if not chosen:
            continue
        table = Table(title=f"{kind}, ε = {epsilon:g}: D² below no privacy", title_justify="left")
        for column in ("width", *(f"ridge × {ridge:g}" for ridge in RIDGES)):
            table.add_column(column, justify="right")
        for width in WIDTHS:
            cells = []
            for ridge in RIDGES:
                there = [row["below"] for row in chosen if (row["width"], row["ridge"]) == (width, ridge)]
                cells.append(f"{np.mean(np.minimum(there, WORST)):.3f}" if there else "none")
            table.add_row(f"× {width:g}", *cells)
        console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--kind", choices=list(KINDS))
    parser.add_argument("--json", default=RESULTS / "outcome_rules.json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # every fit spends again, of public tables
    names = [name for name in TABLES if name.startswith(options.kind or "")]
    with threadpool_limits(1):
        rows = [row for name in names for row in tried(name, options.draws)]
    show(rows, Console(width=140))
    save(options.json, {"delta": DELTA, "draws": options.draws, "worst": WORST, "rows": rows})


if __name__ == "__main__":
    main()
