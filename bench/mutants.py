"""Mutation testing of ``privacy`` and ``reports``: small changes of the code that some test must notice.

cosmic-ray makes the changes, one of each kind for each place. A sample is tried unless every change is asked
for. Which changes are in it depends on their own text alone: an edit elsewhere leaves the rest of the sample
as it was, and a larger sample contains the smaller. A change that no test of its room notices is listed: kill
it with a test, or explain it in ``bench/mutants.toml``.

The tests are collected once. A change inside functions is tried in a fork of that process, whose functions
get the changed code, by the tests that run the changed lines. A change of what is computed when a module is
imported is tried in a fork that takes over the constants and the defaults of arguments that come out, by the
tests that run the module. If none come out, as from a changed class, it is tried in a copy of the
repository, by a process of its own.

A whole run takes hours. It can be made in parts: ``--after 500 --sample 1000`` tries the second five hundred.
With ``--seconds 20`` a change is tried with tests of twenty seconds, the likeliest first: what is listed then
may yet be noticed by another test.

Run it: python -m bench.mutants [--all] [--after N] [--sample N] [--seconds S] [privacy] [reports/total.py] …
"""

import argparse
import ast
import contextlib
import functools
import gc
import hashlib
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import NoReturn

import numpy as np
import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from coverage import CoverageData

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/expost"
# The tests that a room's mutants must not survive.
_RECORDS = "tests/test_frozen_records.py"
TESTS = {
    "privacy": ("tests/privacy", "tests/audit", _RECORDS, "src/expost/privacy"),
    "reports": ("tests/reports", "tests/golden", _RECORDS, "src/expost/reports"),
}
OPTIONS = ("-q", "-p", "no:cacheprovider", "-m", "not slow")
# One change of each kind for each place: whoever notices that a product became a quotient would notice that
# it became a sum, and a strict bound that became another one is a matter of ties.
_KINDS = re.compile(
    r"core/(NumberReplacer|AddNot|ReplaceUnaryOperator_Delete_\w+|ZeroIterationForLoop"
    r"|ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|Pow_Mul|FloorDiv_Mul|Mod_Mul)"
    r"|ReplaceComparisonOperator_(Lt_Gt|Gt_Lt|LtE_GtE|GtE_LtE|Eq_NotEq|NotEq_Eq|Is_IsNot|IsNot_Is)"
    r"|Replace(TrueWithFalse|FalseWithTrue|AndWithOr|OrWithAnd|BreakWithContinue|ContinueWithBreak))"
)
# The star that keeps arguments from being given by place is no product either.
_SIGNATURE = re.compile(r"(^|[(,] ?)\*,")
_DURATION = re.compile(r"^([\d.]+)s (?:setup|call|teardown) +(\S.*)$", re.MULTILINE)
# In a copy every test has to end.
_IN_A_COPY = ("-o", "faulthandler_timeout=120", "-o", "faulthandler_exit_on_timeout=true")
# With some changes a search never ends. In a fork, a test may take so many seconds of the processor, and so
# many times as long as without a change: what else the machine does is not counted. In all it may take more.
_PATIENCE, _TIMES = 6.0, 4.0
_WAITING = 6.0
# What a module computes as it is imported and others have by its value.
_CONSTANTS = (bool, int, float, str, tuple, list, dict, set, frozenset, np.ndarray)
# So many of the shortest tests are run first, wherever they stand; then those that share a module, together.
_SHORTEST = 30


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

    @cached_property
    def before(self) -> str:
        """The module as it is."""
        return (SOURCE / self.module).read_text(encoding="utf-8")

    @cached_property
    def after(self) -> str:
        """The module with the change."""
        changed: str = mutate_code(self.before, get_operator(self.operator)(), self.occurrence)
        return changed

    @property
    def change(self) -> str:
        """The changed line, as it is then."""
        pairs = zip(self.before.splitlines(), self.after.splitlines(), strict=False)
        return next((new.strip() for old, new in pairs if old != new), "")

    @property
    def codes(self) -> list[tuple[CodeType, CodeType]]:
        """Code objects of the module, each with what it becomes."""
        file = str(SOURCE / self.module)
        old, new = (compile(text, file, "exec") for text in (self.before, self.after))
        return [pair for pair in _pairs(old, new) if pair[0] != pair[1]]


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Each code object with its counterpart; where a function has lost an inner one, the function alone."""
    yield old, new
    inner, others = ([one for one in code.co_consts if isinstance(one, CodeType)] for code in (old, new))
    if len(inner) == len(others):
        for pair in zip(inner, others, strict=True):
            yield from _pairs(*pair)


def _own(code: CodeType) -> tuple[object, ...]:
    """What a code object does itself, without the functions that are defined in it."""
    constants = [repr(one) for one in code.co_consts if not isinstance(one, CodeType)]
    return code.co_code, code.co_names, code.co_varnames, tuple(constants)


def mutants(where: str) -> list[Mutant]:
    """The mutants of a room or of one module, in the order from which samples are taken."""
    place = SOURCE / where
    files = sorted(place.glob("*.py")) if place.is_dir() else [place]
    found = [mutant for file in files for mutant in _of_module(file)]
    return sorted(found, key=lambda mutant: mutant.rank)


def _of_module(file: Path) -> Iterator[Mutant]:
    module, source = str(file.relative_to(SOURCE)), file.read_text(encoding="utf-8")
    tree, lines = get_ast(source), source.splitlines()
    for operator in operator_names():
        if not _KINDS.fullmatch(operator):
            continue
        one, seen = get_operator(operator)(), Counter[str]()
        places = [start for node in ast_nodes(tree) for start, _ in one.mutation_positions(node)]
        for occurrence, (line, _) in enumerate(places):
            # A number is offered twice: one more, and one less.
            if operator == "core/NumberReplacer" and occurrence % 2:
                continue
            text = lines[line - 1].strip()
            if "_Mul_" in operator and _SIGNATURE.search(text):
                continue
            seen[text] += 1
            yield Mutant(module, operator, occurrence, line, f"{module} {operator} {text} {seen[text]}")


def _taken_over(owner: ModuleType | type, new: Mapping[str, object]) -> bool:
    """Give a module or a class the constants and defaults of a change; whether there are any."""
    some = False
    for name, value in list(vars(owner).items()):
        # What makes a named tuple has its defaults, and is a static method.
        value, other = (getattr(one, "__func__", one) for one in (value, new.get(name)))
        if isinstance(value, FunctionType) and isinstance(other, FunctionType):
            for defaults in ("__defaults__", "__kwdefaults__"):
                if repr(getattr(value, defaults)) != repr(getattr(other, defaults)):
                    setattr(value, defaults, getattr(other, defaults))
                    some = True
        elif isinstance(value, type) and isinstance(other, type) and value.__module__ == other.__module__:
            some |= value is not other and _taken_over(value, vars(other))
        elif isinstance(value, _CONSTANTS) and _written(name, value) != _written(name, other):
            # Other modules have imported it by its name.
            holders = [owner] if isinstance(owner, type) else list(sys.modules.values())
            for holder in holders:
                if getattr(holder, "__dict__", {}).get(name) is value:
                    setattr(holder, name, other)
                    some = True
    return some


def _written(name: str, value: object) -> str:
    """A constant in words; none for what Python adds itself, or for objects that have only their place."""
    written = repr(value)
    return "" if name.startswith("__") or " at 0x" in written else written


class Baseline:
    """The tests of a room without any change: which lines each runs, and how long it takes."""

    def __init__(self, name: str, folder: Path, most: float) -> None:
        self.name, self.copy, self.most = name, folder / "copy", most
        ignored = shutil.ignore_patterns(".git", ".venv*", "build", "demo", "dist", "__pycache__", ".*_cache")
        shutil.copytree(ROOT, self.copy, ignore=ignored)
        counted = (f"--cov=src/expost/{name}", "--cov-context=test", "--cov-report=")
        output = self.pytest(*TESTS[name], "--durations=0", "--durations-min=0", *counted, copy=self.copy)
        if output.returncode:
            raise SystemExit(f"The tests of {name} fail without any change:\n{output.stdout}")
        self.seconds: dict[str, float] = defaultdict(float)
        for seconds, test in _DURATION.findall(output.stdout):
            self.seconds[test] += float(seconds)
        self.runs = CoverageData(str(self.copy / ".coverage"))
        self.runs.read()

    def ordered(self, tests: Iterable[str], noticed: Counter[str]) -> list[str]:
        """Tests in the order in which they are tried.

        First those that have noticed most changes for their time, then the shortest, and then module by
        module, so that what a module shares is made once; no more than take the time that each change has.
        """
        shortest = sorted(tests, key=self.seconds.__getitem__)
        proven = sorted(filter(noticed.get, shortest), key=lambda test: self.seconds[test] / noticed[test])
        others = [test for test in shortest if test not in noticed]
        found = proven + others[:_SHORTEST] + sorted(others[_SHORTEST:], key=lambda test: test.split("::")[0])
        taken = accumulate(self.seconds[test] for test in found)
        return [test for test, seconds in zip(found, taken, strict=True) if seconds <= self.most]

    def limit(self, *tests: str) -> float:
        """Seconds after which a change is known to keep them from ending."""
        return _PATIENCE + _TIMES * sum(self.seconds[test] for test in tests)

    @functools.cache  # noqa: B019 (there is one baseline)
    def _lines(self, module: str) -> dict[int, set[str]]:
        found = self.runs.contexts_by_lineno(str(self.copy / "src/expost" / module))
        return {line: {one.rpartition("|")[0] for one in contexts if one} for line, contexts in found.items()}

    @functools.cache  # noqa: B019
    def _statements(self, module: str) -> list[tuple[int, int]]:
        tree = ast.parse((SOURCE / module).read_text(encoding="utf-8"))
        return sorted(
            (
                (node.lineno, node.end_lineno or node.lineno)
                for node in ast.walk(tree)
                if isinstance(node, ast.stmt)
            ),
            key=lambda lines: lines[1] - lines[0],
        )

    def covering(self, mutant: Mutant, *, module: bool) -> set[str]:
        """The tests that run the changed statement, or its module."""
        if module:
            return set().union(*self._lines(mutant.module).values()) & self.seconds.keys()
        first, last = next(s for s in self._statements(mutant.module) if s[0] <= mutant.line <= s[1])
        lines = self._lines(mutant.module)
        # The first line of a long statement, such as a loop, stands for it where its own lines are another's.
        wanted = [mutant.line] if mutant.line in lines else range(first, last + 1)
        return set().union(*(lines.get(line, ()) for line in wanted)) & self.seconds.keys()

    def pytest(
        self, *arguments: str, copy: Path, limit: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run tests of a copy."""
        environment = {"PYTHONPATH": f"{copy / 'src'}:{copy}", "OPENBLAS_NUM_THREADS": "1"}
        # Changes may follow each other faster than compiled modules are dated.
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        command = [sys.executable, "-m", "pytest", *OPTIONS, *arguments]
        return subprocess.run(
            command,
            cwd=copy,
            env=os.environ | environment,
            timeout=limit,
            capture_output=True,
            text=True,
            check=False,
        )

    def notices(self, mutant: Mutant) -> bool:
        """Whether a test fails with the change, or takes for ever, in a copy with the changed module."""
        everything = self.ordered(self.seconds, Counter())
        with tempfile.TemporaryDirectory(dir=self.copy.parent) as folder:
            copy = shutil.copytree(self.copy, Path(folder) / "copy")
            (copy / "order.txt").write_text("\n".join(everything), encoding="utf-8")
            (copy / "src/expost" / mutant.module).write_text(mutant.after, encoding="utf-8")
            with contextlib.suppress(subprocess.TimeoutExpired):
                limit = _WAITING * self.limit(*everything)
                tests = "-x", *_IN_A_COPY, _RECORDS, "@order.txt"
                return self.pytest(*tests, copy=copy, limit=limit).returncode != 0
        return True


class Trials:
    """A plugin of pytest that tries mutants in the place of running the collected tests."""

    def __init__(self, baseline: Baseline, chosen: list[Mutant], jobs: int) -> None:
        self.baseline, self.chosen, self.jobs = baseline, chosen, jobs
        self.counts = Counter[str]()
        # For each module the tests that noticed changes of it.
        self.noticed: dict[str, Counter[str]] = defaultdict(Counter)
        self.failed = False
        explained = tomllib.loads((ROOT / "bench/mutants.toml").read_text(encoding="utf-8"))["explained"]
        # Without a module it is about every one.
        self.known = {(one.get("module"), change) for one in explained for change in one["changes"]}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test has failed."""
        self.failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try every mutant, as many at once as there are jobs."""
        self.items = {item.nodeid: item for item in session.items}
        self.functions: dict[CodeType, list[FunctionType]] = defaultdict(list)
        for one in gc.get_objects():
            if type(one) is FunctionType and one.__code__.co_filename.startswith(str(SOURCE)):
                self.functions[one.__code__].append(one)
            elif type(one) is functools._lru_cache_wrapper:
                one.cache_clear()
        running: dict[int, tuple[Mutant, float, float]] = {}
        for mutant in self.chosen:
            while len(running) >= self.jobs:
                self._wait(running)
            self._begin(mutant, running)
        while running:
            self._wait(running)
        return True

    def _begin(self, mutant: Mutant, running: dict[int, tuple[Mutant, float, float]]) -> None:
        began = time.monotonic()
        try:
            codes = mutant.codes
        except SyntaxError:  # no module at all
            self._say(mutant, "noticed", began)
            return
        if {(mutant.module, mutant.change), (None, mutant.change)} & self.known:
            self._say(mutant, "explained", began)
        elif not codes:
            self._say(mutant, "no change", began)
        else:
            within = self._in_functions(codes)
            tests = self.baseline.covering(mutant, module=not within)
            tests = self.baseline.ordered(tests, self.noticed[mutant.module])
            child = os.fork()
            if not child and within:
                self._child(lambda: self._fails(codes, tests))
            if not child:
                self._child(lambda: self._fails_at_import(mutant, tests))
            everything = tests if within else [*tests, *self.baseline.seconds]
            running[child] = mutant, began, began + _WAITING * self.baseline.limit(*everything)

    def _in_functions(self, codes: list[tuple[CodeType, CodeType]]) -> bool:
        """Whether the code of functions is all that changes, and can take the place of theirs."""
        functions = [(old, new) for old, new in codes if self.functions.get(old)]
        within = {inner for old, _ in functions for inner in _nested(old)}
        return all(old.co_freevars == new.co_freevars for old, new in functions) and all(
            old in within or _own(old) == _own(new) for old, new in codes
        )

    def _child(self, noticed: Callable[[], bool]) -> NoReturn:
        """Leave this process with 1 when a test notices the change."""
        status = 1
        try:
            os.setsid()
            with open(os.devnull, "w") as nowhere:
                for stream in (1, 2):
                    os.dup2(nowhere.fileno(), stream)
            status = int(noticed())
        finally:
            os._exit(status)

    def _fails(self, codes: list[tuple[CodeType, CodeType]], tests: list[str]) -> bool:
        """Change the functions of this process, and run the tests until one fails."""
        for old, new in codes:
            for function in self.functions.get(old, ()):
                function.__code__ = new
        return self._fail(tests)

    def _fails_at_import(self, mutant: Mutant, tests: list[str]) -> bool:
        """Take over what the changed module computes when it is imported, or try it in a copy."""
        name = "expost." + mutant.module.removesuffix(".py").replace("/", ".")
        changed = {"__name__": name, "__file__": str(SOURCE / mutant.module)}
        try:
            exec(compile(mutant.after, changed["__file__"], "exec"), changed)
        except Exception:  # no module at all
            return True
        if _taken_over(sys.modules[name], changed):
            return self._fail(tests)
        return self.baseline.notices(mutant)

    def _fail(self, tests: list[str]) -> bool:
        """Run tests in this process until one fails."""
        items = [self.items[test] for test in tests]
        for item, following in zip(items, [*items[1:], None], strict=True):
            self._running(os.getpid()).write_text(item.nodeid, encoding="utf-8")
            # Whoever takes longer is ended by the signal.
            signal.setitimer(signal.ITIMER_PROF, self.baseline.limit(item.nodeid))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                break
        return self.failed

    def _running(self, child: int) -> Path:
        """Where a process says which test it runs."""
        return self.baseline.copy.parent / str(child)

    def _wait(self, running: dict[int, tuple[Mutant, float, float]]) -> None:
        """Until one has ended, or has taken too long."""
        while True:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child in running:
                mutant, began, _ = running.pop(child)
                if status and (test := self._running(child)).exists():
                    self.noticed[mutant.module][test.read_text(encoding="utf-8")] += 1
                self._say(mutant, "noticed" if status else "SURVIVED", began)
                return
            for late in [one for one, (_, _, limit) in running.items() if time.monotonic() > limit]:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(late, signal.SIGKILL)
            time.sleep(0.005)

    def _say(self, mutant: Mutant, outcome: str, began: float) -> None:
        self.counts[outcome] += 1
        took = time.monotonic() - began
        print(f"{outcome:9} {took:5.1f} s  {mutant.module}:{mutant.line}: {mutant.change}", flush=True)


def try_out(where: str, some: slice, jobs: int, seconds: float) -> int:
    """Try mutants of a room or of one module, and return how many survive without an explanation."""
    name = where.split("/")[0]
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(Baseline(name, Path(folder), seconds), mutants(where)[some], jobs)
        pytest.main([*OPTIONS, "-s", *TESTS[name]], plugins=[trials])
    tried = sum(trials.counts.values())
    if tried < len(trials.chosen):
        raise SystemExit(f"{where}: {len(trials.chosen) - tried} mutants were not tried.")
    counts = ", ".join(f"{number} {outcome.lower()}" for outcome, number in sorted(trials.counts.items()))
    print(f"{where}: of {tried} mutants {counts}.")
    return trials.counts["SURVIVED"]


def main() -> int:
    """Try the mutants and list those that survive."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every mutant: hours")
    parser.add_argument("--sample", type=int, default=20, help="how many of each room or module")
    parser.add_argument("--after", type=int, default=0, help="how many of each were tried before")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many are tried at once")
    parser.add_argument("--seconds", type=float, default=math.inf, help="of tests for each")
    parser.add_argument(
        "where", nargs="*", default=sorted(TESTS), help="rooms, or modules such as privacy/plan.py"
    )
    arguments = parser.parse_args()
    some = slice(arguments.after, None if arguments.all else arguments.sample)
    missed = [try_out(where, some, arguments.jobs, arguments.seconds) for where in arguments.where]
    return 1 if any(missed) else 0


if __name__ == "__main__":
    sys.exit(main())
