"""The minimiser of convex objectives, and what a fit refuses."""

import numpy as np
import pandas as pd
import pytest
from convex_losses import CONVEX, AsConvex, draw_records
from scipy import optimize, sparse
from test_convex_ex_post import as_seen, opened, plan_of

from expost import LocationScale, PseudoHuber, SmoothedNorm
from expost.exceptions import DomainError, SolverError
from expost.fitting.mechanism import perturb
from expost.fitting.noise import ExactNoise, SeededNoise


@pytest.mark.parametrize("loss", CONVEX, ids=str)
def test_the_fit_minimises_the_sum_of_the_losses(loss):
    rng = np.random.default_rng(0)
    X, y = draw_records(loss, rng, 200)
    plan = plan_of(loss, sigma=1e-9, l2=2.0)
    release, private = perturb(plan, opened(loss, X, y), noise=ExactNoise())
    records = as_seen(loss, X, y)

    def objective(theta):
        return loss.value(theta, records).sum() + theta @ theta

    found = optimize.minimize(objective, np.zeros(loss.n_parameters), method="BFGS", options={"gtol": 1e-6}).x
    np.testing.assert_allclose(release.coefficients, found, atol=1e-5)
    # Double precision holds the gradient to about rounding.
    assert private.gradient_norm <= 1e-10
    assert not release.insecure


@pytest.mark.parametrize("loss", CONVEX, ids=str)
def test_the_gradient_at_the_release_is_minus_the_noise(loss):
    rng = np.random.default_rng(1)
    X, y = draw_records(loss, rng, 30)
    plan = plan_of(loss, sigma=50.0, l2=0.01)  # noise that pushes the parameters far away
    _, private = perturb(plan, opened(loss, X, y), noise=SeededNoise(7))
    tilt = 50.0 * np.random.RandomState(7).standard_normal(loss.n_parameters)
    np.testing.assert_allclose(private.gradient, -tilt, rtol=1e-9, atol=1e-9)


@pytest.mark.long
def test_noise_has_the_planned_scale():
    """``∇J = -b``: its squared norm over σ² is chi-squared; two-sided, a false-alarm rate of 1e-6."""
    from scipy import stats

    loss, fits = SmoothedNorm(3), 200
    records = opened(loss, np.zeros((4, 3)), None)
    total = sum(
        np.sum(perturb(plan_of(loss), records, noise=SeededNoise(seed))[1].gradient ** 2)
        for seed in range(fits)
    )
    law = stats.chi2(3 * fits, scale=plan_of(loss).sigma ** 2)
    assert law.ppf(5e-7) < total < law.isf(5e-7)


def test_location_and_scale_are_found():
    rng = np.random.default_rng(2)
    loss = LocationScale(low=0.0, high=120.0)
    X = rng.normal(70.0, 6.0, size=(50_000, 1))
    release, _ = perturb(plan_of(loss, sigma=1e-9, l2=1e-3), opened(loss, X, None), noise=SeededNoise(0))
    # 5.2 standard errors of 0.0274 and 0.0195 (the sandwich formula): a false alarm of 4e-7 for both.
    location, scale = loss.location_and_scale(release.coefficients)
    assert location == pytest.approx(70.0, abs=5.2 * 0.0274)
    assert scale == pytest.approx(6.0, abs=5.2 * 0.0195)
    # With a tenth of the numbers at the end of the range it moves less than half as much as the mean.
    X[:5000] = 120.0
    release, _ = perturb(plan_of(loss, sigma=1e-9, l2=1e-3), opened(loss, X, None), noise=SeededNoise(0))
    assert loss.location_and_scale(release.coefficients)[0] - 70.0 < 0.5 * (X.mean() - 70.0)


def test_the_kind_of_table_does_not_matter():
    rng = np.random.default_rng(3)
    loss = SmoothedNorm(3)
    X = rng.normal(size=(40, 3)) * (rng.random((40, 3)) < 0.5)
    kinds = (X, X.tolist(), np.asfortranarray(X), sparse.csr_array(X), pd.DataFrame(X, columns=list("abc")))
    fits = [
        perturb(plan_of(loss), opened(loss, kind, None), noise=SeededNoise(0))[0].coefficients
        for kind in kinds
    ]
    for other in fits[1:]:
        np.testing.assert_allclose(other, fits[0], rtol=1e-12)


def test_records_outside_the_set_count_as_brought_into_it():
    loss = SmoothedNorm(2)
    far, near = np.array([[30.0, 40.0], [0.1, 0.2]]), np.array([[0.6, 0.8], [0.1, 0.2]])
    first, second = (
        perturb(plan_of(loss), opened(loss, X, None), noise=SeededNoise(0))[0].coefficients
        for X in (far, near)
    )
    np.testing.assert_allclose(first, second, rtol=1e-12)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.full((3, 2), np.nan), None, "finite"),
        (np.full((3, 2), np.inf), None, "finite"),
        (np.zeros((3, 5)), None, "must have 2 columns"),
        (np.zeros((0, 2)), None, "at least one row"),
        (np.zeros((3, 2)), np.zeros(3), "has no labels"),
    ],
)
def test_tables_that_do_not_fit_are_refused(X, y, message):
    loss = SmoothedNorm(2)
    with pytest.raises(DomainError, match=message):
        perturb(plan_of(loss), opened(loss, X, y), noise=SeededNoise(0))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y"),
        (np.zeros(2), "one label per row"),
        (np.array([0.0, 4321.5, 0.0]), "outside"),
        (["a"] * 3, "y"),
    ],
)
def test_labels_that_do_not_fit_are_refused(y, message):
    with pytest.raises(DomainError, match=message) as caught:
        opened(CONVEX[2], np.zeros((3, 2)), y)
    assert "4321" not in str(caught.value)


def test_a_minimum_that_is_not_reached_releases_nothing():
    class Wrong(AsConvex):
        def factor(self, theta, records):
            return np.zeros_like(super().factor(theta, records))

        def gradient(self, theta, records):
            return np.sign(super().gradient(theta, records))

    loss = Wrong(PseudoHuber(0.1), 1)
    with pytest.raises(SolverError, match="check_convex_loss"):
        perturb(plan_of(loss, l2=1e-3), opened(loss, np.ones((30, 1)), np.zeros(30)), noise=SeededNoise(0))
