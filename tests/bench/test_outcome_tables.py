"""The comparison of counts, amounts and quantiles scores as scikit-learn does, and descends as it says."""

import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss, mean_tweedie_deviance

from bench.outcome_tables import AMOUNTS, CHOSEN_ON, COUNTS, NUMBERS
from bench.outcomes import KINDS, Slopes, mean_deviance

LEVELS = {"counts": None, "amounts": None, "quantiles": 0.9}


@pytest.mark.parametrize("kind", KINDS)
def test_deviances_are_scikit_learns(kind):
    rng = np.random.default_rng(0)
    y = rng.poisson(3.0, 50).astype(float) + (kind != "counts")
    predicted = rng.gamma(2.0, 1.5, (50, 3))
    theirs = {
        "counts": lambda found: mean_tweedie_deviance(y, found, power=1),
        "amounts": lambda found: mean_tweedie_deviance(y, found, power=2),
        "quantiles": lambda found: mean_pinball_loss(y, found, alpha=0.9),
    }
    ours = mean_deviance(y, predicted, kind=kind, level=LEVELS[kind])
    np.testing.assert_allclose(ours, [theirs[kind](column) for column in predicted.T], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_are_derivatives_of_the_deviance(kind):
    """Half of the deviance's, by central differences; the pinball loss's own."""
    rng = np.random.default_rng(1)
    y, eta, level = rng.gamma(2.0, 1.0, 40), rng.normal(0.5, 0.7, 40), LEVELS[kind]
    problem = Slopes(np.zeros((1, 1)), y, 1.0, False, kind, level)

    def value(predictor, one):
        shown = predictor if kind == "quantiles" else np.exp(predictor)
        found = mean_deviance(np.array([one]), np.array([[shown]]), kind=kind, level=level)[0]
        return found if kind == "quantiles" else 0.5 * found

    step = 1e-6
    numeric = [
        (value(e + step, one) - value(e - step, one)) / (2 * step) for e, one in zip(eta, y, strict=True)
    ]
    np.testing.assert_allclose(problem.slopes(eta, y), numeric, rtol=1e-6, atol=1e-8)


def test_half_of_the_tables_of_each_kind_are_held_out():
    assert all(len(tables) == 2 * CHOSEN_ON for tables in (COUNTS, AMOUNTS, NUMBERS))
