"""Measure speed and memory of a fit and of the exact-loss pass, compared with other libraries.

    python -m bench.fit [--rows 1000000] [--features 50] [--repeats 3] [--skip-growth] [--widest] [--json F]
    python -m bench.fit --corners [--repeats 3] [--json bench/results/corners.json]

Every peer solves the same problem. A solver that stops early is fast, so each is timed at the loosest of its
tolerances with which it reaches a given gradient norm, and what it reached is printed beside its time. All
reach the first norm. Only second-order methods reach the second: lbfgs stops where the objective no longer
changes in double precision. Ours always goes on to its certified minimiser; the certificate, which no peer
has, is timed apart, and counted in every ratio. The plan of a fit is made before there is a table, and is not
timed. Times are the smallest of several interleaved repeats. A second table is wide, and ``--widest`` fits a
third one that has 5000 columns. Frames and other layouts are compared with a C matrix. ``--corners`` compares
fits and exact losses with an L1 penalty with those without, in processor time, and does nothing else.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.special import expit

from bench.layouts import compare_layouts, show_layouts
from bench.solvers import CERTIFYING, clocked, compare_fits, ours, plan, show_fits

BLOCK = 2_000
# Tables with and without useless columns, and penalties as multiples of the objective's noise.
CORNERED, PENALTIES = ((1_000_000, 50, 0), (100_000, 205, 200)), (0.0, 0.5, 20.0, 2000.0)
WIDE, WIDEST, WIDE_PEER = (10_000, 500), (10_000, 5_000), "scikit-learn newton-cholesky"


def make_data(rows, features, seed=0, useless=0):
    """Rows in the unit ball with labels from a logistic model, made without a second copy.

    The last ``useless`` columns have no part in the labels.
    """
    rng = np.random.default_rng(seed)
    X = np.empty((rows, features))
    y = np.empty(rows, dtype=np.int64)
    truth = 3.0 * rng.standard_normal(features)
    truth[features - useless :] = 0.0
    for start in range(0, rows, BLOCK):
        block = X[start : start + BLOCK]
        rng.standard_normal(out=block)
        block /= 1.000001 * np.linalg.norm(block, axis=1, keepdims=True)
        y[start : start + BLOCK] = rng.random(len(block)) < expit(block @ truth)
    return X, y


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


def compare_corners(repeats, console):
    """Processor seconds of a fit and of the exact losses, without an L1 penalty and with some."""
    found = []
    for rows, features, useless in CORNERED:
        X, y = make_data(rows, features, useless=useless)
        ours(X[:20_000], y[:20_000])
        sigma, lines = plan().sigma, [{"l1": share, "fit": [], "losses": []} for share in PENALTIES]
        for _ in range(repeats):
            for line in lines:
                start = time.process_time()
                model = ours(X, y, l1=line["l1"] * sigma)
                middle = time.process_time()
                model.ex_post_losses(X, y)
                line["fit"].append(middle - start)
                line["losses"].append(time.process_time() - middle)
                line["used"] = int(np.count_nonzero(model.coef_))
        for line in lines:
            line["fit"], line["losses"] = (float(f"{min(line[what]):.3g}") for what in ("fit", "losses"))
        table = Table(title=f"n = {rows:,}, d = {features}, {useless} useless", title_justify="left")
        for column in ("l1/σ", "columns used", "fit", "ratio (goal 3)", "exact losses"):
            table.add_column(column, justify="right")
        for line in lines:
            ratio = f"{line['fit'] / lines[0]['fit']:.2f}"
            cells = f"{line['used']}", f"{line['fit']:.2f} s", ratio, f"{line['losses']:.2f} s"
            table.add_row(f"{line['l1']:g}", *cells)
        console.print(table)
        found.append({"rows": rows, "features": features, "useless": useless, "fits": lines})
    return {"tables": found}


def compare_wide(repeats, console):
    """A fit of a wide table beside Newton's method with Cholesky factors."""
    X, y = make_data(*WIDE)
    runs, times, norm = compare_fits(X, y, repeats, (WIDE_PEER,))
    title = f"Fit, n = {WIDE[0]:,}, d = {WIDE[1]}, float64; norms of the mean gradient"
    show_fits(runs, times, norm, console, title, {WIDE_PEER: 0.6})
    return {"times": [times.get(run) for run in (None, *runs)], "runs": [asdict(run) for run in runs]}


def widest(console):
    """Seconds of a fit with thousands of columns, and of the certificate in it."""
    _, before, certificate = clocked(*make_data(*WIDEST))
    console.print(
        f"Fit, n = {WIDEST[0]:,}, d = {WIDEST[1]}: {before + certificate:.1f} s (goal 10), "
        f"of these the certificate {certificate:.1f} s"
    )
    return [before, certificate]


def extra_memory(rows, features):
    """Peak memory of a fit and a loss pass beyond the table, as shares of it; run in a fresh process."""
    command = [
        sys.executable,
        "-m",
        "bench.fit",
        "--memory-only",
        "--rows",
        str(rows),
        "--features",
        str(features),
    ]
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
    parser.add_argument("--widest", action="store_true", help="a table of 5000 columns as well")
    parser.add_argument("--corners", action="store_true", help="an L1 penalty, and nothing else")
    parser.add_argument("--memory-only", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_only:
        print(json.dumps(measure_memory(options.rows, options.features)))
        return
    console = Console(width=140)
    if options.corners:
        result = compare_corners(options.repeats, console)
        if options.json:
            Path(options.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        return
    with console.status("making data"):
        X, y = make_data(options.rows, options.features)
    with console.status("fitting with every peer"):
        runs, times, norm = compare_fits(X, y, options.repeats)
    title = f"Fit, n = {options.rows:,}, d = {options.features}, float64; norms of the mean gradient"
    show_fits(runs, times, norm, console, title)

    loss_pass, product = compare_losses(X, y, options.repeats)
    console.print(
        f"Exact losses of all rows: {loss_pass:.3f} s, one X @ M: {product:.3f} s, "
        f"ratio {loss_pass / product:.2f} (goal 1.4)"
    )
    layouts = compare_layouts(X, y, options.repeats)
    show_layouts(layouts, console)
    del X, y
    wide = compare_wide(options.repeats, console)
    seconds = widest(console) if options.widest else None
    shares = extra_memory(options.rows, options.features)
    console.print(
        f"Peak memory beyond X: fit {shares['fit']:.1%} (goal 6%), "
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
            "ours": {"seconds": times[None], "certificate": times[CERTIFYING], "reached": norm},
            "layouts": layouts,
            "wide": wide,
            "widest": seconds,
            "peers": [asdict(run) | {"seconds": times.get(run)} for run in runs],
            "losses": [loss_pass, product],
            "memory": shares,
            "growth": lines,
        }
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)


if __name__ == "__main__":
    main()
