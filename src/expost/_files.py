"""Files written whole or not at all."""

import errno
import io
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO


@contextmanager
def written_whole(path: Path) -> Iterator[TextIO]:
    """Open a text file that appears at ``path`` only once it is complete.

    Whatever interrupts the writing, a full disk or Ctrl-C, leaves the old file as it was and no part of the
    new one. Where the system knows files without a name, not even a killed process leaves a part behind.
    """
    with bytes_written_whole(path) as raw:
        file = io.TextIOWrapper(raw, encoding="utf-8", newline="")
        yield file
        file.flush()
        file.detach()  # what is beneath is not yet done


@contextmanager
def bytes_written_whole(path: Path) -> Iterator[BinaryIO]:
    """The same for a file of bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    nameless = _nameless(path.parent)
    handle, name = (
        tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-") if nameless is None else nameless
    )
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if nameless is not None:
                _give_name(handle, name, path.parent)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """Refuse a place that cannot be written to, before anything is spent on what is to be written there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with tempfile.TemporaryFile(dir=path.parent):
        pass


def _nameless(folder: Path) -> tuple[int, str] | None:
    """An open file that vanishes with its process, and the name it may get; None where there are none."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    with suppress(OSError):
        handle = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
        return handle, str(folder / f".expost-{secrets.token_hex(8)}")
    return None


def _give_name(handle: int, name: str, folder: Path) -> None:
    directory = os.open(folder, os.O_RDONLY)
    try:
        # A folder's handle makes the call follow the link in /proc to the file itself.
        os.link(f"/proc/self/fd/{handle}", name, src_dir_fd=directory, follow_symlinks=True)
    finally:
        os.close(directory)
