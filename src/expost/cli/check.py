"""``expost check``: every problem of a table at once."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from expost.cli.base import console, legible, print_json, report_errors, say
from expost.cli.options import (
    AsJson,
    Dates,
    Decimal,
    Delimiter,
    DomainFile,
    Encoding,
    Force,
    Identifier,
    MaxWeight,
    MissingWords,
    Table,
    Weight,
    declared_weighting,
    load_domain,
)
from expost.cli.words import next_command

if TYPE_CHECKING:
    from expost.data.check import Finding
    from expost.data.domain import Domain
    from expost.data.lazy import LazyTable
    from expost.data.problems import Problem


# So many names are compared with each other, for a column that is called otherwise.
_MOST_COMPARED = 100


@report_errors
def check(
    domain: DomainFile,
    table: Table,
    problems: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write every problem with its record and value (.csv), for the curator only; the name must "
            "have 'private' in it.",
        ),
    ] = None,
    identifier: Identifier = None,
    weight: Weight = None,
    max_weight: MaxWeight = 1.0,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    missing_words: MissingWords = None,
    dates: Dates = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Find everything in a table that does not fit the domain, at once. Nothing is spent.

    The screen shows which columns have which kind of problem: no value, no record and no number of problems.
    The file of `--problems` lists them record by record, and is private. Status 1 if `fit` would refuse the
    table.

    Example: expost check domain.toml table.csv --problems private-problems.csv
    """
    from expost.cli.base import shown
    from expost.cli.private_files import check_private, is_list_of_problems, write_problems
    from expost.data.check import find_problems
    from expost.data.files import TableFiles
    from expost.data.open_lazy import scan
    from expost.exceptions import DomainError, FileError

    options = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding, "dates": dates}
    declared = load_domain(domain, table, missing_words=missing_words, **options)
    declared_weighting(weight, max_weight)
    found = scan(table, dialect=declared.table)
    assert isinstance(found, TableFiles)
    _check_columns(found, identifier)
    if problems is not None:
        inputs = (domain, table, *found.paths)
        force = force or is_list_of_problems(problems)  # a check is repeated until nothing is left
        check_private(problems, "problems", kinds=(".csv",), inputs=inputs, overwrite=force)
    order = [part.name for part in declared.features] + [declared.label.name]
    seen = _Kinds(order if weight is None else [*order, weight])
    with shown("Checking the table") as progress:
        findings = seen.passing(
            find_problems(
                found,
                (*declared.features, declared.label),
                weight=weight,
                max_weight=max_weight,
                identifier=identifier,
                watch=progress.watch,
            )
        )
        if problems is not None:
            write_problems(problems, findings, identifier=identifier, overwrite=force)
        else:
            for _ in findings:
                pass
    unused = _unused(found, declared, weight)
    if as_json:
        print_json(_fields(seen) | {"unused_columns": unused, "private_problems": problems})
    else:
        _report(seen, unused, problems, domain=domain, table=table)
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
        """The same findings."""
        from expost.data.problems import Problem

        for one in findings:
            if one.problem is Problem.BROKEN:
                self.broken = self.broken or one.values[0]
            kinds = self._found.setdefault(one.column, [])
            if one.problem not in kinds:
                kinds.append(one.problem)
            yield one

    @property
    def by_column(self) -> "dict[str, list[Problem]]":
        """The kinds of each column that has any."""
        return {column: kinds for column, kinds in self._found.items() if kinds}

    @property
    def refused(self) -> bool:
        """Whether a fit would be refused."""
        return any(problem.refused for kinds in self.by_column.values() for problem in kinds)


def _fields(seen: _Kinds) -> dict[str, object]:
    problems = [
        {"column": column, "problem": one.title, "advice": one.advice, "refused": one.refused}
        for column, kinds in seen.by_column.items()
        for one in kinds
    ]
    return {"fits": not seen.refused, "problems": problems}


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


def _report(seen: _Kinds, unused: list[str], problems: Path | None, *, domain: Path, table: Path) -> None:
    from difflib import get_close_matches

    from expost._common.summary import Summary
    from expost.data.problems import Problem

    refused = {column: [kind for kind in kinds if kind.refused] for column, kinds in seen.by_column.items()}
    rows = [
        (column if place == 0 else "", kind.title)
        for column, kinds in refused.items()
        for place, kind in enumerate(kinds)
    ]
    if rows:
        title = "What does not fit the domain (without values and counts)"
        console.print(Summary(title, rows, ("column", "problem")).terminal())
        say("What to do")
        for kind in Problem:
            if any(kind in kinds for kinds in refused.values()):
                say(f"  {kind.title}:\n      {legible(kind.advice)}")
    folded = {name.casefold(): name for name in reversed(unused[:_MOST_COMPARED])}
    lacking = [column for column, kinds in refused.items() if Problem.LACKING in kinds]
    for column in lacking[:_MOST_COMPARED]:
        for close in get_close_matches(column.casefold(), folded, n=1):
            say(f"Perhaps the table means {legible(column)} by its column {legible(folded[close])}.")
    clipped = [column for column, kinds in seen.by_column.items() if Problem.BEYOND in kinds]
    if clipped:
        names = ", ".join(map(legible, clipped))
        say(f"Beyond the declared bounds, so that they count as the bound: {names}.")
        say("      That is no problem if their units are right.")
    if problems is not None and seen.by_column:
        say(f"Private: {legible(problems)}  has everything with its record and value.")
    elif seen.by_column:
        say("To see all of it record by record, add  --problems private-problems.csv")
    if unused:
        say(f"Not used, because the domain file does not name them: {', '.join(map(legible, unused))}")
    if not seen.refused:
        say("The table fits the domain. Nothing was spent.")
        say(f"Next: {legible(next_command('fit', domain, table, output='publication.json'))}")
