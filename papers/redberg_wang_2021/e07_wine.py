"""Supplement, Figures 7 and 9: wine quality by linear regression with the squared loss."""

import math

from matplotlib.figure import Figure

import expost
from expost import Plan, gaussian, research
from papers.common import FloatArray
from papers.datasets import kidney, wine
from papers.redberg_wang_2021.distributions import (
    draw_row,
    losses_legend,
    measure,
    overview,
    points,
)
from papers.redberg_wang_2021.experiment import Claim, Effort, Experiment, Numbers, Tick, agreed
from papers.redberg_wang_2021.measuring import DELTA, demanded_l2, fit, own_r_squared, paper_plan, rounded
from papers.redberg_wang_2021.plotting import panels

LABELS = {
    "independent": "data-independent",
    "independent_same_l2": "data-independent, λ as for Algorithm 2",
    "dependent": "data-dependent",
}
COLOURS = ("red", "white")


class Wine(Experiment):
    """A loss function without a worst case, for which losses after the fact still exist."""

    number = "7"
    name = "07_wine"
    title = "Wine quality, linear regression with the squared loss"
    caption = (
        "Top, 1,599 red wines; bottom, 4,898 white ones. Left and middle, the share of wines whose true loss "
        "(dotted) and published bound (solid) is at most so much, with bands of 10% to 90% of the draws; "
        "right, bound over truth: the median wine (mark and number) with 10% to 90% of the draws (thick) and "
        "of the wines (thin). There is no line for a promise: the squared loss has no worst case at any "
        "noise."
    )
    needs = ("wine", "kidney")

    def steps(self, effort: Effort) -> int:
        """One per release."""
        return 6 * effort.pick(500, 8) + 2 * effort.pick(500, 20)

    def run(self, effort: Effort, tick: Tick) -> Numbers:
        """Noise as the paper's formulas give it for a slope and a curvature of one."""
        draws = effort.pick(500, 8)
        numbers: Numbers = {"draws": draws} | points()
        for colour in COLOURS:
            table = wine(colour)
            X, y = table.rows(intercept=True), table.labels()
            numbers[colour] = {"rows": len(y), "features": X.shape[1]}
            for kind in LABELS:
                plan = squared_plan(kind, X.shape[1])
                numbers[colour][kind] = measure(
                    plan,
                    X,
                    y,
                    draws,
                    tick,
                    method="paper",
                    scores={"r2": own_r_squared},
                ) | {"sigma_gradient": plan.sigma_gradient, "sigma_hessian": plan.sigma_hessian}
            if colour == "red":
                numbers["unbounded"] = {str(times): _largest_loss(X, y, times) for times in (1, 10, 100)}
        table = kidney()
        X, y = table.rows(), table.labels()
        for kind, budgets in (("independent", (1.0,)), ("dependent", (1.0, 1.0, 1.0))):
            plan = paper_plan(budgets, X.shape[1])
            found = measure(plan, X, y, effort.pick(500, 20), tick, method="paper", scores={})
            numbers[f"kidney_{kind}"] = found["ratio"]
        return numbers

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Claims that statistics sharpen the bounds here too, and that there is no worst case."""
        ratio = {colour: {kind: numbers[colour][kind]["ratio"][1] for kind in LABELS} for colour in COLOURS}
        gain = {"kidney": numbers["kidney_independent"][1] / numbers["kidney_dependent"][1]} | {
            colour: ratio[colour]["independent"] / ratio[colour]["dependent"] for colour in COLOURS
        }
        return [
            Claim(
                "dependent-sharper",
                "The data-dependent approach estimates the losses more accurately for linear regression "
                "too, than the data-independent one at either λ.",
                agreed(
                    *(
                        ratio[colour]["dependent"] < ratio[colour][kind]
                        for colour in COLOURS
                        for kind in ("independent", "independent_same_l2")
                    )
                ),
                "median bound over truth "
                + "; ".join(
                    f"{row['dependent']:.1f} against {row['independent']:.0f}, and "
                    f"{row['independent_same_l2']:.1f} with the same λ ({colour})"
                    for colour, row in ratio.items()
                ),
            ),
            Claim(
                "especially-kidney",
                "The data-dependent approach gains more on kidney than on the wines (with our scales).",
                all(gain["kidney"] > gain[colour] for colour in COLOURS),
                "the data-independent ratio is "
                + ", ".join(
                    f"{times:.1f} times the data-dependent one ({name})" for name, times in gain.items()
                ),
            ),
            Claim(
                "no-worst-case",
                "The squared loss on an unbounded domain satisfies no worst-case guarantee at any noise.",
                numbers["unbounded"]["100"] > 100.0 * numbers["unbounded"]["10"] / 2.0,
                "the largest loss is "
                + ", ".join(f"{loss:.3g} at {times} times" for times, loss in numbers["unbounded"].items())
                + " the noise that was drawn: it grows with the square, without limit",
            ),
        ]

    def draw(self, numbers: Numbers) -> Figure:
        """A row of panels for each colour."""
        figure, axes = panels(2, 3, height=4.2)
        for planes, colour in zip(axes, COLOURS, strict=True):
            draw_row(planes, numbers | numbers[colour], LABELS, worst=None)
            for plane in planes[:2]:
                plane.set_title(f"{colour} wine, {plane.get_title()}")
            planes[0].set_ylabel("wines at or below")
        losses_legend(figure, worst=None, who="wines")
        return figure

    def text(self, numbers: Numbers) -> str:
        """σ and λ stated, then both tables."""
        red = numbers["red"]
        lines = [
            "Grades from 0 to 10, scaled to [-1, 1], 11 measurements and an intercept, bounds declared in "
            "[examples/wine](../../examples/wine/domain.toml). No σ gives a guarantee, so the scales are "
            "chosen: the paper's formulas for ε = 1 with slope and curvature taken as one, σ = "
            f"{red['independent']['sigma']:.2f}, σ₂ = {red['dependent']['sigma_gradient']:.2f}, σ₃ = "
            f"{red['dependent']['sigma_hessian']:.2f}, λ = {red['independent']['l2']:g} without statistics "
            f"and the λ that Algorithm 2 demands with them, {red['dependent']['l2']:.0f}. R² is on the "
            f"wines themselves. Medians over {numbers['draws']} draws:",
        ]
        for colour in COLOURS:
            lines += ["", f"**{colour.capitalize()}**, {numbers[colour]['rows']:,} wines:", ""]
            lines += overview(numbers[colour], LABELS, score="r2")
        return "\n".join(lines)


def squared_plan(kind: str, dimension: int) -> Plan:
    """Explicit scales, from the paper's formulas at ε = 1 for a slope and a curvature of one."""
    sigma = math.sqrt(8.0 * math.log(2.0 / DELTA) + 4.0)
    sigma_hessian = gaussian.sigma(1.0, DELTA, sensitivity=math.sqrt(0.5))
    l2 = 2.0 if kind == "independent" else max(2.0, demanded_l2(sigma_hessian, dimension))
    if kind != "dependent":
        return expost.calibrate(loss="squared", delta=DELTA, sigma=sigma, l2=l2)
    return expost.calibrate(
        loss="squared",
        delta=DELTA,
        report="dependent",
        sigma=sigma,
        l2=l2,
        sigma_gradient=gaussian.sigma(1.0, DELTA),
        sigma_hessian=sigma_hessian,
    )


def _largest_loss(X: FloatArray, y: FloatArray, times: int) -> float:
    """The largest loss if the noise had been so many times as large, which is possible."""
    plan = squared_plan("independent", X.shape[1])
    larger = expost.calibrate(loss="squared", delta=DELTA, sigma=times * plan.sigma, l2=plan.l2)
    fitted = fit(larger, X, y, 0)
    release, private = research.imagine(plan, X, y, fitted.release.coefficients)
    return rounded(float(research.losses(release, private, X, y, member=True).loss.max()))
