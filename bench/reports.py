"""Measure what the reports cost, by default and as they were before, and how fast bounds are computed.

    python -m bench.reports [--draws 5] [--plain] [--json FILE] [--synthetic] [--skip-speed]

For every table, epsilon and kind of report: the default, and the split that was the default before, in which
the Hessian takes all of the budget that the split leaves. Both are read by the same reader. The rule behind
the default was chosen on the first three tables, with and without a cap on the slope; ``--plain`` measures
logistic regression without one. The last part compares the time for a million records with one product with a
square matrix. Experiment 09 in ``papers/redberg_wang_2021`` compares the kinds of report with each other and
with the paper's.
"""

import argparse
import time

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.metrics import roc_auc_score

import expost
from bench import tables
from bench.saving import RESULTS, save
from expost.privacy.shapes import capped_logistic
from papers.datasets import DataUnavailable

DELTA, CONFIDENCE = 1e-6, 0.95
EPSILONS = (0.1, 1.0, 8.0)
KINDS = ("independent", "leverage", "dependent", "adaptive")
# The splits that were the defaults before the Hessian had a rule of its own.
BEFORE = {"leverage": 0.98, "dependent": 0.5, "adaptive": 0.5}
CHOSEN_ON = (tables.credit, tables.adult, tables.kidney)
OTHERS = (
    tables.breast_cancer,
    tables.digits,
    lambda: tables.good_wine("red"),
    lambda: tables.good_wine("white"),
    lambda: tables.synthetic(20_000, 50),
)


def measure(table, draws, *, epsilon, report, cap, split=None):
    """Medians over seeded draws: test AUC, and over members the truth, the bound, the cost, the total."""
    rows = []
    # The rows lie in the unit ball, the constant column included: no gradient is longer than the default cap.
    loss = capped_logistic(epsilon, DELTA, cap=cap, radius=1.0)
    plan = expost.calibrate(loss=loss, epsilon=epsilon, delta=DELTA, report=report, split=split)
    for seed in range(draws):
        model = expost.LogisticRegression(
            plan=plan, classes=[0, 1], fit_intercept=False, random_state=seed
        ).fit(table.X, table.y)
        bounds = model.publication_.bounds(table.X, table.y, confidence=CONFIDENCE, member=True)
        rows.append(
            {
                "auc": roc_auc_score(table.y_test, model.decision_function(table.X_test)),
                "truth": np.median(model.ex_post_losses(table.X, table.y)),
                "upper": np.median(bounds.upper),
                "upper95": np.quantile(bounds.upper, 0.95),
                "cost": np.median(bounds.report_cost),
                "total": np.median(bounds.total),
            }
        )
    return {key: float(np.median([row[key] for row in rows])) for key in rows[0]}


def compare(table, draws, cap):
    """Every kind of report at every epsilon, by default and with the split of before."""
    for epsilon in track(EPSILONS, description=table.name, transient=True):
        for kind in KINDS:
            row = {"table": table.name, "rows": len(table.y), "epsilon": epsilon, "report": kind}
            yield row | {"split": None} | measure(table, draws, epsilon=epsilon, report=kind, cap=cap)
            if kind in BEFORE:
                share = BEFORE[kind]
                figures = measure(table, draws, epsilon=epsilon, report=kind, cap=cap, split=share)
                yield row | {"split": share} | figures


def show(console, title, rows):
    table = Table(title=title, title_justify="left")
    columns = ("table", "ε", "report", "split", "test AUC", "true loss", "bound", "report cost", "total")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place in (0, 2) else "right")
    for row in rows:
        words = (row["table"], f"{row['epsilon']:g}", row["report"])
        split = "" if row["split"] is None else f"{row['split']:g}"
        figures = (f"{row[key]:.3g}" for key in ("truth", "upper", "cost", "total"))
        table.add_row(*words, split, f"{row['auc']:.4f}", *figures)
    console.print(table)


def speed(rows=1_000_000, features=50, repeats=3):
    """Compare the time for all records of a large table with one product with a square matrix."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features))
    X /= 1.000001 * np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(0, 2, rows)
    square = rng.normal(size=(features, features))
    ratios = {}
    for kind in KINDS:
        publication = (
            expost.LogisticRegression(norm=1.0, classes=[0, 1], report=kind)
            .fit(X[:100_000], y[:100_000])
            .publication_
        )
        for member in (True, None):
            reads, products = [], []
            for _ in range(repeats):
                start = time.perf_counter()
                publication.bounds(X, y, member=member)
                middle = time.perf_counter()
                X @ square
                reads.append(middle - start)
                products.append(time.perf_counter() - middle)
            ratios[kind, member] = (min(reads), min(products))
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--plain", action="store_true", help="without a cap on the slope")
    parser.add_argument("--json", help="where the numbers go (default: in bench/results)")
    parser.add_argument("--synthetic", action="store_true", help="only the synthetic table; writes no file")
    parser.add_argument("--skip-speed", action="store_true")
    options = parser.parse_args()
    console = Console(width=120)
    document = {"draws": options.draws, "delta": DELTA, "confidence": CONFIDENCE}
    groups = {"chosen_on": CHOSEN_ON, "others": OTHERS}
    if options.synthetic:
        groups = {"others": OTHERS[-1:]}
    try:
        for group, loads in groups.items():
            document[group] = [
                row
                for load in loads
                for row in compare(load(), options.draws, 1.0 if options.plain else None)
            ]
            title = "Tables that the rule was chosen on" if group == "chosen_on" else "Other tables"
            show(console, f"{title}, δ = {DELTA:g}, confidence {CONFIDENCE:.0%}", document[group])
    except DataUnavailable as error:
        raise SystemExit(f"{error} Or use --synthetic.") from None
    # Speed depends on the machine and is never quoted.
    if options.json or not options.synthetic:
        save(options.json or RESULTS / ("reports_plain.json" if options.plain else "reports.json"), document)
    if options.skip_speed:
        return
    for (kind, member), (read, product) in speed().items():
        whose = "members" if member else "members or not"
        console.print(
            f"reading 1,000,000 records, d = 50, {kind}, {whose}: {read:.3f} s, one X @ M: {product:.3f} s, "
            f"ratio {read / product:.1f} (goal 4)"
        )


if __name__ == "__main__":
    main()
