"""Regression under privacy: how close private lines of three budgets come to the truth.

Run it: python examples/gallery/regression.py regression.png
"""

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np

import expost

# Three budgets are compared on a table that is public; a real one would be given an account.
warnings.simplefilter("ignore", expost.exceptions.UncountedWarning)

rng = np.random.default_rng(3)
age = rng.uniform(20, 80, 3000)
pressure = 90 + 0.7 * age + rng.normal(0, 12, 3000)
domain = expost.Domain(
    features=(expost.Number(name="age", low=20, high=80, unit="years"),),
    label=expost.NumberLabel(name="pressure", low=60, high=200, unit="mmHg"),
)
shown = {"age": np.linspace(20, 80, 50)}

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
axes.plot(age[:600], pressure[:600], ".", color="#BBBBBB", markersize=3, label="600 of 3000 people")
for epsilon, color in [(0.01, "#D55E00"), (0.03, "#E69F00"), (0.3, "#0072B2")]:
    model = expost.LinearRegression(epsilon=epsilon, domain=domain).fit({"age": age, "pressure": pressure})
    axes.plot(shown["age"], model.predict(shown), color=color, linewidth=2.5, label=f"ε = {epsilon:g}")
axes.plot(shown["age"], 90 + 0.7 * shown["age"], "k--", label="the truth")
axes.set(xlabel="age (years)", ylabel="blood pressure (mmHg)", xlim=(20, 80), ylim=(80, 180))
axes.legend(frameon=False, ncols=2)
figure.savefig(sys.argv[1], dpi=150)
