"""The documents keep up with the code."""

import ast
import re
from pathlib import Path

import pytest

import expost
from expost import exceptions

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "expost"


def module_name(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "expost"


def listed():
    lines = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines()
    return [match[1] for line in lines if (match := re.match(r"\| `([\w.]+)` \|", line))]


MODULES = {module_name(path): path for path in SOURCE.rglob("*.py")}


def test_every_module_has_its_line_and_every_line_its_module():
    assert sorted(listed()) == sorted(MODULES)


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("module", listed())
def test_imports_only_go_upwards(module):
    order = listed()
    for name in imports_of(MODULES[module]):
        target = name.removeprefix("expost.")
        if name.startswith("expost.") and target in order:
            assert order.index(target) < order.index(module), f"{module} imports {target}, which is below it"


def test_every_error_and_warning_is_explained():
    text = (ROOT / "docs" / "messages.md").read_text(encoding="utf-8")
    for name, kind in vars(exceptions).items():
        if isinstance(kind, type) and issubclass(kind, Exception):
            assert f"## {kind.slug}\n`{name}`" in text


def test_everything_public_has_a_docstring():
    for name, thing in vars(expost).items():
        if not name.startswith("_"):
            assert thing.__doc__, name


def test_documents_link_only_to_what_exists():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
