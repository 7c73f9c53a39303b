"""A killed fit leaves a complete publication, after it has shown the budget, or none."""

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

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


def start(folder):
    domain, table = ward(folder)
    source = str(Path(expost.__file__).parent.parent)
    return subprocess.Popen(
        [sys.executable, "-m", "expost", "fit", domain, table, "-o", folder / "p.json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": source},
    )


def await_plan(fit):
    """Read what the fit prints until it has said what it will spend and write."""
    shown = b""
    while b"Will write" not in shown:
        line = fit.stdout.readline()
        assert line, "the fit ended before it said what it would spend"
        shown += line
    return shown


def times(folder):
    """How long a fit takes to print its plan, and from there to its end."""
    began = time.monotonic()
    with start(folder) as fit:
        await_plan(fit)
        told = time.monotonic()
        fit.stdout.read()
    assert fit.returncode == 0
    expost.Publication.load(folder / "p.json")
    return told - began, time.monotonic() - told


def kill(folder, delay, *, after_plan):
    """Start a fit and kill it ``delay`` seconds later; return the files that it left and what it printed."""
    with start(folder) as fit:
        shown = await_plan(fit) if after_plan else b""
        time.sleep(delay)
        fit.send_signal(signal.SIGKILL)
        shown += fit.stdout.read()
    left = {path.name for path in folder.iterdir()} - {"domain.toml", "table.csv"}
    return left, shown.decode()


def kill_many(tmp_path, count):
    """Kill fits at random moments; return whether each left its publication."""
    rng = np.random.default_rng(2)
    places = [tmp_path / str(attempt) for attempt in range(count + 1)]
    for place in places:
        place.mkdir()
    starting, working = times(places.pop())
    published = []
    for attempt, place in enumerate(places):
        # Most of the time Python is starting, so three in four kills wait until that is over.
        after_plan = attempt % 4 > 0
        delay = rng.uniform(0.0, 1.5 * working if after_plan else starting)
        left, shown = kill(place, delay, after_plan=after_plan)
        # A complete file may still have its temporary name.
        assert all(name == "p.json" or name.startswith(".expost-") for name in left)
        for name in left:
            expost.Publication.load(place / name)
            assert "Will spend   epsilon 1 at delta 1e-06" in shown
        published.append("p.json" in left)
    return published


@pytest.mark.long
def test_a_killed_fit_leaves_a_whole_file_or_none(tmp_path):
    kill_many(tmp_path, 2)


@pytest.mark.slow
def test_fifty_killed_fits_leave_whole_files_or_none(tmp_path):
    assert set(kill_many(tmp_path, 50)) == {True, False}
