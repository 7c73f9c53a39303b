"""Exposure of a population: what one private model really cost each of 569 women.

The table is public, so its exact losses may be shown. Those of a real table are for the curator alone.

Run it: python examples/gallery/exposure.py exposure.png
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import expost

data = load_breast_cancer()
measured = dict(zip(data.feature_names, data.data.T, strict=True))
diagnosis = data.target_names[data.target]
domain = expost.Domain.load(Path(__file__).parents[1] / "breast_cancer" / "domain.toml")
model = expost.LogisticRegression(epsilon=1.0, domain=domain).fit(measured, diagnosis)
losses = model.ex_post_losses(measured, diagnosis)

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
axes.hist(losses, bins=[step / 100 for step in range(101)], color="#0072B2", label="exact loss of each woman")
axes.axvline(1.0, color="#D55E00", linewidth=3, label="worst case promised to everyone")
axes.set(xlabel="privacy loss (log-odds)", ylabel="women", xlim=(0, 1.05))
axes.legend(frameon=False)
figure.savefig(sys.argv[1], dpi=150)
