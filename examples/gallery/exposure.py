"""Exposure of a population: what one private model really cost each of 569 people.

The table is public, so its exact losses may be shown. Those of a real table are for the curator alone.

Run it: python examples/gallery/exposure.py exposure.png
"""

import sys

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import expost

records, ill = load_breast_cancer(return_X_y=True)
# What a cell can measure at most, a public fact: mean, error and worst of ten quantities.
scaled = records / [50, 50, 300, 4000, *[1] * 7, 10, 50, 1000, *[1] * 6, 50, 60, 400, 6000, *[1] * 6]
model = expost.LogisticRegression(epsilon=1.0, norm=2.0, classes=[0, 1]).fit(scaled, ill)
losses = model.ex_post_losses(scaled, ill)

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
axes.hist(
    losses, bins=[step / 100 for step in range(101)], color="#0072B2", label="exact loss of each person"
)
axes.axvline(1.0, color="#D55E00", linewidth=3, label="worst case promised to everyone")
axes.set(xlabel="privacy loss (log-odds)", ylabel="people", xlim=(0, 1.05))
axes.legend(frameon=False)
figure.savefig(sys.argv[1], dpi=150)
