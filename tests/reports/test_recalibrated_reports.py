"""Reports of recalibrated releases: they cover exact losses as often as they say."""

import numpy as np
import pytest
from oracle import Problem
from problems import rows_in_ball
from test_coverage import FAILURES, FITS, KINDS, misses, too_often

import expost
from expost.data.blocks import Block
from expost.data.rows import DenseRows
from expost.fitting.contributions import Contributions
from expost.fitting.ex_post import ex_post_terms
from expost.losses import PseudoHuber
from expost.privacy.shapes import capped_logistic
from expost.reports import evaluate
from expost.reports.base import Scope
from expost.reports.records import records_of
from expost.reports.total import cost_quantile


class Recalibrated(Problem):
    """A problem whose publications have a histogram or moments, which cost more than the model."""

    def terms(self, private, member):
        records = self.design[member].labelled(self.y[member], self.weights[member])
        return ex_post_terms(private, records, self.loss, member=member)

    def model_loss(self, private, *, member):
        terms = self.terms(private, member)
        return terms.signed - terms.recalibration

    def total_loss(self, release, private, *, member):
        return super().total_loss(release, private, member=member) + self.terms(private, member).recalibration


def problem(report, *, number=False, **scales):
    rng = np.random.default_rng(14)
    X = rows_in_ball(rng, 40, 3)
    X[::2] /= np.linalg.norm(X[::2], axis=1, keepdims=True)
    y = rng.integers(0, 2, 40).astype(float)
    loss = capped_logistic(2.0, 1e-3, cap=0.4)
    if number:
        y, loss = rng.uniform(-1.5, 1.5, 40), PseudoHuber(0.3, gradient_cap=0.3)
    budget = scales or {"epsilon": 2.0, "delta": 1e-3, "l2": 1.0}
    return Recalibrated(X, y, 25, loss, report=report, recalibrate=True, **budget)


# Moments have a small share of a budget: with noise of one's own they matter.
LOUD = {
    "independent": {"sigma": 3.0, "l2": 1.0, "sigma_recalibration": 0.8},
    "leverage": {"sigma": 3.0, "l2": 1.0, "sigma_recalibration": 0.8, "sigma_hessian": 4.0},
}


@pytest.mark.parametrize(
    ("report", "fits", "failures"),
    [
        pytest.param("independent", FITS // 10, FAILURES[:1], marks=pytest.mark.long),
        pytest.param("adaptive", FITS // 10, FAILURES[:1], marks=pytest.mark.long),
        *(pytest.param(kind, FITS, FAILURES, marks=pytest.mark.slow) for kind in KINDS),
    ],
)
def test_no_bound_fails_more_often_than_it_says(report, fits, failures):
    assert too_often(misses(problem(report), range(fits), failures=failures)) == []


@pytest.mark.parametrize(
    ("report", "fits", "failures"),
    [
        pytest.param("independent", FITS // 10, FAILURES[:1], marks=pytest.mark.long),
        *(pytest.param(kind, FITS, FAILURES, marks=pytest.mark.slow) for kind in LOUD),
    ],
)
def test_nor_with_moments(report, fits, failures):
    one = problem(report, number=True, **LOUD[report])
    assert too_often(misses(one, range(fits), failures=failures)) == []


@pytest.mark.long
@pytest.mark.parametrize(("number", "noise"), [(False, 1.5), (True, 0.8)])
def test_without_the_recalibrations_share_totals_would_fail(number, noise):
    """The same comparison finds a total that leaves it out: it is no idle test."""
    one, missed = problem("independent", number=number, sigma=3.0, l2=1.0, sigma_recalibration=noise), []
    for seed in range(FITS // 10):
        release, private = one.fit(seed)
        records = one.design[True].labelled(one.y[True])
        bounds = evaluate(release, records, confidence=0.8, member=True)
        truth = np.abs(one.total_loss(release, private, member=True))
        nothing = np.zeros(len(truth), bool)
        missed.append([nothing, nothing, truth > bounds.upper])
    assert too_often({(True, True, None, 0.2): np.array(missed)})


def test_the_terms_of_a_total_by_hand():
    """One row moves the histogram by 1 in one cell."""
    one = problem("independent")
    release, _ = one.fit(0)
    plan, records = one.plan, one.design[True].labelled(one.y[True])
    found = evaluate(release, records, confidence=0.9, member=True)
    cell = 1.0 / plan.sigma_recalibration
    quantile = cost_quantile(release, Scope(None), 0.1)
    assert found.report_cost == pytest.approx(cell * (0.5 * cell + quantile), rel=1e-9)
    assert np.all(found.total > found.upper)


def test_the_length_of_a_vector_counts():
    """A row moves the moments by |v| in all, which its prediction and its residual decide."""
    one = problem("independent", number=True, **LOUD["independent"])
    release, _ = one.fit(0)
    away = one.X[True] @ release.coefficients[:-1]
    records = one.design[True].labelled(one.y[True])
    found = evaluate(release, records, confidence=0.9, member=True)
    q = away / np.linalg.norm(release.coefficients[:-1])
    r = np.clip(one.y[True] - away - release.coefficients[-1], -1.0, 1.0)
    length = np.sqrt(0.09 * (1.0 + q**2 + q**4) + 0.36 * r**2 * (1.0 + q**2)) / 0.995 / 0.8
    quantile = cost_quantile(release, Scope(None), 0.1)
    assert found.report_cost == pytest.approx(length * (0.5 * length + quantile), rel=1e-9)
    assert np.max(length) * 0.8 < 1.0
    assert np.all(found.total > found.upper)


@pytest.mark.parametrize("each", [None, 1, 2, 4])
def test_what_rows_add_to_the_moments_is_at_most_their_lengths_added_up(each):
    one = problem("independent", number=True, **LOUD["independent"])
    release, _ = one.fit(0)
    rows, y = np.column_stack([one.X[True], np.ones(25)])[:24], one.y[True][:24]
    block = Block(DenseRows.here(rows), y, None)
    lengths = Contributions(release.coefficients, one.plan).lengths(block)
    found = records_of(release, block, Scope(None), each).added
    np.testing.assert_allclose(found, lengths.reshape(-1, each or 1).sum(axis=1), rtol=1e-14)


def test_members_of_a_family_are_told_more():
    rng = np.random.default_rng(2)
    X, y = rows_in_ball(rng, 300, 3), rng.integers(0, 2, 300)
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], recalibrate=True, random_state=0).fit(X, y)
    groups = np.repeat(np.arange(100), 3)
    losses = model.ex_post_losses(X, y, groups=groups)
    bounds = model.publication_.bounds(X, y, groups=groups, member=True, confidence=1 - 1e-9)
    assert np.all(losses <= bounds.total)
    each = model.publication_.bounds(X, y, member=True, confidence=1 - 1e-9)
    assert np.all(model.ex_post_losses(X, y) <= each.total)
    # Three rows may be in one cell.
    cell = 1.0 / model.plan_.sigma_recalibration
    quantile = each.report_cost / cell - 0.5 * cell
    assert bounds.report_cost == pytest.approx(3.0 * cell * (1.5 * cell + quantile[0]), rel=1e-9)
