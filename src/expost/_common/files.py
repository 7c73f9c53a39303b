"""Atomic writing of files."""

import errno
import io
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

# Create a file that does not exist yet. The last flag exists on Windows only.
_NEW = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)


@contextmanager
def atomic_write(path: Path, *, private: bool = False) -> Iterator[TextIO]:
    """Open a text file that appears at ``path`` only once it is complete.

    If writing is interrupted, by a full disk or Ctrl-C, the old file stays as it was and no part of the new
    one is left. On systems that have files without a name, this holds even if the process is killed.
    Only its owner can read a private file.
    """
    with atomic_write_bytes(path, private=private) as raw:
        file = io.TextIOWrapper(raw, encoding="utf-8", newline="")
        yield file
        file.flush()
        file.detach()  # keep the file of bytes open; it still has to be synced


@contextmanager
def atomic_write_bytes(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """Open a file of bytes that appears at ``path`` only once it is complete."""
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
    """Raise OSError if ``path`` cannot be written; call this before a budget is spent on the content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with tempfile.TemporaryFile(dir=path.parent):
        pass


def _nameless(folder: Path, mode: int) -> int | None:
    """Open a file that disappears with its process unless it gets a name; None if the system has none."""
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
