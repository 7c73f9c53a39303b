"""A small ward of patients in files, and functions to run commands on them."""

import csv
import os

import numpy as np
from typer.testing import CliRunner

from expost.cli import app

NAMES = ["age", "ward", "smoker", "ill"]
DOMAIN = """
[[features]]
name = "age"
kind = "number"
low = 0.0
high = 100.0

[[features]]
name = "ward"
kind = "category"
categories = ["north", "south"]

[[features]]
name = "smoker"
kind = "yes_no"

[label]
name = "ill"
kind = "classes"
classes = ["no", "yes"]
"""


def run(*arguments, **options):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def patients(count=200):
    rng = np.random.default_rng(7)
    columns = (
        rng.integers(1, 99, count).tolist(),
        rng.choice(["north", "south"], count).tolist(),
        rng.choice(["yes", "no"], count).tolist(),
        rng.choice(["yes", "no"], count).tolist(),
    )
    return [list(row) for row in zip(*columns, strict=True)]


def write_csv(path, rows, names=NAMES):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])
    return path


def ward(folder, rows=None):
    """Write a domain file and a table; return their paths."""
    (folder / "domain.toml").write_text(DOMAIN)
    return folder / "domain.toml", write_csv(folder / "table.csv", patients() if rows is None else rows)


def fail_to_write(monkeypatch, trouble):
    """Raise ``trouble`` when a file that was written is synced to the disk."""

    def fail(_):
        raise trouble

    monkeypatch.setattr(os, "fsync", fail)


def refused(result, words):
    """Check that a command was refused with one sentence that holds these words."""
    assert result.exit_code == 1, result.output
    assert words in result.stderr, result.stderr
    assert result.stderr.startswith("expost: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output
    return True
