"""The compiled kernels: found, chosen for this machine and tested once in every process, or not used at all.

They were compiled when the package was installed, if there was a C compiler (``_kernels/build.py``). Without
them, or where they fail their test, passes are run with NumPy, a little slower. ``EXPOST_KERNELS`` is ``off``
for that, or the level of an instruction set to use: 4 and 3 for x86-64-v4 and -v3, 1 for any other.
"""

import ctypes
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent.parent / "_kernels"
SETTING = "EXPOST_KERNELS"
_OFF = "off"
# Instruction sets by their level, the best first; those that this machine has not are not tried.
_NAMES = {4: "x86-64-v4", 3: "x86-64-v3", 1: "any"}

FINE, NOT_FINITE, NO_MEMORY, UNSOUND = range(4)
"""What a kernel answers; the last where rounding or denormal numbers are not as the proofs need them."""
LANES = 8
"""How many sums kernels keep of each column, until they are added up."""

KINDS = 10
"""How many losses they know; a library that knows others is not used."""


class Rows(ctypes.Structure):
    """A block of a table as it lies in memory, with its labels, its weights and how rows are scaled."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("kind", "rows", "features", "intercept")),
        *((name, ctypes.c_double) for name in ("norm", "margin", "smallest_scale")),
        *((name, ctypes.c_void_p) for name in ("labels", "weights", "cells")),
        *((name, ctypes.c_int64) for name in ("row_stride", "code")),
        *((name, ctypes.c_void_p) for name in ("columns", "strides", "codes", "starts", "places", "values")),
        ("order", ctypes.c_void_p),
    )


class Loss(ctypes.Structure):
    """A loss: which one, its constants on each level, the tables of its exponential, or its derivatives."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("kind", "classes", "half")),
        *((name, ctypes.c_void_p) for name in ("limits", "shapes")),
        ("absolute", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in ("coarse_high", "coarse_low", "fine_high", "fine_low", "fine")),
        *((name, ctypes.c_void_p) for name in ("slopes", "bends")),
    )


_POINTER = ctypes.c_void_p
_BLOCK, _LOSS = ctypes.POINTER(Rows), ctypes.POINTER(Loss)
_ARGUMENTS = {
    "scan": (_BLOCK,),
    "encode": (_BLOCK, _POINTER),
    "add_lanes": (_POINTER, _POINTER, ctypes.c_int64, _POINTER, _POINTER),
    "find_predictors": (_BLOCK, _POINTER, ctypes.c_int64, _POINTER),
    "add_derivatives": (_BLOCK, _LOSS, *[_POINTER] * 4),
    "add_residual": (_BLOCK, _LOSS, *[_POINTER] * 6, ctypes.c_double, ctypes.c_double),
    "find_terms": (_BLOCK, _LOSS, *[_POINTER] * 6),
    "find_person_terms": (_BLOCK, _LOSS, *[_POINTER] * 4, ctypes.c_int64, ctypes.c_double, *[_POINTER] * 3),
}


class Library(NamedTuple):
    """The kernels for one instruction set."""

    level: int
    kernels: ctypes.CDLL

    @property
    def name(self) -> str:
        """The instruction set."""
        return _NAMES[self.level]


@cache
def library() -> Library | None:
    """The kernels for this machine, or None where passes are run with NumPy.

    They are tested here, once in a process and so once in every worker of a cluster: that sums and products
    are rounded to nearest and leave exactly what was rounded away, with fused operations where the machine
    has them; that tiny numbers are not taken for zero; and that sums of integers are exact in the very loops
    that certificates use. Another library can change rounding or tiny numbers of a thread later, so
    certificates ask for these two again in every block.
    """
    setting = os.environ.get(SETTING, "").strip().lower()
    first = None if setting == _OFF else _loaded(1)
    if first is None:
        return None
    highest = int(first.kernels.machine_level())
    wanted = [int(setting)] if setting.isdigit() else list(_NAMES)
    found = (_loaded(level) for level in wanted if level <= highest)
    return next((one for one in found if one is not None), None)


def _loaded(level: int) -> Library | None:
    """The kernels of a level if they are there and pass their test."""
    with suppress(OSError, AttributeError):
        found = ctypes.CDLL(str(FOLDER / f"kernels-{level}.so"))
        for name in ("machine_level", "self_test", "described_sizes", *_ARGUMENTS):
            function = getattr(found, name)
            function.restype, function.argtypes = ctypes.c_int64, _ARGUMENTS.get(name, ())
        ours = found.described_sizes() == (KINDS * 65536 + ctypes.sizeof(Rows)) * 65536 + ctypes.sizeof(Loss)
        return Library(level, found) if ours and found.self_test() else None
    return None


def described() -> str:
    """Which kernels passes are run with, in a few words."""
    found = library()
    if found is not None:
        return f"compiled, instruction set {found.name}"
    if os.environ.get(SETTING, "").strip().lower() == _OFF:
        return f"NumPy ({SETTING}={_OFF})"
    return "NumPy (no compiled ones that pass their test here)"
