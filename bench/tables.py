"""The benchmarks' tables, with a constant column for the intercept and all rows in the unit ball."""

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from bench import declared
from expost.cli.demonstration import bundled_domain
from papers import datasets


@dataclass(frozen=True)
class Split:
    """A table for fitting and one for testing."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def scale_by_bounds(X):
    """The breast-cancer data, from its public bounds to [-1, 1] and then with rows in the unit ball."""
    domain = bundled_domain()
    columns = {feature.name: X[:, place] for place, feature in enumerate(domain.features)}
    return domain.encode(columns) / domain.longest_row


def _encoded(fit, judge):
    return Split(
        fit.name,
        fit.rows(intercept=True),
        fit.labels().astype(int),
        judge.rows(intercept=True),
        judge.labels().astype(int),
    )


def credit():
    """Default of credit card clients, with four fifths of them for fitting."""
    return _encoded(*declared.credit())


def adult():
    """Census income, with the published parts for training and testing."""
    return _encoded(*declared.adult())


def kidney():
    """Chronic kidney disease, with four fifths of the patients for fitting."""
    return _encoded(*datasets.kidney().split(0.8, seed=0))


def good_wine(part):
    """Whether wines of one colour have a grade of 6 or better, with four fifths of them for fitting."""
    fit, judge = datasets.wine(part).split(0.8, seed=0)
    good = [np.asarray(one.outcome, dtype=float) >= 6.0 for one in (fit, judge)]
    rows = [one.rows(intercept=True) for one in (fit, judge)]
    return Split(f"good wine, {part}", rows[0], good[0].astype(int), rows[1], good[1].astype(int))


def digits():
    """Handwritten digits that scikit-learn ships, 3 against 8, with 70% for fitting; pixels from 0 to 16."""
    data = load_digits()
    chosen = np.isin(data.target, (3, 8))
    X, y = _with_constant(data.data[chosen] / 8.0 - 1.0, 64.0), (data.target[chosen] == 8).astype(int)
    order = np.random.default_rng(0).permutation(len(y))
    fit, judge = np.split(order, [int(0.7 * len(y))])
    return Split("digits 3/8", X[fit], y[fit], X[judge], y[judge])


def breast_cancer():
    """The Wisconsin breast-cancer data that scikit-learn ships."""
    X, y = load_breast_cancer(return_X_y=True)
    X = _with_constant(scale_by_bounds(X) * np.sqrt(30.0), 30.0)
    order = np.random.default_rng(0).permutation(len(y))
    fit, judge = np.split(order, [int(0.7 * len(y))])
    return Split("breast cancer", X[fit], y[fit], X[judge], y[judge])


def synthetic(n=5000, d=50, seed=0):
    """Directions on the sphere with labels from a logistic model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    logit = 3.0 * np.sqrt(d) * (X @ (rng.normal(size=d) / np.sqrt(d)))
    y = (rng.random(2 * n) < 1.0 / (1.0 + np.exp(-logit))).astype(int)
    X = _with_constant(X, 1.0)
    return Split(f"synthetic n={n} d={d}", X[:n], y[:n], X[n:], y[n:])


def _with_constant(features, largest):
    """Append the constant column and divide by the largest norm that the bounds allow."""
    return np.column_stack([features, np.ones(len(features))]) / np.sqrt(largest + 1.0)
