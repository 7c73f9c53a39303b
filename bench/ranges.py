"""How far chosen ends of ranges are from the quantiles: by ranks and by the pinball loss.

``python -m bench.ranges`` writes ``bench/results/ranges.json``: for each table, number of rows and budget of
one choice the mean error in rank, in percent of the rows, less that of the best candidate, and how often the
range is more than twice as wide as needed.
"""

import json
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "ranges.json"
LEVELS = (0.01, 0.99)
TABLES = {
    "incomes": (lambda rng, n: np.exp(rng.normal(10.0, 1.0, n)), np.logspace(0.0, 7.0, 141)),
    "blood pressures": (lambda rng, n: rng.normal(120.0, 15.0, n), np.linspace(0.0, 400.0, 201)),
}
SIZES, EPSILONS = (2_000, 20_000, 200_000), (0.05, 0.1)
TABLES_EACH, DRAWS = 4, 50


def scores(values, grid, level):
    """The scores of candidates by ranks and by the pinball loss of places on the grid, of a range of 1."""
    places = np.interp(values, grid, np.arange(len(grid)))
    below, n = np.searchsorted(np.sort(values), grid, side="right"), len(values)
    most = max(level, 1.0 - level)
    ranks = -np.abs(below - level * n) / (2.0 * most)
    apart = np.array(
        [(np.where(places > j, level, level - 1.0) * (places - j)).sum() for j in range(len(grid))]
    )
    return below, {"rank": ranks, "pinball": -np.array(apart) / ((len(grid) - 1) * most)}


def measured(rng, make, grid, n, epsilon):
    """The mean errors in rank of both scores in percent, and how often the rank's range is too wide."""
    errors, wide = {"rank": [], "pinball": []}, []
    for _ in range(TABLES_EACH):
        values, ends = make(rng, n), []
        for level in LEVELS:
            below, both = scores(values, grid, level)
            error = np.abs(below - level * n)
            for name, score in both.items():
                drawn = np.argmax(epsilon * score + rng.gumbel(size=(DRAWS, len(grid))), axis=1)
                errors[name].extend(100.0 * (error[drawn] - error.min()) / n)
                if name == "rank":
                    ends.append(np.interp(grid[drawn], grid, np.arange(len(grid))))
        needed = np.diff(np.interp(np.quantile(values, LEVELS), grid, np.arange(len(grid))))[0]
        wide.extend(ends[1] - ends[0] > 2.0 * needed)
    return {name: round(float(np.mean(found)), 3) for name, found in errors.items()} | {
        "too_wide": round(float(np.mean(wide)), 3)
    }


def main():
    """Measure, print and write."""
    rng, found = np.random.default_rng(0), []
    for table, (make, grid) in TABLES.items():
        for n in SIZES:
            for epsilon in EPSILONS:
                found_here = measured(rng, make, grid, n, epsilon)
                row = {"table": table, "rows": n, "epsilon": epsilon, **found_here}
                print(row, flush=True)
                found.append(row)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
