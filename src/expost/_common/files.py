"""Files appear whole or not at all, and never in the place of something else."""

import errno
import io
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count, takewhile
from pathlib import Path
from typing import BinaryIO, TextIO

from expost.exceptions import FileError

APPLICATION = 0x6578706F
"""What SQLite's header of an expost ledger is marked with: "expo"."""
# Where each mark of such a file stands in it.
_OF_A_LEDGER = {0: b"SQLite format 3\0", 68: APPLICATION.to_bytes(4, "big")}
# Create a file that does not exist yet. The last flag exists on Windows only.
_NEW = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)


@contextmanager
def atomic_write(
    path: Path, *, private: bool = False, overwrite: bool = True, room: int = 0
) -> Iterator[TextIO]:
    """Open a text file that appears at ``path`` only once it is complete; see :func:`atomic_write_bytes`."""
    with atomic_write_bytes(path, private=private, overwrite=overwrite, room=room) as raw:
        file = io.TextIOWrapper(raw, encoding="utf-8", newline="")
        yield file
        file.flush()
        file.detach()  # keep the file of bytes open; it still has to be synced


@contextmanager
def atomic_write_bytes(
    path: Path, *, private: bool = False, overwrite: bool = True, room: int = 0
) -> Iterator[BinaryIO]:
    """Open a file of bytes that appears at ``path`` only once it is complete.

    If writing is interrupted, by a full disk or Ctrl-C, the old file stays as it was and no part of the new
    one is left, nor a folder made for it. On systems that have files without a name, this holds even if the
    process is killed. If the name is taken meanwhile and may not be replaced, or if the system refuses it at
    the end, the content goes to a free name in its folder; the error says to which. A ``private`` file can be
    read by its owner only. ``room`` bytes are reserved at once, so that a full disk is noticed early.
    """
    check_regular(path, overwrite=overwrite)
    target = Path(os.path.realpath(path))
    made = list(takewhile(lambda folder: not _exists(folder), target.parents))  # the innermost first
    name = target.parent / f".expost-{secrets.token_hex(8)}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        check_regular(target, overwrite=overwrite)  # its folder is there now: is the name one that can be?
        handle, named = _create(name, 0o600 if private else 0o666)
        with os.fdopen(handle, "wb") as file:
            if room and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(handle, 0, room)
            yield file
            file.flush()
            file.truncate(file.tell())
            os.fsync(handle)
            if not named and overwrite:
                _give_name(handle, name)
            elif not named:
                _appear(path, target, partial(_give_name, handle))
        if overwrite:
            _appear(path, target, partial(rename_new, name), replace=partial(os.replace, name))
        elif named:
            _appear(path, target, partial(rename_new, name))
    except BaseException:
        _clean_up(name, made)
        raise


def _clean_up(name: Path, folders: list[Path]) -> None:
    for undo in (name.unlink, *(folder.rmdir for folder in folders)):
        with suppress(OSError):  # it was never made, or somebody uses the folder by now
            undo()


def check_output(path: Path, *, inputs: Iterable[Path] = (), overwrite: bool = False) -> None:
    """Raise an error unless a file may be written at ``path``; call this before a budget is spent on it.

    It may not be one of the ``inputs``, however it is spelt, nor lie in one. Nothing is made on the way: no
    file and no folder.
    """
    for other in inputs:
        if same_file(path, other):
            raise FileError(f"{path} is an input of this command, which never writes over it. Name another.")
        if os.path.isdir(other) and same_file(path.absolute().parent, other):
            raise FileError(
                f"{path} would lie among the files of the table, and be read as one. Name another."
            )
    check_regular(path, overwrite=overwrite)
    with tempfile.TemporaryFile(dir=next(filter(_exists, Path(os.path.realpath(path)).parents))):
        pass


def check_regular(path: Path, *, overwrite: bool) -> None:
    """Raise an error if ``path`` is a folder, a device, a pipe or a broken link, or exists already.

    A ledger is never replaced: what was spent of its tables would be forgotten.
    """
    if not _exists(path):
        if os.path.islink(path):
            raise FileError(f"{path} is a link to nothing. Name another file, or delete the link.")
        return
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise FileError(f"{path} is a device or a pipe, not a file. Name a file.")
    if not overwrite:
        raise FileError(
            f"{path} exists. Name another file, or replace it with `--force` (in Python `overwrite=True`)."
        )
    if _is_ledger(path):
        raise FileError(f"{path} is a ledger, which nothing replaces. Name another file.")


def _is_ledger(path: Path) -> bool:
    """Whether a file is a ledger of expost, by the marks in its header."""
    with suppress(OSError), open(path, "rb") as file:
        start = file.read(100)
        return all(start[place:].startswith(mark) for place, mark in _OF_A_LEDGER.items())
    return False


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, through links, ``..`` or another spelling.

    Names that do not exist yet are compared without regard to case: some file systems make no difference.
    """
    with suppress(OSError):
        return os.path.samefile(one, other)
    return os.path.realpath(one).casefold() == os.path.realpath(other).casefold()


def _exists(path: Path) -> bool:
    """Whether something is there; unlike ``Path.exists``, raise OSError for a name that cannot be."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    return True


def _create(name: Path, mode: int) -> tuple[int, bool]:
    """Open a new file, and say whether it has its name.

    Where the system has files without a name, it disappears with its process unless it gets one.
    """
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        with suppress(OSError):
            return os.open(name.parent, os.O_TMPFILE | os.O_RDWR, mode), False
    return os.open(name, _NEW, mode), True


def _give_name(handle: int, name: Path) -> None:
    folder = os.open(name.parent, os.O_RDONLY)
    try:
        # A folder's handle makes the call follow the link in /proc to the file itself.
        os.link(f"/proc/self/fd/{handle}", name, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _appear(
    path: Path,
    target: Path,
    give: Callable[[Path], object],
    *,
    replace: Callable[[Path], object] | None = None,
) -> None:
    """Let a complete file appear at ``target``, or under another name: it may have cost a budget."""
    try:
        (replace or give)(target)
        return
    except FileExistsError:
        reason = "was written by another process meanwhile"
    except OSError as error:
        reason = f"cannot be written ({error.strerror})"
    for number in count(2):
        free = target.with_stem(f"{target.stem[:80]}-{number}")
        with suppress(FileExistsError):
            give(free)
            break
    raise FileError(f"{path} {reason}. What was made is complete, in {free}.")


def rename_new(name: Path, target: Path) -> None:
    """Rename a file; raise FileExistsError if the new name is taken."""
    if os.name == "nt":
        os.rename(name, target)
        return
    try:
        os.link(name, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: take the name first
        os.close(os.open(target, _NEW))
        os.replace(name, target)
    else:
        name.unlink()
