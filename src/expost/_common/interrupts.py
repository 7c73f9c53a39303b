"""Ctrl-C ends the command line with one sentence, from its first moment on."""

import signal
import sys
from types import FrameType

STOPPED = "stopped before the end; no partial file was left behind."


def stop_quietly() -> None:
    """Let Ctrl-C end the process with a sentence while modules are imported and options are read.

    Where it was ignored, as in a background job, it still is.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


def catch_interrupts() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, so that a command can clean up behind itself."""
    if signal.getsignal(signal.SIGINT) is _stop:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def ignore_interrupts() -> None:
    """Ignore Ctrl-C once everything is done: only the interpreter is still to close."""
    if signal.getsignal(signal.SIGINT) in (_stop, signal.default_int_handler):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _stop(number: int, frame: FrameType | None) -> None:
    sys.stderr.write(f"expost: {STOPPED}\n")
    raise SystemExit(1)
