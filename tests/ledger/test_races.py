"""Processes that race for the last of a budget: exactly as many win as the cap allows."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import expost
from expost.exceptions import BudgetError
from expost.ledger import Noted

# Fits as often as it is told, with one account.
RACER = """
import sys
import numpy as np, expost
from expost.exceptions import BudgetError
path, attempts = sys.argv[1], int(sys.argv[2])
account = expost.Ledger(path).account("patients")
X, y = np.array([[0.1, 0.9], [0.8, -0.2]] * 50), np.array([1, 0] * 50)
model = expost.LogisticRegression(epsilon=0.3, delta=1e-8, norm=1.0, classes=[0, 1])
won = 0
print("ready", flush=True)
sys.stdin.readline()
for _ in range(attempts):
    try:
        model.fit(X, y, account=account)
        won += 1
    except BudgetError as error:
        assert "Nothing was spent" in str(error)
print(won)
"""


def cap_for(count, plan, delta):
    """A cap that so many plans fit into, and one more does not."""
    low, high = (expost.compose([plan] * k).epsilon_at(delta) for k in (count, count + 1))
    return 0.5 * (low + high)


def race(tmp_path, *, processes, attempts, allowed):
    model = expost.LogisticRegression(epsilon=0.3, delta=1e-8, norm=1.0, classes=[0, 1])
    plan = model.fit([[0.1, 0.9], [0.8, -0.2]], [1, 0]).plan_
    account = expost.Ledger(tmp_path / "ledger.db").account(
        "patients", epsilon=cap_for(allowed, plan, 1e-6), delta=1e-6
    )
    environment = os.environ | {
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": str(Path(expost.__file__).parent.parent),
    }
    command = [sys.executable, "-W", "error", "-c", RACER, str(account.path), str(attempts)]
    racers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(processes)
    ]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = [int(racer.communicate()[0]) for racer in racers]
    assert sum(won) == allowed
    assert [entry.state for entry in account.entries] == ["finished"] * allowed
    assert len({entry.sha256 for entry in account.entries}) == allowed
    assert account.spent.delta_at(account.epsilon) <= account.delta


def test_threads_race_for_three_entries(tmp_path):
    """Each attempt has a connection of its own, so that threads race as processes do."""
    plan = expost.calibrate(loss="logistic", epsilon=0.3, delta=1e-8)
    account = expost.Ledger(tmp_path / "ledger.db").account(
        "patients", epsilon=cap_for(3, plan, 1e-6), delta=1e-6
    )
    start = threading.Barrier(8)

    def attempt(_):
        start.wait()
        try:
            return account.enter(plan)
        except BudgetError:
            return None

    with ThreadPoolExecutor(8) as threads:
        entered = [number for number in threads.map(attempt, range(8)) if number is not None]
    assert sorted(entered) == [entry.number for entry in account.entries]
    assert len(entered) == 3


def test_threads_that_fit_one_domain_count_its_choices_once(tmp_path):
    plan, choice = expost.calibrate(loss="logistic", epsilon=0.3, delta=1e-8), expost.ChoicePlan(0.1, 5)
    account = expost.Ledger(tmp_path / "ledger.db").account("patients", epsilon=3.0, delta=1e-6)
    choices = [Noted("low", choice, "a" * 64), Noted("high", choice, "b" * 64)]
    start = threading.Barrier(6)

    def attempt(_):
        start.wait()
        return account.enter_all([*choices, Noted("fit", plan)])

    with ThreadPoolExecutor(6) as threads:
        entered = list(threads.map(attempt, range(6)))
    assert sorted(entry.note for entry in account.entries) == [*["fit"] * 6, "high", "low"]
    assert len({tuple(numbers[:2]) for numbers in entered}) == 1


@pytest.mark.slow
def test_two_processes_race_for_three_fits(tmp_path):
    race(tmp_path, processes=2, attempts=2, allowed=3)


@pytest.mark.slow
def test_eight_processes_race_for_twenty_fits(tmp_path):
    race(tmp_path, processes=8, attempts=25, allowed=20)
