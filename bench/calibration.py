"""Time a full calibration for every loss and kind of report, and measure what plans cost together.

`python -m bench.calibration`.
"""

import argparse
import math
import time

from rich.console import Console
from rich.table import Table

import expost
from bench.saving import RESULTS, save
from expost.privacy.shapes import classification_loss, regression_loss
from expost.privacy.sharing import shared_plan

LOSSES = (expost.LogisticLoss(), expost.LogisticLoss(soft=True), expost.SmoothedHinge(), expost.PseudoHuber())
REPORTS = ("independent", "leverage", "dependent", "adaptive")
# What takes longest: l2 just above its floor, a tiny delta, a large epsilon. The floor is at ε = 1.
HARD = ({"above_floor": 1.001}, {"delta": 1e-20}, {"delta": 1e-100}, {"epsilon": 100.0}, {"epsilon": 1e4})


def seconds(repeats=3, **arguments):
    """The shortest of a few calibrations from scratch."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        expost.calibrate(**arguments)
        times.append(time.perf_counter() - start)
    return min(times)


def named(loss, above_floor=None, **arguments):
    """The arguments of a calibration; ``above_floor`` gives l2 as a multiple of its floor."""
    if above_floor is not None:
        arguments["l2"] = above_floor * loss.curve.max_curvature / math.expm1(1.0)
    return {"loss": loss, **arguments}


def show(title, settings):
    table = Table(title=title, title_justify="left")
    table.add_column("loss")
    table.add_column("arguments")
    for report in REPORTS:
        table.add_column(report, justify="right")
    for loss in LOSSES:
        for setting in settings:
            times = [seconds(report=report, **named(loss, **setting)) for report in REPORTS]
            shown = ", ".join(f"{name}={value:g}" for name, value in setting.items())
            table.add_row(str(loss), shown, *(f"{value:.3f}" for value in times))
    Console(width=110).print(table)


# What is composed: how many plans of which budget, at which delta.
BUDGET, COUNTS, DELTA = {"epsilon": 0.5, "delta": 1e-7}, (2, 10, 50), 1e-6
RADIUS = math.sqrt(2.0)
COMPOSED = {
    "logistic, plain": lambda: expost.LogisticLoss(),
    "logistic, capped (the default)": lambda: classification_loss(2, *BUDGET.values(), radius=RADIUS),
    "pseudo-Huber": lambda: regression_loss(*BUDGET.values(), radius=RADIUS),
    "softmax, 3 classes": lambda: expost.SoftmaxLoss(3),
    "softmax, 10 classes, capped (the default)": lambda: classification_loss(
        10, *BUDGET.values(), radius=RADIUS
    ),
}


def compositions():
    """What several plans cost together, and the same number of Gaussian mechanisms."""
    rows = []
    for name, loss in COMPOSED.items():
        plan = expost.calibrate(loss=loss(), fit_intercept=True, **BUDGET)
        costs = [expost.compose([plan] * count).epsilon_at(DELTA) for count in COUNTS]
        rows.append({"loss": name, "epsilons": costs})
    noise = expost.gaussian.sigma(**BUDGET)
    shifts = [math.sqrt(count) for count in COUNTS]
    flat = [float(expost.gaussian.epsilon(DELTA, sensitivity=shift, sigma=noise)) for shift in shifts]
    rows.append({"loss": "Gaussian mechanisms", "epsilons": flat})
    return {"budget": BUDGET, "counts": COUNTS, "delta": DELTA, "rows": rows}


# How many outcomes share which budgets.
OUTCOMES, BUDGETS = (2, 5, 10), (0.1, 1.0, 8.0)


def default_plan(epsilon, delta, unit="row"):
    """The plan of logistic regression with an intercept, with every default."""
    loss = classification_loss(2, epsilon, delta, radius=RADIUS)
    return expost.calibrate(loss=loss, epsilon=epsilon, delta=delta, fit_intercept=True, unit=unit)


def several_outcomes():
    """The noise of each of several outcomes, relative to one alone: as models, and as rows of a person."""
    rows = []
    for epsilon in BUDGETS:
        alone = default_plan(epsilon, DELTA).sigma
        shared = [shared_plan(count, epsilon, DELTA, default_plan).sigma / alone for count in OUTCOMES]
        person = default_plan(epsilon, DELTA, "person").sigma / alone
        rows.append({"epsilon": epsilon, "models": shared, "rows": [count * person for count in OUTCOMES]})
    return {"counts": OUTCOMES, "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", default=RESULTS / "calibration.json", help="where the numbers go")
    options = parser.parse_args()
    save(options.json, compositions() | {"several_outcomes": several_outcomes()})
    usual = [{"epsilon": epsilon} for epsilon in (0.1, 1.0, 8.0)]
    show("Seconds for one calibration with the default l2 (goal 0.5)", usual)
    show("Seconds for the hardest calibrations (goal 2)", HARD)


if __name__ == "__main__":
    main()
