"""Objective perturbation with several classes, from plan to exact losses."""

import math
from dataclasses import replace

import numpy as np
import pytest
from problems import design_of, rows_in_ball
from scipy import stats
from test_vector_objective import classes_of, written_out

from expost import Plan
from expost.exceptions import DomainError
from expost.fitting.ex_post import ex_post_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import SeededNoise
from expost.fitting.private_fit import plausible, recover
from expost.fitting.statistics import draw
from expost.losses import SoftmaxLoss
from expost.privacy.plan import row_radius
from expost.privacy.precision import Precision, Rounding, statistic_grid
from expost.privacy.scales import NoiseScales


def plan_of(loss, *, sigma=2.0, l2=1.0, fit_intercept=True, report="independent", printed=True, **scales):
    radius = row_radius(1.0, fit_intercept=fit_intercept)
    curvature = loss.curve.max_curvature * radius**2
    precision = Precision.choose(
        Rounding.planned(1.0, curvature=curvature),
        sigma=sigma,
        l2=l2,
        curvature=curvature,
        radius=radius,
        rows_at_most=10**7,
    )
    return Plan(
        loss=loss,
        norm=1.0,
        fit_intercept=fit_intercept,
        report=report,
        calibration="tight",
        epsilon=math.inf,
        delta=1e-6,
        l2=l2,
        scales=NoiseScales(sigma, **scales),
        precision=precision if printed else None,
    )


@pytest.mark.parametrize("loss", [SoftmaxLoss(3), SoftmaxLoss(4, cap=0.6)], ids=str)
@pytest.mark.parametrize("printed", [True, False], ids=["printed", "real"])
def test_the_release_is_the_minimiser_and_the_losses_are_recovered_from_it(loss, printed):
    rng = np.random.default_rng(1)
    X = rows_in_ball(rng, 300, 4)
    y, design = classes_of(rng, X, loss.classes), design_of(X, fit_intercept=True)
    plan = plan_of(loss, printed=printed)
    release, private = perturb(plan, design.labelled(y), noise=SeededNoise(3))
    assert release.plan.precision == plan.precision
    assert release.coefficients.shape == (loss.outputs * 5,)
    if printed:
        steps = release.coefficients / plan.grid
        np.testing.assert_array_equal(steps, np.rint(steps))
    rounding = 0.125 * plan.solver_radius * plan.l2 if printed else math.inf
    tilt = SeededNoise(3).tilt(plan.sigma, loss.outputs * 5, rounding=rounding).rounded
    A = np.column_stack([X, np.ones(300)])
    gradient, hessian = written_out(loss, A, y, release.coefficients, plan.l2)
    np.testing.assert_allclose(gradient, -tilt, rtol=0, atol=1e-6)
    np.testing.assert_allclose(private.hessian, hessian, rtol=1e-9, atol=1e-9)
    again = recover(release, design.labelled(y))
    assert plausible(again)
    for member in (True, False):
        kept = ex_post_terms(private, design.labelled(y), loss, member=member).loss
        np.testing.assert_allclose(
            ex_post_terms(again, design.labelled(y), loss, member=member).loss, kept, rtol=1e-8, atol=1e-11
        )


@pytest.mark.parametrize("printed", [True, False], ids=["printed", "real"])
def test_a_noisy_gradient_and_a_noisy_hessian_have_the_shape_of_the_coefficients(printed):
    rng = np.random.default_rng(2)
    loss, X = SoftmaxLoss(3), rows_in_ball(rng, 200, 3)
    y, design = rng.integers(0, 3, 200).astype(float), design_of(X)
    scales = {"sigma_gradient": 1e-6, "sigma_hessian": 1e-6}
    plan = plan_of(loss, fit_intercept=False, report="dependent", printed=printed, **scales)
    release, private = perturb(plan, design.labelled(y), noise=SeededNoise(4))
    assert release.gradient.shape == (6,)
    np.testing.assert_allclose(release.gradient, private.gradient, rtol=0, atol=1e-5)
    np.testing.assert_allclose(release.hessian, private.hessian, rtol=0, atol=1e-5)


@pytest.mark.parametrize("printed", [True, False], ids=["printed", "real"])
def test_the_reduced_statistics_are_those_of_the_smallest_masses(printed):
    rng = np.random.default_rng(3)
    loss, X = SoftmaxLoss(4, cap=0.7), rows_in_ball(rng, 200, 3)
    y, weights = rng.integers(0, 4, 200).astype(float), rng.uniform(0.0, 1.0, 200)
    scales = {"sigma_gradient": 1e-6, "sigma_hessian": 1e-6, "sigma_eigenvalue": 1e-6}
    plan = plan_of(loss, fit_intercept=False, report="adaptive", printed=printed, **scales)
    plan = replace(plan, reduced=True)
    release, private = perturb(plan, design_of(X).labelled(y, weights), noise=SeededNoise(4))
    masses = weights * loss.smallest_mass(X @ release.coefficients.reshape(3, 3).T, y)
    truth = plan.l2 * np.eye(3) + (X.T * masses) @ X
    np.testing.assert_allclose(release.hessian, truth, rtol=0, atol=1e-5)
    assert release.eigenvalue == pytest.approx(np.linalg.eigvalsh(truth)[0], abs=1e-5)
    np.testing.assert_allclose(release.gradient, private.gradient, rtol=0, atol=1e-5)
    # One matrix of the features for every predictor is below the whole Hessian.
    assert np.linalg.eigvalsh(private.hessian - np.kron(np.eye(3), truth))[0] >= -1e-6
    assert plan.entries(9) == 9 + 6 + 1
    assert replace(plan, reduced=False).entries(9) == 9 + 45 + 1


def test_the_noise_of_a_reduced_hessian_is_that_of_a_smaller_ensemble():
    """Variances of the draws of every entry, two-sided, at 1e-6 over all of them."""
    loss = SoftmaxLoss(4)
    plan = plan_of(loss, fit_intercept=False, report="leverage", sigma_hessian=0.7)
    plan, noise, draws = replace(plan, reduced=True), SeededNoise(7), 4000
    steps = np.array([draw(plan, 9, noise)["hessian"] for _ in range(draws)])
    entries = steps * statistic_grid(0.7) / 0.7
    rows, columns = np.triu_indices(3)
    assert entries.shape == (draws, 6)
    square = np.sum(entries**2, axis=0) / np.where(rows == columns, 2.0, 1.0)
    tail = 2.0 * np.minimum(stats.chi2.sf(square, draws), stats.chi2.cdf(square, draws))
    assert tail.min() >= 1e-6 / 6


@pytest.mark.parametrize("label", [-1.0, 3.0, 0.5, np.nan])
def test_labels_that_are_no_classes_are_refused(label):
    X, y = np.full((4, 2), 0.1), np.array([0.0, 1.0, 2.0, label])
    with pytest.raises(DomainError, match="labels outside"):
        perturb(plan_of(SoftmaxLoss(3), fit_intercept=False), design_of(X).labelled(y), noise=SeededNoise(0))


def test_a_table_with_other_columns_is_refused():
    rng = np.random.default_rng(2)
    X, y = rows_in_ball(rng, 50, 3), rng.integers(0, 3, 50).astype(float)
    release, _ = perturb(
        plan_of(SoftmaxLoss(3)), design_of(X, fit_intercept=True).labelled(y), noise=SeededNoise(1)
    )
    with pytest.raises(
        DomainError, match=r"of the 8 coefficients.* 2 columns and an intercept, which is last, there are 6"
    ):
        recover(release, design_of(X[:, :2], fit_intercept=True).labelled(y))
