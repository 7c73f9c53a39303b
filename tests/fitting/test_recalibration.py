"""How published numbers correct predictions: against what they were drawn from."""

import math

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.metrics import roc_auc_score

import expost
from expost.fitting.recalibration import CalibrationCurve, CalibrationLine
from expost.privacy.recalibration import cell_ends


def curve_of(scale, shift, records, noise, *, seed=0, draws=True):
    """A curve of records whose scores are normal and whose odds are those of ``scale`` and ``shift``."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(scale=2.0, size=records)
    labels = rng.random(records) < expit(scale * scores + shift)
    ends = np.array(cell_ends(noise))
    cells = np.searchsorted(ends, scores, side="right") + (len(ends) + 1) * labels
    counts = np.bincount(cells, minlength=2 * (len(ends) + 1)).astype(float)
    return CalibrationCurve(counts + noise * rng.normal(size=len(counts)) * draws, noise)


@pytest.mark.parametrize("noise", [5.0, 19.0, 25.0, 80.0])
@pytest.mark.parametrize("records", [0, 50, 5000])
def test_the_order_of_records_does_not_change(records, noise):
    for seed in range(2):
        curve = curve_of(1.3, 0.4, records, noise, seed=seed)
        scores = np.linspace(-60.0, 60.0, 401)
        odds = curve.corrected(scores)
        assert np.all(np.isfinite(odds))
        assert np.all(np.diff(odds) >= 0.0)
        assert np.all(np.diff(curve.corrected(np.linspace(-6.0, 6.0, 201))) > 0.0)


@pytest.mark.parametrize(("scale", "shift"), [(0.5, 0.0), (1.0, -0.8), (1.4, 0.3), (2.5, 1.0), (4.0, -0.4)])
def test_many_records_tell_scale_and_shift(scale, shift):
    """A million records at the middles of cells, in which scores of one cell do not differ: to 2%."""
    noise = 13.4
    middles = CalibrationCurve(np.zeros(32), noise).middles
    rng = np.random.default_rng(int(10 * scale))
    records = rng.multinomial(1_000_000, np.full(16, 1.0 / 16.0))
    second = rng.binomial(records, expit(scale * middles + shift))
    counts = np.concatenate([records - second, second])
    curve = CalibrationCurve(counts + noise * rng.normal(size=32), noise)
    odds = curve.corrected(np.array([0.0, 1.0]))
    assert odds[1] - odds[0] == pytest.approx(scale, rel=0.02)
    assert odds[0] == pytest.approx(shift, abs=0.02)
    # Of scores that differ inside of cells the middle is not the mean, and more is not to be had.
    spread = curve_of(scale, shift, 1_000_000, noise).corrected(np.array([0.0, 1.0]))
    assert expit(spread) == pytest.approx(expit([shift, scale + shift]), abs=0.02)


def test_beliefs_are_those_of_a_far_finer_grid():
    """A few hundred records and a hundred thousand: the mean probability by 301 by 321 points."""
    logarithms, shifts = np.linspace(math.log(0.05), math.log(20.0), 301), np.linspace(-6.0, 6.0, 321)
    for records in (300, 100_000):
        curve = curve_of(1.7, -0.4, records, 13.4)
        weights = curve._beliefs(logarithms, shifts)
        for score in (-3.0, 0.0, 1.5):
            expected = np.sum(weights * expit(np.exp(logarithms)[:, None] * score + shifts))
            assert expit(curve.corrected(np.array([score]))[0]) == pytest.approx(expected, abs=3e-3)


def test_noise_without_end_leaves_the_prior_on_average():
    """The mean of sigmoid(sz + a) under the prior: the counts then say next to nothing."""
    scale = np.geomspace(0.05, 20.0, 31)[:, None]
    shift = np.linspace(-6.0, 6.0, 33)
    prior = np.exp(-0.5 * ((np.log(scale) - math.log(1.4)) / 0.5) ** 2 - 0.5 * (shift / 0.8) ** 2)
    scores = np.array([-2.0, 0.0, 1.0])
    found = [expit(curve_of(3.0, 1.0, 1000, 1e7, seed=seed).corrected(scores)) for seed in range(60)]
    for score, mean in zip(scores, np.mean(found, axis=0), strict=True):
        expected = np.sum(prior * expit(scale * score + shift)) / np.sum(prior)
        assert mean == pytest.approx(expected, abs=0.03)


def test_classes_that_change_places_change_the_sign():
    curve = curve_of(1.7, 0.5, 3000, 13.0)
    first, second = curve.counts
    turned = CalibrationCurve(np.concatenate([second[::-1], first[::-1]]), 13.0)
    scores = np.linspace(-4.0, 4.0, 17)
    assert turned.corrected(-scores) == pytest.approx(-curve.corrected(scores), abs=1e-9)


def test_shares_are_within_their_errors():
    """Five standard errors in up to 16 cells of 200 curves: seeded, so that it passes always or never."""
    beyond = 0
    for seed in range(200):
        curve = curve_of(1.0, 0.0, 20_000, 13.0, seed=seed)
        low, high = np.append(-9.0, curve.ends), np.append(curve.ends, 9.0)
        grid = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, 401)
        density = np.exp(-0.5 * (grid / 2.0) ** 2)
        truth = np.sum(density * expit(grid), axis=1) / np.sum(density, axis=1)
        known = np.sum(curve.counts, axis=0) > 200.0
        beyond += int(np.sum(np.abs(curve.shares - truth)[known] > 5.0 * curve.errors[known]))
    assert beyond == 0


@pytest.fixture(scope="module")
def models():
    rng = np.random.default_rng(3)
    X = 0.4 * rng.normal(size=(3000, 4))
    y = rng.random(3000) < expit(X @ [6.0, -4.0, 2.0, 0.0] + 0.8)
    shape = {"norm": 2.0, "classes": [False, True], "random_state": 1}
    found = [expost.LogisticRegression(recalibrate=one, **shape).fit(X, y) for one in (True, False)]
    return X, y, *found


def test_the_area_under_the_curve_stays(models):
    X, y, model, _ = models
    raw = X @ model.coef_[0] + model.intercept_[0]
    # Rows beyond the norm are scaled; those inside have the plain score.
    inside = np.linalg.norm(X, axis=1) <= 2.0
    probability = model.predict_proba(X)[:, 1]
    assert roc_auc_score(y[inside], raw[inside]) == roc_auc_score(y[inside], probability[inside])
    assert np.array_equal(np.argsort(raw[inside]), np.argsort(probability[inside]))


def test_everything_that_predicts_agrees(models):
    X, y, model, plain = models
    odds = model.decision_function(X)
    assert model.predict_proba(X)[:, 1] == pytest.approx(expit(odds), rel=1e-14)
    assert model.predict_log_proba(X)[:, 1] == pytest.approx(np.log(expit(odds)), rel=1e-12)
    assert np.array_equal(model.predict(X), odds > 0.0)
    assert model.score(X, y) == np.mean((odds > 0.0) == y)
    publication = expost.Publication.from_json(model.publication_.to_json())
    assert np.array_equal(publication.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(publication.predict(X), model.predict(X))
    assert logit(plain.predict_proba(X)[:, 1]) == pytest.approx(plain.decision_function(X), abs=1e-9)


def test_the_curve_is_shown(models):
    curve = models[2].calibration_curve_
    frame = curve.to_frame()
    assert list(frame.columns)[:2] == ["score_from", "score_to"]
    assert len(frame) == 16
    shown = curve._repr_html_()
    assert "share of the second class" in shown
    assert "lost in the noise" in CalibrationCurve(np.zeros(32), 13.0)._repr_html_()


def line_of(shift, slope, records, noise, *, seed=0, reach=0.8, intercept=-0.3):
    """A line of records whose residuals have this shift and slope, with noise in their moments."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-0.6, 0.9, records)
    r = shift + slope * reach * q + rng.normal(scale=math.sqrt(0.06), size=records)
    sums = np.array([one.sum() for one in (np.ones(records), q, q * q, r, q * r)])
    moments = sums + noise * rng.normal(size=5) / np.array([0.3, 0.3, 0.3, 0.6, 0.6]) * 0.995
    return CalibrationLine(moments, noise, intercept, reach)


@pytest.mark.parametrize(("shift", "slope"), [(0.0, 0.0), (0.02, -0.1), (-0.03, 0.25)])
def test_many_records_tell_shift_and_slope(shift, slope):
    line = line_of(shift, slope, 1_000_000, 25.0)
    assert line.shift == pytest.approx(shift, abs=0.002)
    assert line.slope == pytest.approx(slope, abs=0.005)
    scores = np.array([-0.9, -0.3, 0.4])
    expected = scores + line.shift + line.slope * (scores + 0.3)
    assert line.corrected(scores) == pytest.approx(expected, abs=1e-14)
    assert np.all(line.errors < [0.001, 0.003])


@pytest.mark.parametrize("records", [30, 300, 5000])
def test_beliefs_of_a_line_are_those_of_a_grid(records):
    """The posterior mean and errors by sums over 401 by 401 pairs, of the normal laws as they are written."""
    line = line_of(0.02, 0.1, records, 6.0, seed=records)
    count, first, second, *residuals = line.moments.tolist()
    values, vectors = np.linalg.eigh([[count, first], [first, second]])
    matrix = vectors @ np.diag(np.maximum(values, 0.0)) @ vectors.T
    shifts, slopes = 0.015 * np.linspace(-7.0, 7.0, 401)[:, None], 0.1 * np.linspace(-7.0, 7.0, 401)
    off = [
        residuals[place] - matrix[place, 0] * shifts - matrix[place, 1] * slopes * line.reach
        for place in range(2)
    ]
    inverse = np.linalg.inv((6.0 * 0.995 / 0.6) ** 2 * np.eye(2) + 0.06 * matrix)
    square = sum(inverse[a, b] * off[a] * off[b] for a in range(2) for b in range(2))
    weights = np.exp(-0.5 * (square + (shifts / 0.015) ** 2 + (slopes / 0.1) ** 2))
    weights /= weights.sum()
    for found, error, grid in ((line.shift, line.errors[0], shifts), (line.slope, line.errors[1], slopes)):
        mean = float(np.sum(weights * grid))
        assert found == pytest.approx(mean, abs=1e-6)
        assert error == pytest.approx(math.sqrt(np.sum(weights * (grid - mean) ** 2)), rel=1e-3)


def test_noise_without_end_corrects_nothing():
    for seed in range(20):
        line = line_of(0.2, 0.5, 1000, 1e9, seed=seed)
        assert abs(line.shift) < 0.06
        assert abs(line.slope) < 0.4
        assert np.all(line.errors <= np.array([0.015, 0.1]) * (1.0 + 1e-12))


def test_errors_of_a_line_are_as_large_as_they_say():
    """Shifts and slopes from the prior: the mean of 600 squares of errors, false alarms below 1e-6."""
    rng = np.random.default_rng(8)
    squares = []
    for seed in range(300):
        shift, slope = rng.normal(scale=0.015), rng.normal(scale=0.1)
        line = line_of(shift, slope, 2000, 25.0, seed=1000 + seed)
        squares += [
            ((line.shift - shift) / line.errors[0]) ** 2,
            ((line.slope - slope) / line.errors[1]) ** 2,
        ]
    # Five deviations of a mean of 300 squares of normals: the two of a line may go together.
    assert np.mean(squares) == pytest.approx(1.0, abs=5.0 * math.sqrt(2.0 / 300.0))


@pytest.mark.long
def test_skewed_outcomes_are_predicted_better():
    """The pseudo-Huber loss follows the bulk of an exponential outcome; its predictions are raised."""
    rng = np.random.default_rng(4)
    X = rng.uniform(-1.0, 1.0, (6000, 2)) / math.sqrt(2.0)
    y = np.minimum(rng.exponential(1.0 + 0.8 * X[:, 0]), 8.0)
    scores = []
    for recalibrate in (False, True):
        model = expost.LinearRegression(norm=1.0, outcome=(0.0, 8.0), recalibrate=recalibrate, random_state=3)
        scores.append(model.fit(X, y).score(X, y))
    assert scores[1] > scores[0] + 0.02
