"""Extreme but accepted parameters: every table is released, whatever digits that takes."""

import numpy as np
import pytest
from problems import design_of, rows_in_ball

import expost
from expost import LogisticLoss, PseudoHuber, SmoothedHinge
from expost.data.design import Design
from expost.exceptions import CalibrationError, DomainError, ParameterError
from expost.fitting.certified.bound import ExactProblem
from expost.fitting.ex_post import ex_post_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import SeededNoise
from expost.fitting.private_fit import check_inputs


def table(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rows_in_ball(rng, n, d), rng.integers(0, 2, n).astype(float)


@pytest.mark.parametrize("norm", [1e-30, 1e-9, 1e9, 1e18, 5e18, 1e30])
@pytest.mark.parametrize("report", ["independent", "adaptive"])
def test_norms_beyond_single_precision_are_fitted(norm, report):
    """Hessians of long rows leave the range of single precision, for more rows sooner than for fewer."""
    X, y = table(1500)
    plan = expost.calibrate(norm=norm, report=report)
    release, private = perturb(plan, design_of(norm * X, norm=norm).labelled(y), noise=SeededNoise(1))
    assert np.all(np.isfinite(release.coefficients))
    assert np.all(
        np.isfinite(
            ex_post_terms(private, design_of(norm * X, norm=norm).labelled(y), plan.loss, member=True).loss
        )
    )


@pytest.mark.parametrize("sigma_hessian", [1e-3, 1e-9, 1e-15])
@pytest.mark.parametrize("n", [100, 700])
def test_precise_statistics_of_many_rows_are_released(sigma_hessian, n):
    """A Hessian with less noise than plain doubles resolve is taken again, in as many digits as it needs."""
    X, y = table(n)
    plan = expost.calibrate(
        report="leverage", sigma=30.0, l2=3e-8, sigma_hessian=sigma_hessian, rows_at_most=100
    )
    release, private = perturb(plan, design_of(X).labelled(y), noise=SeededNoise(1))
    scale = max(sigma_hessian, 1e-9)
    np.testing.assert_allclose(release.hessian, private.hessian, rtol=1e-4, atol=20 * scale)


@pytest.mark.parametrize(
    "loss", [SmoothedHinge(1e-6), PseudoHuber(1e-9), PseudoHuber(1e9), LogisticLoss()], ids=str
)
def test_sharp_and_wide_losses_are_fitted(loss):
    X, y = table(50)
    labels = 2 * y - 1 if isinstance(loss, SmoothedHinge) else y
    plan = expost.calibrate(loss=loss)
    release, _ = perturb(plan, design_of(X).labelled(labels), noise=SeededNoise(1))
    assert np.all(np.isfinite(release.coefficients))


def test_parameters_that_leave_no_room_for_printed_digits_are_refused():
    with pytest.raises(CalibrationError, match="too small for printed numbers"):
        expost.calibrate(epsilon=60.0, l2=1e-24)
    with pytest.raises(CalibrationError, match="leave no room for printed digits"):
        expost.calibrate(loss="squared", sigma=1e-200, l2=1e200)
    with pytest.raises(ParameterError, match="`rows_at_most` must be at most 1e15"):
        expost.calibrate(rows_at_most=10**400)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-8, 1e-3, 50.0, 1e3])
def test_budgets_of_every_size_are_fitted(epsilon):
    X, y = table()
    plan = expost.calibrate(epsilon=epsilon)
    assert plan.delta_at(epsilon) <= 1e-6
    release, _ = perturb(plan, design_of(X).labelled(y), noise=SeededNoise(0))
    assert np.all(release.coefficients / plan.grid == np.rint(release.coefficients / plan.grid))


def test_the_classical_recipe_is_certified_for_printed_numbers_or_refused():
    with pytest.raises(CalibrationError, match="does not pay for printed numbers"):
        expost.calibrate(calibration="kifer2012", split=[0.01, 0.99], report="leverage", rows_at_most=10**13)
    plan = expost.calibrate(calibration="kifer2012", split=[0.5, 0.5], report="leverage")
    assert plan.delta_at(1.0) <= 1e-6


def test_the_rows_of_a_certificate_are_those_of_the_design():
    X, y = table(30)
    problem = ExactProblem(design_of(X).labelled(y), LogisticLoss(), 1.0, 1.0, (np.zeros(3),))
    (counted,) = problem.rows.sweep(lambda blocks: sum(len(labels) for _, labels, *_ in blocks))
    assert counted == 30


def test_a_release_of_too_many_numbers_is_refused_before_the_table_is_read():
    plan = expost.calibrate(report="leverage")
    with pytest.raises(
        DomainError, match=r"at most 131072 coefficients and 4194304 numbers; this one would have 3000"
    ):
        check_inputs(plan, Design(3000, 1.0, intercept=False), None)
    check_inputs(expost.calibrate(), Design(2**17, 1.0, intercept=False), None)
    with pytest.raises(DomainError, match=r"this one would have 131073 and 131073\. Use fewer features"):
        check_inputs(expost.calibrate(), Design(2**17 + 1, 1.0, intercept=False), None)
