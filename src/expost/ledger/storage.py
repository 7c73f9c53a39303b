"""The ledger's file: a chain of events in SQLite, which only ever grows.

Each event is a JSON text with the SHA-256 of itself and of the event before, and a row of its own holds the
end of the chain. An older copy is noticed by a process that has seen more.
"""

import hashlib
import json
import os
import re
import secrets
import shlex
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

from expost._common.files import APPLICATION, rename_new
from expost._common.strict_json import read_object
from expost.exceptions import LedgerError, PublicationError

VERSION = 2
"""The version of the format, in SQLite's own header."""
# How long to wait for other processes that write, in seconds.
_PATIENCE = 300.0
_SCHEMA = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
CREATE TABLE events (number INTEGER PRIMARY KEY, body TEXT NOT NULL, sha256 TEXT NOT NULL);
CREATE TABLE head (number INTEGER NOT NULL, sha256 TEXT NOT NULL);
INSERT INTO head VALUES (0, '');
"""
_CONTENT = [("table", "events"), ("table", "head")]


Events: TypeAlias = tuple[dict[str, Any], ...]
"""What each event says, in the order of the chain; the first one has the number 1."""

# The furthest end of each ledger that this process has seen: how many events, and the hash of the last one.
_seen: dict[Path, tuple[int, str]] = {}
_SEEING = threading.Lock()
_NOTHING = (0, "")


class Transaction:
    """A ledger that no other process can write to while this one reads and appends."""

    def __init__(self, connection: sqlite3.Connection, path: Path, known: tuple[int, str]) -> None:
        self._connection = connection
        self.events, self.sha256 = _read(connection, path, known)

    def append(self, body: dict[str, Any]) -> int:
        """Add an event at the end; return its number."""
        number, text = len(self.events) + 1, json.dumps(body, allow_nan=False, sort_keys=True)
        self.sha256 = _link(self.sha256, text)
        self._connection.execute("INSERT INTO events VALUES (?, ?, ?)", (number, text, self.sha256))
        self._connection.execute("UPDATE head SET number = ?, sha256 = ?", (number, self.sha256))
        self.events += (json.loads(text),)
        return number


def create(path: Path) -> None:
    """Make an empty ledger, whole or not at all; an existing file stays as it is."""
    if path.resolve() in _seen:
        raise _damaged(path, "it is gone, and this process has seen events in it")
    with sqlite3.connect(":memory:") as memory:
        memory.executescript(_SCHEMA)
        content = memory.serialize()
    memory.close()
    new = path.parent / f".expost-{secrets.token_hex(8)}"
    try:
        with open(new, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        rename_new(new, path)
    except FileExistsError:
        pass  # another process made it meanwhile
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from None
    finally:
        new.unlink(missing_ok=True)


def opening(path: Path, name: str = "NAME") -> str:
    """How to open an account, on the command line and in Python; the cap is an example."""
    command = f"expost ledger {shlex.quote(str(path))} --open {shlex.quote(name)} --epsilon 3 --delta 1e-6"
    return f"{command} (in Python `account(name, epsilon=3, delta=1e-6)`; choose your own cap)"


def read(path: Path) -> tuple[Events, str]:
    """All events and the hash of the last one, verified."""
    with transaction(path, begin="BEGIN") as found:
        return found.events, found.sha256


@contextmanager
def transaction(path: Path, *, begin: str = "BEGIN IMMEDIATE") -> Iterator[Transaction]:
    """One change of the ledger: on the disk when the block ends, and not at all if it raises."""
    # Asked before the file is read: others may add to it meanwhile.
    known = _seen.get(path.resolve(), _NOTHING)
    with _opened(path) as connection:
        connection.execute(begin)
        change = Transaction(connection, path, known)
        yield change
        connection.execute("COMMIT")
    if change.events:
        with _SEEING:
            latest = _seen.get(path.resolve(), _NOTHING), (len(change.events), change.sha256)
            _seen[path.resolve()] = max(latest, key=itemgetter(0))


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection for one transaction; SQLite's errors become one sentence."""
    if not path.is_file():
        raise LedgerError(
            f"there is no ledger {path}. Check the name, or open a first account: {opening(path)}"
        )
    try:
        address = f"{path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None)
        try:
            # A commit is on the disk when it returns, and its journal is gone from there.
            connection.execute("PRAGMA synchronous = EXTRA")
            yield connection
        finally:
            connection.close()  # rolls back what was not committed
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise LedgerError(
                f"{path} is in use by other processes. Nothing was entered; try again."
            ) from None
        raise _unwritable(path, str(error)) from None
    except sqlite3.DatabaseError as error:
        raise _damaged(path, str(error)) from None


def _read(connection: sqlite3.Connection, path: Path, known: tuple[int, str]) -> tuple[Events, str]:
    """All events and the hash of the last one, where the file is a whole ledger that only grew."""
    rows, head = _rows(connection, path)
    events, last = [], ""
    for place, (number, body, sha256) in enumerate(rows, start=1):
        last = _link(last, body)
        event = _event(body) if (number, sha256) == (place, last) else None
        if event is None:
            raise _damaged(path, f"event {place} is not what was written")
        if number == known[0] and sha256 != known[1]:
            raise _damaged(path, "it has other events than this process has seen in it")
        events.append(event)
    if head != (len(events), last):
        raise _damaged(path, "its last events are missing")
    if len(events) < known[0]:
        raise _damaged(path, "it has fewer events than this process has seen in it")
    return tuple(events), last


def _rows(connection: sqlite3.Connection, path: Path) -> tuple[list[Any], Any]:
    """The rows of the events, and of the end of the chain."""
    _check_header(connection, path)
    try:
        rows = connection.execute("SELECT number, body, sha256 FROM events ORDER BY number").fetchall()
        (head,) = connection.execute("SELECT number, sha256 FROM head").fetchall()
    except (sqlite3.OperationalError, ValueError) as error:
        if isinstance(error, sqlite3.OperationalError) and not re.search("no such|decode", str(error)):
            raise
        raise _damaged(path, "its tables are not those of a ledger") from None
    return rows, head


def _event(body: object) -> dict[str, Any] | None:
    """What an event says; None where it is nothing that was written here."""
    with suppress(PublicationError):
        return read_object(body) if isinstance(body, str) else None
    return None


def _check_header(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise LedgerError(f"{path} is not a ledger of expost. Name another file.")
    if version > VERSION:
        raise LedgerError(f"{path} was written by a newer expost; upgrade with pip install --upgrade expost.")
    if version < VERSION:
        raise LedgerError(
            f"{path} was written by an expost that was never released. Open a new ledger, and enter what was "
            "published."
        )
    # A trigger, or a view in the place of a table, could undo what is written here.
    if connection.execute("SELECT type, name FROM sqlite_master ORDER BY name").fetchall() != _CONTENT:
        raise _damaged(path, "its tables are not those of a ledger")


def _link(before: str, body: str) -> str:
    return hashlib.sha256(f"{before}\n{body}".encode()).hexdigest()


def _unwritable(path: Path, reason: str) -> LedgerError:
    return LedgerError(
        f"cannot write {path}: {reason}. Nothing was entered; free some space there, or ask for the right to "
        "write."
    )


def _damaged(path: Path, reason: str) -> LedgerError:
    return LedgerError(f"{path} was changed by something else than expost: {reason}. Restore a copy of it.")
