"""The command line, as a person meets it."""

import csv
import os

import pytest
from typer.testing import CliRunner

from expost import cli
from expost.cli import app


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_the_demo_shows_the_plan_and_the_losses_and_writes_them(tmp_path):
    result = run("demo", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "whole publication: ε = 1 at δ = 1e-06" in result.output
    assert "median" in result.output
    lines = (tmp_path / "private" / "losses.csv").read_text().splitlines()
    assert lines[0].startswith("# PRIVATE")
    rows = list(csv.DictReader(lines[1:]))
    assert len(rows) == 569
    assert all(0.0 <= float(row["ex_post_loss"]) < 1.0 for row in rows)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epsilon", "0"], "`epsilon` must be"),
        (["--epsilon", "nan"], "`epsilon` must be"),
        (["--delta", "1"], "`delta` must be"),
    ],
)
def test_a_bad_budget_is_refused_with_one_sentence(arguments, words, tmp_path):
    result = run("demo", "--out", str(tmp_path), *arguments)
    assert result.exit_code == 1
    assert words in result.stderr
    assert "Traceback" not in result.output
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way")
    result = run("demo", "--out", str(tmp_path / "file"))
    assert result.exit_code == 1
    assert "Choose another place" in result.stderr


@pytest.mark.parametrize("trouble", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_full_disk_or_ctrl_c_leaves_the_old_file_and_no_half_one(trouble, tmp_path, monkeypatch):
    target = tmp_path / "private" / "losses.csv"
    target.parent.mkdir()
    target.write_text("the old file")

    def fail(_):
        raise trouble

    monkeypatch.setattr(os, "fsync", fail)
    result = run("demo", "--out", str(tmp_path))
    assert result.exit_code == 1
    assert result.stderr.startswith("expost: ")
    assert "Traceback" not in result.output
    assert target.read_text() == "the old file"
    assert [path.name for path in target.parent.iterdir()] == ["losses.csv"]


def test_ctrl_c_while_fitting_is_one_sentence(tmp_path, monkeypatch):
    def interrupted(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "demonstrate", interrupted)
    result = run("demo", "--out", str(tmp_path))
    assert result.exit_code == 1
    assert "stopped before the end" in result.stderr
    assert not list(tmp_path.iterdir())


def test_wrong_usage_is_status_two():
    assert run("demo", "--nope").exit_code == 2
    assert run("unknown").exit_code == 2


def test_help_has_an_example():
    result = run("demo", "--help")
    assert result.exit_code == 0
    assert "Example: expost demo" in result.output
