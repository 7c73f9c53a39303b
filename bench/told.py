"""What people are told that a model cost them, beside how good it is: three caps, and a histogram besides.

    python -m bench.told [--draws 20] [--rules RULE ...] [--quick]

The tables and the split are those of `bench.peers`; models are judged on the rest. What a member is told is
the total of her report at 95%. Equal quality is read along epsilon: the figure at the AUC that the cap on
slopes has at epsilon = 1. With ``--rules`` these alone are measured, and the others keep the numbers that the
file has.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from bench.comparison import DELTA, Comparison
from bench.declared import TABLES, DataUnavailable
from bench.saving import RESULTS, save
from expost.privacy.shapes import capped_logistic

CLASSES = ("kidney", "breast cancer", "digits 3/8", "digits 1/7", "election", "affairs")
EPSILONS = (0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 3.0)
# Each rule and what it is asked for with.
RULES = {
    "likelihood": lambda epsilon: {"cap": 1.0},
    "slopes": lambda epsilon: {"cap": capped_logistic(epsilon, DELTA).cap},
    "gradients": lambda epsilon: {},
    "recalibrated": lambda epsilon: {"recalibrate": True},
}
MEASURES = ("auc", "log_loss", "median", "most")


def measured(comparison, epsilon, parameters, seed):
    """AUC and log-loss of one model, and the median and the 95% quantile of what its members are told."""
    fitted = comparison.fitted
    model = comparison.model(epsilon, **parameters).set_params(random_state=seed)
    model.fit(fitted.columns, fitted.outcome)
    scores = comparison.judge(comparison.predictions(model.publication_.release)[:, None])
    told = model.publication_.bounds(fitted.columns, fitted.outcome, member=True).total
    return [float(scores["auc"][0]), float(scores["log_loss"][0]), *np.quantile(told, [0.5, 0.95]).tolist()]


def compare(name, draws, rules):
    """Means over the draws for every rule and epsilon."""
    comparison = Comparison(*TABLES[name](), draws)
    for rule in rules:
        for epsilon in EPSILONS:
            parameters = RULES[rule](epsilon)
            found = [measured(comparison, epsilon, parameters, seed) for seed in range(draws)]
            yield {"table": name, "rule": rule, "epsilon": epsilon} | dict(
                zip(MEASURES, np.mean(found, axis=0).tolist(), strict=True)
            )


def at_equal_quality(rows, name):
    """For every rule the epsilon and the median figure at the AUC of the cap on slopes at epsilon = 1."""
    own = [row for row in rows if row["table"] == name]
    goal = next(row["auc"] for row in own if row["rule"] == "slopes" and row["epsilon"] == 1.0)
    found = {"table": name, "auc": goal}
    for rule in RULES:
        line = [row for row in own if row["rule"] == rule]
        # A larger epsilon is no worse a model, but for chance.
        auc = np.maximum.accumulate([row["auc"] for row in line])
        reached = [float(np.interp(goal, auc, [row[key] for row in line])) for key in ("epsilon", "median")]
        found[rule] = reached if auc[0] <= goal <= auc[-1] else None
    return found


def show(rows, equal, console):
    table = Table(title="Means over the draws", title_justify="left")
    for column in ("table", "rule", "ε", "AUC", "log-loss", "told, median", "told, 95%"):
        table.add_column(column, justify="left" if column in ("table", "rule") else "right")
    for row in rows:
        figures = (f"{row[measure]:.3f}" for measure in MEASURES)
        table.add_row(row["table"], row["rule"], f"{row['epsilon']:g}", *figures)
    console.print(table)
    table = Table(title="At the same AUC: ε, and what half of the members are told at most")
    for column in ("table", "AUC", *RULES):
        table.add_column(column, justify="left" if column == "table" else "right")
    for row in equal:
        cells = ("-" if row[rule] is None else "{:.2f}, {:.3f}".format(*row[rule]) for rule in RULES)
        table.add_row(row["table"], f"{row['auc']:.3f}", *cells)
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="two tables and two draws; nothing is written")
    parser.add_argument("--rules", nargs="+", choices=list(RULES))
    parser.add_argument("--json", type=Path, default=RESULTS / "told.json")
    options = parser.parse_args()
    names, draws = (CLASSES[1:3], 2) if options.quick else (CLASSES, options.draws)
    rules = options.rules or list(RULES)
    console, rows, taken = Console(width=110), [], []
    if options.rules:
        kept = json.loads(options.json.read_text(encoding="utf-8"))
        if kept["draws"] != draws:
            parser.error(f"the numbers that are kept are over {kept['draws']} draws")
        rows = [row for row in kept["rows"] if row["rule"] not in rules]
    with threadpool_limits(1):
        for name in names:
            try:
                rows += compare(name, draws, rules)
                taken.append(name)
            except DataUnavailable as error:
                console.print(f"{name}: {error}")
    equal = [at_equal_quality(rows, name) for name in taken]
    show(rows, equal, console)
    if not options.quick:
        save(options.json, {"draws": draws, "rows": rows, "equal": equal})


if __name__ == "__main__":
    main()
