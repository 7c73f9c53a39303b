"""A curve with knots: how the shape of a cell's border tells benign from malignant, under privacy.

Tumours with very smooth and with very rough borders are malignant more often than those between, so that a
straight line says nothing. With knots at public values the model may bend there. Both models make the same
promise. The dots are the shares of malignant tumours among women with similar values; they are not private.

Run it: python examples/gallery/curve.py curve.png
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score

import expost

data = load_breast_cancer()
label = expost.ClassLabel(name="diagnosis", classes=("benign", "malignant"))
diagnosis = np.where(data.target == 0, "malignant", "benign")
name, low, high = "mean fractal dimension", 0.05, 0.085
x = {name: data.data[:, list(data.feature_names).index(name)]}
line = np.linspace(low, high, 200)

figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
for knots, colour in (((), "#E69F00"), ((0.055, 0.06, 0.07), "#0072B2")):
    shape = expost.Number(name=name, low=low, high=high, knots=knots)
    domain = expost.Domain(features=(shape,), label=label)
    model = expost.LogisticRegression(epsilon=4.0, delta=1e-6, domain=domain).fit(x, diagnosis)
    area = roc_auc_score(diagnosis == "malignant", model.decision_function(x))
    said = f"{len(knots)} knots" if knots else "a straight line"
    axes.plot(line, model.predict_proba({name: line})[:, 1], color=colour, label=f"{said}: AUC {area:.2f}")
edges = np.quantile(x[name], np.linspace(0.0, 1.0, 13))
bins = np.clip(np.searchsorted(edges, x[name], side="right") - 1, 0, 11)
shares = [np.mean(diagnosis[bins == one] == "malignant") for one in range(12)]
middles = [x[name][bins == one].mean() for one in range(12)]
axes.plot(middles, shares, "o", color="#777777", label="shares in the table, not private")
axes.set(xlabel=name, ylabel="probability of malignant", ylim=(0.0, 1.0))
axes.legend(frameon=False)
figure.savefig(sys.argv[1], dpi=150)
