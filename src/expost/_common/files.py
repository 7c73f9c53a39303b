"""Atomic writing of files: whole, or not at all."""

import errno
import io
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

# A file that is not there yet; the last flag exists on Windows only.
_NEW = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)


@contextmanager
def atomic_write(path: Path, *, private: bool = False) -> Iterator[TextIO]:
    """Open a text file that appears at ``path`` only once it is complete.

    Whatever interrupts the writing, a full disk or Ctrl-C, leaves the old file as it was and no part of the
    new one. Where the system knows files without a name, not even a killed process leaves a part behind.
    A private file is for its owner's eyes only.
    """
    with atomic_write_bytes(path, private=private) as raw:
        file = io.TextIOWrapper(raw, encoding="utf-8", newline="")
        yield file
        file.flush()
        file.detach()  # what is beneath is not yet done


@contextmanager
def atomic_write_bytes(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """The same for a file of bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    name = path.parent / f".expost-{secrets.token_hex(8)}"
    mode = 0o600 if private else 0o666
    nameless = _nameless(path.parent, mode)
    handle = os.open(name, _NEW, mode) if nameless is None else nameless
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if nameless is not None:
                _give_name(handle, name)
        os.replace(name, path)
    except BaseException:
        name.unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """Refuse a place that cannot be written to, before anything is spent on what is to be written there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with tempfile.TemporaryFile(dir=path.parent):
        pass


def _nameless(folder: Path, mode: int) -> int | None:
    """An open file that vanishes with its process unless it gets a name; None where there are none."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        with suppress(OSError):
            return os.open(folder, os.O_TMPFILE | os.O_RDWR, mode)
    return None


def _give_name(handle: int, name: Path) -> None:
    folder = os.open(name.parent, os.O_RDONLY)
    try:
        # A folder's handle makes the call follow the link in /proc to the file itself.
        os.link(f"/proc/self/fd/{handle}", name, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)
