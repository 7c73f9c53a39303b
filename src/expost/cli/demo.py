"""``expost demo``: a fit on bundled data, from the domain file to the page."""

from pathlib import Path
from typing import TYPE_CHECKING

from expost._common.validation import missing_extra_error
from expost.cli.base import console, error_console, legible, report_errors, say
from expost.cli.options import DELTA, EPSILON, FORCE, option

if TYPE_CHECKING:
    from expost.cli.demonstration import Demonstration

# What the demonstration writes, figures last.
_PUBLIC = ("report.html", "publication.json", "domain.toml")
_PRIVATE = ("table.csv", "losses.csv", "losses.png", "intervals.png")


@report_errors
def demo(
    out: Path = option(Path("demo"), "Folder for what the demonstration writes."),
    epsilon: float = EPSILON,
    delta: float = DELTA,
    force: bool = FORCE,
) -> None:
    """Fit a private model on bundled data, publish it, and show what it cost each person.

    Example: expost demo --out demo
    """
    from expost._common.files import check_output
    from expost.cli.demonstration import demonstrate
    from expost.cli.display import Tally, show_losses

    for path in (*(out / name for name in _PUBLIC), *(out / "private" / name for name in _PRIVATE)):
        check_output(path, overwrite=force)
    with error_console.status("Fitting a logistic regression on scikit-learn's breast-cancer data"):
        shown = demonstrate(epsilon=epsilon, delta=delta)
    console.print(shown.model.plan_)
    console.print()
    written = _publish(out, shown, overwrite=force)
    tally = Tally()
    tally.add(shown.losses)
    console.print(show_losses(tally, shown.model.plan_.epsilon))
    console.print()
    written.update(_keep(out / "private", shown, overwrite=force))
    console.print("[bold]What to open[/bold]")
    width = max(len(str(path)) for path in written)
    for path, words in written.items():
        say(f"  {legible(path).ljust(width)}  {words}")


def _publish(out: Path, shown: "Demonstration", *, overwrite: bool) -> dict[Path, str]:
    """Write the public files and return a description of each."""
    from expost._common.files import atomic_write
    from expost.cli.demonstration import domain_file
    from expost.cli.page import write_page

    page, publication, domain = (out / name for name in _PUBLIC)
    with atomic_write(domain, overwrite=overwrite) as file:
        file.write(domain_file())
    shown.model.publication_.save(publication, overwrite=overwrite)
    write_page(page, [shown.model.publication_], overwrite=overwrite)
    return {
        page: "the page for every person: open it in a browser (public)",
        publication: "the model, its promise and its report (public)",
        domain: "what was declared before the fit (public)",
    }


def _keep(folder: Path, shown: "Demonstration", *, overwrite: bool) -> dict[Path, str]:
    """Write the curator's files and return a description of each."""
    from expost.cli.demonstration import can_draw, draw_intervals, draw_losses, write_table
    from expost.cli.private_files import write_losses
    from expost.reports.base import CONFIDENCE

    table, losses, histogram, intervals = (folder / name for name in _PRIVATE)
    write_table(table, shown, overwrite=overwrite)
    write_losses(losses, [shown.losses], overwrite=overwrite)
    written = {
        table: "the table, to try the other commands on (private)",
        losses: "the exact loss of every person (PRIVATE)",
    }
    if not can_draw():
        missing = missing_extra_error("drawing figures", "matplotlib", "figures")
        say(f"No figures: {legible(missing)}", to=error_console)
        return written
    with error_console.status("Drawing the figures"):
        bounds = shown.model.publication_.bounds(
            shown.table, shown.labels, confidence=CONFIDENCE, member=True
        )
        worst = shown.model.plan_.epsilon
        draw_losses(histogram, shown.losses, worst, title="PRIVATE: what the model cost each person")
        draw_intervals(
            intervals,
            shown.losses,
            bounds,
            worst,
            CONFIDENCE,
            title="PRIVATE: what each person lost, and what she can know",
        )
    written[histogram] = "the losses against the worst case (PRIVATE)"
    written[intervals] = "the losses against the published intervals (PRIVATE)"
    return written
