"""Compiled kernels are used where they are there and right, and nobody misses them where they are not."""

import ctypes
import ctypes.util
import platform
import shutil
from pathlib import Path

import pytest

import hatch_build
from expost._common import kernels

ROOT = Path(__file__).parent.parent.parent
needed = pytest.mark.skipif(kernels.library() is None, reason="no compiled kernels")
compiler = pytest.mark.skipif(shutil.which("cc") is None or not hatch_build.levels(), reason="no C compiler")


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A copy of the sources, without what was compiled from them, for a compiler that is quick."""
    monkeypatch.setattr(hatch_build, "FLAGS", tuple(flag for flag in hatch_build.FLAGS if flag != "-O3"))
    folder = tmp_path / hatch_build.KERNELS
    shutil.copytree(ROOT / hatch_build.KERNELS, folder, ignore=shutil.ignore_patterns("*.so"))
    return tmp_path


def built(root):
    """What the hook tells hatchling."""
    hook = object.__new__(hatch_build.KernelsHook)
    data = {"pure_python": True, "artifacts": []}
    type(hook).root = property(lambda _: str(root))
    try:
        hook.initialize("standard", data)
    finally:
        del type(hook).root
    return data


@pytest.mark.parametrize("broken", ["no such compiler", "false"])
def test_an_installation_without_a_compiler_succeeds(sources, monkeypatch, broken):
    monkeypatch.setenv("CC", broken)
    assert built(sources) == {"pure_python": True, "artifacts": []}
    assert not list(sources.rglob("*.so"))


@pytest.mark.long
@compiler
def test_with_one_there_is_one_wheel_for_all_versions_of_python(sources):
    data = built(sources)
    assert not data["pure_python"]
    assert data["tag"].startswith("py3-none-")
    assert {path.name for path in sources.rglob("*.so")} >= {"kernels-1.so"}


@pytest.mark.long
@compiler
def test_an_instruction_set_that_the_compiler_does_not_know_is_left_out(sources, monkeypatch):
    monkeypatch.setitem(hatch_build.LEVELS, 3, ("-march=no-such-machine",))
    names = {path.name for path in hatch_build.compile_kernels(sources)}
    assert "kernels-1.so" in names
    assert "kernels-3.so" not in names


@needed
def test_kernels_can_be_switched_off_and_chosen(monkeypatch):
    choose = kernels.library.__wrapped__
    monkeypatch.setenv(kernels.SETTING, "off")
    assert choose() is None
    monkeypatch.setenv(kernels.SETTING, "1")
    assert choose().level == 1
    monkeypatch.setenv(kernels.SETTING, "9")
    assert choose() is None  # no machine has it
    monkeypatch.delenv(kernels.SETTING)
    assert choose().level == kernels.library().level


class Failing:
    """A library whose test says no."""

    def __init__(self, path):
        self._path = path

    def __getattr__(self, name):
        def function(*_):
            return 0

        return function


@needed
def test_kernels_that_fail_their_test_are_not_used(monkeypatch):
    monkeypatch.setattr(kernels.ctypes, "CDLL", Failing)
    assert kernels.library.__wrapped__() is None


def test_kernels_that_are_not_there_are_not_used(monkeypatch, tmp_path):
    monkeypatch.setattr(kernels, "FOLDER", tmp_path)
    assert kernels.library.__wrapped__() is None
    (tmp_path / "kernels-1.so").write_bytes(b"no library")
    assert kernels.library.__wrapped__() is None


@needed
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the constants of this machine's rounding")
@pytest.mark.parametrize("mode", [0x400, 0x800, 0xC00], ids=["down", "up", "to zero"])
def test_another_rounding_is_noticed(mode):
    """By the test when kernels are loaded, and by every block of a certificate."""
    mathematics = ctypes.CDLL(ctypes.util.find_library("m"))
    library = kernels.library().kernels
    assert library.self_test() == 1
    assert mathematics.fesetround(mode) == 0
    try:
        answers = library.self_test(), library.add_residual(*[None] * 8, 0.0, 0.0)
    finally:
        mathematics.fesetround(0)
    assert answers == (0, kernels.UNSOUND)
    assert library.self_test() == 1


@needed
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the registers of this machine")
@pytest.mark.parametrize("bits", [0x8000, 0x0040], ids=["results", "arguments"])
def test_tiny_numbers_taken_for_zero_are_noticed(bits):
    """As libraries do that were compiled for speed alone: one of them may be loaded before ours."""
    mathematics = ctypes.CDLL(ctypes.util.find_library("m"))
    environment = (ctypes.c_uint32 * 8)()
    mathematics.fegetenv(environment)
    usual = environment[7]
    library = kernels.library().kernels
    environment[7] = usual | bits
    mathematics.fesetenv(environment)
    try:
        answers = library.self_test(), library.add_residual(*[None] * 8, 0.0, 0.0)
    finally:
        environment[7] = usual
        mathematics.fesetenv(environment)
    assert answers == (0, kernels.UNSOUND)
