"""Compute seven notions of privacy loss for the same fit; docs/variants.md explains them.

The model is logistic with one coefficient, on thirty made-up rows, calibrated to ε = 1 at δ = 1e-6. The
person is the first in the table. With one coefficient every density is known, so that numbers which usually
can only be bounded can be computed by integration.

Run it: python examples/variants.py
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

import expost
from expost.audit import hockey_stick
from expost.privacy.profile import PrivacyProfile

SEED = 2021
ORDER = 10.0  # of the Rényi divergences
PLAN = expost.calibrate(loss="logistic", norm=1.0, epsilon=1.0, delta=1e-6, l2=2.0)


@dataclass(frozen=True)
class Variant:
    """A notion of privacy loss and its number for this fit."""

    name: str
    worst_over: str
    value: float
    how: str

    def row(self) -> str:
        """A row of the table in docs/variants.md."""
        number = "∞" if math.isinf(self.value) else f"{self.value:.3f}"
        return f"| {self.name} | {self.worst_over} | {number} | {self.how} |"


def make_table() -> tuple[np.ndarray, np.ndarray]:
    """Thirty rows of one feature in [-1, 1] and their labels; the first row is the person's."""
    rng = np.random.default_rng(SEED)
    x = rng.uniform(-1.0, 1.0, 30)
    return x[:, None], (rng.random(30) < 1.0 / (1.0 + np.exp(-2.0 * x))).astype(float)


def approximate() -> float:
    """The certified ε at δ of the whole publication, for every table and every record."""
    return PLAN.epsilon_at(PLAN.delta)


def renyi(cells: int = 4000) -> float:
    r"""An upper bound on the Rényi divergence of any two neighbours.

    .. math:: D_\alpha \le \frac{1}{\alpha - 1}\log \mathbb{E} \sup_m e^{(\alpha - 1)\,u(m, N)}

    with the privacy loss ``u`` of :mod:`expost.privacy.profile`. It takes the largest value on each cell of
    slopes and noise, and the largest value of every term beyond ten standard deviations.
    """
    power, unit = ORDER - 1.0, PLAN.norm / PLAN.sigma
    edges = np.linspace(0.0, PLAN.loss.curve.max_slope, 401)
    low, high = edges[:-1], edges[1:]
    bend = PLAN.loss.curve.max_curvature_between(low, high) * PLAN.norm**2
    fixed = np.log1p(bend / PLAN.l2) + (unit * high) ** 2 / 2.0
    noise = np.append(-np.inf, ndtri(np.linspace(0.0, 1.0, cells + 1)[1:-1]))
    noise = np.append(noise, np.linspace(noise[-1], 10.0, cells + 1)[1:])
    right = noise[1:, None]
    worst = np.max(fixed + unit * np.where(right >= 0.0, high, low) * right, axis=1)
    # Upper tails keep their digits where distribution functions round to one.
    mass = ndtr(-noise[:-1]) - ndtr(-noise[1:])
    steepest = unit * PLAN.loss.curve.max_slope
    tail = power * (np.max(fixed) + power * steepest**2 / 2.0) + log_ndtr(power * steepest - 10.0)
    return float(np.log(np.sum(mass * np.exp(power * worst)) + np.exp(tail)) / power)


def data_dependent() -> float:
    """The largest Rényi divergence from this table to a neighbour, over a grid of records.

    The neighbours remove each member and add each record of the grid. The density of the coefficient is
    integrated on a separate grid.
    """
    X, y = make_table()
    theta = np.linspace(-25.0, 25.0, 20_001)[:, None]
    slopes, curvatures = PLAN.loss.derivatives(theta * X[:, 0], np.broadcast_to(y, (len(theta), len(y))))
    gradient = slopes @ X[:, 0] + PLAN.l2 * theta[:, 0]
    hessian = curvatures @ X[:, 0] ** 2 + PLAN.l2

    def log_density(gradient: np.ndarray, hessian: np.ndarray) -> np.ndarray:
        constant = math.log(PLAN.sigma * math.sqrt(2.0 * math.pi))
        return np.log(hessian) - gradient**2 / (2.0 * PLAN.sigma**2) - constant

    here = log_density(gradient, hessian)

    def divergence(x: float, label: float, sign: float) -> float:
        slope, bend = PLAN.loss.derivatives(theta[:, 0] * x, np.full(len(theta), label))
        there = log_density(gradient + sign * slope * x, hessian + sign * bend * x**2)
        mass = np.sum(np.exp(ORDER * here - (ORDER - 1.0) * there)) * (theta[1, 0] - theta[0, 0])
        return math.log(mass) / (ORDER - 1.0)

    members = [divergence(x, label, -1.0) for x, label in zip(X[:, 0], y, strict=True)]
    others = [divergence(x, label, 1.0) for x in np.linspace(-1.0, 1.0, 41) for label in (0.0, 1.0)]
    return max(members + others)


def personalised() -> float:
    """The certified ε at δ for a record as long as this person's, in every table."""
    X, _ = make_table()
    profile = PrivacyProfile(PLAN.loss.curve, norm=abs(X[0, 0]), l2=PLAN.l2, scales=PLAN.scales)
    return profile.epsilon(PLAN.delta)


def per_instance() -> float:
    """The ε at which the divergence of this table with and without this person is exactly δ."""
    X, y = make_table()

    def excess(epsilon: float) -> float:
        found = hockey_stick(
            PLAN.loss, X[1:], y[1:], X[0], y[0], epsilon=epsilon, sigma=PLAN.sigma, l2=PLAN.l2
        )
        return math.log(max(found.add, found.remove) / PLAN.delta)

    return float(brentq(excess, 1e-3, PLAN.epsilon, xtol=1e-6))


def ex_post() -> float:
    """The exact loss of this person at the coefficient that came out, from seeded noise."""
    X, y = make_table()
    model = expost.LogisticRegression(plan=PLAN, fit_intercept=False, classes=[0, 1], random_state=SEED).fit(
        X, y
    )
    return float(model.ex_post_losses(X[:1], y[:1])[0])


def variants() -> list[Variant]:
    """All seven, from the coarsest to the finest."""
    return [
        Variant("pure", "tables, records, outputs", math.inf, "exact: Gaussian noise has no largest loss"),
        Variant("approximate", "tables, records", approximate(), "certified bound, at δ = 1e-6"),
        Variant("Rényi", "tables, records", renyi(), f"upper bound, of order {ORDER:g}"),
        Variant("data-dependent", "records", data_dependent(), f"integral, of order {ORDER:g}, on a grid"),
        Variant("personalised", "tables", personalised(), "certified bound, at δ = 1e-6"),
        Variant("per-instance", "nothing", per_instance(), "integral, at δ = 1e-6"),
        Variant("ex-post per-instance", "nothing, after the fact", ex_post(), "exact"),
    ]


def main() -> None:
    """Print the table of docs/variants.md."""
    X, y = make_table()
    print(
        f"noise {PLAN.sigma:.4f}, l2 = {PLAN.l2:g}, seed {SEED}; the person: x = {X[0, 0]:.3f}, y = {y[0]:g}"
    )
    for variant in variants():
        print(variant.row())


if __name__ == "__main__":
    main()
