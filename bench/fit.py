"""Measure speed and memory of a fit and of the exact-loss pass, compared with other libraries.

    python -m bench.fit [--rows 1000000] [--features 50] [--repeats 3] [--json FILE] [--skip-growth]

Every peer solves the same problem; the final gradient norm of each is printed beside its time, because a
solver that stops early is fast. Times are the smallest of several interleaved repeats.
"""

import argparse
import importlib
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.special import expit
from sklearn.linear_model import LogisticRegression as Peer

import expost

L2 = 1.0
SIGMA = 4.0
BLOCK = 2_000


def make_data(rows, features, seed=0):
    """Rows in the unit ball with labels from a logistic model, made without a second copy."""
    rng = np.random.default_rng(seed)
    X = np.empty((rows, features))
    y = np.empty(rows, dtype=np.int64)
    truth = 3.0 * rng.standard_normal(features)
    for start in range(0, rows, BLOCK):
        block = X[start : start + BLOCK]
        rng.standard_normal(out=block)
        block /= 1.000001 * np.linalg.norm(block, axis=1, keepdims=True)
        y[start : start + BLOCK] = rng.random(len(block)) < expit(block @ truth)
    return X, y


def ours(X, y):
    return expost.LogisticRegression(norm=1.0, classes=[0, 1], sigma=SIGMA, l2=L2).fit(X, y)


def scikit(solver, tol):
    def fit(X, y):
        return Peer(solver=solver, C=1 / L2, tol=tol, max_iter=500).fit(X, y)

    return fit


def glum(X, y):
    regressor = importlib.import_module("glum").GeneralizedLinearRegressor
    return regressor(
        family="binomial", alpha=L2 / len(y), l1_ratio=0, solver="irls-ls", gradient_tol=1e-12, max_iter=500
    ).fit(X, y)


def diffprivlib(X, y):
    models = importlib.import_module("diffprivlib.models")
    return models.LogisticRegression(epsilon=1.0, data_norm=1.0, C=1 / L2, max_iter=500).fit(X, y)


PEERS = {
    "expost": (None, ours),
    "scikit-learn newton-cholesky": (None, scikit("newton-cholesky", 1e-10)),
    "scikit-learn newton-cholesky, its default tol": (None, scikit("newton-cholesky", 1e-4)),
    "scikit-learn lbfgs": (None, scikit("lbfgs", 1e-6)),
    "glum irls-ls": ("glum", glum),
    "diffprivlib": ("diffprivlib.models", diffprivlib),
}
GOALS = {"scikit-learn newton-cholesky": (0.35, 0.5), "glum irls-ls": (0.5, 0.9)}


def final_gradient_norm(name, model, X, y):
    """How close to its minimum a solver stopped: the norm of the gradient of its own objective, a sum."""
    if name == "expost":
        return model._private.gradient_norm
    if name == "diffprivlib":
        return None  # the noise in its objective is unknown
    weights, intercept = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    residual = expit(X @ weights + intercept) - y
    return float(np.linalg.norm(np.append(X.T @ residual + L2 * weights, residual.sum())))


def why_absent(package):
    """Why a peer cannot take part, or nothing where it can."""
    try:
        if package is not None:
            importlib.import_module(package)
    except ModuleNotFoundError as error:
        return "not installed" if error.name == package else f"does not import: {error}"
    except ImportError as error:
        return f"does not import: {error}".partition(" (/")[0]
    return None


def compare_fits(X, y, repeats):
    """Best time and final gradient norm of every peer that is installed."""
    times, norms = {}, {}
    for repeat in range(repeats):
        for name, (package, fit) in PEERS.items():
            if why_absent(package) or (repeat and times[name] > 60):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                start = time.perf_counter()
                model = fit(X, y)
                elapsed = time.perf_counter() - start
            times[name] = min(elapsed, times.get(name, np.inf))
            norms[name] = final_gradient_norm(name, model, X, y)
    return times, norms


def compare_losses(X, y, repeats):
    """The exact-loss pass against one product of X with a square matrix."""
    model = ours(X, y)
    square = np.random.default_rng(1).normal(size=(X.shape[1], X.shape[1]))
    passes, products = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        model.ex_post_losses(X, y)
        middle = time.perf_counter()
        X @ square
        passes.append(middle - start)
        products.append(time.perf_counter() - middle)
    return min(passes), min(products)


def extra_memory(rows, features):
    """Peak memory of a fit and a loss pass beyond the table, as shares of it; run in a fresh process."""
    command = [sys.executable, __file__, "--memory-only", "--rows", str(rows), "--features", str(features)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure_memory(rows, features):
    """What the fresh process does."""
    X, y = make_data(rows, features)
    ours(X[:20_000], y[:20_000])  # libraries and thread buffers are there before the count begins
    model, fit = with_extra_memory(ours, X, y)
    _, losses = with_extra_memory(model.ex_post_losses, X, y)
    return {"fit": fit / X.nbytes, "losses": losses / X.nbytes}


def with_extra_memory(work, *arguments):
    """What a piece of work returns, and how many bytes it held at most beyond what was held before it."""
    before = resident()
    forget_peak()
    result = work(*arguments)
    return result, resident(peak=True) - before


def resident(peak=False):
    """Memory of this process now, or its largest since it was last forgotten, in bytes (Linux)."""
    field = "VmHWM:" if peak else "VmRSS:"
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def forget_peak():
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def growth(repeats):
    """Time of a fit as rows and as features grow, with the exponent of each."""
    lines = []
    for what, shapes in (
        ("rows", [(n, 50) for n in (10_000, 30_000, 100_000, 300_000, 1_000_000)]),
        ("features", [(100_000, d) for d in (10, 20, 50, 100, 200, 500)]),
    ):
        sizes, seconds = [], []
        for shape in track(shapes, description=f"growth in {what}", transient=True):
            X, y = make_data(*shape)
            best = min(_timed(ours, X, y) for _ in range(repeats))
            sizes.append(shape[0] if what == "rows" else shape[1])
            seconds.append(best)
        exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        lines.append({"what": what, "sizes": sizes, "seconds": seconds, "exponent": exponent})
    return lines


def _timed(function, *arguments):
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("--skip-growth", action="store_true")
    parser.add_argument("--memory-only", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_only:
        print(json.dumps(measure_memory(options.rows, options.features)))
        return
    console = Console(width=120)
    with console.status("making data"):
        X, y = make_data(options.rows, options.features)
    with console.status("fitting with every peer"):
        times, norms = compare_fits(X, y, options.repeats)
    table = Table(title=f"Fit, n = {options.rows:,}, d = {options.features}, float64", title_justify="left")
    for column in ("peer", "seconds", "final gradient norm", "ours / peer", "goal", "at most"):
        table.add_column(column, justify="left" if column == "peer" else "right")
    for name in PEERS:
        if reason := why_absent(PEERS[name][0]):
            table.add_row(f"{name} ({reason})", "absent", "", "", "", "")
            continue
        norm = "unknowable" if norms[name] is None else f"{norms[name]:.1e}"
        goal = [f"{limit:g}" for limit in GOALS.get(name, ())] or ["", ""]
        table.add_row(name, f"{times[name]:.3f}", norm, f"{times['expost'] / times[name]:.2f}", *goal)
    console.print(table)

    loss_pass, product = compare_losses(X, y, options.repeats)
    console.print(
        f"Exact losses of all rows: {loss_pass:.3f} s, one X @ M: {product:.3f} s, "
        f"ratio {loss_pass / product:.2f} (goal 1.5, at most 2)"
    )
    del X, y
    shares = extra_memory(options.rows, options.features)
    console.print(
        f"Peak memory beyond X: fit {shares['fit']:.1%} (goal 10%), "
        f"exact losses with their output {shares['losses']:.1%}"
    )
    lines = [] if options.skip_growth else growth(options.repeats)
    for line in lines:
        table = Table(
            title=f"Growth in {line['what']}: exponent {line['exponent']:.2f}", title_justify="left"
        )
        table.add_column(line["what"], justify="right")
        table.add_column("seconds", justify="right")
        for size, seconds in zip(line["sizes"], line["seconds"], strict=True):
            table.add_row(f"{size:,}", f"{seconds:.3f}")
        console.print(table)
    if options.json:
        result = {
            "times": times,
            "norms": norms,
            "losses": [loss_pass, product],
            "memory": shares,
            "growth": lines,
        }
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)


if __name__ == "__main__":
    main()
