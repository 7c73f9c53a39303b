"""Draw the figures of README and docs: `make figures`."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import expost
from expost.demo import scale_by_bounds

HERE = Path(__file__).parent.parent / "docs" / "figures"
# Okabe and Ito's palette, told apart by every kind of colour vision.
BLUE, ORANGE, SKY = "#0072B2", "#D55E00", "#9AD0F0"


def losses() -> None:
    """Everyone's exact loss, the published interval for it, and the worst case that was promised."""
    X, y = load_breast_cancer(return_X_y=True)
    X = scale_by_bounds(X)
    # A seed so that the figure repeats itself; the data are public.
    model = expost.LogisticRegression(classes=[0, 1], report="leverage", random_state=0).fit(X, y)
    exact = model.ex_post_losses(X, y)
    bounds = model.publication_.bounds(X, y, confidence=0.95, member=True)
    order = np.argsort(bounds.upper)
    people = np.arange(1, len(order) + 1)
    figure, axes = plt.subplots(figsize=(8, 4), dpi=150)
    axes.fill_between(
        people,
        bounds.lower[order],
        bounds.upper[order],
        color=SKY,
        linewidth=0,
        label="what each can know from the published file (95%)",
    )
    axes.plot(people, exact[order], ".", color=BLUE, markersize=4, label="what each really lost (private)")
    worst = model.plan_.epsilon
    axes.axhline(worst, color=ORANGE, linewidth=3, label="worst case promised to everyone")
    axes.set_xlim(1, len(order))
    axes.set_ylim(0, 1.38 * worst)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0])
    axes.set_xlabel("the 569 people in the data, by what they can know", fontsize=14)
    axes.set_ylabel("privacy loss (log-odds)", fontsize=14)
    axes.tick_params(labelsize=12)
    axes.legend(fontsize=12, frameon=False, loc="upper left", markerscale=3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(HERE / "losses.png")


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    losses()
