"""Passes on the workers of a Dask cluster."""

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic

from expost._common.machine import single_threaded_blas
from expost.engines.base import LOCAL, B, Engine, Part, Pass, R, run
from expost.exceptions import EngineError, ExpostError, ParameterError

if TYPE_CHECKING:
    from distributed import Client

# Rounds of tasks, one for each thread of the workers, that are sent ahead of the one that is waited for.
_ROUNDS_AHEAD = 3
# Seconds to wait for a worker where there is none.
_PATIENCE = 30
# A round has at least so many tasks, to spare the driver waiting.
_SMALLEST_ROUND = 32


@dataclass(frozen=True, eq=False)
class DaskEngine:
    """Runs parts as tasks of a Dask cluster.

    A task that is lost with its worker is run again by Dask; a pass is pure, so its result is the same.
    Results are the bits of :class:`LocalEngine` where the workers have the same kind of processor and the
    same libraries.

    Privacy
    -------
    Passes carry private values to the workers: iterates, the gradient and the whitening matrix of the
    Hessian. Parts and results are private too. The cluster is as trusted as the table. Workers are told not
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
        sent = delayed(Sent, pure=False)(work)
        task = delayed(run_part, pure=False)
        rest = iter(parts)
        size = self.sums_held
        running: deque[list[Any]] = deque()
        try:
            while True:
                while len(running) <= _ROUNDS_AHEAD and (some := list(islice(rest, size))):
                    running.append(
                        self._ask(self.client.compute, [task(sent, part, length) for part in some])
                    )
                if not running:
                    return
                for outcome in self._ask(self.client.gather, running[0]):
                    yield outcome.result()
                running.popleft()
        finally:
            with suppress(Exception):  # the cluster may be gone, which was told
                self.client.cancel([future for futures in running for future in futures])

    def _threads(self) -> int:
        """The threads of all workers, for the first of which a while is waited."""
        if not self.client.nthreads():
            self.client.wait_for_workers(1, timeout=_PATIENCE)
        return sum(self.client.nthreads().values())

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> Any:
        """What the client answers; its errors, or those of the frame's own tasks, may quote records."""
        failure = ""
        try:
            return question(*arguments)
        except Exception as error:
            failure = type(error).__name__
        raise EngineError(
            f"the cluster did not finish a pass ({failure}). See that it has workers, and that they have "
            "memory enough for a part and can read it; then start again."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Sent:
    """What a task depends on."""

    work: Any


@dataclass(frozen=True, eq=False, repr=False)
class Outcome(Generic[R]):
    """What came of a task: a value, or an error without anything private."""

    value: R | None
    error: ExpostError | None = None

    def result(self) -> R:
        """The value, or the error is raised."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]  # None is a value too


def run_part(sent: Sent, part: Part[B], length: int) -> Outcome[Any]:
    """Run a pass on a part, where the part is; errors are returned, because tracebacks hold cells."""
    failure: ExpostError
    try:
        with single_threaded_blas():
            return Outcome(run(sent.work, part, length))
    except ExpostError as error:
        failure = type(error)(*error.args)  # without its traceback
    except OSError as error:
        failure = EngineError(
            f"a worker cannot read a part of the table ({error.strerror or type(error).__name__}). All "
            "workers must be able to open its files by the same names."
        )
    except BaseException as error:  # a task of the frame's own may raise anything, with a cell in it
        failure = EngineError(f"a pass failed on a worker ({type(error).__name__}).")
    return Outcome(None, failure)


def engine_of(client: "Client | None", *, current: bool = False) -> Engine:
    """The engine of a client, or this process; with ``current``, the client that Dask would use by itself."""
    distributed = sys.modules.get("distributed")
    if client is None and current and distributed is not None:
        try:
            client = distributed.default_client()
        except ValueError:  # there is none
            return LOCAL
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
        """Turns off spilling."""

        name = "expost-memory"

        def setup(self, worker: Any) -> None:
            """Leave no threshold beyond which a worker writes to its disk."""
            worker.memory_manager.memory_target_fraction = False
            worker.memory_manager.memory_spill_fraction = False
            if hasattr(worker.data, "evict"):
                worker.data.n = sys.maxsize

    client.register_plugin(Memory())
