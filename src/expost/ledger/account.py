"""An account: what one table may spend in all, and every publication that spent of it."""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from expost._common.summary import Summary
from expost._common.validation import parameter_error
from expost.exceptions import BudgetError, LedgerError
from expost.ledger.entries import (
    FINISHED,
    LONGEST_NOTE,
    Entry,
    entry_body,
    finished_body,
    histories,
    is_line,
    readable,
    spent_by,
)
from expost.ledger.storage import Event, read, transaction
from expost.privacy.composition import Composition
from expost.privacy.plan import Plan
from expost.privacy.profile_curve import ProfileCurve, curve_of

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Account:
    r"""What one table may spend in all, as a cap :math:`(\epsilon, \delta)` on everything published from it.

    Opened by :meth:`expost.Ledger.account` and given to a fit as ``account=``. The fit is entered before its
    noise is drawn, if all entries together then still have :math:`\delta(\epsilon)` of at most the cap's
    :math:`\delta` by :func:`expost.compose`. Otherwise it is refused, and nothing is drawn.

    It is a reference: small, frozen, and safe to pickle, to copy and to use in several processes at once. The
    entries are in the ledger's file.

    Attributes
    ----------
    path
        The ledger's file.
    name
        The account's name.
    epsilon, delta
        The cap.
    note
        What is written beside the next entries.

    Privacy
    -------
    Public. The cap holds for whoever has one record in the table, under adding or removing it, if every
    publication of the table is counted here and no plan is chosen from what was published
    (:func:`expost.compose`).
    """

    path: Path
    name: str
    epsilon: float
    delta: float
    note: str = ""

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every publication that was entered, in order. Public."""
        return self._entries(read(self.path)[0])

    @property
    def spent(self) -> Composition:
        """What all entries cost together, whether they were finished or not. Public."""
        return spent_by(self.entries)

    @property
    def left(self) -> float:
        """The cap's ε less what all entries cost together, at the cap's δ. Public.

        Publications cost less together than one by one, so the next fit adds less than its own ε as a rule.
        """
        return max(self.epsilon - self.spent.epsilon_at(self.delta), 0.0)

    def noted(self, note: str) -> "Account":
        """The same account with a note for the next entries. Notes are public."""
        return replace(self, note=_checked(note))

    def check(self, plan: Plan) -> None:
        """Raise an error if a plan would overdraw the account now; nothing is entered. Public.

        Raises
        ------
        BudgetError
            If it would. The message says what is left.
        """
        self._check(self.entries, plan)

    def enter(
        self,
        plan: Plan,
        *,
        note: str = "",
        insecure: bool = False,
        began: datetime | None = None,
    ) -> int:
        """Enter a plan as spent, in one transaction; return the entry's number.

        For mechanisms of one's own. The estimators and ``expost fit`` call it just before they draw noise,
        and :meth:`finish` after everything was published. What is entered is never taken back. The time of an
        entry is ``began``, by default now: give the time before the table was read, because how long that
        takes depends on the table.

        Raises
        ------
        BudgetError
            If the account would be overdrawn; nothing was entered.
        LedgerError
            If the entry cannot be written; nothing was entered.

        Privacy
        -------
        Public.
        """
        _curve(plan)  # before other processes have to wait
        with transaction(self.path) as ledger:
            self._check(self._entries(ledger.events), plan)
            note = _checked(self.note or note)
            time = spelt(datetime.now(UTC) if began is None else began)
            body = entry_body(plan, account=self.name, time=time, note=note, insecure=insecure)
            return ledger.append(body).number

    def finish(self, number: int, *, sha256: str | None = None) -> None:
        """Mark an entry as finished, with the hash of its publication and without the time. Public.

        How long a fit takes depends on the table, and no budget pays for that.
        """
        if not (sha256 is None or (isinstance(sha256, str) and re.fullmatch("[0-9a-f]{64}", sha256))):
            raise parameter_error("sha256", "a publication's `sha256` or None", sha256)
        with transaction(self.path) as ledger:
            entry = next((entry for entry in self._entries(ledger.events) if entry.number == number), None)
            if entry is None or entry.state == FINISHED:
                raise parameter_error("number", "that of an unfinished entry of this account", number)
            ledger.append(finished_body(number, sha256))

    def _entries(self, events: tuple[Event, ...]) -> tuple[Entry, ...]:
        with readable(self.path):
            found = histories(events).get(self.name)
            if found is None or found.cap != (self.epsilon, self.delta):
                raise LedgerError(
                    f"{self.path} has no account {self.name!r} with a cap of epsilon {self.epsilon:g} at "
                    f"delta {self.delta:g}. It is another file than the one in which it was opened."
                )
            return tuple(found.entries)

    def _check(self, entries: tuple[Entry, ...], plan: Plan) -> None:
        before = spent_by(entries)
        after = Composition((*before.curves, _curve(plan)))
        if after.delta_at(self.epsilon) <= self.delta:
            return
        spent, together = before.epsilon_at(self.delta), after.epsilon_at(self.delta)
        raise BudgetError(
            f"the account {self.name!r} has epsilon {max(self.epsilon - spent, 0.0):.4g} left of "
            f"{self.epsilon:g} at delta {self.delta:g}, and with this fit, of epsilon {plan.epsilon:g} at "
            f"delta {plan.delta:g}, it would have spent {together:.4g}. Nothing was spent. Ask for a smaller "
            "epsilon or delta, or publish no more from this table."
        )

    def _summary(self) -> Summary:
        entries = self.entries
        rows = [
            (
                entry.time[:16].replace("T", " "),
                f"{'INSECURE: ' * entry.insecure}{entry.note}",
                f"{entry.epsilon:.4g}",
                f"{entry.delta:g}",
                entry.state,
            )
            for entry in entries
        ]
        spent = spent_by(entries).epsilon_at(self.delta)
        notes = (
            f"spent ε = {spent:.4g} of {self.epsilon:g} at δ = {self.delta:g}, "
            f"left {max(self.epsilon - spent, 0.0):.4g}",
        )
        columns = ("entered", "note", "ε alone", "δ alone", "state")
        return Summary(f"Account {self.name} (public)", rows, columns, notes)

    def __rich__(self) -> "Table":
        return self._summary().terminal()

    def _repr_html_(self) -> str:
        return self._summary().html()


def _curve(plan: Plan) -> ProfileCurve:
    if not isinstance(plan, Plan):
        raise parameter_error("plan", "a plan of `expost.calibrate`", type(plan).__name__)
    return curve_of(plan)


def _checked(note: str) -> str:
    """A note as a table can show it."""
    if not is_line(note, LONGEST_NOTE):
        raise parameter_error(
            "note",
            f"a printable text of at most {LONGEST_NOTE} characters",
            note[:80] if isinstance(note, str) else note,
        )
    return note


def spelt(time: datetime) -> str:
    """A time as an event has it."""
    return time.astimezone(UTC).isoformat(timespec="seconds")
