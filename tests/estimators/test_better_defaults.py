"""Models by default are no worse than under one cap on slopes, or with one width, at the same promise."""

import numpy as np
import pytest

from bench import class_tables
from bench.comparison import DELTA, Comparison
from bench.declared import TABLES
from bench.multiclass import ClassComparison
from expost.privacy.shapes import capped_logistic, default_threshold
from papers.datasets import DataUnavailable

EPSILONS = (0.1, 1.0, 8.0)
# How much worse a model may be in the mean of the draws: of the AUC or accuracy, of log-loss and of R².
AUC, LOG_LOSS, R2 = 0.003, 0.005, 0.003
DRAWS = 40


def slope_cap(epsilon):
    """The default before gradients had a cap."""
    return {"cap": capped_logistic(epsilon, DELTA).cap}


def compared(load, epsilon, draws, before):
    """Scores by default less those as before, draw by draw with the same noise."""
    try:
        comparison = load(draws)
    except DataUnavailable as error:
        pytest.skip(str(error))
    new, old = (
        comparison.score(comparison.coefficients(epsilon, **options)) for options in ({}, before(epsilon))
    )
    return {score: new[score] - old[score] for score in new}


def declared(name):
    return lambda draws: Comparison(*TABLES[name](), draws)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", ["kidney", "breast cancer", "election"])
def test_two_classes(name, epsilon):
    change = compared(declared(name), epsilon, DRAWS, slope_cap)
    assert np.mean(change["auc"]) >= -AUC
    assert np.mean(change["log_loss"]) <= LOG_LOSS


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", ["iris", "wine quality"])
def test_three_classes(name, epsilon):
    def load(draws):
        return ClassComparison(class_tables.TABLES[name](), draws)

    change = compared(load, epsilon, DRAWS, slope_cap)
    assert np.mean(change["accuracy"]) >= -AUC
    assert np.mean(change["log_loss"]) <= LOG_LOSS


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", ["diabetes", "doctor visits"])
def test_regressions(name, epsilon):
    change = compared(declared(name), epsilon, DRAWS, lambda at: {"threshold": default_threshold(at, DELTA)})
    assert np.mean(change["r2"]) >= -R2


def test_a_few_draws():
    """Ten draws of one table, seeded: both scores are better."""
    change = compared(declared("breast cancer"), 0.3, 10, slope_cap)
    assert np.mean(change["auc"]) > 0.0
    assert np.mean(change["log_loss"]) < 0.0
