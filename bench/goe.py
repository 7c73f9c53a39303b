"""Time the law of the largest eigenvalue, and draw it beside simulated matrices and the Tracy-Widom law.

Run as ``python -m bench.goe --out goe.png``; the numbers that the documents quote go to ``--json``.
"""

import argparse
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import airy

from bench.saving import RESULTS, save
from expost._common.typing import FloatArray
from expost.goe import LargestEigenvalue

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette: people with any kind of colour vision can tell its colours apart.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#BBBBBB"
# Probabilities above the quantiles that are compared: a common one, and one that privacy needs.
NEAR, FAR = 0.005, 5e-7
DIMENSIONS = {2: "-", 10: "--", 50: "-.", 200: ":"}


def tracy_widom(s: float) -> tuple[float, float]:
    """Return the Tracy-Widom distribution function (β = 1) and its complement.

    ``det(I - B)`` with ``B(x, y) = Ai(x + y + s)`` on the positive half-line: P. L. Ferrari and H. Spohn,
    "A determinantal formula for the GOE Tracy-Widom distribution", Journal of Physics A 38 (2005), L557-L561.
    """
    points, weights = np.polynomial.legendre.leggauss(64)
    reach = 16.0 - min(s, 0.0)
    x, root = 0.5 * reach * (points + 1.0), np.sqrt(0.5 * reach * weights)
    eigenvalues = np.linalg.eigvalsh(root[:, None] * airy(x[:, None] + x + s)[0] * root)
    logarithm = float(np.log1p(-eigenvalues).sum())
    return math.exp(logarithm), -math.expm1(logarithm)


def tracy_widom_quantile(d: int, above: float) -> float:
    """The quantile of the asymptotic law: ``2 sqrt(d) + d^(-1/6) s``."""
    s = brentq(lambda point: math.log(tracy_widom(point)[1] / above), -4.0, 30.0)
    return float(2.0 * math.sqrt(d) + d ** (-1.0 / 6.0) * s)


def milliseconds(action: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of a few timings."""
    durations = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        durations.append(time.perf_counter() - start)
    return 1e3 * min(durations)


def print_timings() -> None:
    """One line for each dimension; the first quantile is timed alone, before anything is cached."""
    start = time.perf_counter()
    LargestEigenvalue(100).isf(5e-7)
    print(f"first call, isf(5e-7) at d = 100: {1e3 * (time.perf_counter() - start):.1f} ms\n")
    print("     d   isf(5e-7)   isf [ms]   sf [ms]   100 × sf [ms]   mean and std [ms]")
    for d in (2, 21, 50, 100, 200, 500, 1000, 2000, 5000):
        law = LargestEigenvalue(d)
        quantile = law.isf(5e-7)
        points = np.linspace(2.0 * math.sqrt(d) - 2.0, quantile, 100)
        isf, one = milliseconds(partial(law.isf, 5e-7)), milliseconds(partial(law.sf, quantile))
        many = milliseconds(partial(law.sf, points))
        # A law stores its moments, so time them once.
        moments = milliseconds(law.mean, repeats=1)
        print(f"{d:6d} {quantile:11.5f} {isf:10.1f} {one:9.2f} {many:15.1f} {moments:19.1f}")


def tracy_widom_errors() -> list[dict[str, float]]:
    """The error of the asymptotic law, in the bulk and in the tail that privacy needs."""
    s = np.linspace(-6.0, 5.0, 221)
    asymptotic = np.array([tracy_widom(point)[0] for point in s])
    rows = []
    for d in (2, 3, 10, 21, 50, 200, 1000):
        law = LargestEigenvalue(d)
        error = np.max(np.abs(law.cdf(2.0 * math.sqrt(d) + d ** (-1.0 / 6.0) * s) - asymptotic))
        far = tracy_widom_quantile(d, FAR)
        rows.append(
            {
                "d": d,
                "error": float(error),
                "near": law.ppf(1.0 - NEAR),
                "tracy_widom_near": tracy_widom_quantile(d, NEAR),
                "far": law.isf(FAR),
                "tracy_widom_far": far,
                "sf_at_tracy_widom_far": law.sf(far),
            }
        )
    return rows


def print_tracy_widom_errors(rows: list[dict[str, float]]) -> None:
    """One line for each dimension."""
    print("\nTracy-Widom      largest error     0.995-quantile      (1 - 5e-7)-quantile     its true sf")
    print("     d              of the cdf     exact     T-W         exact       T-W        (nominal 5e-7)")
    for row in rows:
        print(
            f"{row['d']:6d} {row['error']:23.4f} {row['near']:12.3f} {row['tracy_widom_near']:8.3f}"
            f" {row['far']:12.3f} {row['tracy_widom_far']:10.3f} {row['sf_at_tracy_widom_far']:17.1e}"
        )


def smallest_cdf(d: int) -> float:
    """The value of the distribution function below which it is returned as zero."""
    law = LargestEigenvalue(d)
    zero, positive = 2.0 * math.sqrt(d) - 20.0, 2.0 * math.sqrt(d)
    for _ in range(60):
        middle = 0.5 * (zero + positive)
        zero, positive = (zero, middle) if law.cdf(middle) > 0.0 else (middle, positive)
    return law.cdf(positive)


def simulated(d: int, size: int, seed: int) -> FloatArray:
    """Largest eigenvalues of dense random matrices, drawn by the definition."""
    dense = np.random.default_rng(seed).normal(size=(size, d, d))
    largest: FloatArray = np.linalg.eigvalsh((dense + dense.transpose(0, 2, 1)) / math.sqrt(2.0))[:, -1]
    return largest


def draw(out: Path) -> None:
    """Histogram and exact density; the asymptotic law's error in the bulk; its ratio in the tail."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # Large enough to be read at half size.
    with rc_context({"font.size": 14, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(14.0, 4.6), layout="constrained")
        bulk, error, tail = figure.subplots(1, 3)
        s = np.linspace(-6.0, 6.0, 241)
        asymptotic = np.array([tracy_widom(point)[0] for point in s])
        draw_bulk(bulk, s, asymptotic)
        draw_errors(error, tail, s, asymptotic)
        figure.savefig(out, dpi=150)
    print(f"\nwrote {out}")


def draw_bulk(bulk: "Axes", s: FloatArray, asymptotic: FloatArray) -> None:
    """The histogram of simulated matrices, the exact density and the asymptotic one."""
    d, size = 10, 50_000
    x = 2.0 * math.sqrt(d) + d ** (-1.0 / 6.0) * s
    bulk.hist(simulated(d, size, seed=1), bins=80, density=True, color=GREY)
    bulk.plot(x, np.gradient(LargestEigenvalue(d).cdf(x), x), color=BLUE, lw=2.5)
    bulk.plot(x, np.gradient(asymptotic, x), color=ORANGE, lw=2.5, ls="--")
    bulk.text(4.5, 0.42, "exact", color=BLUE, ha="right")
    bulk.text(6.1, 0.42, "Tracy–Widom", color=ORANGE)
    bulk.text(9.0, 0.3, f"grey: {size:,}\nsimulated", color="#555555", ha="right")
    bulk.set(xlabel="$x$", ylabel="density", xlim=(2.0, 9.0), ylim=(0.0, 0.5))
    bulk.set_title(f"Largest eigenvalue of GOE$_{{{d}}}$", fontsize=14)


def draw_errors(error: "Axes", tail: "Axes", s: FloatArray, asymptotic: FloatArray) -> None:
    """The asymptotic law's error in the bulk, and its ratio to the exact one in the tail."""
    sizes = np.geomspace(0.3, 1e-12, 60)
    for d, dashes in DIMENSIONS.items():
        law, width = LargestEigenvalue(d), d ** (-1.0 / 6.0)
        gap = asymptotic - law.cdf(2.0 * math.sqrt(d) + width * s)
        error.plot(s, gap, color=ORANGE, ls=dashes, lw=2.5, label=f"d = {d}")
        standardised = (law.isf(sizes) - 2.0 * math.sqrt(d)) / width
        ratio = [tracy_widom(point)[1] / size for point, size in zip(standardised, sizes, strict=True)]
        tail.loglog(sizes, ratio, color=ORANGE, ls=dashes, lw=2.5)
        tail.text(4e-13, ratio[-1], f"d = {d}", va="center")
    for axes, level in ((error, 0.0), (tail, 1.0)):
        axes.axhline(level, color="black", lw=0.8)
    error.set(xlabel=r"$(x - 2\sqrt{d})\, d^{1/6}$", ylabel="error of the probability", ylim=(-0.18, 0.01))
    error.legend(frameon=False, loc="lower right", handlelength=2.6)
    error.set_title("Tracy–Widom minus exact", fontsize=14)
    tail.set(xlabel=r"exact $P(\lambda_1 > x)$", ylabel="Tracy–Widom over exact (times)", xlim=(1.0, 3e-15))
    tail.set_xticks([1.0, 1e-3, 1e-6, 1e-9, 1e-12])
    tail.set_title("Tracy–Widom's tail", fontsize=14)


def main() -> None:
    """Print both tables, write the numbers and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("goe.png"), help="where the figure goes (PNG, SVG, PDF)"
    )
    parser.add_argument("--json", type=Path, default=RESULTS / "goe.json", help="where the numbers go")
    arguments = parser.parse_args()
    print_timings()
    rows = tracy_widom_errors()
    print_tracy_widom_errors(rows)
    smallest = {d: smallest_cdf(d) for d in (2, 3, 10)}
    print("\nthe cdf is returned as zero below", smallest)
    save(arguments.json, {"tracy_widom": rows, "smallest_cdf": smallest})
    draw(arguments.out)


if __name__ == "__main__":
    main()
