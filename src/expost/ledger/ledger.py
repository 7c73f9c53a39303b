"""Ledger: the accounts of several tables in one file."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from expost._common.summary import Summary
from expost._common.validation import check_positive, parameter_error
from expost.exceptions import LedgerError
from expost.ledger.account import Account, spelt
from expost.ledger.entries import LONGEST_NAME, account_body, histories, is_line, readable
from expost.ledger.storage import Event, create, read, transaction
from expost.privacy.joint_loss import accountant

if TYPE_CHECKING:
    from rich.table import Table

# Compositions are resolved down to about a tenth of this.
_SMALLEST_DELTA = 1e-10


class Ledger:
    """One file that counts what was spent of every table, and that cannot be overdrawn.

    An SQLite file with one account for each table. A fit that is given an account is entered in one
    transaction before its noise is drawn, and refused if the account would be overdrawn: of two processes
    that race for the last of a budget, one wins. Nothing is ever refunded; a fit that was killed stays
    entered, as unfinished. The file holds public values only. Each event in it carries a hash of all before
    it, so a change by anything else is noticed and the file refused. Whoever computes all hashes again is
    not noticed: keep copies, or note :attr:`sha256` elsewhere.

    Parameters
    ----------
    path
        The file, made when the first account is opened. It must be on a disk whose locks work: not on every
        network drive.

    Privacy
    -------
    Public.

    Examples
    --------
    >>> import tempfile, expost
    >>> folder = tempfile.TemporaryDirectory()
    >>> account = expost.Ledger(f"{folder.name}/ledger.db").account("patients", epsilon=3.0, delta=1e-6)
    >>> number = account.enter(expost.calibrate(loss="logistic", epsilon=1.0, delta=1e-7))
    >>> account.finish(number)
    >>> [entry.state for entry in account.entries], round(account.left, 1)
    (['finished'], 2.1)
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        accountant()  # refuses before anything is made
        self.path = Path(path).absolute()

    def account(self, name: str, *, epsilon: float | None = None, delta: float | None = None) -> Account:
        """The account of a table; it is opened where there is none of that name, and needs a cap then.

        Parameters
        ----------
        name
            A name for the table. It is public.
        epsilon, delta
            The cap on everything that is ever published from the table. An account that exists keeps its own:
            another one is refused.

        Privacy
        -------
        Public.
        """
        if not (is_line(name, LONGEST_NAME) and name):
            raise parameter_error("name", f"a printable text of 1 to {LONGEST_NAME} characters", name)
        cap = None
        if epsilon is not None or delta is not None:
            cap = (check_positive("epsilon", epsilon), check_positive("delta", delta, below=1.0))
            if cap[1] < _SMALLEST_DELTA:
                raise parameter_error("delta", f"at least {_SMALLEST_DELTA:g} for an account", delta)
            if not self.path.exists():
                create(self.path)
        found = self._named(name, read(self.path)[0])
        if found is None and cap is not None:
            with transaction(self.path) as ledger:
                found = self._named(name, ledger.events)
                if found is None:
                    ledger.append(account_body(name, *cap, time=spelt(datetime.now(UTC))))
                    found = Account(self.path, name, *cap)
        if found is None:
            known = ", ".join(repr(account.name) for account in self.accounts) or "none"
            raise LedgerError(
                f"{self.path} has no account {name!r}; it has {known}. Open it with an epsilon and a delta."
            )
        if cap is not None and cap != (found.epsilon, found.delta):
            raise LedgerError(
                f"the account {name!r} has a cap of epsilon {found.epsilon:g} at delta {found.delta:g} and "
                f"keeps it; got epsilon {cap[0]:g} at delta {cap[1]:g}. Leave both out, or open another."
            )
        return found

    @property
    def accounts(self) -> tuple[Account, ...]:
        """All accounts, in the order in which they were opened. Public."""
        return self._accounts(read(self.path)[0])

    @property
    def sha256(self) -> str:
        """The hash of everything in the ledger; it changes with every event. Public."""
        return read(self.path)[1]

    def _accounts(self, events: tuple[Event, ...]) -> tuple[Account, ...]:
        with readable(self.path):
            found = histories(events)
            return tuple(Account(self.path, name, *history.cap) for name, history in found.items())

    def _named(self, name: str, events: tuple[Event, ...]) -> Account | None:
        return next((account for account in self._accounts(events) if account.name == name), None)

    def _summary(self) -> Summary:
        rows = []
        for account in self.accounts:
            spent = account.spent.epsilon_at(account.delta)
            left = max(account.epsilon - spent, 0.0)
            entries = str(len(account.entries))
            cap = f"{account.epsilon:g}"
            rows.append((account.name, entries, f"{spent:.4g}", cap, f"{left:.4g}", f"{account.delta:g}"))
        columns = ("account", "publications", "ε spent", "ε in all", "ε left", "at δ")
        return Summary("Ledger (public)", rows, columns, figures=True)

    def __rich__(self) -> "Table":
        return self._summary().terminal()

    def _repr_html_(self) -> str:
        return self._summary().html()

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"
