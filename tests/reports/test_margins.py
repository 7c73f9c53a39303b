"""The margins for the Hessian's noise and the total's ellipse: how often they fail, and where they are wrong.

Statistical tests compare a count with the binomial law at the stated rate, with a false-alarm rate of 1e-6
over the comparisons of one test (Bonferroni).
"""

from dataclasses import replace

import numpy as np
import pytest
from problems import linear_records
from scipy import integrate, stats

import expost
from expost.fitting.release import Release
from expost.reports.base import Scope, Shares, form_quantile, goe_quantile
from expost.reports.intervals import Determinant
from expost.reports.laws import NO_DRIFT, two_sided
from expost.reports.records import FEW_WEIGHTS, WEIGHTS, mixtures
from expost.reports.total import ellipse_quantile, ellipse_stretch, largest_shifts, whole_parts

D, RECORDS, DRAWS = 5, 6, 500
L2 = 0.05
FAILURES = (0.3, 0.05)


def noise(rng):
    Z = rng.normal(size=(D, D))
    return (Z + Z.T) / np.sqrt(2.0)


class Setting:
    """A Hessian, and records on the boundary of the ball that are in the table or not."""

    def __init__(self, kind, sigma, *, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(RECORDS + 60, D)) * np.geomspace(1.0, 0.2, D)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        kappa = rng.uniform(0.1, 0.25, len(X))
        scales = {"sigma": 4.0, "sigma_hessian": sigma}
        if kind == "adaptive":
            scales |= {"sigma_gradient": 4.0, "sigma_eigenvalue": 0.2}
        self.plan = replace(
            expost.calibrate(report=kind, l2=L2, norm=1.0, fit_intercept=False, **scales), precision=None
        )
        self.theta = np.full(D, 0.3)
        floor = L2 * np.eye(D)
        self.kappa = kappa[:RECORDS]
        self.rows = X[:RECORDS]
        self.hessian = {
            True: floor + (X.T * kappa) @ X,
            False: floor + (X[RECORDS:].T * kappa[RECORDS:]) @ X[RECORDS:],
        }
        self.records = linear_records(self.rows, np.zeros(RECORDS), self.kappa)

    def truth(self, member):
        inverse = np.linalg.solve(self.hessian[member], self.rows.T).T
        leverage = self.kappa * np.sum(self.rows * inverse, axis=1)
        return -np.log1p(-leverage) if member else -np.log1p(leverage)

    def release(self, member, rng):
        H = self.hessian[member]
        eigenvalue = None
        if self.plan.sigma_eigenvalue is not None:
            eigenvalue = np.linalg.eigvalsh(H)[0] + self.plan.sigma_eigenvalue * rng.normal()
        noisy = H + self.plan.sigma_hessian * noise(rng)
        return Release(self.plan, self.theta, hessian=noisy, eigenvalue=eigenvalue)


def limit(failure, comparisons, draws=DRAWS):
    return stats.binom.isf(1e-6 / comparisons, draws, failure)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "sigma"),
    [("leverage", 0.02), ("leverage", 0.5), ("adaptive", 0.02), ("adaptive", 0.5)],
    ids=["leverage", "leverage, noisy", "adaptive", "adaptive, noisy"],
)
@pytest.mark.parametrize("draws", [DRAWS // 5, pytest.param(DRAWS, marks=pytest.mark.slow)])
def test_each_end_of_the_determinant_term_fails_no_more_often_than_its_share(draws, kind, sigma):
    """With weights chosen for each record and each draw, for members and outsiders."""
    setting = Setting(kind, sigma)
    worst = 0.0
    for member in (True, False):
        truth = setting.truth(member)
        for failure in FAILURES:
            # The eigenvalue's noise is another event; with 1e-9 it never happens here.
            shares = Shares(failure, failure, 1e-9, 0.0, 0.0)
            missed = np.zeros((2, RECORDS))
            rng = np.random.default_rng(7)
            for _ in range(draws):
                determinant = Determinant(setting.release(member, rng), shares, Scope(None))
                got = determinant.bound(setting.records, member=member)
                missed += [truth < got.low, truth > got.high]
            # The upper end in size has the margin of one direction, the other that of all directions.
            assert np.all(missed <= limit(failure, 4 * len(FAILURES) * RECORDS, draws))
            worst = max(worst, missed[1 if member else 0].max() / (draws * failure))
    # The margin is not generous: where the noise is small, most of the share is used. A share of 0.3 of which
    # four fifths are used is missed too rarely in all of these draws with a probability below 1e-6.
    least = stats.binom.ppf(1e-6, draws, 0.8 * 0.3) / (draws * 0.3)
    assert sigma > 0.02 or worst > min(least, 0.5)


def test_the_margin_of_one_direction_is_too_small_for_the_other_end():
    """The lower end of a leverage depends on a direction that the noise has a hand in."""
    setting, sigma, failure = Setting("leverage", 0.5), 0.5, 0.05
    H, rng = setting.hessian[True], np.random.default_rng(8)
    truth = np.sum(setting.rows * np.linalg.solve(H, setting.rows.T).T, axis=1)
    missed, allowed = np.zeros((2, RECORDS)), limit(failure, 2 * RECORDS)
    for _ in range(DRAWS):
        noisy = H + sigma * noise(rng)
        for place, quantile in enumerate((form_quantile(D, failure, Scope(None)), goe_quantile(D, failure))):
            raised = noisy + quantile * sigma * np.eye(D)
            if np.linalg.eigvalsh(raised)[0] > 0.0:
                form = np.sum(setting.rows * np.linalg.solve(raised, setting.rows.T).T, axis=1)
                missed[place] += form > truth
    assert np.any(missed[0] > allowed)
    assert np.all(missed[1] <= allowed)


def test_a_record_chosen_after_seeing_the_hessian_needs_every_direction():
    """The row that looks best served by the noise is not covered by the margin of a fixed one."""
    setting, failure = Setting("leverage", 0.02), 0.05
    shares, rng = Shares(failure, failure, 0.0, 0.0, 0.0), np.random.default_rng(9)
    missed = {None: 0, "all": 0}
    for _ in range(DRAWS):
        release = setting.release(False, rng)
        # Where the noise is largest relative to the truth; who sees the noise can find that.
        seen = release.hessian - setting.hessian[False]
        row = setting.hessian[False] @ np.linalg.eigh(seen)[1][:, -1]
        row /= np.linalg.norm(row)
        records = linear_records(row[None], np.zeros(1), np.full(1, 0.25))
        truth = -np.log1p(0.25 * row @ np.linalg.solve(setting.hessian[False], row))
        for scope in missed:
            got = Determinant(release, shares, Scope(scope)).bound(records, member=False)
            missed[scope] += bool(truth < got.low[0])
    assert missed[None] > limit(failure, 2)
    assert missed["all"] <= limit(failure, 2)


def test_margins_grow_with_the_number_of_records_up_to_that_of_all():
    for failure in (0.2, 0.01, 1e-8):
        every = form_quantile(D, failure, Scope("all"))
        assert every == goe_quantile(D, failure)
        several = [form_quantile(D, failure, Scope(n)) for n in (None, 1, 10, 10**3, 10**12)]
        assert several[0] == several[1] == pytest.approx(np.sqrt(2.0) * stats.norm.isf(failure), rel=1e-12)
        assert several == sorted(several)
        assert several[-1] == every
    assert form_quantile(1, 0.01, Scope(None)) == pytest.approx(goe_quantile(1, 0.01), rel=1e-9)


@pytest.mark.parametrize("failure", [0.5, 0.05, 1e-6, 1e-12])
@pytest.mark.parametrize("stretch", [1.0, 2.0, 5.0])
def test_the_ellipse_has_its_probability(stretch, failure):
    """A second formula: given the second normal, the first leaves a symmetric interval."""
    q = ellipse_quantile(stretch, failure)

    def given(angle):
        second = stretch * q * np.sin(angle)
        return 2.0 * stats.norm.pdf(second) * 2.0 * stats.norm.sf(q * np.cos(angle)) * np.cos(angle)

    inside = stretch * q * integrate.quad(given, 0.0, 0.5 * np.pi, epsabs=0.0, epsrel=1e-11, limit=200)[0]
    assert inside + 2.0 * stats.norm.sf(stretch * q) == pytest.approx(failure, rel=1e-8)
    assert two_sided(failure) < q <= np.sqrt(-2.0 * np.log(failure)) * (1 + 1e-12)
    assert ellipse_quantile(1e4, failure) == pytest.approx(two_sided(failure), rel=1e-3)


def test_the_totals_noise_is_covered_whatever_slope_and_curvature_make_of_it():
    """The worst dependence there is: for each pair of normals the sizes that maximise the excess."""
    rng, draws, stretch, failure = np.random.default_rng(10), 200_000, 2.0, 0.05
    N1, N2 = rng.normal(size=(2, draws))
    q = ellipse_quantile(stretch, failure)
    angles = np.linspace(0.0, 0.5 * np.pi, 201)[:, None]
    missed = np.zeros(draws, dtype=bool)
    for A, C in zip(np.cos(angles), np.sin(angles), strict=True):
        missed |= np.abs(A * np.abs(N1) + C * np.abs(N2)) > q * np.hypot(A, stretch * C)
    assert missed.sum() <= limit(failure, 1, draws)
    assert missed.mean() > 0.9 * failure


@pytest.mark.parametrize(("few", "sharp"), [(False, 1.1), (True, 1.2)])
def test_mixtures_are_convex_definite_and_as_sharp_as_a_fine_grid(few, sharp):
    """Of an indefinite lower bound too, of which only small weights can be taken."""
    weights = FEW_WEIGHTS if few else WEIGHTS
    rng = np.random.default_rng(11)
    for floor, lowest in ((0.05, 0.3), (0.05, -0.2), (2.0, -0.2), (2.0, -1e-3)):
        lower = np.sort(np.append(rng.uniform(0.5, 8.0, D - 1), lowest))
        pencil = mixtures(np.eye(D), lower, floor, 0.4, weights)
        assert np.all((pencil.weights >= 0.0) & (pencil.weights <= 1.0))
        assert 0.0 in pencil.weights
        values = np.outer(lower, pencil.weights) + floor * (1.0 - pencil.weights)
        assert np.all(values > 0.0)
        np.testing.assert_allclose(pencil.reciprocals, 1.0 / values, rtol=1e-13)
        fine = np.linspace(0.0, 1.0, 4001) * (1.0 if lowest > 0.0 else floor / (floor - lowest))
        squared = rng.dirichlet(np.full(D, 0.5), 50)
        best = np.full(len(squared), np.inf)
        for weight in fine[:-1]:
            best = np.minimum(best, squared @ (1.0 / (weight * lower + (1.0 - weight) * floor)))
        assert np.all(pencil.forms(squared).min(axis=0) <= sharp * best)


@pytest.mark.parametrize("kind", ["independent", "leverage", "dependent", "adaptive"])
def test_the_largest_shifts_are_those_of_the_worst_records(kind):
    """They decide how long the ellipse is, and whether bounds of several releases are added up."""
    plan = expost.calibrate(report=kind, l2=2.0, norm=3.0, fit_intercept=False, epsilon=2.0)
    release = Release(replace(plan, precision=None), np.zeros(1))
    records = linear_records(
        np.array([[3.0], [-3.0]]), np.array([1.0, 0.5]), np.array([0.0, 0.25]), gradient=np.zeros(1)
    )
    parts = whole_parts(release, records, NO_DRIFT)
    steep, curved = largest_shifts(plan)
    assert steep == pytest.approx(parts.moved[0], rel=1e-12)
    assert curved == pytest.approx(parts.curved[1], rel=1e-12)
    if kind != "independent":
        # By default the Hessian's shift is that of the model over 12 roots of 2.
        assert curved == pytest.approx(steep / (12.0 * 2.0**0.5), rel=1e-12)
        assert ellipse_stretch(plan) == pytest.approx((3.0 * curved / steep) ** -0.4, rel=1e-12)


def test_the_ellipse_is_stretched_between_once_and_four_times():
    """And not at all where no slope is the largest."""
    for sigma, stretch in ((1e-3, 1.0), (1e3, 4.0)):
        scales = {"sigma": 4.0, "sigma_hessian": sigma}
        assert ellipse_stretch(expost.calibrate(report="leverage", l2=0.3, norm=1.0, **scales)) == stretch
    plan = expost.calibrate(loss="squared", sigma=1.0, l2=1.0)
    assert ellipse_stretch(plan) == 1.0
    assert largest_shifts(plan) == (np.inf, np.inf)


def test_a_noisy_eigenvalue_bounds_the_determinant_of_one_coefficient():
    """It is the Hessian itself there, so that the larger of the two lower bounds is read."""
    scales = {"sigma": 4.0, "sigma_gradient": 4.0, "sigma_hessian": 0.2, "sigma_eigenvalue": 0.1}
    plan = expost.calibrate(report="adaptive", l2=0.3, norm=1.0, fit_intercept=False, **scales)
    plan = replace(plan, precision=None)
    records = linear_records(np.array([[1.0], [-0.5]]), np.ones(2), np.array([0.25, 0.1]))
    bend, shares = np.array([0.25, 0.1]) * np.array([1.0, 0.25]), Shares(0.04, 0.01, 0.03, 0.0, 0.9)
    below = 2.0 - np.sqrt(2.0) * stats.norm.isf(0.04) * 0.2
    for eigenvalue in (3.0, 1.0):
        release = Release(plan, np.zeros(1), hessian=np.array([[2.0]]), eigenvalue=eigenvalue)
        determinant = Determinant(release, shares, Scope(None))
        floor = max(below, eigenvalue - stats.norm.isf(0.03) * 0.1)
        member, outsider = (determinant.bound(records, member=side) for side in (True, False))
        np.testing.assert_allclose(member.high, -np.log1p(-bend / floor), rtol=1e-7)
        np.testing.assert_allclose(outsider.low, -np.log1p(bend / floor), rtol=1e-7)


def test_a_hessian_that_is_nearly_singular_has_no_lower_end():
    """Below a share of 1e-12 of the largest eigenvalue, a positive one is a matter of rounding."""
    scales = {"sigma": 4.0, "sigma_hessian": 1e-9}
    plan = expost.calibrate(report="leverage", l2=0.3, norm=1.0, fit_intercept=False, **scales)
    plan = replace(plan, precision=None)
    for smallest, largest, known in ((1e-4, 1e9, False), (1e-2, 1e9, True), (1e-9, 1e-3, True)):
        release = Release(plan, np.zeros(2), hessian=np.diag([smallest, largest]))
        determinant = Determinant(release, Shares.of("leverage", 0.05), Scope(None))
        assert (determinant.upper is not None) == known
    pencil = mixtures(np.eye(2), np.array([1e-4, 1e9]), 0.3, 1.0, WEIGHTS)
    assert 1.0 not in pencil.weights
    assert 1.0 in mixtures(np.eye(2), np.array([1e-2, 1e9]), 0.3, 1.0, WEIGHTS).weights


def test_the_smallest_leverage_of_one_coefficient_is_its_formula():
    """There is one direction, so the margin of all directions is the normal quantile."""
    scales = {"sigma": 4.0, "sigma_hessian": 0.2}
    plan = expost.calibrate(report="leverage", l2=0.3, norm=1.0, fit_intercept=False, **scales)
    release = Release(replace(plan, precision=None), np.zeros(1), hessian=np.array([[2.0]]))
    determinant = Determinant(release, Shares(0.04, 0.01, 0.0, 0.0, 0.9), Scope(None))
    raised = 2.0 + np.sqrt(2.0) * stats.norm.isf(0.01) * 0.2
    leverage = np.array([0.25, 0.1]) * np.array([1.0, 0.25]) / raised
    records = linear_records(np.array([[1.0], [-0.5]]), np.ones(2), np.array([0.25, 0.1]))
    np.testing.assert_allclose(determinant.bound(records, member=True).low, -np.log1p(-leverage), rtol=1e-7)
    np.testing.assert_allclose(determinant.bound(records, member=False).high, -np.log1p(leverage), rtol=1e-7)
