"""Several outcomes of the same people: five models with one budget, and what they really cost each person.

The table is invented, so its exact losses may be shown. Those of a real table are for the curator alone.

Run it: python examples/gallery/several_outcomes.py several_outcomes.png
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.multioutput import MultiOutputClassifier

import expost

ILLNESSES = ("asthma", "diabetes", "gout", "migraine", "sleep apnoea")
random = np.random.default_rng(11)
X = random.uniform(-0.5, 0.5, (4000, 4))  # rows of norm at most 1, a public fact
rates = 1 / (1 + np.exp(1.5 - 4.0 * X @ random.normal(size=(4, 5))))
ill = random.random((4000, 5)) < rates
one = expost.LogisticRegression(epsilon=1.0, delta=1e-6, models=5, norm=1.0, classes=[False, True])
models = MultiOutputClassifier(one).fit(X, ill).estimators_
terms = [model.ex_post_losses(X, ill[:, k], return_terms=True) for k, model in enumerate(models)]
# The models are independent given the table: the loss of all together is the sum of signed losses.
losses = [np.abs(each.signed) for each in terms] + [np.abs(sum(each.signed for each in terms))]

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
for row, values in enumerate(losses):
    together = row == len(ILLNESSES)
    heights = row + random.uniform(-0.28, 0.28, len(values))
    axes.scatter(values, heights, s=2, color="#0072B2" if together else "#999999", rasterized=True)
    promise = 1.0 if together else models[row].plan_.epsilon
    axes.plot([promise, promise], [row - 0.4, row + 0.4], color="#D55E00", linewidth=3)
axes.annotate("promised", (0.98, len(ILLNESSES)), ha="right", va="center", color="#D55E00")
axes.set(xlabel="exact loss of a patient (log-odds)", xlim=(0, 1.08), yticks=range(6))
axes.set_yticklabels([*ILLNESSES, "all five"])
axes.invert_yaxis()
figure.savefig(sys.argv[1], dpi=150)
