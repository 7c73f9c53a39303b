"""A bound of a convex model fails no more often than it says."""

import itertools

import numpy as np
import pytest
from convex_losses import AsConvex, draw_records
from problems import design_of, rows_in_ball
from scipy import stats

import expost
from expost import LipschitzPoisson, LocationScale, PseudoHuber, SmoothedNorm
from expost.data.convex import open_records
from expost.exceptions import ParameterError
from expost.fitting.ex_post import ex_post_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import SeededNoise
from expost.fitting.release import Release
from expost.privacy.plan import ConvexPlan
from expost.reports import evaluate

FITS = 200
LOSSES = [
    SmoothedNorm(2, smoothing=0.3),
    LipschitzPoisson(features=2, largest=10.0),
    LocationScale(),
]


@pytest.mark.long
@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("fits", [30, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_bound_fails_more_often_than_it_says(loss, fits):
    """Seeded fits against the binomial law at the stated rate, with a false-alarm rate of 1e-6 in all."""
    rng = np.random.default_rng(0)
    X, y = draw_records(loss, rng, 12)
    sides = {
        True: open_records(X[:8], None if y is None else y[:8], loss),
        False: open_records(X[8:], None if y is None else y[8:], loss),
    }
    plan = ConvexPlan.of(loss, epsilon=1.0, delta=1e-6, l2=1.0, sigma=0.8 * loss.max_gradient)
    keys = list(itertools.product((True, False), (True, False), (None, "n", "all"), (0.2, 0.05)))
    missed = {key: [] for key in keys}
    for seed in range(fits):
        release, private = perturb(plan, sides[True], noise=SeededNoise(seed))
        truth = {side: ex_post_terms(private, sides[side], loss, member=side).loss for side in sides}
        for side, known, scope, failure in keys:
            bounds = evaluate(
                release,
                sides[side],
                confidence=1.0 - failure,
                member=side if known else None,
                simultaneous=sides[side].n_rows if scope == "n" else scope,
            )
            assert np.all(bounds.lower <= bounds.upper)
            assert np.array_equal(bounds.total, bounds.upper)
            assert not bounds.report_cost.any()
            loss_of = truth[side]
            missed[side, known, scope, failure].append((loss_of > bounds.upper) | (loss_of < bounds.lower))
    comparisons = sum(len(missed[key][0]) if key[2] is None else 1 for key in keys)
    for key, found in missed.items():
        counts = np.sum(found, axis=0) if key[2] is None else np.sum(np.any(found, axis=1))
        assert np.all(counts <= stats.binom.isf(1e-6 / comparisons, fits, key[3])), key


@pytest.mark.long
def test_the_quantile_of_the_noise_is_attained():
    """The gradient of one record at zero is parallel to the noise: χ with three degrees is the exact law."""
    loss, failure = SmoothedNorm(3), 0.2
    plan = ConvexPlan.of(loss, epsilon=1.0, delta=1e-6, l2=4.0, sigma=2.0)
    records = open_records(np.zeros((1, 3)), None, loss)
    beyond = 0
    for seed in range(FITS):
        release, private = perturb(plan, records, noise=SeededNoise(seed))
        terms = ex_post_terms(private, records, loss, member=True)
        upper = evaluate(release, records, confidence=1.0 - failure, member=True).upper[0]
        eigenvalues = np.linalg.eigvalsh(loss.hessian(release.coefficients, np.zeros((1, 3)))[0])
        reach = upper - np.sum(np.log1p(eigenvalues / plan.l2)) - terms.quadratic[0]
        beyond += abs(terms.inner_product[0]) > reach
    # Two-sided, with a false-alarm rate of 1e-6.
    low, high = stats.binom.ppf(5e-7, FITS, failure), stats.binom.isf(5e-7, FITS, failure)
    assert low <= beyond <= high


@pytest.mark.parametrize("member", [True, False, None])
@pytest.mark.parametrize("simultaneous", [None, 40])
def test_a_linear_predictor_has_the_bounds_of_its_own_report(member, simultaneous):
    rng = np.random.default_rng(1)
    X, y, inner = rows_in_ball(rng, 40, 3), rng.normal(size=40), PseudoHuber(0.6)
    theta = rng.normal(size=3)
    plan = expost.calibrate(loss=inner, sigma=2.0, l2=1.5)
    plan = type(plan)(**{**plan.__dict__, "precision": None})  # no output noise
    truth = evaluate(Release(plan, theta), design_of(X).labelled(y), member=member, simultaneous=simultaneous)
    convex = AsConvex(inner, 3)
    release = Release(ConvexPlan.of(convex, epsilon=1.0, delta=1e-6, l2=1.5, sigma=2.0), theta)
    seen = evaluate(release, open_records(X, y, convex), member=member, simultaneous=simultaneous)
    np.testing.assert_allclose(seen.upper, truth.upper, rtol=1e-9)
    np.testing.assert_allclose(seen.lower, truth.lower, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(seen.total, truth.total, rtol=1e-9)


def test_wider_claims_have_wider_bounds():
    loss = SmoothedNorm(4)
    records = open_records(np.random.default_rng(2).normal(size=(5, 4)), None, loss)
    release = Release(ConvexPlan.of(loss, epsilon=1.0, delta=1e-6, l2=5.0, sigma=3.0), np.full(4, 0.1))
    narrow = evaluate(release, records, member=True)
    assert np.all(narrow.upper < evaluate(release, records, member=True, simultaneous=100).upper)
    assert np.all(narrow.upper < evaluate(release, records, member=True, confidence=0.999).upper)
    assert np.all(narrow.upper <= evaluate(release, records).upper)
    # All gradients of a record span every direction here, so "all" asks for no more than one record does.
    everyone = evaluate(release, records, member=True, simultaneous="all")
    np.testing.assert_allclose(everyone.upper, narrow.upper)


@pytest.mark.parametrize(
    "wrong", [{"confidence": 1.0}, {"member": "yes"}, {"simultaneous": 2}, {"simultaneous": "none"}]
)
def test_wrong_questions_are_refused(wrong):
    loss = SmoothedNorm(1)
    release = Release(ConvexPlan.of(loss, epsilon=1.0, delta=1e-6, l2=5.0, sigma=3.0), np.zeros(1))
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        evaluate(release, open_records(np.zeros((3, 1)), None, loss), **wrong)
