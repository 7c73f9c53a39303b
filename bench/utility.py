"""Compare the test AUC of the untuned default with models tuned outside the budget.

    python -m bench.utility [--draws 20] [--json FILE]

For every table and epsilon: the model without privacy, ours with the default regularisation, the best over a
grid of regularisations chosen on the test set (which a real user may not do), the classical calibration, and
the figures of DP-SGD tuned on a grid outside the budget, where known. All are medians over the same draws of
the noise. The numbers are written to the file that the documents read, unless a table is missing.
"""

import argparse

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.metrics import roc_auc_score

import expost
from bench.saving import RESULTS, save
from bench.tables import adult, breast_cancer, credit, synthetic
from papers.datasets import DataUnavailable

DELTA = 1e-6
EPSILONS = (0.1, 1.0, 8.0)
# What the default regularisation is multiplied by; 1 is the default itself.
FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0)
# Given, not measured here: DP-SGD with settings tuned on a grid outside the budget, and the AUC without
# privacy of the encodings that these figures come from.
DPSGD = {
    ("credit", 0.1): 0.723,
    ("credit", 1.0): 0.744,
    ("credit", 8.0): 0.747,
    ("adult", 0.1): 0.857,
    ("adult", 1.0): 0.890,
    ("adult", 8.0): 0.890,
}
DPSGD_PLAIN = {"credit": 0.748, "adult": 0.905}


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
    """The tables that could be loaded, and whether these are all."""
    found = []
    for load in (credit, adult):
        try:
            found.append(load())
        except DataUnavailable as error:
            Console(stderr=True).print(f"{load.__name__} is left out: {error}", markup=False)
    complete = len(found) == 2
    found += [breast_cancer(), synthetic(1_000, 20), synthetic(20_000, 50), synthetic(100_000, 100)]
    return found, complete


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--json", help="where the numbers go (default: bench/results/utility.json)")
    options = parser.parse_args()
    console = Console(width=130)
    results = []
    splits, complete = tables()
    for split in splits:
        peer = Peer(C=1e4, fit_intercept=False, solver="newton-cholesky").fit(split.X, split.y)
        plain = roc_auc_score(split.y_test, peer.decision_function(split.X_test))
        for epsilon in track(EPSILONS, description=split.name, transient=True):
            default = expost.calibrate(epsilon=epsilon, delta=DELTA)
            grid = {
                factor: auc(split, options.draws, epsilon=epsilon, l2=factor * default.l2)
                for factor in FACTORS
                if factor * default.l2 > 0.25 / np.expm1(epsilon)
            }
            best = max(grid, key=grid.get)
            results.append(
                {
                    "table": split.name,
                    "epsilon": epsilon,
                    "plain": float(plain),
                    "default": grid[1.0],
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
        "best l2 on the test set",
        "classical",
        "DP-SGD, tuned outside the budget",
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
    if not (options.json or complete):
        console.print("A table is missing, so the documents' file of numbers was not written.")
        return
    document = {
        "delta": DELTA,
        "draws": options.draws,
        "factors": FACTORS,
        "dpsgd_plain": DPSGD_PLAIN,
        "rows": results,
    }
    save(options.json or RESULTS / "utility.json", document)


if __name__ == "__main__":
    main()
