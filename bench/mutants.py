"""Mutation testing of ``privacy`` and ``reports``: small changes of the code that some test must notice.

cosmic-ray makes the changes, in a copy of the repository. A sample is tried unless every change is asked for.
Which changes are in it depends on their own text alone: an edit elsewhere leaves the rest of the sample as it
was, and a larger sample contains the smaller. A change that no test of its room notices is listed: kill it
with a test, or explain it in ``bench/mutants.toml``.

Run it: python -m bench.mutants [--all] [--sample N] [privacy] [reports/total.py] ...
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from coverage import CoverageData

ROOT = Path(__file__).parents[1]
# The tests that a room's mutants must not survive.
TESTS = {
    "privacy": ("tests/privacy", "tests/audit", "src/expost/privacy"),
    "reports": ("tests/reports", "tests/golden", "src/expost/reports"),
}
# In annotations `|` is no arithmetic, and nobody sees a change. Without its decorator a method fails at once,
# and a cached function only takes longer. Operators of bits raise on floats, so that any test that runs the
# line notices; the rest is cruder than the changes of the same operator that stay.
_POINTLESS = re.compile(
    r"core/(RemoveDecorator|ReplaceBinaryOperator_(BitOr_\w+|\w+_(Bit\w+|LShift|RShift|FloorDiv|Mod|Pow))"
    r"|ReplaceComparisonOperator_(Eq|NotEq|Lt|LtE|Gt|GtE)_(Is|IsNot)|ReplaceComparisonOperator_(Is|IsNot)_[^I]\w+"
    r"|ReplaceUnaryOperator_\w+_(Invert|Not)|ReplaceUnaryOperator_USub_UAdd)"
)
# With some changes a search never ends. Without one, neither a test nor reading all of them takes so long.
_SECONDS = 100
_TIMED = f"import faulthandler, pytest; faulthandler.dump_traceback_later({_SECONDS}, exit=True)"
_PYTEST = [
    *(sys.executable, "-c", f"{_TIMED}; raise SystemExit(pytest.main())"),
    *("-q", "-p", "no:cacheprovider", "-m", "not slow"),
    *("-o", f"faulthandler_timeout={_SECONDS}", "-o", "faulthandler_exit_on_timeout=true"),
]
# The star that keeps arguments from being given by place is no product either.
_SIGNATURE = re.compile(r"(^|[(,] ?)\*,")
_DURATION = re.compile(r"^([\d.]+)s (?:setup|call|teardown) +(\S.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    module: str
    operator: str
    occurrence: int
    line: int
    identity: str

    @property
    def rank(self) -> str:
        """Where it comes in the order from which samples are taken."""
        return hashlib.sha256(self.identity.encode()).hexdigest()

    def source(self, before: str) -> str:
        """The module with the change."""
        after: str = mutate_code(before, get_operator(self.operator)(), self.occurrence)
        return after


def mutants(where: str) -> list[Mutant]:
    """The mutants of a room or of one module, in the order from which samples are taken."""
    place = ROOT / "src/expost" / where
    files = sorted(place.glob("*.py")) if place.is_dir() else [place]
    found = [mutant for file in files for mutant in _of_module(file)]
    return sorted(found, key=lambda mutant: mutant.rank)


def _of_module(file: Path) -> Iterator[Mutant]:
    module, source = str(file.relative_to(ROOT / "src/expost")), file.read_text(encoding="utf-8")
    tree, lines = get_ast(source), source.splitlines()
    for operator in operator_names():
        if _POINTLESS.fullmatch(operator) or get_operator(operator).arguments():
            continue
        one, seen = get_operator(operator)(), Counter[str]()
        places = [start for node in ast_nodes(tree) for start, _ in one.mutation_positions(node)]
        for occurrence, (line, _) in enumerate(places):
            text = lines[line - 1].strip()
            if "_Mul_" in operator and _SIGNATURE.search(text):
                continue
            seen[text] += 1
            yield Mutant(module, operator, occurrence, line, f"{module} {operator} {text} {seen[text]}")


class Room:
    """A copy of the repository in which one room is changed, and the tests that may notice."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.copy = name, folder / "copy"
        ignored = shutil.ignore_patterns(".git", ".venv*", "build", "demo", "dist", "__pycache__", ".*_cache")
        shutil.copytree(ROOT, self.copy, ignore=ignored)
        began = time.monotonic()
        counted = (f"--cov=src/expost/{name}", "--cov-context=test", "--cov-report=")
        output = self._pytest(*TESTS[name], "--durations=0", "--durations-min=0", *counted)
        self.limit = 60.0 + 3.0 * (time.monotonic() - began)
        self.seconds: dict[str, float] = defaultdict(float)
        for seconds, test in _DURATION.findall(output.stdout):
            self.seconds[test] += float(seconds)
        if output.returncode or self._pytest(self._ordered(set()), "--collect-only").returncode:
            raise SystemExit(f"The tests of {name} fail without any change:\n{output.stdout}")
        self.runs = CoverageData(str(self.copy / ".coverage"))
        self.runs.read()

    def notices(self, mutant: Mutant, source: str) -> bool:
        """Whether a test fails with the change, or takes for ever."""
        file = self.copy / "src/expost" / mutant.module
        before = file.read_text(encoding="utf-8")
        contexts = self.runs.contexts_by_lineno(str(file)).get(mutant.line, [])
        file.write_text(source, encoding="utf-8")
        try:
            tests = self._ordered({context.rpartition("|")[0] for context in contexts})
            return self._pytest("-x", tests, limit=self.limit).returncode != 0
        except subprocess.TimeoutExpired:
            return True
        finally:
            file.write_text(before, encoding="utf-8")

    def _ordered(self, first: set[str]) -> str:
        """All tests, as an argument of pytest: those that run the changed line first, and the shortest first.

        The others can differ only by what runs at import, or by a value that was left in a cache.
        """
        order = sorted(self.seconds, key=lambda test: (test not in first, self.seconds[test]))
        (self.copy / "order.txt").write_text("\n".join(order), encoding="utf-8")
        return "@order.txt"

    def _pytest(self, *arguments: str, limit: float | None = None) -> subprocess.CompletedProcess[str]:
        environment = {"PYTHONPATH": f"{self.copy / 'src'}:{self.copy}", "OPENBLAS_NUM_THREADS": "1"}
        # Changes may follow each other faster than compiled modules are dated.
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        settings = {"cwd": self.copy, "env": os.environ | environment, "timeout": limit}
        return subprocess.run([*_PYTEST, *arguments], capture_output=True, text=True, check=False, **settings)


def changed_line(before: str, after: str) -> str:
    """The line that a mutant changed, as it is then."""
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    return next((new.strip() for old, new in pairs if old != new), "")


def try_out(where: str, sample: int | None) -> int:
    """Try mutants of a room or of one module, and return how many survive without an explanation."""
    explained = tomllib.loads((ROOT / "bench/mutants.toml").read_text(encoding="utf-8"))["explained"]
    known = {(one["module"], change) for one in explained for change in one["changes"]}
    chosen = mutants(where)[:sample]
    counts = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        room = Room(where.split("/")[0], Path(folder))
        for mutant in chosen:
            before = (ROOT / "src/expost" / mutant.module).read_text(encoding="utf-8")
            after = mutant.source(before)
            change, began = changed_line(before, after), time.monotonic()
            outcome = "explained" if (mutant.module, change) in known else None
            outcome = outcome or ("noticed" if room.notices(mutant, after) else "SURVIVED")
            counts[outcome] += 1
            took = time.monotonic() - began
            print(f"{outcome:9} {took:5.0f} s  {mutant.module}:{mutant.line}: {change}", flush=True)
    noticed, excused = counts["noticed"], counts["explained"]
    print(f"{where}: of {len(chosen)} mutants {noticed} were noticed and {excused} are explained.")
    return counts["SURVIVED"]


def main() -> int:
    """Try the mutants and list those that survive."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every mutant: many hours")
    parser.add_argument("--sample", type=int, default=20, help="how many of each room or module")
    parser.add_argument(
        "where", nargs="*", default=sorted(TESTS), help="rooms, or modules such as privacy/plan.py"
    )
    arguments = parser.parse_args()
    missed = [try_out(where, None if arguments.all else arguments.sample) for where in arguments.where]
    return 1 if any(missed) else 0


if __name__ == "__main__":
    sys.exit(main())
