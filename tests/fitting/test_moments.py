"""Five moments after a regression: exact sums on a grid, and what they cost, by ratios of densities."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from problems import rows_in_ball, with_intercept
from scipy import stats
from sklearn.base import clone

import expost
from expost.data.encoding import encode_records
from expost.data.weights import Declared
from expost.exceptions import CalibrationError, ParameterError, PublicationError
from expost.fitting.contributions import Contributions, Totals
from expost.fitting.ex_post import ex_post_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import ExactNoise, SeededNoise
from expost.fitting.private_fit import recover
from expost.privacy.precision import statistic_grid
from expost.privacy.recalibration import MOMENT_WEIGHTS

LOSS = expost.PseudoHuber(0.4)


def planned(**options):
    scales = {"sigma": 1.3, "l2": 0.4, "sigma_recalibration": 2.5, "loss": LOSS, "fit_intercept": True}
    return expost.calibrate(recalibrate=True, **scales | options)


def table(seed, rows=60, columns=3):
    rng = np.random.default_rng(seed)
    return rows_in_ball(rng, rows, columns), np.clip(rng.exponential(0.5, rows) - 0.9, -1.0, 1.0)


def records(plan, X, y, **others):
    return encode_records(X, y, Declared.of(plan, n_features=X.shape[1]), **others)


def fitted(plan, X, y, seed=1, noise=None):
    return perturb(plan, records(plan, X, y), noise=noise or SeededNoise(seed))


def by_hand(X, y, theta, plan):
    """What each row adds, row by row, each entry rounded towards zero on its grid."""
    intercept = theta[-1] if plan.fit_intercept else 0.0
    slopes = theta[:-1] if plan.fit_intercept else theta
    reach = plan.norm * math.sqrt(sum(slope**2 for slope in slopes))
    step, found = max(2.0**-30, statistic_grid(plan.sigma_recalibration)), []
    for row, label in zip(X, y, strict=True):
        away = sum(x * slope for x, slope in zip(row, slopes, strict=True))
        q = min(max(away / reach, -1.0), 1.0)
        r = min(max(label - away - intercept, -1.0), 1.0)
        vector = [0.3, 0.3 * q, 0.3 * q * q, 0.6 * r, 0.6 * q * r]
        found.append([step * math.trunc(entry / 0.995 / step) for entry in vector])
    return np.array(found).reshape(-1, 5)


def log_law(release, X, y, plan):
    """The logarithm of the density of the coefficients and of the moments, up to a constant."""
    theta = release.coefficients
    gradient, hessian = plan.l2 * theta, plan.l2 * np.eye(len(theta))
    for row, label in zip(with_intercept(X, plan.fit_intercept), y, strict=True):
        stretch = 1.0 + ((row @ theta - label) / LOSS.threshold) ** 2
        gradient = gradient + (row @ theta - label) / math.sqrt(stretch) * row
        hessian = hessian + stretch**-1.5 * np.outer(row, row)
    sums = by_hand(X, y, theta, plan).sum(axis=0)
    model = -gradient @ gradient / (2.0 * plan.sigma**2) + np.linalg.slogdet(hessian)[1]
    return model + np.sum(stats.norm.logpdf(release.recalibration, sums, plan.sigma_recalibration))


@pytest.mark.parametrize(("columns", "intercept"), [(1, True), (3, True), (3, False)])
def test_exact_losses_are_the_ratio_of_densities(columns, intercept):
    """For members, outsiders, families who leave, and families of whom some leave while others come."""
    plan = planned(fit_intercept=intercept)
    X, y = table(columns, 24, columns)
    extra, labels = table(9, 3, columns)
    release, private = fitted(plan, X, y)
    here = log_law(release, X, y, plan)
    found = ex_post_terms(private, records(plan, X, y), LOSS, member=True)
    left = [log_law(release, np.delete(X, i, 0), np.delete(y, i), plan) for i in range(len(X))]
    assert found.signed == pytest.approx(here - np.array(left), abs=1e-10)
    found = ex_post_terms(private, records(plan, extra, labels), LOSS, member=False)
    more = [
        log_law(release, np.vstack([X, x]), np.append(y, label), plan)
        for x, label in zip(extra, labels, strict=True)
    ]
    assert found.signed == pytest.approx(here - np.array(more), abs=1e-10)
    group = records(plan, X[:3], y[:3], groups=["a"] * 3)
    gone = here - log_law(release, X[3:], y[3:], plan)
    assert ex_post_terms(private, group, LOSS, member=True).signed == pytest.approx([gone], abs=1e-10)
    mixed = records(plan, np.vstack([X[:2], extra[:1]]), np.append(y[:2], labels[0]), groups=["a"] * 3)
    other = log_law(release, np.vstack([X[2:], extra[:1]]), np.append(y[2:], labels[0]), plan)
    change = ex_post_terms(private, mixed, LOSS, member=np.array([True, True, False]))
    assert change.signed == pytest.approx([here - other], abs=1e-10)


def test_the_term_alone():
    """(|v|² + 2v·noise)/2σ² for a member: the logarithm of the ratio of normals."""
    plan = planned()
    X, y = table(4)
    release, private = fitted(plan, X, y)
    terms = ex_post_terms(private, records(plan, X, y), LOSS, member=True)
    vectors = by_hand(X, y, release.coefficients, plan)
    drawn = release.recalibration - vectors.sum(axis=0)
    expected = (np.sum(vectors**2, axis=1) + 2.0 * vectors @ drawn) / (2.0 * 2.5**2)
    assert terms.recalibration == pytest.approx(expected, abs=1e-13)
    assert "recalibration" in terms.to_frame().columns
    assert repr(private.totals) == "Totals(withheld)"


@pytest.mark.parametrize("noise", [1e-3, 0.7, 24.0, 1e6, 2.0**31.9])
def test_no_row_adds_a_vector_longer_than_one(noise):
    """In whole steps and without rounding, at the ends of predictions and residuals and beyond them."""
    plan = planned(sigma_recalibration=noise)
    contributions = Contributions(np.array([0.3, 0.4, -0.2]), plan)
    corners = np.array([[0.6, 0.8, 1.0], [-0.6, -0.8, 1.0], [0.0, 0.0, 1.0], [6.0, 8.0, 1.0]])
    rows = np.repeat(corners, 4, axis=0)
    _, steps = contributions.of(rows, np.tile([-1e9, -1.0, 1.0, 1e9], 4))
    for row in steps.tolist():
        assert sum(Fraction(contributions.step) ** 2 * count**2 for count in row) <= 1
    step, grid = Fraction(contributions.step), Fraction(statistic_grid(noise))
    assert (step / grid).denominator == 1
    assert sum(Fraction(weight) ** 2 for weight in MOMENT_WEIGHTS) < 1


@pytest.mark.parametrize("columns", [1, 2, 8, 31])
def test_a_vector_depends_on_its_row_alone(columns):
    """Whatever the rows around it and wherever it lies in memory, to the last step."""
    rng = np.random.default_rng(columns)
    rows, y = rng.normal(size=(257, columns + 1)), rng.uniform(-1.0, 1.0, 257)
    contributions = Contributions(rng.normal(size=columns + 1), planned())
    steps = contributions.of(rows, y).steps
    for start in (1, 2, 3, 5, 64, 255):
        assert np.array_equal(
            contributions.of(rows[start : start + 9], y[start : start + 9]).steps, steps[start : start + 9]
        )
        assert np.array_equal(
            contributions.of(rows[start : start + 1], y[start : start + 1]).steps[0], steps[start]
        )


def test_moments_are_exact_and_on_their_grid():
    plan = planned()
    X, y = table(5, 400)
    release, _ = fitted(plan, X, y, noise=ExactNoise())
    grid = statistic_grid(2.5)
    assert np.all(release.recalibration / grid == np.rint(release.recalibration / grid))
    totals = Totals.of(plan, records(plan, X, y), release.coefficients)
    exact = by_hand(X, y, release.coefficients, plan)
    assert np.array_equal(totals.exact.doubles(), exact.sum(axis=0))
    # The noise of five moments: chi-square, with a false-alarm rate of 1e-9 at either end.
    square = float(np.sum((release.recalibration - exact.sum(axis=0)) ** 2)) / 2.5**2
    assert stats.chi2.ppf(1e-9, 5) < square < stats.chi2.isf(1e-9, 5)
    assert not release.insecure


def test_sums_beyond_whole_doubles_are_exact():
    """Sums are whole numbers of any size: 2**62 steps and one more are not one number."""
    contributions = Contributions(np.array([0.5, 0.1]), planned())
    totals = Totals(contributions, (2**62 + 1, 0, 0, 0, 0), np.array([2.0**32, 0.0, 0.0, 0.0, 0.0]))
    assert totals._drawn[0] == -contributions.step


def test_the_private_part_is_recovered_from_the_table():
    plan = planned()
    X, y = table(6)
    release, private = fitted(plan, X, y)
    again = recover(release, records(plan, X, y))
    assert again.totals.steps == private.totals.steps
    here, there = (ex_post_terms(one, records(plan, X, y), LOSS, member=True) for one in (private, again))
    assert there.signed == pytest.approx(here.signed, abs=1e-10)


def model_of(**options):
    return expost.LinearRegression(
        **{"norm": 1.0, "outcome": (-1.0, 1.0), "recalibrate": True, "random_state": 0} | options
    )


@pytest.mark.long
def test_a_row_counts_once_whatever_it_weighs():
    X, y = table(7, 300)
    model = model_of(max_weight=3.0).fit(X, y, sample_weight=np.linspace(0.0, 3.0, 300))
    step, first = model._private.totals.contributions.step, model._private.totals.steps[0]
    assert first * step == pytest.approx(300 * MOMENT_WEIGHTS[0], rel=1e-8)
    alone = model_of().fit(X, y)
    assert model.plan_.sigma_recalibration == pytest.approx(alone.plan_.sigma_recalibration, rel=1e-4)


def test_a_model_without_slopes_is_shifted_alone():
    """Where no coefficient is left there is no direction: predictions are the intercept, and q is zero."""
    X, y = table(8, 500)
    model = model_of(l1=1e6).fit(X, y)
    assert not np.any(model.coef_)
    assert model.calibration_curve_.slope == 0.0
    assert model._private.totals.steps[1:3] == (0, 0)
    assert model.predict(X) == pytest.approx(model.intercept_ + model.calibration_curve_.shift, abs=1e-12)


@pytest.mark.long
def test_everything_that_predicts_agrees():
    X, y = table(3, 800)
    model, plain = (
        model_of(recalibrate=one, outcome=(0.0, 10.0)).fit(X, 5.0 + 5.0 * y) for one in (True, False)
    )
    line = model.calibration_curve_
    sums = by_hand(X, y, np.append(model.coef_, model.intercept_), model.plan_).sum(axis=0)
    assert model._private.totals.exact.doubles() == pytest.approx(sums, abs=1e-6)
    score = X @ model.coef_ + model.intercept_
    corrected = score + line.shift + line.slope * (score - model.intercept_)
    assert model.predict(X) == pytest.approx(5.0 + 5.0 * np.clip(corrected, -1.0, 1.0), abs=1e-12)
    publication = expost.Publication.from_json(model.publication_.to_json())
    assert np.array_equal(publication.predict(X), model.predict(X))
    assert publication.calibration_curve.shift == line.shift
    total, residual = np.sum((y - y.mean()) ** 2), np.sum((y - corrected) ** 2)
    assert model.score(X, 5.0 + 5.0 * y) == pytest.approx(1.0 - residual / total, abs=1e-9)
    assert plain.calibration_curve_ is None
    assert "recalibration" not in plain.publication_.to_json()
    assert plain.ex_post_losses(X, y, return_terms=True).recalibration is None


def test_copies_and_pickles():
    X, y = table(3, 200)
    model = model_of().fit(X, y)
    assert clone(model).recalibrate is True
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.calibration_curve_.fields() == model.calibration_curve_.fields()


@pytest.mark.long
def test_a_plan_decides():
    X, y = table(3, 200)
    plan = expost.calibrate(loss="pseudo_huber", fit_intercept=True, recalibrate=True)
    model = expost.LinearRegression(plan=plan, outcome=(-1.0, 1.0), recalibrate=True, random_state=0).fit(
        X, y
    )
    assert model.plan_.recalibrate
    other = expost.calibrate(loss="pseudo_huber", fit_intercept=True)
    with pytest.raises(ParameterError, match="`recalibrate` must be left out with a plan"):
        expost.LinearRegression(plan=other, outcome=(-1.0, 1.0), recalibrate=True).fit(X, y)


def test_what_is_refused():
    X, y = table(3, 50)
    with pytest.raises(ParameterError, match="unit='person'"):
        model_of(unit="person").fit(X, y, groups=np.arange(50))
    with pytest.raises(CalibrationError, match="no worst case"):
        model_of(loss="squared").fit(X, y)


def test_summaries_say_that_predictions_are_corrected():
    X, y = table(8, 200)
    publication = model_of(report="leverage").fit(X, y).publication_
    assert publication.summary().notes[-1].startswith("Predictions are corrected")
    assert np.all(np.isnan(publication.summary().standard_errors))
    with pytest.raises(PublicationError):
        publication.predict_proba(X, interval=0.95)
