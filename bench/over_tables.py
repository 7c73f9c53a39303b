"""Run a comparison over its tables, each in a process of its own, and save what was found."""

import argparse
import json
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.comparison import DELTA
from bench.saving import RESULTS, save

Rows = list[dict[str, Any]]


def run(
    name: str,
    description: str,
    tables: Iterable[str],
    compare: Callable[[str, int, frozenset[str] | None], tuple[Rows, str]],
    *,
    tell: Iterable[Callable[[Rows, Console], None]],
    settings: Mapping[str, Any],
) -> None:
    """Compare on every table, or on those that are asked for, tell what was found, and save complete runs.

    With ``--models`` these alone are measured, and the others keep the numbers that the file has, as do
    tables that are not asked for: their seeds are fixed, and no default of ours changes them.
    """
    names = list(tables)
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--draws", type=int, default=20, help="for large tables; small ones have more")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="TABLE")
    parser.add_argument("--models", nargs="+", help="measure these alone; the others' numbers are kept")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="tables side by side")
    parser.add_argument("--json", help=f"where the numbers go (default: bench/results/{name}.json)")
    options = parser.parse_args()
    console = Console(width=140)
    target = Path(options.json or RESULTS / f"{name}.json")
    wanted = None if options.models is None else frozenset(options.models)
    merged = {} if wanted is None else {_key(row): row for row in _rows(target)}
    with ProcessPoolExecutor(min(len(options.only), options.jobs)) as workers:
        for found, note in workers.map(compare, options.only, repeat(options.draws), repeat(wanted)):
            for row in found:
                merged[_key(row)] = merged.get(_key(row), {}) | row
            console.print(note, markup=False, highlight=False, soft_wrap=True)
    rows: Rows = list(merged.values())
    for said in tell:
        said(rows, console)
    if not (options.json or {row["table"] for row in rows} == set(names)):
        console.print("A table is missing, so the documents' file of numbers was not written.")
        return
    draws = min(row["draws"] for row in rows)
    save(target, {"delta": DELTA, "draws": draws, **settings, "rows": rows})


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a row is about; only quantiles have a level."""
    return row["table"], row["epsilon"], row.get("level")


def _rows(file: Path) -> Rows:
    """The rows that a file of numbers has."""
    found: Rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    return found
