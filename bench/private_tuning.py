r"""DP-GD whose setting is tuned within the budget: a random number of trials, of which the best is released.

Papernot and Steinke (2022), "Hyperparameter tuning with Rényi differential privacy", Theorem 2. One trial
draws a setting at random, fits a model and says with noise how good it is: two Gaussian releases, together
one of shift s, whose Rényi divergence of order a is a s²/2. If K trials are made, K of the logarithmic
distribution (the truncated negative binomial one with η = 0) with rate γ, and the best by its own word is
released, the divergence is at most

    a s²/2 + (b - 1) s²/2 + log(1/γ) / b + log E[K] / (a - 1)    for any b ≥ 1.

With a Poisson number of trials of the same mean (their Theorem 6) each trial would get a smaller shift.
"""

import math
from dataclasses import replace
from functools import cache

import numpy as np
from scipy.optimize import brentq

from expost import gaussian

# The mean number of trials, and the share of a trial's squared shift by which it says how good it is.
TRIALS, SHARE = 10.0, 0.1
# The orders of divergences at which the cost is read.
ORDERS = 1.0 + np.geomspace(1e-2, 1e4, 400)
# log(1/γ) for the mean number of trials.
LOG_RATE = float(brentq(lambda log: math.expm1(log) / log - TRIALS, 1e-3, 50.0))


def epsilon_of(shift, delta):
    """The epsilon of the best of a random number of trials of this shift."""
    order = max(1.0, math.sqrt(2.0 * LOG_RATE) / shift)
    divergence = 0.5 * (ORDERS + order - 1.0) * shift**2 + LOG_RATE / order
    divergence += math.log(TRIALS) / (ORDERS - 1.0)
    # Canonne, Kamath and Steinke (2020), Proposition 12.
    at_delta = np.log1p(-1.0 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1.0)
    return float(np.min(divergence + at_delta))


@cache
def shift_within(epsilon, delta):
    """The shift that one trial may have."""
    largest = 1.0 / gaussian.sigma(epsilon, delta)
    return float(brentq(lambda shift: epsilon_of(shift, delta) - epsilon, 1e-3 * largest, largest))


def tuned_privately(release, cost, few, draws, delta, seed):
    """The coefficients that each draw releases, the last axis.

    Parameters
    ----------
    release
        ``release([setting], draws, seed)``: coefficients, settings and draws the last axes.
    cost
        The sum over the rows for fitting of what a model costs, between 0 and 1 for each row, one per column.
    few
        The settings, all with the epsilon of the whole.
    """
    (epsilon,) = {setting.epsilon for setting in few}
    shift, rng = shift_within(epsilon, delta), np.random.default_rng(seed)
    # The epsilon at which one Gaussian release has the noise that a trial's fit has.
    inner = gaussian.epsilon(delta, sensitivity=shift * math.sqrt(1.0 - SHARE), sigma=1.0)
    draw = np.repeat(np.arange(draws), rng.logseries(-math.expm1(-LOG_RATE), draws))
    setting = rng.integers(len(few), size=len(draw))
    noise = rng.standard_normal(len(draw)) / (shift * math.sqrt(SHARE))
    found, best = None, np.full(draws, math.inf)
    for place, one in enumerate(few):
        (own,) = np.nonzero(setting == place)
        if len(own) == 0:
            continue
        models = release([replace(one, epsilon=float(inner))], len(own), seed + 1 + place)[..., 0, :]
        found = np.zeros((*models.shape[:-1], draws)) if found is None else found
        for column, said in enumerate(cost(models) + noise[own]):
            target = draw[own[column]]
            if said < best[target]:
                best[target], found[..., target] = said, models[..., column]
    return found
