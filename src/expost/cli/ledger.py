"""``expost ledger``: what each table has spent and has left."""

from pathlib import Path
from typing import Any

from rich.bar import Bar
from rich.table import Table

from expost._common.validation import parameter_error
from expost.cli.base import console, legible, output_console, print_json, say
from expost.ledger import Account, Ledger
from expost.ledger.entries import Entry, spent_by

# What JSON has of an entry: everything but its curve.
_OF_AN_ENTRY = ("number", "time", "note", "epsilon", "delta", "state", "sha256", "insecure", "plan")
# More entries than this do not fit on a screen.
_MOST_ENTRIES = 20
# Columns of a terminal from which on everything has its place, and of the chart there and in a narrower one.
_WIDE, _BAR, _SHORT_BAR = 100, 24, 10


def ledger(
    file: Path,
    open_account: str | None,
    epsilon: float | None,
    delta: float | None,
    adaptive: bool,
    as_json: bool,
) -> None:
    """Show all accounts, after opening one where a name and a cap are given."""
    book = Ledger(file)
    if (open_account, epsilon, delta, adaptive) != (None, None, None, False):
        if open_account is None:
            way_out = "An account that exists keeps its own, and is adaptive or not for good."
            raise parameter_error("open", "given with a cap or `--adaptive`", None, way_out)
        for name, value in (("epsilon", epsilon), ("delta", delta)):
            if value is None:
                raise parameter_error(name, "given where an account is opened", None)
        book.account(open_account, epsilon=epsilon, delta=delta, adaptive=adaptive)
        say(f"Opened the account {legible(open_account)}.", to=output_console(as_json))
    accounts = book.accounts
    if as_json:
        print_json({"accounts": [_fields(account) for account in accounts], "sha256": book.sha256})
        return
    for account in accounts:
        _show(account)
    say(f"{len(accounts)} account{'s' * (len(accounts) != 1)}, state {book.sha256[:16] or 'empty'}")


def _fields(account: Account) -> dict[str, Any]:
    return {
        "name": account.name,
        "epsilon": account.epsilon,
        "delta": account.delta,
        "adaptive": account.adaptive,
        "spent": account.spent.epsilon_at(account.delta),
        "left": account.left,
        "entries": [{name: getattr(entry, name) for name in _OF_AN_ENTRY} for entry in account.entries],
    }


def _show(account: Account) -> None:
    """One account: its last entries, what was spent together after each, and what is left."""
    entries = account.entries
    cap = f"ε = {account.epsilon:g} at δ = {account.delta:g}"
    chosen = "; plans may be chosen from what was published" if account.adaptive else ""
    say(f"[bold]{legible(account.name)}[/bold]: {cap} for everything ever published{chosen}")
    if entries:
        console.print(_table(account, entries))
    more = f", the last {_MOST_ENTRIES} shown" if len(entries) > _MOST_ENTRIES else ""
    counted = f"{len(entries)} publication{'s' * (len(entries) != 1)}{more}" if entries else "Nothing spent"
    say(f"{counted}; left: ε = {account.left:.4g} at δ = {account.delta:g}\n")


def _table(account: Account, entries: tuple[Entry, ...]) -> Table:
    wide = console.width >= _WIDE
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("entered", no_wrap=True)
    table.add_column("note", overflow="fold")
    for heading in ("state", "file"):
        table.add_column(heading, no_wrap=True)
    for heading in ("ε alone", *["δ alone"] * wide, "ε spent"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("of the cap", no_wrap=True)
    for place in range(max(len(entries) - _MOST_ENTRIES, 0), len(entries)):
        entry = entries[place]
        spent = spent_by(entries[: place + 1], account.order).epsilon_at(account.delta)
        end, width = min(spent, account.epsilon), _BAR if wide else _SHORT_BAR
        cells = (
            entry.time[: 16 if wide else 10].replace("T", " "),
            f"{'INSECURE: ' * entry.insecure}{entry.note}",
            entry.state,
            "" if entry.sha256 is None else entry.sha256[:8],
            f"{entry.epsilon:.4g}",
            *[f"{entry.delta:g}"] * wide,
            f"{spent:.4g}",
        )
        bar = Bar(size=account.epsilon, begin=0.0, end=end, width=width, color="cyan")
        table.add_row(*map(legible, cells), bar)
    return table
