"""``expost summary``: the coefficients of a publication, and how sure they are."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost.cli.base import console, legible, output_console, print_json, report_errors, say
from expost.cli.options import AS_JSON, FORCE, PUBLICATION, number, option

if TYPE_CHECKING:
    from expost.inference import CoefficientTable


@report_errors
def summary(
    publication: Path = PUBLICATION,
    confidence: float = number(0.95, "How sure each interval should be, on its own."),
    figure: Path | None = option(None, "Draw the intervals in this file (.png, .svg or .pdf)."),
    force: bool = FORCE,
    as_json: bool = AS_JSON,
) -> None:
    """Show the coefficients with standard errors that count sampling and privacy noise.

    In the units of the features, and without the shrinkage of the penalty. It needs a publication with a
    Hessian, such as `expost fit --report leverage --split 0.98 --cap 1` makes.

    Example: expost summary publication.json --confidence 0.9
    """
    from expost.cli.private_files import check_public
    from expost.publication import Publication

    if figure is not None:
        check_public(figure, inputs=(publication,), overwrite=force)
    table = Publication.load(publication).summary(confidence)
    if figure is not None:
        _draw(table, figure, overwrite=force)
    if as_json:
        print_json(_fields(table) | {"figure": figure})
    else:
        console.print(table)
    if figure is not None:
        say(f"Written: {legible(figure)}", to=output_console(as_json))


def _draw(table: "CoefficientTable", path: Path, *, overwrite: bool) -> None:
    from expost._common.files import atomic_write_bytes
    from expost._common.validation import check_choice

    kind = check_choice("figure", path.suffix.lstrip(".").lower(), ("png", "svg", "pdf"))
    drawn = table.plot()
    with atomic_write_bytes(path, overwrite=overwrite) as file:
        drawn.savefig(file, format=kind, dpi=150)


def _fields(table: "CoefficientTable") -> dict[str, Any]:
    figures = ("coefficients", "standard_errors", "lower", "upper", "z", "p_values")
    return {
        "confidence": table.confidence,
        "terms": list(table.terms),
        "classes": None if table.classes is None else list(table.classes),
        **{name: getattr(table, name).tolist() for name in figures},
        "notes": list(table.notes),
        "insecure": table.alarm is not None,
    }
