"""Publications to compare: their plans, their tables, and what is told at the same quality of the model."""

import math

import numpy as np

import expost
from expost.plan import Plan
from papers.datasets import DataSet, adult, credit, kidney
from papers.redberg_wang_2021.experiment import Numbers
from papers.redberg_wang_2021.measuring import DELTA, paper_plan, rounded

EPSILON = 1.0
SHARES = {"independent": (1.0,), "dependent": (0.2, 0.7, 0.1), "adaptive": (0.2, 0.6, 0.1, 0.1)}
"""The paper's allocation, and one for its adaptive report, for which it states none."""


def plan_of(side: str, kind: str, epsilon: float, dimension: int) -> Plan:
    """Our default, or the paper's recipe, for one total budget."""
    if side == "ours":
        return expost.calibrate(epsilon=epsilon, delta=DELTA, report=kind)
    shares = SHARES[kind]
    return paper_plan([epsilon * share for share in shares], dimension, delta=DELTA / len(shares))


def splits() -> list[tuple[DataSet, DataSet]]:
    """People to fit and people to judge by, on three tables."""
    return [credit().split(0.8, 0), (adult("train"), adult("test")), kidney().split(0.7, 0)]


def savings(table: Numbers) -> dict[str, float]:
    """How many times less the median person is told by ours, at the AUC of each of the paper's at ε = 1.

    Where even our worst model is better, its figure counts, which is larger than need be.
    """
    return {kind: _factor(table, table[f"paper {kind}"]["1"]) for kind in SHARES}


def everywhere(table: Numbers) -> tuple[float, str, str]:
    """The least such factor over all budgets at which the paper's model is better than a coin, and where."""
    found = [
        (_factor(table, row), kind, epsilon)
        for kind in SHARES
        for epsilon, row in table[f"paper {kind}"].items()
        if row["auc"][1] > 0.55 and row["total"][1] is not None
    ]
    return min(found)


def _factor(table: Numbers, theirs: Numbers) -> float:
    ours = table["ours independent"]
    scores = np.maximum.accumulate([row["auc"][1] for row in ours.values()])
    totals = np.log([row["total"][1] for row in ours.values()])
    same = float(np.interp(theirs["auc"][1], scores, totals))
    return rounded(theirs["total"][1] / math.exp(same), 3)
