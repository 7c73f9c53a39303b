"""Measure passes, fits and exact losses of a table in memory at several numbers of threads.

    python -m bench.cores [--rows 4000000] [--columns 50] [--threads 1,2,4,8,16] [--repeats 3] [--numpy]
                          [--peers lbfgs,newton-cholesky] [--json F]

It needs NumPy, SciPy and a C compiler: the kernels are compiled here, and what the fitting level imports but
does not use is left out where it is not installed. Where scikit-learn is installed, its solvers are timed on
the same table, each at the loosest tolerance that reaches a mean gradient of 1e-7. The noise is seeded:
nothing here is private. Times are the best of some repeats; ``--numpy`` measures the fewest and the most
threads without kernels, too.

Two ceilings come with the times. "Reading" is how fast so many threads read the table when they do nothing
else, and "working" how much more than one thread they do on rows that never leave a core's cache: clocks fall
where many cores are busy, and two threads of one core share it. No pass can gain more than both allow.
Results are written as they come, to ``--json``, to the folder ``$OUT`` or to bench/results.
"""

import argparse
import json
import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial, reduce
from importlib.util import find_spec
from itertools import pairwise
from operator import add
from pathlib import Path
from unittest.mock import patch

LIMITED = find_spec("threadpoolctl") is not None
if not LIMITED:  # nobody could keep the threads of matrix products from those of the passes
    os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402

from hatch_build import compile_kernels  # noqa: E402

ROOT = Path(__file__).parents[1]
PEER = find_spec("sklearn") is not None

import bench.bare  # noqa: E402, F401
from expost._common import kernels, machine  # noqa: E402
from expost.data.blocks import ArrayTable, Block  # noqa: E402
from expost.data.design import Design  # noqa: E402
from expost.data.encoding import Encoded  # noqa: E402
from expost.data.sources import ArraySource  # noqa: E402
from expost.fitting import compiled  # noqa: E402
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
# Rows that stay in the cache of a core while it works on as many as a span has, and how often it does so.
CACHED, SPAN, ROUNDS = 1_024, 65_536, 4


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
    """Seconds of every pass and of a whole fit, its steps, and the released coefficients."""
    release, private, _ = fitted(plan, records)
    objective = Objective(records.checked_for(plan.loss, 1.0), plan.loss, l2=plan.l2)
    theta, known = release.coefficients, proved_loss(plan.loss)
    residual = ResidualPass(known, known.points(Dyadic.of(theta), 2), records.design.radius, hessian=True)
    seconds = {
        "gradient": best(lambda: objective.evaluate(theta), repeats),
        "with Hessian": best(lambda: objective.evaluate(theta, hessian=np.float64), repeats),
        "certificate": best(lambda: reduce(add, records.sweep(residual)), repeats),
        "losses": best(lambda: list(streamed_terms(private, records, plan.loss, member=True)), repeats),
    }
    steps = min((fitted(plan, records)[2] for _ in range(repeats)), key=lambda run: sum(run.values()))
    return seconds | {"fit": sum(steps.values())}, steps, theta


def passes_of_a_fit(plan, records):
    """How often a fit makes each pass over the whole table."""
    made, sweep = Counter(), Encoded.sweep

    def counted(self, work, **options):
        hessian = getattr(work, "precision", None) is not None
        name = "certificate" if isinstance(work, ResidualPass) else "with Hessian" if hessian else "gradient"
        made[name] += self.source.every == 1
        return sweep(self, work, **options)

    with patch.object(Encoded, "sweep", counted):
        fitted(plan, records)
    return {name: count for name, count in made.items() if count}


def at_once(work, threads, repeats):
    """The shortest time in which so many threads each do some work."""
    with ThreadPoolExecutor(threads) as pool:
        return best(lambda: list(pool.map(work, range(threads))), repeats)


def ceilings(plan, records, threads, repeats):
    """Bytes a second that so many threads read, and rows a second that they work on in their caches."""
    X = records.source.table.rows(0, records.n_rows)
    cells = X.reshape(-1)
    edges = np.linspace(0, len(cells), threads + 1).astype(int)

    def read(number):
        for start in range(edges[number], edges[number + 1], 1 << 19):
            part = cells[start : min(start + (1 << 19), edges[number + 1])]
            np.dot(part, part)

    places, point = np.arange(SPAN) % min(CACHED, len(X)), np.zeros((1, records.design.dimension))
    blocks = [Block(X[:CACHED].copy(), np.zeros(SPAN), None) for _ in range(threads)]

    def work(number):
        rows = records.design.as_it_lies(blocks[number], places)
        compiled.add_derivatives(iter([rows] * ROUNDS), plan.loss, point, hessian=True)

    with machine.single_threaded_blas():
        reading, working = at_once(read, threads, repeats), at_once(work, threads, repeats)
    return {"reading": cells.nbytes / reading, "working": threads * ROUNDS * SPAN / working}


def most_gained(first, last, size):
    """By how much the passes and the fit of one line could be faster in another at most, and are."""
    working = last["ceilings"]["working"] / first["ceilings"]["working"]
    reading = size / last["ceilings"]["reading"]
    times, made = first["times"], first["passes"]
    least = {name: max(time / working, reading) for name, time in times.items() if name != "fit"}
    rest = times["fit"] - sum(count * times[name] for name, count in made.items())
    fit = sum(count * least[name] for name, count in made.items()) + max(rest, 0.0) / working
    most = {name: times[name] / value for name, value in least.items()} | {"fit": times["fit"] / fit}
    return {name: (times[name] / last["times"][name], most[name]) for name in times}


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


def arguments_given():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--numpy", action="store_true", help="measure without kernels, too")
    parser.add_argument("--peers", default="lbfgs", help="solvers of scikit-learn, with commas between them")
    parser.add_argument("--json", type=Path, default=ROOT / "bench" / "results" / "cores.json")
    return parser.parse_args()


def compare_threads(plan, records, given, counts, found, write):
    """One line for each number of threads, printed and written."""
    for ways in ("compiled", "numpy") if given.numpy else ("compiled",):
        off = patch.object(kernels, "library", lambda: None) if ways == "numpy" else nullcontext()
        print(f"\n{given.rows:,} rows of {given.columns}, {ways}; seconds, the best of {given.repeats}")
        lines = found[ways] = {}
        for threads in counts if ways == "compiled" else sorted({counts[0], counts[-1]}):
            alone = nullcontext() if LIMITED else patch.object(machine, "single_threaded_blas", nullcontext)
            with off, alone, patch.object(machine, "threads", lambda threads=threads: threads):
                times, steps, theta = measured(plan, records, given.repeats)
                one = {"times": times, "steps": steps, "passes": passes_of_a_fit(plan, records)}
                if ways == "compiled":
                    one["ceilings"] = ceilings(plan, records, threads, given.repeats)
            if not lines:
                line("threads", times)
            lines[str(threads)] = one
            line(threads, [f"{value:.3f}" for value in times.values()])
            first = found.setdefault("coefficients", theta.tolist())
            found["same"] = found.get("same", True) and first == theta.tolist()
            write()
        print("  steps of the last fit: " + ", ".join(f"{name} {value:.3f}" for name, value in steps.items()))
        print("  its passes over the whole table: " + ", ".join(f"{k} {n}" for k, n in one["passes"].items()))
    print("\nthe same coefficients to the last bit:", found["same"])


def tell_gains(found, counts, size):
    """What more threads gained, beside what the machine allows."""
    lines = found["compiled"]
    first, last = (lines[str(count)] for count in (counts[0], counts[-1]))
    for count in counts:
        limits = lines[str(count)]["ceilings"]
        working = limits["working"] / first["ceilings"]["working"]
        print(f"{count} threads read {limits['reading'] / 1e9:.1f} GB/s and work {working:.2f} times as fast")
    print(
        f"from {counts[0]} to {counts[-1]} threads, times as fast, and in brackets the most that is possible:"
    )
    gains = most_gained(first, last, size)
    print("  " + ", ".join(f"{name} {gain:.1f} ({most:.1f})" for name, (gain, most) in gains.items()))
    found["gains"] = gains


def main():
    given = arguments_given()
    compile_kernels(ROOT)
    print(f"kernels: {kernels.described()}; {os.cpu_count()} cores")
    X, y = make_data(given.rows, given.columns)
    plan = calibrate(loss=LogisticLoss(), norm=1.0, sigma=4.0, l2=1.0, fit_intercept=True)
    records = Encoded(ArraySource(ArrayTable(X), y), Design(given.columns, 1.0, True))
    counts = [count for count in map(int, given.threads.split(",")) if count <= 2 * (os.cpu_count() or 1)]
    found = {name: getattr(given, name) for name in ("rows", "columns", "repeats")}
    found |= {"cores": os.cpu_count(), "peers": {}}

    def write():
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")

    compare_threads(plan, records, given, counts, found, write)
    tell_gains(found, counts, X.nbytes)
    del found["coefficients"]
    write()
    ours = min(line["times"]["fit"] for line in found["compiled"].values())
    for solver in given.peers.split(",") if PEER else ():
        found["peers"][solver] = peer(solver, X, y, given.repeats)
        print(f"scikit-learn {solver} to a mean gradient of {NORM:g}: {found['peers'][solver]:.3f} s")
        print(f"our fit, certificate included, takes {ours / found['peers'][solver]:.3f} of that", flush=True)
        write()
    if not PEER:
        print("scikit-learn is not installed: no peer")
    print(f"written to {given.json}")


if __name__ == "__main__":
    main()
