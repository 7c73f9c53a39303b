"""Passes on the workers of a Dask cluster."""

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from expost._common.machine import single_threaded_blas
from expost.engines.base import LOCAL, B, Engine, Part, Pass, R, run
from expost.exceptions import EngineError, ExpostError, ParameterError

if TYPE_CHECKING:
    from distributed import Client

# Rounds of tasks, one for each thread of the workers, that are sent ahead of the one that is waited for. A
# round has at least this many tasks, to spare the driver waiting.
_ROUNDS_AHEAD, _SMALLEST_ROUND = 3, 32
# Seconds to wait for a worker where there is none.
_PATIENCE = 30


@dataclass(frozen=True, eq=False)
class DaskEngine:
    """Runs parts as tasks of a Dask cluster.

    A task that is lost with its worker is run again by Dask; a pass is pure, so its result is the same.
    Results are the bits of :class:`LocalEngine` where the workers have the same kind of processor and the
    same libraries.

    Privacy
    -------
    Passes carry private values to the workers: iterates, the gradient and the whitening matrix of the
    Hessian. Parts and results are private too. The cluster is as trusted as the table. Workers are asked not
    to write what they hold to their disks. Whatever goes wrong in a pass comes back as a public sentence or
    as the name of an error's type, never as a traceback.
    """

    client: "Client"

    @property
    def sums_held(self) -> int:
        """Those of one round of tasks."""
        return max(_SMALLEST_ROUND, int(self._ask(self._threads)))

    def map(self, work: Pass[B, R], parts: Sequence[Part[B]], length: int) -> Iterator[R]:
        """The results in the order of the parts; a few rounds of tasks are on the cluster at a time."""
        from dask.delayed import delayed

        # A task of its own, so that what all parts need travels once to a worker and survives any of them.
        sent, task = delayed(SentPass, pure=False)(work), delayed(run_part, pure=False)
        rest, size = iter(parts), self.sums_held
        running: deque[list[Any]] = deque()
        try:
            while True:
                while len(running) <= _ROUNDS_AHEAD and (some := list(islice(rest, size))):
                    tasks = [task(sent, part, length) for part in some]
                    running.append(self._ask(self.client.compute, tasks))
                if not running:
                    return
                for found in self._ask(self.client.gather, running[0]):
                    if isinstance(found, ExpostError):
                        raise found
                    yield found
                running.popleft()
        finally:
            with suppress(Exception):  # the cluster may be gone, which was said
                self.client.cancel([future for futures in running for future in futures])

    def _threads(self) -> int:
        """The threads of all workers, for the first of which a while is waited."""
        if not self.client.nthreads():
            self.client.wait_for_workers(1, timeout=_PATIENCE)
        return sum(self.client.nthreads().values())

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> Any:
        """What the client answers; its errors, or those of the frame's own tasks, may quote records."""
        try:
            return question(*arguments)
        except Exception as error:
            failure = type(error).__name__
        raise EngineError(  # outside of the handler, so that it does not carry that error
            f"the cluster did not finish a pass ({failure}). See that it has workers, and that they have "
            "memory enough for a part and can read it; then start again."
        )


@dataclass(frozen=True, eq=False, repr=False)
class SentPass:
    """The pass that tasks run, which travels once to each worker; its repr shows nothing."""

    work: Any


def run_part(sent: SentPass, part: Part[B], length: int) -> Any:
    """Run a pass on a part, where the part is; errors are returned, because tracebacks hold cells."""
    try:
        with single_threaded_blas():
            return run(sent.work, part, length)
    except ExpostError as error:
        return type(error)(*error.args)  # without its traceback
    except OSError as error:
        return EngineError(
            f"a worker cannot read a part of the table ({error.strerror or type(error).__name__}). All "
            "workers must be able to open its files by the same names."
        )
    except BaseException as error:  # a task of the frame's own may raise anything, with a cell in it
        return EngineError(f"a pass failed on a worker ({type(error).__name__}).")


def engine_of(client: "Client | None", *, current: bool = False) -> Engine:
    """The engine of a client, or this process; with ``current``, the client that Dask would use by itself."""
    distributed = sys.modules.get("distributed")
    if client is None and current and distributed is not None:
        with suppress(ValueError):  # there is none
            client = distributed.default_client()
    if client is None:
        return LOCAL
    if distributed is None or not isinstance(client, distributed.Client):
        raise ParameterError("`client` must be a client of a Dask cluster (distributed.Client).")
    if client.asynchronous or client.status != "running":
        raise ParameterError("`client` must be connected and not asynchronous; got another. Make a new one.")
    keep_in_memory(client)
    return DaskEngine(client)


def keep_in_memory(client: "Client") -> None:
    """Tell all workers, those that come later too, not to write what they hold to their disks."""
    from distributed import WorkerPlugin

    class Memory(WorkerPlugin):  # made here, because Dask is not always there
        name = "expost-memory"

        def setup(self, worker: Any) -> None:  # leaves no threshold beyond which a worker writes to its disk
            worker.memory_manager.memory_target_fraction = False
            worker.memory_manager.memory_spill_fraction = False
            if hasattr(worker.data, "evict"):
                worker.data.n = sys.maxsize

    client.register_plugin(Memory())
