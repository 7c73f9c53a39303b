"""The documents agree with the code, and imports go one way."""

import ast
import re
from pathlib import Path

import pytest

import expost
from expost import exceptions

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "expost"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def module_name(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "expost"


def listed(heading):
    """The names in the first column of the table under a heading, in order."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `([\w.]+)` \|", section, flags=re.MULTILINE)


MODULES = {module_name(path): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
ROOMS = listed("Rooms")
ORDER = listed("Modules")
# What no room may import: the public surface.
SURFACE = ("gaussian", "budgets", "expost", "__main__")


def room(module):
    return module.partition(".")[0]


def imports_of(source):
    """The modules of the library that a source imports anywhere."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            # A name imported from a package is the package's unless it is a module of its own.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name.removeprefix("expost.") in MODULES else node.module for name in names]
        else:
            continue
        for name in names:
            if name == "expost" or name.startswith("expost."):
                yield name.removeprefix("expost.")


def wrong_imports(module, source):
    """The imports of a source from a lower room, or from a later module of its own room."""
    for target in imports_of(source):
        if module not in SURFACE and room(target) != room(module):
            if target in SURFACE or ROOMS.index(room(target)) > ROOMS.index(room(module)):
                yield target
        elif ORDER.index(target) >= ORDER.index(module):
            yield target


def test_modules_and_lines_of_the_document_agree():
    assert sorted(ORDER) == sorted(MODULES)


def test_modules_are_listed_room_by_room():
    assert list(dict.fromkeys(room(module) for module in ORDER if module not in SURFACE)) == ROOMS
    assert tuple(module for module in ORDER if module in SURFACE) == SURFACE


@pytest.mark.parametrize("module", ORDER)
def test_imports_only_go_upwards(module):
    assert list(wrong_imports(module, MODULES[module])) == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("privacy.plan", "from expost.fitting.release import Release"),
        ("data.domain", "from expost.data.encoding import encode_records"),
        ("losses.base", "def f():\n    import expost.privacy.gaussian"),
        ("reports.base", "from expost import Publication"),
        ("reports.base", "from expost.publication import Publication"),
    ],
)
def test_an_import_of_a_lower_room_or_module_is_found(module, line):
    assert list(wrong_imports(module, f"{MODULES[module]}\n{line}\n"))


def test_the_walks_name_modules_that_exist():
    walks = PAGE.split("\n## Three walks\n")[1].split("\n## ")[0]
    entered = re.findall(r"`([\w.]+)`", walks)
    assert entered
    assert [name for name in entered if name not in MODULES] == []


def test_every_error_and_warning_is_explained():
    text = (ROOT / "docs" / "messages.md").read_text(encoding="utf-8")
    for name, kind in vars(exceptions).items():
        if isinstance(kind, type) and issubclass(kind, Exception):
            assert f"## {kind.slug}\n`{name}`" in text


def test_everything_public_has_a_docstring():
    names = [name for name in dir(expost) if not name.startswith("_")]
    assert len(names) > 20
    for name in names:
        thing = getattr(expost, name)
        own = vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__
        assert own, name
        # A dataclass without a docstring gets its signature for one.
        assert not own.startswith(f"{name}("), name


def test_documents_link_only_to_what_exists():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.md")]
    for page in [*pages, *(ROOT / "papers").glob("*/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
