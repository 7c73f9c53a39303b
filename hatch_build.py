"""Compile the kernels of ``src/expost/_kernels`` while the package is built or installed.

    python hatch_build.py

compiles them where they lie, as an editable installation does. It needs Python and a C compiler, ``$CC`` or
``cc``. Without one, or where it fails, the package has no kernels: passes are then run with NumPy.
"""

import os
import platform
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # a benchmark compiles the kernels on a machine that builds nothing
    BuildHookInterface = object

KERNELS = Path("src") / "expost" / "_kernels"
LANGUAGES = Path("src") / "expost" / "page" / "languages"
# Nothing but the operations that are written: the proofs count on each of them being rounded once. Two more
# let the compiler work on several numbers at a time, and a function that is nowhere ends the build.
FLAGS = (
    "-std=c11",
    "-O3",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Werror=implicit-function-declaration",
)
SHARED = ("-shared", "-fPIC", "-fvisibility=hidden")
# Instruction sets by the level that `machine_level` in kernels.c gives them; the first runs everywhere.
LEVELS = {1: (), 3: ("-march=x86-64-v3",), 4: ("-march=x86-64-v4", "-mprefer-vector-width=512")}


def levels() -> tuple[int, ...]:
    """The levels of this kind of machine; none where no certificate was ever tested."""
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64"):
        return tuple(LEVELS)
    return (1,) if machine in ("arm64", "aarch64") else ()


def compile_kernels(root: Path) -> list[Path]:
    """Compile the kernels of every level that the compiler knows; the files, or none."""
    folder, made = root / KERNELS, []
    for old in folder.glob("*.so"):
        old.unlink()
    compiler = shlex.split(os.environ.get("CC", "cc"))
    with tempfile.TemporaryDirectory() as aside:
        for level in levels():
            path = folder / f"kernels-{level}.so"
            draft = Path(aside) / path.name
            source = str(folder / "kernels.c")
            command = [*compiler, *FLAGS, *SHARED, *LEVELS[level], source, "-lm", "-o", str(draft)]
            try:
                subprocess.run(command, check=True, capture_output=True, timeout=300)
            except (OSError, subprocess.SubprocessError):
                if level == 1:  # which tells what the machine can run
                    return []
                continue
            path.write_bytes(draft.read_bytes())
            made.append(path)
    return made


def check_languages(root: Path) -> None:
    """Refuse to build a package in which a language of the page lacks a sentence, or has one too many."""
    found = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in (root / LANGUAGES).glob("*.toml")}
    for code, sentences in found.items():
        ours, theirs = (
            {(part, key) for part in one for key in one[part]} for one in (found["en"], sentences)
        )
        if ours != theirs:
            raise ValueError(
                f"the language {code!r} must have the sentences of 'en'; see {sorted(ours ^ theirs)}"
            )


class KernelsHook(BuildHookInterface):
    """What hatchling calls before it builds a wheel, for an editable installation too."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and name the platform: one wheel for all versions of Python, or for all platforms too."""
        check_languages(Path(self.root))
        if compile_kernels(Path(self.root)):
            where = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{where}"
            build_data["artifacts"].append(f"{KERNELS.as_posix()}/*.so")


if __name__ == "__main__":
    found = compile_kernels(Path(__file__).parent)
    sys.stdout.write("".join(f"{path}\n" for path in found) or "no kernels were compiled\n")
