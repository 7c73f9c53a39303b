"""What the third round of attacks found, item by item; each test is one line of the list.

Figures:    4 a limit on the number of rows
Doors:      7 workers that never check their arithmetic
Experts:    11 budgets that memory burns
Constants:  16 numbers that no test noticed
"""

import mpmath as mp
import numpy as np
import pytest
from problems import design_of, rows_in_ball

import expost
from expost.fitting.mechanism import perturb
from expost.fitting.noise import ExactNoise, SeededNoise
from expost.fitting.statistics import measure
from expost.privacy.precision import statistic_grid

# A limit on the number of rows


@pytest.mark.parametrize("report", ["leverage", "dependent", "adaptive"])
def test_04a_neighbours_are_not_told_apart_by_their_number(report):
    """Eight times `rows_at_most` was released, and one more refused."""
    X, y = rows_in_ball(np.random.default_rng(0), 81, 3), np.arange(81.0) % 2
    plan = expost.calibrate(report=report, rows_at_most=10)
    for n in (80, 81):
        release, _ = perturb(plan, design_of(X[:n]).labelled(y[:n]), noise=SeededNoise(0))
        assert release.hessian is not None


@pytest.mark.parametrize("sigma", [1.0, 1e-15])
def test_04b_statistics_of_any_number_of_rows_have_their_stated_error(sigma, monkeypatch):
    """2,000 times `rows_at_most`, where a double is too short, against 60 digits at the exact minimiser."""
    n = 2000
    X, y = 0.9 * rows_in_ball(np.random.default_rng(1), n, 2), np.arange(float(n)) % 2
    plan = expost.calibrate(
        report="adaptive",
        sigma=3.0,
        l2=0.5,
        sigma_gradient=1.0,
        sigma_hessian=sigma,
        sigma_eigenvalue=sigma,
        rows_at_most=1,
    )
    measured, drawn = {}, []

    def measure_and_tell(*arguments, **keywords):
        measured.update(measure(*arguments, **keywords))
        return measured

    class Told(ExactNoise):
        def tilt(self, *arguments, **keywords):
            drawn.append(super().tilt(*arguments, **keywords))
            return drawn[0]

    monkeypatch.setattr("expost.fitting.mechanism.measure", measure_and_tell)
    perturb(plan, design_of(X).labelled(y), noise=Told())
    with mp.workdps(60):
        tilt = [mp.fsum(parts) for parts in zip(*(part.tolist() for part in drawn[0].parts), strict=True)]
        truth = logistic_hessian(X, y, tilt, plan.l2)
        grid = mp.mpf(statistic_grid(sigma))
        a, b, c = (count * grid for count in measured["hessian"])
        error = sigma * plan.rounding.error("hessian", sigma)
        assert mp.mnorm(truth - mp.matrix([[a, b], [b, c]]), "f") <= error
        smallest = min(mp.eigsy(truth, eigvals_only=True))
        assert abs(smallest - measured["eigenvalue"][0] * grid) <= error


def logistic_hessian(X, y, tilt, l2):
    """Of the objective at its minimiser, by Newton's method in as many digits as are set."""
    rows = [mp.matrix(row.tolist()) for row in X]
    theta = mp.zeros(X.shape[1], 1)
    for _ in range(12):
        gradient, hessian = mp.matrix(tilt) + l2 * theta, l2 * mp.eye(X.shape[1])
        for x, label in zip(rows, y.tolist(), strict=True):
            p = 1 / (1 + mp.exp(-(x.T * theta)[0]))
            gradient += (p - label) * x
            hessian += p * (1 - p) * x * x.T
        theta -= mp.lu_solve(hessian, gradient)
    return hessian
