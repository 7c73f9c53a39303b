"""What a budget buys: test AUC of the untuned default against tuning that costs nothing.

    python -m bench.utility [--draws 20] [--json FILE]

For every table and epsilon: the model without privacy, ours with the default regularisation, the best over a
grid of regularisations chosen by looking at the test set (which nobody may do), the classical calibration,
and the figures of DP-SGD tuned on a grid at no cost, where known. Medians over draws of the noise.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.metrics import roc_auc_score

import expost
from bench.tables import adult, breast_cancer, credit, synthetic
from papers.datasets import DataUnavailable

DELTA = 1e-6
EPSILONS = (0.1, 1.0, 8.0)
DPSGD = {
    ("credit", 0.1): 0.723,
    ("credit", 1.0): 0.744,
    ("credit", 8.0): 0.747,
    ("adult", 0.1): 0.857,
    ("adult", 1.0): 0.890,
    ("adult", 8.0): 0.890,
}


def auc(split, draws, **parameters):
    """Median test AUC over seeded draws of the noise."""
    scores = []
    for seed in range(draws):
        model = expost.LogisticRegression(
            delta=DELTA, norm=1.0, fit_intercept=False, classes=[0, 1], random_state=seed, **parameters
        ).fit(split.X, split.y)
        scores.append(roc_auc_score(split.y_test, model.decision_function(split.X_test)))
    return float(np.median(scores))


def tables():
    for load in (credit, adult):
        try:
            yield load()
        except DataUnavailable as error:
            Console(stderr=True).print(f"{load.__name__} is left out: {error}", markup=False)
    yield breast_cancer()
    yield synthetic(1_000, 20)
    yield synthetic(20_000, 50)
    yield synthetic(100_000, 100)


def write_docs(results):
    """Put the table between its marks in the document that explains it."""
    lines = [
        "| table | ε | no privacy | expost, untuned | best λ, peeking | classical | DP-SGD, tuned for free |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in results:
        figures = [f"{row[key]:.3f}" for key in ("plain", "default", "best", "classical")]
        figures.append("" if row["dpsgd"] is None else f"{row['dpsgd']:.3f}")
        lines.append(f"| {row['table']} | {row['epsilon']:g} | " + " | ".join(figures) + " |")
    page = Path(__file__).resolve().parents[1] / "docs" / "calibration.md"
    before, _, rest = page.read_text(encoding="utf-8").partition("<!-- utility:begin -->")
    after = rest.partition("<!-- utility:end -->")[2]
    table = "\n".join(lines)
    page.write_text(f"{before}<!-- utility:begin -->\n{table}\n<!-- utility:end -->{after}", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--json")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/calibration.md")
    options = parser.parse_args()
    console = Console(width=130)
    results = []
    for split in tables():
        peer = Peer(C=1e4, fit_intercept=False, solver="newton-cholesky").fit(split.X, split.y)
        plain = roc_auc_score(split.y_test, peer.decision_function(split.X_test))
        for epsilon in track(EPSILONS, description=split.name, transient=True):
            default = expost.calibrate(epsilon=epsilon, delta=DELTA)
            grid = {
                factor: auc(split, max(3, options.draws // 4), epsilon=epsilon, l2=factor * default.l2)
                for factor in (0.1, 0.3, 1.0, 3.0, 10.0)
                if factor * default.l2 > 0.25 / np.expm1(epsilon)
            }
            best = max(grid, key=grid.get)
            results.append(
                {
                    "table": split.name,
                    "epsilon": epsilon,
                    "plain": plain,
                    "default": auc(split, options.draws, epsilon=epsilon),
                    "l2": default.l2,
                    "best": grid[best],
                    "best_l2": best * default.l2,
                    "classical": auc(split, options.draws, epsilon=epsilon, calibration="kifer2012"),
                    "dpsgd": DPSGD.get((split.name, epsilon)),
                }
            )
    table = Table(
        title=f"Median test AUC over {options.draws} draws, delta = {DELTA:g}", title_justify="left"
    )
    for column in (
        "table",
        "ε",
        "no privacy",
        "expost",
        "l2",
        "best l2, peeking",
        "classical",
        "DP-SGD, tuned free",
    ):
        table.add_column(column, justify="left" if column == "table" else "right")
    for row in results:
        table.add_row(
            row["table"],
            f"{row['epsilon']:g}",
            f"{row['plain']:.3f}",
            f"{row['default']:.3f}",
            f"{row['l2']:.3g}",
            f"{row['best']:.3f} at {row['best_l2']:.3g}",
            f"{row['classical']:.3f}",
            "" if row["dpsgd"] is None else f"{row['dpsgd']:.3f}",
        )
    console.print(table)
    if options.docs:
        write_docs(results)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=2)


if __name__ == "__main__":
    main()
