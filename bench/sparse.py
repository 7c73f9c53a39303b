"""Compare our models without an L1 penalty with those of half and all of the noise, on the tables of peers.

    python -m bench.sparse [--draws 20] [--only TABLE ...] [--json FILE]

The tables, the split, the budgets and the seeds are those of `bench.peers`. The penalty is a share of the
noise of the objective, which is public. All figures are medians over draws of the noise; so is the number of
coefficients that are not zero, the intercept included.
"""

import time

import numpy as np
from rich.table import Table
from threadpoolctl import threadpool_limits

from bench.comparison import DELTA, EPSILONS, Comparison
from bench.declared import TABLES
from bench.over_tables import run
from bench.peers import MORE, SMALL
from papers.datasets import DataUnavailable

SHARES = {"none": 0.0, "half": 0.5, "whole": 1.0}
FIGURES = {"auc": "AUC", "r2": "R²", "log_loss": "Log-loss", "used": "Coefficients that are used"}


def compare(name, draws, _):
    """One row for each epsilon, with the scores of each penalty; or why the table is missing."""
    start = time.perf_counter()
    try:
        pair = TABLES[name]()
    except DataUnavailable as error:
        return [], f"{name} is left out: {error}"
    draws *= MORE if len(pair[0]) < SMALL else 1
    rows = []
    with threadpool_limits(1):
        comparison = Comparison(*pair, draws)
        for epsilon in EPSILONS:
            row = {"table": name, "rows": len(pair[0]), "columns": comparison.rows.shape[1], "draws": draws}
            plan = comparison.plan(epsilon)
            for title, share in SHARES.items():
                coefficients = comparison.coefficients(epsilon, l1=share * plan.sigma)
                used = float(np.median(np.count_nonzero(coefficients, axis=0)))
                row[title] = comparison.median(coefficients) | {"used": used}
            rows.append(row | {"epsilon": epsilon})
    return rows, f"{name}: {time.perf_counter() - start:.0f} s"


def show(rows, console):
    """One table for every figure."""
    for figure, title in FIGURES.items():
        chosen = [row for row in rows if figure in row["none"]]
        if not chosen:
            continue
        table = Table(title=f"{title}, δ = {DELTA:g}", title_justify="left")
        for column in ("table", "ε", "l1 = 0", "σ/2", "σ"):
            table.add_column(column, justify="left" if column == "table" else "right")
        for row in chosen:
            digits = 0 if figure == "used" else 3
            figures = (f"{row[share][figure]:.{digits}f}" for share in SHARES)
            table.add_row(row["table"], f"{row['epsilon']:g}", *figures)
        console.print(table)


def main():
    run("sparse", __doc__.splitlines()[0], TABLES, compare, tell=(show,), settings={"shares": SHARES})


if __name__ == "__main__":
    main()
