"""What a release says of itself in several places is the same in all of them."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_the_newest_version_of_the_changelog_is_this_one_and_has_a_date_and_guarantees():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = text.split("\n## ")[1]
    found = re.fullmatch(r"(\S+) \((\d{4}-\d\d-\d\d)\)", newest.splitlines()[0])
    assert found is not None
    assert found[1] == VERSION
    assert found[2] == CITATION["date-released"].isoformat()
    assert "\n### Guarantees\n- " in newest


def test_the_citation_is_of_this_version():
    assert CITATION["cff-version"] == "1.2.0"
    assert {"title", "authors", "message"} <= set(CITATION)
    assert CITATION["version"] == VERSION
    assert f"version = {{{VERSION}}}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_and_citation_name_the_same_paper():
    paper = CITATION["references"][0]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    names = " and ".join(f"{one['family-names']}, {one['given-names']}" for one in paper["authors"])
    assert f"{{{names}}}" in readme
    assert f"{{{paper['title']}}}" in readme
