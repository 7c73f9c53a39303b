"""Compare our models, defaults untouched, with other private models on the same rows and budget.

    python -m bench.peers [--draws 20] [--only TABLE ...] [--models MODEL ...] [--json FILE]

One encoding (the domain's), one split, one budget. Every model is fitted to the rows that ours sees. Gradient
descent and Newton are tuned freely on the test set. That is not private, spends no budget here and favours
them. They are tuned once for the AUC or R² and once more for the log-loss, which is shown with its
calibration error. Gradient descent is also shown as a user could have it: with one setting for all tables and
tuned within its budget, by settings that `bench.fixed` chose on other tables. All figures are medians over
draws of the noise. Tables that cannot be had are named; the numbers go to the file that the documents read
only if no table is missing.
"""

import time

from rich.table import Table
from threadpoolctl import threadpool_limits

from bench import comparison as settings
from bench.comparison import DELTA, EPSILONS, Comparison
from bench.declared import HELD_OUT, TABLES
from bench.over_tables import run
from papers.datasets import DataUnavailable

# Small tables are cheap and their scores spread widely: they get more draws.
SMALL, MORE = 10_000, 5
TITLES = {
    "plain": "no privacy",
    "ours": "expost",
    "recalibrated": "expost, recalibrated",
    "unclipped": "DP-GD, tuned",
    "clipped": "DP-GD, clipped, tuned",
    "fixed": "DP-GD, one setting",
    "private": "DP-GD, tuned privately",
    "newton": "DP-Newton, tuned",
    "adassp": "AdaSSP",
    "ssp": "SSP",
    "kifer": "Kifer's calibration",
}
FIGURES = {"auc": "AUC", "r2": "R²", "log_loss": "Log-loss", "calibration": "Calibration error"}


def compare(name, draws, wanted):
    """One row for each epsilon and the seconds it took, or why the table is missing."""
    start = time.perf_counter()
    try:
        pair = TABLES[name]()
    except DataUnavailable as error:
        return [], f"{name} is left out: {error}"
    draws *= MORE if len(pair[0]) < SMALL else 1
    # The tables run side by side: threads inside each would only get in each other's way.
    with threadpool_limits(1):
        comparison = Comparison(*pair, draws)
        results = comparison.run(name, wanted)
    size = {"rows": len(pair[0]), "test_rows": len(pair[1]), "columns": comparison.rows.shape[1]}
    size["draws"] = draws
    rows = [
        {"table": name, **size, "epsilon": epsilon}
        | {peer: scored[epsilon] for peer, scored in results.items()}
        for epsilon in EPSILONS
    ]
    return rows, f"{name}: {time.perf_counter() - start:.0f} s"


def show(rows, console):
    """One table for every figure."""
    for figure, title in FIGURES.items():
        chosen = [row for row in rows if figure in row.get("ours", ())]
        if not chosen:
            continue
        peers = [peer for peer in TITLES if any(figure in row.get(peer, ()) for row in chosen)]
        table = Table(title=f"{title}, δ = {DELTA:g}", title_justify="left")
        for column in ("table", "ε", *(TITLES[peer] for peer in peers)):
            table.add_column(column, justify="left" if column == "table" else "right")
        for row in chosen:
            figures = (f"{row[peer][figure]:.3f}" if peer in row else "" for peer in peers)
            table.add_row(row["table"], f"{row['epsilon']:g}", *figures)
        console.print(table)


def judge(rows, console):
    """Every case beyond a goal, the goal's largest distance, and the distances to clipped DP-GD."""
    goals = [
        ("R² at ε = 1, below ridge", "r2", "plain", 0.06, lambda row: row["epsilon"] == 1.0),
        ("R², below AdaSSP", "r2", "adassp", 0.01, lambda row: True),
        ("R², below SSP", "r2", "ssp", 0.01, lambda row: True),
        ("AUC, below DP-GD without a clip", "auc", "unclipped", 0.01, lambda row: True),
        ("AUC, below clipped DP-GD", "auc", "clipped", None, lambda row: row["epsilon"] <= 1.0),
        ("AUC, below DP-GD with one setting", "auc", "fixed", 0.0, lambda row: True),
        ("R², below DP-GD with one setting", "r2", "fixed", 0.0, lambda row: True),
    ]
    for title, figure, peer, limit, counts in goals:
        behind = {
            f"{row['table']} at ε = {row['epsilon']:g}": row[peer][figure] - row["ours"][figure]
            for row in rows
            if figure in row.get("ours", ()) and peer in row and counts(row)
        }
        if not behind:
            continue
        missed = {case: gap for case, gap in behind.items() if limit is None or gap > limit}
        told = "; ".join(f"{case} {gap:.3f}" for case, gap in missed.items()) or "met everywhere"
        goal = "no limit" if limit is None else f"goal at most {limit:g}"
        console.print(f"{title} ({goal}, largest {max(behind.values()):.3f}): {told}", highlight=False)


def main():
    names = ("STEPS", "CLIPS", "RATES", "MOMENTA", "NEWTON_STEPS", "SHARES", "FLOORS")
    grids = {name.lower(): getattr(settings, name) for name in names}
    about = __doc__.splitlines()[0]
    stated = {"grids": grids, "held_out": HELD_OUT}
    run("peers", about, TABLES, compare, tell=(show, judge), settings=stated)


if __name__ == "__main__":
    main()
