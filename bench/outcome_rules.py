"""Try defaults of the models of counts, amounts and quantiles on the tables that are for choosing.

    python -m bench.outcome_rules [--draws 8] [--kind counts|amounts|quantiles] [--json FILE]

Each width is a multiple of the default, and each ridge a multiple of the one that
``calibrate`` takes for that width. Large tables have 4,000 rows here. What is compared is how far D² lies
below that of the model without privacy, in medians over draws of the noise and then in means over tables;
more than one counts as one.
"""

import argparse
import warnings
from dataclasses import replace
from functools import cache, partial
from itertools import product

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

import expost
from bench.comparison import DELTA, EPSILONS, SEED
from bench.outcomes import KINDS, TABLES, opened
from bench.saving import RESULTS, save
from expost.exceptions import CalibrationError

WIDTHS, RIDGES = (0.5, 1.0, 2.0, 4.0, 8.0), (0.5, 1.0, 2.0)
WORST = 1.0
# So many rows of a table are enough to choose by.
ROWS = 4_000


@cache
def planned(default, epsilon, argument, width, ridge):
    """The plan for rows of norm 1 with multiples of the default width and of its ridge, or None."""
    loss = replace(default, **{argument: width * getattr(default, argument)})
    calibrated = partial(expost.calibrate, loss=loss, norm=1.0, epsilon=epsilon, delta=DELTA)
    plan = calibrated()
    try:
        return plan if ridge == 1.0 else calibrated(l2=ridge * plan.l2)
    except CalibrationError:  # no noise is enough for so small a ridge
        return None


def minimisers(plan, X, y, draws):
    """Coefficients of draws of the noise by Newton's method, to many digits but not certified."""
    noise = np.random.default_rng(SEED).normal(0.0, plan.sigma, (draws, X.shape[1]))
    found = []
    for one in noise:
        theta = np.zeros(X.shape[1])
        for _ in range(60):
            eta = X @ theta
            slope, bend = plan.loss.derivatives(eta, y)
            gradient = X.T @ slope + plan.l2 * theta + one
            step = np.linalg.solve((X * bend[:, None]).T @ X + plan.l2 * np.eye(len(theta)), gradient)
            share, value = 1.0, objective(plan, X, y, one, theta)
            while share > 1e-3 and objective(plan, X, y, one, theta - share * step) > value:
                share *= 0.5
            theta = theta - share * step
            if np.linalg.norm(gradient) < 1e-6 * plan.sigma:
                break
        found.append(theta)
    return np.stack(found, axis=1)


def objective(plan, X, y, noise, theta):
    """What is minimised."""
    return float(np.sum(plan.loss.value(X @ theta, y)) + 0.5 * plan.l2 * theta @ theta + noise @ theta)


def tried(name, draws):
    """The shortfall of every width and ridge at every epsilon on one table."""
    for about, comparison in opened(name, 1, most=ROWS):
        if not about["chosen_on"]:
            return
        best, radius = comparison.plain()["d2"], comparison.problem.radius
        for epsilon in EPSILONS:
            default, argument = comparison.default(epsilon)
            for width, ridge in product(WIDTHS, RIDGES):
                plan = planned(default, epsilon, argument, width, ridge)
                if plan is not None:
                    found = minimisers(plan, comparison.rows / radius, comparison.labels, draws) / radius
                    score = comparison.median(found)["d2"]
                    yield {**about, "epsilon": epsilon, "width": width, "ridge": ridge, "below": best - score}


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
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--kind", choices=list(KINDS))
    parser.add_argument("--json", default=RESULTS / "outcome_rules.json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # every fit spends again, of public tables
    names = [name for name in TABLES if name.startswith(options.kind or "")]
    with threadpool_limits(1):
        rows = []
        for name in names:
            rows += tried(name, options.draws)
            print(name, flush=True)
    show(rows, Console(width=140))
    save(options.json, {"delta": DELTA, "draws": options.draws, "worst": WORST, "rows": rows})


if __name__ == "__main__":
    main()
