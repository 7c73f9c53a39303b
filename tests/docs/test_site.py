"""The site as it is built: without a warning, without a network, and without a dead link."""

import inspect
import os
import pydoc
import re
import subprocess
import sys
from html.parser import HTMLParser
from types import FunctionType
from urllib.parse import unquote

import pytest
from reference_pages import MODULES, PAGES, ROOT, names_on

import expost

DOCUMENTED = (type, property, classmethod, staticmethod, FunctionType)
GALLERY = sorted((ROOT / "examples" / "gallery").glob("*.py"))
pytestmark = pytest.mark.docs


class Page(HTMLParser):
    """The anchors of a page, where it leads, and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if "id" in found:
            self.anchors.add(found["id"])
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag in ("script", "img", "iframe") and "src" in found:
            self.loaded.append(found["src"])
        elif tag == "link" and found.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as `make docs` builds it, without the gallery's pictures."""
    folder = tmp_path_factory.mktemp("site")
    command = [
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        "-c",
        "docs",
        "-D",
        "gallery_drawn=0",
    ]
    built = subprocess.run(
        [sys.executable, *command, ".", str(folder)], cwd=ROOT, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html")}


def test_no_link_of_the_site_is_dead(pages):
    assert len(pages) > 30
    dead = []
    for path, page in pages.items():
        for link in page.links:
            name, _, anchor = unquote(link).partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            target = (path.parent / name).resolve() if name else path
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].anchors):
                dead.append((path.name, link))
    assert dead == []


def test_everything_that_a_page_loads_is_part_of_the_site(pages):
    loaded = [(path, what.partition("?")[0]) for path, page in pages.items() for what in page.loaded]
    assert [(path.name, what) for path, what in loaded if not (path.parent / what).is_file()] == []


def test_the_sign_after_a_formula_stands_there_once(site):
    """Signs are moved into the formula's span, whatever else its paragraph says."""
    page = (site / "docs/mathematics.html").read_text(encoding="utf-8")
    assert "</math>,</span> " in page
    assert re.findall(r"</math>[.,;:]</span>[.,;:]", page) == []
    assert "The smoothed norm</strong>, <span" in page


def test_every_public_name_has_an_anchor(site, pages):
    reference = [page for path, page in pages.items() if path.parent == site / "docs" / "reference"]
    anchors = set().union(*(page.anchors for page in reference))
    prefix = {name: "module-" if name in MODULES else "" for name in dir(expost)}
    assert {f"{prefix[name]}expost.{name}" for name in dir(expost) if name != "__version__"} <= anchors


def test_privacy_has_a_heading_wherever_a_docstring_speaks_of_it(site):
    """Of every documented name and of its members; estimators say it among their notes."""
    for page in PAGES:
        written = (site / "docs" / "reference" / f"{page.stem}.html").read_text(encoding="utf-8")
        said = 0
        for name in names_on(page):
            thing = pydoc.locate(name)
            own = [thing, *(vars(thing).values() if inspect.isclass(thing) else ())]
            docs = [inspect.getdoc(one) or "" for one in own if isinstance(one, DOCUMENTED)]
            said += sum("Privacy\n-------\n" in text or "**Privacy.** " in text for text in docs)
        assert written.count('<p class="rubric">Privacy</p>') >= said, page.name
        assert "**Privacy" not in written


@pytest.mark.slow
@pytest.mark.parametrize(
    "script", sorted((ROOT / "examples" / "gallery").glob("*.py")), ids=lambda at: at.stem
)
def test_every_script_of_the_gallery_ends_in_a_picture(script, tmp_path):
    picture = tmp_path / "picture.png"
    subprocess.run([sys.executable, script, picture], check=True, env=os.environ | {"MPLBACKEND": "Agg"})
    assert picture.read_bytes().startswith(b"\x89PNG")
