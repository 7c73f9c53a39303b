"""Every pass can be sent elsewhere: pickled with its part and run there, it finds the same bits."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sparse
from problems import design_of, rows_in_ball

import expost
from expost.data.convex import open_records
from expost.fitting.certified.bound import ExactProblem
from expost.fitting.certified.certify import certify
from expost.fitting.certified.decimals import certify_in_decimals, hessian_in_decimals
from expost.fitting.certified.pairs import Dyadic
from expost.fitting.ex_post import ex_post_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import SeededNoise
from expost.fitting.objective import Objective
from expost.fitting.prediction import linear_predictor
from expost.fitting.private_fit import recover
from expost.fitting.solvers import minimize
from expost.reports import evaluate


class Sending:
    """An engine that pickles what it is given, as a cluster does, and counts what it ran."""

    sums_held = 2

    def __init__(self):
        self.ran = set()

    def map(self, work, parts, length):
        for part in parts:
            self.ran.add(type(getattr(work, "kernel", work)).__name__)
            sent_work, sent_part = pickle.loads(pickle.dumps((work, part)))
            yield pickle.loads(pickle.dumps(sent_work(sent_part.blocks(length))))


def table(loss, n=60, d=3):
    rng = np.random.default_rng(2)
    values = loss.labels.values
    y = rng.normal(size=n) if values is None else rng.choice(np.array(values, dtype=float), n)
    return design_of(rows_in_ball(rng, n, d), fit_intercept=True).labelled(y, rng.uniform(0.2, 1.0, n))


def figures(records, plan):
    """Everything that is computed from rows."""
    release, private = perturb(plan, records, noise=SeededNoise(1))
    yield from (release.coefficients, release.gradient, release.hessian, release.eigenvalue)
    yield from (private.gradient, private.hessian, recover(release, records).gradient)
    yield ex_post_terms(private, records, plan.loss, member=True).signed
    yield ex_post_terms(private, records, plan.loss, member=False).signed
    yield from evaluate(release, records).figures
    shape = (-1, records.design.dimension)
    yield linear_predictor(records, release.coefficients.reshape(shape).T)


PLANS = {
    "scalar": {"loss": expost.LogisticLoss(cap=0.7), "report": "adaptive"},
    "real arithmetic": {"loss": expost.SquaredLoss(), "sigma": 3.0, "l2": 1.0},
    "several": {"loss": expost.SoftmaxLoss(3), "report": "dependent"},
    "reduced": {"loss": expost.SoftmaxLoss(3), "report": "leverage", "reduced": True},
}


@pytest.mark.parametrize("kind", PLANS)
def test_a_fit_its_losses_and_its_bounds_are_the_same_elsewhere(kind):
    plan = expost.calibrate(fit_intercept=True, **PLANS[kind])
    records, engine = table(plan.loss), Sending()
    here, there = figures(records, plan), figures(replace(records, engine=engine), plan)
    for one, other in zip(here, there, strict=True):
        np.testing.assert_array_equal(other, one)
    assert len(engine.ran) >= 5


@pytest.mark.parametrize("loss", [expost.LogisticLoss(), expost.SoftmaxLoss(3)])
def test_matrix_free_steps_of_sparse_rows_are_the_same_elsewhere(loss, monkeypatch):
    monkeypatch.setitem(minimize.__globals__, "LARGEST_DENSE_DIMENSION", 0)
    rng, engine = np.random.default_rng(0), Sending()
    rows = sparse.csr_array(rng.random((80, 12)) * (rng.random((80, 12)) < 0.2))
    records = design_of(rows).labelled(rng.integers(0, 2, 80).astype(float))
    here, there = (
        minimize(Objective(one, loss, l2=1.0), tolerance=1e-9).theta
        for one in (records, replace(records, engine=engine))
    )
    np.testing.assert_array_equal(there, here)
    assert any("CurvatureProduct" in name for name in engine.ran)


@pytest.mark.parametrize("loss", [expost.LogisticLoss(), expost.SoftmaxLoss(3)])
def test_decimals_are_the_same_elsewhere(loss):
    rng, engine = np.random.default_rng(0), Sending()
    X, y = rows_in_ball(rng, 9, 2), rng.integers(0, 2, 9).astype(float)
    records = design_of(X).labelled(y)
    tilt = (rng.normal(size=2 * (1 if loss.name == "logistic" else 2)),)
    problems = [ExactProblem(one, loss, 1.0, 1.0, tilt) for one in (records, replace(records, engine=engine))]
    start = Dyadic.of(np.zeros(len(tilt[0])))
    found = [certify_in_decimals(one, start, None, target=2.0**-70, grid=2.0**-90) for one in problems]
    assert found[0].point.counts == found[1].point.counts
    assert certify(problems[1], np.zeros(len(tilt[0])), target=2.0**-40, grid=2.0**-60).radius <= 2.0**-40
    np.testing.assert_array_equal(*(hessian_in_decimals(one, found[0].point)[0] for one in problems))
    assert "DecimalPass" in engine.ran


@pytest.mark.long
def test_a_convex_model_is_the_same_elsewhere():
    loss, engine = expost.SmoothedNorm(2), Sending()
    records = open_records(np.random.default_rng(0).normal(size=(50, 2)), None, loss)
    plan = expost.calibrate_convex(loss)
    found = []
    for one in (records, replace(records, engine=engine)):
        release, private = perturb(plan, one, noise=SeededNoise(0))
        terms = ex_post_terms(private, one, loss, member=True).signed
        found.append([release.coefficients, terms, *evaluate(release, one).figures])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(other, one)
    assert engine.ran == {"Derivatives", "Terms", "FiguresPass"}
