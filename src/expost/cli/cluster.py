"""The cluster that a command was told to use."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from expost._common.validation import missing_extra_error
from expost.cli.base import error_console, legible, warn
from expost.exceptions import EngineError

if TYPE_CHECKING:
    from distributed import Client

# Seconds to wait for a scheduler that does not answer.
_PATIENCE = 15


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
    from distributed.comm.core import connect
    from distributed.security import Security

    async def knock() -> None:
        comm = await connect(address, timeout=_PATIENCE, **Security().get_connection_args("client"))
        await comm.close()

    failure = ""
    with error_console.status(f"Connecting to {legible(address)}"):
        try:
            # Before a client is made: one that could not connect hangs when it is forgotten. In a thread of
            # its own: this one may have a loop that runs, as in a notebook.
            with ThreadPoolExecutor(1) as pool:
                pool.submit(lambda: asyncio.run(knock())).result()
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


def _is_here(address: str) -> bool:
    """Whether an address is one of this machine's own, of which nothing leaves it."""
    host = address.partition("://")[2].rpartition(":")[0].strip("[]")
    return host in ("localhost", "::1") or host.startswith("127.")
