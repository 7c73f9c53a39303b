"""Draw the figures of README and docs: `make figures`."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from expost.demo import demonstrate

HERE = Path(__file__).parent.parent / "docs" / "figures"
# Okabe and Ito's palette, told apart by every kind of colour vision.
BLUE, ORANGE = "#0072B2", "#D55E00"


def losses() -> None:
    """The exact losses of the demonstration against the worst case that it promises."""
    shown = demonstrate(epsilon=1.0, delta=1e-6)
    values, worst = shown.losses, shown.model.plan_.epsilon
    figure, axes = plt.subplots(figsize=(8, 3.6), dpi=150)
    axes.hist(values, bins=np.linspace(0, 1.05 * worst, 106), color=BLUE, label="exact loss of each person")
    axes.axvline(worst, color=ORANGE, linewidth=3, label="worst case promised to everyone")
    axes.annotate(
        f"half of the people\nlost less than {np.median(values):.3f}",
        xy=(float(np.median(values)), 0.55),
        xycoords=("data", "axes fraction"),
        xytext=(0.3, 0.62),
        textcoords="axes fraction",
        arrowprops={"arrowstyle": "->"},
        fontsize=13,
    )
    axes.set_xlabel("privacy loss (log-odds)", fontsize=14)
    axes.set_ylabel("people", fontsize=14)
    axes.tick_params(labelsize=12)
    axes.legend(fontsize=13, frameon=False, loc="upper center", bbox_to_anchor=(0.6, 1.0))
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(HERE / "losses.png")


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    losses()
