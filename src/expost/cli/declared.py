"""What a command was told about a table: its domain file, and how its files are written."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from expost.data.dialect import Dialect
    from expost.data.domain import Domain

_PANEL = "How the table is written, where the domain file does not say it"

Delimiter = Annotated[
    str | None,
    typer.Option(metavar="MARK", help="What separates cells, such as ';' or tab.", rich_help_panel=_PANEL),
]
Decimal = Annotated[
    str | None,
    typer.Option(metavar="MARK", help="The decimal mark, '.' or ','.", rich_help_panel=_PANEL),
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The encoding, such as cp1252.", rich_help_panel=_PANEL),
]
MissingWords = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WORD",
        help="A word for a missing value, such as NA; may be given several times.",
        rich_help_panel=_PANEL,
    ),
]
Dates = Annotated[
    str | None,
    typer.Option(metavar="ORDER", help="How dates are written, such as DD.MM.YYYY.", rich_help_panel=_PANEL),
]
DialectOf = Annotated[
    Path | None,
    typer.Option(
        "--domain",
        metavar="DOMAIN.toml",
        help="A domain file whose [table] says how the table is written; nothing else of it is used.",
        rich_help_panel=_PANEL,
    ),
]


def load_domain(path: Path, table: Path | None = None, **dialect: Any) -> "Domain":
    """Read a domain file, and put what options say about the table's files into it.

    A table in the place of the domain file is recognised by its name.
    """
    from expost.data.domain import Domain
    from expost.exceptions import FileError

    if path.suffix.lower() in (".csv", ".parquet", ".pq") and path.is_file():
        both = "" if table is None or table.suffix.lower() != ".toml" else f": {table} {path}"
        raise FileError(
            f"the domain file comes first, and then the table{both}; got {path.name!r} in its place."
        )
    domain = Domain.load(path)
    return domain.model_copy(update={"table": changed_dialect(domain.table, **dialect)})


def dialect_of(domain: Path | None, **dialect: Any) -> "Dialect":
    """How a table is written: as a domain file says, or by default, but for the options that are given."""
    from expost.data.dialect import PLAIN
    from expost.data.domain import Domain

    return changed_dialect(PLAIN if domain is None else Domain.load(domain).table, **dialect)


def changed_dialect(dialect: "Dialect", **options: Any) -> "Dialect":
    """A dialect with the options that are given; ParameterError names one that cannot be."""
    from pydantic import ValidationError

    from expost._common.validation import parameter_error

    given = {name: value for name, value in options.items() if value not in (None, [])}
    if given.get("delimiter") in ("tab", "\\t"):
        given["delimiter"] = "\t"
    try:
        return dialect.changed(**given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        constraint = first["msg"].removeprefix("Value error, ").removeprefix("must be ")
        constraint = constraint.removeprefix("Input should be ")
    raise parameter_error(name, constraint, given[name])


def check_order(publication: Path, table: Path) -> None:
    """Refuse a table in the place of a publication, where the two were exchanged."""
    from expost.exceptions import FileError

    if table.suffix.lower() == ".json" and publication.suffix.lower() in (".csv", ".parquet", ".pq"):
        raise FileError(f"the publication comes first, and then the table: {table} {publication}.")
