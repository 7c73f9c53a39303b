"""Compare the delta of real neighbouring data sets with the delta that a plan certifies.

    python -m bench.audit [--json FILE]

The table is for the logistic loss with strong and with weak regularisation, other losses and kinds of report,
and three classes, whose worst tables are known. If only the model is published and the data stay below the
certificate, it also shows the noise with which they would attain the promised delta: a looser certificate
costs no more noise than that gap.
"""

import argparse
import math
from dataclasses import replace

from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.optimize import brentq

import expost
from bench.saving import RESULTS, save
from expost.audit import audit_plan, hockey_stick

DELTA, SEED = 1e-6, 0
# Above this share the difference is the tolerance of the calibration and not a gap.
SHARP = 0.999
# The epsilon, the l2, and how many random pairs follow the structured ones.
REGULARISATIONS = [(0.5, 10.0, 50), (1.0, 5.0, 50), (2.0, 2.5, 50), (1.0, 0.5, 50)]
OTHERS = [
    (expost.SmoothedHinge(), "independent"),
    (expost.PseudoHuber(), "independent"),
    (expost.LogisticLoss(soft=True), "independent"),
    (expost.LogisticLoss(), "leverage"),
    (expost.LogisticLoss(), "dependent"),
    (expost.LogisticLoss(), "adaptive"),
]
OTHER_EPSILON, OTHER_L2, OTHER_TRIALS = 1.0, 5.0, 20
# For three classes the l2, and how hard short rows of the record's own class pull away from it, in units of
# the noise: the best of a search over both coefficients.
THREE_CLASSES, SHORT = [(1.0, 6.2), (2.0, 14.5), (5.0, 29.4)], 1e-3


def measure(loss, report, epsilon, l2, trials):
    """The share of the certified delta that is attained, and the noise that the worst data would need."""
    plan = expost.calibrate(loss=loss, epsilon=epsilon, delta=DELTA, l2=l2, report=report)
    share = audit_plan(plan, trials=trials, random_state=SEED).ratio
    return {
        "loss": str(loss),
        "report": report,
        "epsilon": epsilon,
        "l2": l2,
        "trials": trials,
        "sigma": plan.sigma,
        "share": share,
        "attaining_sigma": attaining_sigma(plan, trials)
        if report == "independent" and share < SHARP
        else None,
    }


def attaining_sigma(plan, trials):
    """The noise with which the worst data attain the promised delta; each noise has its own search."""

    def excess(sigma):
        noisy = replace(plan, scales=replace(plan.scales, sigma=sigma))
        return audit_plan(noisy, trials=trials, random_state=SEED).audited - plan.delta

    return float(brentq(excess, 0.85 * plan.sigma, plan.sigma, xtol=1e-4 * plan.sigma))


def measure_classes(l2, pull):
    """The same for softmax of three classes, plain, with short rows that pull towards both wrong classes."""
    loss = expost.SoftmaxLoss(3)
    plan = expost.calibrate(loss=loss, epsilon=1.0, delta=DELTA, l2=l2)

    def attained(sigma):
        count = math.ceil(pull * sigma / (SHORT * math.sqrt(2.0 / 3.0)))
        table = {"X": [[-SHORT]], "y": [0], "counts": [count], "record": [1.0], "label": 0}
        return hockey_stick(loss, **table, epsilon=1.0, sigma=sigma, l2=l2).delta

    # The logarithm is nearly linear in the noise.
    needed = brentq(
        lambda sigma: math.log(attained(sigma) / DELTA), 0.75 * plan.sigma, plan.sigma, xtol=1e-3 * plan.sigma
    )
    return {
        "epsilon": 1.0,
        "l2": l2,
        "sigma": plan.sigma,
        "share": attained(plan.sigma) / plan.delta_at(1.0),
        "attaining_sigma": float(needed),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", default=RESULTS / "audit.json", help="where the numbers go")
    options = parser.parse_args()
    logistic = expost.LogisticLoss()
    cases = [(logistic, "independent", *setting) for setting in REGULARISATIONS]
    cases += [(loss, report, OTHER_EPSILON, OTHER_L2, OTHER_TRIALS) for loss, report in OTHERS]
    rows = [measure(*case) for case in track(cases, description="audits", transient=True)]
    table = Table(title=f"Audited and certified delta, delta = {DELTA:g}", title_justify="left")
    for column in ("loss", "report", "ε", "l2", "σ", "audited / certified", "σ that attains delta"):
        table.add_column(column, justify="left" if column in ("loss", "report") else "right")
    for row in rows:
        figures = [f"{row['epsilon']:g}", f"{row['l2']:g}", f"{row['sigma']:.4f}", f"{row['share']:.4f}"]
        needed = row["attaining_sigma"]
        table.add_row(row["loss"], row["report"], *figures, "" if needed is None else f"{needed:.4f}")
    classes = [measure_classes(*case) for case in track(THREE_CLASSES, description="classes", transient=True)]
    for row in classes:
        figures = [f"{row[name]:.4f}" for name in ("sigma", "share", "attaining_sigma")]
        table.add_row("softmax, three classes", "independent", "1", f"{row['l2']:g}", *figures)
    Console(width=120).print(table)
    half = len(REGULARISATIONS)
    document = {"delta": DELTA, "seed": SEED, "regularisations": rows[:half], "others": rows[half:]}
    document["three_classes"] = classes
    save(options.json, document)


if __name__ == "__main__":
    main()
