"""The documents agree with the code, imports go one way, and functions are simple."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import expost
from docs.architecture import MODULES, PAGE, ROOMS, SURFACE, filled, imports_of, order, room_of
from expost import exceptions
from expost._common import kernels

ROOT = Path(__file__).parent.parent
ORDER = order()


def wrong_imports(module, source):
    """The imports of a source from a lower room, or from a later module of its own room."""
    for target in imports_of(source):
        if module not in SURFACE and room_of(target) != room_of(module):
            if target in SURFACE or ROOMS.index(room_of(target)) > ROOMS.index(room_of(module)):
                yield target
        elif ORDER.index(target) >= ORDER.index(module):
            yield target


def test_every_module_is_listed_once():
    assert sorted(ORDER) == sorted(MODULES)


@pytest.fixture(scope="module")
def taken():
    # In a process of its own, as the page is written: what this one remembers would enter no module.
    code = "import json; from docs.architecture import walks; print(json.dumps(walks()))"
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.skipif(kernels.library() is None, reason="a fit without compiled kernels enters other modules")
def test_the_page_lists_what_the_code_is(taken):
    page = PAGE.read_text(encoding="utf-8")
    assert page == filled(page, taken), "python -m docs.architecture writes the lists anew"


@pytest.mark.parametrize(("walk", "most"), [("plan", 20), ("fit", 45), ("fit of a file", 56), ("bounds", 25)])
def test_a_walk_is_short_and_enters_no_special_case(taken, walk, most):
    names = taken[walk]
    assert 10 < len(names) <= most
    assert [name for name in names if re.search(r"softmax|vector|convex|dask|cluster", name)] == []


_BRANCHES = ast.If | ast.IfExp | ast.For | ast.While | ast.ExceptHandler | ast.Assert


def branches(node):
    """How many ways fork off in a piece of code: boolean operators and comprehensions count, assertions once.

    Functions in it count apart.
    """
    found = isinstance(node, _BRANCHES)
    if isinstance(node, ast.BoolOp):
        found = len(node.values) - 1
    if isinstance(node, ast.comprehension):
        found = 1 + len(node.ifs)
    apart = (ast.FunctionDef, ast.ClassDef)
    inside = () if isinstance(node, ast.Assert) else ast.iter_child_nodes(node)
    return found + sum(branches(child) for child in inside if not isinstance(child, apart))


@pytest.mark.parametrize("module", ORDER)
def test_functions_are_simple(module):
    functions = [node for node in ast.walk(ast.parse(MODULES[module])) if isinstance(node, ast.FunctionDef)]
    assert {node.name: 1 + branches(node) for node in functions if branches(node) >= 10} == {}


def test_branches_are_counted():
    (loop,) = ast.parse("for x in y if a and b else z:\n    assert [x for x in y if x if y] or z").body
    assert branches(loop) == 4
    assert branches(ast.parse("[x for x in y if x if y]\ntry:\n    f()\nexcept E:\n    pass")) == 4


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
