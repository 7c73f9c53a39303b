"""Where the noise goes: what each part of a publication would cost alone, for every kind of report.

All four publications cost ε = 1. The shares do not add up to it: parts released together cost less.

Run it: python examples/gallery/where_the_noise_goes.py where_the_noise_goes.png
"""

import sys

import matplotlib.pyplot as plt

import expost

COLORS = {"coefficients": "#0072B2", "gradient": "#E69F00", "hessian": "#009E73", "eigenvalue": "#CC79A7"}
reports = ["independent", "leverage", "dependent", "adaptive"]

figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
for row, report in enumerate(reports):
    plan = expost.calibrate(loss="logistic", epsilon=1.0, delta=1e-6, norm=1.0, report=report)
    for place, (name, _, alone) in enumerate(plan.parts()):
        color = next(color for key, color in COLORS.items() if key in name.lower())
        label = name if report == "adaptive" else None
        axes.barh(row + 0.2 * (place - 1.5), alone, height=0.18, color=color, label=label)
axes.axvline(1.0, color="#D55E00", linewidth=2, label="all together")
axes.set(yticks=range(4), yticklabels=reports, xlabel="ε that the part alone would cost")
axes.invert_yaxis()
figure.legend(frameon=False, fontsize=9, loc="outside upper center", ncols=5)
figure.savefig(sys.argv[1], dpi=150)
