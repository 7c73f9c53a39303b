"""Run the experiments: ``python -m papers.redberg_wang_2021``, or ``make paper``."""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryFile

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from threadpoolctl import threadpool_limits

from expost.exceptions import ExpostError
from papers.common import write_text
from papers.datasets import DataSet, adult, credit, kidney, wine
from papers.redberg_wang_2021 import plotting
from papers.redberg_wang_2021.catalogue import EXPERIMENTS
from papers.redberg_wang_2021.experiment import (
    HERE,
    Effort,
    Experiment,
    load_document,
    save_numbers,
    verdict,
)
from papers.redberg_wang_2021.results import render

# What a quick run writes; git ignores it.
QUICK = HERE / "quick"
LOADERS: dict[str, tuple[Callable[[], DataSet], ...]] = {
    "credit": (credit,),
    "adult": (lambda: adult("train"), lambda: adult("test")),
    "kidney": (kidney,),
    "wine": (lambda: wine("red"), lambda: wine("white")),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute, draw and write; or only draw and write."""
    options = _parser().parse_args(arguments)
    console = Console(stderr=True)
    try:
        run(options, console)
    except (ExpostError, OSError) as error:
        console.print(f"[bold red]error[/bold red] {error}", soft_wrap=True, highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("stopped; finished experiments are kept", highlight=False)
        return 1
    return 0


def run(options: argparse.Namespace, console: Console) -> None:
    """Do the work of :func:`main`."""
    chosen = [
        experiment for experiment in EXPERIMENTS if not options.only or _chosen(experiment, options.only)
    ]
    if not chosen:
        names = ", ".join(experiment.name for experiment in EXPERIMENTS)
        raise ExpostError(
            f"`--only` must begin the name of an experiment; got {options.only}. There are {names}."
        )
    out = _folder(options)
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=out):  # a folder that cannot be written to is found before the work is done
        pass
    effort = Effort(quick=options.quick)
    if not options.redraw:
        _load_data(chosen)
        for number, experiment in enumerate(chosen, 1):
            _compute(experiment, effort, out, console, place=f"{number}/{len(chosen)}")
    done = [
        experiment for experiment in EXPERIMENTS if (out / "results" / f"{experiment.name}.json").is_file()
    ]
    documents = [load_document(experiment.name, out / "results") for experiment in done]
    with plotting.styled():
        for experiment, document in zip(done, documents, strict=True):
            if experiment in chosen:
                plotting.save(experiment.draw(document["numbers"]), out / "figures" / experiment.name)
    write_text(out / "RESULTS.md", render(done, documents))
    console.print(_verdicts(chosen, out))
    console.print(f"{out / 'RESULTS.md'}: everything, with figures", highlight=False, soft_wrap=True)


def _folder(options: argparse.Namespace) -> Path:
    """Where to write; a quick run never writes over the results of the full one."""
    out: Path = options.out or (QUICK if options.quick else HERE)
    if options.quick and out.resolve() == HERE.resolve():
        raise ExpostError(
            f"`--out` of a quick run must not be {HERE}, which holds the full run's results; leave it out to "
            f"write to {QUICK}."
        )
    return out


def _load_data(chosen: Sequence[Experiment]) -> None:
    """Load every file before the first experiment, so that a missing one is found early."""
    for name in sorted({name for experiment in chosen for name in experiment.needs}):
        for load in LOADERS[name]:
            try:
                load()
            except ExpostError as error:
                able = " ".join(experiment.name for experiment in EXPERIMENTS if not experiment.needs)
                raise ExpostError(f"{error} Without data: --only {able}.") from None


def _compute(experiment: Experiment, effort: Effort, out: Path, console: Console, *, place: str) -> None:
    started = time.monotonic()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    # Thousands of small fits: threads inside each product of matrices would only wait for each other.
    with (
        threadpool_limits(1, user_api="blas"),
        Progress(*columns, console=console, transient=True) as progress,
    ):
        task = progress.add_task(f"{place} {experiment.name}", total=experiment.steps(effort))
        numbers = experiment.run(effort, lambda: progress.advance(task))
    save_numbers(experiment, numbers, effort, out / "results")
    console.print(f"{experiment.name}: {time.monotonic() - started:.1f} s", highlight=False)


def _verdicts(chosen: Sequence[Experiment], out: Path) -> Table:
    table = Table(title="Verdicts", title_justify="left")
    for column in ("experiment", "whose", "statement", "verdict"):
        table.add_column(column)
    for experiment in chosen:
        for claim in load_document(experiment.name, out / "results")["claims"]:
            colour = "green" if claim["holds"] else "yellow"
            outcome = f"[{colour}]{verdict(claim['holds'], claim['whose'])}[/{colour}]"
            table.add_row(experiment.number, claim["whose"], claim["statement"], outcome)
    return table


def _chosen(experiment: Experiment, only: Sequence[str]) -> bool:
    return any(experiment.name.startswith(start) for start in only)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m papers.redberg_wang_2021",
        description="Repeat the experiments of Redberg and Wang (2021) and check their claims as numbers.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="few draws: enough for every verdict, about a minute"
    )
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="experiments by the start of their names"
    )
    parser.add_argument("--redraw", action="store_true", help="figures and page from the numbers on disk")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where to write (default: beside the code, and for a quick run its folder `quick`)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
