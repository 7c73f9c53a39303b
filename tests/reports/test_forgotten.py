"""A row that she does not remember: figures that hold whatever it was, and no figure without its number."""

import math

import numpy as np
import pytest
from problems import rows_in_ball
from scipy import stats

import expost
from expost.exceptions import ParameterError
from expost.reports.base import Interval
from expost.reports.forgotten import Forgotten
from expost.reports.laws import two_sided

KINDS = ("independent", "leverage", "dependent", "adaptive")
CONFIDENCE = 0.8
FITS = [pytest.param(400, marks=pytest.mark.slow), 30]


def table(seed=4):
    """Sixty people of three rows each on the sphere; the last row of each is one of a surprising label."""
    rng = np.random.default_rng(seed)
    X = rows_in_ball(rng, 180, 2)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X[:, 0] > 0.0).astype(int)
    y[2::3] = 1 - y[2::3]
    return X, y, np.repeat(np.arange(60), 3)


def fitted(plan, seed, X, y, ids):
    model = expost.LogisticRegression(plan=plan, classes=[0, 1], random_state=seed)
    return model.fit(X, y, groups=ids)


@pytest.mark.long
@pytest.mark.parametrize("fits", FITS)
@pytest.mark.parametrize("report", KINDS)
def test_figures_hold_whatever_the_row_was(report, fits):
    """False alarms: 1e-6 over all people and both numbers of forgotten rows (binomial, Bonferroni)."""
    X, y, ids = table()
    plan = expost.calibrate(
        loss=expost.LogisticLoss(cap=0.7),
        epsilon=3.0,
        delta=1e-2,
        report=report,
        unit="person",
        fit_intercept=True,
    )
    known = {1: np.arange(180) % 3 != 2, 2: np.arange(180) % 3 == 0}
    missed = {count: np.zeros(60) for count in known}
    for seed in range(fits):
        model = fitted(plan, seed, X, y, ids)
        truth = np.abs(model.ex_post_losses(X, y, groups=ids))
        for count, chosen in known.items():
            bounds = model.publication_.bounds(
                X[chosen], y[chosen], groups=ids[chosen], forgotten=count, confidence=CONFIDENCE, member=True
            )
            assert np.all(bounds.lower == 0.0)
            missed[count] += truth > bounds.upper
    limit = stats.binom.isf(1e-6 / 120, fits, 1.0 - CONFIDENCE)
    assert max(counts.max() for counts in missed.values()) <= limit


@pytest.mark.long
def test_a_figure_for_some_rows_is_none_for_her():
    """Why the number is asked for: without the surprising row the interval often misses her loss."""
    X, _, ids = table()
    # One more person, with a likely row and an unlikely one.
    X, y = np.vstack([X, [[1.0, 0.0]] * 2]), np.append(X[:, 0] > 0.0, [True, False]).astype(int)
    ids = np.append(ids, [60, 60])
    plan = expost.calibrate(sigma=0.5, l2=0.3, unit="person", fit_intercept=True)
    wrong, right = 0, 0
    for seed in range(40):
        model = fitted(plan, seed, X, y, ids)
        truth = abs(model.ex_post_losses(X, y, groups=ids)[60])
        bounds = model.publication_.bounds
        wrong += truth > bounds([[1.0, 0.0]], [1], groups=[1], member=True).upper[0]
        right += truth <= bounds([[1.0, 0.0]], [1], groups=[1], member=True, forgotten=1).upper[0]
    assert wrong >= 5
    assert right == 40


@pytest.mark.parametrize("rows_per_person", [None, 12])
def test_the_formula(rows_per_person):
    """The upper end of a model alone, written out; each of the two rows that are not known is one of many."""
    X, y, ids = table()
    model = expost.LogisticRegression(
        epsilon=2.0, norm=1.0, classes=[0, 1], unit="person", rows_per_person=rows_per_person, random_state=1
    ).fit(X, y, groups=ids)
    publication, plan = model.publication_, model.plan_
    found = publication.bounds(X[:1], y[:1], groups=[1], forgotten=2, member=True, confidence=0.9).upper[0]
    weight = 1.0 / max(3, rows_per_person or 1)
    row = np.append(X[0], 1.0)
    slope, curvature = plan.loss.derivatives(np.array([row @ publication.coefficients]), y[:1].astype(float))
    length = weight * abs(slope[0]) * np.linalg.norm(row)
    longest = weight * plan.loss.curve.max_slope * math.sqrt(2.0)
    bend = 2.0 * weight * plan.loss.curve.max_curvature
    expected = (
        math.log1p(weight * curvature[0] * (row @ row) / plan.l2)
        + 2.0 * math.log1p(bend / plan.l2)
        + 0.5 * ((length + 2.0 * longest) / plan.sigma) ** 2
        + (length * two_sided(0.05) + 2.0 * longest * two_sided(0.025)) / plan.sigma
    )
    assert expected < found < 1.002 * expected  # the printed numbers have a small part of their own


@pytest.mark.parametrize("classes", [2, 3])
def test_a_forgotten_row_of_several_classes_bends_in_as_many_directions(classes):
    """By the largest curvature in each of them, which are one fewer than the classes."""
    plan = expost.calibrate(
        loss=expost.SoftmaxLoss(classes), sigma=3.0, l2=0.5, norm=1.5, fit_intercept=False
    )
    known = Interval(np.array([-0.25, 0.0]), np.array([0.5, 0.75]))
    more = 3.0 * (classes - 1) * math.log(1.0 + 0.4 * plan.loss.curve.max_curvature * 1.5**2 / 0.5)
    member, outsider = (Forgotten(3, 0.4).determinant(plan, known, member=side) for side in (True, False))
    np.testing.assert_allclose((member.low, member.high), (known.low, known.high + more), rtol=1e-12)
    np.testing.assert_allclose((outsider.low, outsider.high), (known.low - more, known.high), rtol=1e-12)


@pytest.mark.parametrize("report", KINDS)
def test_more_forgotten_rows_cost_more_and_none_costs_nothing(report):
    X, y, ids = table()
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], report=report, unit="person", random_state=1)
    bounds = model.fit(X, y, groups=ids).publication_.bounds
    figures = [bounds(X[:2], y[:2], groups=ids[:2], forgotten=count) for count in range(4)]
    # The rows that are known weigh less each time, so only the worst case can make up for it.
    for name in ("upper", "total"):
        values = [getattr(one, name)[0] for one in figures]
        assert values == sorted(values)
    everyone = bounds(X[:2], y[:2], groups=ids[:2], forgotten=1, simultaneous="all")
    assert everyone.total[0] > figures[1].total[0]
    plain = bounds(X[:2], y[:2], groups=ids[:2])
    assert (plain.lower, plain.upper, plain.total) == (figures[0].lower, figures[0].upper, figures[0].total)


def test_a_loss_without_a_largest_slope_has_no_limit_for_a_forgotten_row():
    X, y, ids = table()
    plan = expost.calibrate(loss="squared", sigma=3.0, l2=1.0, unit="person", fit_intercept=True)
    model = expost.LinearRegression(plan=plan, outcome=(-1.0, 1.0), random_state=1).fit(
        X, y.astype(float), groups=ids
    )
    found = model.publication_.bounds(X[:2], y[:2].astype(float), groups=ids[:2], forgotten=1)
    assert found.upper[0] == math.inf


@pytest.mark.parametrize(("forgotten", "groups"), [(-1, [1]), (1.5, [1]), (True, [1]), (1, None)])
def test_what_is_no_number_of_forgotten_rows(forgotten, groups):
    X, y, _ = table()
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=1).fit(X, y)
    with pytest.raises(ParameterError, match="`forgotten` must be"):
        model.publication_.bounds(X[:1], y[:1], groups=groups, forgotten=forgotten)
