"""The supplement's second experiment: four ways to share ε = 1 between model, gradient and Hessian."""

from matplotlib.figure import Figure

import expost
from expost import Plan
from papers.datasets import credit
from papers.redberg_wang_2021.distributions import (
    COLOURS,
    draw_losses,
    draw_ratios,
    losses_legend,
    measure,
    points,
)
from papers.redberg_wang_2021.experiment import Claim, Effort, Experiment, Numbers, Tick, agreed
from papers.redberg_wang_2021.measuring import DELTA, own_auc, paper_plan
from papers.redberg_wang_2021.plotting import panels

ALLOCATIONS = ((0.2, 0.7, 0.1), (0.4, 0.5, 0.1), (0.5, 0.25, 0.25), (0.8, 0.1, 0.1))


class Allocations(Experiment):
    """How the split of the budget changes bound, ratio and model."""

    number = "5"
    name = "05_allocations"
    title = "Four ways to share the budget"
    caption = (
        "The share of clients whose true loss (dotted) and published bound (solid) is at most so much: "
        "without statistics, and for four allocations (model, gradient, Hessian) in which the model's share "
        "of ε = 1 grows. Bands: 10% to 90% of the draws. Last, bound over truth: the median client (mark "
        "and number) with 10% to 90% of the draws (thick) and of the clients (thin). As the statistics get "
        "less, the data-dependent bounds move towards the data-independent ones."
    )
    needs = ("credit",)

    def steps(self, effort: Effort) -> int:
        """One per release."""
        return (3 + len(ALLOCATIONS)) * effort.pick(200, 4)

    def run(self, effort: Effort, tick: Tick) -> Numbers:
        """The paper's recipe and reading for each allocation, and its data-independent release."""
        table = credit()
        X, y = table.rows(), table.labels()
        draws = effort.pick(200, 4)

        def measured(plan: Plan) -> Numbers:
            return measure(plan, X, y, draws, tick, method="paper", scores={"auc": own_auc})

        plans = [paper_plan(budgets, X.shape[1]) for budgets in ALLOCATIONS]
        same = expost.calibrate(epsilon=1.0, delta=DELTA, l2=plans[-1].l2, calibration="kifer2012")
        small = expost.calibrate(
            epsilon=1.0, delta=3 * DELTA, report="dependent", split=ALLOCATIONS[-1], calibration="kifer2012"
        )
        return {
            "rows": len(y),
            "draws": draws,
            **points(),
            "independent": measured(paper_plan((1.0,), X.shape[1])),
            "independent_same_l2": measured(same),
            "last_small_l2": measured(small),
            "allocations": [
                {"budgets": list(budgets)} | measured(plan)
                for budgets, plan in zip(ALLOCATIONS, plans, strict=True)
            ],
        }

    def claims(self, numbers: Numbers) -> list[Claim]:
        """What the supplement says about the order of the four."""
        independent, rows = numbers["independent"], numbers["allocations"]
        ratios = [row["ratio"][1] for row in rows]
        pairs = {
            "λ as each demands": (rows[-1], independent),
            "λ of Theorem 1": (numbers["last_small_l2"], independent),
            "λ of Algorithm 2": (rows[-1], numbers["independent_same_l2"]),
        }
        totals = [row["total"][1] for row in rows]
        return [
            Claim(
                "sharpness-fades",
                "As the model's share approaches the whole budget, the data-dependent edge shrinks.",
                ratios == sorted(ratios),
                "median bound over truth "
                + ", ".join(f"{ratio:.1f}" for ratio in ratios)
                + f"; data-independent {independent['ratio'][1]:.1f}",
            ),
            Claim(
                "little-better",
                "At (0.8, 0.1, 0.1) the data-dependent bounds are little better than the data-independent "
                "ones (ratio at least half).",
                agreed(*(one["ratio"][1] >= other["ratio"][1] / 2.0 for one, other in pairs.values())),
                "median bound over truth "
                + ", ".join(
                    f"{one['ratio'][1]:.2g} against {other['ratio'][1]:.2g} ({name})"
                    for name, (one, other) in pairs.items()
                ),
            ),
            Claim(
                "worse-in-sum",
                "At (0.8, 0.1, 0.1) the data-dependent release is worse in all: what is published, the "
                "report's cost included, is larger than the data-independent bound (by a tenth or more).",
                agreed(*(one["total"][1] > 1.1 * other["upper"][1] for one, other in pairs.values())),
                "median "
                + ", ".join(
                    f"{one['total'][1]:.2g} against {other['upper'][1]:.2g} ({name})"
                    for name, (one, other) in pairs.items()
                ),
            ),
            Claim(
                "allocation-matters",
                "A careful allocation is essential: how close the bounds are to the truth varies by a "
                "factor of two or more.",
                max(ratios) >= 2.0 * min(ratios),
                f"a factor of {max(ratios) / min(ratios):.1f}; the sums of all that is published are "
                + ", ".join(f"{total:.2g}" for total in totals),
            ),
        ]

    def draw(self, numbers: Numbers) -> Figure:
        """A panel for each release, and one with all ratios."""
        figure, axes = panels(2, 3, height=4.2)
        releases = [("data-independent", "independent", numbers["independent"])] + [
            (", ".join(f"{budget:g}" for budget in row["budgets"]), "dependent", row)
            for row in numbers["allocations"]
        ]
        for plane, (label, kind, release) in zip(axes.flat, releases, strict=False):
            draw_losses(plane, numbers, release, COLOURS[kind], worst=1.0)
            plane.set_title(label if kind == "independent" else f"data-dependent: {label}")
        draw_ratios(axes[1, 2], numbers, releases)
        for plane in axes[:, 0]:
            plane.set_ylabel("people at or below")
        losses_legend(figure, worst=1.0, changed=False)
        return figure

    def text(self, numbers: Numbers) -> str:
        """One line per allocation."""
        lines = [
            "The credit data again, with the paper's calibration and reading; every allocation (ε₁, ε₂, "
            f"ε₃) adds up to 1. Medians over the clients and over {numbers['draws']} draws:",
            "",
            "| budgets | σ | λ | AUC, in sample | true loss | bound | bound / truth | bound and cost |",
            "|---|---:|---:|---:|---:|---:|---:|---:|",
        ]
        alone = [
            {"name": "1"} | numbers["independent"],
            {"name": "1, with λ as for Algorithm 2"} | numbers["independent_same_l2"],
        ]
        last = {"name": "0.8, 0.1, 0.1, with λ of Theorem 1"} | numbers["last_small_l2"]
        for row in [*alone, *numbers["allocations"], last]:
            budgets = row.get("name") or ", ".join(f"{budget:g}" for budget in row["budgets"])
            lines.append(
                f"| {budgets} | {row['sigma']:.3g} | {row['l2']:.3g} | {row['auc'][1]:.3f} | "
                f"{row['truth'][1]:.2g} | {row['upper'][1]:.2g} | {row['ratio'][1]:.3g} | "
                f"{row['total'][1]:.2g} |"
            )
        return "\n".join(lines)
