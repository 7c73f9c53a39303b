"""Passes in the threads of this process."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from expost._common import parallel
from expost.engines.base import B, Part, Pass, R, run


@dataclass(frozen=True)
class LocalEngine:
    """Runs parts in as many threads as the linear algebra library would use.

    One part, or a library that is set to one thread, stays in the caller's thread.
    """

    threads_per_part: int = 1
    """How many threads a part keeps busy by itself."""

    @property
    def _workers(self) -> int:
        return max(parallel.threads() // self.threads_per_part, 1)

    @property
    def sums_held(self) -> int:
        """Two for each thread."""
        return 2 * self._workers

    def map(self, work: Pass[B, R], parts: Sequence[Part[B]], length: int) -> Iterator[R]:
        """The results in the order of the parts; at most one for each thread waits for its turn."""
        workers = min(self._workers, len(parts))
        if workers <= 1:
            # One thread here too: the bits of a product depend on how the library shares it out.
            with parallel.single_threaded_blas():
                for part in parts:
                    yield run(work, part, length)
            return

        with parallel.single_threaded_blas(), ThreadPoolExecutor(workers) as pool:
            rest = iter(parts)
            running: deque[Future[R]] = deque(
                pool.submit(run, work, part, length) for part in islice(rest, workers)
            )
            try:
                while running:
                    result = running.popleft().result()
                    running.extend(pool.submit(run, work, part, length) for part in islice(rest, 1))
                    yield result
            finally:
                for future in running:
                    future.cancel()


LOCAL = LocalEngine()
