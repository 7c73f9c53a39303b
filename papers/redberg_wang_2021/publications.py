"""The publications to compare: their plans, their tables, and what they tell at equal model quality."""

import math
from itertools import product
from typing import Any, cast

import numpy as np

import expost
from expost import Plan
from papers.datasets import DataSet, adult, credit, kidney
from papers.redberg_wang_2021.experiment import Numbers
from papers.redberg_wang_2021.measuring import DELTA, paper_plan, rounded

EPSILON = 1.0
SHARES = {"independent": (1.0,), "dependent": (0.2, 0.7, 0.1), "adaptive": (0.2, 0.6, 0.1, 0.1)}
"""The paper's allocations; for its adaptive report it states none, so that one is our choice."""
OUR_L2 = "independent, our λ"
"""The paper's release, noise and reading, with the λ of our rule: one half of its σ."""
PAPER_SPLIT = "dependent, split 0.02"
"""Ours with about as little left for the model as in the paper's allocation, and λ one half of its σ too."""
OURS = ("independent", "leverage", "dependent", "adaptive")
PAPERS = ("independent", OUR_L2, "dependent", "adaptive")
PUBLICATIONS = (
    *(("ours", kind) for kind in OURS),
    ("ours", PAPER_SPLIT),
    *(("paper", kind) for kind in PAPERS),
)
WHOM = {"median": "total", "most exposed": "total_max"}
"""Two people, and the figure that says what the whole publication cost them."""
USABLE = 0.6
"""The AUC below which a model is too close to guessing to be compared."""


def plan_of(side: str, kind: str, epsilon: float, dimension: int) -> Plan:
    """Our default, or the paper's recipe, for one total budget; or a mixture of the two."""
    if side == "ours" and kind != PAPER_SPLIT:
        return expost.calibrate(epsilon=epsilon, delta=DELTA, report=cast(Any, kind))
    if side == "ours":
        budget: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "report": "dependent", "split": 0.02}
        return expost.calibrate(**budget, l2=0.5 * expost.calibrate(**budget).sigma)
    shares = SHARES["independent" if kind == OUR_L2 else kind]
    plan = paper_plan([epsilon * share for share in shares], dimension, delta=DELTA / len(shares))
    if kind != OUR_L2:
        return plan
    l2 = max(plan.l2, 0.5 * plan.sigma)
    return expost.calibrate(epsilon=epsilon, delta=DELTA, l2=l2, calibration="kifer2012")


def splits() -> list[tuple[DataSet, DataSet]]:
    """People to fit and people to test on, for three tables."""
    return [credit().split(0.8, 0), (adult("train"), adult("test")), kidney().split(0.7, 0)]


def savings(tables: Numbers) -> Numbers:
    """How many times smaller a loss ours tells than the paper's at ε = 1, for models of equal quality.

    By person, then by table, then by the paper's publication, each compared with ours of the same kind. None
    if the paper's model is of no use.
    """
    return {
        whose: {
            name: {kind: _factor(table, kind, table[f"paper {kind}"]["1"], whom) for kind in PAPERS}
            for name, table in tables.items()
        }
        for whose, whom in WHOM.items()
    }


def least_saving(table: Numbers, whom: str) -> tuple[float, str, str]:
    """The least such factor over the paper's own publications and all budgets, and where it is."""
    found = [
        (_factor(table, kind, row, whom), kind, epsilon)
        for kind in SHARES
        for epsilon, row in table[f"paper {kind}"].items()
        if row[whom][1] is not None
    ]
    return min((factor, kind, epsilon) for factor, kind, epsilon in found if factor is not None)


def promises(tables: Numbers) -> Numbers:
    """The ε at which ours, of the same kind, is as good as the paper's at ε = 1."""
    return {
        name: {kind: _at_same_quality(table, kind, table[f"paper {kind}"]["1"], None) for kind in PAPERS}
        for name, table in tables.items()
    }


def _factor(table: Numbers, kind: str, theirs: Numbers, whom: str) -> float | None:
    told = _at_same_quality(table, kind, theirs, whom)
    return None if told is None else rounded(theirs[whom][1] / told, 3)


def _at_same_quality(table: Numbers, kind: str, theirs: Numbers, whom: str | None) -> float | None:
    """The loss or ε of ours of the same kind at equal quality, interpolated in logarithms."""
    ours = table[f"ours {kind.partition(',')[0]}"]
    scores = np.maximum.accumulate([row["auc"][1] for row in ours.values()])
    score = theirs["auc"][1]
    if score < max(USABLE, scores[0]):
        return None
    figures = [float(epsilon) if whom is None else row[whom][1] for epsilon, row in ours.items()]
    return rounded(math.exp(float(np.interp(score, scores, np.log(figures)))), 3)


def overview_table(tables: Numbers) -> list[str]:
    """One line per table and publication at ε = 1."""
    lines = [
        "| table | publication | AUC (10% to 90% of draws) | true loss | median bound | 95% of bounds "
        "below | largest bound | our bound / truth | the paper's bound / truth | total, median | total, "
        "largest |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for (name, table), (side, kind) in product(tables.items(), PUBLICATIONS):
        row = table[f"{side} {kind}"]["1"]
        label = f"**ours, {kind}**" if side == "ours" else f"paper's, {kind}"
        low, middle, high = row["auc"]
        keys = ("truth", "upper", "upper_95", "upper_max", "our_ratio", "paper_ratio", "total", "total_max")
        cells = " | ".join(f"{row[key][1]:.2g}" for key in keys)
        lines.append(f"| {name} | {label} | {middle:.3f} ({low:.3f}–{high:.3f}) | {cells} |")
    return lines


def savings_table(saved: Numbers, promised: Numbers) -> list[str]:
    """How many times smaller a loss ours tells, and what it promises, one line per table."""
    lines = [
        "| table | told | " + " | ".join(f"than the paper's {kind}" for kind in PAPERS) + " |",
        "|---|---|" + "---:|" * len(PAPERS),
    ]
    for name, whose in product(promised, saved):
        cells = " | ".join(_shown(saved[whose][name][kind]) for kind in PAPERS)
        lines.append(f"| {name} | {whose} person: times less | {cells} |")
    for name, row in promised.items():
        cells = " | ".join(_shown(row[kind]) for kind in PAPERS)
        lines.append(f"| {name} | promise: our ε for its 1 | {cells} |")
    return lines


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"
