"""The defaults serve a new user: regression explains most of what ridge explains, without tuning."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV

import expost

# Round numbers from what the quantities are.
BOUNDS = {
    "age": (18, 90), "sex": (1, 2), "bmi": (15, 45), "bp": (60, 140), "s1": (80, 320), "s2": (30, 250),
    "s3": (20, 100), "s4": (1, 10), "s5": (3, 6.5), "s6": (50, 130),
}  # fmt: skip


@pytest.mark.long
def test_linear_regression_comes_close_to_ridge_on_a_small_table():
    """Median R² of three seeded draws, on the rows that were fitted; a width of 1 explains much less."""
    data = load_diabetes(scaled=False)
    table = dict(zip(data.feature_names, data.data.T, strict=True))
    domain = expost.Domain(
        features=tuple(expost.Number(name=name, low=low, high=high) for name, (low, high) in BOUNDS.items()),
        label=expost.NumberLabel(name="progression", low=0.0, high=350.0),
    )
    rows = domain.encode(table)
    ridge = RidgeCV(np.logspace(-3, 3, 13)).fit(rows, data.target).score(rows, data.target)

    def score(**changes):
        models = [expost.LinearRegression(domain=domain, random_state=seed, **changes) for seed in range(3)]
        return np.median([model.fit(table, data.target).score(table, data.target) for model in models])

    default = score()
    assert default > ridge - 0.08
    assert score(threshold=1.0) < default - 0.1
