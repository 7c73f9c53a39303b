"""Fits that are counted on the command line, and what `expost ledger` shows of them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from ward import fail_to_write, refused, run, ward

import expost
from expost.exceptions import LedgerError
from expost.ledger import Account


def opened(folder, epsilon=3):
    book = folder / "ledger.db"
    result = run("ledger", book, "--open", "patients", "--epsilon", epsilon, "--delta", 1e-6)
    assert result.exit_code == 0, result.output
    return book


def fit(folder, *arguments, name="p.json"):
    counted = ["--ledger", folder / "ledger.db", "--account", "patients"]
    return run("fit", folder / "domain.toml", folder / "table.csv", "-o", folder / name, *counted, *arguments)


def test_fits_are_counted_and_refused_when_the_budget_is_used_up(tmp_path):
    ward(tmp_path)
    book = opened(tmp_path, epsilon=1.6)
    result = fit(tmp_path, "--note", "of 2024")
    assert result.exit_code == 0, result.output
    assert (
        "in the account patients: epsilon 0 is spent,\n             1 after this fit, of 1.6 at delta 1e-06"
        in result.stdout
    )
    assert "one by one" not in result.stdout
    second = fit(tmp_path, name="q.json")
    assert second.exit_code == 0
    together = expost.Ledger(book).account("patients").spent.epsilon_at(1e-6)
    assert f"epsilon 1 is spent,\n             {together:.4g} after this fit, of 1.6" in second.stdout
    assert "(fits cost less together)" in second.stdout
    assert together < 1.6 < 2.0
    assert refused(fit(tmp_path, name="r.json"), "Nothing was spent.")
    assert not (tmp_path / "r.json").exists()
    first, second = expost.Ledger(book).account("patients").entries
    assert (first.note, second.note) == ("of 2024", "q.json")
    assert first.sha256 == expost.Publication.load(tmp_path / "p.json").sha256
    assert {first.state, second.state} == {"finished"}


@pytest.mark.long
def test_what_was_published_before_is_counted_once(tmp_path, monkeypatch):
    """An entered file counts as its fit would have, and one that breaks the cap is refused."""
    monkeypatch.chdir(tmp_path)
    domain, table = ward(tmp_path)
    shown = run("fit", domain, table, "-o", "old.json", "--epsilon", "0.5")
    (offered,) = [line.strip() for line in shown.stdout.splitlines() if "--enter" in line]
    assert offered == "expost ledger ledger.db --open table --epsilon 1.5 --delta 1e-06 --enter old.json"
    result = run(*offered.split()[1:])
    assert result.exit_code == 0, result.output
    assert "Counted old.json in the account table." in result.stdout
    account = expost.Ledger("ledger.db").account("table")
    (entry,) = account.entries
    read = expost.Publication.load("old.json")
    assert (entry.note, entry.state, entry.sha256) == ("old.json", "finished", read.sha256)
    assert account.spent.epsilon_at(1e-6) == expost.compose([read.release.plan]).epsilon_at(1e-6)
    assert refused(
        run("ledger", "ledger.db", "--enter", "old.json"), "is counted in the account 'table' already"
    )
    assert run("fit", domain, table, "-o", "large.json", "--epsilon", "4").exit_code == 0
    assert refused(run("ledger", "ledger.db", "--enter", "large.json"), "So this cap does not hold")
    assert len(account.entries) == 1
    assert run("ledger", "ledger.db", "--open", "b", "--epsilon", "9", "--delta", "1e-6").exit_code == 0
    assert refused(run("ledger", "ledger.db", "--enter", "large.json"), "the ledger has 'table', 'b'")
    assert run("ledger", "ledger.db", "--enter", "large.json", "--account", "b").exit_code == 0
    assert len(expost.Ledger("ledger.db").account("b").entries) == 1


@pytest.mark.long
def test_several_publications_are_counted_all_or_none(tmp_path):
    domain, table = ward(tmp_path)
    files = [tmp_path / name for name in ("a.json", "b.json", "large.json")]
    for file, epsilon in zip(files, (0.5, 1, 4), strict=True):
        assert run("fit", domain, table, "-o", file, "--epsilon", epsilon).exit_code == 0
    book = opened(tmp_path)

    def entered(*some):
        return run("ledger", book, *(word for file in some for word in ("--enter", file)))

    account = expost.Ledger(book).account("patients")
    assert refused(entered(files[0], files[2]), "So this cap does not hold")
    copy = tmp_path / "copy.json"
    copy.write_bytes(files[0].read_bytes())
    assert refused(entered(files[0], copy), "or given twice")
    assert account.entries == ()
    result = entered(*files[:2])
    assert result.exit_code == 0, result.output
    assert result.stdout.count("Counted") == 2
    assert [(entry.note, entry.state) for entry in account.entries] == [
        ("a.json", "finished"),
        ("b.json", "finished"),
    ]
    assert [entry.sha256 for entry in account.entries] == [
        expost.Publication.load(file).sha256 for file in files[:2]
    ]
    assert refused(entered(files[1]), "is counted in the account 'patients' already")


def test_notes_are_not_broken_inside_a_word(tmp_path):
    ward(tmp_path)
    opened(tmp_path)
    fit(tmp_path, "--note", "hospital records of winter")
    shown = run("ledger", tmp_path / "ledger.db", env={"COLUMNS": "80"}).stdout
    words = shown.split()
    assert {"hospital", "records", "winter"} <= set(words)


def test_a_dry_run_enters_nothing(tmp_path):
    ward(tmp_path)
    book = opened(tmp_path)
    assert fit(tmp_path, "--dry-run").exit_code == 0
    assert expost.Ledger(book).account("patients").entries == ()


def test_whoever_stops_a_fit_learns_that_it_was_counted(tmp_path, monkeypatch):
    ward(tmp_path)
    book = opened(tmp_path)
    fail_to_write(monkeypatch, KeyboardInterrupt())
    result = fit(tmp_path)
    assert result.exit_code == 1
    assert "the ledger counts this fit all the same" in result.stderr
    assert "stopped before the end" in result.stderr
    assert [entry.state for entry in expost.Ledger(book).account("patients").entries] == ["unfinished"]


def stopped_after(enter, *, then):
    """Enter as ever, and be stopped before anybody knows the number of the entry."""

    def entering(*arguments, **options):
        enter(*arguments, **options)
        then()
        raise KeyboardInterrupt

    return entering


def test_whoever_stops_a_fit_just_after_its_entry_learns_that_it_was_counted(tmp_path, monkeypatch):
    ward(tmp_path)
    book = opened(tmp_path)
    monkeypatch.setattr(Account, "enter_all", stopped_after(Account.enter_all, then=lambda: None))
    result = fit(tmp_path)
    assert result.exit_code == 1
    assert "the ledger counts this fit all the same" in result.stderr
    assert "stopped before the end" in result.stderr
    assert len(expost.Ledger(book).account("patients").entries) == 1


def test_a_ledger_that_cannot_be_read_any_more_hides_no_other_error(tmp_path, monkeypatch):
    ward(tmp_path)
    gone = opened(tmp_path).unlink
    monkeypatch.setattr(Account, "enter_all", stopped_after(Account.enter_all, then=gone))
    result = fit(tmp_path)
    assert result.exit_code == 1
    assert "the ledger cannot be read, and may count this fit all the same" in result.stderr
    assert "stopped before the end" in result.stderr


def test_a_fit_that_another_one_leaves_nothing_for_is_not_said_to_be_counted(tmp_path, monkeypatch):
    ward(tmp_path)
    book = opened(tmp_path)
    enter, plan = Account.enter_all, expost.calibrate(loss="logistic", epsilon=2.99, delta=9e-7)

    def too_late(self, *arguments, **options):
        enter(self, [("theirs", plan)], began=options["began"])
        return enter(self, *arguments, **options)

    monkeypatch.setattr(Account, "enter_all", too_late)
    result = fit(tmp_path)
    assert result.exit_code == 1
    assert "Nothing was spent" in result.stderr
    assert "all the same" not in result.stderr
    assert len(expost.Ledger(book).account("patients").entries) == 1


def test_json_says_what_is_left(tmp_path):
    ward(tmp_path)
    opened(tmp_path)
    printed = json.loads(fit(tmp_path, "--json").stdout)
    shown = json.loads(run("ledger", tmp_path / "ledger.db", "--json").stdout)
    (account,) = shown["accounts"]
    book = expost.Ledger(tmp_path / "ledger.db").account("patients")
    assert printed["left"] == account["left"] == 3.0 - book.spent.epsilon_at(1e-6)
    assert account["left"] == pytest.approx(2.0, abs=1e-3)
    assert printed["sha256"] == account["entries"][0]["sha256"]
    assert account["entries"][0]["plan"]["loss"] == "logistic"
    assert len(shown["sha256"]) == 64


def test_accounts_entries_and_a_chart_are_shown(tmp_path):
    ward(tmp_path)
    opened(tmp_path)
    fit(tmp_path, "--note", "[red]2024[/red]")
    shown = run("ledger", tmp_path / "ledger.db", env={"COLUMNS": "200"}).stdout
    assert "patients: ε = 3 at δ = 1e-06 for everything ever published" in shown
    assert "[red]2024[/red]" in shown
    assert "finished" in shown
    assert "█" in shown
    assert "1 publication; left: ε = 2" in shown


def test_an_adaptive_account_is_opened_and_shown_as_one(tmp_path):
    book, cap = tmp_path / "ledger.db", ("--epsilon", "3", "--delta", "1e-6")
    expost.Ledger(book).account("patients", epsilon=3.0, delta=1e-6)
    assert run("ledger", book, "--open", "pupils", *cap, "--adaptive").exit_code == 0
    assert expost.Ledger(book).account("pupils").adaptive
    shown = run("ledger", book, env={"COLUMNS": "200"}).stdout
    ever = "ε = 3 at δ = 1e-06 for everything ever published"
    assert f"pupils: {ever}; plans may be chosen from what was published\n" in shown
    assert f"patients: {ever}\n" in shown
    accounts = json.loads(run("ledger", book, "--json").stdout)["accounts"]
    assert [account["adaptive"] for account in accounts] == [False, True]
    assert refused(run("ledger", book, "--open", "patients", *cap, "--adaptive"), "is not adaptive")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ledger", "ledger.db", "--adaptive"], "add --open NAME"),
        (["ledger", "no.db"], "no.db --open NAME --epsilon 3 --delta 1e-6"),
        (["ledger", "ledger.db", "--open", "a"], "a cap of two numbers; add --epsilon"),
        (["ledger", "ledger.db", "--open", "a", "--epsilon", "1"], "a cap of two numbers; add --delta"),
        (["ledger", "ledger.db", "--epsilon", "1"], "add --open NAME"),
        (["fit", "domain.toml", "table.csv", "--ledger", "ledger.db"], "add --account: a ledger and one"),
        (["fit", "domain.toml", "table.csv", "--account", "patients"], "add --ledger: a ledger and one"),
        (
            ["fit", "domain.toml", "table.csv", "--ledger", "ledger.db", "--account", "pupils"],
            "it has 'patients'. Open it: expost ledger",
        ),
        (
            [
                "fit",
                "domain.toml",
                "table.csv",
                "-o",
                "ledger.db",
                "--ledger",
                "ledger.db",
                "--account",
                "patients",
            ],
            "is an input of this command",
        ),
    ],
)
def test_what_cannot_be_counted_is_refused(tmp_path, monkeypatch, arguments, words):
    ward(tmp_path)
    opened(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert refused(run(*arguments), words)
    assert not (tmp_path / "publication.json").exists()


def test_a_ledger_that_cannot_be_finished_is_warned_of(tmp_path, monkeypatch):
    ward(tmp_path)
    book = opened(tmp_path)

    def full(*_, **__):
        raise LedgerError("cannot write it.")

    monkeypatch.setattr(Account, "finish", full)
    result = fit(tmp_path)
    assert result.exit_code == 0
    assert "the fit is counted, but its entry stays unfinished: cannot write it." in result.stderr
    assert [entry.state for entry in expost.Ledger(book).account("patients").entries] == ["unfinished"]


def kill_many(tmp_path, count):
    """Kill counted fits at random moments; return the entries and the number of publications."""
    rng = np.random.default_rng(5)
    ward(tmp_path)
    book = opened(tmp_path, epsilon=100)
    account = expost.Ledger(book).account("patients")
    source = str(Path(expost.__file__).parent.parent)

    def start(name):
        arguments = [tmp_path / "domain.toml", tmp_path / "table.csv", "-o", tmp_path / name]
        return subprocess.Popen(
            [sys.executable, "-m", "expost", "fit", *arguments, "--ledger", book, "--account", "patients"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": source},
        )

    def await_plan(fit):
        while line := fit.stdout.readline():
            if b"Will count" in line:
                return
        raise AssertionError("the fit ended before it said where it would be counted")

    with start("whole.json") as fit:
        await_plan(fit)
        told = time.monotonic()
        fit.stdout.read()
    working = time.monotonic() - told
    known = set()
    for attempt in range(count):
        with start(f"{attempt}.json") as fit:
            await_plan(fit)  # before that no noise is drawn
            if attempt % 3:
                time.sleep(rng.uniform(0.0, 1.2 * working))
            else:  # just when it is entered, however busy the machine is
                while len(account.entries) == len(known) + (attempt == 0) and fit.poll() is None:
                    time.sleep(0.001)
            fit.send_signal(signal.SIGKILL)
        entries = account.entries  # the file is whole
        assert known <= {entry.number for entry in entries}  # and nothing was lost
        known = {entry.number for entry in entries}
        # Every publication has its entry, also one that still has its temporary name.
        files = [
            path for path in tmp_path.iterdir() if path.suffix == ".json" or path.name.startswith(".expost-")
        ]
        assert len(files) <= len(entries)
        notes = [entry.note for entry in entries]
        assert all(path.name in notes for path in files if path.suffix == ".json")
        hashes = {expost.Publication.load(path).sha256 for path in files}
        assert {entry.sha256 for entry in entries if entry.state == "finished"} <= hashes
    return account.entries


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_thirty_killed_fits_lose_no_entry(tmp_path):
    states = {entry.state for entry in kill_many(tmp_path, 30)}
    assert states == {"finished", "unfinished"}
