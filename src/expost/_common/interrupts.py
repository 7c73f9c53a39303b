"""Ctrl-C ends the command line with one sentence, from its first moment on."""

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

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
