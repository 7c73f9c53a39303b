"""Who loses privacy as a model gets worse: Figure 1 of Redberg and Wang (2021), with ``expost.research``.

A thousand people in the plane, two classes. The best model is turned by six angles, each as if the mechanism
had released it; the colour of a person is her exact loss. Nothing is drawn, so nothing is spent.

Run it: python examples/gallery/who_loses.py who_loses.png
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from sklearn.linear_model import LogisticRegression

import expost
from expost import research

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (4000, 2))
X = X[(np.linalg.norm(X, axis=1) <= 1) & (np.abs(X[:, 0]) >= 0.2)][:1000]
y = (X[:, 0] > 0).astype(int)
plan = expost.calibrate(epsilon=1.0, delta=1e-6, l2=1.0, calibration="kifer2012")
best = LogisticRegression(C=1 / plan.l2, fit_intercept=False, tol=1e-12).fit(X, y).coef_[0]

figure, panels = plt.subplots(2, 3, figsize=(7, 4.5), sharex=True, sharey=True, layout="constrained")
for axes, angle in zip(panels.flat, np.pi * np.array([0, 1 / 12, 1 / 4, 1 / 2, 3 / 4, 1]), strict=True):
    theta = best @ [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    release, private = research.imagine(plan, X, y, theta)
    loss = research.losses(release, private, X, y, member=True).loss
    people = axes.scatter(*X.T, c=loss, s=4, cmap="viridis_r", norm=LogNorm(1e-4, 10))
    axes.axline((0, 0), (-theta[1], theta[0]), color="#D55E00")
    axes.set(title=f"turned by {np.degrees(angle):.0f}°", aspect="equal", xlim=(-1, 1), ylim=(-1, 1))
figure.supxlabel("first feature")
figure.supylabel("second feature")
figure.colorbar(people, ax=panels, label="exact privacy loss (log-odds)", extend="both")
figure.savefig(sys.argv[1], dpi=150)
