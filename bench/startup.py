"""Time the start-up: the import, the help text and a plan, compared with importing scikit-learn.

    python -m bench.startup [--repeats 5]

Each command runs in a fresh process; the best of several interleaved repeats counts.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from expost.cli.demonstration import domain_file

# Seconds, best of five on an idle machine.
GOALS = {"import expost": 0.25, "expost --help": 0.35, "expost plan": 1.2}


def commands(domain):
    python = [sys.executable, "-c"]
    cli = [sys.executable, "-m", "expost"]
    return {
        "python": [*python, "pass"],
        "import expost": [*python, "import expost"],
        "expost --help": [*cli, "--help"],
        "expost plan": [*cli, "plan", str(domain)],
        "import sklearn": [*python, "import sklearn"],
        "import sklearn.linear_model": [*python, "import sklearn.linear_model"],
    }


def measure(repeats):
    """The best time of each command, in seconds."""
    best = {}
    with tempfile.TemporaryDirectory() as folder:
        domain = Path(folder) / "domain.toml"
        domain.write_text(domain_file(), encoding="utf-8")
        for _ in range(repeats + 1):  # the first round fills the file caches
            for name, command in commands(domain).items():
                start = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True)
                best[name] = min(time.perf_counter() - start, best.get(name, float("inf")))
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    times = measure(parser.parse_args().repeats)
    table = Table(title="Start-up, best of several fresh processes", title_justify="left")
    for heading in ("command", "seconds", "of import sklearn", "goal"):
        table.add_column(heading, justify="left" if heading == "command" else "right")
    for name, seconds in times.items():
        goal = f"{GOALS[name]:g}" if name in GOALS else ""
        table.add_row(name, f"{seconds:.3f}", f"{seconds / times['import sklearn']:.2f}", goal)
    Console().print(table)
    missed = [name for name, goal in GOALS.items() if times[name] > goal]
    return f"slower than the goal: {', '.join(missed)}" if missed else 0


if __name__ == "__main__":
    sys.exit(main())
