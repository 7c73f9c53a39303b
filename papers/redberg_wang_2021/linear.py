"""Measurements of linear regression, like those of classification in the earlier experiments."""

import math
from typing import Literal, TypeAlias

import numpy as np

import expost
from expost import Plan
from papers.datasets import wine
from papers.redberg_wang_2021.distributions import measure
from papers.redberg_wang_2021.e05_allocations import ALLOCATIONS
from papers.redberg_wang_2021.e07_wine import squared_plan
from papers.redberg_wang_2021.experiment import Numbers, Tick
from papers.redberg_wang_2021.measuring import (
    DELTA,
    Method,
    band,
    fit,
    own_r_squared,
    paper_plan,
    read,
    rounded,
    scores,
)
from papers.redberg_wang_2021.synthetic import directions

N, D, TESTS = 1000, 50, 5000
Loss: TypeAlias = Literal["squared", "pseudo_huber"]
INFLATIONS = (1.0, 3.0, 10.0, 30.0, 100.0)
ROWS = (100, 300, 1000, 3000, 10_000)
FEATURES = (1, 2, 5, 10, 20, 40, 60)


def regularization(draws: int, tick: Tick) -> Numbers:
    """Held-out error against λ, for both losses with the paper's noise, and for ours."""
    least = 2.0  # Theorem 1 at ε = 1 with a curvature of one
    plans: dict[tuple[str, object], Plan] = {}
    demanded: dict[Loss, float] = {
        "squared": squared_plan("dependent", D).l2 / least,
        "pseudo_huber": paper_plan((1.0, 1.0, 1.0), D, loss="pseudo_huber").l2 / least,
    }
    for loss in demanded:
        for inflation in (*INFLATIONS, demanded[loss]):
            plans[loss, "star" if inflation == demanded[loss] else inflation] = _noise(
                loss, inflation * least
            )
    ours = expost.calibrate(loss="pseudo_huber", epsilon=1.0, delta=DELTA)
    plans["ours", "default"] = ours
    errors: dict[tuple[str, object], list[float]] = {key: [] for key in plans}
    for seed in range(draws):
        sample = directions(N, D, seed, tests=TESTS, classes=False)
        y, y_test = sample.y - 0.5, sample.y_test - 0.5  # there is no intercept
        for key, plan in plans.items():
            predicted = scores(fit(plan, sample.X, y, seed), sample.X_test)
            errors[key].append(float(np.sqrt(np.mean((y_test - predicted) ** 2)) / np.std(y_test)))
        tick()
    return {
        "least_l2": least,
        "inflations": list(INFLATIONS),
        "sigma": rounded(plans["squared", 1.0].sigma),
        "ours_inflation": rounded(ours.l2 / least),
        "ours_sigma": rounded(ours.sigma),
        "ours": band(errors["ours", "default"]),
    } | {
        loss: {
            "demanded_inflation": rounded(demanded[loss]),
            "curve": [band(errors[loss, inflation]) for inflation in INFLATIONS],
            "star": band(errors[loss, "star"]),
        }
        for loss in demanded
    }


def sizes(n: int, d: int, draws: int, tick: Tick) -> Numbers:
    """The largest loss and the largest bound of every kind, for one size of the table."""
    plans = {
        "squared": squared_plan("independent", d),
        "pseudo_huber": paper_plan((1.0,), d, loss="pseudo_huber"),
        "pseudo_huber_dependent": paper_plan((1.0, 1.0, 1.0), d, loss="pseudo_huber"),
        "ours": expost.calibrate(loss="pseudo_huber", epsilon=1.0, delta=DELTA),
    }
    found: dict[str, list[float]] = {key: [] for kind in plans for key in (kind, f"{kind}_truth")}
    for seed in range(draws):
        sample = directions(n, d, seed, classes=False)
        for kind, plan in plans.items():
            fitted = fit(plan, sample.X, sample.y - 0.5, seed)
            reading = read(fitted, "tight" if kind == "ours" else "paper")
            found[kind].append(float(reading.upper.max()))
            found[f"{kind}_truth"].append(float(reading.truth.max()))
        tick()
    return {"rows": n, "features": d} | {key: band(values) for key, values in found.items()}


def wines(colour: str, draws: int, tick: Tick) -> list[Numbers]:
    """Every allocation of ε = 1 on the wines of one colour, then ours."""
    table = wine(colour)
    X, y = table.rows(intercept=True), table.labels()
    ours = expost.calibrate(loss="pseudo_huber", epsilon=1.0, delta=DELTA)
    stronger = expost.calibrate(loss="pseudo_huber", epsilon=1.0, delta=DELTA, l2=4.0 * ours.l2)
    plans = {
        "paper: " + ", ".join(f"{budget:g}" for budget in budgets): paper_plan(
            budgets, X.shape[1], loss="pseudo_huber"
        )
        for budgets in ((1.0,), *ALLOCATIONS)
    } | {"ours, default λ": ours, "ours, four times that λ": stronger}
    measured = []
    for name, plan in plans.items():
        method: Method = "paper" if name.startswith("paper") else "tight"
        numbers = measure(plan, X, y, draws, tick, method=method, scores={"r2": own_r_squared})
        for bulky in ("truths", "uppers", "ratios"):
            del numbers[bulky]
        measured.append({"name": name} | numbers)
    return measured


def _noise(loss: Loss, l2: float) -> Plan:
    """The paper's noise at ε = 1 for a slope and a curvature of one, with this regularisation."""
    if loss == "squared":
        return expost.calibrate(
            loss=loss, delta=DELTA, sigma=math.sqrt(8.0 * math.log(2.0 / DELTA) + 4.0), l2=l2
        )
    return expost.calibrate(loss=loss, epsilon=1.0, delta=DELTA, l2=l2, calibration="kifer2012")
