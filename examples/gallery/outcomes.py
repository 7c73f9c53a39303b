"""Counts, amounts and quantiles: a model of each, and what it cost the people in the table.

Run it: python examples/gallery/outcomes.py outcomes.png
"""

import sys
import tempfile

import matplotlib.pyplot as plt
import numpy as np

import expost

rng = np.random.default_rng(5)
age = rng.uniform(20, 80, 5000)
# The true means; the scatter around them has a mean of 1.
mean_visits, mean_cost = 2 * np.exp(0.025 * (age - 50)), 300 * np.exp(0.02 * (age - 50))
visits = rng.poisson(mean_visits * rng.gamma(2.0, 0.5, 5000))
cost = mean_cost * rng.lognormal(-0.32, 0.8, 5000)
stay = np.clip(20 + 0.3 * (age - 50) + rng.normal(0, 2 + 0.1 * (age - 20)), 0, 60)

features = (expost.Number(name="age", low=20, high=80, unit="years"),)
of_visits = expost.Domain(features=features, label=expost.CountLabel(name="visits", high=30))
of_cost = expost.Domain(features=features, label=expost.AmountLabel(name="cost", low=10, high=10_000))
of_stay = expost.Domain(features=features, label=expost.NumberLabel(name="stay", low=0, high=60))
panels = [
    ("visits in a year", visits, mean_visits, {"mean": expost.PoissonRegression(domain=of_visits)}),
    ("cost of a year (euros)", cost, mean_cost, {"mean": expost.GammaRegression(domain=of_cost)}),
    (
        "stay in hospital (days)",
        stay,
        20 + 0.3 * (age - 50),
        {
            f"quantile {level:g}": expost.QuantileRegression(domain=of_stay, level=level)
            for level in (0.1, 0.5, 0.9)
        },
    ),
]

shown = {"age": np.linspace(20, 80, 50)}
figure, axes = plt.subplots(2, 3, figsize=(9, 5.4), layout="constrained")
with tempfile.TemporaryDirectory() as folder:
    # All five fits are of the same people: an account counts what they cost together.
    account = expost.Ledger(f"{folder}/ledger.db").account("patients", epsilon=10, delta=1e-4)
    for (title, outcome, truth, models), (above, below) in zip(panels, axes.T, strict=True):
        above.plot(age[:800], outcome[:800], ".", color="#BBBBBB", markersize=2)
        for (name, model), color in zip(models.items(), ("#0072B2", "#D55E00", "#009E73"), strict=False):
            model.fit({"age": age}, outcome, account=account)
            above.plot(shown["age"], model.predict(shown), color=color, linewidth=2, label=name)
            losses = np.abs(model.ex_post_losses({"age": age}, outcome))
            below.hist(losses, bins=np.linspace(0, 1, 41), color=color, histtype="step", label=name)
        order, most = np.argsort(age), 1.3 * np.quantile(outcome, 0.98)
        name = "true median" if len(models) > 1 else "true mean"
        above.plot(age[order], truth[order], "k--", linewidth=1, label=name)
        above.set(xlabel="age (years)", ylabel=title, xlim=(20, 80), ylim=(-0.03 * most, most))
        below.set(xlabel="loss of a person (promised: 1)", ylabel="people", yscale="log", xlim=(0, 1))
        above.legend(frameon=False, loc="upper left")
figure.savefig(sys.argv[1], dpi=150)
