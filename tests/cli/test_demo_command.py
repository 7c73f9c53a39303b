"""``expost demo`` on bundled data."""

import csv
import json
from pathlib import Path

import pytest
from ward import fail_to_write, refused, run

import expost
from expost.cli import demonstration
from expost.cli.demonstration import bundled_domain, domain_file
from expost.page import render

ROOT = Path(__file__).parent.parent.parent


def test_the_demo_writes_and_lists_its_files(tmp_path):
    pytest.importorskip("matplotlib")
    result = run("demo", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "whole publication: ε = 1 at δ = 1e-06" in result.stdout
    assert "half of them (median)" in result.stdout
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    private = {f"private/{name}" for name in ("table.csv", "losses.csv", "losses.png", "intervals.png")}
    assert written == {"domain.toml", "publication.json", "report.html"} | private
    story = result.stdout[result.stdout.index("What to open") :]
    assert all(str(tmp_path / name) in story for name in written)
    publication = expost.Publication.load(tmp_path / "publication.json")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render([publication])
    lines = (tmp_path / "private" / "losses.csv").read_text().splitlines()
    assert lines[0].startswith("PRIVATE")
    rows = list(csv.DictReader(lines))
    assert len(rows) == 569
    assert all(0.0 <= float(row["ex_post_loss"]) < 1.0 for row in rows)


@pytest.mark.long
def test_the_other_commands_read_the_files_of_the_demo(tmp_path):
    assert run("demo", "--out", tmp_path).exit_code == 0
    again = run("losses", tmp_path / "publication.json", tmp_path / "private" / "table.csv", "--json")
    lines = (tmp_path / "private" / "losses.csv").read_text().splitlines()[1:]
    kept = [float(line.split(",")[1]) for line in lines]
    assert json.loads(again.stdout)["losses"] == pytest.approx(kept, rel=1e-6, abs=1e-12)
    assert run("plan", tmp_path / "domain.toml").exit_code == 0


def test_without_matplotlib_the_demo_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(demonstration, "find_spec", lambda name: None)
    result = run("demo", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "pip install 'expost[figures]'" in result.stderr
    assert not list(tmp_path.rglob("*.png"))


def test_the_domain_file_in_the_examples_is_the_one_of_the_demo():
    text = (ROOT / "examples" / "breast_cancer" / "domain.toml").read_text(encoding="utf-8")
    assert text == domain_file()
    assert expost.Domain.from_toml(text) == bundled_domain()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epsilon", "0"], "`epsilon` must be"),
        (["--epsilon", "nan"], "`epsilon` must be"),
        (["--delta", "1"], "`delta` must be"),
    ],
)
def test_a_bad_budget_is_refused_with_one_sentence(arguments, words, tmp_path):
    assert refused(run("demo", "--out", tmp_path, *arguments), words)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert refused(run("demo", "--out", tmp_path / "file"), "Choose another place")


@pytest.mark.parametrize("trouble", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_full_disk_or_ctrl_c_leaves_only_the_old_file(trouble, tmp_path, monkeypatch):
    target = tmp_path / "private" / "losses.csv"
    target.parent.mkdir()
    target.write_text("the old file")
    fail_to_write(monkeypatch, trouble)
    words = "No space left" if isinstance(trouble, OSError) else "stopped before the end"
    assert refused(run("demo", "--out", tmp_path, "--force"), words)
    assert target.read_text() == "the old file"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [target]


def test_ctrl_c_while_fitting_prints_one_sentence(tmp_path, monkeypatch):
    def interrupted(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr("expost.cli.demonstration.demonstrate", interrupted)
    assert refused(run("demo", "--out", tmp_path), "stopped before the end")
    assert not list(tmp_path.iterdir())
