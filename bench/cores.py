"""Measure passes, fits and exact losses of a table in memory at several numbers of threads.

    python -m bench.cores [--rows 4000000] [--columns 50] [--threads 1,2,4,8,16] [--repeats 3] [--numpy]
                          [--peers lbfgs,newton-cholesky]

It needs NumPy, SciPy and a C compiler: the kernels are compiled here, and what the fitting level imports but
does not use is left out where it is not installed. Where scikit-learn is installed, its solvers are timed on
the same table, each at the loosest tolerance that reaches a mean gradient of 1e-7. The noise is seeded:
nothing here is private. The first reading does hardly more than read: it is how fast memory is with so many
threads, and no pass can be faster. Times are the best of some repeats; ``--numpy`` measures without kernels,
too.
"""

import argparse
import os
import sys
import time
from contextlib import nullcontext
from functools import partial, reduce
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from itertools import pairwise
from operator import add
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

LIMITED = find_spec("threadpoolctl") is not None
if not LIMITED:  # nobody could keep the threads of matrix products from those of the passes
    os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402

from hatch_build import compile_kernels  # noqa: E402

ROOT = Path(__file__).parents[1]
# What tables, files and pages need, and a fit of a matrix does not.
_UNUSED = ("jinja2", "narwhals", "opendp", "pyarrow", "pydantic", "rich", "sklearn", "threadpoolctl", "typer")


class _Metaclass(type):
    def __new__(cls, name, bases, body, **_):
        return super().__new__(cls, name, bases, body)

    def __init__(cls, name, bases, body, **_):
        super().__init__(name, bases, body)


class _Base(metaclass=_Metaclass):
    def __init_subclass__(cls, **_):
        pass

    def __init__(self, **_):
        pass


class _Nothing:
    """Stands for anything that is imported and never used: a decorator, a base class, a type."""

    def __call__(self, *given, **named):
        return given[0] if len(given) == 1 and callable(given[0]) and not named else self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Base if name == "BaseModel" else self

    def __mro_entries__(self, _):
        return (_Base,)

    def __getitem__(self, _):
        return self

    def __or__(self, _):
        return self

    __ror__ = __or__


class _Unused(MetaPathFinder, Loader):
    """Finds the packages above, empty, where nothing else finds them."""

    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in _UNUSED else None

    def create_module(self, spec):
        module = ModuleType(spec.name)
        module.__getattr__ = _Nothing().__getattr__
        return module

    def exec_module(self, module):
        pass


PEER = find_spec("sklearn") is not None
sys.path.insert(0, str(ROOT / "src"))
sys.meta_path.append(_Unused())

from expost._common import kernels, machine  # noqa: E402
from expost.data.blocks import ArrayTable  # noqa: E402
from expost.data.design import ArraySource, Design  # noqa: E402
from expost.data.encoding import Encoded  # noqa: E402
from expost.fitting.certified.pairs import Dyadic  # noqa: E402
from expost.fitting.certified.residual import ResidualPass  # noqa: E402
from expost.fitting.certified.slopes import proved_loss  # noqa: E402
from expost.fitting.ex_post import streamed_terms  # noqa: E402
from expost.fitting.mechanism import perturb  # noqa: E402
from expost.fitting.noise import SeededNoise  # noqa: E402
from expost.fitting.objective import Objective  # noqa: E402
from expost.losses import LogisticLoss  # noqa: E402
from expost.privacy.calibration import calibrate  # noqa: E402

NORM = 1e-7


def make_data(rows, columns):
    """Rows in the unit ball with labels from a logistic model, made without a second copy."""
    random = np.random.default_rng(0)
    X, y = np.empty((rows, columns)), np.empty(rows)
    truth = 3.0 * random.standard_normal(columns)
    for start in range(0, rows, 20_000):
        block = X[start : start + 20_000]
        random.standard_normal(out=block)
        block /= 1.000001 * np.linalg.norm(block, axis=1, keepdims=True)
        y[start : start + 20_000] = random.random(len(block)) < 1.0 / (1.0 + np.exp(-(block @ truth)))
    return X, y


def best(work, repeats):
    """The shortest time of some runs."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def fitted(plan, records):
    """A fit and the seconds of its steps."""
    times = []
    release, private = perturb(
        plan,
        records,
        noise=SeededNoise(np.random.default_rng(0)),
        step=lambda name: times.append((name, time.perf_counter())),
    )
    times.append(("end", time.perf_counter()))
    return release, private, {name: after - before for (name, before), (_, after) in pairwise(times)}


def measured(plan, records, repeats):
    """Seconds of every pass and of a whole fit; the released coefficients."""
    release, private, _ = fitted(plan, records)
    objective = Objective(records.checked_for(plan.loss, 1.0), plan.loss, l2=plan.l2)
    theta, known = release.coefficients, proved_loss(plan.loss)
    residual = ResidualPass(known, known.points(Dyadic.of(theta), 2), records.design.radius, hessian=True)
    seconds = {
        "scan": best(lambda: records.checked_for(plan.loss, 1.0), repeats),
        "gradient": best(lambda: objective.evaluate(theta), repeats),
        "with Hessian": best(lambda: objective.evaluate(theta, hessian=np.float64), repeats),
        "certificate": best(lambda: reduce(add, records.sweep(residual)), repeats),
        "losses": best(lambda: list(streamed_terms(private, records, plan.loss, member=True)), repeats),
    }
    steps = min((fitted(plan, records)[2] for _ in range(repeats)), key=lambda run: sum(run.values()))
    return seconds | {"fit": sum(steps.values())}, steps, theta


def peer(solver, X, y, repeats):
    """Seconds of scikit-learn on all cores, at the loosest tolerance that reaches the norm."""
    from sklearn.linear_model import LogisticRegression

    for tolerance in 10.0 ** -np.arange(2, 12):
        model = LogisticRegression(solver=solver, C=1.0, tol=tolerance, max_iter=500).fit(X, y)
        residual = 1.0 / (1.0 + np.exp(-model.decision_function(X))) - y
        gradient = np.append(X.T @ residual + model.coef_[0], residual.sum())
        if np.linalg.norm(gradient) / len(y) <= NORM:
            return best(partial(model.fit, X, y), repeats)
    return None


def line(first, numbers):
    print(f"{first:>8}" + "".join(f"{number:>14}" for number in numbers), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--numpy", action="store_true", help="measure without kernels, too")
    parser.add_argument("--peers", default="lbfgs", help="solvers of scikit-learn, with commas between them")
    arguments = parser.parse_args()
    compile_kernels(ROOT)
    print(f"kernels: {kernels.described()}; {os.cpu_count()} cores")
    X, y = make_data(arguments.rows, arguments.columns)
    plan = calibrate(loss=LogisticLoss(), norm=1.0, sigma=4.0, l2=1.0, fit_intercept=True)
    records = Encoded(ArraySource(ArrayTable(X), y), Design(arguments.columns, 1.0, True))
    counts = [count for count in map(int, arguments.threads.split(",")) if count <= 2 * (os.cpu_count() or 1)]
    found = {}
    for ways in ("compiled", "numpy") if arguments.numpy else ("compiled",):
        off = patch.object(kernels, "library", lambda: None) if ways == "numpy" else nullcontext()
        shape = f"{arguments.rows:,} rows of {arguments.columns}"
        print(f"\n{shape}, {ways}; seconds, the best of {arguments.repeats}")
        for threads in counts:
            alone = nullcontext() if LIMITED else patch.object(machine, "single_threaded_blas", nullcontext)
            with off, alone, patch.object(machine, "threads", lambda threads=threads: threads):
                seconds, steps, theta = measured(plan, records, arguments.repeats)
            if not found:
                line("threads", seconds)
            found[ways, threads] = seconds, theta
            line(threads, [f"{value:.3f}" for value in seconds.values()])
        print("  steps of the last fit: " + ", ".join(f"{name} {value:.3f}" for name, value in steps.items()))
    first, *others = (theta for _, theta in found.values())
    print("\nthe same coefficients to the last bit:", all(np.array_equal(first, one) for one in others))
    one, most = found["compiled", counts[0]][0], found["compiled", counts[-1]][0]
    ratios = ", ".join(f"{name} {one[name] / most[name]:.1f}" for name in one)
    print(f"speed-up from {counts[0]} to {counts[-1]} threads: {ratios}")
    rates = ", ".join(f"{name} {X.nbytes / most[name] / 1e9:.0f}" for name in most if name != "fit")
    print(f"GB/s of the table at {counts[-1]} threads: {rates}")
    reading = ", ".join(
        f"{name} {one[name] / most['scan']:.1f}" for name in most if name not in ("scan", "fit")
    )
    print(f"the most that memory allows of such a speed-up: {reading}")
    if PEER:
        ours = min(found["compiled", threads][0]["fit"] for threads in counts)
        for solver in arguments.peers.split(","):
            seconds = peer(solver, X, y, arguments.repeats)
            print(f"scikit-learn {solver} to a mean gradient of {NORM:g}: {seconds:.3f} s")
            print(f"our fit, certificate included, takes {ours / seconds:.3f} of that")
    else:
        print("scikit-learn is not installed: no peer")


if __name__ == "__main__":
    main()
