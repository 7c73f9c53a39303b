"""The table that a command reads: its cluster, how it is written, and the column of identifiers."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from expost._common.progress import Watch
from expost._common.typing import FloatArray
from expost._common.validation import missing_extra_error
from expost.cli.base import error_console, legible, show_progress, warn
from expost.cli.options import RecordOptions
from expost.cli.plan import TABLES, load_domain
from expost.data.dialect import PLAIN, Dialect
from expost.data.lazy import LazyTable
from expost.data.people import People
from expost.data.tables import scan
from expost.data.values import as_texts, plain_cells
from expost.exceptions import DomainError, EngineError, FileError

if TYPE_CHECKING:
    from distributed import Client

Columns: TypeAlias = Mapping[str, FloatArray | Sequence[str]]
# Seconds to wait for a scheduler that does not answer.
_PATIENCE = 15
# Rows of the column of identifiers that are read at a time.
_LENGTH = 1 << 14


class OutputError(FileError):
    """A file cannot be written: how a table is written has nothing to do with it."""


def check_publication_first(publication: Path, table: Path) -> None:
    """Refuse a table in the place of a publication, where the two were exchanged."""
    if table.suffix.lower() == ".json" and publication.suffix.lower() in TABLES:
        raise FileError(f"the publication comes first, and then the table: {table} {publication}.")


def person_column(name: str | None, options: RecordOptions, *, of_people: bool) -> str | None:
    """The column that says whose each row is: a given one, or for figures of people the domain file's."""
    if name is not None or options.domain is None or not of_people:
        return name
    return load_domain(options.domain).person


@contextmanager
def open_records(
    path: Path,
    options: RecordOptions,
    names: Iterable[str],
    doing: str,
    *,
    person: str | None = None,
    dask: str | None = None,
    device: str | None = None,
) -> Iterator[tuple[LazyTable, Watch]]:
    """Open the table of a command whose figures have these names, and show how far it has come."""
    dialect = dialect_of(options)
    with connected(dask) as client, _pointing_to_domain(options, path):
        table = scan(path, client=client, device=device, dialect=dialect)
        check_identifier(table, options.identifier, names, person=person)
        with show_progress(doing) as progress:
            yield table, progress.watch


def inputs_of(table: LazyTable, *named: Path | None) -> tuple[Path, ...]:
    """Every file that a command reads: the named ones that there are, and those of its table."""
    return (*filter(None, named), *table.paths)


def dialect_of(options: RecordOptions) -> Dialect:
    """How the table of a command is written, and so what is written beside it."""
    return PLAIN if options.domain is None else load_domain(options.domain).table


@contextmanager
def _pointing_to_domain(options: RecordOptions, path: Path) -> Iterator[None]:
    """Let the refusal of a CSV file say that a domain file can tell how it is written."""
    try:
        yield
        return
    except OutputError:
        raise
    except (DomainError, FileError) as error:
        if options.domain is not None or path.suffix.lower() != ".csv" or "--domain" in str(error):
            raise
        refusal = error
    hint = "If a domain file says how the table is written, add --domain DOMAIN.toml."
    raise type(refusal)(f"{refusal} {hint}")


def check_identifier(
    table: LazyTable, name: str | None, taken: Iterable[str] = (), *, person: str | None = None
) -> None:
    """Refuse a name that is no column of the table, or one that the figures have.

    Where figures are people's, a line has the id of its ``person``, and no record's.
    """
    if person is not None and name not in (None, person):
        raise people_have_ids_error()
    if name is not None and name not in table.kinds:
        raise DomainError(f"the table lacks the column {name!r} that `--id` names. Check the name.")
    used = person or name
    if used is not None and used in taken:
        option = "--id" if person is None else "person"
        raise DomainError(f"`{option}` must not be {used!r}, which is a name of a figure. Rename the column.")


def people_have_ids_error() -> DomainError:
    """Build the error for identifiers of records where lines are people's; the caller raises it."""
    return DomainError("`--id` must be left out where figures are people's: a line is no single record's.")


def with_identifiers(
    parts: Iterable[Columns], table: LazyTable | None, name: str | None, people: People | None = None
) -> Iterator[Columns]:
    """Columns with one of identifiers in front; private.

    They are the ids of ``people``, or are read again from the table, a few rows at a time.
    """
    if name is None or table is None:
        yield from parts
        return
    batches = chain.from_iterable(piece.batches([name], _LENGTH) for piece in table.pieces())
    read = (plain_cells(batch.column(name)) for batch in batches)
    cells = read if people is None else [people.ids]
    found = chain.from_iterable(as_texts(some, name) for some in cells)
    for part in parts:
        length = len(next(iter(part.values())))
        yield {name: [next(found) for _ in range(length)], **part}


class FirstRecords:
    """Keeps the columns of the first runs of records that pass, or of all, and counts the records."""

    def __init__(self, most: int | None) -> None:
        self.records = 0
        self._most = most
        self._kept: list[Columns] = []

    def passing(self, runs: Iterable[Columns]) -> Iterator[Columns]:
        """Keep and count runs as they pass."""
        for run in runs:
            if self._most is None or self.records < self._most:
                self._kept.append(run)
            self.records += len(next(iter(run.values())))
            yield run

    def columns(self) -> dict[str, list[Any]]:
        """The columns that were kept, joined, with Python's own numbers."""
        runs = {name: [np.asarray(run[name], dtype=object) for run in self._kept] for name in self._kept[0]}
        return {name: np.concatenate(parts).tolist() for name, parts in runs.items()}


@contextmanager
def connected(address: str | None) -> "Iterator[Client | None]":
    """A client of the cluster whose scheduler has this address, or None without one.

    Certificates and other settings are Dask's own: its configuration files and environment variables.
    """
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise missing_extra_error("`--dask`", "Dask", "dask") from None
    failure = ""
    with error_console.status(f"Connecting to {legible(address)}"):
        try:
            _knock(address)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            failure = type(error).__name__
    if failure:
        raise EngineError(
            f"there is no Dask scheduler at {address!r} that answers ({failure}). Check the address, which "
            "starts with tcp:// or tls://, and for tls:// the certificates in Dask's configuration."
        )
    if not address.startswith("tls://") and not _is_here(address):
        warn("what travels to the workers is private, and this connection is not encrypted; use tls://.")
    with Client(address, timeout=_PATIENCE, set_as_default=False) as client:
        yield client


def _knock(address: str) -> None:
    """Connect once, before a client is made: one that could not connect hangs when it is forgotten."""
    from distributed.comm.core import connect
    from distributed.security import Security

    async def knock() -> None:
        comm = await connect(address, timeout=_PATIENCE, **Security().get_connection_args("client"))
        await comm.close()

    # In a thread of its own: this one may have a loop that runs, as in a notebook.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(knock())).result()


def _is_here(address: str) -> bool:
    """Whether an address is one of this machine's own, of which nothing leaves it."""
    host = address.partition("://")[2].rpartition(":")[0].strip("[]")
    return host in ("localhost", "::1") or host.startswith("127.")
