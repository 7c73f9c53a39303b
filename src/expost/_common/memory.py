"""How much memory this machine has, and the refusal of what needs more."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from expost.exceptions import ResourceError

_GIB = 2**30
# Where Linux mounts the limits of groups of processes, and the files with the limit in either version.
_GROUPS, _LIMIT_FILES = Path("/sys/fs/cgroup"), ("memory.max", "memory.limit_in_bytes")


def check_memory(needed: int, what: str) -> None:
    """Refuse what needs more memory than this process may ever have.

    Privacy
    -------
    ``needed`` must follow from public sizes. It is compared with what the machine has and not with what is
    free, which depends on the table in memory.
    """
    most = machine_memory()
    if needed > most:
        raise ResourceError(
            f"{what} takes up to {_size(needed)} of memory, and this machine has {_size(most)}. "
            "Use fewer columns or classes, fewer threads (OPENBLAS_NUM_THREADS=1), or a larger machine."
        )


def _size(count: int) -> str:
    return f"{count / _GIB:.1f} GiB" if count >= _GIB else f"{count / 2**20:.1f} MiB"


def machine_memory() -> int:
    """Bytes that this process may have at most: those of the machine, or of its container if fewer.

    Where the system does not say, there is no limit.
    """
    limits = [sys.maxsize, *_group_limits()]
    with suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(ImportError):
        import resource

        limits.append(resource.getrlimit(resource.RLIMIT_AS)[0])
    return min(limit for limit in limits if limit > 0)  # below zero: unlimited


def _group_limits() -> Iterator[int]:
    """The limits of the groups that Linux counts this process in, the groups around them included."""
    folders = {_GROUPS, _GROUPS / "memory"}
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, name = line.split(":", 2)
            mounted = _GROUPS / "memory" if "memory" in controllers.split(",") else _GROUPS
            place = mounted / name.lstrip("/")
            folders.update(folder for folder in (place, *place.parents) if folder.is_relative_to(_GROUPS))
    for folder in folders:
        for file in _LIMIT_FILES:
            with suppress(OSError, ValueError):  # "max" where there is none
                yield int((folder / file).read_text(encoding="ascii"))
