"""Every measured figure in the README and the documents is that of the committed files of numbers."""

import json
import re
from pathlib import Path

import pytest

from docs import quoted

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("page", quoted.PAGES, ids=lambda page: page.name)
def test_the_pages_are_up_to_date(page):
    text = page.read_text(encoding="utf-8")
    assert quoted.fill(text) == text, "run python -m docs.quoted"


def test_every_passage_is_used_and_not_empty():
    pages = [page.read_text(encoding="utf-8") for page in quoted.PAGES]
    assert {name for text in pages for name in quoted.names(text)} == set(quoted.PASSAGES)
    for source, write in quoted.PASSAGES.values():
        assert re.search(r"\d", write(quoted.load(source)))


def test_the_paper_is_quoted_from_its_full_run():
    papers = {source: path for source, (path, _) in quoted.SOURCES.items() if path.startswith("papers/")}
    assert papers
    for source, path in papers.items():
        assert quoted.load(source)["effort"] == "full", path


def test_files_of_numbers_do_not_describe_the_machine():
    found = list((ROOT / "bench" / "results").glob("*.json"))
    assert found
    for path in found:
        assert path.relative_to(ROOT).as_posix() in {file for file, _ in quoted.SOURCES.values()}
        assert not re.search(r"seconds|date|host|version|/home|/tmp", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- n:unheard-of -->1<!-- /n -->", "no passage called 'unheard-of'"),
        ("<!-- n:peers-short -->20", "has no partner"),
        ("<!-- numbers: peers-auc -->\n| 1 |", "has no partner"),
        ("20<!-- /n -->", "has no partner"),
        ("<!-- numbers: -->\n<!-- /numbers -->", "has no partner"),
        ("<!-- number: peers-auc -->\n| 1 |", "has no partner"),
        ("<!-- n:peers-short -->20 <!-- n:peers-short -->20<!-- /n -->", "does not end before"),
        ("<!-- numbers: peers-auc -->\n<!-- n:peers-short -->\n<!-- /numbers -->", "does not end before"),
    ],
)
def test_broken_marks_are_named(text, message):
    with pytest.raises(quoted.NumbersError, match=message):
        quoted.fill(text)


def test_an_old_figure_is_replaced_and_nothing_else():
    text = "It is <!-- n:true-quantile -->old<!-- /n --> in truth.\n"
    quantile = quoted.load("errata")["numbers"]["quantile"]["true_quantile"]
    assert quoted.fill(text) == f"It is <!-- n:true-quantile -->{quantile:.2f}<!-- /n --> in truth.\n"


def test_a_missing_file_is_named_with_the_command_that_writes_it(tmp_path):
    with pytest.raises(quoted.NumbersError) as error:
        quoted.fill("<!-- n:classical-noise --><!-- /n -->", tmp_path)
    assert str(error.value) == (
        "papers/redberg_wang_2021/results/02_regularization.json is missing; "
        "`python -m papers.redberg_wang_2021 --only 02` writes it."
    )


def test_statements_that_the_numbers_refute_are_not_written(tmp_path):
    document = quoted.load("peers")
    assert document["draws"] >= 20
    path = tmp_path / quoted.SOURCES["peers"][0]
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(document | {"draws": 19}), encoding="utf-8")
    with pytest.raises(quoted.NumbersError, match="no longer show that every median is over at least 20"):
        quoted.fill("<!-- n:peers-short --><!-- /n -->", tmp_path)


def test_no_private_model_is_better_than_one_in_bold():
    document = quoted.load("peers")
    for figure, largest in (("auc", True), ("r2", True), ("log_loss", False), ("calibration", False)):
        for row in quoted.peers.chosen(document, figure):
            peers = [peer for peer in quoted.peers.TITLES if peer in row and peer != "plain"]
            bold = [peer for peer in peers if "**" in quoted.peers.cell(row, peer, figure, largest=largest)]
            best = (max if largest else min)(row[peer][figure] for peer in peers)
            assert bold
            assert all(abs(row[peer][figure] - best) <= 0.001 for peer in bold)
