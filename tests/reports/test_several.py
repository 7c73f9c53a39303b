"""What several publications cost one record together: covered, and less than adding up."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from oracle import Problem
from problems import rows_in_ball, with_intercept
from publications import X as TABLE, Y as LABELS, published
from scipy import stats

import expost
from expost.data.blocks import Block
from expost.data.choices import Choice
from expost.data.people import People
from expost.data.rows import DenseRows
from expost.exceptions import ParameterError, PublicationError
from expost.publication.readings import encoded_records
from expost.reports.base import Scope, Shares
from expost.reports.evaluate import TightReader, evaluate
from expost.reports.records import records_of
from expost.reports.several import (
    ShiftReading,
    Shifts,
    SumNoise,
    _alike,
    _allowed,
    evaluate_several,
    sum_noise,
    together,
)
from expost.reports.total import whole_parts

MEMBERS = 25
FAILURES = (0.2, 0.05)


def scalar_problems():
    rng = np.random.default_rng(12)
    X = rows_in_ball(rng, 40, 4)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(0, 2, 40).astype(float)
    budget = {"epsilon": 2.0, "delta": 1e-3, "l2": 2.0}
    kinds = (("independent", 1.0), ("leverage", 0.7), ("adaptive", 1.0))
    return [
        Problem(X, y, MEMBERS, expost.LogisticLoss(cap=cap), report=kind, **budget) for kind, cap in kinds
    ]


def mixed_problems():
    """Three classes, with and without statistics."""
    rng = np.random.default_rng(13)
    X, y = rows_in_ball(rng, 40, 2), rng.integers(0, 3, 40).astype(float)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    budget = {"epsilon": 2.0, "delta": 1e-3, "l2": 8.0}
    return [
        Problem(X, y, MEMBERS, expost.SoftmaxLoss(3), report=kind, **budget)
        for kind in ("independent", "leverage")
    ]


def bounds_of(problems, fits, side, failure, scope):
    return evaluate_several(
        [release for release, _ in fits],
        [problem.design[side].labelled(problem.y[side]) for problem in problems],
        confidence=1.0 - failure,
        member=side,
        simultaneous=scope,
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "count"),
    [
        (scalar_problems, 15),
        pytest.param(scalar_problems, 1000, marks=pytest.mark.slow),
        pytest.param(mixed_problems, 1000, marks=pytest.mark.slow),
    ],
)
def test_the_bound_of_a_sum_fails_no_more_often_than_it_says(make, count):
    """One-sided binomial tests with a false-alarm rate of 1e-6 over all of them (Bonferroni)."""
    problems = make()
    missed = {}
    for seed in range(count):
        fits = [problem.fit(1000 * place + seed) for place, problem in enumerate(problems)]
        for side in (True, False):
            pairs = zip(problems, fits, strict=True)
            truth = np.abs(sum(problem.total_loss(*fit, member=side) for problem, fit in pairs))
            for failure in FAILURES:
                for scope in (None, len(truth), "all"):
                    bound = bounds_of(problems, fits, side, failure, scope)
                    missed.setdefault((side, failure, scope), []).append(truth > bound)
    comparisons = sum(np.shape(found)[1] if key[2] is None else 1 for key, found in missed.items())
    for (_, failure, scope), found in missed.items():
        counts = np.sum(found, axis=0) if scope is None else np.sum(np.any(found, axis=1))
        assert np.max(counts) <= stats.binom.isf(1e-6 / comparisons, count, failure)


@pytest.mark.parametrize("member", [True, False, None])
def test_a_sum_costs_less_than_its_parts_added_up(member):
    several = [published(kind) for kind in ("independent", "leverage", "dependent", "adaptive")]
    together = expost.total(several, TABLE, LABELS, member=member)
    added = sum(one.bounds(TABLE, LABELS, confidence=1 - 0.05 / 4, member=member).total for one in several)
    assert np.all(together < added)
    assert np.median(together / added) < 0.85


def test_one_publication_is_its_own_total():
    one = published("leverage")
    np.testing.assert_array_equal(expost.total([one], TABLE, LABELS), one.bounds(TABLE, LABELS).total)


def test_every_record_at_once_is_added_up():
    several = [published("independent"), published("leverage")]
    added = sum(one.bounds(TABLE, LABELS, confidence=0.975, simultaneous="all").total for one in several)
    np.testing.assert_allclose(expost.total(several, TABLE, LABELS, simultaneous="all"), added, rtol=1e-12)


def test_one_that_outweighs_the_others_is_added_up():
    """Five noises are longer than the one that matters; the plans decide, whatever was drawn."""
    rng = np.random.default_rng(14)
    X, y = rows_in_ball(rng, 30, 3), rng.integers(0, 2, 30).astype(float)
    model = expost.LogisticRegression(norm=1.0, classes=[0.0, 1.0], delta=1e-6)
    budgets = [4.0] + [0.02] * 4
    uneven = [model.set_params(epsilon=epsilon).fit(X, y).publication_ for epsilon in budgets]
    added = sum(one.bounds(X, y, confidence=1 - 0.01).total for one in uneven)
    np.testing.assert_allclose(expost.total(uneven, X, y), added, rtol=1e-12)
    releases = [one.release for one in uneven]
    assert sum_noise(releases, 0.05, Scope(None)) is None
    assert sum_noise(releases[1:], 0.05, Scope(None)).quantile == pytest.approx(stats.chi.isf(0.05, 4))


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_each_row_has_a_normal_of_each_publication(rows):
    """As many as there are coefficients at most, here three, and one more where statistics are published."""
    kinds = ("independent", "leverage", "leverage", "leverage")
    releases = [published(kind).release for kind in kinds]
    shares = sum(Shares.of(kind, 0.05 / 4).whole for kind in kinds)
    found = sum_noise(releases, 0.05, Scope(7), rows)
    assert found is not None
    assert found.quantile == pytest.approx(stats.chi.isf(shares / 7, 4 * min(rows, 3) + 3), rel=1e-9)


def test_more_records_more_confidence_and_ignorance_cost_more():
    several = [published("independent"), published("leverage")]
    once = expost.total(several, TABLE, LABELS, member=True)
    assert np.all(expost.total(several, TABLE, LABELS, member=True, confidence=0.99) > once)
    assert np.all(expost.total(several, TABLE, LABELS, member=True, simultaneous=60) > once)
    assert np.all(expost.total(several, TABLE, LABELS) >= once)
    # The sum is at least what one of them is bounded by at a much lower confidence.
    single = evaluate(several[0].release, problem_rows(several[0]), confidence=0.5, member=True).total
    assert np.all(once > single)


def problem_rows(publication, rows=None):
    from expost.data.encoding import encode_records
    from expost.data.weights import Declared

    declared = Declared.of(publication.release.plan, classes=publication.classes)
    return encode_records(TABLE[:rows], LABELS[:rows], declared)


def test_bad_arguments_are_refused():
    one = published("independent")
    with pytest.raises(ParameterError, match="`publications` must be one or more publications"):
        expost.total([], TABLE, LABELS)
    with pytest.raises(ParameterError, match="`publications`"):
        expost.total([one, "p.json"], TABLE, LABELS)
    with pytest.raises(PublicationError, match="given twice"):
        expost.total([one, one], TABLE, LABELS)
    with pytest.raises(ParameterError, match="`member`"):
        expost.total([one, published("leverage")], TABLE, LABELS, member="yes")
    with pytest.raises(ParameterError, match="`simultaneous`"):
        expost.total([one, published("leverage")], TABLE, LABELS, simultaneous=3)


@pytest.mark.parametrize("simultaneous", [None, "all"])
def test_publications_that_read_different_records_have_no_total(simultaneous):
    several = [published("independent"), published("leverage")]
    releases, records = [one.release for one in several], [problem_rows(one) for one in several]
    shorter = problem_rows(several[1], rows=len(LABELS) - 1)
    options = {"confidence": 0.95, "member": None, "simultaneous": simultaneous}
    assert len(evaluate_several(releases, records, **options)) == len(LABELS)
    with pytest.raises(ParameterError, match="`publications` must be ones that read the same records"):
        evaluate_several(releases, [records[0], shorter], **options)


def test_people_of_other_rows_have_no_total():
    several = [published("independent"), published("leverage")]
    releases, rows = [one.release for one in several], np.repeat(np.arange(30), 2)
    records = [encoded_records(one, TABLE, LABELS, groups=rows) for one in several]
    options = {"confidence": 0.95, "member": True, "simultaneous": None}
    assert len(evaluate_several(releases, records, **options)) == 30
    shorter = encoded_records(several[1], TABLE[:58], LABELS[:58], groups=rows[:58])
    for other in (shorter, encoded_records(several[1], TABLE, LABELS)):
        with pytest.raises(ParameterError, match="`publications` must be ones that read the same records"):
            evaluate_several(releases, [records[0], other], **options)


def test_a_shift_is_that_of_the_model_and_of_the_statistics(monkeypatch):
    """Half of its square is known, with the size of the determinant; rows of one person stay in one block."""
    release, scope, rng = published("adaptive").release, Scope(None), np.random.default_rng(4)
    reader, X, y = TightReader(release, 0.05, scope), rows_in_ball(rng, 20, 3), rng.integers(0, 2, 20) * 1.0
    found = ShiftReading(reader, (False,))(iter([Block(X, y, None)]))
    records = records_of(release, Block(DenseRows.here(X), y, None), scope)
    parts = whole_parts(release, records, reader.drift)
    squared = parts.moved**2 + parts.curved**2
    known = reader.determinant_size(reader.determinant.bound(records, member=False)) + 0.5 * squared
    np.testing.assert_allclose(found, (known, squared), rtol=1e-12)
    reading = ShiftReading(reader.for_people(2), (True, False), 2)
    whole = reading(iter([Block(X, y, None)]))
    monkeypatch.setitem(DenseRows.here.__globals__, "_ROOM", 7)
    np.testing.assert_allclose(reading(iter([Block(X, y, None)])), whole, rtol=1e-12)
    assert len(whole.known) == 10


def test_records_that_one_publication_spreads_are_not_alike():
    """What counts is how many rows each record has, where ids were not given."""
    named = People(np.array([0, 0, 1]), np.array(["a", "b"]))
    two, three = People.each_alone(4, 2), People.each_alone(4, 3)
    known = [
        ([two], True),
        ([None, None], True),
        ([named, named], True),
        ([named, None], True),
        ([two, None], False),
    ]
    known += [([None, two], False), ([two, two], True), ([two, three], False), ([three, two, two], False)]
    for people, alike in known:
        assert _alike([SimpleNamespace(people=one) for one in people]) == alike


def test_choices_of_publications_cost_what_they_promise_each_once():
    several = [published("independent"), published("leverage")]
    choice, other = (
        Choice(candidates=(1.0, 2.0), place=0, epsilon=epsilon, id=name * 64)
        for epsilon, name in ((0.25, "a"), (0.5, "b"))
    )
    releases, records = [one.release for one in several], [problem_rows(one) for one in several]
    options = {"confidence": 0.95, "member": True, "simultaneous": None}
    plain = evaluate_several(releases, records, **options)
    chosen = [replace(releases[0], choices=(choice,)), replace(releases[1], choices=(choice, other))]
    np.testing.assert_allclose(evaluate_several(chosen, records, **options), plain + 0.75, rtol=1e-14)
    one = [releases[0], replace(releases[1], choices=(other,))]
    np.testing.assert_allclose(evaluate_several(one, records, **options), plain + 0.5, rtol=1e-14)


def test_streams_that_end_apart_have_no_total():
    part = Shifts(np.zeros(3), np.zeros(3))
    assert len(list(together([iter([part, part]), iter([part, part])]))) == 2
    with pytest.raises(ParameterError, match="`publications` must be ones that read the same records"):
        list(together([iter([part, part]), iter([part])]))


def test_the_bound_of_a_sum_is_widened_by_a_share_of_it(monkeypatch):
    """By as much as rounding could move the sum."""
    monkeypatch.setitem(_allowed.__globals__, "SLACK", 0.01)
    found = _allowed(Shifts(np.array([2.0, 0.0]), np.array([9.0, 0.0])), SumNoise(4.0, 0.5))
    np.testing.assert_allclose(found, [1.01 * (2.0 + 3.0 * 4.0 + 0.5), 1.01 * 0.5], rtol=1e-14)


def test_a_sum_is_bounded_by_its_formula():
    """Models alone, as real numbers: log-determinants, half of the squares, and the length of all noises."""
    rng = np.random.default_rng(15)
    X, y = rows_in_ball(rng, 30, 3), rng.integers(0, 2, 30).astype(float)
    problems = [
        Problem(X, y, 20, expost.LogisticLoss(cap=cap), report="independent", epsilon=2.0, l2=l2)
        for cap, l2 in ((1.0, 2.0), (0.7, 5.0), (0.9, 3.0))
    ]
    fits = [problem.fit(seed) for seed, problem in enumerate(problems)]
    fits = [(replace(release, plan=replace(release.plan, precision=None)), one) for release, one in fits]
    for scope, count in ((None, 1), (20, 20)):
        determinants = squares = 0.0
        for problem, (release, _) in zip(problems, fits, strict=True):
            rows = with_intercept(problem.X[True], True)
            slope, curvature = problem.loss.derivatives(rows @ release.coefficients, problem.y[True])
            length = np.sum(rows**2, axis=1)
            determinants += np.log1p(curvature * length / release.plan.l2)
            squares += slope**2 * length / release.plan.sigma**2
        expected = determinants + 0.5 * squares + np.sqrt(squares) * stats.chi.isf(0.05 / count, 3)
        np.testing.assert_allclose(bounds_of(problems, fits, True, 0.05, scope), expected, rtol=1e-9)
