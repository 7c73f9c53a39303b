"""What a notebook shows: everything that the terminal shows, escaped, in tables with headings."""

import io
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from publications import X, Y, fit, published
from rich.console import Console

import expost
from expost._common.summary import Summary

HOSTILE = "<img src=x onerror=alert(1)>&\"'[bold]"
DOMAIN = expost.Domain(
    features=(
        expost.Number(name=HOSTILE, low=0.0, high=1.0),
        expost.Category(name="ward", categories=tuple(f"ward {i}" for i in range(200))),
        *(expost.YesNo(name=f"x{i}") for i in range(60)),
    ),
    label=expost.ClassLabel(name="ill", classes=("<no>", "yes")),
)
SHOWN = {
    "plan": expost.calibrate(report="adaptive", l2=5.0),
    "publication": published("leverage"),
    "secure": fit("leverage", random_state=None).publication_,
    "bounds": published("leverage").bounds(X, Y),
    "domain": DOMAIN,
}


class Reader(HTMLParser):
    """Collects elements and the texts of cells, and checks that what is opened is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.texts = [], [], []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.seen.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open[-1] != "style":
            self.texts.append(text)


def read(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert not reader.open
    return reader


@pytest.mark.parametrize("name", SHOWN)
def test_it_is_one_small_table_with_headings_and_nothing_to_load(name):
    text = SHOWN[name]._repr_html_()
    reader = read(text)
    tags = [tag for tag, _ in reader.seen]
    assert set(tags) <= {"div", "style", "p", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert tags.count("table") == tags.count("caption") == 1
    assert all(attributes.get("scope") in ("row", "col") for tag, attributes in reader.seen if tag == "th")
    assert not re.search(r"https?:|url\(|@import", text)
    assert len(text) < 10_000


@pytest.mark.parametrize("name", ["plan", "publication", "secure", "domain"])
def test_the_terminal_and_the_notebook_say_the_same(name):
    out = io.StringIO()
    Console(width=400, file=out).print(SHOWN[name])
    printed = " ".join(re.sub("[│┃]", " ", out.getvalue()).split())
    for text in read(SHOWN[name]._repr_html_()).texts:
        for part in text.split(": ", 1) if text.startswith("INSECURE") else [text]:
            assert " ".join(part.split()) in printed


def test_texts_are_escaped_and_long_domains_are_cut():
    text = DOMAIN._repr_html_()
    assert "<img" not in text
    assert HOSTILE in unescape(text)
    assert "<no>" not in text
    assert "ward 199" not in text
    assert "and 12 more" in text


def test_a_terminal_obeys_no_name():
    out = io.StringIO()
    Console(width=200, file=out, force_terminal=False).print(
        Summary("t", [("age\x1b[2J", "a\nb")], notes=["\x1b]0;title"]).terminal()
    )
    assert "\x1b" not in out.getvalue()
    assert "age\\x1b[2J" in out.getvalue()


def test_a_publication_without_a_guarantee_says_so_first():
    assert read(SHOWN["publication"]._repr_html_()).texts[0].startswith("INSECURE")
    assert "INSECURE" not in SHOWN["secure"]._repr_html_()


def test_bounds_show_ten_records_and_how_sure_they_are():
    bounds = published("leverage").bounds(X, Y, confidence=0.9, simultaneous="all")
    texts = read(bounds._repr_html_()).texts
    assert f"{bounds.total[9]:.4f}" in texts
    assert "50 more records: to_frame() has them all." in texts
    assert texts[-1].endswith("each hold on their own with confidence 0.9, for all possible records at once.")
    few = published("leverage").bounds(X[:2], Y[:2])
    assert not any("more records" in text for text in read(few._repr_html_()).texts)


def test_a_row_may_have_any_texts():
    reader = read(Summary("t", [("a", "<b>")], notes=["<i>"], alarm="A: <u>").html())
    assert reader.texts == ["A: <u>", "t", "a", "<b>", "<i>"]
    assert np.all([tag != "b" for tag, _ in reader.seen])
