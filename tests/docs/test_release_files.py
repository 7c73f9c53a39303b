"""What a release says of itself in several places is the same in all of them."""

import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = PROJECT["version"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_the_newest_version_of_the_changelog_is_this_one_and_has_a_date_and_guarantees():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = next(part for part in text.split("\n## ")[1:] if not part.startswith("Unreleased\n"))
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


def test_the_readme_is_read_in_one_go():
    """The picture of the page comes first."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 180
    assert lines[2].startswith("<img src=")


def test_hosted_checks_call_make_targets_that_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text(encoding="utf-8"))
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    called = {re.fullmatch(r"make ([a-z-]+) PYTHON=python", command)[1] for command in commands}
    others = {"check-docs", "check-arrays", "check-slow", "check-oldest", "docs", "wheel", "coverage"}
    assert {"test"} | others <= called
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in called)


def test_what_has_a_mark_is_run_by_a_target_of_its_own():
    """`make test` leaves out every mark, and `make check-<mark>` runs what has it."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]
    marks = [mark.partition(":")[0] for mark in settings["ini_options"]["markers"]]
    left_out = " and ".join(f"not {mark}" for mark in marks)
    assert f'QUICK_TESTS := $(TESTS) -m "{left_out}"' in makefile
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for mark in marks:
        recipe = re.search(rf"^check-{mark}: .*\n((?:\t.*\n)+)", makefile, re.MULTILINE)[1]
        assert re.search(rf'-m "?{mark}\b', recipe)
        assert mark == "slow" or f"make check-{mark}\n" in ci


def test_hooks_are_the_checks_of_make_test():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0][
        "hooks"
    ]
    entries = [hook["entry"].removeprefix(".venv/bin/") for hook in hooks]
    recipe = re.search(r"^test: .*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)[1]
    for tool in re.findall(r"\$\(BIN\)/((?:ruff \w+)|mypy)", recipe):
        assert any(entry.startswith(tool) for entry in entries), tool
    assert "make smoke" in entries


def test_the_lock_file_has_a_version_of_everything_that_is_declared():
    """Of every dependency, and of every extra that `make lock` names, within the declared bounds."""
    locked = {}
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        if found := re.match(r"([A-Za-z0-9._-]+)==([^ ;]+)", line):
            locked.setdefault(found[1], []).append(found[2])
    declared = list(PROJECT["dependencies"])
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for extra in re.findall(r"--extra ([a-z-]+)", makefile):
        declared += PROJECT["optional-dependencies"][extra]
    assert len(declared) > 30
    for requirement in map(Requirement, declared):
        versions = locked.get(requirement.name.lower())
        assert versions, f"{requirement.name} is missing: run make lock"
        assert all(version in requirement.specifier for version in versions), requirement
