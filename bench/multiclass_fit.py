"""Measure speed and memory of a fit of several classes and of its exact losses, beside scikit-learn.

    python -m bench.multiclass_fit [--rows 100000] [--features 50] [--classes 10] [--repeats 3] [--json FILE]

As in :mod:`bench.fit`, every solver minimises the same sum, and scikit-learn's are timed at the loosest of
their tolerances with which they reach a given norm of the mean gradient. Ours goes on to its certified
minimiser. Times are the smallest of several interleaved repeats, after a warm-up on a part of the rows;
memory is measured in fresh processes. Only ratios are saved: they are from one run on one machine.
"""

import argparse
import json
import subprocess
import sys
import time
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression as Peer

import expost
from bench.fit import with_extra_memory
from bench.saving import RESULTS, save
from bench.solvers import L2, NORMS, SIGMA, TOLERANCES, quietly

SOLVERS = ("newton-cholesky", "lbfgs")
WARM_ROWS = 5_000


def make_data(rows, features, classes, seed=0):
    """Rows in the unit ball with classes from a softmax model."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features))
    X /= 1.000001 * np.linalg.norm(X, axis=1, keepdims=True)
    scores = X @ (3.0 * rng.standard_normal((features, classes)))
    scores += rng.gumbel(size=scores.shape)
    return X, np.argmax(scores, axis=1)


def ours(X, y, classes):
    """Our fit with noise; an objective with noise takes as long as one without."""
    plan = expost.calibrate(loss=expost.SoftmaxLoss(classes), sigma=SIGMA, l2=L2, fit_intercept=True)
    return expost.LogisticRegression(classes=range(classes), plan=plan).fit(X, y)


def scikit(solver, tolerance, X, y):
    """A fit of scikit-learn's at a tolerance."""
    return quietly(Peer(solver=solver, C=1.0 / L2, tol=tolerance, max_iter=2000).fit, X, y)


def gradient_norm(model, X, y):
    """How close to the minimum scikit-learn stopped: the norm of the gradient, a mean over rows."""
    slopes = softmax(X @ model.coef_.T + model.intercept_, axis=1)
    slopes[np.arange(len(y)), y] -= 1.0
    gradient = np.column_stack([slopes.T @ X + L2 * model.coef_, slopes.sum(axis=0)])
    return float(np.linalg.norm(gradient)) / len(y)


def find_tolerances(X, y):
    """For every solver and norm the loosest tolerance that reaches it, or None, and what was reached."""
    found = {}
    for solver in SOLVERS:
        ladder, tolerance, reached = iter(TOLERANCES), None, np.inf
        for norm in NORMS:
            while reached > norm and (tighter := next(ladder, None)) is not None:
                tolerance = tighter
                reached = gradient_norm(scikit(solver, tolerance, X, y), X, y)
            found[solver, norm] = (tolerance if reached <= norm else None), reached
    return found


def timed(work):
    """What a piece of work returns, and its seconds by the clock and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, np.array([time.perf_counter() - wall, time.process_time() - cpu])


def compare(X, y, classes, repeats):
    """The least seconds of ours, of its exact losses and of each peer, and what all of them reached."""
    for solver in SOLVERS:
        scikit(solver, 1e-2, X[:WARM_ROWS], y[:WARM_ROWS])
    ours(X[:WARM_ROWS], y[:WARM_ROWS], classes).ex_post_losses(X[:WARM_ROWS], y[:WARM_ROWS])
    tolerances = find_tolerances(X, y)
    least = {}

    def keep(name, seconds):
        least[name] = np.minimum(seconds, least.get(name, np.inf))

    for _ in range(repeats):
        model, seconds = timed(partial(ours, X, y, classes))
        keep("fit", seconds)
        keep("losses", timed(partial(model.ex_post_losses, X, y))[1])
        for (solver, norm), (tolerance, _) in tolerances.items():
            if tolerance is not None:
                keep((solver, norm), timed(partial(scikit, solver, tolerance, X, y))[1])
    return tolerances, least, model._private.gradient_norm / len(y)


def extra_memory(kind, shape):
    """Peak memory beyond the table, as shares of it, in a fresh process."""
    command = [sys.executable, "-m", "bench.multiclass_fit", "--memory-of", kind]
    for name, size in zip(("--rows", "--features", "--classes"), shape, strict=True):
        command += [name, str(size)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure_memory(kind, shape):
    """What the fresh process does."""
    X, y = make_data(*shape)
    fit = partial(ours, classes=shape[-1]) if kind == "ours" else partial(scikit, kind, 1e-4)
    fit(X[:WARM_ROWS], y[:WARM_ROWS])
    model, held = with_extra_memory(fit, X, y)
    shares = {"fit": held / X.nbytes}
    if kind == "ours":
        shares["losses"] = with_extra_memory(model.ex_post_losses, X, y)[1] / X.nbytes
    return shares


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", default=RESULTS / "multiclass_fit.json", help="where the ratios go")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    shape = (options.rows, options.features, options.classes)
    if options.memory_of:
        print(json.dumps(measure_memory(options.memory_of, shape)))
        return
    X, y = make_data(*shape)
    tolerances, least, norm = compare(X, y, options.classes, options.repeats)
    memory = {kind: extra_memory(kind, shape) for kind in ("ours", *SOLVERS)}
    title = f"Fit, n = {shape[0]:,}, d = {shape[1]}, K = {shape[2]}; norms of the mean gradient"
    table = Table(title=title, title_justify="left")
    columns = ("norm to reach", "solver", "its tolerance", "norm reached", "seconds", "CPU seconds")
    for column in (*columns, "ours / peer", "CPU", "memory beyond X"):
        table.add_column(column, justify="left" if column == "solver" else "right")

    def add(target, solver, tolerance, reached, seconds, ratios, share):
        figures = [f"{value:.2f}" for value in (*seconds, *ratios)] or ["not reached"]
        figures += [""] * (4 - len(figures))
        table.add_row(target, solver, tolerance, f"{reached:.1e}", *figures, f"{share:.0%}")

    add("", "expost, certified", "", norm, least["fit"], (), memory["ours"]["fit"])
    rows = []
    for (solver, target), (tolerance, reached) in tolerances.items():
        row = {"solver": solver, "norm": target, "reached": reached, "memory": memory[solver]["fit"]}
        seconds, ratios = (), ()
        if tolerance is not None:
            seconds = least[solver, target]
            ratios = least["fit"] / seconds
            row |= {"wall": float(ratios[0]), "cpu": float(ratios[1])}
        told = "none" if tolerance is None else f"{tolerance:.0e}"
        add(f"{target:.0e}", solver, told, reached, seconds, ratios, memory[solver]["fit"])
        rows.append(row)
    console = Console(width=140)
    console.print(table)
    share = float(least["losses"][1] / least["fit"][1])
    console.print(
        f"Exact losses: {least['losses'][1]:.2f} CPU seconds, {share:.2f} of the fit; memory beyond X with "
        f"their output {memory['ours']['losses']:.0%}"
    )
    document = {
        "shape": dict(zip(("rows", "features", "classes"), shape, strict=True)),
        "reached": norm,
        "fits": rows,
        "losses_over_fit": share,
        "memory": memory["ours"],
    }
    save(options.json, document)


if __name__ == "__main__":
    main()
