"""``expost ledger``: what each table has spent and has left."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.bar import Bar
from rich.console import Console
from rich.table import Table

from expost.cli.base import console, legible, output_console, print_json, say, warn
from expost.data.values import attempted
from expost.exceptions import BudgetError, LedgerError, ParameterError
from expost.fitting.choose import noted_choices
from expost.ledger import Account, Ledger, Noted
from expost.ledger.entries import Entry, spent_by
from expost.ledger.ledger import spelt
from expost.publication import Publication

# What JSON has of an entry: everything but its curve.
_OF_AN_ENTRY = ("number", "time", "note", "epsilon", "delta", "state", "sha256", "insecure", "plan")
# More entries than this do not fit on a screen.
_MOST_ENTRIES = 20
# Columns of a terminal from which on everything has its place, and of the chart there and in a narrower one.
_WIDE, _BAR, _SHORT_BAR = 100, 24, 10
# What is left of a note in a narrow terminal: longer words than this are rare.
_NOTE = 12


def ledger(
    file: Path,
    open_account: str | None,
    epsilon: float | None,
    delta: float | None,
    adaptive: bool,
    enter: list[Path] | None,
    account: str | None,
    as_json: bool,
) -> None:
    """Show all accounts, after opening one where a name and a cap are given, and after counting files."""
    book, out = Ledger(file), output_console(as_json)
    published = {path: Publication.load(path) for path in enter or ()}
    if (open_account, epsilon, delta, adaptive) != (None, None, None, False):
        _open(book, open_account, epsilon, delta, adaptive=adaptive)
        say(f"Opened the account {legible(open_account)}.", to=out)
    if published:
        _count(_counting(book, account or open_account), published, out)
    accounts = book.accounts
    if as_json:
        print_json({"accounts": [_fields(one) for one in accounts], "sha256": book.sha256})
        return
    for one in accounts:
        _show(one)
    say(f"{len(accounts)} account{'s' * (len(accounts) != 1)}, state {book.sha256[:16] or 'empty'}")


def named_account(ledger: Path | None, account: str | None) -> Account | None:
    """The account that the options of a command name, if they name one."""
    if (ledger is None) != (account is None):
        lacking = "--ledger" if ledger is None else "--account"
        raise ParameterError(f"add {lacking}: a ledger and one of its accounts go together.")
    return None if ledger is None or account is None else Ledger(ledger).account(account)


@contextmanager
def said_to_be_spent(account: Account | None, began: datetime, what: str) -> Iterator[None]:
    """Warn where ``what`` is entered in a ledger, with the time ``began``, and then cannot be written."""
    before = 0 if account is None else len(account.entries)
    try:
        yield
    except (BudgetError, LedgerError):
        raise  # it says that nothing was entered
    except BaseException:
        # The ledger knows, however shortly after its entry this was stopped.
        if account is not None:
            later = attempted(lambda: [entry.time for entry in account.entries[before:]])
            counts = "cannot be read, and may count" if later is None else "counts"
            if later is None or spelt(began) in later:
                warn(f"the ledger {counts} {what} all the same: nothing is ever refunded.")
        raise


def _open(
    book: Ledger, name: str | None, epsilon: float | None, delta: float | None, *, adaptive: bool
) -> None:
    """Open an account; what is missing is named."""
    if name is None:
        raise ParameterError(
            "a cap and --adaptive are of an account that is opened; add --open NAME. An account that exists "
            "keeps its own cap, and is adaptive or not for good."
        )
    if epsilon is None or delta is None:
        missing = "--epsilon, such as --epsilon 3" if epsilon is None else "--delta, such as --delta 1e-6"
        raise ParameterError(f"an account is opened with a cap of two numbers; add {missing}.")
    book.account(name, epsilon=epsilon, delta=delta, adaptive=adaptive)


def _counting(book: Ledger, name: str | None) -> Account:
    """The account of this name, or the only one."""
    accounts = book.accounts
    if name is None and len(accounts) != 1:
        known = ", ".join(repr(one.name) for one in accounts) or "none: open one with --open"
        raise ParameterError(f"say with --account NAME which account counts it; the ledger has {known}.")
    return accounts[0] if name is None else book.account(name)


def _count(account: Account, published: dict[Path, Publication], out: Console) -> None:
    """Enter what was published without the ledger, all of it or nothing."""
    counted = {entry.sha256 for entry in account.entries}
    for path, one in published.items():
        if one.sha256 in counted:
            raise LedgerError(f"{path} is counted in the account {account.name!r} already, or given twice.")
        counted.add(one.sha256)
    # A choice that several of them used is one entry.
    noted = {each.id: each for path, one in published.items() for each in _noted(path, one)}
    with suppress(BudgetError):
        account.enter_all(noted.values())
        for path in published:
            say(f"Counted {legible(path)} in the account {legible(account.name)}.", to=out)
        return
    raise BudgetError(
        f"{', '.join(map(str, published))}: published already, and with that more is spent than the cap of "
        f"the account {account.name!r}, epsilon {account.epsilon:g} at delta {account.delta:g}. So this cap "
        "does not hold: open an account with a larger one, and count everything there."
    )


def _noted(path: Path, published: Publication) -> list[Noted]:
    """What an account enters of a publication, with the choices that it used."""
    choices = () if published.domain is None else published.domain.choices
    whom, seeded = "person" if published.of_people else "row", published.insecure is not None
    fitted = Noted(path.name, published.release.plan, published.sha256, seeded, whom)
    return [*noted_choices(choices, whom), fitted]


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
    say(f"{counted}; left: ε = {account.left:.4g} at δ = {account.delta:g}")
    if entries:
        say("Fits cost less together than one by one: --dry-run of a fit says what it would add.")
    say("")


def _table(account: Account, entries: tuple[Entry, ...]) -> Table:
    wide = console.width >= _WIDE
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("entered", no_wrap=True)
    table.add_column("note", min_width=_NOTE)
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
