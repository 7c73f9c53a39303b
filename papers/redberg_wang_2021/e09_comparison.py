"""Ours against the paper's at the same total budget, and at the same quality of the model."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from papers.redberg_wang_2021.experiment import Claim, Effort, Experiment, Numbers, Tick
from papers.redberg_wang_2021.measuring import (
    DELTA,
    auc,
    bands,
    fit,
    ratios,
    read,
    rounded,
    summary,
)
from papers.redberg_wang_2021.plotting import (
    OURS,
    OURS_LEVERAGE,
    PAPER,
    PAPER_ADAPTIVE,
    PAPER_DEPENDENT,
    panels,
    plain_ticks,
)
from papers.redberg_wang_2021.publications import (
    EPSILON,
    SHARES,
    WHOM,
    least_saving,
    overview_table,
    plan_of,
    savings,
    savings_table,
    splits,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TABLE = (
    *(("ours", kind) for kind in ("independent", "leverage", "dependent", "adaptive")),
    *(("paper", kind) for kind in SHARES),
)
CURVES = {
    ("paper", "independent"): ("the paper's, data-independent", PAPER, "s"),
    ("paper", "dependent"): ("the paper's, dependent", PAPER_DEPENDENT, "^"),
    ("paper", "adaptive"): ("the paper's, adaptive", PAPER_ADAPTIVE, "v"),
    ("ours", "leverage"): ("ours, leverage", OURS_LEVERAGE, "D"),
    ("ours", "independent"): ("ours, independent (default)", OURS, "o"),
}


class Comparison(Experiment):
    """Model and report, ours and the paper's, on three real tables."""

    name = "09_comparison"
    title = "Ours against the paper's"
    caption = (
        "Each curve is one way to publish, from a small ε at its left to a large one; the big marks are ε = "
        "1. Across, how good the model is on people it has not seen; up, the loss that a person is told the "
        "whole publication cost her at most (sure but for one in a million): the median person above, the "
        "most exposed one below. Down and to the right is better."
    )
    needs = ("credit", "adult", "kidney")

    def epsilons(self, effort: Effort, side: str, kind: str) -> tuple[float, ...]:
        """The totals along a curve; ours start lower, so that they reach models as bad as the paper's."""
        if (side, kind) not in CURVES:
            return (EPSILON,)
        lowest = effort.pick((0.005, 0.01, 0.02, 0.05), (0.01, 0.05)) if side == "ours" else ()
        return lowest + effort.pick((0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.5, 2.0, 4.0, 8.0), (0.2, 0.5, 1.0, 4.0))

    def draws(self, effort: Effort, table: str) -> int:
        """More draws for the small table, which needs them."""
        return effort.pick(200, 12) if table == "kidney" else effort.pick(20, 2)

    def steps(self, effort: Effort) -> int:
        """One per release."""
        releases = sum(len(self.epsilons(effort, side, kind)) for side, kind in TABLE)
        return releases * sum(self.draws(effort, table) for table in ("credit", "adult", "kidney"))

    def run(self, effort: Effort, tick: Tick) -> Numbers:
        """Every way of publishing at ε = 1, and the chosen ones at other totals."""
        numbers: Numbers = {"epsilon": EPSILON, "delta": DELTA, "tables": {}}
        for train, test in splits():
            X, y = train.rows(intercept=True), train.labels()
            X_test, y_test = test.rows(intercept=True), test.labels()
            draws = self.draws(effort, train.name)
            found: Numbers = {"rows": len(y), "tests": len(y_test), "columns": X.shape[1], "draws": draws}
            for side, kind in TABLE:
                curve = {}
                for epsilon in self.epsilons(effort, side, kind):
                    plan = plan_of(side, kind, epsilon, X.shape[1])
                    rows = []
                    for seed in range(draws):
                        fitted = fit(plan, X, y, seed)
                        reading = read(fitted, "tight" if side == "ours" else "paper")
                        theirs = read(fitted, "paper")
                        rows.append(
                            summary(reading)
                            | {
                                "auc": auc(fitted, X_test, y_test),
                                "paper_ratio": float(np.median(ratios(theirs))),
                                "above_paper": float(np.mean(reading.upper > (1.0 + 1e-12) * theirs.upper)),
                            }
                        )
                        tick()
                    curve[f"{epsilon:g}"] = bands(rows) | {
                        "sigma": rounded(plan.sigma),
                        "l2": rounded(plan.l2),
                        "certified_epsilon": rounded(plan.epsilon_at(DELTA)) if epsilon == EPSILON else None,
                    }
                found[f"{side} {kind}"] = curve
            numbers["tables"][train.name] = found
        return numbers | {"savings": savings(numbers["tables"])}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Better at the same budget, cheaper at the same quality."""
        tables = numbers["tables"]
        at = {
            name: {key: row["1"] for key, row in table.items() if isinstance(row, dict)}
            for name, table in tables.items()
        }
        gains = {
            name: min(rows[f"ours {kind}"]["auc"][1] - rows[f"paper {kind}"]["auc"][1] for kind in SHARES)
            for name, rows in at.items()
        }
        sharper = {
            name: (rows["ours independent"]["ratio"][1], rows["paper independent"]["ratio"][1])
            for name, rows in at.items()
        }
        dependent = {
            name: (rows["ours dependent"]["ratio"][1], rows["paper dependent"]["ratio"][1])
            for name, rows in at.items()
        }
        median = {name: numbers["savings"]["median"][name] for name in ("credit", "adult")}
        exposed = numbers["savings"]["most exposed"]
        everywhere = {
            f"{whose} on {name}": least_saving(table, whom)
            for name, table in tables.items()
            for whose, whom in WHOM.items()
        }
        unused = {kind: at["credit"][f"paper {kind}"]["certified_epsilon"] for kind in SHARES}
        same_file = {
            name: [
                (rows[f"ours {kind}"]["ratio"][1], rows[f"ours {kind}"]["paper_ratio"][1])
                for kind in ("independent", "leverage", "dependent", "adaptive")
            ]
            for name, rows in at.items()
        }
        above = max(
            row["above_paper"][2]
            for rows in at.values()
            for key, row in rows.items()
            if key.startswith("ours")
        )
        return [
            Claim(
                "better-model",
                "At the same total (ε, δ) our model is better than the paper's, for every kind of report "
                "and table.",
                min(gains.values()) > 0.0,
                "least gain in AUC " + ", ".join(f"{gain:.3f} ({name})" for name, gain in gains.items()),
                whose="ours",
            ),
            Claim(
                "same-file-sharper",
                "Reading the same file, our bound is never above the paper's.",
                above == 0.0,
                "median bound over truth, independent / leverage / dependent / adaptive: "
                + "; ".join(
                    f"{name} " + ", ".join(f"{ours:.1f} against {theirs:.1f}" for ours, theirs in pairs)
                    for name, pairs in same_file.items()
                ),
                whose="ours",
            ),
            Claim(
                "independent-sharper",
                "At the same total the free, data-independent report is closer to the truth of its own "
                "model than the paper's is to the truth of its own.",
                all(ours < theirs for ours, theirs in sharper.values()),
                "median bound over truth "
                + ", ".join(
                    f"{ours:.1f} against {theirs:.1f} ({name})" for name, (ours, theirs) in sharper.items()
                ),
                whose="ours",
            ),
            Claim(
                "dependent-sharper",
                "The dependent report at its default split is closer to the truth than the paper's.",
                all(ours < theirs for ours, theirs in dependent.values()),
                "median bound over truth "
                + ", ".join(
                    f"{ours:.1f} against {theirs:.1f} ({name})" for name, (ours, theirs) in dependent.items()
                )
                + ": the paper's allocation spends four fifths of the budget on the statistics",
                whose="ours",
            ),
            Claim(
                "same-model-median",
                "On credit and Adult, for a model as good as the paper's at ε = 1, the median person is "
                "told a smaller loss.",
                _least(median) > 1.0,
                _factors(median),
                whose="ours",
            ),
            Claim(
                "same-model-most-exposed",
                "On all three tables, for a model as good as the paper's at ε = 1, the most exposed person "
                "is told a smaller loss.",
                _least(exposed) > 1.0,
                _factors(exposed),
                whose="ours",
            ),
            Claim(
                "at-every-quality",
                "For a model as good, both are told less at every budget of the paper's publications, on "
                "every table.",
                min(factor for factor, _, _ in everywhere.values()) > 1.0,
                "least factor "
                + ", ".join(
                    f"{factor:.2g} ({place}, {kind} at ε = {epsilon})"
                    for place, (factor, kind, epsilon) in everywhere.items()
                ),
                whose="ours",
            ),
            Claim(
                "budget-unused",
                "The paper's recipe leaves part of its budget unused (a quarter or more).",
                max(unused.values()) <= 0.75,
                "its publications at ε = 1 are certified for "
                + ", ".join(f"{value:.2f} ({kind})" for kind, value in unused.items()),
                whose="ours",
            ),
        ]

    def draw(self, numbers: Numbers) -> Figure:
        """One column per table, the median person above the most exposed one."""
        figure, axes = panels(2, 3, width=5.0, height=4.4)
        for row, whom, title in zip(axes, WHOM.values(), WHOM, strict=True):
            for plane, (name, table) in zip(row, numbers["tables"].items(), strict=True):
                for (side, kind), (label, colour, marker) in CURVES.items():
                    curve = table[f"{side} {kind}"]
                    _draw_curve(plane, curve, whom, colour, marker, label, dashed=side == "paper")
                plane.set(yscale="log", title=f"{name} (n = {table['rows']:,}), {title} person")
                plane.set_xlim(left=max(plane.get_xlim()[0], 0.48))
                plane.set_ylim(0.004, 12.0)
                plain_ticks(plane.yaxis, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10))
            row[0].set_ylabel("loss told, in all (log-odds)")
        for plane in axes[1]:
            plane.set_xlabel("AUC on people not in the data")
        axes[0, 0].legend(loc="upper left", fontsize=10)
        return figure

    def text(self, numbers: Numbers) -> str:
        """The one table."""
        lines = [
            f"A total of ε = {numbers['epsilon']:g} and δ = {numbers['delta']:g} for everything that is "
            "published, ρ = 1e-6 for every bound, people in the data, an intercept, default settings of "
            "ours, the paper's budgets in the proportions (0.2, 0.7, 0.1) and, for its adaptive report, "
            "(0.2, 0.6, 0.1, 0.1), with the λ that Algorithm 2 demands. AUC on people not in the data. "
            "Medians over draws of the noise:",
            "",
            *overview_table(numbers["tables"], TABLE),
            "",
            "At the same promise the paper's people lose less, because its accounting adds far more noise "
            "than the promise needs, and its models are worse for it. What matters is what a person is "
            "told for a model of a given quality, and that is the figure. How many times less ours "
            "(independent) tells her, at the AUC that each of the paper's publications has at ε = 1:",
            "",
            *savings_table(numbers["savings"]),
        ]
        infinite = [
            epsilon
            for epsilon, row in numbers["tables"]["kidney"]["paper independent"].items()
            if row["upper_max"][1] is None
        ]
        lines += [
            "",
            "A factor below one is an exception: the median patient of kidney, at the right end. With few "
            "patients and the small λ of Theorem 1 at a large ε the paper's model predicts nearly everyone "
            "with certainty, where slope and curvature vanish, so the *median* patient is told little. "
            f"Others pay for it: from ε = {infinite[0]} on its largest bound is infinite.",
        ]
        return "\n".join(lines)


def _draw_curve(
    plane: "Axes", curve: Numbers, whom: str, colour: str, marker: str, label: str, *, dashed: bool
) -> None:
    x = [row["auc"][1] for row in curve.values()]
    y = [math.nan if row[whom][1] is None else row[whom][1] for row in curve.values()]
    plane.plot(x, y, "--" if dashed else "-", color=colour, marker=marker, markersize=4, label=label)
    plane.plot(curve["1"]["auc"][1], curve["1"][whom][1], marker, color=colour, markersize=13, mec="white")


def _least(factors: Mapping[str, Mapping[str, float]]) -> float:
    return min(factor for row in factors.values() for factor in row.values())


def _factors(factors: Mapping[str, Mapping[str, float]]) -> str:
    return "times smaller: " + "; ".join(
        f"{name} " + ", ".join(f"{factor:.2g} ({kind})" for kind, factor in row.items())
        for name, row in factors.items()
    )
