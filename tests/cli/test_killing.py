"""A fit that is killed leaves a whole publication whose budget was shown, or none."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from ward import ward

import expost


def kill(folder, delay, *, after_plan):
    """Start a fit, kill it after ``delay`` seconds, and say what it left and what it had shown."""
    domain, table = ward(folder)
    source = str(Path(expost.__file__).parent.parent)
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": source}
    command = [sys.executable, "-m", "expost", "fit", domain, table, "-o", folder / "p.json", "--force"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as fit:
        shown = b""
        while after_plan and b"Will write" not in shown:
            shown += fit.stdout.readline()
        time.sleep(delay)
        fit.send_signal(signal.SIGKILL)
        shown += fit.stdout.read()
    left = {path.name for path in folder.iterdir()} - {"domain.toml", "table.csv"}
    return left, shown.decode()


def kill_many(tmp_path, times):
    rng = np.random.default_rng(2)
    outcomes = set()
    for attempt in range(times):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        # Most of the time is spent on starting Python, so most of the kills wait until it is done with that.
        after_plan = attempt % 4 > 0
        delay = rng.uniform(0.0, 0.2 if after_plan else 1.5)
        left, shown = kill(folder, delay, after_plan=after_plan)
        # A complete file may still bear the name under which it was to be moved into place.
        assert all(name == "p.json" or name.startswith(".expost-") for name in left)
        for name in left:
            expost.Publication.load(folder / name)
            assert "Will spend   epsilon 1 at delta 1e-06" in shown
        outcomes.add("p.json" in left)
    return outcomes


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_fit_leaves_a_whole_file_or_none(tmp_path):
    kill_many(tmp_path, 8)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_fifty_killed_fits_leave_whole_files_or_none(tmp_path):
    assert kill_many(tmp_path, 50) == {True, False}
