"""Passes over blocks of rows, in as many threads as the linear algebra library would use."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from itertools import pairwise
from typing import TypeVar

import scipy.linalg  # noqa: F401  (its BLAS must be loaded before the controller below looks for libraries)
from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")

# Long enough that a block's work outweighs the interpreter's, short enough to stay in a core's cache.
_BLOCK_NUMBERS = 262_144
# Below this many numbers a pass is over before a second thread has started.
_PARALLEL_NUMBERS = 500_000
# From this dimension on a factorisation takes long enough to be worth several threads.
_SMALL_DIMENSION = 500


def map_spans(n_rows: int, n_columns: int, work: Callable[[list[slice]], Result]) -> list[Result]:
    """Cut the rows into one span per thread and each span into blocks; run ``work`` on each span.

    ``work`` gets the blocks of its span in order and adds up what it finds. The results come back in the
    order of the rows, so that sums do not depend on which thread was faster.
    """
    workers = min(_threads(), -(-n_rows * n_columns // _PARALLEL_NUMBERS))
    if workers <= 1:
        return [work(_blocks(0, n_rows, n_columns))]
    edges = [n_rows * k // workers for k in range(workers + 1)]
    spans = [_blocks(start, stop, n_columns) for start, stop in pairwise(edges)]
    with _single_threaded_blas(), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, spans))


def limit_blas_threads(dimension: int) -> AbstractContextManager[None]:
    """Keep the algebra of small matrices between passes in the caller's thread.

    BLAS threads do not sleep at once when their work is done. They spin, on the cores that the next pass over
    the rows needs.
    """
    return _single_threaded_blas() if dimension < _SMALL_DIMENSION else nullcontext()


def _blocks(start: int, stop: int, n_columns: int) -> list[slice]:
    length = max(64, _BLOCK_NUMBERS // n_columns)
    return [slice(low, min(low + length, stop)) for low in range(start, stop, length)]


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@cache
def _threads() -> int:
    """As many threads as BLAS was set up with, so that the usual environment variables apply here too."""
    return max([library["num_threads"] for library in _controller().info()], default=1)


_lock = threading.Lock()
_users = 0
_limiter = None


@contextmanager
def _single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread per caller while any thread of the process runs a pass."""
    global _users, _limiter
    with _lock:
        if _users == 0:
            _threads()  # remember the full number before it is limited
            _limiter = _controller().limit(limits=1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0 and _limiter is not None:
                _limiter.restore_original_limits()
                _limiter = None
