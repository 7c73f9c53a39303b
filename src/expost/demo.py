"""The whole story on data that ships with scikit-learn, with bounds written down by hand."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

from expost._files import written_whole
from expost._typing import FloatArray
from expost.estimators import LogisticRegression

# Upper bounds of ten measurements of a cell nucleus, for their mean, standard error and worst value: round
# numbers written down from what the quantities are, not computed from the table. Lower bounds are all zero.
BOUNDS = {
    "radius": (30.0, 3.0, 40.0),
    "texture": (40.0, 5.0, 50.0),
    "perimeter": (200.0, 25.0, 250.0),
    "area": (2500.0, 500.0, 4000.0),
    "smoothness": (0.2, 0.03, 0.25),
    "compactness": (0.4, 0.15, 1.0),
    "concavity": (0.5, 0.4, 1.25),
    "concave points": (0.25, 0.05, 0.3),
    "symmetry": (0.3, 0.08, 0.7),
    "fractal dimension": (0.1, 0.03, 0.2),
}


@dataclass(frozen=True)
class Demonstration:
    """A fitted model with the exact losses of everyone in its table; the losses are private."""

    model: LogisticRegression
    losses: FloatArray


def scale_by_bounds(X: FloatArray) -> FloatArray:
    """Map each feature from its public bounds to [-1, 1], then every row into the unit ball."""
    upper = np.array([bounds[kind] for kind in range(3) for bounds in BOUNDS.values()])
    centred = 2.0 * np.clip(X / upper, 0.0, 1.0) - 1.0
    scaled: FloatArray = centred / np.sqrt(len(upper))
    return scaled


def demonstrate(*, epsilon: float, delta: float) -> Demonstration:
    """Fit on the breast-cancer data and compute what the release cost each of its people.

    Privacy
    -------
    Spends the budget once. ``model`` may be published, ``losses`` may not.
    """
    X, y = load_breast_cancer(return_X_y=True)
    rows = scale_by_bounds(X)
    model = LogisticRegression(epsilon=epsilon, delta=delta, norm=1.0, classes=[0, 1]).fit(rows, y)
    return Demonstration(model, model.ex_post_losses(rows, y))


def write_losses(path: Path, losses: Iterable[float]) -> None:
    """Write a file of exact losses, marked PRIVATE, whole or not at all."""
    with written_whole(path) as file:
        file.write("# PRIVATE: exact privacy losses, computed from everyone's records. Never publish.\n")
        writer = csv.writer(file)
        writer.writerow(["row", "ex_post_loss"])
        writer.writerows(enumerate(losses))
