"""``expost init``: a domain file to fill in."""

from pathlib import Path
from typing import Annotated

import typer

from expost.cli.base import errors, refusing
from expost.data.domain_files import skeleton
from expost.data.tables.files import read_kinds


@refusing
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
    text = skeleton(read_kinds(table), label)
    typer.echo(text, nl=False)
    errors.print(
        "Next: fill in what the file leaves open, then run  expost plan domain.toml",
        highlight=False,
        soft_wrap=True,
    )
