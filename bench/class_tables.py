"""The tables of several classes on which models are compared, each mapped to [-1, 1] by declared bounds.

Bounds are round numbers from what the quantities are; none was computed from the rows. Longer rows than
``norm``, the default of a domain, are scaled down to it by the models.
"""

import math
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine

from papers import datasets

# Seven tenths of a table for fitting, as elsewhere.
SHARE, SEED = 0.7, 0
# The quantities of the wine data in the order of its columns.
WINE = {
    "alcohol": (10.0, 16.0),
    "malic acid": (0.0, 6.0),
    "ash": (1.0, 4.0),
    "alcalinity of ash": (10.0, 30.0),
    "magnesium": (70.0, 170.0),
    "phenols": (0.0, 4.0),
    "flavanoids": (0.0, 6.0),
    "other phenols": (0.0, 1.0),
    "proanthocyanins": (0.0, 4.0),
    "intensity of colour": (0.0, 15.0),
    "hue": (0.0, 2.0),
    "optical density": (1.0, 4.0),
    "proline": (200.0, 1800.0),
}
IRIS = {"sepal length": (4.0, 8.0), "sepal width": (2.0, 5.0), "petal length": (0.0, 8.0)}
IRIS["petal width"] = (0.0, 3.0)
# Grades of wine up to the first count as poor, from the second on as good.
GRADES = (5.0, 7.0)
ROWS, TEST_ROWS, FEATURES, CLASSES = 20_000, 10_000, 100, 10


@dataclass(frozen=True)
class ClassTable:
    """A table of features in [-1, 1] and of classes 0, 1, ..., in a part for fitting and one for testing."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    classes: int

    @property
    def norm(self):
        """The default of :class:`expost.Domain` for as many features."""
        return max(1.0, math.sqrt(0.5 * self.X.shape[1]))


def digits():
    """Handwritten digits, 8 x 8 pixels from 0 to 16."""
    bunch = load_digits()
    return _split(bunch.data / 8.0 - 1.0, bunch.target, 10)


def wine():
    """Wines of three growers that scikit-learn ships."""
    bunch = load_wine()
    return _split(_scaled(bunch.data, WINE), bunch.target, 3)


def iris():
    """Three kinds of iris."""
    bunch = load_iris()
    return _split(_scaled(bunch.data, IRIS), bunch.target, 3)


def wine_quality():
    """White wines that tasters found poor, middling or good."""
    table = datasets.wine("white")
    grades = np.asarray(table.outcome, dtype=float)
    features = table.domain.encode(table.columns)
    return _split(features, (grades > GRADES[0]).astype(int) + (grades >= GRADES[1]), 3)


def synthetic():
    """Uniform features, and classes of a softmax model of them all."""
    rng = np.random.default_rng(SEED)
    X = rng.uniform(-1.0, 1.0, size=(ROWS + TEST_ROWS, FEATURES))
    scores = X @ rng.normal(scale=0.7, size=(FEATURES, CLASSES))
    y = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    return ClassTable(X[:ROWS], y[:ROWS], X[ROWS:], y[ROWS:], CLASSES)


# Neither today's defaults nor settings of gradient descent were chosen on these.
HELD_OUT = ("digits", "synthetic")
TABLES = {
    "digits": digits,
    "synthetic": synthetic,
    "wine": wine,
    "wine quality": wine_quality,
    "iris": iris,
}


def _scaled(values, bounds):
    low, high = np.array(list(bounds.values())).T
    return np.clip(2.0 * (values - low) / (high - low) - 1.0, -1.0, 1.0)


def _split(X, y, classes):
    order = np.random.default_rng(SEED).permutation(len(y))
    fit, judge = np.split(order, [int(SHARE * len(y))])
    return ClassTable(X[fit], y[fit], X[judge], y[judge], classes)
