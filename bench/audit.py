"""Compare the delta of real neighbouring data sets with the delta that a plan certifies.

    python -m bench.audit [--json FILE]

The first table is for the logistic loss with strong and with weak regularisation, the second for other losses
and kinds of report. If only the model is published and the data stay below the certificate, it also shows the
noise with which they would attain the promised delta: a looser certificate costs no more noise than that gap.
"""

import argparse
from dataclasses import replace

from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.optimize import brentq

import expost
from bench.saving import RESULTS, save
from expost.audit import audit_plan

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
    Console(width=120).print(table)
    half = len(REGULARISATIONS)
    document = {"delta": DELTA, "seed": SEED, "regularisations": rows[:half], "others": rows[half:]}
    save(options.json, document)


if __name__ == "__main__":
    main()
