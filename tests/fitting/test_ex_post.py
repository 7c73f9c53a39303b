"""Compare exact losses with a brute-force ratio of densities."""

import mpmath
import numpy as np
import pytest
from grids import grid
from problems import CASES, design_of, gradient_and_hessian, rows_in_ball, with_intercept

import expost
from expost import LogisticLoss, calibrate
from expost.data.encoding import encode_records
from expost.data.weights import Declared
from expost.exceptions import DomainError
from expost.fitting.ex_post import ex_post_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import SeededNoise
from expost.fitting.private_fit import plausible, recover

SIGMA, L2 = 1.3, 0.4


def log_density(theta, A, y, case, weights=1.0):
    """The log density of a release, up to a constant: that of the noise, times the Jacobian."""
    gradient, hessian = gradient_and_hessian(case, A, y, theta, l2=L2, weights=weights)
    return -gradient @ gradient / (2 * SIGMA**2) + np.linalg.slogdet(hessian)[1]


@pytest.mark.parametrize(
    ("case", "fit_intercept", "d"),
    grid(CASES, [False, True], range(1, 9)),
    ids=str,
)
def test_exact_losses_are_the_ratio_of_densities(case, fit_intercept, d):
    rng = np.random.default_rng([d, fit_intercept])
    n = 12
    X, y = rows_in_ball(rng, n + 3, d), case.labels(rng, n + 3)
    plan = calibrate(loss=case.loss, sigma=SIGMA, l2=L2, fit_intercept=fit_intercept)
    inside = design_of(X[:n], fit_intercept=fit_intercept)
    outside = design_of(X[n:], fit_intercept=fit_intercept)
    release, private = perturb(plan, inside.labelled(y[:n]), noise=SeededNoise(d))
    A, theta = with_intercept(X, fit_intercept), release.coefficients
    here = log_density(theta, A[:n], y[:n], case)

    members = ex_post_terms(private, inside.labelled(y[:n]), case.loss, member=True)
    without = [np.delete(np.arange(n), i) for i in range(n)]
    truth = [here - log_density(theta, A[rest], y[rest], case) for rest in without]
    np.testing.assert_allclose(members.signed, truth, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(members.loss, np.abs(truth), rtol=1e-9, atol=1e-12)
    assert np.all(members.determinant >= 0)
    assert np.all(members.quadratic >= 0)

    outsiders = ex_post_terms(private, outside.labelled(y[n:]), case.loss, member=False)
    joined = [np.append(np.arange(n), n + i) for i in range(3)]
    truth = [here - log_density(theta, A[more], y[more], case) for more in joined]
    np.testing.assert_allclose(outsiders.signed, truth, rtol=1e-9, atol=1e-12)
    assert np.all(outsiders.determinant <= 0)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize("max_weight", [1.0, 20.0])
def test_exact_losses_of_weighted_records_are_the_ratio_of_densities(case, d, max_weight):
    rng = np.random.default_rng([d, int(max_weight)])
    n = 12
    X, y = rows_in_ball(rng, n + 3, d), case.labels(rng, n + 3)
    weights = max_weight * rng.uniform(size=n + 3) ** 3
    weights[[0, n]] = 0.0
    weights[[1, n + 1]] = max_weight
    plan = calibrate(loss=case.loss, sigma=SIGMA, l2=L2, max_weight=max_weight)
    inside, outside = design_of(X[:n]), design_of(X[n:])
    release, private = perturb(plan, inside.labelled(y[:n], weights[:n]), noise=SeededNoise(d))
    theta = release.coefficients

    def density(chosen):
        return log_density(theta, X[chosen], y[chosen], case, weights[chosen])

    here = density(np.arange(n))
    members = ex_post_terms(private, inside.labelled(y[:n], weights[:n]), case.loss, member=True)
    truth = [here - density(np.delete(np.arange(n), i)) for i in range(n)]
    np.testing.assert_allclose(members.signed, truth, rtol=1e-9, atol=1e-12)
    outsiders = ex_post_terms(private, outside.labelled(y[n:], weights[n:]), case.loss, member=False)
    truth = [here - density(np.append(np.arange(n), n + i)) for i in range(3)]
    np.testing.assert_allclose(outsiders.signed, truth, rtol=1e-9, atol=1e-12)
    assert members.loss[0] == outsiders.loss[0] == 0.0  # weight 0 is no record


@pytest.mark.parametrize("member", [True, False])
@pytest.mark.parametrize("rank", [1, 3])
def test_the_determinant_terms_of_the_papers_theorem_and_corollary_agree(member, rank):
    """In the paper the upper signs are the outsider's, and the theorem's matrix is ∇b = −H, not H."""
    rng = np.random.default_rng(5)
    factor = rng.normal(size=(4, 4))
    upper = -1.0 if member else 1.0
    values, vectors = rng.uniform(0.1, 0.9, rank), np.linalg.qr(rng.normal(size=(4, rank)))[0]
    record = (vectors * values) @ vectors.T
    hessian = factor @ factor.T + np.eye(4) + member * record
    truth = np.linalg.slogdet(hessian)[1] - np.linalg.slogdet(hessian + upper * record)[1]
    theorem, matrix = 0.0, -hessian
    for value, u in zip(values, vectors.T, strict=True):
        theorem -= np.log(1.0 - upper * value * (u @ np.linalg.solve(matrix, u)))
        matrix = matrix - upper * value * np.outer(u, u)
    assert theorem == pytest.approx(truth, rel=1e-10)
    if rank == 1:
        (u,), (curvature,) = vectors.T, values
        corollary = -np.log(1.0 + upper * curvature * (u @ np.linalg.solve(hessian, u)))
        assert corollary == pytest.approx(truth, rel=1e-10)


@pytest.mark.parametrize("member", [True, False])
def test_a_loss_of_1e_minus_12_has_ten_digits(member):
    """A record that the model explains perfectly, against sixty-digit arithmetic."""
    rng = np.random.default_rng(8)
    X = rows_in_ball(rng, 30, 2, norm=9.0)
    record = np.array([[14.0, 0.3]])
    y = (X[:, 0] > 0).astype(float)
    X, y = np.vstack([X, record]), np.append(y, 1.0)
    table = X if member else X[:-1]
    plan = calibrate(loss="logistic", sigma=0.5, l2=0.05, norm=50.0)
    design = design_of(table, norm=50.0)
    _, private = perturb(plan, design.labelled(y[: len(table)]), noise=SeededNoise(1))
    one = design_of(record, norm=50.0)
    terms = ex_post_terms(private, one.labelled(np.ones(1)), LogisticLoss(), member=member)
    with mpmath.workdps(60):
        x, theta, gradient = (
            mpmath.matrix(v.tolist()) for v in (record[0], private.coefficients, private.gradient)
        )
        p = 1 / (1 + mpmath.exp(-(x.T * theta)[0]))
        bend = p * (1 - p) * (x.T * mpmath.inverse(mpmath.matrix(private.hessian.tolist())) * x)[0]
        sign = -1 if member else 1
        variance = mpmath.mpf(plan.sigma) ** 2
        truth = (
            -mpmath.log(1 + sign * bend)
            + (p - 1) ** 2 * (x.T * x)[0] / (2 * variance)
            + sign * (p - 1) * (x.T * gradient)[0] / variance
        )
        assert 1e-16 < abs(truth) < 1e-11
        assert abs(terms.signed[0] / truth - 1) < 1e-10


def test_an_impossible_member_has_an_infinite_loss():
    """A record passed as a member that outweighs the whole table: never a small or undefined figure."""
    rng = np.random.default_rng(9)
    X, y = rows_in_ball(rng, 5, 2, norm=0.1), np.array([0.0, 1.0, 0.0, 1.0, 1.0])
    design = design_of(X, norm=100.0)
    plan = calibrate(loss="squared", sigma=1.0, l2=0.1, norm=100.0)
    _, private = perturb(plan, design.labelled(y), noise=SeededNoise(1))
    stranger = design_of(np.array([[60.0, 80.0]]), norm=100.0)
    assert ex_post_terms(private, stranger.labelled(np.zeros(1)), plan.loss, member=True).loss[0] == np.inf


def test_many_rows_in_blocks_and_threads_agree_with_one_at_a_time():
    rng = np.random.default_rng(10)
    X, y = rows_in_ball(rng, 50_000, 12), rng.integers(0, 2, 50_000).astype(float)
    plan = calibrate(loss="logistic", sigma=2.0, l2=1.0, fit_intercept=True)
    design = design_of(X, fit_intercept=True)
    _, private = perturb(plan, design.labelled(y), noise=SeededNoise(1))
    losses = ex_post_terms(private, design.labelled(y), LogisticLoss(), member=True).loss
    for i in (0, 1, 24_999, 25_000, 49_999):
        one = design_of(X[i : i + 1], fit_intercept=True)
        alone = ex_post_terms(private, one.labelled(y[i : i + 1]), LogisticLoss(), member=True).loss
        assert losses[i] == pytest.approx(alone[0], rel=1e-10)


@pytest.mark.parametrize("report", ["independent", "adaptive"])
def test_losses_recovered_from_table_and_publication_are_those_of_the_fit(report):
    rng = np.random.default_rng(4)
    X, y = rows_in_ball(rng, 400, 5), rng.integers(0, 2, 400)
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], report=report, random_state=1).fit(X, y)
    release = expost.Publication.from_json(model.publication_.to_json()).release
    design = design_of(X, fit_intercept=True)
    private = recover(release, design.labelled(y.astype(float)))
    assert plausible(private)
    for member in (True, False):
        terms = ex_post_terms(private, design.labelled(y.astype(float)), release.plan.loss, member=member)
        expected = model.ex_post_losses(X, y, member=member)
        np.testing.assert_allclose(terms.loss, expected, rtol=1e-8, atol=1e-11)


def test_a_table_that_was_not_fitted_is_implausible_and_a_wrong_shape_is_refused():
    rng = np.random.default_rng(4)
    X, y = rows_in_ball(rng, 400, 5), rng.integers(0, 2, 400)
    release = (
        expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=1).fit(X, y).publication_.release
    )
    other = design_of(np.full((5000, 5), 0.4), fit_intercept=True)
    assert not plausible(recover(release, other.labelled(np.ones(5000))))
    with pytest.raises(DomainError, match="4 columns and an intercept, which is last, there are 5"):
        recover(release, design_of(X[:, :4], fit_intercept=True).labelled(y.astype(float)))


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize(("fits", "most"), [(50, 4), pytest.param(200, 6, marks=pytest.mark.slow)])
def test_the_fitted_table_is_rarely_called_implausible(fits, most, unit):
    """At a level of 1e-3, two-sided: more alarms than these happen with probability below 1e-7."""
    rng = np.random.default_rng(8)
    X, y, ids = rows_in_ball(rng, 30, 2), rng.integers(0, 2, 30), rng.integers(0, 12, 30)
    plan = calibrate(l2=1.0, sigma=3.0, fit_intercept=True, unit=unit)
    records = encode_records(
        X, y, Declared.of(plan, classes=[0, 1]), groups=ids if unit == "person" else None
    )
    alarms = 0
    for seed in range(fits):
        release, _ = perturb(plan, records, noise=SeededNoise(seed))
        alarms += not plausible(recover(release, records), level=1e-3)
    assert alarms <= most


def test_people_who_are_missing_make_a_table_implausible_and_so_do_others_ids():
    """Each person counts once: with other ids, or without the people of a class, the gradient is another."""
    rng = np.random.default_rng(9)
    ids = np.repeat(np.arange(800), rng.integers(1, 9, 800))
    X, y = rows_in_ball(rng, len(ids), 3), (ids % 2).astype(float)
    plan = calibrate(unit="person", fit_intercept=True)
    model = expost.LogisticRegression(plan=plan, classes=[0, 1], random_state=1).fit(X, y, groups=ids)
    release = model.publication_.release

    def seems_right(kept, groups):
        declared = Declared.of(plan, classes=[0, 1])
        return plausible(recover(release, encode_records(X[kept], y[kept], declared, groups=groups[kept])))

    everyone = np.full(len(ids), True)
    assert seems_right(everyone, ids)
    assert not seems_right((ids % 2 == 0) | (ids < 200), ids)
    assert not seems_right(everyone, np.arange(len(ids)))
