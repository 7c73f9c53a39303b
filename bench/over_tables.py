"""Run a comparison over its tables, each in a process of its own, and save what was found."""

import argparse
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from typing import Any

from rich.console import Console

from bench.comparison import DELTA
from bench.saving import RESULTS, save

Rows = list[dict[str, Any]]


def run(
    name: str,
    description: str,
    tables: Iterable[str],
    compare: Callable[[str, int], tuple[Rows, str]],
    *,
    tell: Iterable[Callable[[Rows, Console], None]],
    settings: Mapping[str, Any],
) -> None:
    """Compare on every table, or on those that are asked for, tell what was found, and save complete runs."""
    names = list(tables)
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--draws", type=int, default=20, help="for large tables; small ones have more")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="TABLE")
    parser.add_argument("--json", help=f"where the numbers go (default: bench/results/{name}.json)")
    options = parser.parse_args()
    console = Console(width=140)
    rows: Rows = []
    with ProcessPoolExecutor(min(len(options.only), os.cpu_count() or 1)) as workers:
        for found, note in workers.map(compare, options.only, repeat(options.draws)):
            rows += found
            console.print(note, markup=False, highlight=False, soft_wrap=True)
    for said in tell:
        said(rows, console)
    if not (options.json or {row["table"] for row in rows} == set(names)):
        console.print("A table is missing, so the documents' file of numbers was not written.")
        return
    draws = min(row["draws"] for row in rows)
    save(options.json or RESULTS / f"{name}.json", {"delta": DELTA, "draws": draws, **settings, "rows": rows})
