"""Time a full calibration for every loss and kind of report: `python -m bench.calibration`."""

import time

from rich.console import Console
from rich.table import Table

import expost

LOSSES = (expost.LogisticLoss(), expost.LogisticLoss(soft=True), expost.SmoothedHinge(), expost.PseudoHuber())
REPORTS = ("independent", "leverage", "dependent", "adaptive")


def seconds(repeats=3, **arguments):
    """The shortest of a few calibrations from scratch."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        expost.calibrate(**arguments)
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    table = Table(title="Seconds for one calibration with the default l2 (goal 0.5)", title_justify="left")
    table.add_column("loss")
    table.add_column("ε", justify="right")
    for report in REPORTS:
        table.add_column(report, justify="right")
    for loss in LOSSES:
        for epsilon in (0.1, 1.0, 8.0):
            times = [seconds(loss=loss, epsilon=epsilon, report=report) for report in REPORTS]
            table.add_row(str(loss), f"{epsilon:g}", *(f"{value:.3f}" for value in times))
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
