"""``expost init`` and ``expost check``: a domain file to fill in, and what in a table does not fit it."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer
from pydantic import ValidationError

from expost._common.files import atomic_write
from expost._common.summary import Summary
from expost._common.validation import parameter_error
from expost.cli.base import console, error_console, legible, print_json, say, show_progress
from expost.cli.commands import CheckOptions, DialectOptions
from expost.cli.plan import check_order, declared_weighting
from expost.cli.private_files import check_figures, check_public, is_list_of_problems, write_problems
from expost.cli.tables import check_identifier, inputs_of
from expost.cli.words import next_command, unsigned
from expost.data.check import Finding, find_problems
from expost.data.dialect import PLAIN, Dialect, delimiter_advice
from expost.data.domain import Domain, domain_text
from expost.data.problems import Problem
from expost.data.ranges import with_stand_ins
from expost.data.skeleton import skeleton
from expost.data.tables import scan
from expost.exceptions import DomainError, FileError

# How many names are compared with each other, for a column that is called otherwise.
_MOST_COMPARED = 100


def init(table: Path, label: str | None, output: Path | None, force: bool, options: DialectOptions) -> None:
    """Print or write a domain file to fill in."""
    dialect = _dialect(options)
    scanned = scan(table, dialect=dialect)
    text = skeleton(scanned.kinds, label, dialect)
    if output is None:
        typer.echo(text, nl=False)
    else:
        check_public(output, inputs=inputs_of(scanned, table), overwrite=force)
        with atomic_write(output, overwrite=force) as file:
            file.write(text)
    command = next_command("check", output or "domain.toml", table)
    say(f"Next: fill in the file, then run  {legible(command)}", to=error_console)


def _dialect(options: DialectOptions) -> Dialect:
    """The dialect that the options describe; ParameterError names one that cannot be."""
    given = {name: value for name, value in asdict(options).items() if value not in (None, [])}
    if given.get("delimiter") in ("tab", "\\t"):
        given["delimiter"] = "\t"
    try:
        return PLAIN.changed(**given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    name = str(first["loc"][0])
    constraint = first["msg"].removeprefix("Value error, must be ").removeprefix("Input should be ")
    raise parameter_error(name, constraint, given[name])


def check(options: CheckOptions) -> None:
    """Find everything in a table that does not fit the domain."""
    weight, problems, identifier = options.weight, options.problems, options.identifier
    check_order(options.domain, options.table)
    declared, to_choose = with_stand_ins(domain_text(options.domain))
    declared_weighting(weight, options.max_weight)
    table = scan(options.table, dialect=declared.table)
    advice = delimiter_advice(table.kinds, declared.table)
    if advice:
        raise FileError(f"{table.paths[0].name!r} cannot be read as it is declared. {advice}.")
    check_identifier(table, identifier)
    inputs = inputs_of(table, options.domain, options.table)
    # A check is repeated until nothing is left.
    force = options.force or is_list_of_problems(problems)
    check_figures(problems, "problems", private=True, kinds=(".csv",), inputs=inputs, overwrite=force)
    parts = declared.checked
    names = list(filter(None, [*(part.name for part in parts), declared.person, weight]))
    seen = _Kinds(names)
    with show_progress("Checking the table") as progress:
        findings = find_problems(
            table,
            parts,
            weight=weight,
            max_weight=options.max_weight,
            person=declared.person,
            identifier=identifier,
            watch=progress.watch,
        )
        written: Any = {"identifier": identifier, "overwrite": force, "dialect": declared.table}
        write_problems(problems, seen.passing(findings), **written)
    used = {*names, *declared.ignore}
    unused = [name for name in table.kinds if name not in used]
    if options.as_json:
        print_json({**seen.document(), "unused_columns": unused, "private_problems": problems})
    else:
        _report(seen, unused, problems, counted=declared.person is not None)
        if not seen.refused:
            _say_next(options, declared, choose=bool(to_choose))
    if seen.broken:
        raise FileError(seen.broken)
    if seen.refused:
        raise DomainError("the table does not fit the domain. Every kind of problem is in the list above.")


def _say_next(options: CheckOptions, declared: Domain, *, choose: bool) -> None:
    """Say that the table fits, and how to go on: ranges are chosen first, where any is to be."""
    step, output = ("choose", "chosen.toml") if choose else ("fit", "publication.json")
    command = next_command(step, options.domain, options.table, output=output)
    unsaid = unsigned(declared)
    say("The table fits the domain. Nothing was spent." + f"\n{unsaid}" * bool(unsaid))
    say(f"Next: {legible(command)}")


class _Kinds:
    """Which columns have which kinds of problems, in a given order of columns; public."""

    def __init__(self, order: list[str]) -> None:
        self._found: dict[str, dict[Problem, None]] = {name: {} for name in order}
        self.broken = ""
        """Why a file cannot be read to its end, where one cannot."""

    def passing(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Note the kinds of findings as they pass."""
        for one in findings:
            if one.problem is Problem.BROKEN:
                self.broken = self.broken or one.values[0]
            if one.problem is not Problem.COUNTED:  # that is for the private file alone
                self._found.setdefault(one.column, {})[one.problem] = None
            yield one

    @property
    def pairs(self) -> list[tuple[str, Problem]]:
        """Every column with each of its kinds."""
        return [(column, kind) for column, kinds in self._found.items() for kind in kinds]

    @property
    def refused(self) -> list[tuple[str, Problem]]:
        """Those for which a fit would be refused."""
        return [(column, kind) for column, kind in self.pairs if kind.refused]

    def document(self) -> dict[str, Any]:
        """All of it for a program."""
        found = [
            {"column": column, "problem": kind.title, "advice": kind.advice, "refused": kind.refused}
            for column, kind in self.pairs
        ]
        return {"fits": not self.refused, "problems": found}

    def columns(self, problem: Problem) -> list[str]:
        """The columns that have this kind of problem."""
        return [column for column, kind in self.pairs if kind is problem]


def _guess_names(lacking: list[str], unused: list[str]) -> None:
    """Say which columns of the table are perhaps those that it lacks."""
    folded = {name.casefold(): name for name in reversed(unused)}
    for column in lacking:
        for close in get_close_matches(column.casefold(), folded, n=1):
            there, here = legible(folded[close]), legible(column)
            say(f"Is '{there}' of the table what the domain file calls '{here}'? Then rename one of them.")


def _report(seen: _Kinds, unused: list[str], problems: Path | None, *, counted: bool) -> None:
    if seen.refused:
        _show_refused(seen)
    _guess_names(seen.columns(Problem.LACKING)[:_MOST_COMPARED], unused[:_MOST_COMPARED])
    clipped = seen.columns(Problem.BEYOND)
    if clipped:
        names = ", ".join(map(legible, clipped))
        say(f"Beyond the declared bounds, so that they count as the bound: {names}.")
        say("      That is no problem if their units are right. Are some of them codes for missing values?")
        say(f"      Then list these as missing_words under {legible('[table]')}.")
    late = seen.columns(Problem.LATE)
    if late:
        names = ", ".join(map(legible, late))
        say(f"After the last period, so that nothing happened within the periods: {names}.")
        say("      That is no problem if `periods` and `length` are meant so, in the unit of the times.")
    _show_odd(seen)
    if problems is not None and seen.pairs:
        say(f"Private: {legible(problems)}  has everything with its record and value.")
    elif problems is not None and counted:
        say(f"Private: {legible(problems)}  says how many people and rows there are.")
    elif seen.pairs:
        say("To see all of it record by record, add  --problems private-problems.csv")
    if unused:
        say(f"Not used, because the domain file does not name them: {', '.join(map(legible, unused))}")


def _show_odd(seen: _Kinds) -> None:
    """Say of an outcome that some are none of its kind, although a fit takes them."""
    for kind in (Problem.AMOUNT, Problem.COUNT):
        for column in seen.columns(kind):
            say(f"{legible(column)}: {kind.title}.\n      {legible(kind.advice)}")


def _show_refused(seen: _Kinds) -> None:
    """Why a fit would be refused, by columns, and what to do."""
    rows: list[tuple[str, str]] = []
    named: set[str] = set()
    for column, kind in seen.refused:
        rows.append(("" if column in named else column, kind.title))
        named.add(column)
    title = "What does not fit the domain (without values and counts)"
    console.print(Summary(title, rows, ("column", "problem")).terminal())
    say("What to do")
    for kind in Problem:
        if kind.refused and seen.columns(kind):
            say(f"  {kind.title}:\n      {legible(kind.advice)}")
