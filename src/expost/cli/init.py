"""``expost init``: a domain file to fill in."""

from pathlib import Path
from typing import Annotated

import typer

from expost.cli.base import error_console, report_errors, say


@report_errors
def init(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A .csv or .parquet file.")],
    label: Annotated[
        str | None, typer.Option(metavar="NAME", help="The outcome's column; by default the last.")
    ] = None,
) -> None:
    """Print a domain file with the table's column names and nothing learnt from its values.

    Only the line of names (or Parquet's schema) is read. Bounds, categories and classes are placeholders
    that every other command refuses until you have filled them in.

    Example: expost init table.csv > domain.toml
    """
    from expost.data.domain_files import skeleton
    from expost.data.open_lazy import scan

    text = skeleton(scan(table).kinds, label)
    typer.echo(text, nl=False)
    say("Next: fill in what the file leaves open, then run  expost plan domain.toml", to=error_console)
