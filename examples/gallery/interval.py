"""A reader's interval: what each person can know of her own loss, from the published file and her record.

The dots are what each really lost. No reader sees them. All forty intervals hold at once with confidence 95%.

Run it: python examples/gallery/interval.py interval.png
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import expost

rng = np.random.default_rng(1)
records = rng.uniform(-0.5, 0.5, size=(20_000, 4))
labels = (records[:, 0] + 0.2 * rng.normal(size=20_000) > 0).astype(int)
model = expost.LogisticRegression(epsilon=1.0, norm=1.0, classes=[0, 1], report="leverage").fit(
    records, labels
)
people, theirs = records[:40], labels[:40]
mine = model.publication_.bounds(people, theirs, confidence=0.95, simultaneous=40, member=True)
exact = model.ex_post_losses(people, theirs)
order = np.argsort(mine.upper)

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
place = np.arange(1, 41)
low, high = mine.lower[order], mine.upper[order]
axes.vlines(place, low, high, color="#9AD0F0", linewidth=6, label="her interval (95% for all forty)")
axes.plot(place, exact[order], "o", color="#0072B2", markersize=3, label="what she really lost (private)")
axes.set(xlabel="forty people, by what they can know", ylabel="privacy loss (log-odds)", ylim=(0, None))
axes.legend(frameon=False, loc="upper left")
figure.savefig(sys.argv[1], dpi=150)
