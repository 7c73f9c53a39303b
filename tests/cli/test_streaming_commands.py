"""Figures of many records go to a file as they are computed, on this machine or on a cluster."""

import json
import os
import sys

import numpy as np
import pandas as pd
import pytest
from ward import refused, run, ward

import expost
from expost.cli.display import Tally


@pytest.fixture
def published(tmp_path):
    domain, table = ward(tmp_path)
    publication = tmp_path / "p.json"
    assert run("fit", domain, table, "-o", publication, "--report", "leverage").exit_code == 0
    return publication, table


def read(path):
    return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_bounds_are_written_to_a_file_that_only_the_owner_reads(published, tmp_path, suffix):
    publication, table = published
    output = tmp_path / f"bounds{suffix}"
    result = run("bounds", publication, table, "-o", output, "--member", "yes", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(run("bounds", publication, table, "--member", "yes", "--json").stdout)
    written = read(output)
    assert list(written.columns) == ["record", "lower", "upper", "report_cost", "total"]
    assert written["record"].tolist() == list(range(1, len(written) + 1))  # as on the screen
    for name in ("lower", "upper", "report_cost", "total"):
        np.testing.assert_allclose(written[name], told["publications"][0][name], rtol=1e-12)
    assert os.stat(output).st_mode & 0o077 == 0
    assert json.loads(result.stdout)["total"] is None
    assert refused(run("bounds", publication, table, "-o", output), "exists")
    assert refused(run("bounds", publication, table, "-o", table, "--force"), "is an input of this command")
    assert refused(run("bounds", publication, table, "-o", tmp_path / "b.txt"), "must be .csv or .parquet")


def test_bounds_of_several_publications_are_numbered_and_have_a_total(published, tmp_path):
    publication, table = published
    other = tmp_path / "q.json"
    assert run("fit", tmp_path / "domain.toml", table, "-o", other).exit_code == 0
    output = tmp_path / "bounds.parquet"
    result = run("bounds", publication, other, table, "-o", output)
    assert result.exit_code == 0, result.output
    written = read(output)
    both = [expost.Publication.load(path) for path in (publication, other)]
    np.testing.assert_allclose(written["total"], expost.total(both, table), rtol=1e-12)
    assert np.all(written["total"] < written["total_1"] + written["total_2"])
    assert "Written:" in result.stdout


def test_too_many_records_leave_no_file(published, tmp_path):
    publication, table = published
    output = tmp_path / "bounds.csv"
    assert refused(run("bounds", publication, table, "-o", output, "--simultaneous", "2"), "`simultaneous`")
    assert not output.exists()


def test_losses_of_a_file_are_those_that_are_told(published, tmp_path):
    publication, table = published
    output = tmp_path / "private.parquet"
    told = json.loads(run("losses", publication, table, "--json").stdout)
    kept = json.loads(run("losses", publication, table, "-o", output, "--json").stdout)
    np.testing.assert_array_equal(read(output)["ex_post_loss"], told["losses"])
    assert kept["losses"] is None
    assert kept["quantiles"] == told["quantiles"]
    assert told["quantiles"]["1"] == max(told["losses"])


def test_a_tally_rounds_quantiles_up_by_less_than_a_thousandth():
    losses = np.random.default_rng(0).lognormal(-3.0, 2.0, 10_000)
    tally = Tally()
    assert sum(len(part) for part in tally.counted(np.array_split(losses, 7))) == 10_000
    for share in (0.5, 0.9, 0.99):
        exact = np.quantile(losses, share, method="inverted_cdf")
        assert exact <= tally.quantile(share) <= exact * 1.001
    assert tally.quantile(1.0) == tally.largest == losses.max()
    counts, edges = tally.histogram(12)
    assert counts.sum() == 10_000
    # A loss may be in the next bin where it is within a thousandth of the edge.
    expected = np.histogram(losses, bins=edges)[0]
    assert np.abs(counts - expected).max() <= 10


@pytest.mark.parametrize("losses", [[0.0], [0.0, 1e-300], [np.inf, 0.1], [1e9]])
def test_a_tally_takes_every_loss(losses):
    tally = Tally()
    tally.add(np.array(losses))
    assert tally.quantile(1.0) == max(losses)
    assert tally.histogram(12)[0].sum() == len(losses)


def test_a_cluster_that_is_not_there_is_named(published):
    publication, table = published
    said = refused(run("losses", publication, table, "--dask", "nowhere"), "no Dask scheduler at 'nowhere'")
    assert said


def test_a_missing_extra_is_named(published, monkeypatch):
    publication, table = published
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = run("bounds", publication, table, "--dask", "tcp://127.0.0.1:1")
    assert refused(result, "pip install 'expost[dask]'")


def test_nothing_is_written_among_the_files_of_a_table(published, tmp_path):
    publication, table = published
    folder = tmp_path / "table"
    folder.mkdir()
    table.rename(folder / "part.csv")
    for arguments in (
        ("losses", publication, folder, "-o", folder / "private.csv"),
        ("bounds", publication, folder, "-o", folder / "bounds.csv"),
        ("fit", tmp_path / "domain.toml", folder, "-o", folder / "p.json"),
    ):
        assert refused(run(*arguments), "would lie among the files of the table")
    assert [path.name for path in folder.iterdir()] == ["part.csv"]
