"""Publications to compare: their plans, their tables, and what is told at the same quality of the model."""

import math
from collections.abc import Iterable
from itertools import product

import numpy as np

import expost
from expost.plan import Plan
from papers.datasets import DataSet, adult, credit, kidney
from papers.redberg_wang_2021.experiment import Numbers
from papers.redberg_wang_2021.measuring import DELTA, paper_plan, rounded

EPSILON = 1.0
SHARES = {"independent": (1.0,), "dependent": (0.2, 0.7, 0.1), "adaptive": (0.2, 0.6, 0.1, 0.1)}
"""The paper's allocation, and one for its adaptive report, for which it states none."""
WHOM = {"median": "total", "most exposed": "total_max"}
"""Two people, and what they are told the whole publication cost them."""


def plan_of(side: str, kind: str, epsilon: float, dimension: int) -> Plan:
    """Our default, or the paper's recipe, for one total budget."""
    if side == "ours":
        return expost.calibrate(epsilon=epsilon, delta=DELTA, report=kind)
    shares = SHARES[kind]
    return paper_plan([epsilon * share for share in shares], dimension, delta=DELTA / len(shares))


def splits() -> list[tuple[DataSet, DataSet]]:
    """People to fit and people to judge by, on three tables."""
    return [credit().split(0.8, 0), (adult("train"), adult("test")), kidney().split(0.7, 0)]


def savings(tables: Numbers) -> dict[str, dict[str, dict[str, float]]]:
    """How many times less ours tells a person, at the AUC that each of the paper's has at ε = 1.

    By whom it is told, then by table, then by the paper's publication.
    """
    return {
        whose: {
            name: {kind: _factor(table, table[f"paper {kind}"]["1"], whom) for kind in SHARES}
            for name, table in tables.items()
        }
        for whose, whom in WHOM.items()
    }


def least_saving(table: Numbers, whom: str) -> tuple[float, str, str]:
    """The least such factor over all budgets, for one value of :data:`WHOM`, and where it is.

    Only where the paper's model is better than a coin and than our worst one, and its bound is finite.
    """
    worst = min(row["auc"][1] for row in table["ours independent"].values())
    return min(
        (_factor(table, row, whom), kind, epsilon)
        for kind in SHARES
        for epsilon, row in table[f"paper {kind}"].items()
        if row["auc"][1] >= max(worst, 0.55) and row[whom][1] is not None
    )


def _factor(table: Numbers, theirs: Numbers, whom: str) -> float:
    ours = table["ours independent"].values()
    scores = np.maximum.accumulate([row["auc"][1] for row in ours])
    told = np.log([row[whom][1] for row in ours])
    same = float(np.interp(theirs["auc"][1], scores, told))
    return rounded(theirs[whom][1] / math.exp(same), 3)


def overview_table(tables: Numbers, publications: Iterable[tuple[str, str]]) -> list[str]:
    """One line per table and publication at ε = 1."""
    lines = [
        "| table | publication | AUC | true loss | median bound | 95% of bounds below | largest bound "
        "| bound / truth | the same file read as the paper does | total |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for (name, table), (side, kind) in product(tables.items(), publications):
        row = table[f"{side} {kind}"]["1"]
        label = f"**ours, {kind}**" if side == "ours" else f"paper's, {kind}"
        cells = " | ".join(f"{row[key][1]:.2g}" for key in ("truth", "upper", "upper_95", "upper_max"))
        lines.append(
            f"| {name} | {label} | {row['auc'][1]:.3f} | {cells} | {row['ratio'][1]:.3g} | "
            f"{row['paper_ratio'][1]:.3g} | {row['total'][1]:.2g} |"
        )
    return lines


def savings_table(saved: Numbers) -> list[str]:
    """How many times less ours tells, one line per table and person."""
    lines = [
        "| table | person | " + " | ".join(f"than the paper's {kind}" for kind in SHARES) + " |",
        "|---|---|" + "---:|" * len(SHARES),
    ]
    for name, whose in product(saved["median"], saved):
        factors = saved[whose][name]
        lines.append(f"| {name} | {whose} | " + " | ".join(f"{factors[kind]:.2g}" for kind in SHARES) + " |")
    return lines
