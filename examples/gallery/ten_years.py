"""Budget over ten years: what a model published every year costs together.

Adding up the budgets is correct and wasteful. `expost.compose` certifies what all cost, from plans alone.

Run it: python examples/gallery/ten_years.py ten_years.png
"""

import sys

import matplotlib.pyplot as plt

import expost

yearly = expost.calibrate(loss="logistic", epsilon=0.5, delta=1e-7, norm=1.0)
years = range(1, 11)
together = [expost.compose([yearly] * count).epsilon_at(1e-6) for count in years]

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
axes.plot(years, [0.5 * count for count in years], "--", color="#D55E00", label="the budgets added up")
axes.plot(years, together, "o-", color="#0072B2", label="certified together, at δ = 1e-6")
axes.set(xlabel="years, with one plain logistic model of (0.5, 1e-7) each", ylabel="ε of all")
axes.set(xticks=list(years), ylim=(0, None))
axes.legend(frameon=False)
figure.savefig(sys.argv[1], dpi=150)
