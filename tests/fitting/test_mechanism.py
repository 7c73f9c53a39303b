"""The mechanism adds the noise that the plan states, once, and releases nothing when it fails."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from problems import CASES, design_of, rows_in_ball
from scipy import stats

from expost import calibrate
from expost.exceptions import DomainError, PrivateStateError, SolverError
from expost.fitting import mechanism
from expost.fitting.mechanism import perturb
from expost.fitting.noise import NoiseSource, SeededNoise, Tilt


def noise_passes(noise, sigma, level=1e-6):
    """Whether recovered noise looks like N(0, sigma² I); false alarm at most ``level`` in all.

    Kolmogorov-Smirnov in every coordinate, over all coordinates pooled, and on the squared norm (which is
    where a wrong scale shows first), and Fisher's z for each pair of coordinates; Bonferroni over them all.
    """
    fits, d = noise.shape
    white = noise / sigma
    pairs = np.corrcoef(white.T)[np.triu_indices(d, 1)]
    share = level / (d + 2 + len(pairs))
    p_values = [stats.kstest(column, "norm").pvalue for column in white.T]
    p_values.append(stats.kstest(white.ravel(), "norm").pvalue)
    p_values.append(stats.kstest(np.sum(white**2, axis=1), "chi2", args=(d,)).pvalue)
    correlated = np.abs(np.arctanh(pairs)) * np.sqrt(fits - 3) > stats.norm.isf(share / 2)
    return min(p_values) > share and not correlated.any()


@pytest.fixture(scope="module", params=[400, pytest.param(2000, marks=pytest.mark.slow)])
def recovered(request):
    """Minus the gradient at the released point, over many fits."""
    rng = np.random.default_rng(11)
    X, y = rows_in_ball(rng, 40, 20), CASES[0].labels(rng, 40)
    plan = calibrate(loss="logistic", sigma=3.0, l2=0.5)
    design = design_of(X)
    source = SeededNoise(rng)
    fits = [perturb(plan, design.labelled(y), noise=source)[1] for _ in range(request.param)]
    assert all(fit.gradient_norm <= max(1e-10 * (1 + 3.0 * np.sqrt(20)), fit.floor) for fit in fits)
    return np.array([-fit.gradient for fit in fits])


@pytest.mark.long
def test_the_recovered_noise_is_the_noise_of_the_plan(recovered):
    assert noise_passes(recovered, sigma=3.0)


@pytest.mark.long
@pytest.mark.parametrize("side", [-1, 1])
def test_the_same_test_rejects_a_scale_that_is_off(recovered, side):
    """By a tenth after 400 fits, by a twentieth after 2000."""
    off = 0.1 if len(recovered) < 2000 else 0.05
    assert not noise_passes(recovered, sigma=3.0 * (1 + side * off))


def test_the_same_test_rejects_correlated_noise(recovered):
    share = 0.25 if len(recovered) < 2000 else 0.1
    mixed = recovered.copy()
    mixed[:, 0] = np.sqrt(1 - share) * recovered[:, 0] + np.sqrt(share) * recovered[:, 1]
    assert not noise_passes(mixed, sigma=3.0)


class CountingNoise(NoiseSource):
    insecure = True

    def __init__(self):
        self.calls = 0

    def tilt(self, sigma, size, *, rounding=np.inf):
        self.calls += 1
        return Tilt((np.zeros(size),), 0.0)

    def integers(self, scales):
        self.calls += 1
        return [0] * len(scales)

    def below(self, bound):
        self.calls += 1
        return 0


@pytest.fixture
def small():
    rng = np.random.default_rng(0)
    X, y = rows_in_ball(rng, 30, 3), CASES[0].labels(rng, 30)
    return design_of(X, fit_intercept=True), y


def test_a_poor_solver_is_refined_with_the_same_noise(small, monkeypatch):
    """Where the solver stops early, the certificate goes on with the same noise, to the same point."""
    design, y = small
    plan = calibrate(loss="logistic", fit_intercept=True)
    exact, _ = perturb(plan, design.labelled(y), noise=CountingNoise())
    solve = mechanism.minimize
    monkeypatch.setattr(
        mechanism, "minimize", lambda objective, tolerance, **_: solve(objective, tolerance=1.0)
    )
    noise = CountingNoise()
    release, _ = perturb(plan, design.labelled(y), noise=noise)
    assert noise.calls == 2  # the objective's noise and the output's
    np.testing.assert_allclose(release.coefficients, exact.coefficients, rtol=0, atol=2 * plan.solver_radius)


def test_without_proved_errors_a_failing_solver_releases_nothing(small, monkeypatch):
    design, y = small
    solve = mechanism.minimize
    monkeypatch.setattr(
        mechanism, "minimize", lambda objective, tolerance, **_: solve(objective, tolerance=1.0)
    )
    noise = CountingNoise()
    plan = replace(calibrate(loss="logistic", fit_intercept=True), precision=None)
    with pytest.raises(SolverError, match="nothing is released"):
        perturb(plan, design.labelled(y), noise=noise)
    assert noise.calls == 1


def test_bad_labels_are_refused_before_anything_is_drawn(small):
    design, y = small
    noise = CountingNoise()
    with pytest.raises(DomainError, match=r"labels outside \{0, 1\}"):
        perturb(calibrate(loss="logistic", fit_intercept=True), design.labelled(y + 0.5), noise=noise)
    assert noise.calls == 0


def test_the_private_part_cannot_be_shown_pickled_or_copied(small):
    design, y = small
    _, private = perturb(
        calibrate(loss="logistic", fit_intercept=True), design.labelled(y), noise=CountingNoise()
    )
    assert repr(private) == "PrivateFit(withheld)"
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(PrivateStateError, match="never leaves memory"):
            leave(private)


def test_the_released_coefficients_cannot_be_changed(small):
    design, y = small
    release, _ = perturb(
        calibrate(loss="logistic", fit_intercept=True), design.labelled(y), noise=CountingNoise()
    )
    with pytest.raises(ValueError, match="read-only"):
        release.coefficients[0] = 0.0
