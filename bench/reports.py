"""Measure how the split changes model and bounds, and how fast bounds are computed.

    python -m bench.reports [--draws 10] [--json FILE] [--table credit|adult|synthetic] [--skip-speed]

The first table varies the split between the model and the statistics published beside it, at one total
budget. The second compares the time for a million records with one product with a square matrix. Experiment
09 in ``papers/redberg_wang_2021`` compares the kinds of report with each other and with the paper's.
"""

import argparse
import time

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.metrics import roc_auc_score

import expost
from bench.saving import RESULTS, save
from bench.tables import adult, credit, synthetic
from papers.datasets import DataUnavailable

EPSILON, DELTA, CONFIDENCE = 1.0, 1e-6, 0.95
KINDS = ("independent", "leverage", "dependent", "adaptive")
SPLITS = {
    "leverage": (0.8, 0.9, 0.96, 0.98, 0.99),
    "dependent": (0.3, 0.5, 0.7, 0.9),
    "adaptive": (0.3, 0.5, 0.7, 0.9),
}


def measure(table, draws, **parameters):
    """Medians over seeded draws: test AUC, and over members the truth, the bound, the ratio, the total."""
    rows = []
    for seed in range(draws):
        model = expost.LogisticRegression(
            epsilon=EPSILON,
            delta=DELTA,
            norm=1.0,
            fit_intercept=False,
            classes=[0, 1],
            random_state=seed,
            **parameters,
        ).fit(table.X, table.y)
        truth = model.ex_post_losses(table.X, table.y)
        bounds = model.publication_.bounds(table.X, table.y, confidence=CONFIDENCE, member=True)
        rows.append(
            {
                "auc": roc_auc_score(table.y_test, model.decision_function(table.X_test)),
                "truth": np.median(truth),
                "upper": np.median(bounds.upper),
                "upper95": np.quantile(bounds.upper, 0.95),
                "ratio": np.median(bounds.upper / np.maximum(truth, 1e-12)),
                "total": np.median(bounds.total),
                "cost": np.median(bounds.report_cost),
            }
        )
    return {key: float(np.median([row[key] for row in rows])) for key in rows[0]}


def show(console, title, results):
    table = Table(title=title, title_justify="left")
    for column in (
        "",
        "test AUC",
        "true loss",
        "bound",
        "95% bound",
        "bound / truth",
        "report cost",
        "total",
    ):
        table.add_column(column, justify="left" if not column else "right")
    keys = ("truth", "upper", "upper95", "ratio", "cost", "total")
    for kind, rows in results.items():
        for share, row in rows.items():
            figures = (f"{row[key]:.3g}" for key in keys)
            table.add_row(f"{kind} {share}", f"{row['auc']:.4f}", *figures)
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
        reads, products = [], []
        for _ in range(repeats):
            start = time.perf_counter()
            publication.bounds(X, y, member=True)
            middle = time.perf_counter()
            X @ square
            reads.append(middle - start)
            products.append(time.perf_counter() - middle)
        ratios[kind] = (min(reads), min(products))
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--table", choices=("credit", "adult", "synthetic"), default="credit")
    parser.add_argument(
        "--json", help="where the numbers go (for credit by default bench/results/reports.json)"
    )
    parser.add_argument("--skip-speed", action="store_true")
    options = parser.parse_args()
    console = Console(width=120)
    tables = {"credit": credit, "adult": adult, "synthetic": lambda: synthetic(20_000, 50)}
    try:
        split = tables[options.table]()
    except DataUnavailable as error:
        raise SystemExit(f"{error} Or use --table synthetic.") from None
    budget = f"{split.name}, total ε = {EPSILON:g}, δ = {DELTA:g}, confidence {CONFIDENCE:.0%}"

    splits = {kind: {} for kind in SPLITS}
    for kind, shares in SPLITS.items():
        for share in track(shares, description=f"splits of {kind}", transient=True):
            splits[kind][f"{share:g}"] = measure(split, options.draws, report=kind, split=share)
    show(console, f"Splits on {budget}", splits)

    # The documents quote the credit table; speed depends on the machine and is never quoted.
    if options.json or options.table == "credit":
        document = {
            "table": split.name,
            "draws": options.draws,
            "epsilon": EPSILON,
            "delta": DELTA,
            "confidence": CONFIDENCE,
            "splits": splits,
        }
        save(options.json or RESULTS / "reports.json", document)
    if options.skip_speed:
        return
    for kind, (read, product) in speed().items():
        console.print(
            f"reading 1,000,000 records, d = 50, {kind}: {read:.3f} s, one X @ M: {product:.3f} s, "
            f"ratio {read / product:.1f} (goal 4)"
        )


if __name__ == "__main__":
    main()
