"""The supplement's first experiment: the largest loss and the largest bound for several n and d."""

from matplotlib.figure import Figure

import expost
from expost import Plan
from papers.common import FloatArray
from papers.redberg_wang_2021.experiment import Claim, Effort, Experiment, Numbers, Tick
from papers.redberg_wang_2021.measuring import DELTA, band, fit, paper_plan, read
from papers.redberg_wang_2021.plotting import (
    LOSS,
    OURS,
    PAPER,
    PAPER_DEPENDENT,
    bound_and_truth,
    bound_keys,
    legend_above,
    panels,
    plain_ticks,
)
from papers.redberg_wang_2021.synthetic import directions

N, D = 1000, 50
ROWS = (100, 200, 500, 1000, 2000, 5000, 10_000)
FEATURES = (1, 2, 5, 10, 20, 30, 40, 50, 60)
LINES = {
    "independent": ("the paper's, data-independent", PAPER),
    "dependent": ("the paper's, data-dependent (larger λ)", PAPER_DEPENDENT),
    "ours": ("ours, data-independent (less noise)", OURS),
}


class Sizes(Experiment):
    """Whether the bounds get worse with more people or more features."""

    number = "4"
    name = "04_sizes"
    title = "The worst case while the table grows"
    caption = (
        "The largest published bound (solid) and the largest true loss (dotted) over all people, at ε₁ = 1. "
        "The bounds hardly move with the number of people. With few features the model is nearly always "
        "right and little is lost, which the data-independent bound of the paper, at its small λ, does not "
        "see. Bands: 10% to 90% of the draws."
    )

    def steps(self, effort: Effort) -> int:
        """One per size and draw."""
        return (len(ROWS) + len(FEATURES)) * effort.pick(200, 6)

    def run(self, effort: Effort, tick: Tick) -> Numbers:
        """Largest losses and bounds, a fresh sample and fresh noise in each draw."""
        draws = effort.pick(200, 6)
        by_rows = [self._measured(n, D, draws, tick) for n in ROWS]
        by_features = [self._measured(N, d, draws, tick) for d in FEATURES]
        return {"draws": draws, "by_rows": by_rows, "by_features": by_features}

    def _measured(self, n: int, d: int, draws: int, tick: Tick) -> Numbers:
        plans = {
            "independent": paper_plan((1.0,), d),
            "dependent": paper_plan((1.0, 1.0, 1.0), d),
            "ours": expost.calibrate(epsilon=1.0, delta=DELTA),
        }
        found: dict[str, list[float]] = {key: [] for kind in LINES for key in (kind, f"{kind}_truth")}
        for seed in range(draws):
            sample = directions(n, d, seed)
            for kind, plan in plans.items():
                loss, bound = self._largest(plan, sample.X, sample.y, seed, kind)
                found[kind].append(bound)
                found[f"{kind}_truth"].append(loss)
            tick()
        return {"rows": n, "features": d, "l2": plans["dependent"].l2} | {
            key: band(values) for key, values in found.items()
        }

    @staticmethod
    def _largest(plan: Plan, X: FloatArray, y: FloatArray, seed: int, kind: str) -> tuple[float, float]:
        reading = read(fit(plan, X, y, seed), "tight" if kind == "ours" else "paper")
        return float(reading.truth.max()), float(reading.upper.max())

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Claims that the bounds depend on neither size."""
        by_rows, by_features = numbers["by_rows"], numbers["by_features"]
        # One feature scaled to length one is a sign, which predicts without error: nothing is lost there.
        several = [row for row in by_features if row["features"] > 1]
        over_n = {kind: _spread([row[kind][1] for row in by_rows]) for kind in ("independent", "dependent")}
        over_d = {kind: _spread([row[kind][1] for row in several]) for kind in ("independent", "dependent")}
        both = [*by_rows, *by_features]
        gaps = {kind: [row[kind][1] / row[f"{kind}_truth"][1] for row in both] for kind in LINES}
        return [
            Claim(
                "free-of-n",
                "The largest bound does not depend on the number of people (within 30%).",
                max(over_n.values()) <= 1.3,
                f"largest over smallest, n = {ROWS[0]} to {ROWS[-1]:,}: data-independent "
                f"{over_n['independent']:.2f}, data-dependent {over_n['dependent']:.2f}",
            ),
            Claim(
                "independent-free-of-d",
                "The largest data-independent bound does not depend on the number of features (from two "
                "on, within 30%).",
                over_d["independent"] <= 1.3,
                f"d = 2 to {FEATURES[-1]}: {over_d['independent']:.2f}",
            ),
            Claim(
                "dependent-free-of-d",
                "The largest data-dependent bound does not depend on it either (from two on, within 30%).",
                over_d["dependent"] <= 1.3,
                f"d = 2 to {FEATURES[-1]}: {over_d['dependent']:.2f}; it follows the true losses, which "
                "grow with the error of the model",
            ),
            Claim(
                "ours-closer",
                "Our largest bound is closer to the largest loss of its model than the paper's "
                "data-independent one, at every size.",
                all(ours < theirs for ours, theirs in zip(gaps["ours"], gaps["independent"], strict=True)),
                "; ".join(
                    f"{LINES[kind][0]}: {min(gap):.1f} to {max(gap):.1f} times" for kind, gap in gaps.items()
                )
                + ", the data-dependent one at three times the budget",
                whose="ours",
            ),
        ]

    def draw(self, numbers: Numbers) -> Figure:
        """A row of panels for each size that grows, a column for each release, one scale."""
        figure, axes = panels(2, len(LINES), height=3.6, sharey=True)
        for planes, grown in zip(axes, ("rows", "features"), strict=True):
            rows = numbers[f"by_{grown}"]
            x = [row[grown] for row in rows]
            for plane, (kind, (label, colour)) in zip(planes, LINES.items(), strict=True):
                truth = [row[f"{kind}_truth"] for row in rows]
                bound_and_truth(plane, x, [row[kind] for row in rows], truth, colour)
                plane.set_ylim(0.0, 1.25)
                if grown == "rows":
                    plane.set(title=label.replace(", ", ",\n"), xscale="log", xlabel=f"people (d = {D})")
                    plain_ticks(plane.xaxis, (100, 1000, 10_000), "{:,}")
                else:
                    plane.set_xlabel(f"features (n = {N:,})")
            planes[0].set_ylabel(LOSS)
        keys = bound_keys([colour for _, colour in LINES.values()], "largest bound", "largest true loss")
        legend_above(figure, keys, len(keys))
        return figure

    def text(self, numbers: Numbers) -> str:
        """The ends of both ranges."""
        lines = [
            "The synthetic data of the regularisation experiment. The paper does not state the budgets; "
            "here the model has ε₁ = 1 in both of its releases, gradient and Hessian ε₂ = ε₃ = 1, so that "
            "the models differ in λ only. One feature scaled to length one is a sign, which predicts "
            f"without error, so the claims start at two. Medians over {numbers['draws']} draws of the "
            "largest over all people:",
            "",
            "| n | d | λ demanded | data-independent: loss | bound | data-dependent: loss | bound | ours: "
            "loss | bound |",
            "|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        ]
        for row in [*numbers["by_rows"], *numbers["by_features"]]:
            cells = (row[key][1] for kind in LINES for key in (f"{kind}_truth", kind))
            lines.append(
                f"| {row['rows']:,} | {row['features']} | {row['l2']:.3g} | "
                + " | ".join(f"{cell:.3g}" for cell in cells)
                + " |"
            )
        return "\n".join(lines)


def _spread(values: list[float]) -> float:
    return max(values) / min(values)
