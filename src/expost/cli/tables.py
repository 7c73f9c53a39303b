"""The table that a command reads: its cluster, how it is written, and the column of identifiers."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from expost._common.progress import Watch
from expost._common.typing import FloatArray
from expost._common.validation import missing_extra_error
from expost.cli.base import error_console, legible, show_progress, warn
from expost.cli.commands import RecordOptions
from expost.cli.plan import TABLES, load_domain
from expost.data.dialect import PLAIN
from expost.data.lazy import LazyTable
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


def check_order(publication: Path, table: Path) -> None:
    """Refuse a table in the place of a publication, where the two were exchanged."""
    if table.suffix.lower() == ".json" and publication.suffix.lower() in TABLES:
        raise FileError(f"the publication comes first, and then the table: {table} {publication}.")


@contextmanager
def open_records(
    path: Path,
    options: RecordOptions,
    names: Iterable[str],
    doing: str,
    *,
    dask: str | None = None,
    device: str | None = None,
) -> Iterator[tuple[LazyTable, Watch]]:
    """Open the table of a command whose figures have these names, and show how far it has come."""
    dialect = PLAIN if options.domain is None else load_domain(options.domain).table
    with connected(dask) as client:
        table = scan(path, client=client, device=device, dialect=dialect)
        check_identifier(table, options.identifier, names)
        with show_progress(doing) as progress:
            yield table, progress.watch


def check_identifier(table: LazyTable, name: str | None, taken: Iterable[str] = ()) -> None:
    """Refuse a name that is no column of the table, or one that the figures have."""
    if name is None:
        return
    if name not in table.kinds:
        raise DomainError(f"the table lacks the column {name!r} that `--id` names. Check the name.")
    if name in taken:
        raise DomainError(f"`--id` must not be {name!r}, which is a name of a figure. Rename the column.")


def with_identifiers(parts: Iterable[Columns], table: LazyTable, name: str | None) -> Iterator[Columns]:
    """Columns with one of identifiers in front, which is read again, a few rows at a time; private."""
    if name is None:
        yield from parts
        return
    batches = chain.from_iterable(piece.batches([name], _LENGTH) for piece in table.pieces())
    found = chain.from_iterable(as_texts(plain_cells(batch.column(name)), name) for batch in batches)
    for part in parts:
        length = len(next(iter(part.values())))
        yield {name: [next(found) for _ in range(length)], **part}


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
