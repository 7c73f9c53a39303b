"""``expost init`` and ``expost check``: a domain file to fill in, and what in a table does not fit it."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from expost._common.validation import parameter_error
from expost.cli.base import console, error_console, legible, print_json, report_errors, say, show_progress
from expost.cli.options import (
    AS_JSON,
    DOMAIN,
    FORCE,
    IDENTIFIER,
    MAX_WEIGHT,
    TABLE,
    WEIGHT,
    argument,
    declared_weighting,
    load_domain,
    option,
)
from expost.cli.words import next_command

if TYPE_CHECKING:
    from expost.data.check import Finding
    from expost.data.dialect import Dialect
    from expost.data.domain import Domain
    from expost.data.lazy import LazyTable
    from expost.data.problems import Problem


# How many names are compared with each other, for a column that is called otherwise.
_MOST_COMPARED = 100


@dataclass(frozen=True, kw_only=True)
class DialectOptions:
    """How a table is written for which there is no domain file yet."""

    delimiter: str | None = option(None, "What separates cells, such as ';' or tab.", metavar="MARK")
    decimal: str | None = option(None, "The decimal mark, '.' or ','.", metavar="MARK")
    encoding: str | None = option(None, "The encoding, such as cp1252.", metavar="NAME")
    missing_words: list[str] | None = option(
        None, "A word for a missing value, such as NA; may be given several times.", metavar="WORD"
    )
    dates: str | None = option(None, "How dates are written, such as DD.MM.YYYY.", metavar="ORDER")

    def dialect(self) -> "Dialect":
        """The dialect that the options describe; ParameterError names one that cannot be."""
        from pydantic import ValidationError

        from expost.data.dialect import PLAIN

        given = {name: value for name, value in asdict(self).items() if value not in (None, [])}
        if given.get("delimiter") in ("tab", "\\t"):
            given["delimiter"] = "\t"
        try:
            return PLAIN.changed(**given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
        constraint = first["msg"].removeprefix("Value error, must be ").removeprefix("Input should be ")
        raise parameter_error(str(first["loc"][0]), constraint, given[str(first["loc"][0])])


@report_errors
def init(
    *,
    table: Path = argument("TABLE", "A .csv or .parquet file."),
    label: str | None = option(None, "The outcome's column; by default the last.", metavar="NAME"),
    options: DialectOptions,
) -> None:
    """Print a domain file with the table's column names and nothing learnt from its values.

    Only the line of names (or Parquet's schema) is read. Bounds, categories and classes are placeholders
    that every other command refuses until you have filled them in. The file says how the table is written,
    as the options do.

    Example: expost init table.csv > domain.toml
    """
    from expost.data.open_lazy import scan
    from expost.data.skeleton import skeleton

    dialect = options.dialect()
    typer.echo(skeleton(scan(table, dialect=dialect).kinds, label, dialect), nl=False)
    command = next_command("check", "domain.toml", table)
    say(f"Next: fill in the file, then run  {legible(command)}", to=error_console)


@report_errors
def check(
    domain: Path = DOMAIN,
    table: Path = TABLE,
    problems: Path | None = option(
        None,
        "Write every problem with its record and value (.csv), for the curator only; the name must have "
        "'private' in it.",
        metavar="FILE",
    ),
    identifier: str | None = IDENTIFIER,
    weight: str | None = WEIGHT,
    max_weight: float = MAX_WEIGHT,
    force: bool = FORCE,
    as_json: bool = AS_JSON,
) -> None:
    """Find everything in a table that does not fit the domain, at once. Nothing is spent.

    The screen shows which columns have which kind of problem: no value, no record and no number of problems.
    The file of `--problems` lists them record by record, and is private. Status 1 if `fit` would refuse the
    table.

    Example: expost check domain.toml table.csv --problems private-problems.csv
    """
    from expost.cli.private_files import check_figures, is_list_of_problems, write_problems
    from expost.data.check import find_problems
    from expost.data.files import TableFiles
    from expost.data.open_lazy import scan
    from expost.exceptions import DomainError, FileError

    declared = load_domain(domain, table)
    declared_weighting(weight, max_weight)
    found = scan(table, dialect=declared.table)
    assert isinstance(found, TableFiles)
    _check_columns(found, identifier)
    inputs = (domain, table, *found.paths)
    # A check is repeated until nothing is left.
    force = force or (problems is not None and is_list_of_problems(problems))
    check_figures(problems, "problems", private=True, kinds=(".csv",), inputs=inputs, overwrite=force)
    parts = (*declared.features, declared.label)
    seen = _Kinds([*(part.name for part in parts), *([] if weight is None else [weight])])
    with show_progress("Checking the table") as progress:
        findings = find_problems(
            found,
            parts,
            weight=weight,
            max_weight=max_weight,
            identifier=identifier,
            watch=progress.watch,
        )
        write_problems(problems, seen.passing(findings), identifier=identifier, overwrite=force)
    unused = _unused(found, declared, weight)
    if as_json:
        print_json(seen.fields() | {"unused_columns": unused, "private_problems": problems})
    else:
        _report(seen, unused, problems)
        if not seen.refused:
            say("The table fits the domain. Nothing was spent.")
            say(f"Next: {legible(next_command('fit', domain, table, output='publication.json'))}")
    if seen.broken:
        raise FileError(seen.broken)
    if seen.refused:
        raise DomainError("the table does not fit the domain. Every kind of problem is in the list above.")


class _Kinds:
    """Which columns have which kinds of problems, in a given order of columns; public."""

    def __init__(self, order: list[str]) -> None:
        self._found: dict[str, list[Problem]] = {name: [] for name in order}
        self.broken = ""
        """Why a file cannot be read to its end, where one cannot."""

    def passing(self, findings: "Iterable[Finding]") -> "Iterator[Finding]":
        """Note the kinds of findings as they pass."""
        from expost.data.problems import Problem

        for one in findings:
            if one.problem is Problem.BROKEN:
                self.broken = self.broken or one.values[0]
            kinds = self._found.setdefault(one.column, [])
            if one.problem not in kinds:
                kinds.append(one.problem)
            yield one

    @property
    def pairs(self) -> "list[tuple[str, Problem]]":
        """Every column with each of its kinds."""
        return [(column, kind) for column, kinds in self._found.items() for kind in kinds]

    @property
    def refused(self) -> "list[tuple[str, Problem]]":
        """Those for which a fit would be refused."""
        return [(column, kind) for column, kind in self.pairs if kind.refused]

    def columns(self, problem: "Problem") -> list[str]:
        """The columns that have this kind of problem."""
        return [column for column, kind in self.pairs if kind is problem]

    def fields(self) -> dict[str, object]:
        """What was found, for JSON."""
        problems = [
            {"column": column, "problem": one.title, "advice": one.advice, "refused": one.refused}
            for column, one in self.pairs
        ]
        return {"fits": not self.refused, "problems": problems}


def _check_columns(table: "LazyTable", identifier: str | None) -> None:
    """Refuse what leaves nothing to be checked: one column, or no column of identifiers."""
    from expost.data.file_schema import delimiter_advice
    from expost.exceptions import DomainError, FileError

    advice = delimiter_advice(table.kinds, table.dialect)
    if advice:
        raise FileError(f"{table.paths[0].name!r} cannot be read as it is declared. {advice}.")
    if identifier is not None and identifier not in table.kinds:
        raise DomainError(f"the table lacks the column {identifier!r} that `--id` names.")


def _unused(table: "LazyTable", domain: "Domain", weight: str | None) -> list[str]:
    """The columns that nothing is said about."""
    declared = {*(part.name for part in domain.features), domain.label.name, *domain.ignore, weight}
    return [name for name in table.kinds if name not in declared]


def _report(seen: _Kinds, unused: list[str], problems: Path | None) -> None:
    from expost.data.problems import Problem

    _show_refused(seen)
    _suggest_names(seen.columns(Problem.LACKING), unused)
    clipped = seen.columns(Problem.BEYOND)
    if clipped:
        names = ", ".join(map(legible, clipped))
        say(f"Beyond the declared bounds, so that they count as the bound: {names}.")
        say("      That is no problem if their units are right.")
    if problems is not None and seen.pairs:
        say(f"Private: {legible(problems)}  has everything with its record and value.")
    elif seen.pairs:
        say("To see all of it record by record, add  --problems private-problems.csv")
    if unused:
        say(f"Not used, because the domain file does not name them: {', '.join(map(legible, unused))}")


def _show_refused(seen: _Kinds) -> None:
    """Why a fit would be refused, by columns, and what to do."""
    from expost._common.summary import Summary
    from expost.data.problems import Problem

    if not seen.refused:
        return
    rows: list[tuple[str, str]] = []
    named: set[str] = set()
    for column, kind in seen.refused:
        rows.append(("" if column in named else column, kind.title))
        named.add(column)
    title = "What does not fit the domain (without values and counts)"
    console.print(Summary(title, rows, ("column", "problem")).terminal())
    say("What to do")
    for kind in Problem:
        if any(kind is one for _, one in seen.refused):
            say(f"  {kind.title}:\n      {legible(kind.advice)}")


def _suggest_names(lacking: list[str], unused: list[str]) -> None:
    """Name columns that may be the ones that are missing."""
    from difflib import get_close_matches

    folded = {name.casefold(): name for name in reversed(unused[:_MOST_COMPARED])}
    for column in lacking[:_MOST_COMPARED]:
        for close in get_close_matches(column.casefold(), folded, n=1):
            say(f"Perhaps the table means {legible(column)} by its column {legible(folded[close])}.")
