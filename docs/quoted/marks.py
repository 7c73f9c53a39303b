"""Marks in the pages, the files of numbers behind them, and how figures are written."""

import json
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Where each kind of number is, and the command that measures it.
SOURCES = {
    "peers": ("bench/results/peers.json", "python -m bench.peers"),
    "multiclass": ("bench/results/multiclass.json", "python -m bench.multiclass"),
    "multiclass fit": ("bench/results/multiclass_fit.json", "python -m bench.multiclass_fit"),
    "reports": ("bench/results/reports.json", "python -m bench.reports"),
    "reports, plain": ("bench/results/reports_plain.json", "python -m bench.reports --plain"),
    "calibration": ("bench/results/calibration.json", "python -m bench.calibration"),
    "more regularisation": (
        "bench/results/more_regularisation.json",
        "python -m bench.more_regularisation",
    ),
    "outcomes": ("bench/results/outcomes.json", "python -m bench.outcomes --draws 8"),
    "rows": ("bench/results/rows.json", "python -m bench.rows --draws 8"),
    "outcome rules": ("bench/results/outcome_rules.json", "python -m bench.outcome_rules"),
    "recalibrated regression": (
        "bench/results/recalibrated_regression.json",
        "python -m bench.recalibrated_regression",
    ),
    "sparse": ("bench/results/sparse.json", "python -m bench.sparse --draws 6"),
    "corners": ("bench/results/corners.json", "python -m bench.fit --corners"),
    "told": ("bench/results/told.json", "python -m bench.told"),
    "settings": ("bench/results/settings.json", "python -m bench.fixed"),
    "counted": ("bench/results/counted.json", "python -m bench.counted"),
    "ranges": ("bench/results/ranges.json", "python -m bench.ranges"),
    "people": ("bench/results/people.json", "python -m bench.people"),
    "audit": ("bench/results/audit.json", "python -m bench.audit"),
    "cores": ("bench/results/cores.json", "python -m bench.cores"),
    "scale": ("bench/results/scale.json", "python -m bench.scale"),
    "goe": ("bench/results/goe.json", "python -m bench.goe"),
    "inference": ("bench/results/inference.json", "python -m bench.inference"),
    "regularization": (
        "papers/redberg_wang_2021/results/02_regularization.json",
        "python -m papers.redberg_wang_2021 --only 02",
    ),
    "comparison": (
        "papers/redberg_wang_2021/results/09_comparison.json",
        "python -m papers.redberg_wang_2021 --only 09",
    ),
    "errata": (
        "papers/redberg_wang_2021/results/10_errata.json",
        "python -m papers.redberg_wang_2021 --only 10",
    ),
}
BLOCK = re.compile(r"(<!-- numbers: ([\w-]+) -->\n)(.*?)(<!-- /numbers -->)", re.DOTALL)
INLINE = re.compile(r"(<!-- n:([\w-]+) -->)(.*?)(<!-- /n -->)", re.DOTALL)
# The only other comments are what the tutorial asks its reader to do and the lists of the architecture page,
# so this also finds misspelt marks.
ANY_MARK = re.compile(r"<!-- (?!edit |write |/?(?:rooms|modules|walk: \w+) ).*?-->", re.DOTALL)

Document = dict[str, Any]
PASSAGES: dict[str, tuple[str, Callable[[Document], str]]] = {}


class NumbersError(Exception):
    """The documents cannot be filled; the message says why."""


def passage(name: str, source: str) -> Callable[[Callable[[Document], str]], Callable[[Document], str]]:
    """Register the function that writes the text between the marks of this name."""

    def register(write: Callable[[Document], str]) -> Callable[[Document], str]:
        PASSAGES[name] = (source, write)
        return write

    return register


def require(true: bool, statement: str) -> None:
    """Raise NumbersError if the numbers no longer support a statement."""
    if not true:
        raise NumbersError(f"The numbers no longer show that {statement}; change the text.")


def load(source: str, root: Path = ROOT) -> Document:
    """Read a file of numbers."""
    path, command = SOURCES[source]
    try:
        document: Document = json.loads((root / path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NumbersError(f"{path} is missing; `{command}` writes it.") from None
    return document


def names(text: str) -> list[str]:
    """The names of the marks on a page."""
    return [match[2] for pattern in (BLOCK, INLINE) for match in pattern.finditer(text)]


def fill(text: str, root: Path = ROOT) -> str:
    """Replace the text between all marks of a page."""

    def written(match: re.Match[str]) -> str:
        before, name, old, after = match.groups()
        if name not in PASSAGES:
            raise NumbersError(f"There is no passage called {name!r}.")
        if stray := ANY_MARK.search(old):
            raise NumbersError(f"The passage {name!r} does not end before {stray[0]}.")
        source, write = PASSAGES[name]
        line = "\n" if before.endswith("\n") else ""
        return before + write(load(source, root)) + line + after

    rest = INLINE.sub("", BLOCK.sub("", text))
    filled = INLINE.sub(written, BLOCK.sub(written, text))
    if stray := ANY_MARK.search(rest):
        raise NumbersError(f"The mark {stray[0]} has no partner.")
    return filled


def table(header: str, rows: list[list[str]], left: int = 1) -> str:
    """A table in Markdown; the first ``left`` columns are words and the others numbers."""
    columns = header.count("|") + 1
    rule = "|".join(["---"] * left + ["---:"] * (columns - left))
    return "\n".join([f"| {header} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)])


def paragraph(text: str) -> str:
    """Wrap text as the documents do."""
    return textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False)


def together(items: list[str]) -> str:
    """List several things in a sentence."""
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def short(value: float) -> str:
    """A setting as a person writes it: 1e-6, not 1e-06."""
    return re.sub(r"e-0+", "e-", f"{value:g}")


def share(value: float, digits: int = 4) -> str:
    """A share of the whole; one that is nearly 1 must not be shown as 1."""
    return f"{min(value, 1.0 - 10.0**-digits):.{digits}f}"
