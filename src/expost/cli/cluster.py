"""The cluster that a command was told to use."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

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
        raise EngineError(
            "`--dask` needs Dask, which is not installed. Get it with: pip install 'expost[dask]'"
        ) from None
    client = None
    failure = ""
    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        failure = type(error).__name__
    if client is None:
        raise EngineError(
            f"there is no Dask scheduler at {address!r} that answers ({failure}). Check the address, which "
            "starts with tcp:// or tls://, and for tls:// the certificates in Dask's configuration."
        )
    with client:
        yield client
