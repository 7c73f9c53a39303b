"""A long computation: which step it is in, how far it has come, and how Ctrl-C ends it."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from importlib import import_module
from types import FrameType
from typing import NoReturn

Step = Callable[[str], None]


def silent(step: str) -> None:
    """Show nothing."""


class Watch:
    """Counts passes over rows, and the rows of the one that is running; for a display of what is left.

    Privacy
    -------
    Private: numbers of rows are. They are for the curator's terminal only, and for no log.
    """

    def __init__(self, show: Callable[["Watch"], None]) -> None:
        self._show = show
        self._lock = threading.Lock()  # rows are counted by the threads that read them
        self.passes = 0
        self.rows = 0
        self.total: int | None = None
        """The rows of a pass; None where they are known only once all of them were read."""
        self.share = 0.0
        """How much of the pass is done."""

    def begin(self, total: int | None) -> None:
        """A pass begins, over this number of rows."""
        with self._lock:
            self.passes, self.rows, self.total, self.share = self.passes + 1, 0, total, 0.0
        self._show(self)

    def seen(self, rows: int, share: float | None = None) -> None:
        """More rows were read; ``share`` is that of the pass where it does not follow from their number."""
        with self._lock:
            self.rows += rows
            if share is None and self.total:
                share = self.rows / self.total
            self.share = min(max(self.share, share or 0.0), 1.0)
        self._show(self)

    @property
    def left(self) -> int | None:
        """About how many rows of the pass are left; None before that is known."""
        if self.total is not None:
            return max(self.total - self.rows, 0)
        return round(self.rows * (1.0 / self.share - 1.0)) if self.share else None


@contextmanager
def shown_steps(shown: bool) -> Iterator[Step]:
    """Give a function that shows the step it is called with, in place of the one before.

    In a terminal it is a line that goes away at the end, on standard error. In a notebook it is one line of
    output, which says at the end how long everything took, or that it was stopped. Elsewhere, as in a log,
    each step is a line.

    Privacy
    -------
    The names of the steps are public. When they change is not: how long a step takes depends on the table.
    """
    if not shown:
        yield silent
        return
    interactive = sys.modules.get("IPython")
    # There may be no shell, or one in a terminal.
    if interactive is not None and hasattr(interactive.get_ipython(), "kernel"):
        yield from _in_notebook()
        return
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        with console.status("Starting") as status:
            yield status.update
    else:
        yield lambda step: console.print(step, markup=False, highlight=False, soft_wrap=True)


def _in_notebook() -> Iterator[Step]:
    # Only what every notebook has: rich would ask for widgets that may not be installed.
    start, display = time.monotonic(), import_module("IPython.display").display

    def bundle(text: str) -> dict[str, str]:
        return {"text/plain": text, "text/html": f'<div role="status">{escape(text)}</div>'}

    handle = display(bundle("Starting"), raw=True, display_id=True)
    try:
        yield lambda step: handle.update(bundle(f"{step} …"), raw=True)
    except BaseException:
        handle.update(bundle("Stopped."), raw=True)
        raise
    handle.update(bundle(f"Done in {time.monotonic() - start:.1f} s."), raw=True)


STOPPED = "stopped before the end; no partial file was left behind."

_caught: list[int] = []


def stop_quietly() -> None:
    """Let Ctrl-C end the process with a sentence while modules are imported and options are read.

    Where it was ignored, as in a background job, it still is.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


def catch_interrupts() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, so that a command can clean up behind itself."""
    if signal.getsignal(signal.SIGINT) is _stop:
        signal.signal(signal.SIGINT, _interrupt)


def was_interrupted() -> bool:
    """Whether Ctrl-C came: a module in C that is being imported turns it into an error of its own."""
    return bool(_caught)


def ignore_interrupts() -> None:
    """Ignore Ctrl-C once everything is done: only the interpreter is still to close."""
    if signal.getsignal(signal.SIGINT) in (_stop, _interrupt):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    # Nothing has been opened yet, and an exception could be swallowed by a module that is being imported.
    sys.stderr.write(f"expost: {STOPPED}\n")
    sys.stderr.flush()
    os._exit(1)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    _caught.append(number)
    raise KeyboardInterrupt
