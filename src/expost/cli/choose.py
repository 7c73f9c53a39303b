"""``expost choose``: spend a budget on ranges that nobody knows, and write the domain file with them."""

import sys
from datetime import UTC, datetime
from typing import Any

import typer
from rich.table import Table

from expost._common.files import atomic_write
from expost._common.validation import check_positive
from expost.cli.base import (
    console,
    error_console,
    legible,
    output_console,
    print_json,
    say,
    show_progress,
)
from expost.cli.commands import ChooseOptions
from expost.cli.ledger import named_account, said_to_be_spent
from expost.cli.plan import check_order
from expost.cli.private_files import check_public
from expost.cli.tables import inputs_of
from expost.cli.words import next_command
from expost.data.choices import RangeChoice
from expost.data.domain import Domain, domain_text
from expost.data.lazy import LazyTable
from expost.data.ranges import AskedRanges, Column, ReadAs
from expost.data.tables import scan
from expost.exceptions import DomainError, FileError
from expost.fitting.choose import choose_ranges
from expost.ledger import Account

# By how many bytes the numbers that are chosen may lengthen the file that has the ends of grids.
_LONGER = 10_000
# The probability that a bound is off by more than is said beforehand.
_FAILURE = 0.05


def choose(options: ChooseOptions) -> None:
    """Choose ranges privately and write the domain."""
    asked, account = _asked(options), named_account(options.ledger, options.account)
    began = datetime.now(UTC)
    if account is not None:
        account.check(*(one.plan for one in asked.ends))  # refuses before the table is touched
    table = scan(options.table, dialect=asked.domain.table)
    inputs = inputs_of(table, options.domain, options.table, options.ledger)
    check_public(options.output, inputs=inputs, overwrite=options.force)
    _announce(options, asked)
    columns = _read(asked, table)
    there = sys.stdin.isatty() and sys.stderr.isatty()
    if not options.yes and there and not typer.confirm("Spend it?", err=options.as_json):
        error_console.print("Nothing was spent or written.")
        raise typer.Exit(1)
    size = len(asked.resolved(asked.ends).to_toml().encode()) + _LONGER
    # The file is open before anything is drawn: nothing is spent where it cannot be written.
    with (
        said_to_be_spent(account, began, "these choices"),
        atomic_write(options.output, overwrite=options.force, room=size) as file,
    ):
        chosen = choose_ranges(
            asked.ends, columns, account=account, promised_to=asked.domain.promised_to, began=began
        )
        domain = asked.resolved(chosen)
        file.write(domain.to_toml())
    if options.as_json:
        _print(options, chosen, account)
    else:
        _show(options, domain, chosen)


def _read(asked: AskedRanges, table: LazyTable) -> dict[ReadAs, Column]:
    """The columns of the table; a refusal says that nothing was spent."""
    try:
        with show_progress("Reading the table and checking it"):
            return asked.read(table)
    except (DomainError, FileError) as error:
        refusal = error
    raise type(refusal)(f"{refusal} Nothing was spent.")


def _asked(options: ChooseOptions) -> AskedRanges:
    epsilon = check_positive("epsilon", options.epsilon)
    check_order(options.domain, options.table)
    return AskedRanges.from_toml(domain_text(options.domain), epsilon)


def _announce(options: ChooseOptions, asked: AskedRanges) -> None:
    whom = "every record alike" if asked.domain.person is None else "each person with all of her rows"
    count, epsilon, out = len(asked.ends), options.epsilon, output_console(options.as_json)
    say(f"Will spend   epsilon {epsilon:g} at delta 0, once, for {whom}:", to=out)
    say(f"             {count} choice{'s' * (count != 1)} of {epsilon / count:.4g} each", to=out)
    off = max(one.missed_by(_FAILURE) for one in asked.ends)
    enough = max(one.missed_by(_FAILURE) / min(one.level, 1.0 - one.level) for one in asked.ends)
    say(f"Expect       each bound within {off:,.0f} people of the best candidate, 95% of the time.", to=out)
    say(
        f"             With fewer than about {float(f'{enough:.2g}'):,.0f} people that can be far too wide:",
        to=out,
    )
    say("             a generous range of your own, which costs nothing, is then better", to=out)
    say(f"Will write   {legible(options.output)}  (public)", to=out)


def _print(options: ChooseOptions, chosen: tuple[RangeChoice, ...], account: Account | None) -> None:
    spent = {"epsilon": options.epsilon, "delta": 0.0, "left": None if account is None else account.left}
    listed = [one.model_dump(mode="json", exclude={"candidates"}) | {"chosen": one.chosen} for one in chosen]
    print_json({"domain": options.output, "choices": listed, **spent})


def _show(options: ChooseOptions, domain: Domain, chosen: tuple[RangeChoice, ...]) -> None:
    parts: dict[str, Any] = {part.name: part for part in (*domain.features, domain.label)}
    table = Table(box=None, padding=(0, 2, 0, 0), title="\nChosen ranges (public)", title_justify="left")
    for heading in ("column", "range", "candidates", "ε"):
        table.add_column(heading, justify="left" if heading == "column" else "right")
    for name in dict.fromkeys(one.column for one in chosen):
        own = [one for one in chosen if one.column == name]
        cost = sum(one.epsilon for one in own)
        table.add_row(legible(name), parts[name].values, f"{len(own[0].candidates):,}", f"{cost:.4g}")
    console.print(table)
    say(f"\nWritten: {legible(options.output)}")
    say("Every figure of a model that is fitted with it counts what these choices cost.")
    following = next_command("fit", options.output, options.table, epsilon=None, output="publication.json")
    say(f"Next: {legible(following)}")
