"""The papers use the library as anyone would: they import public modules only."""

import ast
from pathlib import Path

import pytest
from reference_pages import MODULES

import expost

PAPERS = Path(__file__).parents[2] / "papers"
PUBLIC = {"expost", *(f"expost.{module}" for module in MODULES)}


def imported(source):
    """Every module or name of the library that a source imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def private(source):
    """The imports of the library that are not public."""
    for name in imported(source):
        if name.partition(".")[0] == "expost":
            home, _, last = name.rpartition(".")
            if name not in PUBLIC and (home not in PUBLIC or (home == "expost" and last not in dir(expost))):
                yield name


@pytest.mark.parametrize("path", sorted(PAPERS.rglob("*.py")), ids=lambda path: path.stem)
def test_only_public_modules_are_imported(path):
    assert list(private(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "line",
    ["import expost.fitting", "from expost.reports import evaluate", "from expost import fitting"],
)
def test_an_import_of_a_private_module_is_found(line):
    assert list(private(line))
