"""The comparison with peers fits, reads and scores every model of ours, and others beside it."""

import math

import pytest

from bench.comparison import EPSILONS, Comparison
from bench.declared import TABLES


def scores(table, figure, *models):
    found = Comparison(*TABLES[table](), draws=1).run(table, frozenset(models))
    assert all(set(by_epsilon) == set(EPSILONS) for by_epsilon in found.values())
    return {name: [by_epsilon[at][figure] for at in EPSILONS] for name, by_epsilon in found.items()}


@pytest.mark.long
def test_classes_are_read_as_published_numbers_say():
    found = scores("digits 1/7", "log_loss", "plain", "ours", "recalibrated", "fixed", "private")
    assert all(math.isfinite(one) for losses in found.values() for one in losses)
    assert found["plain"][-1] < found["recalibrated"][-1] < found["ours"][-1] < math.log(2.0)


@pytest.mark.long
def test_regressions_stand_between_the_mean_and_the_model_without_privacy():
    found = scores("diabetes", "r2", "plain", "ours", "adassp", "ssp")
    assert all(math.isfinite(one) for shares in found.values() for one in shares)
    assert 0.0 < found["ours"][-1] < found["plain"][-1]
