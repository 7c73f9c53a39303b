"""Accounts and entries as events of a ledger: what publications spent, in public values only."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter

from expost._common.strict_json import FrozenModel
from expost.exceptions import LedgerError
from expost.ledger.storage import Events
from expost.privacy.adaptive import AdaptiveComposition
from expost.privacy.choices import ChoicePlan
from expost.privacy.composition import Composition
from expost.privacy.excess import UNITS
from expost.privacy.profile_curve import AnyPlan, Knots, ProfileCurve, curve_of
from expost.privacy.renyi import NUMBERS, Orders

UNFINISHED, FINISHED = "unfinished", "finished"
LONGEST_NAME, LONGEST_NOTE = 200, 1000
# What an entry costs alone is stated to three digits, so it exceeds what its curve says by at most this.
_ROUNDED_UP = 1.01
# Another machine's last digits.
_LAST_DIGITS = 1e-9


@dataclass(frozen=True)
class Entry:
    """One publication in an account.

    Attributes
    ----------
    number, time
        Its place in the ledger, and when its fit began, before the table was read: UTC, as ISO 8601.
    epsilon, delta
        What it costs on its own: the smallest ε that its curve certifies at the plan's δ, to three digits and
        at most what the plan promises.
    state
        ``"finished"``, or ``"unfinished"`` while a fit runs and where it was killed. Both are spent: the
        noise was drawn, or may have been. A private choice is entered as finished, before it is drawn.
    sha256
        The hash of the publication, where there is one and the fit was finished, or the name of a choice.
    note, insecure
        What the curator wrote about it, by default the estimator's name, and whether the noise came from a
        seed, which voids the guarantee.
    plan, curve
        The plan's fields and its certified profile.

    Privacy
    -------
    Public.
    """

    number: int
    time: str
    epsilon: float
    delta: float
    state: str
    sha256: str | None
    note: str
    insecure: bool
    plan: dict[str, Any]
    curve: ProfileCurve

    @property
    def unit(self) -> str:
        """Whom it promises to, ``"row"`` or ``"person"``."""
        return str(self.plan.get("unit", "row"))


@dataclass(frozen=True)
class History:
    """One account as its events tell it: the cap, the order of an adaptive one, and what was entered."""

    cap: tuple[float, float]
    order: int | None
    entries: list[Entry] = field(default_factory=list)


class Noted(NamedTuple):
    """A plan that is to be entered, with its note.

    With an ``id``, the hash of a publication or the name of a private choice, it is entered once: not again
    where an entry of its kind has that. Such an entry is finished at once, because nothing is left to be said
    of it. ``unit`` says whom it promises to where that is not the plan's: a record of several rows has the
    plan of a person, and the promise is to the record.
    """

    note: str
    plan: AnyPlan
    id: str | None = None
    insecure: bool = False
    unit: str | None = None

    @property
    def promised_to(self) -> str:
        """``"row"`` or ``"person"``."""
        return self.unit or self.plan.unit

    @property
    def fields(self) -> dict[str, Any]:
        """What an entry states of the plan."""
        stated = {name: value for name, value in self.plan.fields().items() if name != "unit"}
        return stated if self.promised_to == "row" else stated | {"unit": self.promised_to}

    def entered_in(self, entries: Sequence[Entry]) -> int | None:
        """The number of the entry that counts it already, if one does."""
        return next((one.number for one in entries if self._is(one)), None)

    def _is(self, entry: Entry) -> bool:
        # A choice has a random name, and whoever makes a publication knows the names of its choices.
        # One that is said to have cost more than its entry is another.
        if isinstance(self.plan, ChoicePlan):
            alike = "candidates" in entry.plan and self.plan.epsilon <= entry.plan["epsilon"]
        else:
            alike = "candidates" not in entry.plan
        return alike and self.id is not None and self.id == entry.sha256


def is_line(text: object, longest: int) -> bool:
    """Whether this is a text that a table can show: printable, on one line, and not too long."""
    return isinstance(text, str) and len(text) <= longest and text.isprintable()


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("not a line of text")
    return text


def _knots(pairs: Any) -> tuple[tuple[Any, Any], ...]:
    return tuple((first, second) for first, second in pairs)


_Delta: TypeAlias = Annotated[float, Field(gt=0.0, lt=1.0)]
_Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), AfterValidator(_printable)]
_Time: TypeAlias = Annotated[
    str, Field(pattern=r"\A[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\+00:00\z")
]
_Curve: TypeAlias = Annotated[Knots, BeforeValidator(_knots)]
_Orders: TypeAlias = Annotated[Orders, BeforeValidator(_knots)]


class AccountOpened(FrozenModel):
    """An account is opened."""

    kind: Literal["account"] = "account"
    name: _Name
    epsilon: Annotated[float, Field(gt=0.0)]
    delta: _Delta
    time: _Time
    # Where plans may be chosen from publications; left out elsewhere, as in files from before.
    order: Annotated[int, Field(ge=NUMBERS[0], le=NUMBERS[-1])] | None = None


class Entered(FrozenModel):
    """A plan is entered as spent."""

    kind: Literal["entry"] = "entry"
    account: _Name
    time: _Time
    note: Annotated[str, Field(max_length=LONGEST_NOTE), AfterValidator(_printable)]
    insecure: bool
    plan: dict[str, Any]
    epsilon: Annotated[float, Field(ge=0.0)]
    delta: Annotated[float, Field(ge=0.0, lt=1.0)]  # that of a private choice is 0
    adding: _Curve
    removing: _Curve
    adding_orders: _Orders = ()
    removing_orders: _Orders = ()

    @classmethod
    def of(cls, noted: Noted, *, account: str, time: str) -> Self:
        """The event that enters a plan."""
        plan = noted.plan
        curve = curve_of(plan)
        return cls(
            account=account,
            time=time,
            note=noted.note,
            insecure=bool(noted.insecure),
            plan=noted.fields,
            epsilon=min(float(plan.epsilon), _three_digits(curve.epsilon(plan.delta))),
            delta=float(plan.delta),
            adding=curve.adding,
            removing=curve.removing,
            adding_orders=curve.adding_orders,
            removing_orders=curve.removing_orders,
        )

    def entry(self, number: int) -> Entry:
        """The entry. What it states is what its curve says, and at most what its plan promises."""
        curve = ProfileCurve(self.adding, self.removing, self.adding_orders, self.removing_orders)
        cost = curve.epsilon(self.delta)
        if not cost * (1.0 - _LAST_DIGITS) <= self.epsilon <= cost * (_ROUNDED_UP + _LAST_DIGITS):
            raise ValueError("an entry that states another cost than its curve")
        if not curve.orders_agree(cost):
            raise ValueError("an entry whose divergences are those of another plan")
        if not (self.delta == self.plan["delta"] and self.epsilon <= self.plan["epsilon"]):
            raise ValueError("an entry that costs more than its plan promises")
        if self.plan.get("unit", "row") not in UNITS:
            raise ValueError("an entry of an unknown unit")
        stated = self.model_dump(include={"time", "epsilon", "delta", "note", "insecure", "plan"})
        return Entry(number=number, state=UNFINISHED, sha256=None, curve=curve, **stated)


class Finished(FrozenModel):
    """A fit was finished. Not when: how long it took depends on the table."""

    kind: Literal["finished"] = "finished"
    entry: int
    sha256: Annotated[str, Field(pattern=r"\A[0-9a-f]{64}\z")] | None


AnyEvent: TypeAlias = AccountOpened | Entered | Finished
_EVENT: TypeAdapter[AnyEvent] = TypeAdapter(Annotated[AnyEvent, Field(discriminator="kind")])


def histories(events: Events, path: Path) -> dict[str, History]:
    """Every account by its name, from all events of a file; each event must make sense where it stands."""
    found: dict[str, History] = {}
    places: dict[int, tuple[list[Entry], int]] = {}
    try:
        for number, event in enumerate(events, start=1):
            match _EVENT.validate_python(event):
                case AccountOpened() as opened if opened.name not in found:
                    found[opened.name] = History((opened.epsilon, opened.delta), opened.order)
                case Entered() as entered if entered.account in found:
                    entries = found[entered.account].entries
                    places[number] = entries, len(entries)
                    entries.append(entered.entry(number))
                    if entries[-1].unit != entries[0].unit:
                        raise ValueError("an entry of another unit than those before")
                case Finished() as finished:
                    entries, place = places.pop(finished.entry)
                    entries[place] = replace(entries[place], state=FINISHED, sha256=finished.sha256)
                case _:
                    raise ValueError("an event out of place")
    except (KeyError, TypeError, ValueError):
        raise LedgerError(f"{path} has an event that cannot be read. Restore a copy of it.") from None
    return found


def spent_by(entries: Sequence[Entry], order: int | None = None) -> Composition:
    """What entries of one unit cost together, finished or not; by the filter of an order if given."""
    curves, unit = tuple(entry.curve for entry in entries), entries[0].unit if entries else "row"
    return Composition(curves, unit) if order is None else AdaptiveComposition(curves, unit, order)


def _three_digits(number: float) -> float:
    """The number with three digits, rounded up."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 2) if number else 1.0
    return math.ceil(number / unit) * unit
