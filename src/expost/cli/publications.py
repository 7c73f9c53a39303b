"""``expost page`` and ``expost summary``: what anyone can read in publications."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from expost._common.files import atomic_write, atomic_write_bytes
from expost._common.validation import check_choice
from expost.cli.base import console, error_console, legible, output_console, print_json, say
from expost.cli.private_files import check_public
from expost.inference import CoefficientTable
from expost.page import render
from expost.publication import Publication


def page(publications: list[Path], output: Path, language: str | None, force: bool) -> None:
    """Make the page on which anyone can read her figures."""
    check_public(output, inputs=publications, overwrite=force)
    read = [Publication.load(path) for path in publications]
    with error_console.status("Making the page"):
        write_page(output, read, overwrite=force, language=language)
    say(f"Open in a browser: {legible(output)}")


def write_page(
    path: Path, publications: list[Publication], *, overwrite: bool, language: str | None = None
) -> None:
    """Write the page of these publications atomically; public."""
    text = render(publications, language=language)
    with atomic_write(path, overwrite=overwrite) as file:
        file.write(text)


def summary(publication: Path, confidence: float, figure: Path | None, force: bool, as_json: bool) -> None:
    """Show the coefficients and how sure they are."""
    if figure is not None:
        check_public(figure, inputs=(publication,), overwrite=force)
    read = Publication.load(publication)
    table = read.summary(confidence)
    if figure is not None:
        kind = check_choice("figure", figure.suffix.lstrip(".").lower(), ("png", "svg", "pdf"))
        drawn = table.plot()
        with atomic_write_bytes(figure, overwrite=force) as file:
            drawn.savefig(file, format=kind, dpi=150)
    curve = read.calibration_curve
    curved = {} if curve is None else {"calibration_curve": curve.fields()}
    if as_json:
        print_json(_fields(table) | curved | {"figure": figure})
    else:
        _show(table)
        if curve is not None:
            console.print(curve)
    if figure is not None:
        say(f"Written: {legible(figure)}", to=output_console(as_json))


def _show(table: CoefficientTable) -> None:
    """Show the table; below two narrow columns sentences would not fit, so they stand by themselves."""
    if not table.without_errors:
        console.print(table)
        return
    for sentence in filter(None, (table.alarm, table.title)):
        console.print(f"[bold]{legible(sentence)}[/bold]", highlight=False)
    console.print(replace(table, title="", notes=(), alarm=None))
    for note in table.notes:
        console.print(legible(note), highlight=False)


def _fields(table: CoefficientTable) -> dict[str, Any]:
    figures = ("coefficients", "standard_errors", "lower", "upper", "z", "p_values")
    return {
        "confidence": None if table.without_errors else table.confidence,
        "terms": list(table.terms),
        "classes": None if table.classes is None else list(table.classes),
        **{name: getattr(table, name).tolist() for name in figures},
        "notes": list(table.notes),
        "insecure": table.alarm is not None,
    }
