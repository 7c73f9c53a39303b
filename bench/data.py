"""The experiments' tables, encoded by public constants alone.

Files are looked for in the folder named by ``EXPOST_DATA``, else in ``shared/data`` beside the checkout.
Bounds and categories are written down from the data sets' documentation; nothing is computed from the rows.
Every row, its constant column for the intercept included, lies in the unit ball.
"""

import csv
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

from expost.demo import scale_by_bounds

CREDIT = {
    "LIMIT_BAL": (0.0, 500_000.0),
    "EDUCATION": (0.0, 6.0),
    "AGE": (20.0, 80.0),
    # Months of delay; the codes of zero and below all mean that there was none.
    **{f"PAY_{month}": (0.0, 8.0) for month in (0, 2, 3, 4, 5, 6)},
    **{f"BILL_AMT{month}": (0.0, 500_000.0) for month in range(1, 7)},
    **{f"PAY_AMT{month}": (0.0, 50_000.0) for month in range(1, 7)},
}
# Columns of the Adult files: age, years of education, capital gain, capital loss, hours per week.
ADULT_NUMBERS = {0: (17.0, 90.0), 4: (1.0, 16.0), 10: (0.0, 20_000.0), 11: (0.0, 3_000.0), 12: (0.0, 80.0)}
ADULT_CATEGORIES = {
    1: """Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay
          Never-worked""",
    3: """Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters
          1st-4th 10th Doctorate 5th-6th Preschool""",
    5: """Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent
          Married-AF-spouse""",
    6: """Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners
          Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv
          Armed-Forces""",
    7: "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    8: "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    9: "Female Male",
}


@dataclass(frozen=True)
class Split:
    """A table for fitting and one for judging."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def folder():
    """Where the data sets lie, or nothing."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    place = Path(os.environ.get("EXPOST_DATA", beside))
    return place if place.is_dir() else None


def _ball(features, largest):
    """Append the constant column and divide by the largest norm that the bounds allow."""
    return np.column_stack([features, np.ones(len(features))]) / np.sqrt(largest + 1.0)


def _shuffled(name, X, y, share=0.8):
    order = np.random.default_rng(0).permutation(len(y))
    cut = int(share * len(y))
    return Split(name, X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]])


def credit():
    """Default of credit card clients: 21 features, all but ID, SEX and MARRIAGE."""
    with open(folder() / "credit_default.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    values = np.array([[float(row[name]) for name in CREDIT] for row in rows])
    low, high = np.array(list(CREDIT.values())).T
    scaled = 2.0 * np.clip((values - low) / (high - low), 0.0, 1.0) - 1.0
    y = np.array([int(row["default payment next month"]) for row in rows])
    return _shuffled("credit", _ball(scaled, len(CREDIT)), y)


def adult():
    """Census income, with the parts for training and testing as published."""

    def read(name):
        with open(folder() / name, encoding="utf-8") as file:
            rows = [[cell.strip() for cell in line.split(",")] for line in file]
        rows = [row for row in rows if len(row) == 15]
        columns = []
        for column, (low, high) in ADULT_NUMBERS.items():
            values = np.array([float(row[column]) for row in rows])
            columns.append(np.clip((values - low) / (high - low), 0.0, 1.0)[:, None])
        for column, names in ADULT_CATEGORIES.items():
            values = np.array([row[column] for row in rows])
            columns.append((values[:, None] == np.array(names.split())).astype(float))
        features = _ball(np.hstack(columns), len(ADULT_NUMBERS) + len(ADULT_CATEGORIES))
        return features, np.array([row[14].startswith(">50K") for row in rows]).astype(int)

    return Split("adult", *read("adult.data"), *read("adult.test"))


def breast_cancer():
    """The Wisconsin breast-cancer data that scikit-learn ships."""
    X, y = load_breast_cancer(return_X_y=True)
    return _shuffled("breast cancer", _ball(scale_by_bounds(X) * np.sqrt(30.0), 30.0), y, share=0.7)


def synthetic(n=5000, d=50, seed=0):
    """Directions on the sphere with labels from a logistic model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    logit = 3.0 * np.sqrt(d) * (X @ (rng.normal(size=d) / np.sqrt(d)))
    y = (rng.random(2 * n) < 1.0 / (1.0 + np.exp(-logit))).astype(int)
    X = _ball(X, 1.0)
    return Split(f"synthetic n={n} d={d}", X[:n], y[:n], X[n:], y[n:])
