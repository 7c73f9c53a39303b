"""``expost ledger``: what each table has spent and has left."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.bar import Bar
from rich.table import Table
from rich.text import Text

from expost.cli.base import console, legible, output_console, print_json, report_errors, say
from expost.cli.options import AsJson, number
from expost.exceptions import printable

if TYPE_CHECKING:
    from expost.ledger import Account

# More entries than this do not fit on a screen.
_MOST_ENTRIES = 40
_BAR = 24


@report_errors
def ledger(
    file: Annotated[
        Path, typer.Argument(metavar="LEDGER", help="The ledger's file, such as ledger.db; public.")
    ],
    open_account: Annotated[
        str | None,
        typer.Option("--open", metavar="NAME", help="Open an account for a table; needs the cap as well."),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            parser=number, metavar="<number>", help="Cap: the epsilon of everything ever published."
        ),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(parser=number, metavar="<number>", help="Cap: its delta.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show accounts, entries, and what is left of each cap; or open an account.

    A fit with `--ledger` and `--account` is entered before its noise is drawn, and refused if the account
    would be overdrawn. Nothing is ever refunded: an unfinished entry is spent.

    Example: expost ledger ledger.db --open patients --epsilon 3 --delta 1e-6
    """
    from expost._common.validation import parameter_error
    from expost.ledger import Ledger

    book = Ledger(file)
    if open_account is not None:
        if epsilon is None or delta is None:
            missing = "epsilon" if epsilon is None else "delta"
            raise parameter_error(missing, "given where an account is opened", None)
        book.account(open_account, epsilon=epsilon, delta=delta)
        say(f"Opened the account {legible(open_account)}.", to=output_console(as_json))
    elif epsilon is not None or delta is not None:
        raise parameter_error("open", "given with a cap", None, "An account that exists keeps its own.")
    accounts = book.accounts
    if as_json:
        print_json({"accounts": [_fields(account) for account in accounts], "sha256": book.sha256})
        return
    for account in accounts:
        _show(account)
    say(f"{len(accounts)} account{'s' * (len(accounts) != 1)}, state {book.sha256[:16] or 'empty'}")


def _fields(account: "Account") -> dict[str, Any]:
    entries = account.entries
    return {
        "name": account.name,
        "epsilon": account.epsilon,
        "delta": account.delta,
        "spent": account.spent.epsilon_at(account.delta),
        "left": account.left,
        "entries": [
            {
                "number": entry.number,
                "time": entry.time,
                "note": entry.note,
                "epsilon": entry.epsilon,
                "delta": entry.delta,
                "state": entry.state,
                "sha256": entry.sha256,
                "insecure": entry.insecure,
                "plan": entry.plan,
            }
            for entry in entries
        ],
    }


def _show(account: "Account") -> None:
    """One account: its entries, what they have spent together after each, and what is left."""
    from expost.ledger.entries import spent_by

    entries = account.entries
    table = Table(
        title=Text(f"{printable(account.name)}: ε = {account.epsilon:g} at δ = {account.delta:g} in all"),
        title_justify="left",
        box=None,
    )
    for heading in ("entered", "note", "state", "publication"):
        table.add_column(heading)
    for heading in ("ε alone", "δ alone", "ε spent"):
        table.add_column(heading, justify="right")
    table.add_column("of the cap")
    first = max(len(entries) - _MOST_ENTRIES, 0)
    for place, entry in enumerate(entries[first:], start=first + 1):
        spent = spent_by(entries[:place]).epsilon_at(account.delta)
        state = f"{entry.state}{', INSECURE' * entry.insecure}"
        table.add_row(
            entry.time[:16].replace("T", " "),
            Text(printable(entry.note)),
            state,
            "" if entry.sha256 is None else entry.sha256[:8],
            f"{entry.epsilon:.4g}",
            f"{entry.delta:g}",
            f"{spent:.4g}",
            Bar(size=account.epsilon, begin=0.0, end=min(spent, account.epsilon), width=_BAR, color="cyan"),
        )
    console.print(table)
    more = f", the last {_MOST_ENTRIES} shown" if first else ""
    say(
        f"{len(entries)} publication{'s' * (len(entries) != 1)}{more}; left: ε = {account.left:.4g} at "
        f"δ = {account.delta:g}\n"
    )
