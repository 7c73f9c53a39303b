"""Write the lists of ``docs/architecture.md``: rooms, modules and walks, from the code itself.

Rooms come in the order in which they may import each other. A module comes after what it imports of its own
room, and its line is the first of its docstring. A walk is what was entered while something was really done.
"""

import ast
import re
import sys
import threading
from collections.abc import Callable
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

PAGE = Path(__file__).with_name("architecture.md")
SOURCE = PAGE.parents[1] / "src" / "expost"
ROOMS = ["exceptions", "_common", "engines", "losses", "goe", "privacy", "audit", "ledger", "data", "fitting"]
ROOMS += ["reports", "inference", "page", "publication", "estimators", "cli"]
# What is public and no room may import.
SURFACE = ["gaussian", "budgets", "research", "expost", "__main__"]
# Left out of walks: everything goes through them.
_EVERYWHERE = ("_common", "exceptions", "expost")
_BLOCK = re.compile(r"(<!-- (rooms|modules|walk: [\w ]+) -->\n).*?(<!-- /\2 -->)", re.DOTALL)


def module_name(path: Path) -> str:
    """The name of a module inside of the library."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "expost"


MODULES = {module_name(path): path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}


def room_of(module: str) -> str:
    """The room that a module stands in."""
    return module.partition(".")[0]


@cache
def imports_of(source: str) -> list[str]:
    """The modules of the library that a source imports anywhere."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            # A name imported from a package is the package's unless it is a module of its own.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name.removeprefix("expost.") in MODULES else str(node.module) for name in names]
        else:
            continue
        found += [name.removeprefix("expost.") for name in names if f"{name}.".startswith("expost.")]
    return found


@cache
def order() -> list[str]:
    """Every module after those of its room that it imports; a cycle is an error."""
    listed: list[str] = []
    for room in ROOMS:
        inside = {
            name: sorted({one for one in imports_of(source) if room_of(one) == room} - {name})
            for name, source in MODULES.items()
            if room_of(name) == room
        }
        # The room itself, which re-exports, comes last.
        inside[room] = sorted({*inside.get(room, []), *inside} - {room})
        listed += TopologicalSorter(inside).static_order()
    return listed + SURFACE


def first_line(module: str) -> str:
    """What a module says that it is for."""
    said = ast.get_docstring(ast.parse(MODULES[module]))
    assert said, f"{module} has no docstring"
    return said.partition("\n")[0].rstrip(".").replace("``", "`")


def table(heading: str, names: list[str]) -> str:
    """A table of modules and what they are for."""
    lines = [f"| `{name}` | {first_line(name)} |" for name in names]
    return "\n".join([f"| {heading} | what is in it |", "|---|---|", *lines])


def entered(work: Callable[[], object]) -> list[str]:
    """The modules whose functions are called while something is done, in the order of their first call.

    Everything is imported before, so that nothing is called only because it is defined.
    """
    for module in MODULES:
        if module not in ("expost", "__main__"):
            import_module(f"expost.{module}")
    files = {str(SOURCE.joinpath(*name.split("."))) + ".py": name for name in MODULES}
    seen: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and (name := files.get(frame.f_code.co_filename)) is not None:
            seen.setdefault(name)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return [name for name in seen if room_of(name) not in _EVERYWHERE]


def plan() -> Any:
    """A plan, before any data."""
    import expost

    return expost.calibrate(epsilon=1.0, delta=1e-6)


def table_of_two_classes() -> Any:
    """A model, and a dense table of two classes with its labels."""
    import numpy as np

    import expost

    random = np.random.default_rng(0)
    table = random.normal(size=(300, 3)) / 4
    labels = np.where(random.uniform(size=300) < 1 / (1 + np.exp(-3 * table[:, 0])), 1, 0)
    model = expost.LogisticRegression(classes=[0, 1], norm=1.0, random_state=0)
    return model, table, labels


def walks() -> dict[str, list[str]]:
    """The modules that a plan, a fit of a dense table and of a file, and a reader's bounds enter."""
    model, rows, labels = table_of_two_classes()
    fit = entered(lambda: model.fit(rows, labels))
    publication = model.publication_
    return {
        "plan": entered(plan),
        "fit": fit,
        "fit of a file": fit_of_a_file(),
        "bounds": entered(lambda: publication.bounds(rows, labels)),
    }


def fit_of_a_file() -> list[str]:
    """The modules that a fit of two classes in a CSV file enters."""
    from tempfile import TemporaryDirectory

    import expost

    domain = expost.Domain(
        features=[expost.Number(name="age", low=0.0, high=100.0)],
        label=expost.ClassLabel(name="ill", classes=("no", "yes")),
    )
    with TemporaryDirectory() as folder:
        table = Path(folder, "people.csv")
        table.write_text("age,ill\n" + "70,yes\n30,no\n" * 50, encoding="utf-8")
        return entered(lambda: expost.LogisticRegression(domain=domain, random_state=0).fit(table))


def filled(page: str, taken: dict[str, list[str]]) -> str:
    """The page with its lists written anew."""

    def written(match: re.Match[str]) -> str:
        kind = match[2]
        if kind == "rooms":
            text = table("room", ROOMS)
        elif kind == "modules":
            text = table("module", order())
        else:
            names = taken[kind.removeprefix("walk: ")]
            text = f"{len(names)} modules: " + " → ".join(f"`{name}`" for name in names) + "."
        return f"{match[1]}{text}\n{match[3]}"

    return _BLOCK.sub(written, page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), walks()), encoding="utf-8")
