"""Time a full calibration for every loss and kind of report: `python -m bench.calibration`."""

import math
import time

from rich.console import Console
from rich.table import Table

import expost

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


def main():
    usual = [{"epsilon": epsilon} for epsilon in (0.1, 1.0, 8.0)]
    show("Seconds for one calibration with the default l2 (goal 0.5)", usual)
    show("Seconds for the hardest calibrations (goal 2)", HARD)


if __name__ == "__main__":
    main()
