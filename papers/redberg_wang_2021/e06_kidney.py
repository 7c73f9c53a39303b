"""Supplement, Figures 6 and 8: chronic kidney disease, with a budget of 1 for each of three releases."""

from matplotlib.figure import Figure

from papers.datasets import kidney
from papers.redberg_wang_2021.distributions import draw_pair, measure, overview, points
from papers.redberg_wang_2021.experiment import Claim, Effort, Experiment, Numbers, Tick
from papers.redberg_wang_2021.measuring import own_auc, paper_plan

LABELS = {"independent": "data-independent", "dependent": "data-dependent"}
SMALL = 0.1


class Kidney(Experiment):
    """A small table, where the noise is large next to the data."""

    name = "06_kidney"
    title = "Chronic kidney disease, logistic regression"
    caption = (
        "400 patients, ε = 1 for the model (dashed line), and 1 each for gradient and Hessian in the "
        "data-dependent release, which so costs three times the budget. Left, the share of patients whose "
        "true loss (dotted) and published bound (solid) is at most so much; right, bound over truth. Bands: "
        "10% to 90% of the draws."
    )
    needs = ("kidney",)

    def steps(self, effort: Effort) -> int:
        """One per release."""
        return 4 * effort.pick(1000, 20)

    def run(self, effort: Effort, tick: Tick) -> Numbers:
        """The paper's recipe and reading at two budgets for the model."""
        table = kidney()
        X, y = table.rows(), table.labels()
        draws = effort.pick(1000, 20)
        numbers: Numbers = {"rows": len(y), "features": X.shape[1], "draws": draws} | points()
        for kind, statistics in (("independent", ()), ("dependent", (1.0, 1.0))):
            for name, model in ((kind, 1.0), (f"{kind}_small", SMALL)):
                plan = paper_plan((model, *statistics), X.shape[1])
                numbers[name] = measure(plan, X, y, draws, tick, method="paper", scores={"auc": own_auc})
        return numbers

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Sharper, and more so with more noise in the model."""
        ratio = {kind: numbers[kind]["ratio"][1] for kind in numbers if isinstance(numbers[kind], dict)}
        return [
            Claim(
                "dependent-sharper",
                "The data-dependent approach estimates the losses more accurately.",
                ratio["dependent"] < ratio["independent"],
                f"median bound over truth {ratio['dependent']:.1f} against {ratio['independent']:.1f}",
            ),
            Claim(
                "sharper-at-small-budgets",
                "For ε₁ much smaller than 1 the data-dependent bound is markedly tighter (a factor of 1.5 or "
                "more).",
                ratio["dependent_small"] <= ratio["independent_small"] / 1.5,
                f"at ε₁ = {SMALL}: {ratio['dependent_small']:.2f} against {ratio['independent_small']:.1f}",
            ),
            Claim(
                "below-worst-case",
                "The exact losses of all patients lie below the worst case ε = 1.",
                numbers["independent"]["truth_max"][2] < 1.0,
                f"largest loss {numbers['independent']['truth_max'][1]:.2f} in the median draw, "
                f"{numbers['independent']['truth_max'][2]:.2f} at the 90% point",
            ),
        ]

    def draw(self, numbers: Numbers) -> Figure:
        """Losses and ratios."""
        return draw_pair(numbers, LABELS, worst=1.0)

    def text(self, numbers: Numbers) -> str:
        """Both budgets in one table."""
        labels = {
            "independent": "data-independent, ε₁ = 1",
            "dependent": "data-dependent, ε₁ = ε₂ = ε₃ = 1",
            "independent_small": f"data-independent, ε₁ = {SMALL}",
            "dependent_small": f"data-dependent, ε₁ = {SMALL}, ε₂ = ε₃ = 1",
        }
        return "\n".join(
            [
                f"{numbers['rows']} patients, {numbers['features']} encoded columns, bounds and the "
                "defaults for missing values declared in "
                "[examples/kidney](../../examples/kidney/domain.toml): a missing measurement counts as the "
                "healthy reference value. In this table what is missing depends strongly on the diagnosis, "
                "so the AUC (on the patients themselves) says little about medicine. Medians over "
                f"{numbers['draws']} draws:",
                "",
                *overview(numbers, labels),
            ]
        )
