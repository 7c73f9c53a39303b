"""The reader's commands: bounds and page."""

import json

import numpy as np
import pandas as pd
import pytest
from publications import X, Y, published
from ward import refused, run, ward, write_csv

import expost
from expost.page import render


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two publications of one table, and a file of three records."""
    tmp_path = tmp_path_factory.mktemp("files")
    domain, table = ward(tmp_path)
    places = [tmp_path / "first.json", tmp_path / "second.json"]
    for place, report in zip(places, ("leverage", "dependent"), strict=True):
        assert run("fit", domain, table, "-o", place, "--report", report).exit_code == 0
    rows = [[40, "north", "no", "yes"], [140, "south", "yes", "no"], [0, "south", "no", "no"]]
    return [*places, write_csv(tmp_path / "records.csv", rows)]


def expected(place, records, **options):
    frame = pd.read_csv(records)
    return expost.Publication.load(place).bounds(frame, frame["ill"], **options)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], {"member": None, "simultaneous": None, "confidence": 0.95}),
        (["--member", "yes", "--confidence", "0.99"], {"member": True, "confidence": 0.99}),
        (["--member", "no", "--simultaneous", "all"], {"member": False, "simultaneous": "all"}),
        (["--simultaneous", "3"], {"simultaneous": 3}),
    ],
)
def test_bounds_are_those_of_the_library(files, arguments, options):
    first, _, records = files
    told = json.loads(run("bounds", first, records, "--json", *arguments).stdout)
    bounds = expected(first, records, **options)
    for name in ("lower", "upper", "report_cost", "total"):
        np.testing.assert_allclose(told["publications"][0][name], getattr(bounds, name), rtol=1e-12)
    np.testing.assert_allclose(told["total"], bounds.total, rtol=1e-12)
    shown = run("bounds", first, records, *arguments)
    assert shown.exit_code == 0
    assert f"{bounds.total[1]:.4f}" in shown.stdout


def test_several_publications_share_the_confidence_and_have_one_total(files):
    first, second, records = files
    told = json.loads(run("bounds", first, second, records, "--json", "--confidence", "0.9").stdout)
    parts = [expected(place, records, confidence=0.95) for place in (first, second)]
    for told_of_one, part in zip(told["publications"], parts, strict=True):
        np.testing.assert_allclose(told_of_one["total"], part.total, rtol=1e-9)
    frame, publications = pd.read_csv(records), [expost.Publication.load(place) for place in (first, second)]
    together = expost.total(publications, frame, frame["ill"], confidence=0.9)
    np.testing.assert_allclose(told["total"], together, rtol=1e-9)
    assert np.all(together < 1.2 * (parts[0].total + parts[1].total))
    composed = expost.compose([one.release.plan for one in publications]).epsilon_at(2e-6)
    assert told["promised"] == composed < 2.0
    shown = run("bounds", first, second, records, "--confidence", "0.9")
    assert "all" in shown.stdout
    assert f"{told['total'][0]:.4f}" in shown.stdout


def test_a_wallet_takes_the_place_of_the_total(files, tmp_path):
    first, second, records = files
    asked = ("bounds", first, second, records, "--wallet", "--member", "yes")
    told = json.loads(run(*asked, "--json").stdout)
    frame, publications = pd.read_csv(records), [expost.Publication.load(place) for place in (first, second)]
    np.testing.assert_allclose(told["wallet"], expost.wallet(publications, frame, frame["ill"]), rtol=1e-12)
    assert told["total"] is None
    shown = run(*asked, "-o", tmp_path / "bounds.csv", env={"COLUMNS": "160"})
    assert "however" in shown.stdout  # of "all, however chosen", which a narrow column breaks
    assert f"{told['wallet'][0]:.4f}" in shown.stdout
    assert "raised the odds that a member is in the table" in " ".join(shown.stdout.split())
    np.testing.assert_allclose(pd.read_csv(tmp_path / "bounds.csv")["wallet"], told["wallet"], rtol=1e-6)
    alone = json.loads(run("bounds", first, records, "--wallet", "--member", "yes", "--json").stdout)
    np.testing.assert_allclose(alone["wallet"], expost.wallet(publications[:1], frame, frame["ill"]))
    assert "--wallet has one" in " ".join(run("bounds", first, second, records).stdout.split())
    assert refused(run(*asked[:-2]), "`member` must be yes with `--wallet`")
    assert refused(run(*asked, "--simultaneous", "all"), "no wallet covers every record")


def test_columns_may_come_in_any_order_among_others(files, tmp_path):
    first, _, records = files
    frame = pd.read_csv(records)
    shuffled = frame[frame.columns[::-1]].assign(extra="x")
    shuffled.to_csv(tmp_path / "shuffled.csv", index=False)
    one, other = (
        run("bounds", first, place, "--json").stdout for place in (records, tmp_path / "shuffled.csv")
    )
    assert json.loads(one)["total"] == json.loads(other)["total"]


def test_a_publication_without_a_domain_takes_the_columns_in_order(tmp_path):
    published("leverage").save(tmp_path / "p.json")
    table = write_csv(tmp_path / "t.csv", np.column_stack([X, Y]).tolist(), ["a", "b", "y"])
    result = run("bounds", tmp_path / "p.json", table, "--json")
    np.testing.assert_allclose(json.loads(result.stdout)["total"], published("leverage").bounds(X, Y).total)
    assert "seeded noise" in result.stderr
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=5, report="leverage").fit(X, Y)
    told = json.loads(run("losses", tmp_path / "p.json", table, "--json").stdout)
    np.testing.assert_allclose(told["losses"], model.ex_post_losses(X, Y), rtol=1e-7, atol=1e-12)
    wrong = write_csv(tmp_path / "wrong.csv", [[1, 2, "maybe"]], ["a", "b", "y"])
    assert refused(run("bounds", tmp_path / "p.json", wrong), "outside the declared classes")


def test_many_records_are_cut_on_screen_and_complete_in_json(files, tmp_path):
    many = write_csv(tmp_path / "many.csv", [[40, "north", "no", "yes"]] * 60)
    assert "20 more records" in run("bounds", files[0], many).stdout
    assert len(json.loads(run("bounds", files[0], many, "--json").stdout)["total"]) == 60


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--confidence", "1"], "`confidence` must be"),
        (["--confidence", "0"], "`confidence` must be"),
        (["--simultaneous", "0"], "`simultaneous` must be"),
        (["--simultaneous", "some"], "`simultaneous` must be"),
        (["--simultaneous", "2"], "records that are asked about; got simultaneous=2"),
    ],
)
def test_bad_options_are_refused(files, arguments, words):
    assert refused(run("bounds", files[0], files[2], *arguments), words)


@pytest.mark.long
def test_the_page_speaks_german(files, tmp_path):
    run("page", files[0], "-o", tmp_path / "report.html", "--language", "de")
    assert '<html lang="de">' in (tmp_path / "report.html").read_text(encoding="utf-8")
    result = run("page", files[0], "-o", tmp_path / "other.html", "--language", "it")
    assert refused(result, "`language` must be one of en, de, fr, es")
    assert not (tmp_path / "other.html").exists()


@pytest.mark.long
def test_the_page_holds_every_publication(files, tmp_path):
    result = run("page", files[0], files[1], "-o", tmp_path / "report.html")
    assert result.exit_code == 0, result.output
    publications = [expost.Publication.load(place) for place in files[:2]]
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render(publications)
    assert str(tmp_path / "report.html") in result.stdout


def test_one_publication_is_not_counted_twice(files, tmp_path):
    publication, _, records = files
    assert refused(run("bounds", publication, publication, records), "a publication is given twice")
    page = run("page", publication, publication, "-o", tmp_path / "page.html")
    assert refused(page, "a publication is given twice")
