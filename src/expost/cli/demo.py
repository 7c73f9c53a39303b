"""``expost demo``: a fit on bundled data, from the domain file to the page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from expost.cli.base import console, error_console, report_errors, say

if TYPE_CHECKING:
    from expost.cli.demonstration import Demonstration

CONFIDENCE = 0.95


@report_errors
def demo(
    out: Annotated[Path, typer.Option(help="Folder for what the demonstration writes.")] = Path("demo"),
    epsilon: Annotated[float, typer.Option(help="Budget: the guarantee's epsilon.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Budget: the guarantee's delta.")] = 1e-6,
) -> None:
    """Fit a private model on bundled data, publish it, and show what it cost each person.

    Example: expost demo --out demo
    """
    from expost.cli.demonstration import demonstrate
    from expost.cli.display import show_losses

    with error_console.status("Fitting a logistic regression on scikit-learn's breast-cancer data"):
        shown = demonstrate(epsilon=epsilon, delta=delta)
    console.print(shown.model.plan_)
    console.print()
    written = _publish(out, shown)
    console.print(show_losses(shown.losses, shown.model.plan_.epsilon))
    console.print()
    written.update(_keep(out / "private", shown))
    console.print("[bold]What to open[/bold]")
    width = max(len(str(path)) for path in written)
    for path, words in written.items():
        say(f"  {escape(str(path).ljust(width))}  {words}")


def _publish(out: Path, shown: "Demonstration") -> dict[Path, str]:
    """Write the public files and return a description of each."""
    from expost._common.files import atomic_write
    from expost.cli.demonstration import domain_file
    from expost.cli.page import write_page

    with atomic_write(out / "domain.toml") as file:
        file.write(domain_file())
    shown.model.publication_.save(out / "publication.json")
    write_page(out / "report.html", [shown.model.publication_])
    return {
        out / "report.html": "the page for every person: open it in a browser (public)",
        out / "publication.json": "the model, its promise and its report (public)",
        out / "domain.toml": "what was declared before the fit (public)",
    }


def _keep(folder: Path, shown: "Demonstration") -> dict[Path, str]:
    """Write the curator's files and return a description of each."""
    from expost.cli import figures
    from expost.cli.demonstration import write_table
    from expost.cli.private_files import write_losses

    write_table(folder / "table.csv", shown)
    write_losses(folder / "losses.csv", shown.losses.tolist())
    written = {
        folder / "table.csv": "the table, to try the other commands on (private)",
        folder / "losses.csv": "the exact loss of every person (PRIVATE)",
    }
    if not figures.available():
        say(
            "No figures: they need matplotlib. Get it with: pip install 'expost\\[figures]'", to=error_console
        )
        return written
    with error_console.status("Drawing the figures"):
        bounds = shown.model.publication_.bounds(
            shown.table, shown.labels, confidence=CONFIDENCE, member=True
        )
        worst = shown.model.plan_.epsilon
        figures.draw_losses(
            folder / "losses.png", shown.losses, worst, title="PRIVATE: what the model cost each person"
        )
        figures.draw_intervals(
            folder / "intervals.png",
            shown.losses,
            bounds,
            worst,
            CONFIDENCE,
            title="PRIVATE: what each person lost, and what she can know",
        )
    written[folder / "losses.png"] = "the losses against the worst case (PRIVATE)"
    written[folder / "intervals.png"] = "the losses against the published intervals (PRIVATE)"
    return written
