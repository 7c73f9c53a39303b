"""Bounds of models of quantiles, counts and amounts fail no more often than they say.

For every report, membership and scope, as in ``test_coverage``: binomial limits with a false-alarm rate of
1e-6 over all comparisons of one problem.
"""

from dataclasses import replace

import numpy as np
import pytest
from oracle import Problem
from problems import rows_in_ball, with_scales
from test_coverage import FAILURES, FITS, KINDS, misses, too_often

import expost


def outcomes(rng, mean):
    """Outcomes with the long tails of real ones: some are beyond what a loss takes in proportion."""
    return {
        "quantile": np.log(mean) + 0.3 * rng.standard_t(2, len(mean)),
        "count": np.minimum(rng.poisson(mean * rng.gamma(1.0, 1.0, len(mean))), 8.0),
        "amount": mean * rng.lognormal(0.0, 1.0, len(mean)),
    }


LOSSES = {
    "quantile": expost.SmoothedPinball(0.8, 0.2),
    "count": expost.BoundedPoisson(8.0, 1.5),
    "amount": expost.BoundedGamma(0.6),
}


def problem(name, report):
    rng = np.random.default_rng(31)
    X = rows_in_ball(rng, 30, 3)
    X[::2] /= np.linalg.norm(X[::2], axis=1, keepdims=True)  # on the boundary of the ball
    y = np.asarray(outcomes(rng, np.exp(X @ np.array([1.0, -0.7, 0.3])))[name], dtype=float)
    return Problem(X, y, 20, LOSSES[name], report=report, epsilon=2.0, delta=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("report", KINDS)
@pytest.mark.parametrize(
    ("fits", "failures"),
    [(FITS // 5, FAILURES[:1]), pytest.param(FITS, FAILURES, marks=pytest.mark.slow)],
)
def test_no_bound_fails_more_often_than_it_says(name, report, fits, failures):
    assert too_often(misses(problem(name, report), range(fits), failures=failures)) == []


class Overstated(Problem):
    """A publication that says that it has twice the noise that was drawn."""

    def fit(self, seed):
        release, private = super().fit(seed)
        stated = with_scales(self.plan, sigma=2.0 * self.plan.sigma)
        return replace(release, plan=stated), private


@pytest.mark.parametrize("name", [pytest.param("quantile", marks=pytest.mark.slow), "count", "amount"])
def test_bounds_by_noise_that_was_not_drawn_fail_the_same_test(name):
    honest = problem(name, "independent")
    lying = Overstated(
        np.concatenate([honest.X[True], honest.X[False]]),
        np.concatenate([honest.y[True], honest.y[False]]),
        20,
        honest.loss,
        plan=honest.plan,
    )
    assert too_often(misses(lying, range(FITS // 10), failures=FAILURES[:1], knowledge=(True,)))
