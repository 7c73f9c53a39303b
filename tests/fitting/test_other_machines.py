"""Kernels of other compilers and processors find what ours do, and read nothing but their rows.

Calls of this machine's kernels are written to a file, with all the memory that they read. A small program
(replay.c) runs them again: compiled by clang, for arm64 in an emulator, or with sanitizers.
"""

import ctypes
import math
import shutil
import struct
import subprocess
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from test_compiled import LOSSES, OWN, TABLES, labels_of, passes, swept

import hatch_build
from expost._common import kernels
from expost._common.namespaces import HERE
from expost.data.blocks import RawBlock, Table
from expost.data.design import Design, check_finite
from expost.data.encoding import Encoded
from expost.data.sources import ArraySource
from expost.data.tables import open_table
from expost.fitting.certified.functions import exponential_tables
from expost.fitting.ex_post import PersonTerms, Terms

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(kernels.library() is None, reason="no compiled kernels"),
]
SOURCE, ROOT = Path(__file__).with_name("replay.c"), Path(__file__).parents[2]
NAMES = (
    "scan",
    "encode",
    "add_derivatives",
    "add_residual",
    "find_terms",
    "find_person_terms",
    "find_predictors",
)
SANITIZERS = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
LEVELS = {level: flags for level, flags in hatch_build.LEVELS.items() if level in hatch_build.levels()}
# Which compiler with which flags, what runs the program, and Debian's packages for it.
MACHINES = {
    **{f"clang, level {level}": ("clang", flags, (), "clang") for level, flags in LEVELS.items()},
    **{
        f"sanitizers, level {level}": ("cc", (*flags, *SANITIZERS), (), "gcc")
        for level, flags in LEVELS.items()
    },
    "clang, sanitizers": ("clang", SANITIZERS, (), "clang and libclang-rt-14-dev (or that of its version)"),
    "arm64": (
        "aarch64-linux-gnu-gcc",
        ("-static",),
        ("qemu-aarch64",),
        "gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user",
    ),
}


class Call:
    """A call of a kernel: its memory before and after, and the addresses in it."""

    def __init__(self, name, rows, arguments):
        self.name, self.pieces, self.addresses, self._known = NAMES.index(name), [], [], {}
        self.given, self.numbers = [], []
        self.given.append(self._structure(rows._rows, rows._kept))
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                self.given.append(self._array(argument)[0])
            elif isinstance(argument, int | float):
                self.numbers.append(argument)
            elif argument is None:
                self.given.append(-1)
            else:
                loss = argument._obj
                self.given.append(self._structure(loss, [*loss.kept, *exponential_tables(HERE)]))
        self.numbers += [0.0] * (2 - len(self.numbers))
        self.before = [ctypes.string_at(low, size) for low, size in self.pieces]

    def _array(self, array):
        """The piece of memory that an array is in, and where it begins there."""
        low, high = np.lib.array_utils.byte_bounds(array)
        address = array.ctypes.data
        if (low, high - low) not in self._known:
            self._known[low, high - low] = len(self.pieces)
            self.pieces.append((low, high - low))
        return self._known[low, high - low], address - low

    def _structure(self, structure, arrays):
        places = {array.ctypes.data: array for array in arrays if array.size}
        piece = len(self.pieces)
        self.pieces.append((ctypes.addressof(structure), ctypes.sizeof(structure)))
        for name, kind in structure._fields_:
            address = getattr(structure, name) if kind is ctypes.c_void_p else None
            if address in places:  # nothing is read where there is nothing
                self.addresses.append(
                    (piece, getattr(type(structure), name).offset, *self._array(places[address]))
                )
                if name == "columns":
                    held = places[address]
                    owner = self._array(held)[0]
                    for k, column in enumerate(held.tolist()):
                        self.addresses.append((owner, 8 * k, *self._array(places[column])))
        return piece

    def written(self):
        """The call as the program reads it."""
        yield struct.pack("<2q", self.name, len(self.before))
        for memory in self.before:
            yield struct.pack("<q", len(memory)) + memory
        yield struct.pack("<q", len(self.addresses))
        for address in self.addresses:
            yield struct.pack("<4q", *address)
        yield struct.pack(f"<{1 + len(self.given)}q", len(self.given), *self.given)
        yield struct.pack("<2d", *self.numbers)


@pytest.fixture(scope="module")
def calls():
    """Calls of every kernel, with every loss and every layout."""
    found, run = [], RawBlock.run

    def recorded(self, kernel, *arguments):
        call = Call(kernel.__name__, self, arguments)
        call.answer = run(self, kernel, *arguments)
        call.after = [ctypes.string_at(low, size) for low, size in call.pieces]
        found.append(call)
        return call.answer

    with patch.object(RawBlock, "run", recorded):
        for name, table in TABLES.items():
            random = np.random.default_rng(5)
            source = ArraySource(table if isinstance(table, Table) else open_table(table))
            everything(
                Encoded(source, Design(5, 1.5, True)), LOSSES[0], random, 700, weighted=name == "columns"
            )
        for loss in [*LOSSES, *OWN]:
            random = np.random.default_rng(6)
            X = random.normal(size=(700, 11)) * 10.0 ** random.uniform(-3, 1, (700, 1))
            everything(Encoded(ArraySource(open_table(X)), Design(11, 1.0, False)), loss, random, 700)
    return found


def everything(records, loss, random, n, *, weighted=True):
    """Every kernel that knows the loss; people have seven rows each, in the table's order and in another."""
    weights = random.uniform(0.0, 3.0, n) if weighted else None
    records = records.labelled(labels_of(loss, random, n), weights)
    design, columns = records.design, records.design.dimension
    (block,) = records.source.parts(columns)[0].blocks(n)
    list(design.dense(iter([block])))
    check_finite(block.X)
    for work in passes(loss, columns, random.normal(size=loss.coefficient_count(columns)), design.radius):
        swept(records, work)
        if isinstance(work, Terms) and loss not in OWN:
            for order in (None, random.permutation(n)):
                PersonTerms(work, False, 7).compiled(iter([design.as_it_lies(block, order)]))


@pytest.fixture(scope="module")
def file(calls, tmp_path_factory):
    path = tmp_path_factory.mktemp("calls") / "calls"
    with path.open("wb") as out:
        sizes = kernels.library().kernels.described_sizes()
        out.write(struct.pack("<2q", sizes, len(calls)))
        for call in calls:
            out.writelines(call.written())
    return path


@pytest.mark.parametrize("machine", MACHINES)
def test_other_kernels_find_the_same(machine, calls, file, tmp_path):
    compiler, flags, runner, packages = MACHINES[machine]
    program, out = tmp_path / "replay", tmp_path / "out"
    nothing = tmp_path / "nothing.c"
    nothing.write_text("int main(void) { return 0; }", encoding="ascii")
    missing = [needed for needed in (compiler, *runner) if shutil.which(needed) is None]
    built = [compiler, *hatch_build.FLAGS, *flags, "-o", str(program)]
    if missing or subprocess.run([*built, str(nothing)], check=False, capture_output=True).returncode:
        pytest.skip(f"{machine}: install {packages}")
    include = ("-I", str(ROOT / hatch_build.KERNELS))
    subprocess.run([*built, *include, str(SOURCE), "-lm"], check=True)
    subprocess.run([*runner, str(program), str(file), str(out)], check=True)
    with out.open("rb") as found:
        for call in calls:
            assert struct.unpack("<q", found.read(8)) == (call.answer,)
            compare(call, [found.read(len(memory)) for memory in call.after])
        assert not found.read(1)


def compare(call, theirs):
    """What a kernel wrote, in doubles to their digits and in pairs to those of a slope, 74 bits of it."""
    pairs = call.given[4:6] if NAMES[call.name] == "add_residual" else []
    for piece, (before, ours, other) in enumerate(zip(call.before, call.after, theirs, strict=True)):
        if ours != before and piece not in pairs:
            one, other = np.frombuffer(ours), np.frombuffer(other)
            assert np.max(np.abs(one - other)) <= 1e-13 * np.max(np.abs(one))
    if pairs:
        steepness = np.frombuffer(call.after[call.given[6]])[0]
        lanes = [
            np.frombuffer(memory[piece]).reshape(-1, kernels.LANES)
            for memory in (call.after, theirs)
            for piece in pairs
        ]
        for high, low, other, other_low in zip(*lanes, strict=True):
            assert abs(math.fsum([*high, *low, *-other, *-other_low])) <= 2.0**-70 * steepness
