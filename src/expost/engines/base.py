"""What a pass, a part of the rows and an engine promise each other, and the engine of this process."""

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from expost._common import machine
from expost._common.namespaces import HERE, Space

B = TypeVar("B")
B_co = TypeVar("B_co", covariant=True)
B_contra = TypeVar("B_contra", contravariant=True)
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Part(Protocol[B_co]):
    """Some of the rows, read where the work is done; it can be pickled."""

    def blocks(self, length: int) -> Iterator[B_co]:
        """The rows in order, in blocks of at most ``length``, each valid until the next is asked for."""
        ...


class Pass(Protocol[B_contra, R_co]):
    """What is computed from the blocks of a part.

    Frozen, pure and picklable: it can be run anywhere, and again, with the same result. No noise is drawn in
    a pass.
    """

    def __call__(self, blocks: Iterator[B_contra]) -> R_co:
        """What is found in the blocks of one part."""
        ...


class Kernel(ABC, Generic[R]):
    """A pass that is run where the rows lie, or where they are sent, in the library of arrays there.

    It is written once, with the names of the array API standard, of which NumPy is one library. Any other
    pass gets the rows on the host. Some have a twin in compiled code, for rows in this machine's memory.
    """

    @abstractmethod
    def __call__(self, blocks: Iterator[Any], space: Space = HERE) -> R:
        """What is found in the blocks, whose rows lie in ``space``; sums come back as NumPy's."""

    @property
    def compiles(self) -> bool:
        """Whether there is a twin in compiled code (:meth:`compiled`)."""
        return False

    def compiled(self, blocks: Iterator[Any]) -> R:
        """What is found in rows as they lie (:class:`~expost.data.blocks.RawBlock`), up to rounding."""
        raise NotImplementedError


class Engine(Protocol):
    """Runs a pass on every part. What goes to where parts are read, and what comes back, is private."""

    @property
    def sums_held(self) -> int:
        """How many sums of rows are in this process at a time, at most; a part under way has two of them."""
        ...

    def map(self, work: Pass[B, R], parts: Sequence[Part[B]], length: int) -> Iterator[R]:
        """The results in the order of the parts, whichever is ready first.

        Sums are taken in this order, so that they do not depend on the engine. Few results are held at a
        time: the caller adds them up, or writes them, as they come. ``length`` is that of the blocks.
        """
        ...


def run(work: Pass[B, R], part: Part[B], length: int) -> R:
    """Run a pass on a part, and close what the part had open even where the pass fails."""
    blocks = part.blocks(length)
    try:
        return work(blocks)
    finally:
        getattr(blocks, "close", lambda: None)()


@dataclass(frozen=True)
class LocalEngine:
    """Runs parts in as many threads as the linear algebra library would use.

    One part, or a library that is set to one thread, stays in the caller's thread.
    """

    threads_per_part: int = 1
    """How many threads a part keeps busy by itself."""

    @property
    def sums_held(self) -> int:
        """Two for each thread, and one that waits where there are several."""
        return 3 * self._workers if self._workers > 1 else 2

    @property
    def _workers(self) -> int:
        return max(machine.threads() // self.threads_per_part, 1)

    def map(self, work: Pass[B, R], parts: Sequence[Part[B]], length: int) -> Iterator[R]:
        """The results in the order of the parts; at most two for each thread are there or under way."""
        workers = min(self._workers, len(parts))
        # One thread for the library, also where there is one part: the bits of a product depend on it.
        with machine.single_threaded_blas():
            if workers <= 1:
                yield from (run(work, part, length) for part in parts)
                return
            pool, rest = _pool(self._workers), iter(parts)
            running: deque[Future[R]] = deque(
                pool.submit(run, work, part, length) for part in islice(rest, 2 * workers)
            )
            try:
                while running:
                    result = running.popleft().result()
                    running.extend(pool.submit(run, work, part, length) for part in islice(rest, 1))
                    yield result
            finally:
                for future in running:
                    future.cancel()
                wait(running)  # nobody reads the rows when this has ended


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that are kept from one pass to the next: to start some takes longer than a short pass."""
    return ThreadPoolExecutor(threads)


# A child process has none of its parent's threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)

LOCAL = LocalEngine()
