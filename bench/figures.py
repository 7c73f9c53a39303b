"""Draw the figure of the README: `make figures`."""

from pathlib import Path

from sklearn.datasets import load_breast_cancer

import expost
from bench.tables import scale_by_bounds
from expost.cli.demonstration import draw_intervals

HERE = Path(__file__).parent.parent / "docs" / "figures"
CONFIDENCE = 0.95


def main() -> None:
    """Everyone's exact loss, the published interval for it, and the worst case that was promised."""
    X, y = load_breast_cancer(return_X_y=True)
    X = scale_by_bounds(X)
    # A seed makes the figure reproducible; the data are public, so the losses may be shown.
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], report="leverage", random_state=0).fit(X, y)
    bounds = model.publication_.bounds(X, y, confidence=CONFIDENCE, member=True)
    losses = model.ex_post_losses(X, y)
    draw_intervals(HERE / "losses.png", losses, bounds, model.plan_.epsilon, CONFIDENCE)
    (HERE / "losses.png").chmod(0o644)


if __name__ == "__main__":
    main()
