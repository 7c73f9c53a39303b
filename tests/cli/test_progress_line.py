"""Long work shows the pass, the rows that are left and a bar; nothing where there is no terminal."""

import io

import pandas as pd
import pytest
from rich.console import Console
from ward import patients, run, ward

from expost.cli import base


@pytest.fixture
def terminal(monkeypatch):
    """What a terminal of 80 columns would be sent on standard error."""
    sent = io.StringIO()
    console = Console(file=sent, force_terminal=True, width=80, color_system=None, legacy_windows=False)
    monkeypatch.setattr(base, "error_console", console)
    return sent


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_every_pass_of_a_fit_ends_with_no_row_left(suffix, tmp_path, monkeypatch):
    """The rows that are counted in a pass are those of the table, whoever reads them."""
    domain, table = ward(tmp_path, patients(5000))
    if suffix == "parquet":
        pd.read_csv(table).to_parquet(tmp_path / "table.parquet", row_group_size=700)
        table.unlink()
        table = tmp_path / "table.parquet"
    passes = []

    class Kept(base.Watch):
        def begin(self, total):
            passes.append((total, []))
            super().begin(total)

        def seen(self, rows, share=None):
            super().seen(rows, share)
            passes[-1][1].append((self.rows, self.left, self.share))

    monkeypatch.setattr(base, "Watch", Kept)
    options = ("-o", tmp_path / "p.json", "--losses", tmp_path / "private.csv")
    assert run("fit", domain, table, *options).exit_code == 0
    assert len(passes) >= 5
    assert all(told[-1] == (5000, 0, 1.0) for _, told in passes)
    totals = [total for total, _ in passes]
    assert totals[0] == (None if suffix == "csv" else 5000)
    assert set(totals[1:]) == {5000}
    passes.clear()
    run("check", domain, table)
    assert [told[-1] for _, told in passes] == [(5000, 0, 1.0)]


def test_the_line_says_what_is_left_and_goes_away(terminal):
    with base.show_progress("Reading") as shown:
        shown.watch.begin(None)
        shown.watch.seen(1500, 0.25)
        shown._bar.refresh()
        shown.step("Fitting", passes=6)
        shown.watch.begin(6000)
        shown.watch.seen(2000)
        shown._bar.refresh()
    text = terminal.getvalue()
    assert "Reading" in text
    assert "about 4,500 rows left" in text
    assert "pass 1 of about 6, 4,000 rows left" in text
    assert "2K" in text[-20:]  # the line is wiped


def test_nothing_is_shown_where_there_is_no_terminal(tmp_path):
    domain, table = ward(tmp_path)
    result = run("fit", domain, table, "-o", tmp_path / "p.json")
    assert result.stderr == ""
    assert "rows left" not in result.output
