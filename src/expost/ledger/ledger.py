"""Ledger and Account: what each table may spend in all, and every publication that spent of it."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from expost._common.summary import Summarized, Summary
from expost._common.validation import check_positive, parameter_error
from expost.exceptions import BudgetError, LedgerError
from expost.ledger.entries import (
    FINISHED,
    LONGEST_NAME,
    LONGEST_NOTE,
    AccountOpened,
    Entered,
    Entry,
    Finished,
    Noted,
    histories,
    is_line,
    spent_by,
)
from expost.ledger.storage import Events, Transaction, create, opening, read, transaction
from expost.privacy.adaptive import filter_order
from expost.privacy.composition import Composition, accountant
from expost.privacy.plan import Plan
from expost.privacy.profile_curve import AnyPlan, ProfileCurve, curve_of


@dataclass(frozen=True)
class Account(Summarized):
    r"""What one table may spend in all, as a cap :math:`(\epsilon, \delta)` on everything published from it.

    Opened by :meth:`expost.Ledger.account` and given to a fit as ``account=``. The fit is entered before its
    noise is drawn, if all entries together then still have :math:`\delta(\epsilon)` of at most the cap's
    :math:`\delta` by :func:`expost.compose`. Otherwise it is refused, and nothing is drawn.

    It is a reference: small, frozen, and safe to pickle, to copy and to use in several processes at once. The
    entries are in the ledger's file.

    Attributes
    ----------
    path, name
        The ledger's file, and the account's name there.
    epsilon, delta
        The cap.
    note
        What is written with the next entries.
    order
        None, or the number of the Rényi order that an adaptive account adds up at
        (:class:`~expost.privacy.adaptive.AdaptiveComposition`).

    Privacy
    -------
    Public. The cap holds for whoever has one record in the table, or for each person with all of hers if the
    plans are for people, under adding or removing it, if every publication of the table is counted here and,
    unless the account is adaptive, no plan is chosen from what was published (:func:`expost.compose`). The
    first entry decides for which: a plan of the other unit is refused.
    """

    path: Path
    name: str
    epsilon: float
    delta: float
    note: str = ""
    order: int | None = None

    @property
    def adaptive(self) -> bool:
        """Whether plans may be chosen from what was published before. Public."""
        return self.order is not None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every publication that was entered, in order. Public."""
        return self._entries(read(self.path)[0])

    @property
    def spent(self) -> Composition:
        """What all entries cost together, whether they were finished or not. Public."""
        return spent_by(self.entries, self.order)

    @property
    def left(self) -> float:
        """The cap's ε less what all entries cost together, at the cap's δ. Public.

        Publications cost less together than one by one, so the next fit adds less than its own ε as a rule.
        """
        return self._standing(self.entries)[1]

    def noted(self, note: str) -> "Account":
        """A copy that writes a note with the next entries. Notes are public."""
        return replace(self, note=_checked(note))

    def check(self, *plans: AnyPlan | tuple[str, AnyPlan] | Noted) -> float:
        """The ε that would be spent with plans, at the cap's δ; BudgetError if that overdraws the account.

        Plans may be as :meth:`enter_all` takes them. Nothing is entered. Raises LedgerError where the entries
        before are for the other unit. Public.
        """
        return self._check(self.entries, self._noted(plans)).epsilon_at(self.delta)

    def enter(
        self, plan: AnyPlan, *, note: str = "", insecure: bool = False, began: datetime | None = None
    ) -> int:
        """Enter a plan as spent, in one transaction; return the entry's number.

        For mechanisms of one's own. The estimators and ``expost fit`` call it just before they draw noise,
        and :meth:`finish` after everything was published. What is entered is never taken back. The time of an
        entry is ``began``, by default now: give the time before the table was read, because how long that
        takes depends on the table. Raises BudgetError if the account would be overdrawn, and LedgerError if
        the entry cannot be written; nothing was entered then. Public.
        """
        return self.enter_all([Noted(note, plan, insecure=insecure)], began=began)[0]

    def enter_all(
        self, noted: Iterable[tuple[str, AnyPlan] | Noted], *, began: datetime | None = None
    ) -> list[int]:
        """Enter several plans, each after its note, in one transaction: all or none of them.

        As :meth:`enter` does; returns the number of each one's entry. A plan with an id
        (:class:`~expost.ledger.entries.Noted`) that is counted already is not entered again. Public.
        """
        all_of_them = self._noted(noted)
        time = spelt(datetime.now(UTC) if began is None else began)
        with transaction(self.path) as ledger:
            entries = self._entries(ledger.events)
            self._check(entries, all_of_them)
            return [one.entered_in(entries) or self._append(ledger, one, time) for one in all_of_them]

    def _noted(self, plans: Iterable[AnyPlan | tuple[str, AnyPlan] | Noted]) -> list[Noted]:
        """Plans with the notes that they are entered with, where all can be; before other processes wait."""
        found = [Noted(*one) if isinstance(one, tuple) else Noted("", one) for one in plans]
        for one in found:
            _curve(one.plan)
            _check_sha256(one.id)
        return [one._replace(note=_checked(self.note or one.note)) for one in found]

    def _append(self, ledger: Transaction, noted: Noted, time: str) -> int:
        number = ledger.append(Entered.of(noted, account=self.name, time=time).model_dump())
        if noted.id is not None:
            ledger.append(Finished(entry=number, sha256=noted.id).model_dump())
        return number

    def finish(self, number: int, *, sha256: str | None = None) -> None:
        """Mark an entry as finished, with the hash of its publication and without the time. Public.

        How long a fit takes depends on the table, and no budget pays for that.
        """
        _check_sha256(sha256)
        with transaction(self.path) as ledger:
            entry = next((entry for entry in self._entries(ledger.events) if entry.number == number), None)
            if entry is None or entry.state == FINISHED:
                raise parameter_error("number", "that of an unfinished entry of this account", number)
            ledger.append(Finished(entry=entry.number, sha256=sha256).model_dump())

    def _entries(self, events: Events) -> tuple[Entry, ...]:
        found = histories(events, self.path).get(self.name)
        if found is None or (*found.cap, found.order) != (self.epsilon, self.delta, self.order):
            raise LedgerError(
                f"{self.path} has no account {self.name!r} with a cap of epsilon {self.epsilon:g} at "
                f"delta {self.delta:g}. It is another file than the one in which it was opened."
            )
        return tuple(found.entries)

    def _check_same(self, cap: tuple[float, float], *, adaptive: bool) -> None:
        if cap != (self.epsilon, self.delta):
            raise LedgerError(
                f"the account {self.name!r} has a cap of epsilon {self.epsilon:g} at delta {self.delta:g} "
                f"and keeps it; got epsilon {cap[0]:g} at delta {cap[1]:g}. Leave both out, or open another."
            )
        if adaptive and not self.adaptive:
            raise LedgerError(
                f"the account {self.name!r} is not adaptive, so its plans may not follow from what was "
                "published. Leave `adaptive` out, or open another."
            )

    def _standing(self, entries: tuple[Entry, ...]) -> tuple[float, float]:
        """What entries have spent together, and what is left."""
        spent = spent_by(entries, self.order).epsilon_at(self.delta)
        return spent, max(self.epsilon - spent, 0.0)

    def _check(self, entries: tuple[Entry, ...], noted: Sequence[Noted]) -> Composition:
        added, spent = (
            [one for one in noted if one.entered_in(entries) is None],
            spent_by(entries, self.order),
        )
        if not added:
            return spent
        unit = spent.unit if entries else added[0].promised_to
        self._check_unit(unit, added)
        plans = [one.plan for one in added]
        plan = plans[-1]
        after = replace(spent, curves=(*spent.curves, *map(_curve, plans)), unit=unit)
        if after.delta_at(self.epsilon) <= self.delta:
            return after
        raise BudgetError(
            f"the account {self.name!r} has epsilon {self._standing(entries)[1]:.4g} left of "
            f"{self.epsilon:g} at delta {self.delta:g}, and with {_named(plans)}, of epsilon "
            f"{sum(one.epsilon for one in plans):g} at delta {plan.delta:g}, it would have spent "
            f"{after.epsilon_at(self.delta):.4g}. Nothing was spent. Ask for a smaller epsilon or delta, "
            "or publish no more from this table."
        )

    def _check_unit(self, unit: str, added: Sequence[Noted]) -> None:
        other = next((one.promised_to for one in added if one.promised_to != unit), None)
        if other is not None:
            raise LedgerError(
                f"the account {self.name!r} counts what publications cost each {unit}, and this plan "
                f"is made with unit={other!r}: the two do not add up. Nothing was spent. Plan with "
                f"unit={unit!r}, or open another account."
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
        spent, left = self._standing(entries)
        notes = [f"spent ε = {spent:.4g} of {self.epsilon:g} at δ = {self.delta:g}, left {left:.4g}"]
        if spent_by(entries).unit == "person":
            notes.append("for each person with all of her rows")
        if self.adaptive:
            notes.append("adaptive: plans may be chosen from what was published before")
        columns = ("entered", "note", "ε alone", "δ alone", "state")
        return Summary(f"Account {self.name} (public)", rows, columns, notes)


def _named(plans: Sequence[AnyPlan]) -> str:
    return "this fit" if isinstance(plans[-1], Plan) else "these choices"


def _curve(plan: AnyPlan) -> ProfileCurve:
    if not isinstance(plan, AnyPlan):
        raise parameter_error("plan", "a plan of `expost.calibrate`", type(plan).__name__)
    return curve_of(plan)


def _checked(note: str) -> str:
    if not is_line(note, LONGEST_NOTE):
        raise parameter_error(
            "note",
            f"a printable text of at most {LONGEST_NOTE} characters",
            note[:80] if isinstance(note, str) else note,
        )
    return note


def _check_sha256(sha256: str | None) -> None:
    if not (sha256 is None or (isinstance(sha256, str) and re.fullmatch("[0-9a-f]{64}", sha256))):
        raise parameter_error("sha256", "a publication's `sha256` or None", sha256)


def check_account(account: object) -> None:
    """Raise ParameterError unless this is an account, where one is given."""
    if not isinstance(account, Account):
        wanted = "an account of `expost.Ledger(...).account(...)` or None"
        raise parameter_error("account", wanted, type(account).__name__)


def spelt(time: datetime) -> str:
    """A time as an event has it."""
    return time.astimezone(UTC).isoformat(timespec="seconds")


# Compositions are resolved down to about a tenth of this.
_SMALLEST_DELTA = 1e-10


def _checked_cap(epsilon: float | None, delta: float | None) -> tuple[float, float]:
    cap = (check_positive("epsilon", epsilon), check_positive("delta", delta, below=1.0))
    if cap[1] < _SMALLEST_DELTA:
        raise parameter_error("delta", f"at least {_SMALLEST_DELTA:g} for an account", delta)
    return cap


class Ledger(Summarized):
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

    def account(
        self, name: str, *, epsilon: float | None = None, delta: float | None = None, adaptive: bool = False
    ) -> Account:
        """The account of a table; it is opened where there is none of that name, and needs a cap then.

        ``epsilon`` and ``delta`` are the cap on everything that is ever published from the table. An account
        that is opened as ``adaptive`` covers plans that are chosen from what was published before, and their
        number too: it adds up at one Rényi order, which follows from the cap and is fixed when it is opened,
        so that each plan costs more. An account that exists keeps what it has: another cap is refused, and
        so is ``adaptive`` where it is not. All of it is public, the name too.
        """
        if not (is_line(name, LONGEST_NAME) and name):
            raise parameter_error("name", f"a printable text of 1 to {LONGEST_NAME} characters", name)
        cap = None if (epsilon, delta) == (None, None) else _checked_cap(epsilon, delta)
        if cap is not None and not self.path.exists():
            create(self.path)
        found = self._accounts(read(self.path)[0]).get(name)
        if found is None and cap is not None:
            found = self._opened(name, cap, adaptive=adaptive)
        if found is None:
            raise self._unknown_error(name)
        found._check_same(cap or (found.epsilon, found.delta), adaptive=adaptive)
        return found

    def _unknown_error(self, name: str) -> LedgerError:
        known = ", ".join(repr(account.name) for account in self.accounts) or "none"
        return LedgerError(
            f"{self.path} has no account {name!r}; it has {known}. Open it: {opening(self.path, name)}"
        )

    def _opened(self, name: str, cap: tuple[float, float], *, adaptive: bool) -> Account:
        """A new account, or the one that another process opened meanwhile."""
        with transaction(self.path) as ledger:
            found = self._accounts(ledger.events).get(name)
            if found is None:
                epsilon, delta = cap
                order = filter_order(epsilon, delta) if adaptive else None
                now = spelt(datetime.now(UTC))
                opened = AccountOpened(name=name, epsilon=epsilon, delta=delta, time=now, order=order)
                ledger.append(opened.model_dump(exclude_none=True))
                found = Account(self.path, name, epsilon, delta, order=order)
            return found

    @property
    def accounts(self) -> tuple[Account, ...]:
        """All accounts, in the order in which they were opened. Public."""
        return tuple(self._accounts(read(self.path)[0]).values())

    @property
    def sha256(self) -> str:
        """The hash of everything in the ledger; it changes with every event. Public."""
        return read(self.path)[1]

    def _accounts(self, events: Events) -> dict[str, Account]:
        found = histories(events, self.path)
        return {
            name: Account(self.path, name, *history.cap, order=history.order)
            for name, history in found.items()
        }

    def _summary(self) -> Summary:
        rows = []
        for account in self.accounts:
            entries = account.entries
            spent, left = account._standing(entries)
            count, cap = str(len(entries)), f"{account.epsilon:g}"
            rows.append((account.name, count, f"{spent:.4g}", cap, f"{left:.4g}", f"{account.delta:g}"))
        columns = ("account", "publications", "ε spent", "ε in all", "ε left", "at δ")
        return Summary("Ledger (public)", rows, columns, figures=True)

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"
