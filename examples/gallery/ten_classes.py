"""Ten classes: handwritten digits, told apart by one private model at three budgets.

Run it: python examples/gallery/ten_classes.py ten_classes.png
"""

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import expost

# Three budgets are compared on a table that is public; a real one would be given an account.
warnings.simplefilter("ignore", expost.exceptions.UncountedWarning)

pixels, digits = load_digits(return_X_y=True)
pixels = pixels / 16
train, test = slice(None, 1200), slice(1200, None)

figure, panels = plt.subplots(1, 3, figsize=(7, 2.9), layout="constrained", sharey=True)
for axes, epsilon in zip(panels, [0.3, 1.0, 4.0], strict=True):
    model = expost.LogisticRegression(epsilon=epsilon, norm=4.0, classes=list(range(10)))
    guessed = model.fit(pixels[train], digits[train]).predict(pixels[test])
    counts = np.zeros((10, 10))
    np.add.at(counts, (digits[test], guessed), 1)
    drawn = axes.imshow(counts, cmap="Blues", vmin=0, vmax=65)
    axes.set(title=f"ε = {epsilon:g}: {np.mean(guessed == digits[test]):.0%} right", xlabel="guessed")
    axes.set(xticks=range(10), yticks=range(10))
panels[0].set_ylabel("digit")
figure.colorbar(drawn, ax=panels, label="digits of the test", shrink=0.75)
figure.savefig(sys.argv[1], dpi=150)
