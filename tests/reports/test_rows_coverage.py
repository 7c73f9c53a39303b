"""Bounds of models of ordered classes and of times to an event fail no more often than they say.

For every report, membership and scope, as in ``test_coverage``: binomial limits with a false-alarm rate of
1e-6 over all comparisons of one problem. The truth is that of all rows of a person, from the textbook.
"""

from dataclasses import replace

import numpy as np
import pytest
from grids import grid
from oracle import Problem
from problems import rows_in_ball, with_scales
from test_coverage import FAILURES, FITS, KINDS, misses, too_often

import expost
from expost.data.encoding import encode_records
from expost.data.weights import Declared

CLASSES = ("none", "mild", "severe")
LABELS = {
    "ordered": expost.OrderedLabel(name="y", classes=CLASSES),
    "times": expost.TimeLabel(name="t", event="e", periods=3),
}


class RowsProblem(Problem):
    """Records that are several rows of one person each; members first, as many outsiders after them."""

    def __init__(self, kind, report):
        rng, self.label = np.random.default_rng(41), LABELS[kind]
        X = rows_in_ball(rng, 30, 2)
        X[::2] /= np.linalg.norm(X[::2], axis=1, keepdims=True)  # on the boundary of the ball
        outcomes = {
            "ordered": np.array(CLASSES)[rng.integers(0, 3, 30)],
            # Some are followed for no period at all, and some beyond the last one.
            "times": np.column_stack([rng.integers(0, 5, 30), rng.integers(0, 2, 30)]),
        }
        self.loss = expost.LogisticLoss()
        self.plan = expost.calibrate(
            loss=self.loss, fit_intercept=True, unit="person", report=report, epsilon=2.0, delta=1e-3
        )
        declared = Declared.of(self.plan, outcome=self.label, classes=CLASSES if kind == "ordered" else None)
        self.X, self.y, self.encoded = {}, {}, {}
        for side, some in ((True, slice(15)), (False, slice(15, 30))):
            asked = outcomes[kind][some]
            self.X[side], self.y[side] = X[some], declared.labels(asked, 15)
            self.encoded[side] = encode_records(X[some], asked, declared)

    def records(self, member):
        return self.encoded[member]

    def derivatives(self, coefficients, member):
        """Sums over the rows of each person that count, of which each weighs one over the places."""
        X, places = self.X[member], self.label.places
        answers, counted = self.label.answers(self.y[member])
        rows = np.concatenate(
            [np.repeat(X[:, None], places, axis=1), np.tile(np.eye(places), (len(X), 1, 1))], axis=2
        )
        slope, curvature = self.loss.derivatives(rows @ coefficients, answers)
        gradients = np.einsum("rk,rkd->rd", counted * slope / places, rows)
        return gradients, np.einsum("rk,rkd,rke->rde", counted * curvature / places, rows, rows)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "report"), grid(LABELS, KINDS, together=1))
def test_few_fits_show_no_bound_that_fails_more_often_than_it_says(kind, report):
    assert too_often(misses(RowsProblem(kind, report), range(FITS // 25), failures=FAILURES[:1])) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("report", KINDS)
def test_no_bound_fails_more_often_than_it_says(kind, report):
    assert too_often(misses(RowsProblem(kind, report), range(FITS // 2))) == []


class Overstated(RowsProblem):
    """A publication that says that it has five times the noise that was drawn."""

    def fit(self, seed):
        release, private = super().fit(seed)
        return replace(release, plan=with_scales(self.plan, sigma=5.0 * self.plan.sigma)), private


@pytest.mark.parametrize("kind", [pytest.param("ordered", marks=pytest.mark.slow), "times"])
def test_bounds_by_noise_that_was_not_drawn_fail_the_same_test(kind):
    lying = Overstated(kind, "independent")
    assert too_often(misses(lying, range(FITS // 10), failures=FAILURES[:1], knowledge=(True,)))
