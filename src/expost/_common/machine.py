"""The machine: memory, threads, how rows are cut into spans and blocks, and what is refused as too large."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import TypeVar

import scipy.linalg  # noqa: F401  (its BLAS must be loaded before the controller below looks for libraries)
from threadpoolctl import ThreadpoolController

from expost.exceptions import ResourceError

# Where Linux mounts the limits of groups of processes, and the files with the limit in either version.
_GROUPS, _LIMIT_FILES = Path("/sys/fs/cgroup"), ("memory.max", "memory.limit_in_bytes")


def check_memory(needed: int, what: str) -> None:
    """Refuse what needs more memory than this process may ever have.

    Privacy
    -------
    ``needed`` must follow from public sizes. It is compared with what the machine has and not with what is
    free, which depends on the table in memory.
    """
    most = machine_memory()
    if needed > most:
        raise ResourceError(
            f"{what} takes up to {_size(needed)} of memory, and this machine has {_size(most)}. "
            "Use fewer columns or classes, fewer threads (OPENBLAS_NUM_THREADS=1), or a larger machine."
        )


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"


def machine_memory() -> int:
    """Bytes that this process may have: those of the machine, or of its container if fewer, where known."""
    limits = [sys.maxsize, *_group_limits()]
    with suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(ImportError):
        import resource

        limits.append(resource.getrlimit(resource.RLIMIT_AS)[0])
    return min(limit for limit in limits if limit > 0)  # below zero: unlimited


def _group_limits() -> Iterator[int]:
    """The limits of the groups that Linux counts this process in, the groups around them included."""
    folders = {_GROUPS, _GROUPS / "memory"}
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, name = line.split(":", 2)
            mounted = _GROUPS / "memory" if "memory" in controllers.split(",") else _GROUPS
            place = mounted / name.lstrip("/")
            folders.update(folder for folder in (place, *place.parents) if folder.is_relative_to(_GROUPS))
    for folder in folders:
        for file in _LIMIT_FILES:
            with suppress(OSError, ValueError):  # "max" where there is none
                yield int((folder / file).read_text(encoding="ascii"))


Item = TypeVar("Item")

# Long enough that a block's work outweighs the interpreter's, short enough to stay in a core's cache.
_BLOCK_NUMBERS = 262_144
# Blocks of wide rows are longer, up to a limit: a sum of squares goes through all of a square matrix.
_WIDE_ROWS, _WIDE_NUMBERS = 512, 4_194_304
# Below this many numbers a pass is over before a second thread has started.
_PARALLEL_NUMBERS = 500_000
SPAN = 65_536
"""Rows that are added up by one thread, at most; the sums of spans are added in their order."""
# Tables of fewer rows have shorter spans, so that every thread has some; but none so short that to hold and
# to add their Hessians takes longer than to make them.
_SPANS, _COLUMNS_PER_ROW, _WHOLE = 32, 4, 512
# From this dimension on a factorisation takes long enough to be worth several threads, and up to this one
# they are safe. OpenBLAS's threaded Cholesky factorisation, as SciPy 1.17 brings it, crashes with two threads
# at 16,000 columns (not at 15,000), with more threads a little later. In one thread it is another program.
_SMALL_DIMENSION, _LARGE_DIMENSION = 1_000, 8_000


def spans(n_rows: int, width: int, every: int = 1) -> list[tuple[int, int]]:
    """Cut rows in memory, for a pass that takes ``width`` numbers of each ``every``-th of them, into spans.

    The number of threads has no part in it, so that sums have the same bits on every machine. There is always
    one span at least, even of no rows.
    """
    read = -(-n_rows // every)
    shortest = max(_PARALLEL_NUMBERS // width, width // _COLUMNS_PER_ROW)
    length = every * whole_chunks(min(max(read // _SPANS, shortest), SPAN))
    return list(pairwise([*range(0, max(n_rows, 1), length), n_rows]))


def whole_chunks(rows: int) -> int:
    """At least this many rows, in whole chunks of compiled kernels."""
    return -(-rows // _WHOLE) * _WHOLE


def block_length(width: int) -> int:
    """The rows of a block, for a pass that takes ``width`` numbers of each."""
    return max(64, _BLOCK_NUMBERS // width, min(_WIDE_ROWS, _WIDE_NUMBERS // width))


def limit_blas_threads(dimension: int) -> AbstractContextManager[None]:
    """Keep the algebra of small matrices between passes in the caller's thread, and that of very large ones.

    BLAS threads do not sleep at once when their work is done. They spin, on the cores that the next pass over
    the rows needs. Very large matrices crash them.
    """
    many = _SMALL_DIMENSION <= dimension <= _LARGE_DIMENSION
    return nullcontext() if many else single_threaded_blas()


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Items of which the next is made in a thread of its own while one is used."""

    def following() -> list[Item]:
        return list(islice(items, 1))

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(following)
        while found := future.result():
            future = pool.submit(following)
            yield from found


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@cache
def threads() -> int:
    """As many threads as BLAS was set up with, so that the usual environment variables apply here too."""
    return max([library["num_threads"] for library in _controller().info()], default=1)


class Shared:
    """A setting of the whole process that holds from its first user, in any thread, to its last."""

    def __init__(self, setting: Callable[[], AbstractContextManager[object]]) -> None:
        self._setting, self._lock, self._held, self.users = setting, threading.Lock(), ExitStack(), 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self.users == 0:
                self._held.enter_context(self._setting())
            self.users += 1
        try:
            yield
        finally:
            with self._lock:
                self.users -= 1
                if self.users == 0:
                    self._held.close()


@Shared
def single_threaded_blas() -> AbstractContextManager[object]:
    """Limit BLAS to one thread per caller while any thread of the process runs a pass."""
    threads()  # remember the full number before it is limited
    limited: AbstractContextManager[object] = _controller().limit(limits=1)
    return limited
