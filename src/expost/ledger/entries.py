"""Accounts and entries as events of a ledger: what publications spent, in public values only."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from expost._common.validation import check_positive
from expost.exceptions import LedgerError
from expost.ledger.storage import Event
from expost.privacy.composition import Composition
from expost.privacy.plan import Plan
from expost.privacy.profile_curve import ProfileCurve, curve_of

UNFINISHED, FINISHED = "unfinished", "finished"


@dataclass(frozen=True)
class Entry:
    """One publication in an account.

    Attributes
    ----------
    number
        Its place in the ledger.
    time
        When it was entered, before its noise was drawn: UTC, as ISO 8601.
    epsilon, delta
        What its plan promises on its own.
    state
        ``"finished"``, or ``"unfinished"`` while a fit runs and where it was killed. Both are spent: the
        noise was drawn, or may have been.
    sha256
        The hash of the publication, where there is one and the fit was finished.
    note
        What the curator wrote about it, by default the estimator's name.
    insecure
        Whether the noise came from a seed, which voids the guarantee.
    plan
        The plan's fields.
    curve
        Its certified profile.

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


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn events that are not what they should be into one sentence about the file."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, LedgerError):
            raise
        raise LedgerError(f"{path} has an event that cannot be read. Restore a copy of it.") from None


def account_body(name: str, epsilon: float, delta: float, *, time: str) -> dict[str, Any]:
    """The event that opens an account."""
    return {"kind": "account", "name": name, "epsilon": epsilon, "delta": delta, "time": time}


def caps(events: Iterable[Event]) -> dict[str, tuple[float, float]]:
    """The epsilon and the delta that each account may spend, by its name; every event must make sense."""
    found: dict[str, tuple[float, float]] = {}
    unfinished: set[int] = set()
    for event in events:
        body = event.body
        match body["kind"]:
            case "account" if body["name"] not in found:
                cap = check_positive("epsilon", body["epsilon"])
                found[body["name"]] = cap, check_positive("delta", body["delta"], below=1.0)
            case "entry" if body["account"] in found:
                unfinished.add(event.number)
            case "finished" if body["entry"] in unfinished:
                unfinished.remove(body["entry"])
            case _:
                raise ValueError("an event out of place")
    return found


def entry_body(plan: Plan, *, account: str, time: str, note: str, insecure: bool) -> dict[str, Any]:
    """The event that enters a plan."""
    curve = curve_of(plan)
    return {
        "kind": "entry",
        "account": account,
        "time": time,
        "note": note,
        "insecure": insecure,
        "plan": plan.fields(),
        "epsilon": float(plan.epsilon),
        "delta": float(plan.delta),
        "adding": curve.adding,
        "removing": curve.removing,
    }


def entries_of(events: Iterable[Event], account: str) -> Iterator[Entry]:
    """The entries of an account, in order."""
    events = tuple(events)
    finished = {event.body["entry"]: event.body for event in events if event.body["kind"] == "finished"}
    for event in events:
        body = event.body
        if body["kind"] != "entry" or body["account"] != account:
            continue
        end = finished.get(event.number)
        yield Entry(
            number=event.number,
            time=str(body["time"]),
            epsilon=float(body["epsilon"]),
            delta=float(body["delta"]),
            state=UNFINISHED if end is None else FINISHED,
            sha256=None if end is None or end["sha256"] is None else str(end["sha256"]),
            note=str(body["note"]),
            insecure=bool(body["insecure"]),
            plan=dict(body["plan"]),
            curve=ProfileCurve(_knots(body["adding"]), _knots(body["removing"])),
        )


def spent_by(entries: Iterable[Entry]) -> Composition:
    """What entries cost together, finished or not."""
    return Composition(tuple(entry.curve for entry in entries))


def _knots(pairs: Iterable[Iterable[float]]) -> tuple[tuple[float, float], ...]:
    found = []
    for epsilon, delta in pairs:
        if not (isinstance(epsilon, float) and isinstance(delta, float)):
            raise TypeError("knots are numbers")
        found.append((epsilon, delta))
    return tuple(found)
