"""Memory of Arrow and of the C library, returned to the system while files are read and afterwards."""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_pool_lock = threading.Lock()
_pool_users = 0
_usual_pool: Any = None


@contextmanager
def returning_memory() -> Iterator[None]:
    """Let Arrow return memory to the system at once while files are read.

    Its own pool keeps for later as much again as a reader of many columns uses, and reserves far more.
    """
    global _pool_users, _usual_pool
    import pyarrow

    with _pool_lock:
        if _pool_users == 0:
            _usual_pool = pyarrow.default_memory_pool()
            pyarrow.set_memory_pool(pyarrow.system_memory_pool())
        _pool_users += 1
    try:
        yield
    finally:
        with _pool_lock:
            _pool_users -= 1
            if _pool_users == 0:
                pyarrow.set_memory_pool(_usual_pool)


def release_memory() -> None:
    """Return memory to the system that the C library keeps for threads that read.

    On other C libraries than glibc nothing happens.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
