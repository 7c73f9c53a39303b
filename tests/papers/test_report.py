"""The paper's report: its formulas, that it is sound, and that the library's own is never above it."""

from dataclasses import replace

import numpy as np
import pytest
from grids import grid
from problems import CASES, rows_in_ball
from scipy import stats

import expost
from expost import research
from papers.redberg_wang_2021.report import EVENTS, Records, determinant_bound, goe_quantile, paper_report

KINDS = ("independent", "leverage", "dependent", "adaptive")
BOUNDED = [case for case in CASES if np.isfinite(case.loss.curve.max_slope)]
Release = research.Release


def records_of(rows, kappa):
    """Records of slope 1 and of these curvatures."""
    return Records(rows, np.linalg.norm(rows, axis=1), np.ones(len(rows)), kappa)


@pytest.mark.parametrize("kind", KINDS)
def test_its_events_are_the_noise_of_the_objective_of_the_hessian_and_of_the_gradient(kind):
    """The smallest eigenvalue goes with the Hessian."""
    scales = expost.calibrate(epsilon=1.0, report=kind).scales
    assert EVENTS[kind] == 1 + (scales.sigma_hessian is not None) + (scales.sigma_gradient is not None)


@pytest.mark.parametrize(("kind", "member"), grid(KINDS, [True, False, None], together=1))
def test_ours_is_never_above_the_papers(kind, member):
    rng = np.random.default_rng(0)
    X, y = rows_in_ball(rng, 300, 4), rng.integers(0, 2, 300)
    for l2 in (2.0, 60.0):
        plan = expost.calibrate(epsilon=1.0, l2=l2, report=kind, fit_intercept=True)
        for seed in range(5):
            release, _ = research.draw(plan, X[:250], y[:250], random_state=seed)
            for confidence in (0.8, 0.95, 0.9999):
                options = {"member": member, "confidence": confidence}
                ours = research.bounds(release, X, y, **options)
                theirs = research.bounds(release, X, y, report=paper_report, **options)
                assert np.all(ours.upper <= theirs.upper * (1 + 1e-9))
                assert np.all(theirs.lower == 0.0)
                np.testing.assert_allclose(theirs.report_cost, ours.report_cost, rtol=1e-12)


@pytest.mark.parametrize(("case", "kind"), grid(BOUNDED, KINDS, together=1), ids=str)
def test_the_true_loss_lies_below_at_overwhelming_confidence(case, kind):
    """At a failure probability of 1e-12 per record a miss is a bug, not chance."""
    rng = np.random.default_rng(1)
    X, y = rows_in_ball(rng, 200, 3), case.labels(rng, 200)
    plan = expost.calibrate(loss=case.loss, epsilon=1.0, l2=4.0, report=kind)
    for seed in range(3):
        release, private = research.draw(plan, X[:150], y[:150], random_state=seed)
        for member, some in ((True, slice(150)), (False, slice(150, None))):
            truth = research.losses(release, private, X[some], y[some], member=member).loss
            got = research.bounds(release, X[some], y[some], report=paper_report, confidence=1 - 1e-12)
            assert np.all(truth <= got.upper)
            assert np.all(got.upper <= got.total)


@pytest.mark.parametrize(
    ("kind", "l2", "noisy", "eigenvalue", "estimate"),
    [
        ("leverage", 2.0, 4.5, None, lambda floor, margin: floor * 4.5 / (floor + margin)),
        ("leverage", 1.0, 4.5, None, None),
        ("adaptive", 0.1, 4.5, 1.8, lambda floor, margin: floor * 4.5 / (floor + margin)),
        ("adaptive", 0.1, 4.5, 0.5, lambda floor, margin: floor * (4.5 + margin) / (floor + 2.0 * margin)),
        ("adaptive", 0.1, -0.1, 0.5, lambda floor, margin: floor * (margin - 0.1) / (floor + 2.0 * margin)),
        ("adaptive", 0.1, -9.0, 0.5, None),
    ],
)
def test_the_papers_determinant_is_its_formula(kind, l2, noisy, eigenvalue, estimate):
    """One coefficient: the largest eigenvalue of the GOE is then a normal variable of variance 2."""
    scales = {"sigma": 4.0, "sigma_hessian": 0.2}
    if kind == "adaptive":
        scales |= {"sigma_gradient": 4.0, "sigma_eigenvalue": 0.1}
    plan = expost.calibrate(report=kind, l2=l2, norm=1.0, fit_intercept=False, **scales)
    release = Release(
        replace(plan, precision=None), np.zeros(1), hessian=np.array([[noisy]]), eigenvalue=eigenvalue
    )
    share, rows, kappa = 0.02, np.array([[1.0], [-0.5]]), np.array([0.05, 0.25])
    margin = np.sqrt(2.0) * stats.norm.isf(0.5 * share) * 0.2
    floor = l2 if eigenvalue is None else max(l2, eigenvalue - 0.1 * stats.norm.isf(share))
    lowest = floor if estimate is None else max(floor, estimate(floor, margin))
    got = determinant_bound(release, records_of(rows, kappa), share)
    np.testing.assert_allclose(got, -np.log1p(-kappa * rows[:, 0] ** 2 / lowest), rtol=1e-7)


@pytest.mark.parametrize(("lowest", "raised"), [(-0.1, True), (-9.0, False)])
def test_the_papers_adaptive_estimator_needs_only_its_raised_matrix_to_be_definite(lowest, raised):
    scales = {"sigma": 4.0, "sigma_gradient": 4.0, "sigma_hessian": 0.2, "sigma_eigenvalue": 0.1}
    plan = expost.calibrate(report="adaptive", l2=0.1, norm=1.0, fit_intercept=False, **scales)
    release = Release(
        replace(plan, precision=None), np.zeros(2), hessian=np.diag([lowest, 9.0]), eigenvalue=0.5
    )
    share, kappa = 0.02, np.full(2, 0.25)
    margin, floor = goe_quantile(2, 0.5 * share) * 0.2, 0.5 - 0.1 * stats.norm.isf(share)
    got = determinant_bound(release, records_of(np.eye(2), kappa), share)
    second = floor * (9.0 + margin) / (floor + 2.0 * margin) if raised else floor
    np.testing.assert_allclose(got, -np.log1p(-0.25 / np.array([floor, second])), rtol=1e-9)
