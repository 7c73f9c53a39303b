"""The wallet: what it says holds at every time at once, against an adversary who reads it."""

import math
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from problems import rows_in_ball
from publications import X as TABLE, Y as LABELS
from scipy import stats
from scipy.special import expit

import expost
from expost.data.blocks import Block
from expost.data.rows import DenseRows
from expost.exceptions import ParameterError, PublicationError
from expost.fitting.release import Release
from expost.publication.readings import encoded_records
from expost.reports.base import Scope
from expost.reports.evaluate import row_width
from expost.reports.laws import Drift
from expost.reports.records import records_of
from expost.reports.total import largest_shifts, whole_parts
from expost.reports.wallet import ChargeReading, Charges, _bounded, first_scale, wallet_bound


@cache
def published(seed, **arguments):
    """A small model of the table."""
    given = {"epsilon": 0.5, "norm": 1.0} | arguments
    model = expost.LogisticRegression(**given, classes=[0, 1], random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(TABLE, LABELS).publication_


# σ and λ that the adversary chooses from.
CHOICES = np.array([(2.0, 1.0), (4.0, 0.5), (1.0, 3.0), (1.0, 0.3)])
TIMES = 25


def slopes(kind, theta):
    """First and second derivative of the member's loss."""
    if kind == "logistic":
        return -expit(-theta), expit(theta) * expit(-theta)
    root = np.sqrt(1.0 + (theta - 1.0) ** 2)
    return (theta - 1.0) / root, root**-3


def minimiser(kind, noise, l2):
    """The minimiser of the member's loss with the quadratic and the noise, by bisection."""
    low, high = -(np.abs(noise) + 2.0) / l2, (np.abs(noise) + 2.0) / l2
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = l2 * middle + slopes(kind, middle)[0] + noise > 0.0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return 0.5 * (low + high)


@pytest.mark.parametrize("count", [4_000, pytest.param(40_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["logistic", "pseudo_huber"])
@pytest.mark.parametrize("failure", [0.05, 0.5])
def test_an_adversary_who_reads_it_breaks_it_no_more_often_than_it_says(kind, failure, count):
    """She chooses every plan by how near the sum is to the bound. A false alarm has probability 1e-6."""
    rng = np.random.default_rng([17, count])
    total, broken = np.zeros(count), np.zeros(count, dtype=bool)
    charges, near = [], np.zeros(count)
    for _ in range(TIMES):
        greedy = np.where(near > 0.5, 2, np.where(near > 0.2, 3, np.where(near > 0.0, 0, 1)))
        sigma, l2 = CHOICES[greedy].T
        noise = sigma * rng.standard_normal(count)
        theta = minimiser(kind, noise, l2)
        slope, bend = slopes(kind, theta)
        # Her loss: the density with her record over that without it.
        total += np.log1p(bend / l2) + 0.5 * ((l2 * theta) ** 2 - (l2 * theta + slope) ** 2) / sigma**2
        charges.append(((slope / sigma) ** 2, np.log1p(bend / l2), (bend / l2) ** 2))
        bound = wallet_bound(*map(np.array, zip(*charges, strict=True)), scale=1.0, failure=failure)
        near = total / bound
        broken |= total > bound
    assert broken.sum() <= stats.binom.isf(1e-6, count, failure)
    if failure == 0.5:
        assert broken.sum() > 0  # she comes near


def test_each_determinant_is_charged_the_cheaper_way():
    rng = np.random.default_rng(5)
    squared, curved = rng.random((2, 6, 40)) * 0.1
    determinant = np.sqrt(curved) * rng.random((6, 40))
    found = wallet_bound(squared, determinant, curved, scale=0.3, failure=0.05)

    def bound(chosen):
        moved = squared.sum(axis=0) + (curved * chosen).sum(axis=0)
        reach = np.sqrt((moved + 0.3) * (2.0 * math.log(20.0) + np.log1p(moved / 0.3)))
        return (determinant * (1.0 - chosen)).sum(axis=0) + 0.5 * moved + reach

    masks = (np.arange(64)[:, None] >> np.arange(6) & 1).astype(float)
    every = np.array([bound(mask[:, None]) for mask in masks])
    assert np.all(found <= np.minimum(every[0], every[-1]) * (1.0 + 1e-12))
    assert np.all(found >= every.min(axis=0) * (1.0 - 1e-12))
    np.testing.assert_allclose(found, every.min(axis=0), rtol=1e-2)


def test_a_drift_of_the_hessian_raises_both_charges_of_the_determinant(monkeypatch):
    """Printed coefficients are near the minimiser: a determinant is charged at 1 + 2 drift times it."""
    publication = published(0)
    records = encoded_records(publication, TABLE, LABELS)

    def charges(drift):
        monkeypatch.setattr(Drift, "of", classmethod(lambda cls, release: cls(curvature=drift)))
        reading = ChargeReading(publication.release, Scope.of(None))
        return next(iter(records.sweep(reading, width=row_width(publication.release, records))))

    still, moved = charges(0.0), charges(0.1)
    np.testing.assert_allclose(moved.determinant, 1.2 * still.determinant, rtol=1e-12)
    np.testing.assert_allclose(moved.curved, 1.44 * still.curved, rtol=1e-12)


def test_statistics_are_charged_with_the_model():
    """In units of their own noise, and the first plan's largest shift is what the scale is a sixteenth of."""
    scales = {"sigma": 3.0, "sigma_gradient": 5.0, "sigma_hessian": 0.8, "sigma_eigenvalue": 1.1}
    plan, rng = expost.calibrate(report="adaptive", l2=0.7, norm=1.0, **scales), np.random.default_rng(7)
    release = Release(plan, np.zeros(3), gradient=np.ones(3), hessian=np.eye(3), eigenvalue=1.0)
    X, y = rows_in_ball(rng, 9, 3), rng.integers(0, 2, 9).astype(float)
    found = ChargeReading(release, Scope(None))(iter([Block(X, y, None)]))
    records = records_of(release, Block(DenseRows.here(X), y, None), Scope(None))
    parts = whole_parts(release, records, Drift.of(release))
    np.testing.assert_allclose(found.squared, parts.moved**2 + parts.curved**2, rtol=1e-12)
    steep, curved = largest_shifts(release.plan)
    for weight in (1.0, 3.0):
        scale = first_scale(replace(release.plan, max_weight=weight))
        assert scale == pytest.approx(weight**2 * (steep**2 + curved**2) / 16.0, rel=1e-12)


def test_it_reads_the_files_and_the_record_alone():
    # Without a cap the loss is the same for rows of every length.
    files = [published(seed=seed, cap=1.0) for seed in range(3)]
    found = expost.wallet(files, TABLE[:5], LABELS[:5], confidence=0.9)
    charges = []
    for one in files:
        plan, drift = one.release.plan, Drift.of(one.release)
        rows = np.hstack([TABLE[:5], np.ones((5, 1))]) if plan.fit_intercept else TABLE[:5]
        slope, bend = plan.loss.derivatives(rows @ one.release.coefficients, LABELS[:5].astype(float))
        length = np.linalg.norm(rows, axis=1)
        charges.append(
            (
                (np.abs(slope) * length / plan.sigma + drift.slope) ** 2 + plan.rounding.solver**2,
                np.log1p(bend * length**2 / plan.l2),
                (bend * length**2 / plan.l2) ** 2,
            )
        )
    parts = map(np.array, zip(*charges, strict=True))
    scale = first_scale(files[0].release.plan)
    np.testing.assert_allclose(found, wallet_bound(*parts, scale=scale, failure=0.1), rtol=1e-6)


def test_a_wallet_is_widened_by_a_share_of_it_and_pays_for_choices(monkeypatch):
    """By as much as rounding could move the sum; each record has its part of the failure probability."""
    monkeypatch.setitem(_bounded.__globals__, "SLACK", 0.01)
    rng = np.random.default_rng(6)
    charges = [Charges(*rng.random((3, 4))) for _ in range(2)]
    (found,) = _bounded([iter([one]) for one in charges], Scope(5), 0.3, 0.05, 0.25)
    parts = map(np.array, zip(*charges, strict=True))
    expected = 1.01 * wallet_bound(*parts, scale=0.3, failure=0.01) + 0.25
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_many_publications_are_worth_a_wallet_and_few_are_not():
    files = [published(seed=seed) for seed in range(12)]
    for count, better in ((2, False), (12, True)):
        read = expost.wallet(files[:count], TABLE[:20], LABELS[:20])
        fixed = expost.total(files[:count], TABLE[:20], LABELS[:20], member=True)
        assert np.mean(read < fixed) == better


def test_what_it_cannot_answer_is_refused():
    one = published(seed=0)
    with pytest.raises(ParameterError, match="`simultaneous` must be None or a number of records"):
        expost.wallet([one], TABLE[:2], LABELS[:2], simultaneous="all")
    with pytest.raises(PublicationError, match="given twice"):
        expost.wallet([one, one], TABLE[:2], LABELS[:2])
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], unit="person", random_state=1)
    people = model.fit(TABLE, LABELS, groups=np.arange(len(TABLE))).publication_
    with pytest.raises(ParameterError, match="there is no wallet for people"):
        expost.wallet([one, people], TABLE[:2], LABELS[:2])
    with pytest.raises(ParameterError, match="at least the number of records"):
        expost.wallet([one], TABLE[:3], LABELS[:3], simultaneous=2)
    single, three = (expost.wallet([one], TABLE[:3], LABELS[:3], simultaneous=n) for n in (None, 3))
    assert np.all(three > single)


def test_exact_losses_must_not_decide_who_stays():
    """A second table that has all 200 or none of them, by their exact losses, tells of another: 634."""
    sigma, l2, people = 2.8, 1.4, 200
    slope, bend = 0.5 * people, 0.25 * people  # at coefficient 0
    assert round(slope**2 / (2.0 * sigma**2) - math.log1p(bend / l2)) == 634
