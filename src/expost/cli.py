"""The command line."""

from collections.abc import Callable
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import numpy as np
import typer
from rich.bar import Bar
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from expost._typing import FloatArray
from expost.demo import demonstrate, write_losses
from expost.exceptions import ExpostError

app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="What did this model cost me? Private models, and the privacy loss of every person.",
)
console = Console()
errors = Console(stderr=True)


Command = TypeVar("Command", bound=Callable[..., None])


def refusing(command: Command) -> Command:
    """Turn what can go wrong into one sentence on standard error and exit status 1."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except ExpostError as error:
            sentence = str(error)
        except OSError as error:
            where = f" {error.filename}" if error.filename else ""
            sentence = (
                f"cannot use{where}: {error.strerror or error}. Choose another place, or make room there."
            )
        except KeyboardInterrupt:
            sentence = "stopped before the end; nothing half-written was left behind."
        else:
            return
        errors.print(f"[bold red]expost:[/bold red] {escape(sentence)}", highlight=False, soft_wrap=True)
        raise typer.Exit(1)

    return cast(Command, run)


@app.callback()
def _root() -> None:
    """Keep subcommands even while there is only one."""


@app.command()
@refusing
def demo(
    out: Annotated[Path, typer.Option(help="Folder for what the demonstration writes.")] = Path("demo"),
    epsilon: Annotated[float, typer.Option(help="Budget: the guarantee's epsilon.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Budget: the guarantee's delta.")] = 1e-6,
) -> None:
    """Fit a private model on bundled data and show what it cost each person.

    Example: expost demo --out demo
    """
    with console.status("Fitting a logistic regression on scikit-learn's breast-cancer data"):
        shown = demonstrate(epsilon=epsilon, delta=delta)
    path = out / "private" / "losses.csv"
    write_losses(path, shown.losses.tolist())
    console.print(shown.model.plan_)
    console.print()
    console.print(histogram(shown.losses, shown.model.plan_.epsilon))
    console.print(
        f"\n[bold]Private[/bold], for the curator's eyes only: {path}\n"
        "It holds the exact loss of every person, computed from everyone's records. Never publish it."
    )


def histogram(losses: FloatArray, worst: float, bins: int = 12) -> Table:
    """The exact losses as bars, with the worst case beside them for scale; private."""
    counts, edges = np.histogram(losses, bins=bins, range=(0.0, float(np.max(losses))))
    table = Table(
        title="Exact privacy losses of the people in the data (private)", title_justify="left", box=None
    )
    table.add_column("loss", justify="right")
    table.add_column("people", justify="right")
    table.add_column("")
    for (low, high), count in zip(pairwise(edges), counts, strict=True):
        bar = Bar(size=float(counts.max()), begin=0.0, end=float(count), width=36, color="cyan")
        table.add_row(f"{low:.4f} to {high:.4f}", f"{count:,}", bar)
    middle, high, most = np.quantile(losses, [0.5, 0.95, 1.0])
    table.caption = f"median {middle:.4f}, 95% {high:.4f}, largest {most:.4f}; promised at most {worst:g}"
    table.caption_justify = "left"
    return table
