"""Reports of several classes: each formula against its truth, and two classes against the logistic loss."""

import math
from dataclasses import replace

import numpy as np
import pytest
from grids import grid
from problems import design_of, rows_in_ball
from scipy import stats

import expost
from expost.fitting.release import Release
from expost.losses import SoftmaxLoss
from expost.reports import evaluate, intervals
from expost.reports.base import Scope
from expost.reports.evaluate import row_width
from expost.reports.laws import NORMAL, Across, Chi, Spread, every_quantile
from expost.reports.records import WEIGHTS
from expost.reports.total import _law_quantile, ellipse_quantile, whole_noise


def test_the_spread_of_the_noise_has_the_quantiles_of_its_law():
    known = {2: 2.7718, 3: 3.1284, 5: 3.4532, 10: 3.7989, 30: 4.2444}
    rng = np.random.default_rng(0)
    for classes, quantile in known.items():
        law = Spread(classes)
        assert math.sqrt(2.0) * law.quantile(0.05) == pytest.approx(quantile, abs=5e-5)
        W = rng.normal(size=(20_000, classes))
        drawn = np.abs(W[:, 1:] - W[:, :1]).max(axis=1) / math.sqrt(2.0)
        for at in (0.5, 1.5, 2.5):
            tail = float(law.tail(np.array(at)))
            # Two-sided binomial, at most 2e-8 for each of the fifteen comparisons.
            assert stats.binom.cdf((drawn > at).sum(), len(W), tail) > 1e-8
            assert stats.binom.sf((drawn > at).sum() - 1, len(W), tail) > 1e-8
    for failure in (0.9, 0.3, 1e-3, 1e-12, 1e-30):
        assert Spread(2).quantile(failure) == pytest.approx(NORMAL.quantile(failure), rel=1e-12)
        for classes in (3, 10, 1000):
            law = Spread(classes)
            assert float(law.tail(np.array(law.quantile(failure)))) == pytest.approx(failure, rel=1e-9)
            # It is never worse than the length of the noise, by which it may be replaced.
            assert law.quantile(failure) <= Chi(classes - 1).quantile(failure) * (1 + 1e-12)


def test_the_largest_singular_value_covers_every_record_at_once():
    for failure in (0.3, 0.05, 1e-9):
        singular = math.sqrt(50) + math.sqrt(9) + math.sqrt(2 * math.log(1 / failure))
        assert every_quantile(450, 9, failure) == pytest.approx(singular, rel=1e-14)
    assert every_quantile(4, 2, 0.05) == Chi(4).quantile(0.05)
    rng = np.random.default_rng(1)
    for outputs, columns in ((2, 3), (4, 20), (9, 5)):
        largest = np.linalg.norm(rng.normal(size=(4000, outputs, columns)), ord=2, axis=(1, 2))
        for failure in (0.3, 0.05):
            missed = (largest > every_quantile(outputs * columns, outputs, failure)).sum()
            # Six comparisons: a false alarm of 6e-7.
            assert missed <= stats.binom.isf(1e-7, 4000, failure)


def two_ways(report, rng, dimension=4, **statistics):
    """One release of two classes, as softmax at (σ, λ) and as logistic at (σ/√2, λ/2)."""
    common = {"report": report, "norm": 1.0, "delta": 1e-5}
    several = expost.calibrate(loss=SoftmaxLoss(2), sigma=4.0, l2=3.0, **common, **statistics)
    # The score of the second class over the first is -√2 times the centred predictor.
    halves = {"sigma_gradient": math.sqrt(0.5), "sigma_hessian": 0.5, "sigma_eigenvalue": 0.5}
    one = expost.calibrate(
        loss="logistic",
        sigma=4.0 / math.sqrt(2.0),
        l2=1.5,
        **common,
        **{name: halves[name] * scale for name, scale in statistics.items()},
    )
    w = rng.normal(size=dimension)
    # In real arithmetic: the printed digits of the two are not the same.
    return replace(several, precision=None), replace(one, precision=None), w


STATISTICS = {
    "independent": {},
    "leverage": {"sigma_hessian": 2.0},
    "adaptive": {"sigma_gradient": 5.0, "sigma_hessian": 2.0, "sigma_eigenvalue": 1.0},
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("report", "member", "simultaneous"), grid(STATISTICS, [True, False, None], [None, 50, "all"])
)
def test_two_classes_are_the_logistic_loss(report, member, simultaneous, monkeypatch):
    rng = np.random.default_rng(3)
    X, y = rows_in_ball(rng, 40, 4), rng.integers(0, 2, 40).astype(float)
    weights = rng.uniform(0.0, 1.0, 40)
    several, one, w = two_ways(report, rng, **STATISTICS[report])
    # A record's number is a matrix of one row here: let it try as many weights.
    monkeypatch.setattr(intervals, "FEW_WEIGHTS", WEIGHTS)
    here, there = {}, {}
    if several.sigma_hessian is not None:
        Z = rng.normal(size=(4, 4))
        noisy = 3.0 * np.eye(4) + 4.0 * Z @ Z.T
        here["hessian"], there["hessian"] = noisy, noisy / 2.0
    if several.sigma_gradient is not None:
        noisy = 4.0 * rng.normal(size=4)
        here["gradient"], there["gradient"] = noisy, -noisy / math.sqrt(2.0)
    if several.sigma_eigenvalue is not None:
        here["eigenvalue"], there["eigenvalue"] = 6.0, 3.0
    how = {"confidence": 0.9, "member": member, "simultaneous": simultaneous}
    got = evaluate(Release(several, w, **here), design_of(X).labelled(y, weights), **how)
    want = evaluate(Release(one, -math.sqrt(2.0) * w, **there), design_of(X).labelled(y, weights), **how)
    np.testing.assert_allclose(got.report_cost, want.report_cost, rtol=1e-11)
    if simultaneous == "all":  # one predictor has a second norm to choose from, and pays for the choice
        assert np.all(got.upper <= want.upper * (1 + 1e-9))
        return
    np.testing.assert_allclose(got.upper, want.upper, rtol=1e-11)
    np.testing.assert_allclose(got.lower, want.lower, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(got.total, want.total, rtol=1e-11)


def test_one_predictor_is_a_case_of_each_law():
    """Of a vector of one, and of two classes; and of the formulas for the whole noise."""
    at = np.array([0.0, 0.3, 1.0, 3.0, 9.0])
    np.testing.assert_allclose(NORMAL.tail(at), 2.0 * stats.norm.sf(at), rtol=1e-13)
    np.testing.assert_allclose(Spread(2).tail(at), NORMAL.tail(at), rtol=1e-12)
    for failure in (0.3, 0.05, 1e-6):
        assert NORMAL.tail(np.array(NORMAL.quantile(failure))) == pytest.approx(failure, rel=1e-12)
        for stretch in (1.0, 1.5, 4.0):
            # The closed form for two normals against the integral for any law.
            general = _law_quantile(stretch, failure, NORMAL)
            assert ellipse_quantile(stretch, failure) == pytest.approx(general, rel=1e-11)


def wide_release(columns=60, **changes):
    """Of three classes at coefficients of zero, with a Hessian that nothing reads here."""
    plan = expost.calibrate(
        loss=SoftmaxLoss(3), report="leverage", sigma=4.0, sigma_hessian=2.0, l2=3.0, norm=1.0
    )
    plan = replace(plan, precision=None, fit_intercept=False, **changes)
    return Release(plan, np.zeros(2 * columns), hessian=np.eye(columns if plan.reduced else 2 * columns))


def test_every_record_of_several_classes_has_one_noise_and_people_have_the_length_of_all():
    """A row's gradients lie along it; those of a person with several rows may lie anywhere."""
    release = wide_release()
    rows = whole_noise(release, Scope("all"), 0.05)
    people = whole_noise(release, Scope("all"), 0.05, Across(4))
    singular = math.sqrt(60) + math.sqrt(2) + math.sqrt(2.0 * math.log(40.0))
    assert rows.model == pytest.approx(singular, rel=1e-12)
    assert people.model == pytest.approx(stats.chi.isf(0.025, 120), rel=1e-9)
    assert people.model > 1.02 * rows.model


@pytest.mark.parametrize(("columns", "reduced", "longest"), [(6, True, 6), (6, False, 12), (1, True, 3)])
def test_a_record_has_as_many_numbers_as_its_factor_in_the_hessian(columns, reduced, longest):
    """Three columns, one for each class, as long as the Hessian that is read or as there are columns."""
    records = design_of(np.zeros((3, columns))).labelled(np.zeros(3))
    assert row_width(wide_release(columns, reduced=reduced), records) == 3 * longest
