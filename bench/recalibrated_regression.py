"""What five noisy moments after a regression gain in R², on rows that were held out.

    python -m bench.recalibrated_regression [--draws 8]

The tables and the split are those of `bench.peers`.
"""

import argparse
import warnings

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

import expost
from bench.declared import TABLES
from bench.saving import RESULTS, save
from expost.exceptions import ExpostWarning

REGRESSIONS = ("wine, red", "wine, white", "diabetes", "doctor visits")
EPSILONS = (0.1, 1.0, 8.0)


def compare(name, draws):
    """For every epsilon the median R² of the rest of the table, with and without moments."""
    fitted, rest = TABLES[name]()
    for epsilon in EPSILONS:
        found = [
            [
                expost.LinearRegression(
                    domain=fitted.domain, epsilon=epsilon, recalibrate=recalibrate, random_state=seed
                )
                .fit(pd.DataFrame(fitted.columns), fitted.outcome)
                .score(pd.DataFrame(rest.columns), rest.outcome)
                for seed in range(draws)
            ]
            for recalibrate in (False, True)
        ]
        plain, corrected = (float(np.median(one)) for one in found)
        yield {"table": name, "epsilon": epsilon, "plain": plain, "recalibrated": corrected}


def show(rows, console):
    """A row for each table and epsilon."""
    table = Table(title="Median R², held out", title_justify="left")
    for column in ("table", "ε", "default", "recalibrated"):
        table.add_column(column, justify="left" if column == "table" else "right")
    for row in rows:
        table.add_row(
            row["table"], f"{row['epsilon']:g}", f"{row['plain']:.3f}", f"{row['recalibrated']:.3f}"
        )
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--json", default=RESULTS / "recalibrated_regression.json")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ExpostWarning)
    with threadpool_limits(1):
        rows = [row for name in REGRESSIONS for row in compare(name, options.draws)]
    show(rows, Console(width=110))
    save(options.json, {"draws": options.draws, "rows": rows})


if __name__ == "__main__":
    main()
