"""The determinant term of several classes: its formulas, and how often its ends fail.

Statistical tests compare a count with the binomial law at the stated rate, with a false-alarm rate of 1e-6
over the comparisons of one test (Bonferroni).
"""

import math

import numpy as np
import pytest
from problems import rows_in_ball
from scipy import stats

from expost import Plan
from expost.data.blocks import Block
from expost.data.rows import DenseRows
from expost.fitting.release import Release
from expost.losses import SoftmaxLoss
from expost.privacy.scales import NoiseScales
from expost.reports.base import Scope, Shares, form_quantile, goe_quantile
from expost.reports.intervals import Determinant
from expost.reports.laws import NORMAL, Across, Chi, Spread
from expost.reports.records import mixtures, records_of
from expost.reports.total import ellipse_quantile

D, N, RECORDS = 3, 80, 5
L2 = 0.3


def ensemble(rng, dimension):
    Z = rng.normal(size=(dimension, dimension))
    return (Z + Z.T) / np.sqrt(2.0)


class Setting:
    """A table of several classes at coefficients that are given, and records in it or not."""

    def __init__(self, *, reduced, classes=3, cap=1.0, sigma=0.05, eigenvalue=None, size=1.0, weights=False):
        rng = np.random.default_rng(classes)
        self.loss = SoftmaxLoss(classes, cap)
        scales = NoiseScales(4.0, sigma_hessian=sigma, sigma_eigenvalue=eigenvalue)
        self.plan = Plan(
            loss=self.loss,
            norm=1.0,
            fit_intercept=False,
            report="leverage",
            calibration="tight",
            epsilon=math.inf,
            delta=1e-3,
            l2=L2,
            scales=scales,
            max_weight=2.0,
            reduced=reduced,
        )
        self.X = rows_in_ball(rng, N, D)
        self.X /= np.linalg.norm(self.X, axis=1, keepdims=True)
        self.y = rng.integers(0, classes, N).astype(float)
        self.weights = rng.uniform(0.5, 2.0, N) if weights else None
        self.w = size * rng.normal(size=(self.loss.outputs, D))
        eta = self.X @ self.w.T
        factor = self.loss.derivatives(eta, self.y)[1]
        weight = np.ones(N) if weights is False else self.weights
        bends = weight[:, None, None] * (factor @ np.swapaxes(factor, 1, 2))
        squares = self.X[:, :, None] * self.X[:, None, :]
        self.parts = np.stack([np.kron(bend, square) for bend, square in zip(bends, squares, strict=True)])
        masses = weight * self.loss.smallest_mass(eta, self.y)
        self.reduced_parts = masses[:, None, None] * squares

    def matrices(self, member):
        """The whole Hessian and the matrix that is measured; without the records for outsiders."""
        start = 0 if member else RECORDS
        whole = L2 * np.eye(self.parts.shape[1]) + self.parts[start:].sum(axis=0)
        reduced = L2 * np.eye(D) + self.reduced_parts[start:].sum(axis=0)
        return whole, reduced if self.plan.reduced else whole

    def truth(self, member):
        whole = self.matrices(member)[0]
        there = whole + (-1.0 if member else 1.0) * self.parts[:RECORDS]
        return np.linalg.slogdet(whole)[1] - np.linalg.slogdet(there)[1]

    def release(self, member, rng):
        matrix = self.matrices(member)[1]
        noisy = matrix + self.plan.sigma_hessian * ensemble(rng, len(matrix))
        eigenvalue = None
        if self.plan.sigma_eigenvalue is not None:
            eigenvalue = np.linalg.eigvalsh(matrix)[0] + self.plan.sigma_eigenvalue * rng.normal()
        return Release(self.plan, self.w.ravel(), hessian=noisy, eigenvalue=eigenvalue)

    def records(self, release, scope=None):
        weights = None if self.weights is None else self.weights[:RECORDS]
        return records_of(
            release, Block(DenseRows.here(self.X[:RECORDS]), self.y[:RECORDS], weights), Scope(scope)
        )


def test_small_matrices_give_the_determinants_of_large_ones():
    setting = Setting(reduced=False, weights=True, cap=0.7)
    rng = np.random.default_rng(1)
    release = setting.release(True, rng)
    records, dimension = setting.records(release), setting.parts.shape[1]
    basis = np.linalg.qr(rng.normal(size=(dimension, dimension)))[0]
    lower, floor = np.linspace(2.0, 9.0, dimension), 4.0
    pencil = mixtures(basis, lower, floor, 0.7, np.array([0.0, 0.3, 0.9]))
    matrices = [(basis * (w * lower + (1.0 - w) * floor)) @ basis.T for w in pencil.weights]
    assert len(matrices) == 4
    outside, inside, adaptive = [], [], []
    for w, M in zip(pencil.weights, matrices, strict=True):
        size = np.linalg.slogdet(M)[1]
        plus = [np.linalg.slogdet(M + share * setting.parts[:RECORDS])[1] - size for share in (1.0, 1.0 - w)]
        minus = [np.linalg.slogdet(M - share * setting.parts[:RECORDS])[1] - size for share in (1.0, w)]
        outside.append(plus[0])
        inside.append(plus[1] - minus[1])
        adaptive.append(-minus[0])
        single = type(pencil).single(basis, w * lower + (1.0 - w) * floor)
        np.testing.assert_allclose(records.below(single, member=False), plus[0], rtol=1e-10)
        np.testing.assert_allclose(records.below(single, member=True), -minus[0], rtol=1e-10)
    for weights, truth in ((0.0, outside), (pencil.weights, inside), (1.0, adaptive)):
        np.testing.assert_allclose(records.above(pencil, weights), np.min(truth, axis=0), rtol=1e-10)
    # What cannot be removed has no leverage from below, and no bound from above.
    tiny = type(pencil).single(basis, np.full(dimension, 1e-3))
    assert np.all(records.below(tiny, member=True) == 0.0)
    assert np.all(np.isinf(records.above(tiny, 1.0)))


@pytest.mark.parametrize("each", [None, 1, 2])
def test_a_released_matrix_changes_by_the_part_of_a_record_or_of_all_rows_of_a_person(each):
    """By its Frobenius norm, whether the matrix is whole or reduced; rows are of every length."""
    for reduced in (False, True):
        setting = Setting(reduced=reduced, weights=True)
        lengths = np.linspace(0.2, 1.0, N)[:, None]
        release = Release(setting.plan, np.zeros(2 * D), hessian=np.eye(D if reduced else 2 * D))
        block = Block(DenseRows.here(lengths * setting.X), setting.y, setting.weights)
        found = records_of(release, block, Scope(None), each).released_norm
        # At a score of zero every class has a third, and bends by it in every direction.
        parts = setting.weights[:, None, None] * lengths[:, :, None] ** 2 / 3.0
        parts = parts * setting.X[:, :, None] * setting.X[:, None, :]
        whole = parts.reshape(-1, each or 1, D, D).sum(axis=1)
        copies = 1.0 if reduced else np.sqrt(2.0)
        np.testing.assert_allclose(found, copies * np.linalg.norm(whole, axis=(1, 2)), rtol=1e-12)


def test_of_a_reduced_matrix_a_person_reads_the_smallest_eigenvalue():
    """It bounds what she adds to the Hessian; nothing is known where the Hessian has her rows already."""
    setting = Setting(reduced=True, weights=True)
    release = Release(setting.plan, setting.w.ravel(), hessian=np.eye(D))
    block = Block(DenseRows.here(setting.X), setting.y, setting.weights)
    records = records_of(release, block, Scope(None), 2)
    pencil = mixtures(np.eye(D), np.linspace(1.0, 3.0, D), 0.7, 0.5, np.array([0.0, 0.5, 1.0]))
    parts = setting.parts.reshape(-1, 2, 2 * D, 2 * D).sum(axis=1)
    more = np.linalg.slogdet(np.eye(2 * D) + parts / 0.7)[1]
    np.testing.assert_allclose(records.above(pencil, 0.0), more, rtol=1e-10)
    np.testing.assert_allclose(records.above(pencil, pencil.weights), more, rtol=1e-10)
    assert np.all(np.isinf(records.above(pencil, 1.0)))
    for member in (True, False):
        assert np.all(records.below(pencil, member=member) == 0.0)


@pytest.mark.parametrize("cap", [1.0, 0.6])
def test_the_reduced_matrix_bounds_the_whole_one(cap):
    """Without noise: above the truth for members and others, and far below what needs no data."""
    setting = Setting(reduced=True, classes=4, cap=cap, sigma=1e-9, size=0.3)
    for member in (True, False):
        whole, matrix = setting.matrices(member)
        gap = whole - np.kron(np.eye(setting.loss.outputs), matrix)
        assert np.linalg.eigvalsh(gap).min() >= -1e-12
        release = setting.release(member, np.random.default_rng(2))
        records = setting.records(release)
        got = Determinant(release, Shares.of("leverage", 0.05), Scope(None)).bound(records, member=member)
        size, truth = np.maximum(np.abs(got.low), np.abs(got.high)), np.abs(setting.truth(member))
        assert np.all(size >= truth * (1.0 - 1e-9))
        assert np.all(np.minimum(np.abs(got.low), np.abs(got.high)) == 0.0)
        # Near a cap the Hessian is flat in one direction, and no multiple of the identity is below it.
        assert size.mean() < (1.4 if cap == 1.0 else 4.0) * truth.mean()
        assert size.mean() < (0.1 if cap == 1.0 else 0.4) * records.at.log_determinant(L2).mean()


def test_a_precise_hessian_gives_the_exact_term():
    setting = Setting(reduced=False, classes=4, cap=0.8, sigma=1e-9, weights=True)
    for member in (True, False):
        release = setting.release(member, np.random.default_rng(2))
        determinant = Determinant(release, Shares.of("leverage", 0.05), Scope(None))
        got = determinant.bound(setting.records(release), member=member)
        np.testing.assert_allclose(got.low, setting.truth(member), rtol=1e-5)
        np.testing.assert_allclose(got.high, setting.truth(member), rtol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize(("sigma", "eigenvalue"), [(0.05, None), (1.0, None), (1.0, 0.2)], ids=str)
@pytest.mark.parametrize("reduced", [False, True])
def test_each_end_fails_no_more_often_than_its_share(reduced, sigma, eigenvalue):
    setting = Setting(reduced=reduced, sigma=sigma, eigenvalue=eigenvalue, size=0.3)
    draws, failure = 100, 0.3
    allowed = stats.binom.isf(1e-6 / (4 * RECORDS), draws, failure)
    worst = 0.0
    for member in (True, False):
        truth, rng = setting.truth(member), np.random.default_rng(7)
        missed = np.zeros((2, RECORDS))
        for _ in range(draws):
            release = setting.release(member, rng)
            determinant = Determinant(release, Shares(failure, failure, 1e-9, 0.0, 0.0), Scope(None))
            got = determinant.bound(setting.records(release), member=member)
            missed += [truth < got.low, truth > got.high]
        assert np.all(missed <= allowed)
        worst = max(worst, missed[1 if member else 0].max() / (draws * failure))
    # The margin of a whole Hessian is not so generous that nothing could be seen here.
    assert reduced or sigma > 0.05 or worst > 0.1


def test_a_fixed_record_needs_as_many_dimensions_as_it_has_predictors():
    for outputs in (2, 4):
        for failure in (0.05, 1e-6):
            one = form_quantile(60, failure, Scope(None), outputs)
            assert one == goe_quantile(outputs, failure)
            assert form_quantile(60, failure, Scope(None)) < one < goe_quantile(60, failure)
            many = form_quantile(60, failure, Scope(10**12), outputs)
            assert one < many <= goe_quantile(60, failure)
            assert form_quantile(60, failure, Scope("all"), outputs) == goe_quantile(60, failure)


def test_the_margin_is_that_of_the_matrix_that_is_measured():
    """Of one direction where it is reduced, of every linear predictor where it is whole, or of a person's."""
    rng, shares = np.random.default_rng(3), Shares(0.04, 0.01, 0.0, 0.0, 0.0)
    for reduced, law, directions in (
        (False, None, 2),
        (True, None, 1),
        (False, Across(4), 4),
        (True, Across(2), 2),
    ):
        release = Setting(reduced=reduced, sigma=0.5).release(True, rng)
        size = len(release.hessian)
        quantile = goe_quantile(directions, 0.04) if directions > 1 else math.sqrt(2.0) * stats.norm.isf(0.04)
        determinant = Determinant(release, shares, Scope(None), law=law)
        assert determinant.margin == pytest.approx(0.5 * min(quantile, goe_quantile(size, 0.04)), rel=1e-9)
        assert determinant.upper_margin == pytest.approx(0.5 * goe_quantile(size, 0.01), rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("stretch", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("law", [Chi(3), Spread(3), Spread(10)], ids=str)
def test_the_totals_ellipse_has_its_probability(law, stretch):
    rng = np.random.default_rng(5)
    draws = 40_000
    if isinstance(law, Chi):
        first = np.linalg.norm(rng.normal(size=(draws, law.freedom)), axis=1)
    else:
        W = rng.normal(size=(draws, law.classes))
        first = np.abs(W[:, 1:] - W[:, :1]).max(axis=1) / math.sqrt(2.0)
    second = rng.normal(size=draws)
    for failure in (0.3, 0.02):
        q = ellipse_quantile(stretch, failure, law)
        missed = np.sum(first**2 + (second / stretch) ** 2 > q**2)
        # Two-sided, eighteen comparisons in all.
        assert stats.binom.cdf(missed, draws, failure) > 1e-8
        assert stats.binom.sf(missed - 1, draws, failure) > 1e-8
    for failure in (0.05, 1e-9, 1e-18):
        one = ellipse_quantile(stretch, failure, NORMAL)
        assert ellipse_quantile(stretch, failure, Spread(2)) == pytest.approx(one, rel=1e-10)
