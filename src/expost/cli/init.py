"""``expost init``: a domain file to fill in."""

from pathlib import Path
from typing import Annotated

import typer

from expost.cli.base import error_console, legible, report_errors, say
from expost.cli.options import Dates, Decimal, Delimiter, Encoding, MissingWords, changed_dialect
from expost.cli.words import next_command


@report_errors
def init(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A .csv or .parquet file.")],
    label: Annotated[
        str | None, typer.Option(metavar="NAME", help="The outcome's column; by default the last.")
    ] = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    missing_words: MissingWords = None,
    dates: Dates = None,
) -> None:
    """Print a domain file with the table's column names and nothing learnt from its values.

    Only the line of names (or Parquet's schema) is read. Bounds, categories and classes are placeholders
    that every other command refuses until you have filled them in.

    Example: expost init table.csv > domain.toml
    """
    from expost.data.dialect import PLAIN
    from expost.data.open_lazy import scan
    from expost.data.skeleton import skeleton

    written = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding, "dates": dates}
    dialect = changed_dialect(PLAIN, missing_words=missing_words, **written)
    text = skeleton(scan(table, dialect=dialect).kinds, label, dialect)
    typer.echo(text, nl=False)
    # The file says how the table is written.
    command = next_command("check", "domain.toml", table, **dict.fromkeys(written), missing_words=None)
    say(f"Next: fill in the file, then run  {legible(command)}", to=error_console)
