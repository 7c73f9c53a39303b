"""Tuning within the budget: its accounting against the law of the best trial, and what is released."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from bench.private_tuning import LOG_RATE, SHARE, TRIALS, epsilon_of, shift_within, tuned_privately
from bench.rivals import Descent
from expost import gaussian

BUDGETS = ((0.1, 1e-6), (1.0, 1e-6), (8.0, 1e-6), (1.0, 1e-3))


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_best_of_the_trials_keeps_the_budget(epsilon, delta, sign):
    """Trials that say nothing but how good they are: the hockey-stick divergence by quadrature."""
    shift, share = shift_within(epsilon, delta), -math.expm1(-LOG_RATE)

    def density(value, mean):
        # The largest of K: K has the generating function log(1 - share u) / log(1 - share).
        law = math.exp(-0.5 * (value - mean) ** 2) / math.sqrt(2.0 * math.pi)
        return law * share / ((1.0 - share * ndtr(value - mean)) * LOG_RATE)

    def excess(value):
        return max(0.0, density(value, sign * shift) - math.exp(epsilon) * density(value, 0.0))

    found, _ = quad(excess, -12.0, 14.0, limit=800, points=[-4.0, 0.0, 4.0])
    assert found <= delta


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS[:3])
def test_trials_spend_the_budget_and_each_less_than_one_release(epsilon, delta):
    shift = shift_within(epsilon, delta)
    assert epsilon_of(shift, delta) == pytest.approx(epsilon, rel=1e-6)
    # docs/comparison.md says how much more noise a trial's fit has than one fit alone.
    assert 1.55 < 1.0 / (shift * math.sqrt(1.0 - SHARE) * gaussian.sigma(epsilon, delta)) < 2.1


def test_the_mean_number_of_trials():
    share = -math.expm1(-LOG_RATE)
    assert share / ((1.0 - share) * LOG_RATE) == pytest.approx(TRIALS, rel=1e-9)


def test_the_better_setting_wins_where_the_noise_is_small():
    """Two settings, one of which costs a thousand more: it is released where no other was tried."""
    few = [Descent(8.0, 1, 1.0, rate, 0.0) for rate in (1.0, 2.0)]

    def release(settings, draws, seed):
        (setting,) = settings
        assert setting.epsilon < 8.0  # a trial has less than the whole
        return np.full((3, 1, draws), setting.rate)

    found = tuned_privately(release, lambda models: 1000.0 * (models[0] - 1.0), few, 4000, 1e-6, 0)
    assert found.shape == (3, 4000)
    # The other one is left where all trials have it: E[2^-K] = log(1 - share/2) / log(1 - share).
    alone = -math.log1p(0.5 * math.expm1(-LOG_RATE)) / LOG_RATE
    assert np.mean(found[0] == 2.0) == pytest.approx(alone, abs=5.0 * math.sqrt(alone / 4000))
