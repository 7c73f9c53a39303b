"""Mutation testing of ``privacy`` and ``reports``: small changes of the code that some test must notice.

cosmic-ray makes the changes, in a copy of the repository. A sample with a fixed seed is tried unless every
change is asked for. A change that no test of its room notices is listed: kill it with a test, or explain it.

Run it: python -m bench.mutants [--all] [--sample N] [--room privacy|reports]
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult

ROOT = Path(__file__).parents[1]
# The tests that a room's mutants must not survive.
TESTS = {"privacy": "tests/privacy tests/audit", "reports": "tests/reports"}
# In annotations `|` is no arithmetic, and nobody sees a change.
_POINTLESS = re.compile(r"core/ReplaceBinaryOperator_BitOr_\w+|core/RemoveDecorator")
_SECONDS = 900.0


def _configuration(room: str) -> str:
    command = f"{sys.executable} -m pytest -x -q -p no:cacheprovider -m 'not slow' {TESTS[room]}"
    return f"""[cosmic-ray]
module-path = "src/expost/{room}"
timeout = {_SECONDS}
excluded-modules = []
test-command = "{command}"

[cosmic-ray.distributor]
name = "local"
"""


def _leave_out(session: WorkDB, sample: int | None) -> int:
    """Skip what is pointless or not in the sample, and return how many remain."""
    items = sorted(session.work_items, key=lambda item: item.job_id)
    useful = [item for item in items if not _POINTLESS.fullmatch(item.mutations[0].operator_name)]
    places = [
        (str(item.mutations[0].module_path), item.mutations[0].start_pos, item.mutations[0].operator_name)
        for item in useful
    ]
    order = sorted(range(len(useful)), key=places.__getitem__)
    if sample is not None and sample < len(order):
        order = random.Random(0).sample(order, sample)
    chosen = {useful[place].job_id for place in order}
    for item in items:
        if item.job_id not in chosen:
            session.set_result(item.job_id, WorkResult(worker_outcome=WorkerOutcome.SKIPPED))
    return len(chosen)


def survivors(room: str, sample: int | None) -> tuple[int, list[str]]:
    """How many mutants were tried, and those that no test noticed, as differences."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        ignored = shutil.ignore_patterns(".git", ".venv*", "build", "demo", "dist", "__pycache__", ".*_cache")
        shutil.copytree(ROOT, copy, ignore=ignored)
        (copy / "mutants.toml").write_text(_configuration(room), encoding="utf-8")
        command = [sys.executable, "-m", "cosmic_ray.cli"]
        environment = {"PYTHONPATH": f"{copy / 'src'}:{copy}", "OPENBLAS_NUM_THREADS": "1"}
        settings = {"cwd": copy, "check": True, "env": os.environ | environment}
        subprocess.run([*command, "init", "mutants.toml", "mutants.sqlite"], **settings)
        path = str(copy / "mutants.sqlite")
        with use_db(path) as session:
            tried = _leave_out(session, sample)
        subprocess.run([*command, "exec", "mutants.toml", "mutants.sqlite"], **settings)
        with use_db(path) as session:
            alive = [
                str(result.diff)
                for _, result in session.completed_work_items
                if result.test_outcome == TestOutcome.SURVIVED
            ]
    return tried, alive


def main() -> int:
    """Try the mutants and list those that survive."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every mutant: many hours")
    parser.add_argument("--sample", type=int, default=10, help="how many of each room")
    parser.add_argument("--room", choices=sorted(TESTS), action="append", help="one room alone")
    arguments = parser.parse_args()
    missed = 0
    for room in arguments.room or sorted(TESTS):
        tried, alive = survivors(room, None if arguments.all else arguments.sample)
        missed += len(alive)
        print(f"{room}: {tried - len(alive)} of {tried} mutants were noticed.")
        for difference in alive:
            print(difference)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
