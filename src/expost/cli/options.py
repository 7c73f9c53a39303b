"""What commands take: arguments, options and numbers, and the options that several commands share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from expost._common.validation import numeral


def whole_number(text: str) -> int:
    """Read a whole number from the command line by the rule for all numbers."""
    value = numeral(str(text))
    if not value.is_integer():
        raise ValueError("not a whole number")
    return int(value)


def argument(metavar: str, explanation: str) -> Any:
    """An argument of a command; stands where a default would."""
    return typer.Argument(metavar=metavar, help=explanation)


def option(
    default: Any, explanation: str, *names: str, metavar: str | None = None, panel: str | None = None
) -> Any:
    """An option of a command; stands where its default would."""
    return typer.Option(default, *names, metavar=metavar, help=explanation, rich_help_panel=panel)


def number(default: float | None, explanation: str, *, panel: str | None = None) -> Any:
    """An option that takes a number, whole where its default is, by the rule for all numbers."""
    parser = whole_number if isinstance(default, int) else lambda text: numeral(str(text))
    return typer.Option(default, parser=parser, metavar="<number>", help=explanation, rich_help_panel=panel)


DOMAIN = argument("DOMAIN.toml", "What is publicly known; see expost init.")
TABLE = argument("TABLE", "A .csv or .parquet file, a folder of such files, or a quoted pattern; private.")
PUBLICATIONS = argument("PUBLICATION.json", "One or several publications.")
PUBLICATION = argument("PUBLICATION.json", "A publication.")
IDENTIFIER = option(
    None, "A column by which you know the records; it is copied into the file.", "--id", metavar="COLUMN"
)
PERSON = option(
    None,
    "The column that says whose each row is, where people have several; by default the `person` of --domain.",
    metavar="COLUMN",
)
EPSILON = number(
    1.0, "Budget: the promise's epsilon, for everything that is published; smaller is more private."
)
DELTA = number(1e-6, "Budget: the promise's delta; keep it far below one divided by the number of people.")
WEIGHT = option(
    None, "The column with the weight of each record, where records have weights.", metavar="COLUMN"
)
MAX_WEIGHT = number(
    1.0,
    "The largest weight of a record, at least 1. Weights up to 1 cost nothing; larger ones cost as much as "
    "if every record had the largest.",
)
CLUSTER = option(
    None,
    "Let the workers of this Dask cluster read the table, for example tls://scheduler:8786.",
    "--dask",
    metavar="ADDRESS",
)
DEVICE = option(
    None,
    "Let a GPU work on the rows, which are read here and sent there: cuda, or another of PyTorch's.",
    metavar="NAME",
)
LEDGER = option(None, "The ledger that counts what is spent; needs `--account`.")
ACCOUNT = option(None, "The table's account there, opened by `expost ledger`.", metavar="NAME")
YES = option(False, "Spend without asking first, as is done where there is no terminal.", "--yes")
AS_JSON = option(False, "Print one JSON document for machines.", "--json")
FORCE = option(False, "Overwrite files that exist; never what is read.", "--force")


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """The options of commands that read a publication for the records of a table."""

    identifier: str | None = IDENTIFIER
    domain: Path | None = option(
        None,
        "A domain file whose [table] says how the table is written, and whose `person` whose each row is; "
        "nothing else of it is used.",
        metavar="DOMAIN.toml",
    )
    force: bool = FORCE
    as_json: bool = AS_JSON
