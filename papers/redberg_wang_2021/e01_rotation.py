"""Figure 1: exact losses in the plane as the released model is turned away from the best one."""

import math

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from scipy.stats import spearmanr

import expost
from expost import Plan, research
from papers.common import FloatArray
from papers.redberg_wang_2021.experiment import Claim, Effort, Experiment, Numbers, Tick, agreed
from papers.redberg_wang_2021.measuring import DELTA, band, listed, rounded
from papers.redberg_wang_2021.plotting import LOSS, TRUTH, legend_above, line_key, panels
from papers.redberg_wang_2021.synthetic import separable_disc

ANGLES = {"0": 0.0, "π/12": 1 / 12, "π/4": 1 / 4, "π/2": 1 / 2, "3π/4": 3 / 4, "π": 1.0}
N, MARGIN, L2 = 1000, 0.4, 1.0
NOISES = (1.0, 0.5, 0.2, 0.1)
MARKS = {0: "o", 1: "^"}


class Rotation(Experiment):
    """Which people in the plane lose privacy as the model gets worse."""

    number = "1"
    name = "01_rotation"
    title = "Who loses privacy, as the model is turned away from the best one"
    caption = (
        "Each dot is a person, its colour her exact loss, the line the boundary of the model that is "
        "imagined to be released. With a good model the darker dots lie along the boundary; with a bad one "
        "they are the people whom it gets most wrong. The colour scale spans a factor of a hundred thousand."
    )

    def steps(self, effort: Effort) -> int:
        """One per sample of the plane."""
        return effort.pick(200, 5)

    def run(self, effort: Effort, tick: Tick) -> Numbers:
        """Compute losses for every angle: on one sample for the picture and on many for the numbers."""
        plan = expost.calibrate(epsilon=1.0, delta=DELTA, l2=L2, calibration="kifer2012")
        shares: dict[str, list[float]] = {f"{epsilon:g}": [] for epsilon in NOISES}
        rows: dict[str, list[dict[str, float]]] = {angle: [] for angle in ANGLES}
        shown: Numbers = {}
        for seed in range(self.steps(effort)):
            X, y = separable_disc(N, MARGIN, seed)
            best = _minimiser(plan, X, y)
            for angle, turn in ANGLES.items():
                theta = _turned(best, math.pi * turn)
                release, private = research.imagine(plan, X, y, theta)
                terms = research.losses(release, private, X, y, member=True)
                rows[angle].append(_figures(X, y, theta, terms, private.gradient, plan.sigma))
                if angle == "π/12":
                    for epsilon in NOISES:
                        shares[f"{epsilon:g}"].append(_leverage_share(terms, plan.sigma, epsilon))
                if seed == 0:
                    shown[angle] = {"theta": listed(theta), "loss": listed(terms.loss, 3)}
            if seed == 0:
                points = {"x": listed(X[:, 0], 4), "y": listed(X[:, 1], 4), "label": y.astype(int).tolist()}
            tick()
        return {
            "samples": self.steps(effort),
            "sigma": rounded(plan.sigma),
            "angles": {
                angle: {key: band([row[key] for row in rows[angle]]) for key in rows[angle][0]}
                for angle in ANGLES
            },
            "leverage_at_small_angle": {epsilon: band(values) for epsilon, values in shares.items()},
            "points": points,
            "shown": shown,
        }

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Claims about the boundary, about bad predictions, and about how unlikely those models are."""
        at = {
            angle: {key: value[1] for key, value in row.items()} for angle, row in numbers["angles"].items()
        }
        near = max(at[angle]["distance"] for angle in ("0", "π/12"))
        bad = min(at[angle]["misprediction"] for angle in ("π/4", "π/2", "3π/4", "π"))
        small = {epsilon: values[1] for epsilon, values in numbers["leverage_at_small_angle"].items()}
        later = max(at[angle]["determinant"] for angle in ("π/4", "π/2", "3π/4", "π"))
        return [
            Claim(
                "boundary-first",
                "For ω = 0 and π/12 the people closest to the decision boundary lose most.",
                near <= -0.5,
                f"rank correlation of loss and distance to the boundary {at['0']['distance']:.2f} and "
                f"{at['π/12']['distance']:.2f}",
            ),
            Claim(
                "badly-predicted-later",
                "As the model gets worse, the more badly it predicts a person, the more she loses.",
                bad >= 0.5,
                f"rank correlation of loss and misprediction at least {bad:.2f} from π/4 on",
            ),
            Claim(
                "leverage-first",
                "For ω = 0 and π/12 the leverage term dominates.",
                agreed(*(share >= 0.5 for share in (at["0"]["determinant"], *small.values()))),
                f"it is {at['0']['determinant']:.1%} of the size of the terms at ω = 0; at π/12 that depends "
                "on σ, as the paper warns: "
                + ", ".join(f"{share:.0%} (ε = {epsilon})" for epsilon, share in small.items()),
            ),
            Claim(
                "gradient-later",
                "As the model gets worse, the two gradient terms dominate.",
                later <= 0.5,
                f"the leverage is at most {later:.1%} of the size of the terms from π/4 on",
            ),
            Claim(
                "astronomically-unlikely",
                "The chance of a release like the model turned by π is astronomically low.",
                at["π"]["log10_chance"] <= -20.0,
                f"noise that long has probability 10^{at['π']['log10_chance']:.0f} at ε = 1; for π/12 it is "
                f"{10 ** at['π/12']['log10_chance']:.2g}",
            ),
        ]

    def draw(self, numbers: Numbers) -> Figure:
        """Six planes with one colour scale."""
        figure, axes = panels(2, 3, width=4.2, height=3.9)
        x, y, label = (np.array(numbers["points"][key]) for key in ("x", "y", "label"))
        losses = {angle: np.array(numbers["shown"][angle]["loss"]) for angle in ANGLES}
        top = max(loss.max() for loss in losses.values())
        scale = LogNorm(1e-5 * top, top)
        for plane, angle in zip(axes.flat, ANGLES, strict=True):
            for value, marker in MARKS.items():
                chosen = label == value
                dots = plane.scatter(
                    x[chosen],
                    y[chosen],
                    c=np.clip(losses[angle][chosen], scale.vmin, None),
                    norm=scale,
                    cmap="cividis_r",
                    s=20,
                    marker=marker,
                    linewidths=0,
                    rasterized=True,
                )
            across = np.array(numbers["shown"][angle]["theta"])
            along = np.array([-across[1], across[0]]) / np.linalg.norm(across)
            plane.plot(*(1.05 * np.outer(along, [-1, 1])), color=TRUTH, linewidth=1.6)
            median = np.median(losses[angle])
            plane.set_title(f"turned by {angle}:\nmedian loss {median:.2g}")
            plane.set(
                xlim=(-1.08, 1.08), ylim=(-1.08, 1.08), aspect="equal", xticks=(-1, 0, 1), yticks=(-1, 0, 1)
            )
        for plane in axes[:, 0]:
            plane.set_ylabel("second feature")
        for plane in axes[1]:
            plane.set_xlabel("first feature")
        figure.colorbar(dots, ax=axes, label=LOSS, shrink=0.8)
        keys = {f"class {value}": line_key(linestyle="", marker=sign) for value, sign in MARKS.items()}
        legend_above(figure, keys | {"boundary of the model": line_key(TRUTH, linewidth=1.6)}, 3)
        return figure

    def text(self, numbers: Numbers) -> str:
        """The table of angles."""
        lines = [
            "The loss of a person is a function of the released model, so it can be computed for any model "
            "that one imagines to be released. As in the paper: a thousand people in the unit disc, in two "
            "classes with a gap of 0.4 between them (so each is at least 0.2 from the middle), λ = 1, the "
            "minimiser turned by an angle ω. The paper does not state σ; here it is its Theorem 1 at ε = "
            f"1, δ = 1e-6: σ = {numbers['sigma']:.2f}. Medians over {numbers['samples']} samples of the "
            "plane:",
            "",
            "| ω | median loss | largest loss | leverage's share of the terms | correlation with distance "
            "| with misprediction | chance of noise that long |",
            "|---|---:|---:|---:|---:|---:|---:|",
        ]
        for angle, row in numbers["angles"].items():
            middle = {key: value[1] for key, value in row.items()}
            exponent = middle["log10_chance"]
            chance = f"{10**exponent:.2g}" if exponent > -4 else f"10^{exponent:.0f}"
            lines.append(
                f"| {angle} | {middle['median']:.2g} | {middle['largest']:.2g} | {middle['determinant']:.1%} "
                f"| {middle['distance']:.2f} | {middle['misprediction']:.2f} | {chance} |"
            )
        return "\n".join(lines)


def _minimiser(plan: Plan, X: FloatArray, y: FloatArray) -> FloatArray:
    """The regularised minimiser without noise, in the paper's sum form."""
    from sklearn.linear_model import LogisticRegression

    peer = LogisticRegression(C=1.0 / plan.l2, fit_intercept=False, solver="newton-cholesky", tol=1e-12)
    theta: FloatArray = peer.fit(X, y).coef_[0]
    return theta


def _turned(theta: FloatArray, angle: float) -> FloatArray:
    """Counter-clockwise."""
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    turned: FloatArray = turn @ theta
    return turned


def _figures(
    X: FloatArray,
    y: FloatArray,
    theta: FloatArray,
    terms: research.LossTerms,
    gradient: FloatArray,
    sigma: float,
) -> dict[str, float]:
    margin = X @ theta / np.linalg.norm(theta)
    sizes = [np.abs(term).sum() for term in (terms.determinant, terms.quadratic, terms.inner_product)]
    return {
        "median": float(np.median(terms.loss)),
        "largest": float(np.max(terms.loss)),
        "determinant": float(sizes[0] / sum(sizes)),
        "distance": float(spearmanr(terms.loss, np.abs(margin))[0]),
        "misprediction": float(spearmanr(terms.loss, -(2.0 * y - 1.0) * margin)[0]),
        # In two dimensions the length of the noise has the Rayleigh law.
        "log10_chance": float(-(gradient @ gradient) / (2.0 * sigma**2) / math.log(10.0)),
    }


def _leverage_share(terms: research.LossTerms, sigma: float, epsilon: float) -> float:
    """The leverage's share of the terms with the noise of another ε."""
    other = expost.calibrate(
        epsilon=epsilon, delta=DELTA, l2=max(L2, 0.5 / epsilon), calibration="kifer2012"
    ).sigma
    leverage = np.abs(terms.determinant).sum()
    rest = (np.abs(terms.quadratic) + np.abs(terms.inner_product)).sum() * (sigma / other) ** 2
    return float(leverage / (leverage + rest))
