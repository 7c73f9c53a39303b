"""Which columns matter, privately: forty columns of which five do, without and with an L1 penalty.

All models have the same noise and the same promise. With a penalty, many coefficients that are mostly noise
are exactly zero: the model says which columns it uses. A column that it leaves out may still matter a little.

Run it: python examples/gallery/which_columns_matter.py which_columns_matter.png
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import expost

rng = np.random.default_rng(4)
columns, rows = 40, 3_000
records = rng.normal(size=(rows, columns)) / np.sqrt(columns)
real = np.zeros(columns)
real[:5] = 9.0, -8.0, 7.0, -6.0, 5.0
labels = (records @ real + rng.logistic(size=rows) > 0).astype(int)
budget = {"epsilon": 1.0, "norm": 1.0, "classes": [0, 1]}

figure, drawn = plt.subplots(3, 1, figsize=(7, 5.4), sharex=True, sharey=True, layout="constrained")
for axes, l1 in zip(drawn, (0.0, "auto", 8.0), strict=True):
    model = expost.LogisticRegression(**budget, l1=l1).fit(records, labels)
    found = model.coef_[0]
    matter = np.arange(columns) < 5
    axes.bar(np.arange(1, 6), found[matter], color="#0072B2", label="columns that matter")
    axes.bar(np.arange(6, columns + 1), found[~matter], color="#E69F00", label="columns of noise")
    axes.axhline(0.0, color="#777777", linewidth=1)
    axes.set_title(f"l1 = {l1!r}: {np.count_nonzero(found)} of {columns} columns used", fontsize=10)
    axes.set_ylabel("coefficient")
drawn[0].legend(frameon=False, loc="lower right")
drawn[2].set_xlabel("column")
figure.savefig(sys.argv[1], dpi=150)
