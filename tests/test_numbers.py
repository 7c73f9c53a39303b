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
        ("<!-- n:utility-draws -->20", "has no partner"),
        ("<!-- numbers: utility -->\n| 1 |", "has no partner"),
        ("20<!-- /n -->", "has no partner"),
        ("<!-- numbers: -->\n<!-- /numbers -->", "has no partner"),
        ("<!-- number: utility -->\n| 1 |", "has no partner"),
        ("<!-- n:utility-draws -->20 <!-- n:utility-draws -->20<!-- /n -->", "does not end before"),
        ("<!-- numbers: utility -->\n<!-- n:utility-draws -->\n<!-- /numbers -->", "does not end before"),
    ],
)
def test_broken_marks_are_named(text, message):
    with pytest.raises(quoted.NumbersError, match=message):
        quoted.fill(text)


def test_an_old_figure_is_replaced_and_nothing_else():
    text = "Over <!-- n:utility-draws -->old<!-- /n --> draws.\n"
    draws = quoted.load("utility")["draws"]
    assert quoted.fill(text) == f"Over <!-- n:utility-draws -->{draws}<!-- /n --> draws.\n"


def test_a_missing_file_is_named_with_the_command_that_writes_it(tmp_path):
    with pytest.raises(quoted.NumbersError) as error:
        quoted.fill("<!-- n:classical-noise --><!-- /n -->", tmp_path)
    assert str(error.value) == (
        "papers/redberg_wang_2021/results/02_regularization.json is missing; "
        "`python -m papers.redberg_wang_2021 --only 02` writes it."
    )


def test_statements_that_the_numbers_refute_are_not_written(tmp_path):
    document = quoted.load("utility")
    row = next(row for row in document["rows"] if row["dpsgd"] is not None)
    row["dpsgd"] = row["default"] + 0.001
    path = tmp_path / quoted.SOURCES["utility"][0]
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(quoted.NumbersError, match="no longer show that the default beats DP-SGD"):
        quoted.fill("<!-- n:above-dpsgd --><!-- /n -->", tmp_path)
